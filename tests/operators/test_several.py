"""flat_map, concat_map, merge: several sources as one, and what becomes of the others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import reactivex
from reactivex.disposable import Disposable

import semflux
from semflux import Flux
from semflux.errors import ConfigurationError
from semflux.operators import flat_map
from semflux.operators.inner import Gate
from semflux.operators.lift import Direct
from tests.frames import DONE, cc
from tests.operators.watching import END, Probe, error, item, raising, signals, watch

FAILURE = ValueError("mine")
ANSWER = cc({"content": "a"}) + cc({"content": "b"}) + cc(finish="stop") + DONE


def subjects(count: int) -> list[reactivex.Subject[Any]]:
    return [reactivex.Subject() for _ in range(count)]


def test_flat_map_gives_items_as_they_come() -> None:
    """Interleaved; the end comes when the source and all inner ones have ended."""
    one, two = subjects(2)
    watcher = watch(Flux.just(one, two).flat_map(lambda inner: inner))
    two.on_next("2")
    one.on_next("1")
    two.on_completed()
    one.on_next(None)
    assert [item("2"), item("1"), item(None)] == watcher.signals
    one.on_completed()
    assert END == watcher.signals[-1]


def test_concat_map_keeps_the_order_and_subscribes_to_one_at_a_time() -> None:
    """The next one when the one before has completed."""
    one, late = reactivex.Subject[Any](), Probe(2)
    watcher = watch(Flux.just(one, late.source).concat_map(lambda inner: inner))
    assert 0 == late.subscribed
    one.on_next(1)
    one.on_completed()
    assert [item(1), item(2), END] == watcher.signals


def test_no_more_sources_than_concurrency_at_once() -> None:
    """An item beyond waits until one has ended."""
    one, two = subjects(2)
    probe = Probe(3)
    watcher = watch(Flux.just(one, two, probe.source).flat_map(lambda inner: inner, concurrency=2))
    assert 0 == probe.subscribed
    two.on_completed()
    assert [item(3)] == watcher.signals
    with pytest.raises(ConfigurationError, match="concurrency=0"):
        flat_map(lambda inner: inner, 0)


def test_an_error_of_one_cancels_the_rest() -> None:
    """The source and the other inner ones, before it is told; what comes late is nobody's."""
    one, two = subjects(2)
    source = reactivex.Subject[Any]()
    watcher = watch(Flux.from_(source).flat_map(lambda inner: inner))
    source.on_next(one)
    source.on_next(two)
    two.on_error(FAILURE)
    assert [error(FAILURE)] == watcher.signals
    assert ([], []) == (one.observers, source.observers)


def test_a_function_that_raises_is_the_error() -> None:
    probe = Probe(1, 2)
    assert [error(FAILURE)] == signals(Flux.from_(probe.source).flat_map(raising(FAILURE)))
    assert 1 == probe.disposed


def test_an_error_of_the_source_cancels_the_inner_ones() -> None:
    inner, source = subjects(2)
    watcher = watch(Flux.from_(source).flat_map(lambda _: inner))
    source.on_next(1)
    source.on_error(FAILURE)
    assert ([error(FAILURE)], []) == (watcher.signals, inner.observers)


def test_leaving_cancels_all() -> None:
    """From inside an item of an inner source, too."""
    one, two = subjects(2)
    told: list[Any] = []
    subscription = Flux.just(one, two).flat_map(lambda inner: inner).subscribe(told.append)
    one.on_next(1)
    subscription.dispose()
    two.on_next(2)
    assert ([1], [], []) == (told, one.observers, two.observers)
    assert [item(1), END] == signals(Flux.just(1, 2).flat_map(lambda x: Flux.just(x, x)).take(1))


