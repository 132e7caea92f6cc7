"""Between the end marker and the end of the body: bytes, silence, and a connection to be used again. Row M7."""

from __future__ import annotations

import asyncio

import pytest

from tests.faultserver import EOF, REQUEST, Step, chunk, head, pour
from tests.model.asking import (
    BODIES,
    CHAT,
    DIALECTS,
    FRAME,
    SSE,
    Watching,
    acquired,
    asking,
    read,
    replayed,
    settle,
    types,
)


async def test_bytes_after_the_end_marker_are_no_events_and_the_connection_goes_on() -> None:
    """M7."""
    late = b"data: late\n\n"
    script: list[Step] = [REQUEST, head("200 OK", SSE, chunked=True) + chunk(CHAT) + chunk(late) + chunk(b"")]
    async with asking([*script, *script]) as (model, server):
        for _ in range(2):
            seen = await read(model.prompt("hi").stream())
            assert types(seen) == [*FRAME, "USAGE", "STEP_END", "RESPONSE_END"]
        assert len(server.seen) == 1


async def test_bytes_that_come_after_the_end_marker_are_counted() -> None:
    """M7. Those of later reads."""
    seen = await read(replayed(CHAT, b"data: late\n\n", b"\n").prompt("hi").stream())
    assert seen.response.repairs.to_dict() == {"repairs": {}, "notes": {"bytes_after_end": 13}}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_connection_that_stays_open_after_the_end_marker_is_let_go(dialect: str) -> None:
    """B011: the end comes all the same, and at once."""
    async with asking([REQUEST, head("200 OK", SSE), BODIES[dialect], EOF], dialect=dialect) as (
        model,
        server,
    ):
        async with asyncio.timeout(5):
            seen = await read(model.prompt("hi").stream())
            await server.seen[0].eof.wait()
    assert seen.error is None
    assert acquired(model) == 0


async def test_an_endless_body_after_the_end_marker_is_let_go() -> None:
    async with asking([REQUEST, head("200 OK", SSE), CHAT, pour(total=64 << 20)]) as (model, server):
        async with asyncio.timeout(5):
            seen = await read(model.prompt("hi").stream())
            await server.seen[0].eof.wait()
    assert seen.error is None
    assert seen.response.repairs.notes.get("bytes_after_end", 0) <= 64 * 1024


async def test_a_stream_may_be_left_while_its_connection_drains() -> None:
    """Between the end of the step and the end of the response."""
    async with asking([REQUEST, head("200 OK", SSE), CHAT, EOF]) as (model, _):
        watching = Watching(model.prompt("hi").stream())
        async with asyncio.timeout(5):
            while "STEP_END" not in watching.types:
                await asyncio.sleep(0)
        watching.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching.task
        assert "RESPONSE_END" not in watching.types
        await settle()
