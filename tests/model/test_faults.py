"""What goes wrong in the middle of a stream. Rows B6 to B9 and M of faults.md, over a raw socket."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from semflux import Limits
from semflux.clock import VirtualClock
from semflux.errors import (
    BadFrameError,
    ConnectionLostError,
    FrameTooLargeError,
    JsonTooDeepError,
    NotAStreamError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    RepairError,
    ResponseTooLargeError,
    SemfluxError,
    ServerError,
    TruncatedStreamError,
)
from tests.faultserver import EOF, HALF_CLOSE, REQUEST, RESET, Step, chunk, head
from tests.frames import DONE, STOP, an, cc, cu, dl, md, sse, start
from tests.model.asking import (
    BODIES,
    CANARY,
    CHAT,
    CLAUDE,
    DIALECTS,
    FINISH,
    FRAME,
    HELLO,
    SSE,
    Watching,
    asking,
    one,
    read,
    replayed,
    streamed,
    types,
)

FULL = [*FRAME, "STEP_END", "RESPONSE_END"]
FAILED = [*FRAME, "STEP_END", "ERROR"]
PREFIX = (
    start()
    + an("content_block_start", index=0, content_block={"type": "text", "text": ""})
    + dl(0, "text_delta", text="Hel")
    + dl(0, "text_delta", text="lo")
)
"""The text "Hello", by Anthropic, without an end."""
BEGUN = {"openai-chat": HELLO, "anthropic": PREFIX}


def without_usage(names: list[str]) -> list[str]:
    return [name for name in names if name != "USAGE"]


# Errors told in the stream.


@pytest.mark.parametrize(
    "dialect, frame, cls, code",
    [
        (
            "openai-chat",
            sse({"error": {"message": "m", "code": "rate_limit_exceeded"}}),
            RateLimitError,
            "rate_limit_exceeded",
        ),
        (
            "openai-chat",
            sse({"error": {"message": "m", "type": "server_error"}}),
            ServerError,
            "server_error",
        ),
        ("openai-chat", sse({"error": {"message": "m", "code": 529}}), OverloadedError, "529"),
        ("openai-chat", sse({"error": "odd"}, "error"), ProviderError, None),
        (
            "anthropic",
            an("error", error={"type": "overloaded_error", "message": "m"}),
            OverloadedError,
            "overloaded_error",
        ),
        (
            "anthropic",
            an("error", error={"type": "novel_error", "message": "m"}),
            ProviderError,
            "novel_error",
        ),
    ],
)
@pytest.mark.parametrize("first", [True, False])
async def test_an_error_frame_is_the_error_of_its_code(
    dialect: str, frame: bytes, cls: type[ProviderError], code: str | None, first: bool
) -> None:
    """M1, M2. With what had come."""
    body = (b"" if first else BEGUN[dialect]) + frame
    async with asking([REQUEST, head("200 OK", SSE, "x-request-id: r1"), body, EOF], dialect=dialect) as (
        model,
        _,
    ):
        seen = await read(model.prompt("hi").stream())
    assert type(seen.error) is cls
    assert (seen.error.code, seen.error.phase, seen.error.request_id, seen.error.attempts) == (
        code,
        "stream",
        "r1",
        1,
    )
    partial = seen.error.partial
    assert partial is not None
    assert partial.partial
    assert partial.steps[0].text == ("" if first else "Hello")
    if not first:
        assert without_usage(types(seen)) == FAILED
    assert seen.events[-1].response == partial


async def test_usage_that_came_before_a_failure_counts() -> None:
    seen = await one(streamed(cu(3, 2) + HELLO + sse({"error": {"message": "m", "code": "server_error"}})))
    assert seen.error is not None
    assert seen.events[-1].usage is not None
    assert seen.events[-1].usage.input_tokens == 3


async def test_an_error_after_the_finish_signal_still_fails() -> None:
    seen = await one(streamed(HELLO + FINISH + sse({"error": {"message": "m", "code": "server_error"}})))
    assert type(seen.error) is ServerError


# Cut streams.


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_a_cut_at_any_offset_gives_a_prefix_and_one_error(dialect: str, framing: str) -> None:
    """M3, B8, B9. Complete only if the finish signal had come."""
    body = BODIES[dialect]
    whole = (await one(streamed(body), dialect=dialect)).events
    offsets = sorted(
        {*range(0, len(body), 37), body.rindex(b"stop"), body.rindex(b"stop") + 9, len(body) - 1}
    )
    scripts: list[list[Step]] = []
    for k in offsets:
        sent = {
            "length": head("200 OK", SSE, length=len(body)) + body[:k],
            "chunked": head("200 OK", SSE, chunked=True) + (chunk(body[:k]) if k else b""),
            "close": head("200 OK", SSE) + body[:k],
        }[framing]
        scripts.append([REQUEST, sent])
    async with asking(*scripts, dialect=dialect) as (model, _):
        for k in offsets:
            seen = await read(model.prompt("hi").stream())
            if seen.error is None:
                assert k > body.rindex(b"stop")
                assert seen.response.text == "Hello"
                continue
            assert isinstance(seen.error, (TruncatedStreamError, ConnectionLostError)) or k == 0
            assert (seen.error.attempts, seen.error.provider) == (
                1,
                "openai" if dialect == "openai-chat" else dialect,
            )
            got = [event for event in seen.events[:-1] if not event.attributes.get("partial")]
            while got and got[-1].phase == "END":
                got.pop()  # made when it failed
            assert got == whole[: len(got)]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_reset_in_the_middle_is_a_lost_connection(dialect: str) -> None:
    seen = await one(head("200 OK", SSE), BEGUN[dialect], 0.02, RESET, dialect=dialect)
    assert type(seen.error) is ConnectionLostError
    assert (seen.error.kind, seen.error.phase) == ("reset", "stream")
    assert without_usage(types(seen)) == FAILED
    assert seen.error.partial is not None
    assert seen.error.partial.steps[0].text == "Hello"


@pytest.mark.parametrize(
    "script", [[head("200 OK", SSE, length=9000), HELLO], [head("200 OK", SSE), HELLO, HALF_CLOSE, EOF]]
)
async def test_a_body_that_ends_early_is_no_success(script: list[Step]) -> None:
    seen = await one(*script)
    assert isinstance(seen.error, (TruncatedStreamError, ConnectionLostError))
    assert types(seen) == FAILED


async def test_a_bad_chunk_size_is_a_lost_connection() -> None:
    """B8."""
    seen = await one(head("200 OK", SSE, chunked=True) + chunk(HELLO), 0.02, b"zz\r\n", EOF)
    assert type(seen.error) is ConnectionLostError
    assert types(seen) == FAILED


@pytest.mark.parametrize("how", [[0.02, RESET], [], [0.02, b"zz\r\n", EOF]])
async def test_after_the_finish_signal_any_end_is_an_end(how: list[Step]) -> None:
    """M8: no [DONE], and the connection closed well or badly: counted."""
    seen = await one(head("200 OK", SSE, chunked=True) + chunk(HELLO + FINISH), *how)
    assert seen.error is None
    assert types(seen) == FULL
    assert dict(seen.response.repairs.repairs) == {"missing_done": 1}
    assert len(seen.response.repairs.notes) == 1


async def test_a_missing_end_marker_is_counted() -> None:
    """M8."""
    seen = await one(streamed(HELLO + FINISH))
    assert seen.response.repairs.to_dict() == {"repairs": {"missing_done": 1}, "notes": {}}


async def test_a_missing_end_marker_fails_in_strict_mode() -> None:
    seen = await one(streamed(HELLO + FINISH), strict=True)
    assert type(seen.error) is RepairError
    assert (await one(streamed(CHAT), strict=True)).error is None


async def test_the_end_marker_alone_is_a_finish_signal() -> None:
    seen = await one(streamed(HELLO + DONE))
    assert (seen.response.finish_reason, seen.response.provider_finish_reason) == ("stop", None)


async def test_a_bad_frame_after_the_finish_signal_is_counted() -> None:
    seen = await one(streamed(HELLO + FINISH + b"data: {nonsense\n\n" + DONE))
    assert seen.error is None
    assert dict(seen.response.repairs.notes) == {"bad_frame_after_finish": 1}


# Bodies that are not what they say.


async def test_a_compressed_body_comes_unpacked_though_nobody_asked() -> None:
    packed = gzip.compress(CHAT)
    seen = await one(head("200 OK", SSE, "Content-Encoding: gzip", length=len(packed)), packed)
    assert seen.response.text == "Hello"


@pytest.mark.parametrize("framing", ["length", "close"])
async def test_half_of_a_compressed_body_is_no_success(framing: str) -> None:
    """B6: aiohttp ends this without an error; only the missing finish signal tells."""
    packed = gzip.compress(CHAT)
    half = packed[: len(packed) // 2]
    length = len(half) if framing == "length" else None
    seen = await one(head("200 OK", SSE, "Content-Encoding: gzip", length=length), half)
    assert isinstance(seen.error, (TruncatedStreamError, SemfluxError))
    assert types(seen)[-1] == "ERROR"


async def test_garbage_that_calls_itself_gzip_is_a_lost_connection() -> None:
    """B7."""
    seen = await one(head("200 OK", SSE, "Content-Encoding: gzip", length=16), b"this is not gzip", EOF)
    assert type(seen.error) is ConnectionLostError
    assert seen.error.kind == "decode"


async def test_a_bomb_is_stopped_at_the_bound() -> None:
    """B7."""
    packed = gzip.compress(b": " + b"x" * (64 << 20))
    seen = await one(
        head("200 OK", SSE, "Content-Encoding: gzip", length=len(packed)),
        packed,
        limits=Limits(max_response_bytes=1 << 20),
    )
    assert isinstance(seen.error, (ResponseTooLargeError, FrameTooLargeError))


@pytest.mark.parametrize(
    "body, cls",
    [
        (b"data: {nonsense\n\n", BadFrameError),
        (b"data: NaN\n\n", BadFrameError),
        (b'data: {"x": 1e999}\n\n', BadFrameError),
        (b"data: " + b"9" * 5000 + b"\n\n", BadFrameError),
        (b"data: " + b"[" * 100_000 + b"\n\n", JsonTooDeepError),
        (b"data: " + b"x" * 5000, FrameTooLargeError),
        (sse({"choices": 3}), BadFrameError),
        (sse({"choices": [None]}), BadFrameError),
        (sse([1]), BadFrameError),
        (cc({"content": 3}), BadFrameError),
        (cc({"tool_calls": [{"index": -1, "id": "a"}]}), BadFrameError),
        (cc({"tool_calls": [{"index": 10**9, "id": "a"}]}), BadFrameError),
    ],
)
async def test_a_frame_that_cannot_be_used_fails_the_stream_after_what_was_good(
    body: bytes, cls: type[SemfluxError]
) -> None:
    """M9, M13 to M15, M20, M22. Whatever stands in the same read."""
    limits = Limits(max_line_bytes=4096) if cls is FrameTooLargeError else None
    seen = await one(streamed(HELLO + body + CHAT), limits=limits)
    assert type(seen.error) is cls
    assert types(seen) == FAILED
    assert seen.error.partial is not None
    assert seen.error.partial.steps[0].text == "Hello"


async def test_endless_events_stop_at_the_bound() -> None:
    """M12."""
    seen = await one(streamed(HELLO + cc({"content": "x"}) * 200), limits=Limits(max_events=100))
    assert type(seen.error) is ResponseTooLargeError


async def test_a_dialect_that_is_not_the_servers_is_told_apart() -> None:
    seen = await one(answered(CLAUDE), dialect="openai-chat")
    assert isinstance(seen.error, (SemfluxError, NotAStreamError))
    seen = await one(answered(CHAT), dialect="anthropic")
    assert isinstance(seen.error, SemfluxError)


def answered(body: bytes) -> Step:
    return streamed(body)


async def test_an_answer_that_only_anthropics_message_stop_completes() -> None:
    body = PREFIX + an("content_block_stop", index=0) + md("end_turn")
    assert type((await one(streamed(body), dialect="anthropic")).error) is TruncatedStreamError
    assert (await one(streamed(body + STOP), dialect="anthropic")).error is None


# In the hands of the transport.


async def test_a_model_that_is_closed_while_it_streams_fails_its_streams() -> None:
    """L5."""
    async with asking([REQUEST, head("200 OK", SSE), HELLO, EOF]) as (model, _):
        watching = Watching(model.prompt("hi").stream())
        while len(watching.events) < 5:
            await asyncio.sleep(0.001)
        await model.aclose()
        seen = await watching.done()
    assert type(seen.error) is ConnectionLostError
    assert seen.error.kind == "client_closed"
    assert types(seen) == FAILED


async def test_an_error_of_the_transport_is_the_streams() -> None:
    model = replayed(HELLO, ConnectionLostError("gone", kind="reset"), clock=VirtualClock())
    seen = await read(model.prompt("hi").stream())
    assert type(seen.error) is ConnectionLostError
    assert (seen.error.provider, seen.error.attempts) == ("openai", 1)
    assert CANARY not in str(seen.error)