def test_a_signal_that_brings_about_another_comes_before_it() -> None:
    """One at a time, in the order in which they were told."""
    one, two = subjects(2)
    told: list[Any] = []

    def look(value: Any) -> None:
        told.append(f"begin {value}")
        if value == 1:
            two.on_next(2)
        told.append(f"end {value}")

    Flux.merge(one, two).subscribe(look)
    one.on_next(1)
    assert ["begin 1", "end 1", "begin 2", "end 2"] == told


def test_a_gate_is_open_again_after_a_call_that_raised() -> None:
    """What waited inside is dropped with it."""
    gate, told = Gate(), list[int]()

    def fails() -> None:
        gate.enter(told.append, 1)
        raise FAILURE

    with pytest.raises(ValueError, match="mine"):
        gate.enter(fails)
    gate.enter(told.append, 2)
    assert [2] == told


def test_merge_takes_what_comes() -> None:
    """Of the source and the others."""
    one, two = subjects(2)
    watcher = watch(Flux.from_(one).merge_with(two))
    two.on_next(2)
    one.on_next(1)
    for each in (one, two):
        each.on_completed()
    assert [item(2), item(1), END] == watcher.signals


def test_many_inner_sources_are_not_many_frames_deep() -> None:
    """One ends, the next begins."""
    assert 5000 == len(watch(Flux.from_iterable(range(5000)).concat_map(Flux.just)).items)


async def test_chat_streams_are_merged_and_concatenated_by_a_consumer_that_pulls() -> None:
    """Each is a stream with an id of its own; a wait of one does not hold up the other."""

    async def chunks() -> Any:
        for part in (ANSWER[:30], ANSWER[30:]):
            await asyncio.sleep(0)
            yield part

    def make() -> Any:
        return semflux.parse(chunks(), dialect="openai-chat")

    for flux in (
        make().concat_with(make()),
        make().merge_with(make()),
        Flux.just(1, 2).flat_map(lambda _: make()),
    ):
        events = [event async for event in flux]
        assert 2 == len({event.response_id for event in events})
        assert 2 == len([event for event in events if event.is_terminal])


def test_what_waits_at_the_gate_when_a_subscriber_leaves_is_dropped() -> None:
    """An item of the source, one of an inner source."""
    source, one, two = subjects(3)
    asked: list[Any] = []
    told: list[Any] = []
    kept: list[Any] = []

    def leave(value: Any) -> None:
        told.append(value)
        two.on_next(2)
        source.on_next(Flux.empty())
        kept[0].dispose()

    def inner(value: Any) -> Any:
        asked.append(value)
        return value

    kept.append(Flux.from_(source).flat_map(inner).subscribe(leave))
    source.on_next(one)
    source.on_next(two)
    one.on_next(1)
    assert ([1], [one, two]) == (told, asked)


class Leaving(Direct[Any]):
    """Its subscriber leaves while it is being subscribed to; *ends* at once before that."""

    def __init__(self, leave: Any, *, ends: bool) -> None:
        super().__init__()
        self.leave = leave
        self.ends = ends
        self.disposed = 0

    def _subscribe_core(self, observer: Any, scheduler: Any = None) -> Any:
        if self.ends:
            observer.on_completed()
        self.leave()
        return Disposable(self.dispose)

    def dispose(self) -> None:
        self.disposed += 1


def test_a_subscriber_may_leave_while_an_inner_source_is_subscribed_to() -> None:
    """That one is disposed of too; the next one is not begun."""
    subject, kept = reactivex.Subject[Any](), list[Any]()
    inner = Leaving(lambda: kept[0].dispose(), ends=False)
    kept.append(Flux.from_(subject).flat_map(lambda _: inner).subscribe(None))
    subject.on_next(1)
    assert 1 == inner.disposed

    late = Probe(1)
    first = reactivex.Subject[Any]()
    leaving = Leaving(lambda: kept[1].dispose(), ends=True)
    kept.append(Flux.concat(first, leaving, late.source).subscribe(None))
    first.on_completed()
    assert 0 == late.subscribed
