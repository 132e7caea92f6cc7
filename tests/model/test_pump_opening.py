"""The opening of a request, and what else happens in that moment: a dispose, a cancel, a failure, a limit."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

import pytest

from semflux import Timeouts
from semflux.clock import VirtualClock
from semflux.errors import (
    ConfigurationError,
    ConnectionLostError,
    SemfluxError,
    TotalTimeoutError,
)
from semflux.events import AnyChatEvent
from semflux.http import HttpRequest
from semflux.transport import ReplayTransport
from tests.model.asking import (
    HELLO,
    Watching,
    read,
    settle,
    types,
)
from tests.model.rig import Gated, Rig

FAILURE = SemfluxError("told to", kind="told")


@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("how", ["push", "pull"])
async def test_a_dispose_at_any_turn_after_the_opening_leaves_nothing(turns: int, how: str) -> None:
    """Also between the opening's end and the moment that its waiter learns of it."""
    transport = Gated(HELLO, math.inf)
    rig = Rig(transport)
    dispose: Callable[[], object]
    if how == "push":
        dispose = rig.stream.subscribe().dispose
    else:
        watching = Watching(rig.stream)
        dispose = watching.task.cancel
    await settle()
    assert transport.opening == 1
    transport.gate.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    dispose()
    await settle()
    assert transport.acquired == 0


async def test_an_opening_that_succeeds_in_the_turn_of_its_dispose_is_closed() -> None:
    """Its result is there, and nobody has taken it yet."""
    transport = Gated(HELLO, math.inf)
    rig = Rig(transport)
    watching = Watching(rig.stream)
    await settle()
    opening = rig.pump._opening
    assert opening is not None
    opening.add_done_callback(lambda _: rig.pump.dispose())
    transport.gate.set()
    await settle()
    assert transport.acquired == 0
    watching.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching.task


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_a_consumer_may_be_cancelled_again_while_the_opening_ends(times: int) -> None:
    """L1, twice: what was begun ends all the same."""
    transport = Gated(HELLO, slow_cancel=5)
    rig = Rig(transport)
    watching = Watching(rig.stream)
    await settle()
    for _ in range(times):
        watching.task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await watching.task
    await settle()
    assert transport.acquired == 0
    assert watching.types == ["RESPONSE_START"]


async def test_an_opening_that_is_cancelled_from_elsewhere_is_a_lost_connection() -> None:
    """Not by us, so not a cancel of the consumer's."""
    transport = Gated(HELLO)
    rig = Rig(transport)
    watching = Watching(rig.stream)
    await settle()
    opening = rig.pump._opening
    assert opening is not None
    opening.cancel()
    seen = await watching.done()
    assert type(seen.error) is ConnectionLostError
    assert (seen.error.phase, seen.error.attempts) == ("headers", 1)
    assert transport.acquired == 0


@pytest.mark.parametrize("error", [OSError("disk"), ValueError("x"), RuntimeError("y")])
async def test_what_making_the_request_raises_is_the_cause_of_the_streams_error(error: Exception) -> None:
    async def request() -> HttpRequest:
        raise error

    rig = Rig(ReplayTransport(), request=request)
    events: list[AnyChatEvent] = []
    with pytest.raises(SemfluxError) as caught:
        async for event in rig.stream:
            events.append(event)  # noqa: PERF401  # those before an error count too
    assert caught.value.__cause__ is error
    assert (caught.value.kind, caught.value.provider, caught.value.attempts) == ("source", "acme", 0)
    assert [event.type.value for event in events] == ["RESPONSE_START", "ERROR"]


async def test_a_wrong_configuration_was_never_sent() -> None:
    async def request() -> HttpRequest:
        raise ConfigurationError("no model here")

    seen = await read(Rig(ReplayTransport(), request=request).stream)
    assert isinstance(seen.error, ConfigurationError)
    assert seen.error.attempts == 0
    seen = await read(Rig(ReplayTransport()).stream)  # it has nothing to replay
    assert isinstance(seen.error, ConfigurationError)
    assert seen.error.attempts == 0


@pytest.mark.parametrize("how", ["cancel", "dispose", "fail", "total"])
async def test_a_stream_may_end_while_its_request_is_still_made(how: str) -> None:
    """A local model that loads: neither the consumer nor a limit has to wait for it."""
    ended = asyncio.Event()

    async def request() -> HttpRequest:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    clock = VirtualClock()
    transport = ReplayTransport()
    rig = Rig(transport, request=request, clock=clock, timeouts=Timeouts(total=5))
    watching = Watching(rig.stream)
    await settle()
    if how == "cancel":
        watching.task.cancel()
    elif how == "dispose":
        rig.pump.dispose()
    elif how == "fail":
        rig.pump.run.fail(FAILURE)
    else:
        clock.advance(6)
    await settle()
    assert ended.is_set()
    assert transport.requests == []
    if how in ("fail", "total"):
        seen = await watching.done()
        assert types(seen) == ["RESPONSE_START", "ERROR"]
        assert seen.error is FAILURE or type(seen.error) is TotalTimeoutError
        assert seen.error is not None
        assert seen.error.attempts == 0
    else:
        watching.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching.task
