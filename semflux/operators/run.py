"""`Run`: what belongs to one subscription, on its way from the subscriber to the source.

It travels in the scheduler that is passed along at subscribe time, since nearly all of RxPY's
operators forward that. A context variable would leak into subscriptions that a callback starts, and
be lost on thread timers.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Protocol, Self, TypeVar

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler, TimeoutScheduler
from reactivex.scheduler.eventloop import AsyncIOThreadSafeScheduler
from reactivex.scheduler.periodicscheduler import PeriodicScheduler

from semflux.clock import Clock, LoopClock
from semflux.errors import SemfluxError
from semflux.events import Abort
from semflux.operators.context import EMPTY, Context
from semflux.state import RunState

T = TypeVar("T")

UNBOUNDED = sys.maxsize
"""A demand that never runs out."""


class Driver(Protocol):
    """The source's side of a run: what pulls bytes and pushes events."""

    @property
    def over(self) -> bool:
        """True once the stream has ended or its subscriber is gone."""
        ...

    def pump(self) -> bool:
        """Push what can be pushed now, as far as demand goes; True if anything was, or nothing is left."""
        ...

    def fill(self) -> Awaitable[None] | None:
        """Get more to push: at once (None), or in what is to be awaited. Called when `pump` gave False."""
        ...

    def start_task(self) -> None:
        """Go on by a task of the running loop, as fast as the source is."""
        ...

    async def released(self) -> None:
        """Wait until what the source holds open is closed, once it is over."""
        ...

    def fail(self, error: SemfluxError) -> None:
        """End the stream with *error*, in order: ends, STEP_END, ERROR, `on_error`."""
        ...

    def abort(self, reason: str) -> None:
        """End the stream with ABORT, in order."""
        ...


class Run:
    """One subscription: its demand, its shared state, and its ways to fail or abort the stream."""

    __slots__ = (
        "__weakref__",
        "alone",
        "asked",
        "clock",
        "context",
        "demand",
        "driver",
        "failed_by",
        "head",
        "is_ahead",
        "is_waiting",
        "pull",
        "scheduler",
        "state",
        "timed",
        "variables",
        "wake",
    )

    def __init__(
        self,
        *,
        demand: int = UNBOUNDED,
        pull: bool = False,
        state: RunState | None = None,
        scheduler: abc.SchedulerBase | None = None,
    ) -> None:
        self.demand: int = demand
        """Events that the subscriber still wants."""
        self.pull: bool = pull
        """True if the subscriber calls the driver itself; else a source that waits needs a task."""
        self.driver: Driver | None = None
        """The source of a stream of ours; None for another observable."""
        self.head: abc.ObserverBase[Any] | None = None
        """The first stage, where failures enter when there is no driver."""
        self.failed_by: object | None = None
        """The operator of ours that has failed the stream; None while none has."""
        self.alone: bool = True
        """False if something else than the driver may push, or end the stream: an operator of RxPY."""
        self.asked: list[Callable[[int], object]] = []
        """Called with how many more items are wanted: the lowest operator's first, before the driver is told."""
        self.is_ahead: bool = False
        """True while an operator has enough that waits for its time: who pulls waits for that, not for the source."""
        self.clock: Clock | None = None
        """The time that its source goes by; None for that of the running loop."""
        self.is_waiting: bool = not pull
        """True while the subscriber wants more: always, for one that is pushed to."""
        self.timed: Callable[[], object] | None = None
        """Called when a subscriber that pulls wants more, for an operator that counts the time until it comes."""
        self.wake: Callable[[], None] | None = None
        """Called when a driver has come, for a subscriber that waits for one."""
        self.context: Context = EMPTY
        """What the subscriber says to what is above it."""
        self.variables: contextvars.Context | None = None
        """Context variables that are set while code above runs; None for those of the caller."""
        self.state: RunState = state or RunState()
        self.scheduler: RunScheduler = RunScheduler(self, scheduler)

    def want(self, demand: int) -> None:
        """From now on *demand* items are wanted."""
        more = demand - self.demand
        self.demand = demand
        if more > 0:
            for asked in tuple(self.asked):
                asked(more)

    def drive(self, driver: Driver) -> None:
        """From now on *driver* is the source."""
        self.driver = driver
        if self.wake is not None:
            self.wake()

    def another(self) -> Run:
        """A run that is pushed to, in the same time, for a source that cannot be the driver of this one."""
        return Run().within(self)

    def undriven(self) -> Run:
        """This one; another, where another source of the subscription (of a merge, of a concat) is driven by it already."""
        return self if self.driver is None else self.another()

    def within(self, run: Run) -> Self:
        """With the context and the time of *run*, on whose behalf it is made."""
        self.clock = run.clock
        self.context = run.context
        self.variables = run.variables
        return self

    def inside(self, function: Callable[..., T], *args: Any) -> T:
        """Call *function* with the context variables of this run. In a copy, since they cannot be entered twice."""
        if self.variables is None:
            return function(*args)
        return self.variables.copy().run(function, *args)

    def go_on(self) -> None:
        """Another source follows: if the one before is over, so is what was of it alone."""
        if self.driver is not None and self.driver.over:
            self.renew(keep_state=False)

    def renew(self, *, keep_state: bool) -> None:
        """Make it ready for another source after one that is over. *keep_state*: the stream goes on, with its ids,
        its order, its steps and its usage; else another one begins."""
        self.driver = None
        self.head = None
        self.failed_by = None
        if not keep_state:
            self.state = RunState()

    def fail(self, error: SemfluxError, by: object | None = None) -> bool:
        """Fail the stream at its first stage; False if it has none and the caller must do it itself. *by*: the
        operator that does; a recovery above it, through which the failure comes, leaves it alone."""
        self.failed_by = by
        if self.driver is not None:
            self.driver.fail(error)
        elif self.head is not None:
            self.head.on_error(error)
        else:
            return False
        return True

    @property
    def ends_in_order(self) -> bool:
        """True if `fail` and `abort` reach a stream of ours that is not over."""
        return self.head is not None if self.driver is None else not self.driver.over

    def abort(self, reason: str) -> None:
        """End the stream with ABORT; without effect on a stream that is not ours or is over."""
        if self.driver is not None:
            self.driver.abort(reason)
        elif self.head is not None:
            # Its events are copied from another stream.
            self.head.on_next(Abort.draft_class(reason, origin=self.state.origin))


