from __future__ import annotations

import asyncio
import math

import pytest

from semflux.clock import VirtualClock
from semflux.errors import ConfigurationError, ConnectError, ConnectionLostError
from semflux.transport import Recording, ReplayTransport
from tests.transport.asking import TIMEOUTS, ask, failure_of, open_, read_all

URL = "http://model.test/v1/chat"


async def test_an_opening_gets_the_status_the_headers_and_the_pieces() -> None:
    transport = ReplayTransport(Recording(status=201, headers={"x-request-id": "r1"}, body=(b"one", b"two")))
    exchange = await open_(transport, URL)
    assert (exchange.status, exchange.headers) == (201, {"x-request-id": "r1"})
    assert transport.acquired == 1
    assert [await exchange.read() for _ in range(4)] == [b"one", b"two", b"", b""]
    assert transport.acquired == 0


async def test_a_stream_of_sse_is_the_default() -> None:
    exchange = await open_(ReplayTransport(Recording()), URL)
    assert (exchange.status, exchange.headers) == (200, {"content-type": "text/event-stream"})
    assert await exchange.read() == b""


async def test_a_read_gives_no_more_than_was_asked_for_and_never_nothing() -> None:
    exchange = await open_(ReplayTransport(Recording(body=(b"", b"abcde", b"f"))), URL)
    assert [await exchange.read(2) for _ in range(5)] == [b"ab", b"cd", b"e", b"f", b""]
    with pytest.raises(ValueError, match="at least 1"):
        await exchange.read(0)


async def test_openings_get_the_recordings_in_order_and_are_remembered() -> None:
    refused = ConnectError("refused", kind="refused")
    transport = ReplayTransport(refused, Recording(body=(b"ok",)))
    assert await failure_of(open_(transport, URL)) is refused
    assert await read_all(await open_(transport, URL)) == b"ok"
    assert transport.requests == [ask(URL), ask(URL)]
    error = await failure_of(open_(transport, URL))
    assert isinstance(error, ConfigurationError)
    assert "2 recordings: this is opening 3" in str(error)


async def test_the_last_recording_goes_on_if_asked() -> None:
    transport = ReplayTransport(Recording(body=(b"a",)), Recording(body=(b"b",)), repeat=True)
    assert [await read_all(await open_(transport, URL)) for _ in range(4)] == [b"a", b"b", b"b", b"b"]
    with pytest.raises(ConfigurationError):
        await open_(ReplayTransport(repeat=True), URL)


async def test_the_phases_are_told() -> None:
    phases: list[str] = []
    exchange = await ReplayTransport(Recording()).open(ask(URL), timeouts=TIMEOUTS, on_phase=phases.append)
    exchange.close()
    assert phases == ["pool", "connect", "request"]


async def test_an_error_in_the_body_is_raised_after_what_came_before_it() -> None:
    transport = ReplayTransport(Recording(body=(b"a", ConnectionLostError("cut", kind="payload"))))
    exchange = await open_(transport, URL)
    assert await exchange.read() == b"a"
    assert (await failure_of(exchange.read())).kind == "payload"
    assert transport.acquired == 0
    assert (await failure_of(exchange.read())).kind == "closed"


async def test_a_pause_passes_on_the_clock() -> None:
    clock = VirtualClock()
    exchange = await open_(ReplayTransport(Recording(body=(5.0, b"late")), clock=clock), URL)
    reading = asyncio.create_task(exchange.read())
    await asyncio.sleep(0)
    clock.advance(4.9)
    await asyncio.sleep(0)
    assert not reading.done()
    clock.advance(0.1)
    assert await reading == b"late"
    assert await exchange.read() == b""


async def test_a_pause_goes_on_when_its_read_is_cancelled() -> None:
    clock = VirtualClock()
    exchange = await open_(ReplayTransport(Recording(body=(5.0, b"late")), clock=clock), URL)
    for _ in range(2):
        reading = asyncio.create_task(exchange.read())
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert clock.pending == 1
    clock.advance(5)
    assert await exchange.read() == b"late"
    exchange.close()


async def test_without_a_clock_the_loop_counts() -> None:
    exchange = await open_(ReplayTransport(Recording(body=(0.001, b"late"))), URL)
    assert await exchange.read() == b"late"
    exchange.close()


@pytest.mark.parametrize("seconds", [5.0, math.inf])
@pytest.mark.parametrize("kind", ["closed", "client_closed"])
async def test_closing_wakes_a_pending_read(kind: str, seconds: float) -> None:
    clock = VirtualClock()
    transport = ReplayTransport(Recording(body=(seconds, b"late")), clock=clock)
    exchange = await open_(transport, URL)
    reading = asyncio.create_task(failure_of(exchange.read()))
    await asyncio.sleep(0)
    if kind == "closed":
        exchange.close()
        exchange.close()
    await transport.aclose()
    error = await reading
    assert (type(error), error.kind, error.retryable) == (ConnectionLostError, kind, False)
    assert (clock.pending, transport.acquired) == (0, 0)
    assert (await failure_of(exchange.read())).kind == kind


async def test_closing_beats_a_pause_that_was_just_over() -> None:
    clock = VirtualClock()
    exchange = await open_(ReplayTransport(Recording(body=(5.0, b"late")), clock=clock), URL)
    reading = asyncio.create_task(failure_of(exchange.read()))
    await asyncio.sleep(0)
    clock.advance(5)
    exchange.close()
    assert (await reading).kind == "closed"


class TestDrain:
    """`Exchange.drain`, which every exchange has."""

    async def test_it_reads_to_the_end(self) -> None:
        transport = ReplayTransport(Recording(body=(b"a" * 20_000, 0.001, b"b")))
        exchange = await open_(transport, URL)
        assert await exchange.drain() is True
        assert transport.acquired == 0

    async def test_it_gives_up_after_its_bytes(self) -> None:
        exchange = await open_(ReplayTransport(Recording(body=(b"a" * 10, b"b"))), URL)
        assert await exchange.drain(max_bytes=10) is False
        assert (await failure_of(exchange.read())).kind == "closed"

    async def test_it_gives_up_after_its_time(self) -> None:
        exchange = await open_(ReplayTransport(Recording(body=(math.inf,))), URL)
        assert await exchange.drain(seconds=0.01) is False
        assert (await failure_of(exchange.read())).kind == "closed"

    async def test_it_does_not_raise_what_the_connection_says(self) -> None:
        body = (ConnectionLostError("cut"),)
        exchange = await open_(ReplayTransport(Recording(body=body)), URL)
        assert await exchange.drain() is False

    async def test_cancelled_it_closes_too(self) -> None:
        transport = ReplayTransport(Recording(body=(math.inf,)))
        exchange = await open_(transport, URL)
        draining = asyncio.create_task(exchange.drain(seconds=60))
        await asyncio.sleep(0)
        draining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await draining
        assert transport.acquired == 0
