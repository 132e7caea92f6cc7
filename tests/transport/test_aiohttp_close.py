"""Letting go: close, cancel, the end of the transport. The peer sees it at once and nothing stays."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
import weakref

import pytest

from semflux.errors import ConnectionLostError, TransportError
from semflux.http import Timeouts
from semflux.transport import AiohttpTransport, Exchange
from semflux.transport._aiohttp import _look_at
from tests.faultserver import EOF, HANG, REQUEST, FaultServer, Seen, Step, answer, head
from tests.transport.asking import TIMEOUTS, ask, failure_of, open_, read_all, until
from tests.transport.test_aiohttp_open import Resolver, full_backlog

Transport = AiohttpTransport

STREAMING: list[Step] = [REQUEST, head(), b"data: 1\n", EOF]
"""A server that has begun to answer, and waits for its client to go."""


async def test_the_peer_sees_the_end_within_milliseconds_of_close(transport: Transport) -> None:
    """Read up to now, pending, or never read at all."""
    took: dict[str, list[float]] = {"between reads": [], "read pending": [], "never read": []}
    async with FaultServer(STREAMING) as server:
        for n in range(60):
            how = list(took)[n % 3]
            exchange = await open_(transport, server.url)
            seen = server.seen[n]
            reading = None
            if how != "never read":
                assert await exchange.read() == b"data: 1\n"
            if how == "read pending":
                reading = asyncio.create_task(failure_of(exchange.read()))
                await asyncio.sleep(0)
            began = time.perf_counter()
            exchange.close()
            assert transport.acquired == 0
            await seen.eof.wait()
            assert seen.eof_at is not None
            took[how].append(seen.eof_at - began)
            if reading is not None:
                assert (await reading).kind == "closed"
    assert max(statistics.median(times) for times in took.values()) < 0.01
    assert max(max(times) for times in took.values()) < 0.05


async def test_the_peer_sees_the_end_of_a_cancelled_opening(transport: Transport) -> None:
    took: list[float] = []
    async with FaultServer([REQUEST, EOF]) as server:
        for n in range(20):
            opening = asyncio.create_task(open_(transport, server.url))
            seen = await server.connection(n)
            await until(lambda seen=seen: bool(seen.requests))  # type: ignore[misc]
            began = time.perf_counter()
            opening.cancel()
            await seen.eof.wait()
            assert seen.eof_at is not None
            took.append(seen.eof_at - began)
            with pytest.raises(asyncio.CancelledError):
                await opening
            assert transport.acquired == 0
    assert statistics.median(took) < 0.01


async def test_a_close_beats_bytes_that_just_came(transport: Transport) -> None:
    """The reader was already awake: no read gives bytes after close."""
    async with FaultServer(STREAMING) as server:
        exchange = await open_(transport, server.url)
        assert await exchange.read() == b"data: 1\n"
        reading = asyncio.create_task(failure_of(exchange.read()))
        await asyncio.sleep(0)
        exchange._content.feed_data(b"late")  # type: ignore[attr-defined]
        exchange.close()
        exchange.close()
        error = await reading
        assert (type(error), error.kind, error.retryable) == (ConnectionLostError, "closed", False)
        assert (await failure_of(exchange.read())).kind == "closed"


async def test_a_read_that_is_cancelled_and_closed_at_once_is_cancelled(transport: Transport) -> None:
    """As a dispose does it; nothing is left for the loop to complain about."""
    async with FaultServer(STREAMING) as server:
        exchange = await open_(transport, server.url)
        await exchange.read()
        reading = asyncio.create_task(exchange.read())
        await asyncio.sleep(0)
        exchange.close()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_bytes_that_were_not_read_are_gone_after_close(transport: Transport) -> None:
    async with FaultServer([REQUEST, answer(b"whole")]) as server:
        exchange = await open_(transport, server.url)
        await until(lambda: transport.acquired == 0)
        exchange.close()
        assert (await failure_of(exchange.read())).kind == "closed"


async def test_closing_after_a_pending_read_keeps_nothing_alive(transport: Transport) -> None:
    """aiohttp wakes readers with one exception for the whole process, which keeps the last one's frames."""
    async with FaultServer(STREAMING) as server:
        exchange = await open_(transport, server.url)
        await exchange.read()
        reading = asyncio.create_task(exchange.read())
        await asyncio.sleep(0)
        exchange.close()
        await asyncio.wait([reading])
        assert isinstance(reading.exception(), ConnectionLostError)
        gone = weakref.ref(exchange)
        del exchange, reading
        gc.collect()
        assert gone() is None


