"""What the rules of operators look through: a source that counts, and a subscriber that hides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler

from semflux.flux import ChatStream
from semflux.operators.lift import Direct
from semflux.operators.run import Run, run_of
from semflux.testing.signals import Signal, SignalKind, next_signal
from semflux.testing.subscriptions import Recorder, bare

COMPLETE = Signal(SignalKind.COMPLETE)
"""The end without an error."""


class Broken(Exception):  # noqa: N818  # not an error of anybody's: how a rule says no
    """A rule is broken; the text says how."""


@attrs.frozen(kw_only=True)
class OperatorCase:
    """An operator, and in what it may differ."""

    make: Callable[[Any], Any]
    """From a source to the stream with the operator on it."""
    items: Callable[[], Iterable[Any]]
    """Fresh items that it can take."""
    failure: Callable[[], Exception]
    """A fresh error for its source to fail with."""
    ends_early: bool = False
    """It may end before its source does, with an error too."""
    holds_items: bool = False
    """It may keep items, and give them later, or something else at the end."""
    recovers: bool = False
    """It may go on after an error of its source."""
    maps_errors: bool = False
    """It may give another error than its source's."""
    takes_none: bool = True
    """None is an item like any other."""
    own_run: bool = False
    """It subscribes with a Run of its own."""


class Feed(abc.DisposableBase):
    """One subscription to a source of these rules."""

    def __init__(self, observer: abc.ObserverBase[Any], run: Run) -> None:
        self.observer: abc.ObserverBase[Any] | None = observer
        self.run: Run | None = run
        self.disposed: int = 0
        """How often it was disposed of before its end."""
        self.ended: bool = False
        """True once it has told an end."""

    def tell(self, signal: Signal, *, stubborn: bool = False) -> None:
        """Tell the observer; *stubborn*: even after an end, or after a dispose."""
        observer = self.observer
        if observer is None or (not stubborn and (self.disposed or self.ended)):
            return
        if signal.kind is SignalKind.NEXT:
            observer.on_next(signal.value)
            return
        self.ended = True
        if signal.kind is SignalKind.ERROR:
            observer.on_error(signal.value)
        else:
            observer.on_completed()

    def dispose(self) -> None:
        if not self.ended:
            self.disposed += 1

    def let_go(self) -> None:
        """Refer to nothing of the subscription any more: what a source does that is over."""
        self.observer = self.run = None


class Source(Direct[Any]):
    """A source without a wrapper: cold over *items* and *end*, or in the rule's hand where *items* is None."""

    def __init__(
        self,
        items: Callable[[], Iterable[Any]] | None = None,
        end: Signal | None = COMPLETE,
        *,
        stubborn: bool = False,
    ) -> None:
        super().__init__()
        self._items = items
        self._end = end
        self._stubborn = stubborn
        self.feeds: list[Feed] = []
        """Its subscriptions."""

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        feed = Feed(observer, run_of(scheduler))
        self.feeds.append(feed)
        if self._items is not None:
            items = self._items()

            def emit(*_: Any) -> None:
                for item in items:
                    if feed.disposed and not self._stubborn:
                        return
                    feed.tell(next_signal(item), stubborn=self._stubborn)
                if self._end is not None:
                    feed.tell(self._end, stubborn=self._stubborn)

            CurrentThreadScheduler.singleton().schedule(emit)
        return feed

    def tell(self, *signals: Signal, stubborn: bool = False) -> None:
        """Tell all subscriptions."""
        for signal in signals:
            for feed in self.feeds:
                feed.tell(signal, stubborn=stubborn)


class Stream(ChatStream):
    """The source as operators get it: with all methods, and nothing between it and an operator of ours."""

    def subscribe(self, on_next: Any = None, *rest: Any, **named: Any) -> abc.DisposableBase:
        return self._observable.subscribe(on_next, *rest, **named)

    def subscribe_link(self, observer: abc.ObserverBase[Any], run: Run) -> abc.DisposableBase:
        """As `Direct.subscribe_link`."""
        source: Any = self._observable
        disposable: abc.DisposableBase = source.subscribe_link(observer, run)
        return disposable


Direct.register(Stream)


class Watcher(Recorder):
    """A subscriber that keeps all, and does something at each signal."""

    def __init__(self, react: Callable[[Signal], None] | None = None) -> None:
        super().__init__(self._keep)
        self._react = react
        self._depth = 0
        self.overlaps: int = 0
        """Signals that came inside another one."""
        self.signals: list[Signal] = []
        """What came."""

    def _keep(self, signal: Signal) -> None:
        self.signals.append(signal)
        self._depth += 1
        self.overlaps += self._depth > 1
        try:
            if self._react is not None:
                self._react(signal)
        finally:
            self._depth -= 1

    @property
    def items(self) -> list[Any]:
        """The items."""
        return [signal.value for signal in self.signals if signal.kind is SignalKind.NEXT]

    @property
    def ends(self) -> list[Signal]:
        """The ends: one at most, else something is wrong."""
        return [signal for signal in self.signals if signal.is_terminal]


def made_of(case: OperatorCase, source: abc.ObservableBase[Any]) -> abc.ObservableBase[Any]:
    """The operator on *source*, without the edge of a Flux."""
    return bare(case.make(Stream(source)))


def watch(
    case: OperatorCase, source: abc.ObservableBase[Any], react: Callable[[Signal], None] | None = None
) -> Watcher:
    """Subscribe to the operator on *source*."""
    watcher = Watcher(react)
    watcher.subscribe(made_of(case, source), Run())
    return watcher


def must(holds: object, text: str) -> None:
    """Raises Broken with *text* unless it *holds*."""
    if not holds:
        raise Broken(text)


__all__ = (
    "COMPLETE",
    "Broken",
    "Feed",
    "OperatorCase",
    "Source",
    "Stream",
    "Watcher",
    "made_of",
    "must",
    "watch",
)
