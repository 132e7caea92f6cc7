"""Where a stream meets its subscriber: callbacks, isolated; or a queue that is pulled from."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler

from semflux.operators.hooks import Hooks
from semflux.operators.lift import subscribe_to
from semflux.operators.run import Run

T = TypeVar("T")


class Edge(abc.ObserverBase[T], abc.DisposableBase):
    """The last observer of a chain: calls the user's functions.

    A function that raises ends this subscription alone: the source is cancelled, then the exception
    goes to the subscriber's own *on_error*, else to `Hooks.on_error_dropped`. Caught here, since seen
    from the Subject it could not be told from a failure of the stream.
    """

    __slots__ = ("_on_completed", "_on_error", "_on_next", "stopped", "upstream")

    def __init__(
        self,
        on_next: Callable[[T], object] | None,
        on_error: Callable[[Exception], object] | None,
        on_completed: Callable[[], object] | None,
    ) -> None:
        self._on_next = on_next
        self._on_error = on_error
        self._on_completed = on_completed
        self.stopped = False
        self.upstream: abc.DisposableBase | None = None

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        if self._on_next is not None:
            try:
                self._on_next(value)
            except Exception as error:
                self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        gone = self.stopped
        self.dispose()
        if gone:
            Hooks.drop_error(error)
        else:
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        if self._on_error is None:
            Hooks.drop_error(error)
            return
        try:
            self._on_error(error)
        except Exception as raised:
            Hooks.drop_error(raised)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self.stopped = True
            self._tell(error)

    def on_completed(self) -> None:
        if self.stopped:
            return
        self.stopped = True
        if self._on_completed is not None:
            try:
                self._on_completed()
            except Exception as error:
                self._tell(error)

    def connect(self, upstream: abc.DisposableBase) -> None:
        """What to dispose of; at once if the subscription is over already."""
        self.upstream = upstream
        if self.stopped:
            upstream.dispose()

    def dispose(self) -> None:
        self.stopped = True
        if self.upstream is not None:
            self.upstream.dispose()


class PullEdge(abc.ObserverBase[T], abc.DisposableBase, Generic[T]):
    """The last observer of a chain that is pulled: keeps what came until it is taken."""

    __slots__ = ("_waiter", "error", "items", "run", "stopped", "upstream")

    def __init__(self, run: Run) -> None:
        self.run = run
        self.items: deque[T] = deque()
        self.error: Exception | None = None
        self.stopped = False
        """True once nothing more will come."""
        self.upstream: abc.DisposableBase | None = None
        self._waiter: asyncio.Future[None] | None = None

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        self.items.append(value)
        self.run.demand -= 1
        self._wake()

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self.error = error
            self.stopped = True
            self._wake()

    def on_completed(self) -> None:
        self.stopped = True
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            waiter.get_loop().call_soon_threadsafe(_resolve, waiter)

    async def wait(self) -> None:
        """Until something comes from a source that pushes by itself."""
        self._waiter = asyncio.get_running_loop().create_future()
        if self.items or self.stopped:
            self._waiter = None
            return
        await self._waiter

    def connect(self, upstream: abc.DisposableBase) -> None:
        """What to dispose of; at once if the subscription is over already."""
        self.upstream = upstream
        if self.stopped:
            upstream.dispose()

    def dispose(self) -> None:
        self.stopped = True
        self.items.clear()
        self._wake()
        if self.upstream is not None:
            self.upstream.dispose()


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def attach(source: abc.ObservableBase[Any], edge: Edge[Any] | PullEdge[Any], run: Run) -> None:
    """Subscribe *edge* to *source*. A synchronous source has emitted everything when this returns, but
    not before the edge could dispose of it: it emits from the trampoline."""

    def subscribe(*_: Any) -> None:
        try:
            edge.connect(subscribe_to(source, edge, run))
        except Exception as error:
            # RxPY hands errors of a subscribe function back to the caller; here they are the stream's.
            if edge.stopped:
                Hooks.drop_error(error)
            else:
                edge.on_error(error)

    trampoline = CurrentThreadScheduler.singleton()
    if trampoline.schedule_required():
        trampoline.schedule(subscribe)
    else:
        subscribe()


__all__ = ("Edge", "PullEdge", "attach")
