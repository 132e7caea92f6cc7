"""Every transport keeps the contract of transports, and the contract finds those that don't."""

from __future__ import annotations

import inspect
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import semflux.transport as rooms
from semflux.errors import ConnectionLostError
from semflux.http import HttpRequest
from semflux.testing import ContractError, check_transport
from semflux.transport import AiohttpTransport, Exchange, Recording, ReplayTransport, Transport
from tests.faultserver import EOF, REQUEST, RESET, FaultServer, Step, chunk, head

REPLAY_REQUEST = HttpRequest(url="http://127.0.0.1/v1")


@asynccontextmanager
async def replayed(recording: Recording) -> AsyncIterator[tuple[Transport, HttpRequest]]:
    transport = ReplayTransport(recording, repeat=True)
    yield transport, REPLAY_REQUEST
    await transport.aclose()


@asynccontextmanager
async def over_aiohttp(recording: Recording) -> AsyncIterator[tuple[Transport, HttpRequest]]:
    headers = [f"{name}: {value}" for name, value in recording.headers.items()]
    script: list[Step] = [REQUEST, head(f"{recording.status} X", *headers, chunked=True)]
    for item in recording.body:
        if isinstance(item, bytes):
            script.append(chunk(item))
        elif isinstance(item, Exception):
            script.append(RESET)
        else:
            script.append(EOF if math.isinf(item) else item)
    async with FaultServer([*script, chunk(b"")]) as server:
        transport = AiohttpTransport()
        yield transport, HttpRequest(url=server.url, body=b"{}")
        await transport.aclose()


TRANSPORTS = {"AiohttpTransport": over_aiohttp, "ReplayTransport": replayed}


@pytest.mark.parametrize("name", TRANSPORTS)
async def test_every_transport_keeps_the_contract(name: str) -> None:
    await check_transport(TRANSPORTS[name])


def test_every_transport_is_in_the_table() -> None:
    classes = {
        name
        for name, value in vars(rooms).items()
        if inspect.isclass(value) and issubclass(value, Transport) and value is not Transport
    }
    assert classes == set(TRANSPORTS)


# Transports with one fault each, over recordings.


def wrapped(fault: Callable[[Any], None]) -> Any:
    """A transport whose exchanges *fault* changes."""

    class Faulty(ReplayTransport):
        async def open(self, request: HttpRequest, **options: Any) -> Exchange:
            exchange = await super().open(request, **options)
            fault(exchange)
            return exchange

    @asynccontextmanager
    async def make(recording: Recording) -> AsyncIterator[tuple[Transport, HttpRequest]]:
        transport = Faulty(recording, repeat=True)
        yield transport, REPLAY_REQUEST
        await transport.aclose()

    return make


def keeps_open(exchange: Any) -> None:
    exchange.close = lambda: None


def shouts(exchange: Any) -> None:
    exchange.headers = {name.upper(): value for name, value in exchange.headers.items()}


def gulps(exchange: Any) -> None:
    read = exchange.read
    exchange.read = lambda max_bytes=0: read(1 << 20)


def hides_loss(exchange: Any) -> None:
    read = exchange.read

    async def quiet(max_bytes: int = 1 << 20) -> bytes:
        try:
            data: bytes = await read(max_bytes)
        except ConnectionLostError:
            return b""
        return data

    exchange.read = quiet


def wrong_error(exchange: Any) -> None:
    read = exchange.read

    async def other(max_bytes: int = 1 << 20) -> bytes:
        try:
            data: bytes = await read(max_bytes)
        except ConnectionLostError:
            raise OSError("lost") from None
        return data

    exchange.read = other


@pytest.mark.parametrize(
    "fault, rules",
    [
        (keeps_open, {"close_lets_go"}),
        (shouts, {"gives_any_status"}),
        (gulps, {"bounds_a_read"}),
        (hides_loss, {"a_lost_connection_is_told", "close_lets_go", "close_wakes_a_read"}),
        (wrong_error, {"a_lost_connection_is_told", "aclose_ends_what_is_open"}),
    ],
)
async def test_a_broken_rule_is_found_and_named(
    fault: Any, rules: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semflux.testing.transport_contract._PATIENCE", 0.3)
    with pytest.raises(ContractError) as caught:
        await check_transport(wrapped(fault))

    assert rules - set(caught.value.broken) == set()


async def test_a_rule_that_hangs_or_raises_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semflux.testing.transport_contract._PATIENCE", 0.05)

    @asynccontextmanager
    async def make(recording: Recording) -> AsyncIterator[tuple[Transport, HttpRequest]]:
        raise KeyError("no server")
        yield  # pragma: no cover  # makes it a generator

    with pytest.raises(ContractError, match="drains: raised KeyError"):
        await check_transport(make)
    with pytest.raises(ContractError, match="did not end within"):
        await check_transport(wrapped(keeps_open))
