"""What these tests share: a request with a canary for a key, and ways to look at what came of it."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable

import pytest

from semflux.errors import SemfluxError
from semflux.http import HttpRequest, Timeouts
from semflux.secret import Secret
from semflux.transport import Exchange, Transport

CANARY = "sk-canary-0123456789"
"""Must be seen by servers and nowhere else."""

TIMEOUTS = Timeouts()


def ask(url: str, body: bytes = b'{"stream": true}', **headers: str) -> HttpRequest:
    """A POST with a key in a header of each usual name, and in the query."""
    return HttpRequest(
        url=f"{url}?key={CANARY}",
        headers=(
            ("Authorization", Secret(f"Bearer {CANARY}")),
            ("x-api-key", Secret(CANARY)),
            ("Content-Type", "application/json"),
            *headers.items(),
        ),
        body=body,
    )


async def open_(transport: Transport, url: str, timeouts: Timeouts = TIMEOUTS) -> Exchange:
    return await transport.open(ask(url), timeouts=timeouts)


async def read_all(exchange: Exchange) -> bytes:
    pieces: list[bytes] = []
    while piece := await exchange.read():
        pieces.append(piece)
    return b"".join(pieces)


async def failure_of(awaitable: Awaitable[object]) -> SemfluxError:
    """The error that *awaitable* ends in, after a look at all that it shows."""
    with pytest.raises(SemfluxError) as caught:
        await awaitable
    error = caught.value
    shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    for text in (str(error), repr(error), repr(error.args), repr(vars(error)), repr(error.describe()), shown):
        assert CANARY not in text
    assert error.__cause__ is None
    assert error.__context__ is None
    return error


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait for *condition*, which another task or the other side of a socket brings about."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.001)


__all__ = ("CANARY", "TIMEOUTS", "ask", "failure_of", "open_", "read_all", "until")
