"""The buffers, distinct, materialize, do_first and its kin."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex

from semflux import Flux
from semflux.clock import VirtualClock
from semflux.errors import ConfigurationError
from semflux.operators import Signal, buffer, buffer_timeout
from tests.operators.watching import END, Probe, error, hooked, item, raising, signals, watch

FAILURE, OTHER = ValueError("mine"), ValueError("mine")


def flux(*items: Any) -> Flux[Any]:
    return Flux.just(*items)


def lists(source: Any) -> list[Any]:
    return watch(source).items


def test_buffers_cut_by_number_and_by_condition() -> None:
    """The last list comes at the end; an empty one never."""
    assert [[1, 2], [3]] == lists(flux(1, 2, 3).buffer(2))
    assert [[1, 2], [3]] == lists(flux(1, 2, 3).buffer_until(lambda x: x == 2))
    assert [[1], [2, 3]] == lists(flux(1, 2, 3).buffer_until(lambda x: x == 2, cut_before=True))
    assert [[1, 2], [3]] == lists(flux(0, 1, 2, 0, 0, 3).buffer_while(lambda x: x > 0))
    assert [[1, 1], [None], [2]] == lists(flux(1, 1, None, 2).buffer_until_changed())
    assert [["a", "b"], ["cc"]] == lists(flux("a", "b", "cc").buffer_until_changed(len))
    assert [END] == signals(Flux.empty().buffer(2))
    with pytest.raises(ConfigurationError, match=r"buffer\(0\)"):
        buffer(0)


def test_an_error_discards_the_list() -> None:
    """It is told alone."""
    failing = flux(1, 2, 3).concat_with(Flux.error(FAILURE))
    assert [item([1, 2]), error(FAILURE)] == signals(failing.buffer(2))
    assert [error(FAILURE)] == signals(failing.buffer_timeout(9, 1, clock=VirtualClock()))
    assert [error(FAILURE)] == signals(flux(1).buffer_until(raising(FAILURE)))


def test_a_subscriber_may_leave_at_a_list_that_an_item_cut() -> None:
    """The item that cut it comes no more."""
    assert [item([1]), END] == signals(flux(1, 2, 3).buffer_until(lambda x: x == 2, cut_before=True).take(1))


def test_buffer_timeout_counts_from_the_first_item_of_a_list() -> None:
    """An idle stream gives nothing; a full list leaves no timer; the rest comes at the end."""
    clock, subject = VirtualClock(), reactivex.Subject[Any]()
    watcher = watch(Flux.from_(subject).buffer_timeout(2, 1.0, clock=clock))
    clock.advance(10)
    assert [] == watcher.signals
    subject.on_next(1)
    clock.advance(1.0)
    assert [[1]] == watcher.items
    clock.advance(0.5)
    subject.on_next(2)
    clock.advance(0.5)
    subject.on_next(3)
    assert ([[1], [2, 3]], 0) == (watcher.items, clock.pending)
    subject.on_next(4)
    subject.on_completed()
    assert ([[1], [2, 3], [4]], END, 0) == (watcher.items, watcher.signals[-1], clock.pending)


def test_buffer_timeout_forgets_its_list_at_a_dispose() -> None:
    """And its timer."""
    clock, subject, told = VirtualClock(), reactivex.Subject[Any](), list[Any]()
    subscription = Flux.from_(subject).buffer_timeout(2, 1.0, clock=clock).subscribe(told.append)
    subject.on_next(1)
    subscription.dispose()
    clock.advance(2)
    assert ([], 0) == (told, clock.pending)


class Stubborn(VirtualClock):
    """A clock whose timers ring although they were cancelled, as a thread's may."""

    def call_later(self, delay: float, fn: Any, *args: Any) -> Any:
        super().call_later(delay, fn, *args)
        return super().call_later(1e9, fn)


def test_a_timer_that_rings_late_does_not_cut_the_next_list() -> None:
    """It was the one before that it was for."""
    clock, subject = Stubborn(), reactivex.Subject[Any]()
    watcher = watch(Flux.from_(subject).buffer_timeout(2, 1.0, clock=clock))
    for value in (1, 2):
        subject.on_next(value)
    clock.advance(0.5)
    subject.on_next(3)
    clock.advance(0.5)
    assert [[1, 2]] == watcher.items


def test_buffer_timeout_needs_a_clock_and_bounds_above_zero() -> None:
    assert isinstance(watch(flux(1).buffer_timeout(2, 1)).error, ConfigurationError)
    for wrong in ((0, 1), (1, 0)):
        with pytest.raises(ConfigurationError, match="above zero"):
            buffer_timeout(*wrong)


async def test_buffer_timeout_counts_by_the_running_loop() -> None:
    assert [[1, 2], [3]] == await flux(1, 2, 3).buffer_timeout(2, 60).collect_list()


