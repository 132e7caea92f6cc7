"""What can happen to a body: rows B6 to B9 of faults.md, flow control, and the pool."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib

import pytest

from semflux.errors import ConnectionLostError, TransportError
from semflux.transport import AiohttpTransport, Exchange
from semflux.transport._aiohttp_errors import read_error
from tests.faultserver import (
    EOF,
    HALF_CLOSE,
    HANG,
    REQUEST,
    RESET,
    FaultServer,
    Step,
    answer,
    chunk,
    head,
    pour,
)
from tests.transport.asking import failure_of, open_, read_all, until

Transport = AiohttpTransport


async def read_until_failure(exchange: Exchange) -> tuple[bytes, TransportError]:
    """The bytes before the failure, and the failure."""
    got: list[bytes] = []

    async def reading() -> None:
        while piece := await exchange.read(4):
            got.append(piece)

    error = await failure_of(reading())
    assert isinstance(error, TransportError)
    return b"".join(got), error


async def test_a_read_returns_what_is_there_and_no_more_than_was_asked_for(transport: Transport) -> None:
    async with FaultServer([REQUEST, head(length=8), b"abcde", 0.02, b"fgh"]) as server:
        exchange = await open_(transport, server.url)
        assert [await exchange.read(3) for _ in range(5)] == [b"abc", b"de", b"fgh", b"", b""]
        with pytest.raises(ValueError, match="at least 1"):
            await exchange.read(0)


async def test_the_end_is_the_end_however_often_it_is_read(
    transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    async with FaultServer([REQUEST, answer(b"x")]) as server:
        exchange = await open_(transport, server.url)
        assert [await exchange.read() for _ in range(10)] == [b"x"] + [b""] * 9
    assert caplog.text == ""


async def test_a_chunked_body_is_one_body(transport: Transport) -> None:
    body = chunk(b"one ") + chunk(b"two ") + chunk(b"three") + chunk(b"")
    async with FaultServer([REQUEST, head(chunked=True), body]) as server:
        assert await read_all(await open_(transport, server.url)) == b"one two three"


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
async def test_an_answer_without_a_body_ends_at_once(transport: Transport, status: str) -> None:
    async with FaultServer([REQUEST, head(status), EOF]) as server:
        exchange = await open_(transport, server.url)
        assert transport.acquired == 0
        assert await exchange.read() == b""
        exchange.close()


async def test_a_whole_body_gives_its_connection_back(transport: Transport) -> None:
    async with FaultServer([REQUEST, answer(b"1"), REQUEST, answer(b"2"), REQUEST, answer(b"3")]) as server:
        for body in (b"1", b"2", b"3"):
            exchange = await open_(transport, server.url)
            assert await read_all(exchange) == body
            assert transport.acquired == 0
            exchange.close()  # too late to matter
        assert len(server.seen) == 1


async def test_draining_gives_the_connection_back(transport: Transport) -> None:
    """The meaning was complete, only the end of the chunks was missing."""
    script: list[Step] = [REQUEST, head(chunked=True) + chunk(b"data: [DONE]"), 0.01, chunk(b"")]
    async with FaultServer([*script, *script]) as server:
        for _ in range(2):
            exchange = await open_(transport, server.url)
            await exchange.read()
            assert await exchange.drain(seconds=5) is True
        assert len(server.seen) == 1


async def test_many_answers_over_one_connection_leave_nothing_on_it(transport: Transport) -> None:
    async with FaultServer([REQUEST, answer(b"x")] * 50) as server:
        for _ in range(50):
            exchange = await open_(transport, server.url)
            await exchange.read()
            lost = exchange._response._lost  # type: ignore[attr-defined]
            await exchange.read()
            assert len(lost._callbacks) == 1
        assert len(server.seen) == 1


CUTS: dict[str, tuple[list[Step], bytes, str]] = {
    "length, clean": ([head(length=10), b"12345"], b"12345", "payload"),
    "length, half closed": ([head(length=10), b"12345", HALF_CLOSE, EOF], b"12345", "payload"),
    "length, reset": ([head(length=10), b"12345", 0.02, RESET], b"12345", "reset"),
    "chunk, clean": ([head(chunked=True), b"a\r\n12345"], b"12345", "payload"),
    "between chunks": ([head(chunked=True), chunk(b"12345")], b"12345", "payload"),
    "chunk, reset": ([head(chunked=True), chunk(b"12345"), 0.02, RESET], b"12345", "reset"),
    "to the end, reset": ([head(), b"12345", 0.02, RESET], b"12345", "reset"),
    "bad chunk size": ([head(chunked=True), chunk(b"12345"), 0.02, b"zz\r\n", EOF], b"12345", "disconnected"),
    "bad chunk end": (
        [head(chunked=True), chunk(b"12345"), 0.02, b"1\r\nabc", EOF],
        b"12345a",
        "disconnected",
    ),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("late", [False, True])
async def test_b8_a_cut_body_gives_its_bytes_and_then_the_error(
    transport: Transport, cut: str, late: bool
) -> None:
    """Whether they are read as they come, or only after the connection is gone: aiohttp would drop them."""
    script, body, kind = CUTS[cut]
    async with FaultServer([REQUEST, *script]) as server:
        exchange = await open_(transport, server.url)
        if late:
            await asyncio.sleep(0.06)
        got, error = await read_until_failure(exchange)
        assert got == body
        assert (type(error), error.phase, error.retryable) == (ConnectionLostError, "stream", True)
        assert error.kind == kind
        assert transport.acquired == 0
        assert (await failure_of(exchange.read())).kind == "closed"


async def test_b9_a_body_that_ends_with_its_connection_looks_whole(transport: Transport) -> None:
    """Only the stream's own finish signal can tell."""
    async with FaultServer([REQUEST, head("200 OK", "Connection: close"), b"data: 1\n"]) as server:
        assert await read_all(await open_(transport, server.url)) == b"data: 1\n"


