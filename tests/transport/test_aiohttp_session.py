"""One pool for each running loop, which ends with `aclose`, with its loop or with its transport."""

from __future__ import annotations

import asyncio
import gc
import logging
import pickle
import subprocess
import sys
import threading

import pytest

from semflux.errors import ConfigurationError
from semflux.transport import AiohttpTransport, Exchange
from tests.faultserver import EOF, REQUEST, FaultServer, Step, answer, head
from tests.transport.asking import CANARY, failure_of, open_, read_all, until

STREAMING: list[Step] = [REQUEST, head(), b"data: 1\n", EOF]


def test_importing_the_transport_does_not_load_aiohttp() -> None:
    program = "import sys, semflux.transport; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_transport_is_made_without_a_loop_and_used_in_two_of_them() -> None:
    """Never closed: each `asyncio.run` ends what belongs to its loop."""
    transport = AiohttpTransport()

    async def run() -> bytes:
        async with FaultServer([REQUEST, answer(b"hello")]) as server:
            body = await read_all(await open_(transport, server.url))
            assert len(transport._pools) == 1
            return body

    assert [asyncio.run(run()), asyncio.run(run(), debug=True)] == [b"hello", b"hello"]
    assert transport.acquired == 0


def test_a_stream_that_outlives_its_loop_is_closed() -> None:
    transport = AiohttpTransport()
    left: list[Exchange] = []

    async def run() -> None:
        server = await FaultServer(STREAMING).__aenter__()
        exchange = await open_(transport, server.url)
        await exchange.read()
        left.append(exchange)
        assert transport.acquired == 1
        await server.__aexit__()

    asyncio.run(run())
    assert transport.acquired == 0
    left[0].close()
    with pytest.raises(Exception, match="closed on this side") as caught:
        asyncio.run(read_all(left[0]))
    assert caught.value.kind == "client_closed"  # type: ignore[attr-defined]


def test_closing_after_the_loop_is_gone_does_nothing() -> None:
    transport = AiohttpTransport()
    left: list[Exchange] = []

    async def run() -> None:
        async with FaultServer([REQUEST, answer(b"whole")]) as server:
            left.append(await open_(transport, server.url))
            await until(lambda: transport.acquired == 0)
            transport._pools.clear()
            await asyncio.sleep(0.01)

    asyncio.run(run())
    left[0]._closed = None  # type: ignore[attr-defined]  # as if nobody had told it
    left[0].close()


def test_two_loops_at_once_have_a_pool_each() -> None:
    transport = AiohttpTransport()
    bodies: list[bytes] = []
    both = threading.Barrier(2)

    async def run() -> None:
        async with FaultServer([REQUEST, head(), b"x", EOF]) as server:
            exchange = await open_(transport, server.url)
            bodies.append(await exchange.read())
            await asyncio.to_thread(both.wait, 5)
            assert transport.acquired == 2
            await asyncio.to_thread(both.wait, 5)
            await transport.aclose()
            assert (await failure_of(exchange.read())).kind == "client_closed"

    threads = [threading.Thread(target=asyncio.run, args=(run(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bodies == [b"x", b"x"]
    assert transport.acquired == 0


async def test_a_closed_transport_starts_afresh() -> None:
    transport = AiohttpTransport()
    await transport.aclose()
    async with FaultServer([REQUEST, answer(b"1")]) as server:
        assert await read_all(await open_(transport, server.url)) == b"1"
        await transport.aclose()
        await transport.aclose()
        assert await read_all(await open_(transport, server.url)) == b"1"
        assert len(server.seen) == 2
    await transport.aclose()


async def test_a_forgotten_transport_ends_its_pool_but_not_a_stream() -> None:
    transport = AiohttpTransport()
    async with FaultServer(STREAMING) as server:
        exchange = await open_(transport, server.url)
        pool = next(iter(transport._pools.values()))[0]
        del transport
        gc.collect()
        assert await exchange.read() == b"data: 1\n"
        assert not pool.closed
        exchange.close()
        del exchange
        gc.collect()
        await until(lambda: pool.closed and pool._session.closed)


async def test_the_limit_is_a_number_of_connections() -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        AiohttpTransport(limit=0)


def test_a_transport_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="make one in the other process"):
        pickle.dumps(AiohttpTransport())


async def test_the_key_goes_to_the_server_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    """With everything at DEBUG, and the loop's own debugging on."""
    caplog.set_level(logging.DEBUG)
    asyncio.get_running_loop().set_debug(True)
    transport = AiohttpTransport()
    async with FaultServer(
        STREAMING, [REQUEST], [REQUEST, b"SSH-2.0\r\n"], [REQUEST, answer(b"x")]
    ) as server:
        exchange = await open_(transport, server.url)
        await exchange.read()
        exchange.close()
        for _ in range(2):
            await failure_of(open_(transport, server.url))
        await read_all(await open_(transport, server.url))
        assert all(CANARY.encode() in request for request in server.requests)
        for thing in (transport, exchange, *transport._pools.values()):
            assert CANARY not in repr(thing)
    await transport.aclose()
    assert CANARY not in caplog.text