def test_distinct_and_distinct_until_changed() -> None:
    """By themselves, or by a key; anew for each subscription."""
    made = flux(1, 2, 1, 2, 3).distinct()
    assert [1, 2, 3] == lists(made) == lists(made)
    assert ["a", "bb"] == lists(flux("a", "b", "bb").distinct(len))
    assert [1, 2, 1, None] == lists(flux(1, 1, 2, 1, None, None).distinct_until_changed())
    assert ["a", "bb", "c"] == lists(flux("a", "b", "bb", "c").distinct_until_changed(len))


def test_signals_of_errors_are_equal_if_they_are_the_same_object() -> None:
    """RxPY's compare texts."""
    assert Signal.of_error(FAILURE) == Signal.of_error(FAILURE)
    assert Signal.of_error(FAILURE) != Signal.of_error(OTHER)
    assert (True, True, True) == (
        Signal.of_next(None).is_next,
        Signal.of_error(FAILURE).is_error,
        Signal.of_complete().is_complete,
    )


def test_materialize_and_back() -> None:
    """An end of the signals is the end."""
    failing = flux(1).concat_with(Flux.error(FAILURE))
    assert [item(Signal.of_next(1)), item(Signal.of_error(FAILURE)), END] == signals(failing.materialize())
    assert [item(1), error(FAILURE)] == signals(failing.materialize().dematerialize())
    probe = Probe(Signal.of_next(None), Signal.of_complete(), Signal.of_next(2))
    assert [item(None), END] == signals(Flux.from_(probe.source).dematerialize())
    assert 1 == probe.disposed
    subject, told = reactivex.Subject[Any](), list[Any]()
    subscription = Flux.from_(subject).materialize().subscribe(told.append)
    subscription.dispose()
    subject.on_next(1)
    assert [] == told


def test_do_on_each_sees_all_signals_before_they_go_on() -> None:
    """What it raises is the error, which it sees too."""
    log: list[Any] = []
    flux(1).do_on_each(log.append).subscribe(log.append, None, lambda: log.append("end"))
    assert [Signal.of_next(1), 1, Signal.of_complete(), "end"] == log
    log.clear()

    def picky(signal: Signal[Any]) -> None:
        log.append(signal)
        if signal.is_next:
            raise FAILURE

    assert [error(FAILURE)] == signals(flux(1).do_on_each(picky))
    assert Signal.of_error(FAILURE) == log[-1]


def test_do_first_runs_from_the_bottom_up_before_the_source_is_subscribed_to() -> None:
    """do_on_subscribe comes after it, from the top down."""
    log: list[str] = []
    source = reactivex.defer(lambda _: log.append("source") or reactivex.of(1))  # type: ignore[func-returns-value]
    (
        Flux.from_(source)
        .do_first(lambda: log.append("upper first"))
        .do_on_subscribe(lambda: log.append("upper subscribed"))
        .do_first(lambda: log.append("lower first"))
        .do_on_subscribe(lambda: log.append("lower subscribed"))
        .subscribe(lambda x: log.append(f"item {x}"))
    )
    assert ["lower first", "upper first", "source", "upper subscribed", "lower subscribed", "item 1"] == log


def test_do_on_subscribe_comes_once_even_where_the_source_ends_at_once() -> None:
    """Before the end; what either raises is the error."""
    for source in (Flux.empty(), Flux.error(FAILURE), flux(1)):
        log: list[Any] = []
        watched = source.do_on_subscribe(lambda: log.append("begin"))  # noqa: B023  # called in this turn
        watched.subscribe(log.append, log.append)
        assert ["begin"] == log[:1]
        assert 1 == log.count("begin")
    probe = Probe(1)
    assert [error(FAILURE)] == signals(Flux.from_(probe.source).do_first(raising(FAILURE)))
    assert 0 == probe.subscribed
    assert [error(FAILURE)] == signals(Flux.from_(probe.source).do_on_subscribe(raising(FAILURE)))
    assert 1 == probe.disposed


def test_terminate_callbacks_come_before_and_after_the_end_and_not_at_a_cancel() -> None:
    for source in (flux(1), Flux.error(FAILURE)):
        log: list[str] = []
        watched = source.do_on_terminate(lambda: log.append("before")).do_after_terminate(  # noqa: B023
            lambda: log.append("after")  # noqa: B023
        )
        watched.subscribe(None, lambda _: log.append("end"), lambda: log.append("end"))  # noqa: B023
        assert ["before", "end", "after"] == log
    log = []
    silent = flux(1, 2).do_on_terminate(lambda: log.append("?")).do_after_terminate(lambda: log.append("?"))
    assert [item(1), END] == signals(silent.take(1))
    assert [] == log


def test_a_terminate_callback_that_raises() -> None:
    """Before: it is the error. After: it goes to the hook."""
    assert [item(1), error(FAILURE)] == signals(flux(1).do_on_terminate(raising(FAILURE)))
    with hooked() as dropped:
        assert [item(1), END] == signals(flux(1).do_after_terminate(raising(FAILURE)))
    assert [FAILURE] == dropped.errors


def test_transform_names_a_chain() -> None:
    assert [[2, 3]] == lists(flux(1, 2).transform(lambda s: s.map(lambda x: x + 1).buffer(2)))
