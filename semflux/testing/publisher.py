"""`TestPublisher`: a source in the test's hand."""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import Any, Generic, TypeVar

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler

from semflux.errors import BufferOverflowError
from semflux.flux import Flux, Mono
from semflux.operators.hooks import Hooks
from semflux.operators.lift import Direct
from semflux.operators.run import UNBOUNDED, Run, run_of
from semflux.testing.probe import Requests
from semflux.testing.signals import Signal, SignalKind, next_signal

T = TypeVar("T")


class Violation(StrEnum):
    """What a `TestPublisher` made by `create_noncompliant` does wrong."""

    REQUEST_OVERFLOW = "REQUEST_OVERFLOW"
    """Emits beyond the demand."""
    CLEANUP_ON_TERMINATE = "CLEANUP_ON_TERMINATE"
    """Keeps its subscribers after an end, and can tell them more: items, another end."""
    DEFER_CANCELLATION = "DEFER_CANCELLATION"
    """Goes on telling a subscriber that has cancelled."""


class _Feed(abc.DisposableBase):
    """One subscription to a publisher."""

    def __init__(self, publisher: TestPublisher[Any], observer: abc.ObserverBase[Any], run: Run) -> None:
        self.publisher = publisher
        self.observer: abc.ObserverBase[Any] | None = observer
        self.requests: Requests = Requests(run)
        self.ended: bool = False

    def tell(self, signal: Signal) -> None:
        observer = self.observer
        if observer is None:
            return
        self.ended = self.ended or signal.is_terminal
        _ = self.requests.total  # looked at before and after, so that what is asked for is seen
        if signal.kind is SignalKind.NEXT:
            observer.on_next(signal.value)
        elif signal.kind is SignalKind.ERROR:
            observer.on_error(signal.value)
        else:
            observer.on_completed()
        _ = self.requests.total

    def replay(self, scheduler: abc.SchedulerBase, state: object = None) -> None:
        self.publisher.replay(self)

    def dispose(self) -> None:
        self.publisher.cancel(self)


class _PublisherSource(Direct[Any]):
    def __init__(self, publisher: TestPublisher[Any]) -> None:
        super().__init__()
        self._publisher = publisher

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        return self._publisher.connect(observer, run_of(scheduler))


