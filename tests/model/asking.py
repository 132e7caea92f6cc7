"""What these tests share: answers of both dialects, models that ask a raw server, ways to take a stream in."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from semflux import ChatModel, ChatStream, violations_of
from semflux.clock import VirtualClock
from semflux.errors import SemfluxError
from semflux.events import AnyChatEvent
from semflux.transport import Recording, ReplayTransport
from tests.faultserver import REQUEST, FaultServer, Script, Step, answer, chunk, head
from tests.frames import DONE, STOP, Seen, cc, completion, cu, md, start, text_block
from tests.transport.asking import CANARY, until

SSE = "Content-Type: text/event-stream"
JSON = "Content-Type: application/json"

HELLO = cc({"role": "assistant", "content": ""}) + cc({"content": "Hel"}) + cc({"content": "lo"})
"""The text "Hello", by OpenAI chat, without an end."""
FINISH = cc(finish="stop")
CHAT = HELLO + FINISH + cu(3, 2) + DONE
"""A whole answer, "Hello", with usage."""
CLAUDE = start() + text_block(0, "Hel", "lo") + md("end_turn") + STOP
"""The same by Anthropic."""
BODIES = {"openai-chat": CHAT, "anthropic": CLAUDE}

WHOLE = {
    "openai-chat": completion(
        {"role": "assistant", "content": "Hello"}, usage={"prompt_tokens": 3, "completion_tokens": 2}
    ),
    "anthropic": json.dumps(
        {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": [{"type": "text", "text": "Hello"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 5},
        }
    ).encode(),
}
"""The answer "Hello" as one JSON document."""

NAMES = {"openai-chat": "openai-chat:gpt-4o", "anthropic": "anthropic:claude-sonnet-4-5"}
DIALECTS = tuple(NAMES)

FRAME = ["RESPONSE_START", "STEP_START", "TEXT_START", "TEXT_DELTA", "TEXT_DELTA", "TEXT_END"]
"""The types of a stream that says "Hello", up to its end."""


def streamed(body: bytes, *headers: str) -> bytes:
    """An SSE answer in one chunk that ends properly, so that its connection may be used again."""
    return head("200 OK", *(headers or (SSE,)), chunked=True) + (chunk(body) if body else b"") + chunk(b"")


def model_at(server: FaultServer, dialect: str = "openai-chat", **settings: Any) -> ChatModel:
    """A model of *dialect* that asks *server*."""
    root = f"http://127.0.0.1:{server.port}"
    settings.setdefault("base_url", root if dialect == "anthropic" else f"{root}/v1")
    settings.setdefault("api_key", CANARY)
    settings.setdefault("max_retries", 0)
    return ChatModel(NAMES[dialect], **settings)


@contextlib.asynccontextmanager
async def asking(
    *scripts: Script, dialect: str = "openai-chat", **settings: Any
) -> AsyncIterator[tuple[ChatModel, FaultServer]]:
    """A raw server with these scripts and a model that asks it; at the end no connection is in use."""
    async with FaultServer(*scripts) as server, model_at(server, dialect, **settings) as model:
        yield model, server
        assert acquired(model) == 0


async def eof_of(server: FaultServer, n: int = 0) -> float:
    """When the server saw the end of connection *n*."""
    async with asyncio.timeout(5):
        seen = await server.connection(n)
        await seen.eof.wait()
    assert seen.eof_at is not None
    return seen.eof_at


def acquired(model: ChatModel) -> int:
    """The connections of *model* in use."""
    return model._transport.acquired


def checked(events: list[AnyChatEvent], error: Exception | None) -> Seen:
    """*events* and *error* after a look at the rules: one terminal event, the same error twice."""
    assert error is None or (isinstance(error, SemfluxError) and error.kind != "source"), repr(error)
    assert events[-1].is_terminal
    assert events[-1].error is error
    assert violations_of(events, seq="rising") == ()
    return Seen(events, error)


async def read(stream: ChatStream) -> Seen:
    """All of *stream*, by `async for`."""
    events: list[AnyChatEvent] = []
    error: Exception | None = None
    try:
        async for event in stream:
            events.append(event)  # noqa: PERF401  # those before an error count too
    except Exception as exc:
        error = exc
    return checked(events, error)


async def pushed(stream: ChatStream) -> Seen:
    """All of *stream*, by callbacks."""
    events: list[AnyChatEvent] = []
    ends: list[Exception | None] = []
    stream.subscribe(events.append, ends.append, lambda: ends.append(None))
    await until(lambda: bool(ends))
    await asyncio.sleep(0)
    assert len(ends) == 1
    return checked(events, ends[0])


def types(seen: Seen) -> list[str]:
    """The types of all events."""
    return [event.type.value for event in seen.events]


async def one(*script: Step, dialect: str = "openai-chat", **settings: Any) -> Seen:
    """What a call comes to that is answered by *script*; the request itself is read before it."""
    async with asking([REQUEST, *script], dialect=dialect, **settings) as (model, _):
        return await read(model.prompt("hi").stream())


def request_of(raw: bytes) -> tuple[str, dict[str, str], Any]:
    """The request line, the headers by lower-case name, and the body as JSON."""
    top, _, body = raw.partition(b"\r\n\r\n")
    line, *rest = top.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (item.partition(":") for item in rest)}
    return line, headers, json.loads(body)


# Without a network, in virtual time.


def replayed(*body: Any, clock: VirtualClock | None = None, **settings: Any) -> ChatModel:
    """A model whose one answer is *body*: bytes, pauses in seconds of *clock*, an error."""
    transport = ReplayTransport(Recording(body=body), clock=clock)
    settings.setdefault("max_retries", 0)
    return ChatModel(NAMES["openai-chat"], api_key=CANARY, transport=transport, clock=clock, **settings)


async def settle() -> None:
    """Let everything happen that needs no time."""
    for _ in range(20):
        await asyncio.sleep(0)


class Watching:
    """A stream being read by `async for` in a task, and what has come of it so far."""

    def __init__(self, stream: ChatStream, gate: Callable[[], Any] | None = None) -> None:
        self.events: list[AnyChatEvent] = []
        self.error: Exception | None = None
        self.task = asyncio.create_task(self._read(stream, gate))

    async def _read(self, stream: ChatStream, gate: Callable[[], Any] | None) -> None:
        try:
            async for event in stream:
                self.events.append(event)
                if gate is not None:
                    await gate()
        except SemfluxError as error:
            self.error = error

    @property
    def types(self) -> list[str]:
        return [event.type.value for event in self.events]

    async def done(self) -> Seen:
        """What it came to."""
        async with asyncio.timeout(5):
            await self.task
        return checked(self.events, self.error)


__all__ = (
    "BODIES",
    "CANARY",
    "CHAT",
    "CLAUDE",
    "DIALECTS",
    "FINISH",
    "FRAME",
    "HELLO",
    "JSON",
    "NAMES",
    "SSE",
    "WHOLE",
    "Watching",
    "acquired",
    "answer",
    "asking",
    "checked",
    "eof_of",
    "model_at",
    "one",
    "pushed",
    "read",
    "replayed",
    "request_of",
    "settle",
    "streamed",
    "types",
    "until",
)
