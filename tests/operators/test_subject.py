"""The Subject: one order for all, isolation of those who raise, late signals to the hooks."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from semflux.flux import Flux
from semflux.operators import EventSubject, Hooks, map_, take
from tests.operators.watching import END, Watcher, error, hooked, item, raising, rx, watch


def test_all_observers_see_the_same_in_the_same_order() -> None:
    """An emission from inside an emission comes after it, for those before the emitter and those behind."""
    subject: EventSubject[int] = EventSubject()
    first = watch(subject)
    subject.subscribe(lambda value: subject.on_next(value * 10) if value < 100 else None)
    last = watch(subject)

    subject.on_next(1)
    subject.on_next(2)

    assert [1, 10, 100, 2, 20, 200] == first.items == last.items


def test_an_end_from_inside_an_emission_comes_after_it() -> None:
    """What was emitted before it comes first, what after it goes to the hooks."""
    subject: EventSubject[int] = EventSubject()
    late = ValueError("late")

    def more(value: int) -> None:
        if value == 1:
            subject.on_next(2)
            subject.on_completed()
            subject.on_next(3)
            subject.on_error(late)
            subject.on_completed()

    subject.subscribe(more)
    seen = watch(subject)
    with hooked() as dropped:
        subject.on_next(1)

    assert [item(1), item(2), END] == seen.signals
    assert ([3], [late]) == (dropped.items, dropped.errors)


def test_an_error_from_inside_an_emission_comes_after_it() -> None:
    """The same for `on_error`."""
    subject: EventSubject[int] = EventSubject()
    failure = ValueError("x")
    subject.subscribe(lambda _: subject.on_error(failure), lambda _: None)
    seen = watch(subject)

    subject.on_next(1)

    assert [item(1), error(failure)] == seen.signals


def test_any_number_of_emissions_may_wait() -> None:
    """Ten thousand emissions from inside one are delivered in a loop, not in a recursion."""
    subject: EventSubject[int] = EventSubject()

    def more(value: int) -> None:
        if value == 0:
            for each in range(1, 10_001):
                subject.on_next(each)

    subject.subscribe(more)
    seen = watch(subject)
    subject.on_next(0)

    assert list(range(10_001)) == seen.items


def test_an_observer_that_raises_is_removed_and_the_others_see_all() -> None:
    """Its own `on_error` gets the exception; those before and behind it see nothing of it."""
    subject: EventSubject[int] = EventSubject()
    failure = ValueError("mine")

    class Raising(Watcher):
        def on_next(self, value: Any) -> None:
            super().on_next(value)
            raise failure

    first, raising_one, last = watch(subject), Raising(), Watcher()
    Flux(subject).subscribe(raising_one.on_next, raising_one.on_error)
    Flux(subject).subscribe(last.on_next, last.on_error, last.on_completed)
    for each in (1, 2):
        subject.on_next(each)
    subject.on_completed()

    assert [item(1), error(failure)] == raising_one.signals
    assert [item(1), item(2), END] == first.signals == last.signals


def test_a_subscriber_of_rxpy_that_raises_is_told() -> None:
    """Its own `on_error` gets the exception; the hook does where it has let go of its subscription before."""
    subject: EventSubject[int] = EventSubject()
    failure, gone, told = ValueError("mine"), ValueError("gone"), list[Exception]()
    later: list[Any] = []

    def leave(value: int) -> None:
        later[0].dispose()
        raise gone

    subject.subscribe(raising(failure), told.append)
    later.append(subject.subscribe(leave, told.append))
    seen = watch(subject)
    with hooked() as dropped:
        subject.on_next(1)
        subject.on_next(2)

    assert ([gone], [failure]) == (dropped.errors, told)
    assert [1, 2] == seen.items


def test_an_observer_that_raises_in_a_waiting_emission_is_removed_too() -> None:
    """The second way of emitting is as careful as the first."""
    subject: EventSubject[int] = EventSubject()
    failure = ValueError("x")
    subject.subscribe(lambda value: subject.on_next(2) if value == 1 else None)
    subject.pipe(map_(raising(failure, at=2))).subscribe(raising(failure, at=2), lambda _: None)
    raw = Raw(failure)
    subject._subscribe_core(raw)
    seen = watch(subject)

    subject.on_next(1)
    subject.on_next(3)

    assert [1, 2, 3] == seen.items
    assert [failure] == raw.errors


class Raw(Watcher):
    """An observer without any care of its own."""

    def __init__(self, raised: Exception, *, again: Exception | None = None) -> None:
        super().__init__()
        self.raised = raised
        self.again = again
        self.errors: list[Exception] = []

    def on_next(self, value: Any) -> None:
        if value != 1:
            raise self.raised

    def on_error(self, error: Exception) -> None:
        self.errors.append(error)
        if self.again is not None:
            raise self.again

    def on_completed(self) -> None:
        raise self.raised


def test_what_an_observer_raises_at_its_end_goes_to_the_hook() -> None:
    """In `on_error` after it raised, in `on_error`, and in `on_completed`; the others are told the end."""
    first, again = ValueError("first"), ValueError("again")
    with hooked() as dropped:
        subject: EventSubject[int] = EventSubject()
        subject._subscribe_core(Raw(first, again=again))
        subject.on_next(2)
    assert [again] == dropped.errors

    for end, expected in ((lambda s: s.on_error(first), again), (lambda s: s.on_completed(), first)):
        ending: EventSubject[int] = EventSubject()
        ending._subscribe_core(Raw(first, again=again))
        seen = watch(ending)
        with hooked() as dropped:
            end(ending)
        assert [expected] == dropped.errors
        assert len(seen.signals) == 1


def test_late_signals_go_to_the_hooks() -> None:
    """An item and an error after the end; a second end says nothing new."""
    subject: EventSubject[int] = EventSubject()
    seen = watch(subject)
    failure = ValueError("late")
    subject.on_completed()
    with hooked() as dropped:
        subject.on_next(1)
        subject.on_error(failure)
        subject.on_completed()

    assert [END] == seen.signals
    assert ([1], [failure]) == (dropped.items, dropped.errors)


@pytest.mark.parametrize("failure", [None, ValueError("x")], ids=["end", "error"])
def test_who_subscribes_after_the_end_is_told_how_it_ended(failure: Exception | None) -> None:
    """At once, and with the same error."""
    subject: EventSubject[int] = EventSubject()
    if failure is None:
        subject.on_completed()
    else:
        subject.on_error(failure)

    assert watch(subject).signals == [END if failure is None else error(failure)]
    assert not subject.has_observers


def test_dispose_drops_all_observers_without_a_word() -> None:
    """Waiting emissions go with them."""
    subject: EventSubject[int] = EventSubject()
    seen = watch(subject)

    def stop(value: int) -> None:
        subject.on_next(value + 1)
        subject.dispose()

    subject.subscribe(stop)
    behind = watch(subject)
    subject.on_next(1)

    assert [item(1)] == seen.signals == behind.signals
    assert subject.is_disposed
    assert not subject.has_observers


def test_a_subscription_is_disposed_of_once_and_for_all() -> None:
    """Idempotent; the others go on."""
    subject: EventSubject[int] = EventSubject()
    mine, other = Watcher(), watch(subject)
    subscription = subject._subscribe_core(mine)
    subject.on_next(1)
    subscription.dispose()
    subscription.dispose()
    subject.on_next(2)

    assert [1] == mine.items
    assert [1, 2] == other.items
    assert subject.has_observers


def test_who_leaves_during_an_emission_sees_no_more_of_it() -> None:
    """Even if its turn in that emission is still to come."""
    subject: EventSubject[int] = EventSubject()
    seen = Watcher()
    later: list[Any] = []
    subject.subscribe(lambda _: later[0].dispose())
    later.append(Flux(subject).subscribe(seen.on_next))
    subject.on_next(1)

    assert [] == seen.signals


def tenfold(value: int) -> int:
    return value * 10


def test_it_works_with_operators_of_rxpy_and_of_ours() -> None:
    """`pipe(...)` as on any Subject."""
    subject: EventSubject[int] = EventSubject()
    seen = watch(subject.pipe(rx.map(lambda x: x + 1), map_(tenfold), rx.filter(lambda x: x != 30), take(2)))
    for each in (1, 2, 3, 4):
        subject.on_next(each)

    assert [item(20), item(40), END] == seen.signals
    assert not subject.has_observers


def test_the_default_hooks_log_nothing_but_the_class(caplog: pytest.LogCaptureFixture) -> None:
    """The text of an error may quote a provider, an item a prompt."""
    caplog.set_level(logging.DEBUG, logger="semflux")
    Hooks.drop_error(ValueError("canary"))
    Hooks.drop_next("canary")

    assert ["ERROR", "DEBUG"] == [record.levelname for record in caplog.records]
    assert "ValueError" in caplog.text
    assert "canary" not in caplog.text


def test_a_hook_that_raises_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    """`drop_error` and `drop_next` are called where nobody could take an exception."""
    Hooks.on_error_dropped(raising(ValueError("canary")))
    Hooks.on_next_dropped(raising(ValueError("canary")))
    try:
        Hooks.drop_error(TypeError("x"))
        Hooks.drop_next(1)
    finally:
        Hooks.on_error_dropped(None)
        Hooks.on_next_dropped(None)

    assert [
        "a hook for dropped errors raised ValueError",
        "a hook for dropped items raised ValueError",
    ] == caplog.messages
