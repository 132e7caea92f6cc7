"""Virtual time for a verification: a clock that tells what falls due next, and RxPY's scheduler over it."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from reactivex import abc
from reactivex.disposable import Disposable
from reactivex.scheduler import CurrentThreadScheduler
from reactivex.scheduler.periodicscheduler import PeriodicScheduler

from semflux.clock import Clock, VirtualClock

T = TypeVar("T")


class SteppedClock(VirtualClock):
    """A virtual clock that can go from one timer to the next, so that what a timer wakes can run at its time."""

    __slots__ = ()

    @property
    def next_due(self) -> float | None:
        """When the next timer falls due, by `monotonic()`; None if there is none."""
        return min([timer.when for timer in self._timers if timer.fn is not None], default=None)

    def advance_to(self, when: float) -> None:
        """Let time pass until `monotonic()` is *when*."""
        self.advance(max(when - self._now, 0.0))
        while self._now < when:
            # The difference of two floats, added again, may fall short of the sum.
            self.advance(max(when - self._now, math.ulp(when)))


class ClockScheduler(PeriodicScheduler):
    """RxPY's timed operators on a `Clock`. At once means the current thread's trampoline."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.time(), UTC)

    def schedule(self, action: abc.ScheduledAction[T], state: T | None = None) -> abc.DisposableBase:
        return CurrentThreadScheduler.singleton().schedule(action, state)

    def schedule_relative(
        self, duetime: timedelta | float, action: abc.ScheduledAction[T], state: T | None = None
    ) -> abc.DisposableBase:
        seconds = max(self.to_seconds(duetime), 0.0)
        timer = self._clock.call_later(seconds, self.invoke_action, action, state)
        return Disposable(timer.cancel)

    def schedule_absolute(
        self, duetime: datetime | float, action: abc.ScheduledAction[T], state: T | None = None
    ) -> abc.DisposableBase:
        return self.schedule_relative(self.to_seconds(duetime) - self._clock.time(), action, state)


__all__ = ("ClockScheduler", "SteppedClock")
