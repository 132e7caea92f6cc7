"""The rare ways of a shared stream: late signals, other threads, observers that are no edges, recoveries."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest
from reactivex import abc

import semflux
from semflux.clock import VirtualClock
from semflux.contract import violations_of
from semflux.errors import BufferOverflowError
from semflux.events import ChatEvent, ChatEventType, Origin
from semflux.flux import Flux, Sinks
from semflux.operators import EventSubject
from semflux.operators.delivery import Room
from semflux.operators.fanout import Fanout, History
from semflux.operators.publish import Publication
from semflux.operators.run import UNBOUNDED, Run
from semflux.operators.snapshot import Snapshot
from semflux.testing import TestPublisher
from tests.flux.answers import FRAMES, Chunks, chat, chat_frames, settle
from tests.operators.watching import END, Watcher, hooked, item, watch

T = ChatEventType
OOPS = ValueError("oops")


class Raising(Watcher):
    """Raises at each item, and at its error if it is told to."""

    def __init__(self, *, again: bool = False, stopped: bool = False) -> None:
        super().__init__()
        self.again = again
        self.stopped = stopped

    def on_next(self, value: Any) -> None:
        raise OOPS

    def on_error(self, error: Exception) -> None:
        super().on_error(error)
        if self.again:
            raise KeyError


class Ending(Watcher):
    """Raises at its end."""

    def on_completed(self) -> None:
        raise OOPS

    def on_error(self, error: Exception) -> None:
        raise KeyError


class Nothing:
    """A source of a fan-out that is fed by the test."""

    can_wait = False

    def drained(self) -> None:
        pass

    async def released(self) -> None:
        pass


def fanout(**options: Any) -> Fanout:
    return Fanout(Nothing(), room=Room(items=2), policy="block", **options)


def pull(demand: int = 0) -> Run:
    return Run(demand=demand, pull=True)


def test_an_observer_that_raises_is_told_if_it_still_listens() -> None:
    """Else the hooks are, as they are of what it raises then."""
    out = fanout()
    told, again, stopped = Raising(), Raising(again=True), Raising(stopped=True)
    with hooked() as dropped:
        for observer in (told, again, stopped):
            out.add(observer, Run())
        out.emit(1)
        assert () == out.readers
        assert [OOPS] == [told.error]
        assert [KeyError, ValueError] == [type(error) for error in dropped.errors]
        out.add(Ending(), Run())
        out.end(None)
        out.end(OOPS)
        out.emit(2)
        assert [OOPS, OOPS] == dropped.errors[2:]
        assert [2] == dropped.items


def test_what_comes_from_inside_an_item_comes_after_it() -> None:
    """The end too; and a reader that fails in the middle of an item has had it."""
    out = fanout()

    class Again(Watcher):
        def on_next(self, value: Any) -> None:
            super().on_next(value)
            if value == 1:
                out.emit(2)
                out.end(None)
                out.end(None)

    first = Again()
    out.add(first, Run())
    second = Watcher()
    out.add(second, Run())
    out.emit(1)
    assert [item(1), item(2), END] == first.signals == second.signals


def test_a_reader_that_nobody_pulls_any_more_goes_on_by_itself() -> None:
    """What waits is delivered at once, and what comes."""
    out = fanout()
    seen = Watcher()
    run = pull()
    reader = out.add(seen, run)
    out.emit(1)
    assert [] == seen.items
    assert not reader.pump()
    reader.start_task()
    out.emit(2)
    assert [1, 2] == seen.items
    reader.abort("enough")
    reader.abort("enough")
    reader.end(None)
    assert END == seen.signals[-1]
    assert reader.pump()
    reader.dispose()
    assert UNBOUNDED == out.room()


async def test_a_wait_for_something_that_is_there_is_none() -> None:
    """And a wait that is given up does no harm."""
    out = fanout()
    run = pull()
    reader = out.add(Watcher(), run)
    waiting: Any = reader.fill()
    waiting.cancel()
    out.emit(1)
    await settle()
    run.demand = 5
    assert reader.fill() is None
    await reader.released()


def test_an_item_that_came_while_another_thread_delivered_is_not_left_lying() -> None:
    """Whoever delivers goes on with it."""
    out = fanout()
    order: list[Any] = []

    class Slow(Watcher):
        def on_next(self, value: Any) -> None:
            order.append(value)
            if value == 1:
                for reader in out.readers:
                    reader.offer(2, 64)
                    assert not reader.pump()

    out.add(Slow(), Run())
    out.emit(1)
    assert [1, 2] == order


def test_whoever_disposes_from_inside_gets_nothing_more() -> None:
    """Not what waits either."""
    out = fanout(history=History(None, None, lambda: 0.0))
    out.emit(1)
    out.emit(2)
    seen: list[Any] = []

    class Leaving(Watcher):
        def on_next(self, value: Any) -> None:
            seen.append(value)
            for reader in out.readers:
                reader.dispose()

    out.add(Leaving(), Run())
    out.emit(3)
    assert [1] == seen


def test_what_tells_where_a_stream_is_has_a_bound_too() -> None:
    """It is never dropped: where far too much of it waits, the subscriber fails."""
    subject: EventSubject[Any] = EventSubject()
    seen = Watcher()
    run = pull()
    source: Any = Flux(subject).on_backpressure_drop().observable
    source.subscribe_link(seen, run)
    for _ in range(1100):
        subject.on_next(semflux.ToolCallStart("c"))
    assert not subject.has_observers
    run.demand = UNBOUNDED
    assert run.driver is not None
    run.driver.pump()
    assert isinstance(seen.error, BufferOverflowError)
    assert len(seen.items) == 1025
    run.driver.fail(BufferOverflowError())


def test_a_source_that_ends_in_its_subscribe() -> None:
    """There is nothing to dispose of any more."""
    ended: EventSubject[int] = EventSubject()
    ended.on_completed()
    assert [END] == watch(Flux(ended).share()).signals
    source: Any = Flux(ended).on_backpressure_drop().observable
    seen = Watcher()
    source.subscribe_link(seen, pull())
    assert [END] == seen.signals


def test_late_signals_of_a_shared_source_go_to_the_hooks() -> None:
    """Whoever sends them."""
    publication = Publication(Flux.just(1).observable)
    publication.connect()
    connection = publication.connection
    assert connection is not None
    with hooked() as dropped:
        connection.on_next(2)
        connection.on_error(OOPS)
        connection.on_completed()
    assert ([2], [OOPS]) == (dropped.items, dropped.errors)
    connection.dispose()
    publication.disconnect()


def test_a_connection_that_is_cut_before_it_began_begins_nothing() -> None:
    """From inside another stream's item."""
    publisher: TestPublisher[int] = TestPublisher.create()
    shared = publisher.flux().publish()
    Flux.just(1).subscribe(lambda _: shared.connect().dispose())
    assert 0 == publisher.subscribe_count
    shared.connect()
    assert 1 == publisher.subscribe_count


