"""`awaited`: the one item that a coroutine comes to."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.operators.between import Between, Steps
from semflux.operators.lift import Direct, Link
from semflux.operators.run import Run, run_of

T = TypeVar("T")


class _AwaitedLink(Link[Any, T]):
    """The driver of its run waits; what it waits for is one task, which a dispose cancels."""

    __slots__ = ("_between", "_make", "_value")

    def __init__(self, below: abc.ObserverBase[T], run: Run, make: Callable[[], Awaitable[T]]) -> None:
        super().__init__(below, run)
        self._make = make
        self._value: Any = None
        self._between = Between(
            self._steps(), None, self._emit, self.on_error, self._abort, what="from_awaitable()"
        )

    def begin(self) -> None:
        """Start the task."""
        self.run.drive(self._between)
        self._between.go_on()

    def _steps(self) -> Steps:
        yield self._wait()

    async def _wait(self) -> None:
        made = self._make()
        if not inspect.isawaitable(made):
            raise ConfigurationError(
                f"from_awaitable() takes a function that gives something to await, such as an async function; it gave "
                f"{type(made).__name__}: from_callable() takes a plain one"
            )
        self._value = await made

    def _emit(self) -> None:
        value, self._value = self._value, None
        self.below.on_next(value)
        self.on_completed()

    def _abort(self, reason: str) -> None:
        self.on_completed()

    def dispose(self) -> None:
        super().dispose()
        self._between.end()


class _Awaited(Direct[T]):
    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        super().__init__()
        self._make = make

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        link = _AwaitedLink(observer, run_of(scheduler).undriven(), self._make)
        link.begin()
        return link


def awaited(make: Callable[[], Awaitable[T]]) -> Observable[T]:
    """What the awaitable that *make* gives comes to, made anew for each subscriber; then the end. What it raises is the
    error. A dispose cancels it; an iterator's `aclose` waits until it is over.

    ```
    await make()        awaited(make)
    ----------1|
    ```
    """
    return _Awaited(make)


__all__ = ("awaited",)
