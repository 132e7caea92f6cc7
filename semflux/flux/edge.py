"""Where a stream meets its subscriber: callbacks, isolated; or a queue that is pulled from."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, cast

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler

from semflux.operators.hooks import Hooks
from semflux.operators.lift import Attached, subscribe_to
from semflux.operators.run import Run
from semflux.operators.waking import wake

T = TypeVar("T")


class Edge(abc.ObserverBase[T], Attached):
    """The last observer of a chain: calls the user's functions.

    A function that raises ends this subscription alone: the source is cancelled, then the exception
    goes to the subscriber's own *on_error*, else to `Hooks.on_error_dropped`. Caught here, since seen
    from the Subject it could not be told from a failure of the stream.
    """

    __slots__ = ("_on_completed", "_on_error", "_on_next")

    def __init__(
        self,
        on_next: Callable[[T], object] | None,
        on_error: Callable[[Exception], object] | None,
        on_completed: Callable[[], object] | None,
    ) -> None:
        super().__init__()
        self._on_next = on_next
        self._on_error = on_error
        self._on_completed = on_completed

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        if self._on_next is not None:
            try:
                self._on_next(value)
            except Exception as error:
                self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        # None if it has disposed of itself, and raised then.
        on_error = self._on_error
        self.dispose()
        self._tell(on_error, error)

    @staticmethod
    def _tell(on_error: Callable[[Exception], object] | None, error: Exception) -> None:
        if on_error is None:
            Hooks.drop_error(error)
            return
        try:
            on_error(error)
        except Exception as raised:
            Hooks.drop_error(raised)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            on_error = self._on_error
            self._let_go()
            self._tell(on_error, error)

    def on_completed(self) -> None:
        if self.stopped:
            return
        on_completed = self._on_completed
        self._let_go()
        if on_completed is not None:
            try:
                on_completed()
            except Exception as error:
                # It has been told the end: another one would be a second.
                Hooks.drop_error(error)

    def _let_go(self) -> abc.DisposableBase | None:
        self._on_next = self._on_error = self._on_completed = None
        return super()._let_go()


def edge_of(
    on_next: Callable[[T], object] | abc.ObserverBase[T] | None,
    on_error: Callable[[Exception], object] | None,
    on_completed: Callable[[], object] | None,
) -> Edge[T]:
    """The edge of these functions, or of an observer's methods; RxPY knows one by its `on_next` too."""
    observer = cast("Any", on_next)
    if callable(getattr(observer, "on_next", None)):
        return Edge(observer.on_next, observer.on_error, observer.on_completed)
    return Edge(cast("Callable[[T], object] | None", on_next), on_error, on_completed)


class PullEdge(abc.ObserverBase[T], Attached, Generic[T]):
    """The last observer of a chain that is pulled: keeps what came until it is taken."""

    __slots__ = ("_waiter", "error", "items", "reading", "run")

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run: Run = run
        run.wake = self._wake
        self.items: deque[T] = deque()
        self.error: Exception | None = None
        self.reading: asyncio.Future[None] | None = None
        """A read of the driver that goes on, where the consumer waits for other sources too."""
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
            self._stop()
            self._wake()

    def on_completed(self) -> None:
        self._stop()
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            wake(waiter)

    async def wait(self) -> None:
        """Until something comes from a source that pushes by itself, or a driver comes, or has read."""
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        if self.items or self.stopped:
            self._waiter = None
            return
        await waiter

    def read(self, reading: Awaitable[None]) -> None:
        """Let *reading* go on beside the waiting."""
        self.reading = task = asyncio.ensure_future(reading)
        task.add_done_callback(self._has_read)

    def _has_read(self, reading: asyncio.Future[None]) -> None:
        self.reading = None
        self._wake()

    def dispose(self) -> None:
        self._stop()
        self.items.clear()
        self._wake()
        super().dispose()
        self.hand_over()

    def hand_over(self) -> None:
        """Nobody pulls from here any more: a source that others share goes on by itself."""
        driver = self.run.driver
        if driver is not None and not driver.over:
            with contextlib.suppress(RuntimeError):  # no loop runs here: nothing can go on
                driver.start_task()


def attach(source: abc.ObservableBase[Any], edge: Edge[Any] | PullEdge[Any], run: Run) -> None:
    """Subscribe *edge* to *source*. A synchronous source has emitted everything when this returns, but
    not before the edge could dispose of it: it emits from the trampoline."""

    def subscribe(*_: Any) -> None:
        edge.connect(subscribe_to(source, edge, run))

    trampoline = CurrentThreadScheduler.singleton()
    if trampoline.schedule_required():
        trampoline.schedule(subscribe)
    else:
        subscribe()


__all__ = ("Edge", "PullEdge", "attach", "edge_of")
