"""`EventIterator`: the pull side. The consumer's own task moves the stream on; there is no other."""

from __future__ import annotations

import asyncio
import warnings
import weakref
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from reactivex import abc

from semflux.errors import ConfigurationError
from semflux.flux.edge import PullEdge, attach
from semflux.operators.run import UNBOUNDED, Run

T = TypeVar("T")

PULL_DEMAND = 64
"""Events that a pulling consumer has waiting at most; an unread stream pauses its socket."""

_ROUNDS = 64
"""Fillings of the queue after which the loop may do other things, even if the source never waits."""


def _abandon(edge: PullEdge[Any], where: list[asyncio.AbstractEventLoop]) -> None:
    """The iterator was freed. `break` out of `async for` comes here at once; later is a leak."""
    if edge.stopped:
        return
    if where and where[0].is_closed():
        warnings.warn(
            "a stream was left unfinished past its event loop: close it with `async with` or `await it.aclose()`",
            ResourceWarning,
            stacklevel=2,
        )
    edge.dispose()


class EventIterator(abc.DisposableBase, Generic[T]):
    """An asynchronous iterator over one subscription, with `aclose` and `async with`.

    Freed when nothing refers to it, so `break` out of an `async for` over a stream cancels the request
    at once; one that is kept in a name is closed by `async with` or `aclose()`. A `dispose` from
    elsewhere ends it, a wait included. It belongs to the one task that reads it.
    """

    def __init__(self, source: abc.ObservableBase[T], *, demand: int = PULL_DEMAND) -> None:
        self._source: abc.ObservableBase[T] | None = source
        self._demand = demand
        self._run = Run(demand=demand, pull=True)
        self._edge: PullEdge[T] = PullEdge(self._run)
        self._where: list[asyncio.AbstractEventLoop] = []
        self._waiting = False
        self._rounds = 0
        # The chain refers to the edge alone: so this object is freed with its last user.
        self._finalizer = weakref.finalize(self, _abandon, self._edge, self._where)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        edge = self._edge
        items = edge.items
        if not items:
            await self._advance()
            if not items:
                await self._released()
                error, edge.error = edge.error, None
                if error is not None:
                    raise error
                raise StopAsyncIteration
        return items.popleft()

    async def _advance(self) -> None:
        """Until an item is there, or nothing more will come."""
        if self._waiting:
            raise ConfigurationError("an iterator over a stream belongs to one task: give each its own")
        edge, run = self._edge, self._run
        if self._source is not None:
            source, self._source = self._source, None
            self._where.append(asyncio.get_running_loop())
            attach(source, edge, run)
        self._waiting = run.is_waiting = True
        if run.timed is not None:
            run.timed()
        try:
            self._rounds += 1
            if self._rounds >= _ROUNDS:
                self._rounds = 0
                await asyncio.sleep(0)
            while not edge.items and not edge.stopped:
                driver = run.driver
                if run.asked:
                    run.want(self._demand)
                else:
                    run.demand = self._demand
                if driver is None or driver.over or run.is_ahead or edge.reading is not None:
                    await edge.wait()
                elif not driver.pump():
                    waiting = driver.fill()
                    if waiting is None:
                        continue
                    if run.alone:
                        await waiting
                    else:
                        edge.read(waiting)
        except BaseException:
            # The task was cancelled while it waited: the request ends before this goes on.
            edge.dispose()
            raise
        finally:
            self._waiting = run.is_waiting = False

    async def _released(self) -> None:
        self._edge.hand_over()
        driver, before = self._run.driver, None
        # One that is over may have made way for another, which cleans up after it.
        while driver is not None and driver is not before and driver.over:
            await driver.released()
            driver, before = self._run.driver, driver

    def dispose(self) -> None:
        """Cancel the stream, if it is not over; what waits for an item sees the end. Idempotent, and from
        any thread."""
        self._finalizer.detach()
        self._source = None
        self._edge.dispose()

    async def aclose(self) -> None:
        """As `dispose`, and wait until what the source held open is closed."""
        self.dispose()
        await self._released()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def last_of(source: abc.ObservableBase[T]) -> T | None:
    """The last item of *source*; None when it has none. Cancelling this cancels the stream."""
    iterator = EventIterator(source, demand=UNBOUNDED)
    last: T | None = None
    async with iterator:
        async for item in iterator:
            last = item
    return last


__all__ = ("PULL_DEMAND", "EventIterator", "last_of")