class RunScheduler(PeriodicScheduler):
    """Carries a `Run`. At once means the current thread's trampoline; later means the loop, if one runs.

    *base* is a scheduler that the subscriber has chosen: it does all, then.
    """

    def __init__(self, run: Run, base: abc.SchedulerBase | None = None) -> None:
        super().__init__()
        self.run = run
        self._now = base or CurrentThreadScheduler.singleton()
        self._later = base

    @property
    def _timed(self) -> abc.SchedulerBase:
        # One for all of the run: each has a clock of its own.
        if self._later is None:
            try:
                self._later = AsyncIOThreadSafeScheduler(asyncio.get_running_loop())
            except RuntimeError:
                self._later = TimeoutScheduler.singleton()
        return self._later

    @property
    def now(self) -> datetime:
        return self._timed.now

    def schedule(self, action: abc.ScheduledAction[T], state: T | None = None) -> abc.DisposableBase:
        return self._now.schedule(self._within(action), state)

    def _within(self, action: abc.ScheduledAction[T]) -> abc.ScheduledAction[T]:
        if self.run.variables is None:
            return action

        def inside(scheduler: abc.SchedulerBase, state: T | None = None) -> abc.DisposableBase | None:
            return self.run.inside(action, scheduler, state)

        return inside

    def schedule_relative(
        self, duetime: timedelta | float, action: abc.ScheduledAction[T], state: T | None = None
    ) -> abc.DisposableBase:
        return self._timed.schedule_relative(duetime, self._within(action), state)

    def schedule_absolute(
        self, duetime: datetime | float, action: abc.ScheduledAction[T], state: T | None = None
    ) -> abc.DisposableBase:
        return self._timed.schedule_absolute(duetime, self._within(action), state)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread; None where none does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def running_clock() -> Clock | None:
    """The clock of the running event loop; None where none runs."""
    loop = running_loop()
    return None if loop is None else LoopClock(loop)


def run_of(scheduler: abc.SchedulerBase | None) -> Run:
    """The run that *scheduler* carries; else a new one, with unlimited demand, on that scheduler."""
    return scheduler.run if isinstance(scheduler, RunScheduler) else Run(scheduler=scheduler)


__all__ = ("UNBOUNDED", "Driver", "Run", "RunScheduler", "run_of", "running_clock", "running_loop")
