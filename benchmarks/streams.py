"""Streams to measure on: made here, with sizes that are typical of the providers. Deterministic."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

WORDS = "the sky is blue because light scatters off molecules and short waves scatter most of all".split()


def _sse(value: object, event: str | None = None) -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(value, separators=(',', ':'), ensure_ascii=False)}\n\n".encode()


def _chat(delta: dict[str, object], finish: str | None = None, **more: object) -> bytes:
    return _sse(
        {
            "id": "chatcmpl-C4XQ2mN8bT6vR1sLpW9yZk3HdFgJ0",
            "object": "chat.completion.chunk",
            "created": 1790000000,
            "model": "gpt-4o-mini-2024-07-18",
            "service_tier": "default",
            "system_fingerprint": "fp_560af6e559",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
            "usage": None,
            "obfuscation": "aB3",
            **more,
        }
    )


_CHAT_USAGE = {
    "prompt_tokens": 57,
    "completion_tokens": 2000,
    "total_tokens": 2057,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
}


def _chat_tail(finish: str) -> list[bytes]:
    usage = json.loads(_chat({})[6:])
    usage.update(choices=[], usage=_CHAT_USAGE)
    return [_chat({}, finish), _sse(usage), b"data: [DONE]\n\n"]


def chat_text(deltas: int = 2000) -> list[bytes]:
    """OpenAI chat, text alone: *deltas* + 4 frames of about 326 bytes."""
    rng = random.Random(1)  # sizes of a benchmark
    body = [_chat({"content": " " + rng.choice(WORDS)}) for _ in range(deltas)]
    return [_chat({"role": "assistant", "content": "", "refusal": None}), *body, *_chat_tail("stop")]


def chat_tools(calls: int = 3, fragments: int = 500, thoughts: int = 500) -> list[bytes]:
    """OpenAI chat: reasoning, then three interleaved calls of 500 fragments each; frames of about 365 bytes."""
    rng = random.Random(2)  # sizes of a benchmark
    frames = [_chat({"role": "assistant", "content": None})]
    frames += [_chat({"reasoning_content": " " + rng.choice(WORDS)}) for _ in range(thoughts)]
    for i in range(calls):
        call = {
            "index": i,
            "id": f"call_{i:024d}",
            "type": "function",
            "function": {"name": "find", "arguments": ""},
        }
        frames.append(_chat({"tool_calls": [call]}))
    for n in range(fragments):
        for i in range(calls):
            text = '{"words":["x"' if n == 0 else '"]}' if n == fragments - 1 else f',"{rng.choice(WORDS)}"'
            if n == fragments - 1:
                text = "]}"
            frames.append(_chat({"tool_calls": [{"index": i, "function": {"arguments": text}}]}))
    return frames + _chat_tail("tool_calls")


def anthropic(thoughts: int = 500, texts: int = 1000, inputs: int = 500) -> list[bytes]:
    """Anthropic messages: thinking, text, a tool's input, and pings; frames of about 127 bytes."""
    rng = random.Random(3)  # sizes of a benchmark

    def frame(kind: str, **fields: object) -> bytes:
        return _sse({"type": kind, **fields}, kind)

    def delta(index: int, kind: str, key: str, value: str) -> bytes:
        return frame("content_block_delta", index=index, delta={"type": kind, key: value})

    message: dict[str, object] = {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 57, "output_tokens": 1},
    }
    frames = [frame("message_start", message=message)]
    frames.append(
        frame(
            "content_block_start",
            index=0,
            content_block={"type": "thinking", "thinking": "", "signature": ""},
        )
    )
    frames += [delta(0, "thinking_delta", "thinking", " " + rng.choice(WORDS)) for _ in range(thoughts)]
    frames += [
        delta(0, "signature_delta", "signature", "EqQBCgIYAhIM" * 8),
        frame("content_block_stop", index=0),
    ]
    frames.append(frame("content_block_start", index=1, content_block={"type": "text", "text": ""}))
    for n in range(texts):
        if n % 100 == 0:
            frames.append(frame("ping"))
        frames.append(delta(1, "text_delta", "text", " " + rng.choice(WORDS)))
    frames.append(frame("content_block_stop", index=1))
    tool = {"type": "tool_use", "id": "toolu_01T1x1fJ34qAmk2tNTrN7Up6", "name": "find", "input": {}}
    frames.append(frame("content_block_start", index=2, content_block=tool))
    for n in range(inputs):
        text = '{"words":["x"' if n == 0 else "]}" if n == inputs - 1 else f',"{rng.choice(WORDS)}"'
        frames.append(delta(2, "input_json_delta", "partial_json", text))
    frames.append(frame("content_block_stop", index=2))
    frames.append(
        frame(
            "message_delta",
            delta={"stop_reason": "tool_use", "stop_sequence": None},
            usage={"output_tokens": 2000},
        )
    )
    frames.append(frame("message_stop"))
    return frames


STREAMS: dict[str, tuple[str, Callable[[], list[bytes]]]] = {
    "chat_text": ("openai-chat", chat_text),
    "chat_tools": ("openai-chat", chat_tools),
    "anthropic": ("anthropic", anthropic),
}
"""Each stream by name: its dialect and its maker."""


def scaled(name: str, scale: float = 1.0) -> list[bytes]:
    """The frames of stream *name*, with *scale* times as many deltas."""
    if name == "chat_text":
        return chat_text(_times(2000, scale))
    if name == "chat_tools":
        return chat_tools(fragments=_times(500, scale), thoughts=_times(500, scale))
    return anthropic(_times(500, scale), _times(1000, scale), _times(500, scale))


def _times(count: int, scale: float) -> int:
    return max(2, round(count * scale))


def long_chat(deltas: int, chunk: int = 16 * 1024) -> Iterator[bytes]:
    """`chat_text` of *deltas*, a multiple of 2,000, as chunks that are made when they are asked for."""
    frames = chat_text(2000)
    block = list(cut(b"".join(frames[1:2001]), chunk))
    yield frames[0]
    for _ in range(deltas // 2000):
        yield from block
    yield b"".join(frames[2001:])


CUTS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "16 KiB": lambda frames: list(cut(b"".join(frames), 16 * 1024)),
    "event": lambda frames: frames,
    "7 bytes": lambda frames: list(cut(b"".join(frames), 7)),
}
"""Ways to cut a stream into chunks."""


def cut(data: bytes, size: int) -> Iterator[bytes]:
    """*data* in pieces of *size* bytes."""
    for start in range(0, len(data), size):
        yield data[start : start + size]
