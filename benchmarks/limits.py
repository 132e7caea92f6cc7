"""The limit: the least that anything must do with these bytes. Split into events, decode into typed structs.

No state, no order, no aggregate; the types hold what an application would read. Ratios are against this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec


class Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class ToolCall(msgspec.Struct):
    index: int = 0
    id: str | None = None
    type: str | None = None
    function: Function | None = None


class Delta(msgspec.Struct):
    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None


class Choice(msgspec.Struct):
    index: int = 0
    delta: Delta | None = None
    finish_reason: str | None = None
    logprobs: Any = None


class ChatUsage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: dict[str, int] | None = None
    completion_tokens_details: dict[str, int] | None = None


class Chunk(msgspec.Struct):
    id: str
    choices: list[Choice]
    object: str | None = None
    created: int | None = None
    model: str | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    usage: ChatUsage | None = None


class TextDelta(msgspec.Struct, tag="text_delta"):
    text: str


class ThinkingDelta(msgspec.Struct, tag="thinking_delta"):
    thinking: str


class SignatureDelta(msgspec.Struct, tag="signature_delta"):
    signature: str


class InputDelta(msgspec.Struct, tag="input_json_delta"):
    partial_json: str


class MessageStart(msgspec.Struct, tag="message_start"):
    message: dict[str, Any]


class BlockStart(msgspec.Struct, tag="content_block_start"):
    index: int
    content_block: dict[str, Any]


class BlockDelta(msgspec.Struct, tag="content_block_delta"):
    index: int
    delta: TextDelta | ThinkingDelta | SignatureDelta | InputDelta


class BlockStop(msgspec.Struct, tag="content_block_stop"):
    index: int


class MessageDelta(msgspec.Struct, tag="message_delta"):
    delta: dict[str, Any]
    usage: dict[str, Any] | None = None


class MessageStop(msgspec.Struct, tag="message_stop"):
    pass


class Ping(msgspec.Struct, tag="ping"):
    pass


AnthropicEvent = MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop | Ping

DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "openai-chat": msgspec.json.Decoder(Chunk),
    "anthropic": msgspec.json.Decoder(AnthropicEvent),
}


def split_and_decode(chunks: Iterable[bytes], dialect: str) -> int:
    """How many frames *chunks* hold; each is decoded. Correct for LF and one `data` line an event, no more."""
    decode = DECODERS[dialect].decode
    frames, rest = 0, b""
    for chunk in chunks:
        *events, rest = (rest + chunk).split(b"\n\n")
        for event in events:
            for line in event.split(b"\n"):
                if line.startswith(b"data: "):
                    data = line[6:]
                    if data != b"[DONE]":
                        decode(data)
                    frames += 1
    return frames


class Splitter:
    """The same, for chunks that come one at a time."""

    def __init__(self, dialect: str) -> None:
        self._decode = DECODERS[dialect].decode
        self._rest = b""
        self.frames = 0

    def feed(self, chunk: bytes) -> None:
        decode = self._decode
        *events, self._rest = (self._rest + chunk).split(b"\n\n")
        for event in events:
            for line in event.split(b"\n"):
                if line.startswith(b"data: "):
                    data = line[6:]
                    if data != b"[DONE]":
                        decode(data)
                    self.frames += 1
