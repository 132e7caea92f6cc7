"""`check_transport`: what holds for everything that opens exchanges."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeAlias

from semflux.errors import ConnectionLostError
from semflux.http import HttpRequest, Timeouts
from semflux.testing.report import Findings
from semflux.transport import Exchange, Recording, Transport

TransportMaker: TypeAlias = Callable[[Recording], AbstractAsyncContextManager[tuple[Transport, HttpRequest]]]
"""Sets up a transport, and what is at its other end: each request, the one given or one like it, is answered by
the recording. Its pauses are seconds, `math.inf` lasts until the peer goes, and an error is a connection that is lost.
What was set up is taken down when the block is left."""

_TIMEOUTS = Timeouts()
_FOREVER = float("inf")
_PATIENCE = 5.0  # seconds that any one rule may take


async def check_transport(make: TransportMaker) -> None:
    """Check that a transport keeps the contract of `Transport` and `Exchange`.

    Raises:
        ContractError: (an AssertionError) with all rules that are broken, by name.
    """
    findings = Findings("this transport")
    for rule in RULES:
        name = rule.__name__
        try:
            async with asyncio.timeout(_PATIENCE):
                await rule(make, lambda holds, what, name=name: findings.check(name, holds, what))  # type: ignore[misc]  # it sees no type for a default
        except TimeoutError as error:
            findings.add(name, f"did not end within {_PATIENCE:g} s", error)
        except Exception as error:  # noqa: BLE001  # whatever a transport raises is what is wrong with it
            findings.add(name, f"raised {type(error).__name__}: {error}", error)
    findings.close()


_Check: TypeAlias = Callable[[object, str], None]


async def _open(transport: Transport, request: HttpRequest, **options: Any) -> Exchange:
    return await transport.open(request, timeouts=_TIMEOUTS, **options)


async def _rest(exchange: Exchange) -> bytes:
    pieces: list[bytes] = []
    while piece := await exchange.read():
        pieces.append(piece)
    return b"".join(pieces)


async def _loss(awaitable: Awaitable[object]) -> str:
    """The kind of the ConnectionLostError that it ends in; else what it came to."""
    try:
        return f"no error, but {await awaitable!r}"
    except ConnectionLostError as error:
        return error.kind
    except Exception as error:  # noqa: BLE001  # told to the reader of the report
        return type(error).__name__


async def gives_any_status(make: TransportMaker, check: _Check) -> None:
    """A status of 500 or a redirect is an answer like any other; names of headers are in lower case."""
    for status in (200, 201, 302, 404, 500):
        headers = {"content-type": "text/plain", "x-kind": "a", "location": "/elsewhere"}
        async with make(Recording(status=status, headers=headers, body=(b"body",))) as (transport, request):
            exchange = await _open(transport, request)
            check(exchange.status == status, f"the status {status} came as {exchange.status}")
            check(exchange.headers.get("x-kind") == "a", f"headers came as {sorted(exchange.headers)}")
            check(all(name == name.lower() for name in exchange.headers), "a name is not in lower case")
            body = await _rest(exchange)
            check(body == b"body", f"the body of a {status} came as {body!r}")


async def gives_the_whole_body(make: TransportMaker, check: _Check) -> None:
    """All bytes, in order, then `b""` again and again; then nothing is in use."""
    body = (b"one", 0.0, b"two" * 20_000, b"three")
    async with make(Recording(body=body)) as (transport, request):
        exchange = await _open(transport, request)
        read = await _rest(exchange)
        check(read == b"one" + b"two" * 20_000 + b"three", f"{len(read)} bytes came, or others")
        check(await exchange.read() == b"" == await exchange.read(), "a read after the end is not empty")
        check(transport.acquired == 0, f"acquired is {transport.acquired} after the end was read")


async def bounds_a_read(make: TransportMaker, check: _Check) -> None:
    """A read gives at least one byte and at most as many as it may."""
    async with make(Recording(body=(b"abcdefgh",))) as (transport, request):
        exchange = await _open(transport, request)
        sizes: list[int] = []
        while piece := await exchange.read(3):
            sizes.append(len(piece))
        check(sum(sizes) == 8 and max(sizes) <= 3, f"reads of at most 3 bytes gave {sizes}")


async def gives_bytes_as_they_come(make: TransportMaker, check: _Check) -> None:
    """A read returns with what is there, and does not wait for the rest."""
    async with make(Recording(body=(b"now", _FOREVER))) as (transport, request):
        exchange = await _open(transport, request)
        check(await exchange.read() == b"now", "the first read gave other bytes")
        exchange.close()


async def close_lets_go(make: TransportMaker, check: _Check) -> None:
    """At once, any number of times, read or not; a later read raises."""
    for reads in (0, 1):
        async with make(Recording(body=(b"one", _FOREVER))) as (transport, request):
            exchange = await _open(transport, request)
            for _ in range(reads):
                await exchange.read()
            check(transport.acquired == 1, f"acquired is {transport.acquired} while one is open")
            exchange.close()
            check(transport.acquired == 0, f"acquired is {transport.acquired} after close")
            exchange.close()
            kind = await _loss(exchange.read())
            check(kind == "closed", f"a read after close: {kind}")


async def close_wakes_a_read(make: TransportMaker, check: _Check) -> None:
    """A read that waits raises."""
    async with make(Recording(body=(b"one", _FOREVER))) as (transport, request):
        exchange = await _open(transport, request)
        await exchange.read()
        reading = asyncio.ensure_future(_loss(exchange.read()))
        await asyncio.sleep(0.01)
        exchange.close()
        kind = await reading
        check(kind == "closed", f"a read during close: {kind}")


async def a_cancelled_read_loses_nothing(make: TransportMaker, check: _Check) -> None:
    """The exchange stays open, and the next read gives the bytes."""
    async with make(Recording(body=(b"one", 0.05, b"two"))) as (transport, request):
        exchange = await _open(transport, request)
        await exchange.read()
        reading = asyncio.ensure_future(exchange.read())
        await asyncio.sleep(0.01)
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
        rest = await _rest(exchange)
        check(rest == b"two", f"after a cancelled read there came {rest!r}")


async def a_cancelled_opening_leaves_nothing(make: TransportMaker, check: _Check) -> None:
    """Neither a connection nor an exchange."""
    async with make(Recording(body=(b"one",))) as (transport, request):
        for turns in range(4):
            opening = asyncio.ensure_future(_open(transport, request))
            for _ in range(turns):
                await asyncio.sleep(0)
            opening.cancel()
            with suppress(asyncio.CancelledError):
                (await opening).close()
            check(transport.acquired == 0, f"acquired is {transport.acquired} after a cancelled opening")


async def a_lost_connection_is_told(make: TransportMaker, check: _Check) -> None:
    """By ConnectionLostError, after the bytes that came; the exchange is closed then."""
    lost = ConnectionLostError("reset", kind="reset")
    async with make(Recording(body=(b"one", 0.01, lost))) as (transport, request):
        exchange = await _open(transport, request)
        check(await exchange.read() == b"one", "the bytes before the loss did not come")
        kind = await _loss(_rest(exchange))
        check(kind in {"reset", "disconnected", "payload"}, f"a lost connection: {kind}")
        check(transport.acquired == 0, f"acquired is {transport.acquired} after the loss")


async def aclose_ends_what_is_open(make: TransportMaker, check: _Check) -> None:
    """Exchanges fail, a read that waits too; it may be called again; a later opening starts afresh."""
    async with make(Recording(body=(b"one", _FOREVER))) as (transport, request):
        exchange = await _open(transport, request)
        await exchange.read()
        reading = asyncio.ensure_future(_loss(exchange.read()))
        await asyncio.sleep(0.01)
        await transport.aclose()
        kind = await reading
        check(kind == "client_closed", f"a read during aclose: {kind}")
        await transport.aclose()
        check(transport.acquired == 0, f"acquired is {transport.acquired} after aclose")
        again = await _open(transport, request)
        check(await again.read() == b"one", "an opening after aclose gave other bytes")
        again.close()


async def tells_its_phases(make: TransportMaker, check: _Check) -> None:
    """Each as it begins: pool first, then connect, unless a connection is used again, then request."""
    async with make(Recording(body=(b"one",))) as (transport, request):
        phases: list[str] = []
        exchange = await _open(transport, request, on_phase=phases.append)
        exchange.close()
        check(phases in (["pool", "connect", "request"], ["pool", "request"]), f"the phases were {phases}")


async def drains(make: TransportMaker, check: _Check) -> None:
    """`drain` reads on to an end that is near, and gives up on one that is not; nothing is in use after it."""
    for body, expected in (((b"one",), True), ((b"one", _FOREVER), False), ((b"x" * 4096,) * 100, False)):
        async with make(Recording(body=body)) as (transport, request):
            exchange = await _open(transport, request)
            check(await exchange.drain() is expected, f"drain did not give {expected}")
            check(transport.acquired == 0, f"acquired is {transport.acquired} after drain")


async def keeps_exchanges_apart(make: TransportMaker, check: _Check) -> None:
    """Two at a time have each their own bytes."""
    async with make(Recording(body=(b"one", 0.01, b"two"))) as (transport, request):
        first, second = await asyncio.gather(_open(transport, request), _open(transport, request))
        check(transport.acquired == 2, f"acquired is {transport.acquired} while two are open")
        bodies = await asyncio.gather(_rest(first), _rest(second))
        check(set(bodies) == {b"onetwo"}, f"two exchanges gave {bodies}")


RULES: tuple[Callable[[TransportMaker, _Check], Awaitable[None]], ...] = (
    gives_any_status,
    gives_the_whole_body,
    bounds_a_read,
    gives_bytes_as_they_come,
    close_lets_go,
    close_wakes_a_read,
    a_cancelled_read_loses_nothing,
    a_cancelled_opening_leaves_nothing,
    a_lost_connection_is_told,
    aclose_ends_what_is_open,
    tells_its_phases,
    drains,
    keeps_exchanges_apart,
)
"""All rules, in the order of the report."""

__all__ = (
    "RULES",
    "TransportMaker",
    "a_cancelled_opening_leaves_nothing",
    "a_cancelled_read_loses_nothing",
    "a_lost_connection_is_told",
    "aclose_ends_what_is_open",
    "bounds_a_read",
    "check_transport",
    "close_lets_go",
    "close_wakes_a_read",
    "drains",
    "gives_any_status",
    "gives_bytes_as_they_come",
    "gives_the_whole_body",
    "keeps_exchanges_apart",
    "tells_its_phases",
)
