"""Time: the limits of a stream, its grace and its pauses, on a clock that the test moves. Rows C4, C5 and M4 to M6."""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from semflux import ChatModel, Timeouts
from semflux.clock import VirtualClock
from semflux.errors import (
    BadRequestError,
    ConnectTimeoutError,
    FirstEventTimeoutError,
    IdleTimeoutError,
    PoolTimeoutError,
    RepairError,
    SemfluxError,
    TotalTimeoutError,
    UnexpectedContentTypeError,
)
from semflux.http import HttpRequest
from semflux.transport import Exchange, Phase, Recording, ReplayTransport, Transport
from tests.frames import DONE, cc, cu
from tests.model.asking import CANARY, FINISH, FRAME, HELLO, NAMES, Watching, acquired, replayed, settle

if TYPE_CHECKING:
    from semflux.transport import Exchange

PING = b": ping\n\n"
FULL = [*FRAME, "STEP_END", "RESPONSE_END"]


class Stalling(Transport):
    """A transport that gets as far as *phase* and no further, and refuses to end for a while if told to."""

    def __init__(self, phase: Phase) -> None:
        self.phase: Phase = phase
        self.cancelled = False
        self._opening = 0

    async def open(
        self, request: HttpRequest, *, timeouts: Timeouts, on_phase: Callable[[Phase], None] | None = None
    ) -> Exchange:
        assert on_phase is not None
        phases: list[Phase] = ["pool", "connect", "request"]
        for phase in phases[: phases.index(self.phase) + 1]:
            on_phase(phase)
        self._opening += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        finally:
            self._opening -= 1
        raise AssertionError

    async def aclose(self) -> None:
        """Nothing is held."""

    @property
    def acquired(self) -> int:
        return self._opening


@pytest.mark.parametrize(
    "phase, seconds, cls, where",
    [
        ("pool", 30, PoolTimeoutError, "connect"),
        ("connect", 10, ConnectTimeoutError, "connect"),
        ("request", 600, FirstEventTimeoutError, "first_event"),
    ],
)
async def test_each_phase_of_an_opening_has_its_limit(
    phase: Phase, seconds: int, cls: type[SemfluxError], where: str
) -> None:
    """C4, C5, M5. The opening is cancelled, and nothing is held."""
    clock, transport = VirtualClock(), Stalling(phase)
    model = ChatModel(NAMES["openai-chat"], max_retries=0, api_key=CANARY, transport=transport, clock=clock)
    watching = Watching(model.prompt("hi").stream())
    await settle()
    clock.advance(seconds - 0.5)
    await settle()
    assert watching.types == ["RESPONSE_START"]
    clock.advance(1)
    await settle()
    seen = await watching.done()
    assert watching.types == ["RESPONSE_START", "ERROR"]
    assert type(seen.error) is cls
    assert (seen.error.phase, seen.error.attempts, seen.error.provider) == (where, 1, "openai")
    assert transport.cancelled
    assert transport.acquired == 0
    assert clock.pending == 0


async def test_no_content_within_the_first_limit_fails_the_stream() -> None:
    """M5. Pings are life, but no content."""
    clock = VirtualClock()
    body = [item for _ in range(10) for item in (PING, 60.0)]
    model = replayed(*body, HELLO, clock=clock, timeouts=Timeouts(first=300))
    watching = Watching(model.prompt("hi").stream())
    for _ in range(30):
        await settle()
        clock.advance(10)
    await settle()
    seen = await watching.done()
    assert type(seen.error) is FirstEventTimeoutError
    assert "first=" in str(seen.error)
    assert watching.types == ["RESPONSE_START", "STEP_START", "STEP_END", "ERROR"]
    assert acquired(model) == 0


