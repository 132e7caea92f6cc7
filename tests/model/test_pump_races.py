"""The pump where two things happen at once: a dispose, a failure or an abort, and a read; and other threads."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from semflux import ChatModel
from semflux.clock import VirtualClock
from semflux.dialects import dialect
from semflux.errors import (
    ConnectionLostError,
    SemfluxError,
    StreamAbortedError,
    TransportError,
)
from semflux.events import AnyChatEvent
from semflux.operators import Hooks
from semflux.transport import Exchange, Recording, ReplayTransport
from tests.frames import DONE, cc
from tests.model.asking import (
    CANARY,
    CHAT,
    FINISH,
    FRAME,
    HELLO,
    NAMES,
    WHOLE,
    Watching,
    checked,
    read,
    settle,
    types,
)
from tests.model.rig import Gated, Rig

# Reading.


@pytest.mark.parametrize("how", ["push", "pull"])
async def test_a_failure_told_from_outside_wakes_a_pending_read(how: str) -> None:
    """As an operator does it: ends, STEP_END, ERROR, all in order, and the connection is closed."""
    transport = ReplayTransport(Recording(body=(HELLO, math.inf)))
    rig = Rig(transport)
    error = SemfluxError("told to", kind="told")
    if how == "pull":
        watching = Watching(rig.stream)
        await settle()
        rig.pump.run.fail(error)
        seen = await watching.done()
    else:
        events: list[AnyChatEvent] = []
        errors: list[Exception] = []
        rig.stream.subscribe(events.append, errors.append)
        await settle()
        rig.pump.run.fail(error)
        await settle()
        seen = checked(events, errors[0])
    assert types(seen) == [*FRAME, "STEP_END", "ERROR"]
    assert seen.error is error
    assert error.attempts == 1
    assert transport.acquired == 0


async def test_an_abort_wakes_a_pending_read() -> None:
    transport = ReplayTransport(Recording(body=(HELLO, math.inf)))
    rig = Rig(transport)
    watching = Watching(rig.stream)
    await settle()
    rig.pump.run.abort("shutting down")
    seen = await watching.done()
    assert types(seen) == [*FRAME, "STEP_END", "ABORT"]
    assert transport.acquired == 0


async def test_a_call_that_is_aborted_raises() -> None:
    rig = Rig(ReplayTransport(Recording(body=(HELLO, math.inf))))

    async def call() -> Any:
        return await rig.stream.response()

    task = asyncio.create_task(call())
    await settle()
    rig.pump.run.abort("shutting down")
    with pytest.raises(StreamAbortedError, match="shutting down"):
        await task


async def test_a_second_failure_goes_to_the_hook_and_changes_nothing() -> None:
    dropped: list[BaseException] = []
    Hooks.on_error_dropped(dropped.append)
    try:
        rig = Rig(ReplayTransport(Recording(body=(HELLO, math.inf))))
        watching = Watching(rig.stream)
        await settle()
        first, second = SemfluxError("one"), SemfluxError("two")
        rig.pump.fail(first)
        rig.pump.fail(second)
        assert (await watching.done()).error is first
        assert dropped == [second]
        assert (second.provider, second.attempts) == (None, 0)
    finally:
        Hooks.on_error_dropped(None)


@pytest.mark.parametrize("after", [HELLO, HELLO + FINISH, HELLO + FINISH + DONE])
async def test_a_dispose_wakes_a_pending_read_and_nothing_more_comes(after: bytes) -> None:
    """In the middle, in the grace, and while the connection drains."""
    transport = ReplayTransport(Recording(body=(after, math.inf)))
    events: list[AnyChatEvent] = []
    rig = Rig(transport, drain_seconds=60)
    subscription = rig.stream.subscribe(events.append)
    await settle()
    count = len(events)
    subscription.dispose()
    await settle()
    assert len(events) == count
    assert events[-1].type != "RESPONSE_END"
    assert transport.acquired == 0


@pytest.mark.parametrize("ending", [ConnectionLostError("x", kind="reset"), TransportError("y")])
async def test_a_failure_after_the_finish_signal_ends_well(ending: TransportError) -> None:
    transport = ReplayTransport(Recording(body=(HELLO, FINISH, ending)))
    seen = await read(Rig(transport).stream)
    assert seen.error is None
    assert dict(seen.response.repairs.notes) == {f"broken_end_{ending.kind}": 1}
    assert transport.acquired == 0


async def test_a_failure_while_the_connection_drains_ends_well() -> None:
    transport = ReplayTransport(Recording(body=(CHAT, ConnectionLostError("x", kind="reset"))))
    seen = await read(Rig(transport).stream)
    assert seen.error is None
    assert seen.response.repairs.to_dict() == {"repairs": {}, "notes": {}}
    assert transport.acquired == 0


async def test_what_a_transport_raises_besides_its_own_errors_is_wrapped() -> None:
    class Broken(ReplayTransport):
        async def open(self, *args: Any, **kwargs: Any) -> Exchange:
            raise ZeroDivisionError

    with pytest.raises(SemfluxError) as caught:
        await Rig(Broken()).stream.response()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.attempts == 1


async def test_a_dispose_in_step_start_reads_nothing() -> None:
    transport = ReplayTransport(Recording(body=(CHAT,)))
    rig = Rig(transport)
    seen = [
        event.type.value async for event in rig.stream.take_until(lambda event: event.type == "STEP_START")
    ]
    assert seen == ["RESPONSE_START", "STEP_START"]
    assert transport.acquired == 0


# Threads.


@pytest.mark.parametrize("state", ["opening", "reading", "draining", "over"])
async def test_a_dispose_from_another_thread_closes_in_the_loops_next_turn(state: str) -> None:
    """U4. Nothing comes after it, and the loop's debug mode has nothing to say."""
    asyncio.get_running_loop().set_debug(True)
    transport = Gated(CHAT if state == "draining" else HELLO, math.inf)
    if state != "opening":
        transport.gate.set()
    events: list[AnyChatEvent] = []
    rig = Rig(transport, drain_seconds=60)
    subscription = rig.stream.subscribe(events.append)
    await settle()
    if state == "over":
        rig.pump.abort("over")
    count = len(events)
    thread = threading.Thread(target=subscription.dispose)
    thread.start()
    thread.join()
    await settle()
    assert len(events) == count
    assert transport.acquired == 0


