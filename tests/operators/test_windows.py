"""The windows: where they are cut, who may read them, and what becomes of them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import reactivex

from semflux import ChatEventType, Flux
from semflux.clock import VirtualClock
from semflux.errors import (
    AlreadyConsumedError,
    BufferOverflowError,
    ConfigurationError,
)
from semflux.operators import part, window, window_timeout
from semflux.operators.delivery import Room
from tests.frames import DONE, cc
from tests.operators.watching import END, Probe, Watcher, error, item, raising, watch

T = ChatEventType
FAILURE = ValueError("mine")
ANSWER = b"".join([cc({"content": f"{n} "}) for n in range(40)]) + cc(finish="stop") + DONE


class Windows(Watcher):
    """Subscribes to each window as it comes."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        self.windows: list[Watcher] = []
        self.subscription = source.subscribe(self)

    def on_next(self, value: Any) -> None:
        self.windows.append(watch(value))

    @property
    def told(self) -> list[list[Any]]:
        return [each.signals for each in self.windows]


def lists(source: Flux[Flux[Any]]) -> list[Any]:
    return watch(source.concat_map(lambda each: each.collect_list())).items


def subject() -> reactivex.Subject[Any]:
    return reactivex.Subject()


# Where they are cut


def test_windows_are_cut_by_number_and_by_condition() -> None:
    """The last one ends with the source; none is empty."""
    assert [[1, 2], [3]] == lists(Flux.just(1, 2, 3).window(2))
    assert [[1, 2], [3]] == lists(Flux.just(1, 2, 3).window_until(lambda x: x == 2))
    assert [[1, 2]] == lists(Flux.just(1, 2).window_until(lambda x: x == 2))
    assert [[1], [2, 3]] == lists(Flux.just(1, 2, 3).window_until(lambda x: x == 2, cut_before=True))
    assert [[1, 2], [3]] == lists(Flux.just(0, 1, 2, 0, 0, 3).window_while(lambda x: x > 0))
    assert [[1, 1], [None], [2]] == lists(Flux.just(1, 1, None, 2).window_until_changed())
    assert [["a", "b"], ["cc"]] == lists(Flux.just("a", "b", "cc").window_until_changed(len))
    assert [] == lists(Flux.empty().window(2))
    with pytest.raises(ConfigurationError, match=r"window\(0\)"):
        window(0)


def test_a_window_comes_with_its_first_item_and_ends_with_its_last() -> None:
    source = subject()
    seen = Windows(Flux.from_(source).window(2))
    assert [] == seen.windows
    source.on_next(1)
    assert [[item(1)]] == seen.told
    source.on_next(2)
    assert [[item(1), item(2), END]] == seen.told
    source.on_completed()
    assert ([END], 1) == (seen.signals, len(seen.windows))


def test_the_time_of_a_window_begins_with_its_first_item() -> None:
    """An idle stream gives none; a full one leaves no timer; it may be read after it has ended."""
    clock, source = VirtualClock(), subject()
    seen = Windows(Flux.from_(source).window_timeout(2, 1.0, clock=clock))
    clock.advance(10)
    assert [] == seen.windows
    source.on_next(1)
    clock.advance(1.0)
    source.on_next(2)
    source.on_next(3)
    assert [[item(1), END], [item(2), item(3), END]] == seen.told
    assert 0 == clock.pending
    source.on_next(4)
    source.on_completed()
    assert ([item(4), END], [END], 0) == (seen.told[-1], seen.signals, clock.pending)


def test_window_timeout_minds_its_timer_and_its_arguments() -> None:
    """A window that outlives its stream ends by the time; with it goes the source."""
    clock, probe = VirtualClock(), Probe(1, ends=False)
    seen = Windows(Flux.from_(probe.source).window_timeout(9, 1.0, clock=clock))
    seen.subscription.dispose()
    assert (0, 1) == (probe.disposed, clock.pending)
    clock.advance(1.0)
    assert (1, [[item(1), END]], 0) == (probe.disposed, seen.told, clock.pending)
    failing = Windows(Flux.just(1).concat_with(Flux.error(FAILURE)).window_timeout(9, 1.0, clock=clock))
    assert ([error(FAILURE)], 0) == (failing.signals, clock.pending)
    assert isinstance(watch(Flux.just(1).window_timeout(2, 1)).error, ConfigurationError)
    for wrong in ((0, 1), (1, 0)):
        with pytest.raises(ConfigurationError, match="above zero"):
            window_timeout(*wrong)


# Who may read them


