"""Whatever a server sends: exactly one terminal event, a SemfluxError if it is an ERROR, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from semflux import Limits
from semflux.errors import SemfluxError
from tests.faultserver import EOF, HALF_CLOSE, REQUEST, RESET, Step, answer, chunk, head, pour
from tests.frames import DONE, STOP, an, blk, cc, cu, dl, end, md, sse, start, tc
from tests.model.asking import (
    CHAT,
    CLAUDE,
    DIALECTS,
    FINISH,
    HELLO,
    JSON,
    SSE,
    asking,
    pushed,
    read,
    streamed,
)

LIMITS = Limits(
    max_line_bytes=30_000,
    max_event_bytes=30_000,
    max_response_bytes=100_000,
    max_events=2000,
    max_tool_calls=20,
)


def stream_of(*frames: bytes) -> list[Step]:
    return [streamed(b"".join(frames))]


NOISE = random.Random(1).randbytes(5000)
DEEP = "[" * 200 + "]" * 200

SCRIPTS: dict[str, list[Step]] = {
    # Below HTTP.
    "nothing": [],
    "a reset": [RESET],
    "half a close": [HALF_CLOSE, EOF],
    "noise": [NOISE],
    "another protocol": [b"220 mail.example.com ESMTP\r\n", 0.01],
    "two heads": [head("200 OK", SSE) + head("200 OK", SSE) + CHAT],
    "an interim answer first": [b"HTTP/1.1 100 Continue\r\n\r\n", streamed(CHAT)],
    "HTTP/1.0": [b"HTTP/1.0 200 OK\r\n\r\n" + CHAT],
    "HTTP/9": [b"HTTP/9.9 200 OK\r\n\r\n" + CHAT],
    "no status": [b"HTTP/1.1 \r\n\r\n"],
    "a huge status": [b"HTTP/1.1 99999 X\r\n\r\n"],
    "status 99": [b"HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n"],
    "a negative length": [b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + CHAT],
    "two lengths": [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n" + CHAT],
    "length and chunks": [head("200 OK", SSE, "Content-Length: 4", chunked=True) + chunk(CHAT) + chunk(b"")],
    "a huge chunk": [head("200 OK", SSE, chunked=True) + b"ffffffffffffffff\r\n" + CHAT],
    "a negative chunk": [head("200 OK", SSE, chunked=True) + b"-5\r\n" + CHAT],
    "a chunk without its end": [head("200 OK", SSE, chunked=True) + b"5\r\nabcdefgh\r\n"],
    "many trailers": [head("200 OK", SSE, chunked=True) + chunk(CHAT) + b"0\r\n" + b"x: y\r\n" * 500 + b"\r\n"],
    "an unknown encoding": [head("200 OK", SSE, "Content-Encoding: rot13") + CHAT],
    "control characters in headers": [b"HTTP/1.1 200 OK\r\nx-a: \x01\x02\r\n\r\n" + CHAT],
    "other letters in headers": [head("200 OK", SSE).replace(b"\r\n\r\n", b"\r\nx-request-id: \xff\xfe\xe4\r\n\r\n") + HELLO],
    "an odd content type": [answer(CHAT, "Content-Type: \t;;;=,,/")],
    "two content types": [head("200 OK", SSE, SSE, chunked=True) + chunk(CHAT) + chunk(b"")],
    "an endless head": [b"HTTP/1.1 200 OK\r\n", pour(b"x: y\r\n" * 1000, 1 << 24)],
    # Below meaning.
    "an endless line": [head("200 OK", SSE), pour(b"x" * 16384, 1 << 24)],
    "endless data of one event": [head("200 OK", SSE), pour(b"data: x\n" * 2048, 1 << 24)],
    "endless comments": [head("200 OK", SSE), pour(b": x\n" * 4096, 1 << 24)],
    "endless blank lines": [head("200 OK", SSE), pour(b"\n" * 16384, 1 << 24)],
    "endless whole answer": [head("200 OK", JSON) + b'{"a": "', pour(b"x" * 16384, 1 << 24)],
    "noise as a stream": stream_of(NOISE),
    "noise as frames": stream_of(*[sse(repr(NOISE[i : i + 50])) for i in range(0, 500, 50)]),
    "NULs": stream_of(b"\x00" * 1000),
    "a byte order mark alone": stream_of(b"\xef\xbb\xbf"),
    "invalid UTF-8": stream_of(b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n', CHAT),
    "a JSON scalar": stream_of(sse("3"), sse("null"), sse("true"), sse('"x"')),
    "NaN": stream_of(sse('{"choices": NaN}')),
    "deep JSON": stream_of(sse(DEEP)),
    "deep whole answer": [answer(('{"choices": ' + DEEP + "}").encode(), JSON)],
    "a whole answer of noise": [answer(b"{" + NOISE + b"}", JSON)],
    "an error that is null": stream_of(sse({"error": None}), CHAT),
    "an error that is a number": stream_of(sse({"error": 3})),
    "an error that is deep": stream_of(sse({"error": {"error": {"error": {"message": {"message": [1]}}}}})),
    "an error that is a list": [answer(b'[{"error": []}]', JSON)],
    "a refusal of noise": [answer(NOISE, JSON, status="400 Bad")],
    "a refusal of a number": [answer(b"3", JSON, status="500 Bad")],
    "retry for ever": [answer(b"{}", JSON, "retry-after: 9e999", "retry-after-ms: x", status="429 No")],
    "a location of noise": [head("302 Go", "Location: http://[", length=0)],
    "end markers only": stream_of(DONE, DONE, DONE),
    "an end first": stream_of(STOP, CHAT, CLAUDE),
    "ends again and again": stream_of(HELLO, FINISH, FINISH, FINISH, cc({"content": "x"}), FINISH, DONE),
    "ping only": [head("200 OK", SSE, chunked=True) + chunk(an("ping") * 50) + chunk(b"")],
    "odd ids and names": stream_of(sse({"id": {"a": 1}, "model": ["x"], "object": 5, "choices": []}), CHAT),
    "odd usage": stream_of(HELLO, sse({"choices": [], "usage": {"prompt_tokens": "x", "completion_tokens": -5e300}}), FINISH),
    "odd usage, of other types": stream_of(HELLO, sse({"choices": [], "usage": [1, 2]}), cu(10**30, 10**30), FINISH, DONE),
    "lone surrogates": stream_of(sse('{"id":"\\ud800","choices":[{"delta":{"content":"\\ud83d"}}]}'), FINISH, DONE),
    "terminal codes": stream_of(cc({"content": "\x1b[2J\x07\u202e"}), FINISH, DONE),
    # Tools.
    "many calls": stream_of(*[cc(tc(n, f"c{n}", "f", "{}")) for n in range(50)], FINISH, DONE),
    "a call without anything": stream_of(cc({"tool_calls": [{}]}), cc({"tool_calls": [None]}), cc(finish="tool_calls"), DONE),
    "a call with odd parts": stream_of(cc({"tool_calls": [{"index": 0, "function": {"name": 3, "arguments": {"a": 1}}}]}), FINISH, DONE),
    "a call at a huge index": stream_of(cc(tc(10**9, "a", "f", "{}"))),
    "ids that repeat": stream_of(*[cc(tc(n, "same", "f", "{")) for n in range(5)], cc(finish="tool_calls"), DONE),
    # Anthropic's own.
    "blocks that overlap": stream_of(start(), *[blk(n, "text", text="") for n in range(30)], *[end(n) for n in range(40)], STOP),
    "a stop before a start": stream_of(end(0), md("end_turn"), STOP),
    "deltas of no block": stream_of(start(), dl(7, "text_delta", text="x"), dl(8, "input_json_delta", partial_json="{"), STOP),
    "odd deltas": stream_of(start(), dl(0, "text_delta", text=3), STOP),
    "a start in a start": stream_of(start(), start(id="m2"), start(id="m3"), STOP),
    "a block of an unknown kind": stream_of(start(), blk(0, "hologram", x=1), dl(0, "hologram_delta", y=2), end(0), STOP),
    "a message that is none": stream_of(an("message_start", message=3), STOP),
    "an index that is none": stream_of(start(), blk(None, "text", text=""), an("content_block_delta", index="x", delta={}), STOP),
    "a whole answer with odd content": [answer(json.dumps({"type": "message", "content": [1, None, {"type": 5}]}).encode(), JSON)],
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
async def test_a_hostile_server_gets_one_terminal_event_and_no_more(dialect: str, script: list[Step]) -> None:
    """By `async for` and by callbacks; strict mode too. `checked` holds the events to the rules."""
    async with asking([REQUEST, *script], dialect=dialect, limits=LIMITS) as (model, _):
        async with asyncio.timeout(20):
            pulled = await read(model.prompt("hi").stream())
            pushed_ = await pushed(model.prompt("hi").stream())
    assert [event.type for event in pulled.events] == [event.type for event in pushed_.events]
    assert type(pulled.error) is type(pushed_.error)
    for event in pulled.events:
        json.dumps(event.to_dict(), allow_nan=False).encode()
        repr(event).encode()
    if pulled.error is not None:
        assert len(str(pulled.error)) < 2500
        assert pulled.error.attempts == 1
        assert pulled.error.provider in ("openai", "anthropic")
        str(pulled.error).encode()
    async with asking([REQUEST, *script], dialect=dialect, limits=LIMITS, strict=True) as (model, _):
        async with asyncio.timeout(20):
            await read(model.prompt("hi").stream())


async def test_streams_cut_into_noise_end_in_one_way_each() -> None:
    """Bytes changed at random places of good streams: many small accidents."""
    draw = random.Random(7)
    scripts: list[list[Step]] = []
    for n in range(120):
        body = bytearray([CHAT, CLAUDE][n % 2])
        for _ in range(draw.randint(1, 6)):
            at = draw.randrange(len(body))
            body[at : at + draw.randint(0, 3)] = draw.randbytes(draw.randint(0, 3))
        scripts.append([REQUEST, streamed(bytes(body))])
    for offset, dialect in enumerate(DIALECTS):
        async with asking(*scripts[offset::2], dialect=dialect) as (model, _):
            for _ in scripts[offset::2]:
                seen: Any = await read(model.prompt("hi").stream())
                assert seen.error is None or isinstance(seen.error, SemfluxError)