async def test_no_byte_within_the_idle_limit_fails_the_stream() -> None:
    """M4. What had come is in the error."""
    clock = VirtualClock()
    model = replayed(HELLO, math.inf, clock=clock)
    watching = Watching(model.prompt("hi").stream())
    await settle()
    clock.advance(299)
    await settle()
    assert watching.types == FRAME[:-1]
    clock.advance(2)
    await settle()
    seen = await watching.done()
    assert type(seen.error) is IdleTimeoutError
    assert (seen.error.phase, seen.error.attempts) == ("stream", 1)
    assert seen.error.partial is not None
    assert seen.error.partial.steps[0].text == "Hello"
    assert watching.types == [*FRAME, "STEP_END", "ERROR"]
    assert acquired(model) == 0
    assert clock.pending == 0


async def test_any_byte_is_life() -> None:
    """Comments too: a provider that thinks for an hour and pings is alive."""
    clock = VirtualClock()
    model = replayed(HELLO, *[item for _ in range(20) for item in (200.0, PING)], FINISH, DONE, clock=clock)
    watching = Watching(model.prompt("hi").stream())
    for _ in range(41):
        await settle()
        clock.advance(100)
    await settle()
    seen = await watching.done()
    assert seen.error is None
    assert watching.types == FULL
    assert dict(seen.response.repairs.notes)["comment"] == 20


async def test_the_total_limit_holds_whatever_comes() -> None:
    """M6: one byte every ten seconds."""
    clock = VirtualClock()
    drip = [item for byte in HELLO for item in (10.0, bytes([byte]))]
    model = replayed(*drip, clock=clock, timeouts=Timeouts(total=100))
    watching = Watching(model.prompt("hi").stream())
    for _ in range(12):
        await settle()
        clock.advance(10)
    await settle()
    seen = await watching.done()
    assert type(seen.error) is TotalTimeoutError
    assert acquired(model) == 0


async def test_no_limit_runs_while_the_consumer_is_busy() -> None:
    """Demand is zero then: the peer is not to blame for the wait."""
    clock = VirtualClock()
    gate = asyncio.Event()
    model = replayed(
        cc({"content": "a"}),
        1.0,
        cc({"content": "b"}),
        FINISH,
        DONE,
        clock=clock,
        timeouts=Timeouts(first=5, idle=5),
    )
    watching = Watching(model.prompt("hi").stream(), gate.wait)
    for _ in range(10):
        await settle()
        clock.advance(100)
    assert watching.types == ["RESPONSE_START"]
    gate.set()
    for _ in range(10):
        await settle()
        clock.advance(1)
    seen = await watching.done()
    assert seen.error is None
    assert seen.response.text == "ab"


async def test_first_counts_only_the_waiting() -> None:
    """3 s of waiting, a break of the consumer, 3 s of waiting: not 5 in a row, but 6 in sum."""
    clock = VirtualClock()
    gates: list[asyncio.Event] = []

    async def gate() -> None:
        gates.append(asyncio.Event())
        await gates[-1].wait()

    tools = cc({"content": None})
    model = replayed(3.0, tools, 3.0, tools, clock=clock, timeouts=Timeouts(first=5))
    watching = Watching(model.prompt("hi").event_filter(None).stream(), gate)
    await settle()
    gates[-1].set()  # RESPONSE_START
    await settle()
    clock.advance(100)  # while STEP_START is looked at
    await settle()
    gates[-1].set()
    await settle()
    clock.advance(3)
    await settle()
    clock.advance(1.9)
    await settle()
    assert not watching.task.done()
    clock.advance(0.2)
    for _ in range(5):
        await settle()
        gates[-1].set()
    seen = await watching.done()
    assert type(seen.error) is FirstEventTimeoutError


# After the finish signal.


async def test_a_finished_answer_that_does_not_end_is_over_after_its_grace() -> None:
    """The server keeps the connection open and never says [DONE]: usage that comes in time counts."""
    clock = VirtualClock()
    model = replayed(HELLO, FINISH, 1.0, cu(3, 2), math.inf, clock=clock)
    watching = Watching(model.prompt("hi").stream())
    await settle()
    assert watching.types == FRAME
    clock.advance(1)
    await settle()
    assert watching.types == [*FRAME, "USAGE"]
    clock.advance(0.9)
    await settle()
    assert not watching.task.done()
    clock.advance(0.2)
    await settle()
    seen = await watching.done()
    assert seen.error is None
    assert watching.types == [*FRAME, "USAGE", "STEP_END", "RESPONSE_END"]
    assert seen.response.usage is not None
    assert seen.response.usage.input_tokens == 3
    assert seen.response.repairs.to_dict() == {"repairs": {"missing_done": 1}, "notes": {"late_end": 1}}
    assert acquired(model) == 0
    assert clock.pending == 0