async def test_a_shared_stream_may_be_left_from_another_thread() -> None:
    """The time of grace is counted in its loop, and its connection closed there."""
    clock = VirtualClock()
    chunks = Chunks(*FRAMES[:3], endless=True)
    shared = chat(chunks.agen()).share(grace=5, clock=clock)
    subscription = shared.subscribe()
    async with asyncio.timeout(5):
        await chunks.waiting.wait()
    await asyncio.to_thread(subscription.dispose)
    await settle()
    assert 0 == chunks.closed
    clock.advance(5)
    await settle()
    assert 1 == chunks.closed


async def test_a_limit_above_share_stands_still_while_nobody_reads() -> None:
    """The slow reader is not the provider's fault."""
    clock = VirtualClock()
    shared = chat(Chunks(*chat_frames(3000)).agen()).timeout(item=5, clock=clock).share()
    async with aiter(shared) as slow:
        await anext(slow)
        for _ in range(3000):
            await asyncio.sleep(0)
        clock.advance(60)
        count = 1
        async for _ in slow:
            count += 1
    assert 3006 == count


class Twice:
    """A source that fails before any content the first time."""

    def __init__(self) -> None:
        self.passes = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.passes += 1
        if self.passes == 1:
            raise semflux.ConnectionLostError("cut", retryable=True)
        for frame in FRAMES:
            yield frame


async def test_a_shared_stream_can_be_retried_by_each_of_its_subscribers() -> None:
    """The next attempt is shared too, and goes on in the stream of each."""
    source = Twice()
    shared = chat(source).publish().ref_count(2).retry(1)
    seen: list[Any] = []

    async def read() -> None:
        events = [event async for event in shared]
        seen.append(events)

    async with asyncio.timeout(5):
        await asyncio.gather(read(), read())
    assert 2 == source.passes
    for events in seen:
        assert () == violations_of(events)
        assert "retry" in [event.sub_type for event in events]
        assert "0 1 2 " == events[-1].response.text


def test_a_snapshot_keeps_order_where_it_matters() -> None:
    """A citation stays between its texts; of several observations of usage the latest is shown."""
    snapshot = Snapshot()
    source = semflux.CitedSource(url="https://example.org")
    usage = semflux.Usage(input_tokens=1)
    events: list[ChatEvent] = [
        semflux.ResponseStart(),
        semflux.StepStart(),
        semflux.TextStart(),
        semflux.TextDelta("a"),
        semflux.Heartbeat(),
        semflux.TextDelta("b"),
        semflux.Citation(source),
        semflux.TextDelta("c"),
        semflux.UsageEvent(usage),
        semflux.UsageEvent(semflux.Usage(input_tokens=2)),
    ]
    for seq, event in enumerate(events):
        snapshot.add(attrs.evolve(event, seq=seq, origin=Origin(response_id="r")))
    kept = snapshot.events()
    assert [*events[:3], semflux.TextDelta("ab"), events[6], events[7], events[9]] == kept
    assert [0, 1, 2, 3, 6, 7, 9] == [event.seq for event in kept]
    last, failure = snapshot.failing(BufferOverflowError())
    assert [T.TEXT_END, T.STEP_END, T.ERROR] == [event.type for event in last]
    assert [10, 11, 12] == [event.seq for event in last]
    assert failure is last[-1].error
    assert T.ABORT is snapshot.aborting("enough")[-1].type


def test_a_part_of_a_stream_is_ended_without_ceremony() -> None:
    """Nobody knows what is open in it."""
    out = fanout(snapshot=Snapshot())
    seen = Watcher()
    reader = out.add(seen, Run())
    out.emit(semflux.TextDelta("a"))
    reader.fail(BufferOverflowError())
    assert isinstance(seen.error, BufferOverflowError)
    with pytest.raises(IndexError):
        out.readers[0]


def test_a_sink_ended_from_inside_refuses_the_rest() -> None:
    """The result says so."""
    sink = Sinks.replay(1)
    results: list[Any] = []

    class Ender(abc.ObserverBase[Any]):
        def on_next(self, value: Any) -> None:
            results.extend([sink.try_emit_complete(), sink.try_emit_next(2)])

        def on_error(self, error: Exception) -> None:
            pass

        def on_completed(self) -> None:
            results.append(END)

    sink.as_flux().subscribe(Ender())
    sink.emit_next(1)
    assert ["OK", "FAIL_TERMINATED", END] == results
    assert threading.active_count() >= 1
