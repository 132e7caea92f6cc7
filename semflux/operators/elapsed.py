"""`elapsed`, `timestamp`, `take_for`, `skip_for`: the time at which items come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.clock import Clock
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.operators.timing import CLOSE, TimedLink, checked, monotonic_of

T = TypeVar("T")


class _SinceLink(Link[Any, Any]):
    """Knows when it was subscribed; needs no timer."""

    __slots__ = ("_clock", "_monotonic", "_since")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, clock: Clock | None) -> None:
        super().__init__(below, run)
        self._clock = clock
        self._monotonic: Callable[[], float] | None = None
        self._since = 0.0

    def connect(self, upstream: abc.DisposableBase) -> None:
        super().connect(upstream)
        self.now()

    def now(self) -> float:
        """Seconds of the clock, which starts at the first call."""
        if self._monotonic is None:
            self._monotonic = monotonic_of(self._clock, self.run)
            self._since = self._monotonic()
        return self._monotonic()


class _ElapsedLink(_SinceLink):
    __slots__ = ()

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        now = self.now()
        passed, self._since = now - self._since, now
        self.below.on_next((passed, value))


class _SkipForLink(_SinceLink):
    __slots__ = ("_seconds",)

    def __init__(self, below: abc.ObserverBase[Any], run: Run, seconds: float, clock: Clock | None) -> None:
        super().__init__(below, run, clock)
        self._seconds = seconds

    def on_next(self, value: Any) -> None:
        if not self.stopped and self.now() - self._since >= self._seconds - CLOSE:
            # What has passed once need not be counted again.
            self._seconds = 0.0
            self.below.on_next(value)


class _TakeForLink(TimedLink):
    __slots__ = ("_seconds",)

    def __init__(self, below: abc.ObserverBase[Any], run: Run, seconds: float, clock: Clock | None) -> None:
        super().__init__(below, run, "take_for", clock)
        self._seconds = seconds

    def begin(self) -> None:
        self.ring_in(self._seconds)

    def take(self, value: Any) -> None:
        self.below.on_next(value)

    def ring(self) -> None:
        self.complete()


def elapsed(*, clock: Clock | None = None) -> Callable[[abc.ObservableBase[T]], Observable[tuple[float, T]]]:
    """Tuples of the seconds since the item before, or since the subscription, and the item. *clock*: gives the time;
    default: that of the source, else the running loop's, else the system's.

    ```
    --1----2--|        elapsed()
    --(2, 1)----(5, 2)--|
    ```
    """
    return lift(lambda below, run: _ElapsedLink(below, run, clock))


def timestamp(
    *, clock: Clock | None = None
) -> Callable[[abc.ObservableBase[T]], Observable[tuple[float, T]]]:
    """Tuples of the time at which an item came, in seconds since 1970, UTC, and the item.
    `datetime.fromtimestamp(seconds, UTC)` makes a date of one. *clock*: gives the time; default: that of the source,
    else the system's.

    ```
    --1----2--|        timestamp()
    --(1700000002.0, 1)----(1700000007.0, 2)--|
    ```
    """

    def make(below: abc.ObserverBase[tuple[float, T]], run: Run) -> Link[T, tuple[float, T]]:
        return _TimestampLink(below, run, clock)

    return lift(make)


class _TimestampLink(Link[Any, Any]):
    __slots__ = ("_clock", "_time")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, clock: Clock | None) -> None:
        super().__init__(below, run)
        self._clock = clock
        self._time: Callable[[], float] | None = None

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        if self._time is None:
            clock = self._clock or self.run.clock
            self._time = time.time if clock is None else clock.time
        self.below.on_next((self._time(), value))


def take_for(
    seconds: float, *, clock: Clock | None = None
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The items of the first *seconds*, then the end; the source is cancelled first. *clock*: gives the time; default:
    that of the source, else the running loop's. (Reactor's `take` of a duration.)

    ```
    --1--2--3--|        take_for(6)
    --1--2|
    ```

    Raises:
        ConfigurationError: if *seconds* is not above zero.
    """
    checked("take_for", seconds)
    return lift(lambda below, run: _TakeForLink(below, run, seconds, clock))


def skip_for(
    seconds: float, *, clock: Clock | None = None
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Without the items of the first *seconds*. (Reactor's `skip` of a duration.)

    ```
    --1--2--3--|        skip_for(6)
    --------3--|
    ```

    Raises:
        ConfigurationError: if *seconds* is not above zero.
    """
    checked("skip_for", seconds)
    return lift(lambda below, run: _SkipForLink(below, run, seconds, clock))


__all__ = ("elapsed", "skip_for", "take_for", "timestamp")
