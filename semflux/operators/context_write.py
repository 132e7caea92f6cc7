"""`context_write`: what is above sees more in its `Context`."""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import partial
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.errors import SemfluxError
from semflux.operators.context import Context
from semflux.operators.lift import NOTHING, Lifted, PassLink, subscribe_to
from semflux.operators.run import Driver, Run, RunScheduler, run_of

T = TypeVar("T")


def _shared(name: str) -> Any:
    def get(run: _ContextRun) -> Any:
        return getattr(run.base, name)

    def put(run: _ContextRun, value: Any) -> None:
        setattr(run.base, name, value)

    return property(get, put)


class _ContextRun(Run):
    """The run of what is above a `context_write`: all is that of *base*, but the context.

    So what subscribes later, on behalf of its own run, sees its own context: a retry, the inner sources of a flat_map.
    """

    __slots__ = ("base",)

    alone = _shared("alone")
    asked = _shared("asked")
    clock = _shared("clock")
    demand = _shared("demand")
    driver = _shared("driver")
    failed_by = _shared("failed_by")
    head = _shared("head")
    is_ahead = _shared("is_ahead")
    is_waiting = _shared("is_waiting")
    pull = _shared("pull")
    state = _shared("state")
    timed = _shared("timed")
    wake = _shared("wake")

    # Not that of `Run`, which would write to the base.
    def __init__(self, base: Run, context: Context) -> None:
        self.base = base
        self.context = context
        self.variables = base.variables
        own: list[contextvars.ContextVar[Any]] = [
            key for key in context if isinstance(key, contextvars.ContextVar)
        ]
        if own:
            self.variables = contextvars.copy_context()
            for key in own:
                self.variables.run(key.set, context[key])
        self.scheduler = RunScheduler(self, base.scheduler)

    def drive(self, driver: Driver) -> None:
        variables = self.variables
        self.base.drive(driver if variables is None else _Within(driver, variables))


class _Within:
    """A driver whose source runs with the context variables of its run, whoever drives it."""

    def __init__(self, driver: Driver, variables: contextvars.Context) -> None:
        self._driver = driver
        self._variables = variables
        self.waits: bool = getattr(driver, "waits", True)
        self.pushes: bool = getattr(driver, "pushes", False)

    @property
    def over(self) -> bool:
        """True once the stream has ended or its subscriber is gone."""
        return self._driver.over

    def pump(self) -> bool:
        """Push what can be pushed now."""
        # A copy, since a context cannot be entered twice; what is set in it is not kept.
        return self._variables.copy().run(self._driver.pump)

    def fill(self) -> Awaitable[None] | None:
        """Get more to push."""
        variables = self._variables.copy()
        waiting = variables.run(self._driver.fill)
        return None if waiting is None else _Steps(waiting, variables)

    def start_task(self) -> None:
        """Go on by a task of the running loop."""
        self._variables.copy().run(self._driver.start_task)

    async def released(self) -> None:
        """Wait until what the source holds open is closed."""
        await self._driver.released()

    def fail(self, error: SemfluxError) -> None:
        """End the stream with *error*."""
        self._driver.fail(error)

    def abort(self, reason: str) -> None:
        """End the stream with ABORT."""
        self._driver.abort(reason)


class _Steps:
    """What is to be awaited, each step of it within some context variables, in the task that awaits it."""

    def __init__(self, waiting: Awaitable[None], variables: contextvars.Context) -> None:
        self._waiting = waiting
        self._variables = variables

    def __await__(self) -> Generator[Any, Any, None]:
        run = self._variables.run
        steps: Any = run(self._waiting.__await__)
        step: Callable[[], Any] = partial(next, steps)
        while True:
            try:
                waits_for = run(step)
            except StopIteration:
                return
            try:
                yield waits_for
                step = partial(next, steps)
            except BaseException as error:  # a cancel among them: it is for what is awaited
                step = partial(steps.throw, error)


class _ContextWrite(Lifted[T]):
    def __init__(self, source: abc.ObservableBase[Any], change: Callable[[Context], Context]) -> None:
        super().__init__(source, PassLink)
        self._change = change

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        try:
            above = _ContextRun(run, self._change(run.context))
        except Exception as error:
            observer.on_error(error)
            return NOTHING
        link = PassLink(observer, above)
        link.connect(subscribe_to(self.source, link, above))
        return link


def context_write(
    change: Mapping[Any, Any] | Callable[[Context], Context],
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """What is above sees *change* in its context: a mapping that is added, or a function of the context that is. What
    is below sees nothing of it; of several the nearest to the source has the last word. If the function raises, that is
    the error.

    A key that is a `contextvars.ContextVar` is set, too, while code above runs: factories, functions of `create`, the
    transport of a model, and the tasks that are made there.
    """
    if isinstance(change, Mapping):
        given: Any = change  # pyright: ignore[reportUnknownVariableType]  # narrowed to one of nothing known
        values = Context(given)
        return lambda source: _ContextWrite(source, lambda context: context.put_all(values))
    function: Callable[[Context], Context] = change
    return lambda source: _ContextWrite(source, function)


__all__ = ("context_write",)