async def test_a_peer_that_does_not_read_the_request_does_not_hold_us(transport: Transport) -> None:
    """Megabytes are unsent: an orderly close would wait for them for ever."""

    async def wait_for_the_end(seen: Seen) -> None:
        await asyncio.sleep(0.05)  # the client has given up meanwhile
        await EOF(seen)

    async with FaultServer([wait_for_the_end]) as server:
        opening = asyncio.create_task(transport.open(ask(server.url, bytes(16 << 20)), timeouts=TIMEOUTS))
        seen = await server.connection()
        await asyncio.sleep(0.02)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert transport.acquired == 0
        await asyncio.wait_for(seen.eof.wait(), 1)

    async with FaultServer([head(), b"early", HANG]) as server:
        exchange = await transport.open(ask(server.url, bytes(16 << 20)), timeouts=TIMEOUTS)
        assert await exchange.read() == b"early"
        exchange.close()
        assert transport.acquired == 0


async def test_cancelling_leaves_nothing_at_any_turn_of_the_loop(transport: Transport) -> None:
    """Every await of an opening and of the first read is cancelled once."""
    done = 0
    turns = 0
    async with FaultServer([REQUEST, head(), b"data: 1\n", EOF]) as server:

        async def use() -> bytes:
            exchange = await open_(transport, server.url)
            try:
                return await exchange.read()
            finally:
                exchange.close()

        while done < 3 and turns < 500:
            task = asyncio.create_task(use())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            (result,) = await asyncio.gather(task, return_exceptions=True)
            assert transport.acquired == 0
            done += result == b"data: 1\n"
            turns += 1
        assert done == 3
        assert turns > 10


@pytest.mark.parametrize("where", ["pool", "resolving", "connecting", "handshake", "sending", "waiting"])
async def test_twenty_openings_cancelled_at_once_leave_nothing(where: str) -> None:
    resolver = Resolver(hangs=True) if where == "resolving" else None
    transport = AiohttpTransport(limit=1 if where == "pool" else 100, resolver=resolver)
    script: list[Step] = [HANG] if where in ("handshake", "sending") else [REQUEST, head(), HANG]
    if where == "waiting":
        script = [REQUEST, HANG]
    with full_backlog() as full:
        async with FaultServer(script) as server:
            held: list[Exchange] = [await open_(transport, server.url)] if where == "pool" else []
            url = {
                "connecting": f"http://127.0.0.1:{full}/",
                "handshake": server.url.replace("http:", "https:"),
                "resolving": "http://model.test/",
            }.get(where, server.url)
            body = bytes(8 << 20) if where == "sending" else b"{}"
            tasks = [
                asyncio.create_task(transport.open(ask(url, body), timeouts=TIMEOUTS)) for _ in range(20)
            ]
            await until(lambda: transport.acquired == (1 if where == "pool" else 20))
            await asyncio.sleep(0.02)
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(result) for result in results} == {asyncio.CancelledError}
            assert transport.acquired == len(held)
            for exchange in held:
                exchange.close()
            assert transport.acquired == 0
            await transport.aclose()


async def test_an_exchange_that_is_dropped_lets_go_with_a_warning(transport: Transport) -> None:
    """As when a task is cancelled between the opening and its use: aiohttp alone would keep 20 of 20."""
    async with FaultServer(STREAMING) as server:
        for n in range(20):
            exchange = await open_(transport, server.url)
            assert transport.acquired == 1
            with pytest.warns(ResourceWarning, match="unclosed <AiohttpExchange status=200 open>"):
                del exchange
            await server.seen[n].eof.wait()
            assert transport.acquired == 0


async def test_an_exchange_whose_body_came_in_whole_may_be_dropped(transport: Transport) -> None:
    async with FaultServer([REQUEST, answer(b"all of it"), EOF]) as server:
        exchange = await open_(transport, server.url)
        del exchange
        gc.collect()
        await asyncio.sleep(0)


async def test_l5_closing_the_transport_fails_its_streams(transport: Transport) -> None:
    async with FaultServer(STREAMING) as server:
        exchanges = [await open_(transport, server.url) for _ in range(3)]
        for exchange in exchanges:
            await exchange.read()
        reading = asyncio.create_task(failure_of(exchanges[0].read()))
        await asyncio.sleep(0)
        exchanges[2].close()
        await transport.aclose()
        assert transport.acquired == 0
        error = await reading
        assert (type(error), error.kind, error.retryable) == (ConnectionLostError, "client_closed", False)
        assert (await failure_of(exchanges[1].read())).kind == "client_closed"
        assert (await failure_of(exchanges[2].read())).kind == "closed"
        for seen in server.seen:
            await seen.eof.wait()
        await transport.aclose()


