"""The contract of operators, rule by rule. `check_operator` runs them all.

A rule's name is what the report says. It raises `Broken` with what is wrong, or any other exception,
which is as wrong.
"""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from reactivex import abc

from semflux.events import ChatEvent
from semflux.flux import Flux
from semflux.operators.lift import Direct
from semflux.operators.run import Run
from semflux.operators.subject import EventSubject
from semflux.testing.aftermath import watching
from semflux.testing.operator_case import COMPLETE, OperatorCase, Source, Watcher, made_of, must, watch
from semflux.testing.signals import Signal, SignalKind, next_signal

MANY = 10_000
"""Items of the synchronous source that must not end in a RecursionError."""


def _told(signals: Iterable[Signal]) -> str:
    return " ".join([str(signal) for signal in signals]) or "nothing"


def _meaning(items: Iterable[Any]) -> list[Any]:
    # A response has an id of its own in each run.
    return [item.type if isinstance(item, ChatEvent) else item for item in items]


def ends_once(case: OperatorCase) -> None:
    """Exactly one end, when the source completes and when it fails, with items before that and without."""
    for items in (case.items, tuple):
        for end in (COMPLETE, Signal(SignalKind.ERROR, case.failure())):
            watcher = watch(case, Source(items, end))
            must(len(watcher.ends) == 1, f"after {end} of the source there came {_told(watcher.ends)}")
            must(not watcher.breaches, f"after {end} of the source {watcher.breaches[:1]}")
            if end is COMPLETE and not case.ends_early:
                must(watcher.ends == [COMPLETE], f"the source completes, and {_told(watcher.ends)} comes")


def nothing_after_the_end(case: OperatorCase) -> None:
    """A source that goes on after its end, against the rules, is not passed on."""
    for end in (COMPLETE, Signal(SignalKind.ERROR, case.failure())):
        source = Source()
        watcher = watch(case, source)
        items = [next_signal(item) for item in case.items()]
        source.tell(*items, end)
        if not watcher.ends:
            continue  # it recovers, and listens to another source now
        source.tell(*items, Signal(SignalKind.ERROR, case.failure()), COMPLETE, stubborn=True)
        must(not watcher.breaches, "; ".join(watcher.breaches[:2]))


def passes_errors_on(case: OperatorCase) -> None:
    """The source's error comes out: the same object."""
    if case.recovers:
        return
    for before in ([], list(case.items())[:1]):
        failure = case.failure()
        source = Source()
        watcher = watch(case, source)
        source.tell(*[next_signal(item) for item in before])
        if watcher.ends or not source.feeds:
            must(case.ends_early, f"{_told(watcher.ends)} came before the source had ended")
            continue
        source.tell(Signal(SignalKind.ERROR, failure))
        must(watcher.ends and watcher.ends[0].kind is SignalKind.ERROR, f"there came {_told(watcher.ends)}")
        must(
            case.maps_errors or watcher.ends[0].value is failure, f"another error came: {_told(watcher.ends)}"
        )


def _running(case: OperatorCase) -> tuple[Source, Watcher] | None:
    """A subscription that has had one item; None for an operator that is over by then."""
    source = Source()
    watcher = watch(case, source)
    source.tell(*[next_signal(item) for item in list(case.items())[:1]])
    return (source, watcher) if source.feeds and not watcher.over else None


def dispose_reaches_the_source(case: OperatorCase) -> None:
    """Exactly once, before `dispose` returns; a second `dispose` does nothing."""
    running = _running(case)
    if running is not None:
        source, watcher = running
        upstream = watcher.upstream
        watcher.dispose()
        must(source.feeds[0].disposed == 1, f"it was disposed of {source.feeds[0].disposed} times")
        if upstream is not None:
            upstream.dispose()
        must(source.feeds[0].disposed == 1, "a second dispose reached the source too")
        must(not watcher.ends, f"a cancel is no end, and {_told(watcher.ends)} came")


def nothing_after_dispose(case: OperatorCase) -> None:
    """What the source still tells is not passed on."""
    running = _running(case)
    if running is not None:
        source, watcher = running
        must(watcher.upstream is not None, "subscribing gave nothing to dispose of")
        upstream: Any = watcher.upstream
        upstream.dispose()
        had = len(watcher.signals)
        source.tell(*[next_signal(item) for item in case.items()], COMPLETE, stubborn=True)
        must(len(watcher.signals) == had, f"{_told(watcher.signals[had:])} came after dispose")


