"""`Run`: what belongs to one subscription, on its way from the subscriber to the source.

It travels in the scheduler that is passed along at subscribe time, since nearly all of RxPY's
operators forward that. A context variable would leak into subscriptions that a callback starts, and
be lost on thread timers.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler, TimeoutScheduler
from reactivex.scheduler.eventloop import AsyncIOThreadSafeScheduler
from reactivex.scheduler.scheduler import Scheduler

from semflux.errors import SemfluxError
from semflux.state import RunState

T = TypeVar("T")

UNBOUNDED = sys.maxsize
"""A demand that never runs out."""


class Driver(Protocol):
    """The source's side of a run: what pulls bytes and pushes events."""

    over: bool
    """True once the stream has ended or its subscriber is gone."""

    def pump(self) -> bool:
        """Push what can be pushed now, as far as demand goes; True if anything was, or nothing is left."""
        ...

    def fill(self) -> Awaitable[None] | None:
        """Get more to push: at once (None), or in what is to be awaited. Called when `pump` gave False."""
        ...

    def fail(self, error: SemfluxError) -> None:
        """End the stream with *error*, in order: ends, STEP_END, ERROR, `on_error`."""
        ...

    def abort(self, reason: str) -> None:
        """End the stream with ABORT, in order."""
        ...


class Run:
    """One subscription: its demand, its shared state, and its ways to fail or abort the stream."""

    __slots__ = ("demand", "driver", "head", "pull", "scheduler", "state")

    def __init__(self, *, demand: int = UNBOUNDED, pull: bool = False, state: RunState | None = None) -> None:
        self.demand = demand
        """Events that the subscriber still wants."""
        self.pull = pull
        """True if the subscriber calls the driver itself; else a source that waits needs a task."""
        self.driver: Driver | None = None
        """The source of a stream of ours; None for another observable."""
        self.head: abc.ObserverBase[Any] | None = None
        """The first stage, where failures enter when there is no driver."""
        self.state = state or RunState()
        self.scheduler = RunScheduler(self)

    def fail(self, error: SemfluxError) -> bool:
        """Fail the stream at its first stage; False if it has none and the caller must do it itself."""
        if self.driver is not None:
            self.driver.fail(error)
        elif self.head is not None:
            self.head.on_error(error)
        else:
            return False
        return True

    def abort(self, reason: str) -> None:
        """End the stream with ABORT; without effect on a stream that is not ours or is over."""
        if self.driver is not None:
            self.driver.abort(reason)


class RunScheduler(Scheduler):
    """Carries a `Run`. At once means the current thread's trampoline; later means the loop, if one runs."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run

    def schedule(self, action: abc.ScheduledAction[T], state: T | None = None) -> abc.DisposableBase:
        return CurrentThreadScheduler.singleton().schedule(action, state)

    def schedule_relative(
        self, duetime: timedelta | float, action: abc.ScheduledAction[T], state: T | None = None
    ) -> abc.DisposableBase:
        return _timed().schedule_relative(duetime, action, state)

    def schedule_absolute(
        self, duetime: datetime | float, action: abc.ScheduledAction[T], state: T | None = None
    ) -> abc.DisposableBase:
        return _timed().schedule_absolute(duetime, action, state)


def _timed() -> abc.SchedulerBase:
    import asyncio  # the loop is only asked for by a timed operator of RxPY, in the thread that it runs in

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return TimeoutScheduler.singleton()
    return AsyncIOThreadSafeScheduler(loop)


def run_of(scheduler: abc.SchedulerBase | None) -> Run:
    """The run that *scheduler* carries; a new one, with unlimited demand, if it carries none."""
    return scheduler.run if isinstance(scheduler, RunScheduler) else Run()


__all__ = ("UNBOUNDED", "Driver", "Run", "RunScheduler", "run_of")
