"""do_on_next, do_on_error, do_on_complete, do_on_cancel and do_finally: when, in which order, how often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import reactivex

from semflux.operators import (
    SignalType,
    do_finally,
    do_on_cancel,
    do_on_complete,
    do_on_error,
    do_on_next,
    filter_,
    map_,
    take,
)
from tests.operators.watching import END, Probe, error, hooked, item, plain, raising, rx, signals

FAILURE, OTHER = ValueError("first"), TypeError("other")


def test_callbacks_come_before_what_they_look_at() -> None:
    """The item, the error and the end go on after the callback has returned."""
    log: list[Any] = []
    source = plain.of(1).pipe(
        do_on_next(lambda x: log.append(f"next {x}")),
        do_on_error(lambda e: log.append("error?")),
        do_on_complete(lambda: log.append("complete")),
        do_on_cancel(lambda: log.append("cancel?")),
    )
    source.subscribe(log.append, None, lambda: log.append("end"))
    assert ["next 1", 1, "complete", "end"] == log

    log.clear()
    plain.throw(FAILURE).pipe(
        do_on_error(log.append), do_on_complete(lambda: log.append("complete?"))
    ).subscribe(None, lambda e: log.append("told"))
    assert [FAILURE, "told"] == log


def test_do_on_next_that_raises_cancels_the_source_and_is_the_error() -> None:
    """It is no cancel of what is below: do_on_cancel above it hears of it, below it does not."""
    probe, log = Probe(1, 2, 3), list[str]()
    chain = probe.source.pipe(
        do_on_cancel(lambda: log.append("above")),
        do_on_next(raising(FAILURE, at=2)),
        do_on_cancel(lambda: log.append("below")),
    )
    assert [item(1), error(FAILURE)] == signals(chain)
    assert (["above"], 1, [1, 2]) == (log, probe.disposed, probe.emitted)


def test_do_on_error_that_raises_takes_the_place_of_the_error() -> None:
    """The first one stays as its context."""
    assert [error(OTHER)] == signals(plain.throw(FAILURE).pipe(do_on_error(raising(OTHER))))
    assert OTHER.__context__ is FAILURE


def test_do_on_complete_that_raises_is_the_error() -> None:
    """In place of the end."""
    assert [item(1), error(FAILURE)] == signals(plain.of(1).pipe(do_on_complete(raising(FAILURE))))


def test_do_on_cancel_comes_before_the_source_is_told() -> None:
    """Once, and only at a cancel."""
    probe = Probe(1, 2, 3, ends=False)
    log = probe.log = []
    subscription = probe.source.pipe(do_on_cancel(lambda: log.append("callback"))).subscribe(log.append)
    subscription.dispose()
    subscription.dispose()

    assert [1, 2, 3, "callback", "source disposed"] == log


def test_do_on_cancel_that_raises_goes_to_the_hook() -> None:
    """Nobody below listens any more; the source is cancelled all the same."""
    probe = Probe(1, 2)
    with hooked() as dropped:
        assert [item(1), END] == signals(probe.source.pipe(do_on_cancel(raising(FAILURE)), take(1)))
    assert ([FAILURE], 1) == (dropped.errors, probe.disposed)


@pytest.mark.parametrize(
    "source, signal",
    [
        (plain.of(1), SignalType.ON_COMPLETE),
        (plain.throw(FAILURE), SignalType.ON_ERROR),
        (plain.never(), SignalType.CANCEL),
    ],
)
def test_do_finally_is_called_once_with_how_it_ended(source: Any, signal: SignalType) -> None:
    """Whatever comes after, a dispose included."""
    told: list[SignalType] = []
    subscription = source.pipe(do_finally(told.append)).subscribe(lambda _: None, lambda _: None)
    subscription.dispose()
    subscription.dispose()

    assert [signal] == told
    assert signal == str(signal)


def test_do_finally_comes_after_the_signal_and_from_the_bottom_up() -> None:
    """At an end or an error: below first, as it was told first."""
    for source, told in ((plain.of(1), "end"), (plain.throw(FAILURE), "error")):
        log: list[str] = []
        upper, lower, failed, ended = [write(log, word) for word in ("upper", "lower", "error", "end")]
        source.pipe(do_finally(upper), do_finally(lower)).subscribe(None, failed, ended)
        assert [told, "lower", "upper"] == log


def write(log: list[str], word: str) -> Callable[..., None]:
    return lambda *_: log.append(word)


def test_do_finally_comes_after_the_source_was_cancelled() -> None:
    """At a cancel: above first, as it let go first."""
    probe = Probe(1, 2, 3)
    log = probe.log = []
    probe.source.pipe(
        do_finally(lambda _: log.append("upper")),
        map_(lambda x: x),
        do_finally(lambda _: log.append("lower")),
        take(2),
    ).subscribe(log.append, None, lambda: log.append("end"))

    assert [1, "source disposed", "upper", "lower", 2, "end"] == log


def test_do_finally_that_raises_goes_to_the_hook() -> None:
    """The signal has been told already; the others are called."""
    told: list[SignalType] = []
    with hooked() as dropped:
        assert [item(1), END] == signals(
            plain.of(1).pipe(do_finally(told.append), do_finally(raising(FAILURE)))
        )
    assert ([FAILURE], [SignalType.ON_COMPLETE]) == (dropped.errors, told)


def test_do_finally_is_called_even_if_what_is_below_raises() -> None:
    """RxPY lets an observer of its own raise through: the clean-up comes first."""
    told: list[SignalType] = []
    for source in (reactivex.Subject[int](), reactivex.Subject[int]()):
        source.pipe(do_finally(told.append)).subscribe(None, raising(OTHER), raising(OTHER))
        with pytest.raises(TypeError):
            source.on_error(FAILURE) if told else source.on_completed()
    assert [SignalType.ON_COMPLETE, SignalType.ON_ERROR] == told


def test_do_finally_sees_a_failing_function_below_as_a_cancel() -> None:
    """The source was cancelled, since something below it failed."""
    told: list[SignalType] = []
    chain = plain.of(1, 2).pipe(do_finally(told.append), filter_(raising(FAILURE)))
    assert [error(FAILURE)] == signals(chain)
    assert [SignalType.CANCEL] == told


def test_do_finally_above_an_operator_of_rxpy() -> None:
    """RxPY's take completes first and cancels then: still once."""
    told: list[SignalType] = []
    assert [item(1), END] == signals(plain.of(1, 2).pipe(do_finally(told.append), rx.take(1)))
    assert [SignalType.CANCEL] == told


def test_late_signals_call_nobody() -> None:
    """After an end no callback is called again, whatever the source does."""
    log: list[Any] = []
    subject: reactivex.Subject[int] = reactivex.Subject()
    kept: list[Any] = []

    def keep(source: Any) -> Any:
        make = source._make

        def making(below: Any, run: Any) -> Any:
            kept.append(make(below, run))
            return kept[-1]

        source._make = making
        return source

    chain: Any = subject
    chain.pipe(
        do_on_next(log.append),
        keep,
        do_on_error(log.append),
        keep,
        do_on_complete(lambda: log.append("c")),
        keep,
        do_finally(log.append),
        keep,
    ).subscribe(None, None).dispose()
    log.clear()
    for link in kept:
        link.on_next(1)
        link.on_error(FAILURE)
        link.on_completed()
        link.fail(FAILURE)
        link.complete()

    assert [] == log