async def test_a_reset_after_the_end_does_not_matter(transport: Transport) -> None:
    async with FaultServer([REQUEST, answer(b"12345"), 0.01, RESET]) as server:
        exchange = await open_(transport, server.url)
        await asyncio.sleep(0.05)
        assert await read_all(exchange) == b"12345"


GZIP = "Content-Encoding: gzip"


async def test_a_compressed_body_that_nobody_asked_for_is_unpacked(transport: Transport) -> None:
    async with FaultServer([REQUEST, answer(gzip.compress(b"hello" * 9), GZIP)]) as server:
        assert await read_all(await open_(transport, server.url)) == b"hello" * 9


async def test_b6_a_cut_compressed_body_looks_whole_as_well(transport: Transport) -> None:
    """The reason to ask for no compression; the finish signal is missing all the same."""
    half = gzip.compress(b"0123456789" * 50)[:18]
    async with FaultServer([REQUEST, answer(half, GZIP)]) as server:
        got = await read_all(await open_(transport, server.url))
        assert b"0123456789".startswith(got[:10])
        assert b"accept-encoding: identity" in server.requests[0].lower()


PACKED = gzip.compress(b"hello world" * 100, mtime=0)


@pytest.mark.parametrize(
    "junk", [b"this is not gzip", PACKED[:12] + b"\xff" * 4 + PACKED[16:]], ids=["junk", "damaged"]
)
async def test_b7_what_cannot_be_unpacked(transport: Transport, junk: bytes) -> None:
    async with FaultServer([REQUEST, answer(junk, GZIP), EOF]) as server:
        _, error = await read_until_failure(await open_(transport, server.url))
        assert (type(error), error.kind, error.retryable) == (ConnectionLostError, "decode", False)
        assert transport.acquired == 0


async def test_b7_a_bomb_comes_in_small_pieces(transport: Transport) -> None:
    """64 MiB from 65 KB: whoever counts the bytes can stop at any of them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()
    async with FaultServer([REQUEST, answer(bomb, GZIP)]) as server:
        exchange = await open_(transport, server.url)
        tracemalloc.start()
        size = 0
        while piece := await exchange.read():
            assert len(piece) <= 16 * 1024
            size += len(piece)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert size == 64 << 20
    assert peak < 2 << 20


async def test_a_stream_that_is_not_read_stops_its_server(transport: Transport) -> None:
    async with FaultServer([REQUEST, head(), pour()]) as server:
        exchange = await open_(transport, server.url)
        seen = server.seen[0]
        await until(lambda: seen.accepted > 0)
        before = -1
        while before != seen.accepted:
            before = seen.accepted
            await asyncio.sleep(0.1)
        assert seen.accepted < 8 << 20
        # And it goes on when reading does.
        for _ in range(1024):
            await exchange.read()
        await until(lambda: seen.accepted > before)
        exchange.close()
        await seen.eof.wait()


async def test_a_cancelled_read_loses_nothing(transport: Transport) -> None:
    async with FaultServer([REQUEST, head(length=10), b"12345", 0.03, b"67890"]) as server:
        exchange = await open_(transport, server.url)
        got = await exchange.read()
        for _ in range(5):
            reading = asyncio.create_task(exchange.read())
            await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
        assert got + await read_all(exchange) == b"1234567890"


async def test_an_answer_may_come_before_the_request_is_sent(transport: Transport) -> None:
    """As a 413 does; the connection is not used again, and nothing of the body stays on its way."""
    from semflux.http import Timeouts
    from tests.transport.asking import ask

    async with FaultServer([answer(b"too large", status="413 Too Large"), HANG]) as server:
        exchange = await transport.open(ask(server.url, bytes(16 << 20)), timeouts=Timeouts())
        assert exchange.status == 413
        assert await read_all(exchange) == b"too large"
        await until(lambda: transport.acquired == 0)


def test_what_nobody_foresaw_is_a_transport_error_without_its_text() -> None:
    error = read_error(LookupError("secret"), broken=False)
    assert (type(error), "secret" in str(error), error.phase) == (TransportError, False, "stream")