def test_a_window_holds_its_items_until_its_subscriber_comes() -> None:
    """Its end, too; and it has one subscriber."""
    source = subject()
    watcher = watch(Flux.from_(source).window(2))
    source.on_next(None)
    first = watcher.items[0]
    early = watch(first)
    source.on_next(2)
    source.on_next(3)
    source.on_error(FAILURE)
    assert [item(None), item(2), END] == early.signals
    assert [item(3), error(FAILURE)] == watch(watcher.items[1]).signals
    assert isinstance(watch(first).error, AlreadyConsumedError)


def test_a_subscriber_may_leave_a_window_that_holds_many() -> None:
    """At any of the items that waited for it."""
    windows = watch(Flux.just(1, 2, 3).window(3)).items
    assert [item(1), END] == watch(windows[0].take(1)).signals


def test_a_subscriber_that_raises_leaves_its_window_alone() -> None:
    source, told = subject(), list[Any]()
    watcher = watch(Flux.from_(source).window(2))
    source.on_next(1)
    watcher.items[0].subscribe(raising(FAILURE), told.append)
    for value in (2, 3):
        source.on_next(value)
    assert ([FAILURE], 2) == (told, len(watcher.items))


def test_the_items_of_a_window_that_was_left_are_dropped() -> None:
    """Up to its end; the next one begins where it would have."""
    source = subject()
    seen = Windows(Flux.from_(source).window(3).map(lambda each: each.take(1)))
    for value in range(4):
        source.on_next(value)
    assert [[item(0), END], [item(3), END]] == seen.told


def test_a_window_that_nobody_can_read_any_more_holds_nothing() -> None:
    """It was not subscribed to, and nothing refers to it."""
    source, held = subject(), list[Any]()
    Flux.from_(source).window(99).subscribe(lambda _: None)

    class Item:
        pass

    def tell() -> None:
        value = Item()
        held.append(weakref.ref(value))
        source.on_next(value)

    for _ in range(3):
        tell()
    gc.collect()
    assert [None, None, None] == [each() for each in held]


def test_a_window_fails_if_it_would_hold_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone: the others and the stream of windows go on."""
    monkeypatch.setattr(part, "HELD", Room(items=3))
    source = subject()
    watcher = watch(Flux.from_(source).window(5))
    for value in range(8):
        source.on_next(value)
    source.on_completed()
    assert isinstance(watch(watcher.items[0]).error, BufferOverflowError)
    assert [item(5), item(6), item(7), END] == watch(watcher.items[1]).signals


# What becomes of them


def test_an_error_is_that_of_the_window_and_of_the_stream() -> None:
    """Of the window first; what the predicate raises cancels the source before."""
    log: list[Any] = []
    probe = Probe(1, 2)
    probe.log = log

    def look(each: Flux[Any]) -> None:
        each.subscribe(log.append, lambda failed: log.append(("window", failed)))

    Flux.from_(probe.source).window_while(raising(FAILURE, at=2)).subscribe(
        look, lambda failed: log.append(("stream", failed))
    )
    assert [1, "source disposed", ("window", FAILURE), ("stream", FAILURE)] == log


def test_a_window_outlives_the_stream_of_windows() -> None:
    """Up to its end: then the source is cancelled, and no window comes any more."""
    probe = Probe(1, 2, 3, 4, 5)
    assert [item([1, 2, 3]), END] == watch(
        Flux.from_(probe.source).window(3).take(1).flat_map(lambda each: each.collect_list())
    ).signals
    assert ([1, 2, 3], 1) == (probe.emitted, probe.disposed)


def test_the_source_is_cancelled_when_the_stream_and_its_window_are_left() -> None:
    """In any order, and not before."""
    for first in (0, 1):
        source, subscriptions = subject(), list[Any]()
        subscriptions.append(
            Flux.from_(source)
            .window(9)
            .subscribe(lambda each, kept=subscriptions: kept.append(each.subscribe()))  # type: ignore[misc]
        )
        source.on_next(1)
        subscriptions[first].dispose()
        assert 1 == len(source.observers)
        subscriptions[1 - first].dispose()
        assert [] == source.observers


def test_a_window_without_a_subscriber_keeps_the_source_as_long_as_somebody_may_come() -> None:
    """Then it is cancelled, and the window's error or end is nobody's."""
    source = subject()
    watcher = Watcher()
    subscription = Flux.from_(source).window(9).subscribe(watcher)
    source.on_next(1)
    subscription.dispose()
    source.on_next(2)
    assert ([1], 1) == ([len(watcher.items)], len(source.observers))
    watcher.signals.clear()
    gc.collect()
    assert [] == source.observers


def test_an_error_after_the_stream_was_left_is_that_of_the_window() -> None:
    source = subject()
    seen = Windows(Flux.from_(source).window(9))
    source.on_next(1)
    seen.subscription.dispose()
    source.on_error(FAILURE)
    assert ([], [[item(1), error(FAILURE)]]) == (seen.signals, seen.told)
