"""`delay_elements`, `delay_subscription`, `delay_until`: the same items, later."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from semflux.clock import Clock
from semflux.errors import ConfigurationError
from semflux.events import Error
from semflux.operators.inner import Inner, MapLink
from semflux.operators.lift import Lifted, PassLink, lift, subscribe_to
from semflux.operators.run import Run, run_of
from semflux.operators.timing import CLOSE, TimedLink, checked, clock_of

T = TypeVar("T")


class _DelayLink(TimedLink):
    """The timer is set for the first of what waits, and set anew when that goes."""

    __slots__ = ("_done", "_seconds", "_waiting")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, seconds: float, clock: Clock | None) -> None:
        super().__init__(below, run, "delay_elements", clock)
        self._seconds = seconds
        self._waiting: deque[tuple[float, Any]] = deque()
        self._done = False

    def take(self, value: Any) -> None:
        self._waiting.append((self.now() + self._seconds, value))
        self.ring_in(self._seconds)

    def finish(self) -> None:
        self._done = True
        self._end_if_over()

    def ring(self) -> None:
        waiting = self._waiting
        now = self.now() + CLOSE
        while waiting and waiting[0][0] <= now:
            self.below.on_next(waiting.popleft()[1])
            if self.stopped:
                return
        if waiting:
            self.ring_in(waiting[0][0] - self.now())
        self._end_if_over()

    def _fail(self, error: Exception) -> None:
        waiting = self._waiting
        if waiting and isinstance(waiting[-1][1], Error):
            while waiting and not self.stopped:
                self.below.on_next(waiting.popleft()[1])
        self._waiting = deque()
        super()._fail(error)

    def _end_if_over(self) -> None:
        if self._done and not self._waiting:
            self.end()

    def dispose(self) -> None:
        self._stop()
        # Not cleared: a timer on another thread may be inside.
        self._waiting = deque()
        super().dispose()


def delay_elements(
    seconds: float, *, clock: Clock | None = None
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Each item *seconds* later than it came, in order; the end after the last one. An error is not delayed, and what
    waits then is discarded; but in a stream of chat events that ends with ERROR what waits comes at once, ERROR last,
    so that the order of events holds. *clock*: gives the time; default: that of the source, else the running loop's.

    ```
    --1-2----3--|        delay_elements(3)
    -----1-2----3|
    ```

    Raises:
        ConfigurationError: if *seconds* is not above zero.
    """
    checked("delay_elements", seconds)
    return lift(lambda below, run: _DelayLink(below, run, seconds, clock))


class _DelaySubscription(Lifted[T]):
    def __init__(
        self, source: abc.ObservableBase[Any], until: float | abc.ObservableBase[Any], clock: Clock | None
    ) -> None:
        super().__init__(source, PassLink)
        self._until = until
        self._clock = clock

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        link = PassLink(observer, run)
        until = self._until

        def begin() -> None:
            if not link.stopped:
                link.upstream = None
                link.connect(subscribe_to(self.source, link, run))

        if isinstance(until, abc.ObservableBase):

            def first(inner: Inner, value: Any = None) -> None:
                inner.dispose()
                begin()

            inner = Inner(first, lambda inner, error: link.on_error(error), first)
            link.upstream = inner
            inner.begin(until, run)
            return link
        # There before the timer is, which may ring on another thread.
        link.upstream = waiting = SingleAssignmentDisposable()
        try:
            timer = clock_of("delay_subscription()", self._clock, run).call_later(until, begin)
        except ConfigurationError as error:
            link.on_error(error)
        else:
            waiting.disposable = Disposable(timer.cancel)
        return link


def delay_subscription(
    until: float | abc.ObservableBase[Any], *, clock: Clock | None = None
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The source is subscribed to after *until* seconds; or when *until*, a stream, gives its first item or completes,
    and is cancelled then. An error of that stream is the error.

    ```
           --1--2--|        delay_subscription(4)
    ------1--2--|
    ```

    Raises:
        ConfigurationError: if the seconds are not above zero.
    """
    if not isinstance(until, abc.ObservableBase):
        checked("delay_subscription", until)
    return lambda source: _DelaySubscription(source, until, clock)


class _DelayUntilLink(MapLink):
    """One item at a time waits for its stream; the others wait for it."""

    __slots__ = ("_done", "_inner", "_item", "_waiting")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, function: Callable[[Any], Any]) -> None:
        super().__init__(below, run, function)
        self._inner: Inner | None = None
        self._item: Any = None
        self._waiting: deque[Any] = deque()
        self._done = False

    def _source_failed(self, error: Exception) -> None:
        waiting, inner = self._waiting, self._inner
        if inner is not None and isinstance(waiting[-1] if waiting else self._item, Error):
            self._inner = None
            inner.dispose()
            waiting.appendleft(self._item)
            while waiting and not self.stopped:
                self.below.on_next(waiting.popleft())
        self.cut(error)

    def _source_ended(self) -> None:
        self._done = True
        self._end_if_over()

    def _take(self, value: Any) -> None:
        if self.stopped:
            return
        if self._inner is not None:
            self._waiting.append(value)
            return
        source = self.source_of(value)
        if not self.stopped:
            self._item = value
            self._inner = inner = self.new_inner()
            self.begin(inner, source)

    def _inner_gave(self, inner: Inner, value: Any) -> None:
        inner.dispose()
        self._inner_ended(inner)

    def _inner_ended(self, inner: Inner) -> None:
        if self.stopped or inner is not self._inner:
            return
        item, self._item, self._inner = self._item, None, None
        self.below.on_next(item)
        if self._waiting and not self.stopped:
            self._take(self._waiting.popleft())
        self._end_if_over()

    def _end_if_over(self) -> None:
        if self._done and self._inner is None and not self._waiting and not self.stopped:
            self._stop()
            self.below.on_completed()

    def dispose(self) -> None:
        self._stop()
        self._waiting.clear()
        inner, self._inner = self._inner, None
        super().dispose()
        if inner is not None:
            inner.dispose()


def delay_until(
    function: Callable[[T], abc.ObservableBase[Any]],
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Each item waits until the stream that *function* gives for it has its first item, or completes; in order, so that
    *function* is called when the item before has gone. An error of such a stream, and what *function* raises, is the
    error; an error of the source is not delayed. Where that follows an ERROR event, what waits comes first, at once.

    ```
    --1-2------|        delay_until(lambda x: Mono of 2 s)
    ----1-2----|
    ```
    """
    return lift(lambda below, run: _DelayUntilLink(below, run, function))


__all__ = ("delay_elements", "delay_subscription", "delay_until")
