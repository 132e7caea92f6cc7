"""`sample`, `throttle_first`, `debounce`: fewer items, by the time between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.clock import Clock
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.operators.timing import CLOSE, TimedLink, checked, monotonic_of

T = TypeVar("T")

_NONE = object()


class _PendingLink(TimedLink):
    """Keeps the newest item until its time; at the end it goes at once."""

    __slots__ = ("_pending", "_seconds")

    def __init__(
        self, below: abc.ObserverBase[Any], run: Run, name: str, seconds: float, clock: Clock | None
    ) -> None:
        super().__init__(below, run, name, clock)
        self._seconds = seconds
        self._pending: Any = _NONE

    def flush(self) -> None:
        """Give what waits."""
        value, self._pending = self._pending, _NONE
        if value is not _NONE:
            self.below.on_next(value)

    def finish(self) -> None:
        self.flush()
        if not self.stopped:
            self.end()

    def dispose(self) -> None:
        self._stop()
        self._pending = _NONE
        super().dispose()


class _SampleLink(_PendingLink):
    """The timer is set only while something waits; it rings where a period ends all the same."""

    __slots__ = ("_start_time",)

    def begin(self) -> None:
        self._start_time = self.now()

    def take(self, value: Any) -> None:
        self._pending = value
        if not self.is_set:
            passed = self.now() - self._start_time
            periods = math.floor((passed + CLOSE) / self._seconds) + 1
            self.ring_in(periods * self._seconds - passed)

    def ring(self) -> None:
        self.flush()


class _DebounceLink(_PendingLink):
    """Items write a time and nothing else; a timer that rings too early is set anew."""

    __slots__ = ("_since",)

    def take(self, value: Any) -> None:
        self._pending = value
        self._since = self.now()
        self.ring_in(self._seconds)

    def ring(self) -> None:
        left = self._since + self._seconds - self.now()
        if left > CLOSE:
            self.ring_in(left)
        else:
            self.flush()


class _ThrottleFirstLink(Link[Any, Any]):
    __slots__ = ("_clock", "_monotonic", "_seconds", "_until")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, seconds: float, clock: Clock | None) -> None:
        super().__init__(below, run)
        self._seconds = seconds
        self._clock = clock
        self._monotonic: Callable[[], float] | None = None
        self._until = -math.inf

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        if self._monotonic is None:
            self._monotonic = monotonic_of(self._clock, self.run)
        now = self._monotonic()
        if now + CLOSE >= self._until:
            self._until = now + self._seconds
            self.below.on_next(value)


def sample(seconds: float, *, clock: Clock | None = None) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The newest item of each period of *seconds*, at its end; nothing where none came. What waits when the source
    completes comes before the end, at an error it is discarded. *clock*: gives the time; default: that of the source,
    else the running loop's.

    ```
    -1-2---3-----4-|        sample(5)
    -----2----3----4|
    ```

    Raises:
        ConfigurationError: if *seconds* is not above zero.
    """
    checked("sample", seconds)
    return lift(lambda below, run: _SampleLink(below, run, "sample", seconds, clock))


def debounce(
    seconds: float, *, clock: Clock | None = None
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """An item goes when no other came for *seconds* after it; one that another follows sooner is dropped. What waits
    when the source completes comes before the end, at an error it is discarded. (Reactor's `sampleTimeout`.)

    ```
    -1-2------3-|        debounce(3)
    ------2-----3|
    ```

    Raises:
        ConfigurationError: if *seconds* is not above zero.
    """
    checked("debounce", seconds)
    return lift(lambda below, run: _DebounceLink(below, run, "debounce", seconds, clock))


def throttle_first(
    seconds: float, *, clock: Clock | None = None
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """An item at once, then none for *seconds*: those are dropped. (Reactor's `sampleFirst`.)

    ```
    -1-2---3-4---|        throttle_first(5)
    -1-----3-----|
    ```

    Raises:
        ConfigurationError: if *seconds* is not above zero.
    """
    checked("throttle_first", seconds)
    return lift(lambda below, run: _ThrottleFirstLink(below, run, seconds, clock))


__all__ = ("debounce", "sample", "throttle_first")