class TestPublisher(Generic[T]):
    """A source that emits what the test tells it to, and knows who listens.

    ```python
    publisher = TestPublisher.create()
    StepVerifier.create(publisher.flux().map(str)).then(lambda: publisher.emit(1)).expect_next("1").verify_complete()
    ```

    Signals told from inside a signal come after it. A hot one fails a subscriber with BufferOverflowError
    whose demand is used up when an item is emitted; what a cold one has, it gives at once, as `Flux.just` does.
    """

    __test__ = False  # its name is Reactor's: pytest would collect it

    def __init__(self, *, cold: bool = False, violations: frozenset[Violation] = frozenset()) -> None:
        """Use `create`, `create_cold` or `create_noncompliant`."""
        self._cold = cold
        self._violations = violations
        self._feeds: tuple[_Feed, ...] = ()
        self._all: list[Requests] = []
        self._told: list[Signal] = []
        self._end: Signal | None = None
        self._queue: deque[Signal] = deque()
        self._busy = False
        self.subscribe_count: int = 0
        """Subscriptions so far."""
        self.cancel_count: int = 0
        """Subscriptions that were cancelled before an end."""
        self.overflow_count: int = 0
        """Items that went to a subscriber which had not asked for them."""

    @staticmethod
    def create() -> TestPublisher[Any]:
        """A hot one: a subscriber gets what is emitted while it listens, and the end."""
        return TestPublisher()

    @staticmethod
    def create_cold() -> TestPublisher[Any]:
        """A cold one: each subscriber gets all that was emitted, from the beginning."""
        return TestPublisher(cold=True)

    @staticmethod
    def create_noncompliant(*violations: Violation) -> TestPublisher[Any]:
        """A hot one that breaks these rules of Reactive Streams."""
        return TestPublisher(violations=frozenset(violations))

    def flux(self) -> Flux[T]:
        """The stream of it."""
        return Flux(_PublisherSource(self))

    def mono(self) -> Mono[T]:
        """The same as a Mono, for a publisher that emits one item at most."""
        return Mono(_PublisherSource(self))

    # What subscribers do

    def connect(self, observer: abc.ObserverBase[Any], run: Run) -> abc.DisposableBase:
        """Somebody subscribes."""
        self.subscribe_count += 1
        feed = _Feed(self, observer, run)
        self._all.append(feed.requests)
        if self._cold:
            # From the trampoline, so that it can be cancelled before the first item.
            CurrentThreadScheduler.singleton().schedule(feed.replay)
        else:
            self._join(feed)
        return feed

    def replay(self, feed: _Feed) -> None:
        """Tell a new subscriber what has been emitted, and let it listen from then on."""
        for signal in list(self._told):
            self._tell(feed, signal)
        self._join(feed)

    def _join(self, feed: _Feed) -> None:
        if self._end is not None and Violation.CLEANUP_ON_TERMINATE not in self._violations:
            feed.tell(self._end)
            feed.observer = None
        elif feed.observer is not None:
            self._feeds = (*self._feeds, feed)

    def cancel(self, feed: _Feed) -> None:
        """Somebody cancels."""
        if feed.observer is not None and not feed.ended:
            self._feeds = tuple([each for each in self._feeds if each is not feed])
            self.cancel_count += 1
            if Violation.DEFER_CANCELLATION in self._violations:
                self._feeds = (*self._feeds, feed)
                return
        feed.observer = None

    # What the test does

    def next(self, *items: T) -> TestPublisher[T]:
        """Emit these items."""
        for item in items:
            self._push(next_signal(item))
        return self

    def emit(self, *items: T) -> TestPublisher[T]:
        """Emit these items, then the end."""
        return self.next(*items).complete()

    def error(self, error: Exception) -> TestPublisher[T]:
        """End with *error*."""
        return self._push(Signal(SignalKind.ERROR, error))

    def complete(self) -> TestPublisher[T]:
        """End."""
        return self._push(Signal(SignalKind.COMPLETE))

    def _push(self, signal: Signal) -> TestPublisher[T]:
        self._queue.append(signal)
        if not self._busy:
            self._busy = True
            try:
                while self._queue:
                    self._emit(self._queue.popleft())
            finally:
                self._busy = False
        return self

    def _emit(self, signal: Signal) -> None:
        forgets = Violation.CLEANUP_ON_TERMINATE not in self._violations
        if self._end is not None and forgets:
            if signal.kind is SignalKind.NEXT:
                Hooks.drop_next(signal.value)
            elif signal.kind is SignalKind.ERROR:
                Hooks.drop_error(signal.value)
            return
        feeds = self._feeds
        if signal.is_terminal:
            self._end = signal
            if forgets:
                self._feeds = ()
        else:
            self._told.append(signal)
        for feed in feeds:
            self._tell(feed, signal)
            if signal.is_terminal and forgets:
                feed.observer = None

    def _tell(self, feed: _Feed, signal: Signal) -> None:
        if signal.kind is SignalKind.NEXT and feed.requests.left <= 0:
            self.overflow_count += 1
            if not self._cold and Violation.REQUEST_OVERFLOW not in self._violations:
                self._feeds = tuple([each for each in self._feeds if each is not feed])
                feed.tell(
                    Signal(SignalKind.ERROR, BufferOverflowError("more was emitted than was requested"))
                )
                feed.observer = None
                return
        feed.tell(signal)

    # What the test asks

    @property
    def requested(self) -> int:
        """Items that all subscriptions together have asked for; `UNBOUNDED` where one wants any number."""
        return min(sum([requests.total for requests in self._all]), UNBOUNDED)

    def _check(self, holds: bool, expected: str, actual: object) -> TestPublisher[T]:
        if not holds:
            raise AssertionError(f"expected {expected}, actual {actual}")
        return self

    def assert_subscribers(self, count: int | None = None) -> TestPublisher[T]:
        """So many listen now; None: at least one."""
        actual = len(self._feeds)
        expected = f"{'at least 1' if count is None else count} subscribers"
        return self._check(actual == count if count is not None else actual > 0, expected, actual)

    def assert_no_subscribers(self) -> TestPublisher[T]:
        """Nobody listens now."""
        return self.assert_subscribers(0)

    def assert_was_subscribed(self) -> TestPublisher[T]:
        """Somebody has subscribed."""
        return self._check(self.subscribe_count > 0, "a subscription", "none")

    def assert_cancelled(self, count: int | None = None) -> TestPublisher[T]:
        """So many have cancelled; None: at least one."""
        actual = self.cancel_count
        expected = f"{'at least 1' if count is None else count} cancelled subscriptions"
        return self._check(actual == count if count is not None else actual > 0, expected, actual)

    def assert_not_cancelled(self) -> TestPublisher[T]:
        """Nobody has cancelled."""
        return self.assert_cancelled(0)

    def assert_min_requested(self, count: int) -> TestPublisher[T]:
        """At least so many items were asked for."""
        actual = self.requested
        return self._check(actual >= count, f"a demand of at least {count}", _amount(actual))

    def assert_max_requested(self, count: int) -> TestPublisher[T]:
        """At most so many items were asked for."""
        actual = self.requested
        return self._check(actual <= count, f"a demand of at most {count}", _amount(actual))

    def assert_request_overflow(self) -> TestPublisher[T]:
        """An item went to a subscriber that had not asked for it."""
        return self._check(self.overflow_count > 0, "an item beyond the demand", "none")

    def assert_no_request_overflow(self) -> TestPublisher[T]:
        """No item went to a subscriber that had not asked for it."""
        return self._check(self.overflow_count == 0, "no item beyond the demand", self.overflow_count)


def _amount(count: int) -> str:
    return "an unbounded one" if count >= UNBOUNDED // 2 else str(count)


__all__ = ("TestPublisher", "Violation")
