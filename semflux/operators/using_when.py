"""`using_when`: a resource that is opened and closed by waiting."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeGuard, TypeVar, overload

import attrs
from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.operators.between import Between, Steps
from semflux.operators.closing import Closing, dropped
from semflux.operators.inner import Inner, unwrapped
from semflux.operators.lift import Direct, Link, subscribe_to
from semflux.operators.map import map_
from semflux.operators.run import Run, run_of, running_loop

T = TypeVar("T")
R = TypeVar("R")

_SUPPRESSED = object()
"""What a clean-up gives if the error is none any more."""


@attrs.frozen
class _Lease:
    """An open resource, and the three ways to close it; each gives something to await, or has done it."""

    resource: Any
    complete: Callable[[], Any]
    error: Callable[[Exception], Any]
    cancel: Callable[[], Any]


class _WhenLink(Link[Any, Any]):
    """Opens, then subscribes, then closes; an end goes down when the clean-up has ended."""

    __slots__ = ("_between", "_inner", "_lease", "_loop", "_make")

    def __init__(
        self, below: abc.ObserverBase[Any], run: Run, make: Callable[[Any], abc.ObservableBase[Any]]
    ) -> None:
        super().__init__(below, run)
        self._make = make
        self._lease: _Lease | None = None
        self._between: Between | None = None
        self._inner: Inner | None = None
        self._loop = running_loop()

    # Opening

    def open_from(self, source: abc.ObservableBase[_Lease]) -> None:
        """Get the resource from a stream."""
        self._inner = inner = Inner(self._come, self._refused, self._empty)
        inner.connect(subscribe_to(source, inner, self.run))

    def open_by(self, opening: Callable[[], Awaitable[_Lease]]) -> None:
        """Get the resource by waiting."""
        self._between = between = Between(
            self._steps(opening), None, self._begin, self.on_error, self._abort, what="using_when()"
        )
        self.run.drive(between)
        between.go_on()

    def _steps(self, opening: Callable[[], Awaitable[_Lease]]) -> Steps:
        yield self._enter(opening)

    async def _enter(self, opening: Callable[[], Awaitable[_Lease]]) -> None:
        # Taken in the very step in which it comes: who leaves just then must not leave it open.
        self._take(await opening())

    def _take(self, lease: _Lease) -> None:
        if self.stopped:
            self._close_unseen(lease)
        else:
            self._lease = lease

    def _come(self, inner: Inner, lease: _Lease) -> None:
        inner.dispose()
        self._take(lease)
        self._begin()

    def _refused(self, inner: Inner, error: Exception) -> None:
        super().on_error(error)

    def _empty(self, inner: Inner) -> None:
        super().on_completed()

    def _abort(self, reason: str) -> None:
        self.on_completed()

    def _begin(self) -> None:
        lease, run = self._lease, self.run
        if lease is None:
            return
        self._between = self._inner = None
        run.go_on()
        try:
            source = self._make(lease.resource)
        except Exception as error:
            self.on_error(error)
        else:
            self.connect(subscribe_to(unwrapped(source), self, run))

    # Passing on

    def on_next(self, value: Any) -> None:
        if self._lease is not None and not self.stopped:
            self.below.on_next(value)

    # Closing

    def on_error(self, error: Exception) -> None:
        lease = self._give_back()
        if lease is not None:
            self._close(lambda: lease.error(error), error)
        elif self._between is not None:
            super().on_error(error)

    def on_completed(self) -> None:
        lease = self._give_back()
        if lease is not None:
            self._close(lease.complete, None)
        elif self._between is not None:
            super().on_completed()

    def _give_back(self) -> _Lease | None:
        lease, self._lease = self._lease, None
        self.upstream = None
        return lease

    def _close(self, clean: Callable[[], Any], error: Exception | None) -> None:
        def done(result: Any, raised: Exception | None) -> None:
            self._closed(error, result, raised)

        closing = Closing(self.run.driver, clean, done, super().on_error)
        self._start(closing)

    def _closed(self, error: Exception | None, result: Any, raised: Exception | None) -> None:
        if self.stopped:
            dropped(result, raised)
        elif raised is not None:
            if error is not None and raised is not error:
                raised.__context__ = error
            super().on_error(raised)
        elif error is None or result is _SUPPRESSED:
            super().on_completed()
        else:
            super().on_error(error)

    def dispose(self) -> None:
        if self._between is not None:
            self._between.end()
        if self._inner is not None:
            self._inner.dispose()
        super().dispose()
        lease = self._give_back()
        if lease is not None:
            self._close_unseen(lease)

    def _close_unseen(self, lease: _Lease) -> None:
        """Nobody listens any more."""
        self._start(Closing(self.run.driver, lease.cancel, dropped))

    def _start(self, closing: Closing) -> None:
        """In the loop that it was subscribed to in, whoever's thread this is."""
        self.run.drive(closing)
        if self._loop is not None and running_loop() is not self._loop:
            with contextlib.suppress(RuntimeError):  # the loop is closed: what can be done without it, is
                self._loop.call_soon_threadsafe(closing.start)
                return
        closing.start()