async def test_pings_do_not_stretch_the_grace() -> None:
    clock = VirtualClock()
    model = replayed(HELLO, FINISH, *[item for _ in range(100) for item in (0.5, PING)], clock=clock)
    watching = Watching(model.prompt("hi").stream())
    for _ in range(5):
        await settle()
        clock.advance(0.5)
    await settle()
    assert (await watching.done()).error is None


async def test_the_grace_runs_only_while_bytes_are_waited_for() -> None:
    """A slow consumer loses neither usage nor end marker."""
    clock = VirtualClock()

    async def slow() -> None:
        clock.advance(10)

    model = replayed(HELLO, FINISH, 0.1, cu(3, 2), 0.1, DONE, clock=clock, strict=True)
    watching = Watching(model.prompt("hi").stream(), slow)
    for _ in range(10):
        await settle()
        clock.advance(0.1)
    seen = await watching.done()
    assert seen.error is None
    assert seen.response.usage is not None


async def test_strict_mode_takes_no_missing_end_marker_for_an_end() -> None:
    clock = VirtualClock()
    model = replayed(HELLO, FINISH, math.inf, clock=clock, strict=True)
    watching = Watching(model.prompt("hi").stream())
    await settle()
    clock.advance(3)
    await settle()
    assert type((await watching.done()).error) is RepairError


async def test_an_answer_that_is_whole_cannot_run_out_of_time_any_more() -> None:
    """The end marker has come; what is left is only the connection's."""
    clock = VirtualClock()
    model = replayed(HELLO, FINISH, DONE, math.inf, clock=clock, timeouts=Timeouts(total=5))
    watching = Watching(model.prompt("hi").stream())
    await settle()
    clock.advance(100)
    seen = await watching.done()
    assert seen.error is None
    assert acquired(model) == 0


# Refusals that do not end.


@pytest.mark.parametrize(
    "status, kind, cls",
    [(400, "application/json", BadRequestError), (200, "text/html", UnexpectedContentTypeError)],
)
async def test_the_body_of_a_refusal_is_waited_for_only_so_long(
    status: int, kind: str, cls: type[SemfluxError]
) -> None:
    """A server that says 400 and then nothing, or drips: the error tells what is there after five seconds."""
    clock = VirtualClock()
    recording = Recording(status=status, headers={"content-type": kind}, body=(b"so fa", 4.0, b"r", math.inf))
    transport = ReplayTransport(recording, clock=clock)
    model = ChatModel(NAMES["openai-chat"], max_retries=0, api_key=CANARY, transport=transport, clock=clock)
    watching = Watching(model.prompt("hi").stream())
    await settle()
    clock.advance(4)
    await settle()
    assert not watching.task.done()
    clock.advance(1.1)
    await settle()
    seen = await watching.done()
    assert type(seen.error) is cls
    assert "so far" in str(seen.error)
    assert transport.acquired == 0
    assert clock.pending == 0


async def test_events_are_stamped_with_the_models_clock() -> None:
    clock = VirtualClock(start=1000.0)
    model = replayed(HELLO, 5.0, FINISH, DONE, clock=clock)
    watching = Watching(model.prompt("hi").stream())
    await settle()
    clock.advance(5)
    seen = await watching.done()
    assert {event.timestamp.timestamp() for event in seen.events} == {1000.0, 1005.0}


async def test_a_stream_that_ended_keeps_no_timer() -> None:
    clock = VirtualClock()
    seen = await Watching(replayed(HELLO, FINISH, DONE, clock=clock).prompt("hi").stream()).done()
    assert seen.error is None
    assert clock.pending == 0
    gc.collect()
