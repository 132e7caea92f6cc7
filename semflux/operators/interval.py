"""`interval`: numbers in time."""

from __future__ import annotations

from typing import Any

from reactivex import Observable, abc

from semflux.clock import Clock, Timer
from semflux.errors import BufferOverflowError
from semflux.operators.lift import Direct, Link
from semflux.operators.run import Run, run_of
from semflux.operators.timing import checked, clock_of


class _TickLink(Link[Any, int]):
    """Counts from its start, so that a late tick makes no other one late."""

    __slots__ = ("_clock", "_count", "_seconds", "_start", "_timer")

    def __init__(self, below: abc.ObserverBase[int], run: Run, clock: Clock, seconds: float) -> None:
        super().__init__(below, run)
        self._clock = clock
        self._seconds = seconds
        self._count = 0
        self._start = clock.monotonic()
        self._timer: Timer = clock.call_later(seconds, self._tick)

    def _tick(self) -> None:
        if self.stopped:
            return
        number = self._count
        if self.run.demand <= 0:
            self.fail(
                BufferOverflowError(
                    f"interval(): number {number} came, and nobody had asked for it; on_backpressure_drop() or "
                    "on_backpressure_latest() lets a slow subscriber miss some"
                )
            )
            return
        self._count = number + 1
        self.below.on_next(number)
        if not self.stopped:
            due = self._start + (number + 2) * self._seconds
            self._timer = self._clock.call_later(max(due - self._clock.monotonic(), 0.0), self._tick)

    def dispose(self) -> None:
        super().dispose()
        self._timer.cancel()


class _Interval(Direct[int]):
    def __init__(self, seconds: float, clock: Clock | None) -> None:
        super().__init__()
        self._seconds = seconds
        self._clock = clock

    def _subscribe_core(
        self, observer: abc.ObserverBase[int], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        return _TickLink(observer, run, clock_of("interval()", self._clock, run), self._seconds)


def interval(seconds: float, *, clock: Clock | None = None) -> Observable[int]:
    """0, 1, 2 and so on, one each *seconds* seconds, the first one after as long. Endless. A number that the subscriber
    has not asked for is a BufferOverflowError. *clock*: the time; default: that of the running loop.

    ```
    interval(2)
    --0--1--2--3
    ```

    Raises:
        ConfigurationError: if *seconds* is not above zero.
    """
    return _Interval(checked("interval", seconds), clock)


__all__ = ("interval",)