class _UsingWhen(Direct[T]):
    def __init__(
        self, open_: Callable[[_WhenLink], None], make: Callable[[Any], abc.ObservableBase[T]]
    ) -> None:
        super().__init__()
        self._open = open_
        self._make = make

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        link = _WhenLink(observer, run_of(scheduler).undriven(), self._make)
        self._open(link)
        return link


@overload
def using_when(
    resource: Callable[[], AbstractAsyncContextManager[R]], make: Callable[[R], abc.ObservableBase[T]]
) -> Observable[T]: ...
@overload
def using_when(
    resource: Callable[[], Awaitable[R]] | abc.ObservableBase[R],
    make: Callable[[R], abc.ObservableBase[T]],
    complete: Callable[[R], object],
    error: Callable[[R, Exception], object] | None = None,
    cancel: Callable[[R], object] | None = None,
) -> Observable[T]: ...
def using_when(
    resource: Any,
    make: Callable[[Any], abc.ObservableBase[T]],
    complete: Callable[[Any], object] | None = None,
    error: Callable[[Any, Exception], object] | None = None,
    cancel: Callable[[Any], object] | None = None,
) -> Observable[T]:
    """The stream that *make* gives for a resource that is opened and closed by waiting, anew for each subscription.

    *resource* is an async function, or a stream, whose first item it is: without one there is only the end. After the
    stream has completed *complete* gets it; after an error *error*, with that error; after a cancel *cancel*; default:
    *complete*. These may be async. Or *resource* gives an async context manager, and no clean-up is told: a cancel is a
    `CancelledError` for it.

    An end or an error goes down when its clean-up has ended; what that raises is the error then, with that of the
    stream as its `__context__`. After a cancel the clean-up goes on in a task that nothing cancels, and an iterator's
    `aclose` waits for it; what it raises goes to `Hooks.on_error_dropped`. A source that has something to close itself
    has done so before.

    ```
    await open() --1--2--|                        using_when(open, make, close)
                 --1--2-- await close() --|
    ```

    Raises:
        ConfigurationError: if *error* or *cancel* is given without *complete*.
    """
    if complete is not None:
        opening = _opened_by(resource, complete, error, cancel)
    elif error is None and cancel is None:
        opening = _entered(resource)
    else:
        raise ConfigurationError(
            "using_when(): give the clean-up *complete* too, or a context manager and none"
        )
    return _UsingWhen(opening, make)


def _opened_by(
    resource: Any,
    complete: Callable[[Any], object],
    error: Callable[[Any, Exception], object] | None,
    cancel: Callable[[Any], object] | None,
) -> Callable[[_WhenLink], None]:
    def lease(value: Any) -> _Lease:
        return _Lease(
            value,
            lambda: complete(value),
            lambda failure: complete(value) if error is None else error(value, failure),
            lambda: complete(value) if cancel is None else cancel(value),
        )

    async def come() -> _Lease:
        found = resource()
        if not inspect.isawaitable(found):
            raise ConfigurationError(
                "using_when() takes an async function, a stream, or a function that gives an async context manager; "
                f"this one gave {type(found).__name__}: using() takes what is there at once"
            )
        return lease(await found)

    if _is_stream(resource):
        leases = map_(lease)(unwrapped(resource))
        return lambda link: link.open_from(leases)
    return lambda link: link.open_by(come)


def _is_stream(resource: object) -> TypeGuard[abc.ObservableBase[Any]]:
    return isinstance(resource, abc.ObservableBase)


def _is_manager(found: object) -> TypeGuard[AbstractAsyncContextManager[Any]]:
    return isinstance(found, AbstractAsyncContextManager)


def _entered(resource: Callable[[], Any]) -> Callable[[_WhenLink], None]:
    async def enter() -> _Lease:
        manager = resource()
        if not _is_manager(manager):
            raise ConfigurationError(
                "using_when() without clean-ups takes a function that gives an async context manager; this one gave "
                f"{type(manager).__name__}"
            )
        leave = manager.__aexit__

        async def fail(error: Exception) -> object:
            return _SUPPRESSED if await leave(type(error), error, error.__traceback__) else None

        async def cancel() -> None:
            cancelled = asyncio.CancelledError()
            try:
                await leave(type(cancelled), cancelled, None)
            except asyncio.CancelledError as raised:
                if raised is not cancelled:
                    raise

        return _Lease(await manager.__aenter__(), lambda: leave(None, None, None), fail, cancel)

    return lambda link: link.open_by(enter)


__all__ = ("using_when",)