@pytest.mark.parametrize("where", ["pool", "resolving", "connecting", "sending", "waiting"])
async def test_l5_closing_the_transport_fails_its_openings(where: str) -> None:
    resolver = Resolver(hangs=True) if where == "resolving" else None
    transport = AiohttpTransport(limit=1 if where == "pool" else 100, resolver=resolver)
    scripts: dict[str, list[Step]] = {"sending": [HANG], "pool": [REQUEST, head(), HANG]}
    script = scripts.get(where, [REQUEST, HANG])
    with full_backlog() as full:
        async with FaultServer(script) as server:
            held = [await open_(transport, server.url)] if where == "pool" else []
            url = {"connecting": f"http://127.0.0.1:{full}/", "resolving": "http://model.test/"}
            body = bytes(8 << 20) if where == "sending" else b"{}"
            request = ask(url.get(where, server.url), body)
            opening = asyncio.create_task(failure_of(transport.open(request, timeouts=TIMEOUTS)))
            await until(lambda: transport.acquired == 1)
            await asyncio.sleep(0.02)
            await asyncio.wait_for(transport.aclose(), 1)
            error = await opening
            assert (type(error), error.kind) == (ConnectionLostError, "client_closed")
            assert opening.cancelling() == 0
            assert transport.acquired == 0
            for exchange in held:
                exchange.close()


async def test_an_opening_that_is_cancelled_while_the_transport_closes_is_cancelled(
    transport: Transport,
) -> None:
    async with FaultServer([REQUEST, HANG]) as server:
        opening = asyncio.create_task(open_(transport, server.url))
        await until(lambda: bool(server.requests))
        opening.cancel()
        await transport.aclose()
        with pytest.raises(asyncio.CancelledError):
            await opening


async def test_a_failure_that_meets_the_closing_is_the_closing(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FaultServer([REQUEST, answer(b"")]) as server:
        await read_all(await open_(transport, server.url))
        (pool, _) = next(iter(transport._pools.values()))

        def fail(*_: object) -> None:
            pool.closed = True
            raise RuntimeError("Session is closed")

        monkeypatch.setattr("aiohttp.ClientSession._prepare_headers", fail)
        assert (await failure_of(open_(transport, server.url))).kind == "client_closed"
        await transport.aclose()


async def test_a_stalled_peer_is_left_when_a_watcher_says_so(transport: Transport) -> None:
    """How a pump uses all this: the limit passes, the exchange is closed, the read ends at once."""
    from semflux.clock import VirtualClock
    from semflux.transport import Watchdog

    clock = VirtualClock()
    exchanges: list[Exchange] = []
    errors: list[Exception] = []

    def on_expire(error: TransportError) -> None:
        errors.append(error)
        exchanges[0].close()

    async with FaultServer(STREAMING) as server:
        watchdog = Watchdog(clock, Timeouts(idle=300), on_expire)
        exchange = await transport.open(ask(server.url), timeouts=TIMEOUTS, on_phase=watchdog.arm)
        exchanges.append(exchange)
        await exchange.read()
        watchdog.content()
        reading = asyncio.create_task(failure_of(exchange.read()))
        await asyncio.sleep(0)
        clock.advance(301)
        assert (await reading).kind == "closed"
        assert [type(error).__name__ for error in errors] == ["IdleTimeoutError"]
        await server.seen[0].eof.wait()


async def test_a_connection_that_was_lost_before_anyone_looked(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiohttp then has neither a socket nor a future for its end to give."""
    monkeypatch.setattr("aiohttp.client_proto.ResponseHandler.closed", None)
    monkeypatch.setattr("aiohttp.connector.Connection.transport", None)
    async with FaultServer([REQUEST, head(length=9), b"some", EOF], [REQUEST]) as server:
        exchange = await open_(transport, server.url)
        assert await exchange.read() == b"some"
        exchange.close()
        assert (await failure_of(open_(transport, server.url))).kind == "disconnected"


async def test_the_end_of_a_connection_may_be_cancelled() -> None:
    """As when the closing of a session is."""
    lost = asyncio.get_running_loop().create_future()
    lost.cancel()
    _look_at(lost)