class _Canceller(Watcher):
    """Disposes of its upstream at one item; not of itself, for it would be deaf then."""

    def __init__(self, source: Source, at: int) -> None:
        super().__init__()
        self._at = at
        self._source = source
        self.disposed: list[int] = []
        """At each cancel, how often the source had been disposed of when it returned; 1 where it had ended."""

    def _keep(self, signal: Signal) -> None:
        super()._keep(signal)
        if not signal.is_terminal and len(self.signals) == self._at and self.upstream is not None:
            self.upstream.dispose()
            self.disposed += [1 if feed.ended else feed.disposed for feed in self._source.feeds]


def dispose_inside_on_next(case: OperatorCase) -> None:
    """A subscriber that disposes of it inside `on_next` gets nothing more, and its source stops."""
    places = range(1, len(list(case.items())) + 1)
    for at, stubborn in itertools.product(places, (False, True)):
        source = Source(case.items, stubborn=stubborn)
        watcher = _Canceller(source, at)
        watcher.subscribe(made_of(case, source), Run())
        if not watcher.disposed:
            continue  # no item came, or all came before subscribing had returned
        must(len(watcher.signals) == at, f"{_told(watcher.signals[at:])} came after dispose at item {at}")
        must(watcher.disposed == [1], f"the source was disposed of {watcher.disposed[0]} times")


def dispose_after_the_end(case: OperatorCase) -> None:
    """It does nothing."""
    source = Source(case.items)
    watcher = watch(case, source)
    before = [feed.disposed for feed in source.feeds]
    if watcher.upstream is not None:
        watcher.upstream.dispose()
    must(not watcher.breaches and len(watcher.ends) == 1, "a dispose after the end was followed by a signal")
    must([feed.disposed for feed in source.feeds] == before, "a dispose after the end reached the source")


def cancels_its_source_before_it_ends(case: OperatorCase) -> None:
    """Where it ends before its source does, the source is disposed of when the end is told."""
    source = Source(case.items)
    early: list[bool] = []
    running: list[bool] = []

    def look(signal: Signal) -> None:
        if signal.is_terminal:
            early.extend([not feed.ended for feed in source.feeds])
            running.extend([not feed.ended and not feed.disposed for feed in source.feeds])

    watch(case, source, look)
    must(
        case.ends_early or not any(early), "it ends before its source does: ends_early=True says that it may"
    )
    must(not any(running), "its source was still running when the end was told")


def _collect(last: weakref.ref[Any]) -> None:
    """Free what only a cycle keeps; slow, and most often there is none."""
    if last() is not None:
        gc.collect()


def lets_go_of_its_source(case: OperatorCase) -> None:
    """After dispose the subscription refers to nothing of its source, whoever keeps the subscription."""
    running = _running(case)
    if running is None:
        return
    source, watcher = running
    kept = watcher.upstream
    feed = weakref.ref(source.feeds[0])
    watcher.dispose()
    source.feeds.clear()
    del source, running, watcher
    _collect(feed)
    must(feed() is None, "the subscription to the source is still referred to after dispose")
    del kept


def lets_go_of_its_subscriber(case: OperatorCase) -> None:
    """After dispose nothing refers to the subscriber, whoever keeps the source."""
    running = _running(case)
    if running is None:
        return
    source, watcher = running
    subscriber = weakref.ref(watcher)
    watcher.dispose()
    for feed in source.feeds:
        feed.let_go()
    del watcher, running
    _collect(subscriber)
    must(subscriber() is None, "the subscriber is still referred to after dispose")


def works_twice(case: OperatorCase) -> None:
    """Two subscriptions get the same, each by a subscription to the source of its own."""
    source = Source(case.items)
    made = made_of(case, source)
    results: list[list[Any]] = []
    for _ in range(2):
        watcher = Watcher()
        watcher.subscribe(made, Run())
        results.append([*_meaning(watcher.items), *[end.kind for end in watcher.ends]])
    must(results[0] == results[1], f"the first gave {results[0]}, the second {results[1]}")
    must(len(source.feeds) in {0, 2} or case.recovers, f"the source was subscribed {len(source.feeds)} times")