async def test_a_dispose_from_another_thread_between_the_first_event_and_the_opening_opens_nothing() -> None:
    transport = Gated(HELLO)
    rig = Rig(transport)

    def dispose(_event: AnyChatEvent) -> None:
        thread = threading.Thread(target=lambda: rig.pump.dispose())
        thread.start()
        thread.join()

    subscription = rig.stream.subscribe(dispose)
    await settle()
    assert transport.acquired == 0
    subscription.dispose()


class Meanwhile(VirtualClock):
    """Another thread calls *then* the first time that somebody asks for the time."""

    then: Callable[[], object] | None = None

    def monotonic(self) -> float:
        then, self.then = self.then, None
        if then is not None:
            thread = threading.Thread(target=then)
            thread.start()
            thread.join()
        return super().monotonic()


async def test_a_dispose_from_another_thread_while_the_opening_starts_cancels_it() -> None:
    """In the one turn in which the loop has not heard of it yet."""
    transport, clock = Gated(HELLO), Meanwhile()
    rig = Rig(transport, clock=clock)
    clock.then = lambda: rig.pump.dispose()
    subscription = rig.stream.subscribe()
    await settle()
    assert clock.then is None
    assert transport.acquired == 0
    assert transport.inner.requests == []
    subscription.dispose()


async def test_many_threads_may_dispose_while_events_come() -> None:
    """Each stream is cut somewhere; none delivers anything after its dispose and a turn of the loop."""
    for n in range(30):
        transport = ReplayTransport(Recording(body=tuple([cc({"content": "x"})] * 400)))
        events: list[AnyChatEvent] = []
        subscription = Rig(transport).stream.subscribe(events.append)
        thread = threading.Thread(target=subscription.dispose)
        for _ in range(n):
            await asyncio.sleep(0)
        thread.start()
        await asyncio.to_thread(thread.join)
        await settle()
        count = len(events)
        await settle()
        assert len(events) == count
        assert transport.acquired == 0


# NDJSON has no head to look at.


async def test_a_dialect_of_lines_takes_a_json_body_for_the_whole_answer() -> None:
    lines = attrs.evolve(dialect("openai-chat"), framing="ndjson")
    headers = {"content-type": "application/json"}
    transport = ReplayTransport(Recording(headers=headers, body=(WHOLE["openai-chat"],)))
    seen = await read(Rig(transport, dialect=lines).stream)
    assert seen.response.text == "Hello"


async def test_a_model_over_a_replayed_answer_is_the_model() -> None:
    transport = ReplayTransport(Recording(body=(CHAT,)), repeat=True)
    model = ChatModel(NAMES["openai-chat"], max_retries=0, api_key=CANARY, transport=transport)
    assert (await model.prompt("hi").call()).text == "Hello"
    assert transport.requests[0].url == "https://api.openai.com/v1/chat/completions"