def is_serial(case: OperatorCase) -> None:
    """No signal comes inside another one, even where an item brings about the next."""
    subject: EventSubject[Any] = EventSubject()
    rest = [next_signal(item) for item in case.items()]

    def push_next(signal: Signal) -> None:
        if rest:
            subject.on_next(rest.pop(0).value)

    watcher = watch(case, subject, push_next)
    while rest and not watcher.over:
        subject.on_next(rest.pop(0).value)
    subject.on_completed()
    must(watcher.overlaps == 0, f"{watcher.overlaps} signals came inside another one")


def isolates_a_raising_subscriber(case: OperatorCase) -> None:
    """The subscriber whose `on_next` raises gets its own exception; the others see nothing of it."""
    raised = ZeroDivisionError("of a subscriber")

    def raises(item: Any) -> None:
        raise raised

    expected = watch(case, Source(case.items))
    subject: EventSubject[Any] = EventSubject()
    made: Flux[Any] = Flux.from_(made_of(case, subject))
    errors: list[Exception] = []
    items: list[Any] = []
    with watching():
        made.subscribe(raises, errors.append)
        made.subscribe(items.append, lambda error: None)
        for item in case.items():
            subject.on_next(item)
        subject.on_completed()
    must(_meaning(items) == _meaning(expected.items), f"another subscriber got {items}, not {expected.items}")
    if expected.items:
        must(errors == [raised], f"its own on_error got {errors}")


def takes_many_items(case: OperatorCase) -> None:
    """A source that emits 10,000 items at once does not run into Python's recursion limit."""

    def many() -> Iterable[Any]:
        return itertools.islice(itertools.chain.from_iterable(iter(lambda: list(case.items()), None)), MANY)

    watcher = watch(case, Source(many))
    must(len(watcher.ends) == 1, f"there came {_told(watcher.ends)}")
    must(case.ends_early or watcher.ends[0] == COMPLETE, f"there came {_told(watcher.ends)}")


def takes_none(case: OperatorCase) -> None:
    """None is an item like any other."""
    if case.takes_none:
        watcher = watch(case, Source(lambda: (None, None)))
        must(len(watcher.ends) == 1, f"there came {_told(watcher.ends)}")
        must(case.ends_early or watcher.ends[0] == COMPLETE, f"there came {_told(watcher.ends)}")


class _Raising(Direct[Any]):
    def __init__(self, failure: Exception) -> None:
        super().__init__()
        self._failure = failure

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        raise self._failure


def subscribing_returns(case: OperatorCase) -> None:
    """What a source raises when it is subscribed is the stream's error, and not an exception of `subscribe`."""
    watcher = watch(case, _Raising(case.failure()))
    must(len(watcher.ends) == 1, f"there came {_told(watcher.ends)}")


def hands_the_run_on(case: OperatorCase) -> None:
    """The source gets the subscriber's Run: its demand, and its ways to fail and abort."""
    source = Source()
    run = Run()
    Watcher().subscribe(made_of(case, source), run)
    must(case.own_run or all(feed.run is run for feed in source.feeds), "the source got a Run of its own")


RULES: tuple[Callable[[OperatorCase], None], ...] = (
    ends_once,
    nothing_after_the_end,
    passes_errors_on,
    dispose_reaches_the_source,
    nothing_after_dispose,
    dispose_inside_on_next,
    dispose_after_the_end,
    cancels_its_source_before_it_ends,
    lets_go_of_its_source,
    lets_go_of_its_subscriber,
    works_twice,
    is_serial,
    isolates_a_raising_subscriber,
    takes_many_items,
    takes_none,
    subscribing_returns,
    hands_the_run_on,
)
"""All rules, in the order of the report."""

__all__ = (
    "MANY",
    "RULES",
    "cancels_its_source_before_it_ends",
    "dispose_after_the_end",
    "dispose_inside_on_next",
    "dispose_reaches_the_source",
    "ends_once",
    "hands_the_run_on",
    "is_serial",
    "isolates_a_raising_subscriber",
    "lets_go_of_its_source",
    "lets_go_of_its_subscriber",
    "nothing_after_dispose",
    "nothing_after_the_end",
    "passes_errors_on",
    "subscribing_returns",
    "takes_many_items",
    "takes_none",
    "works_twice",
)
