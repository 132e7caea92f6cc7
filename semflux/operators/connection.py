"""`Connection`: one subscription to a source on behalf of several readers, at the pace of the slowest."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any, Protocol

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler

from semflux.errors import ConfigurationError
from semflux.operators.hooks import Hooks
from semflux.operators.lift import subscribe_to
from semflux.operators.run import UNBOUNDED, Driver, Run
from semflux.operators.waking import wake

_ROUNDS = 64
"""Rounds after which the loop may do other things, even if the source never waits."""


class Sink(Protocol):
    """Where a connection's items go."""

    def room(self) -> int:
        """How many more may come."""
        ...

    def emit(self, item: Any) -> None:
        """The next one."""
        ...

    def end(self, error: Exception | None) -> None:
        """The end."""
        ...


class Connection(abc.ObserverBase[Any], abc.DisposableBase):
    """Drives a source as far as there is room, and stops it else: an unread stream pauses its socket.

    A source that has its items at once is driven from where room comes from; one that waits, by one task. A source that
    is driven by nobody pushes as it likes: `can_wait` is False then.
    """

    def __init__(self, source: abc.ObservableBase[Any], sink: Sink, run: Run) -> None:
        self.run = run
        """Its own, pulled by this."""
        self.over: bool = False
        """True once the source has ended, or was cancelled."""
        self._source = source
        self._sink = sink
        self._upstream: abc.DisposableBase | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._active = False
        self._again = False
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        run.wake = self.drained

    @property
    def can_wait(self) -> bool:
        """True if it stops when there is no room."""
        return self.run.driver is not None

    def start(self) -> None:
        """Subscribe. From the trampoline, so that a disposable exists before the first item."""

        def begin(scheduler: abc.SchedulerBase, state: object = None) -> None:
            if self.over:
                return
            with contextlib.suppress(RuntimeError):
                self._loop = asyncio.get_running_loop()
            self.run.is_waiting = True
            self.run.demand = self._sink.room()
            upstream = subscribe_to(self._source, self, self.run)
            if self.run.driver is None:
                # Nobody drives it, or not yet: it pushes as it likes.
                self.run.demand = UNBOUNDED
            if self.over:
                upstream.dispose()
                return
            self._upstream = upstream
            self.drained()

        CurrentThreadScheduler.singleton().schedule(begin)

    # What the source says

    def on_next(self, value: Any) -> None:
        if self.over:
            Hooks.drop_next(value)
            return
        run = self.run
        run.demand -= 1
        self._sink.emit(value)
        if run.demand > 0 and run.driver is not None and self._sink.room() <= 0:
            # Its weight filled a buffer.
            run.demand = 0

    def on_error(self, error: Exception) -> None:
        if self.over:
            Hooks.drop_error(error)
            return
        self._stop()
        self._sink.end(error)

    def on_completed(self) -> None:
        if not self.over:
            self._stop()
            self._sink.end(None)

    # Driving

    def drained(self) -> None:
        """There is room, or there may be; or a driver has come."""
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            wake(waiter)
        elif self._task is None and self._upstream is not None:
            self._go()

    def _go(self) -> None:
        driver = self.run.driver
        if driver is None or self.over:
            return
        if self._is_at_once(driver):
            self._advance()
        elif self._task is not None:
            # Another thread saw it, too.
            return
        elif self._loop is not None:
            self._task = self._loop.create_task(self._drive(), name="semflux-connection")
        else:
            self.run.fail(
                ConfigurationError(
                    "this stream waits for its bytes and no event loop is running here: subscribe inside "
                    "asyncio.run(...)"
                )
            )

    def _is_at_once(self, driver: Driver) -> bool:
        """True if nothing has to be awaited for it."""
        return not getattr(driver, "waits", True) or (self._loop is None and getattr(driver, "pushes", False))

    def _advance(self) -> None:
        """All that there is room for, now. Room may come on another thread meanwhile: who is here looks again."""
        with self._lock:
            self._again = self._active
            if self._active:
                return
            self._active = True
        while True:
            try:
                self._push()
            except BaseException:
                self._active = False
                raise
            with self._lock:
                if not self._again:
                    self._active = False
                    return
                self._again = False

    def _push(self) -> None:
        run = self.run
        while not self.over:
            driver = run.driver
            run.want(self._sink.room())
            if driver is None or driver.over or run.demand <= 0:
                return
            if not self._is_at_once(driver):
                # It has come after one that did not wait.
                self.on_loop(self._go)
                return
            if not driver.pump():
                if getattr(driver, "pushes", False):
                    # It tells by itself when something has come.
                    return
                driver.fill()

    async def _drive(self) -> None:
        run = self.run
        rounds = 0
        while not self.over:
            driver = run.driver
            run.want(self._sink.room())
            if driver is None or driver.over or run.demand <= 0:
                run.is_waiting = run.demand > 0
                self._waiter = waiter = asyncio.get_running_loop().create_future()
                if self.over or (self._sink.room() > 0) != run.is_waiting:
                    self._waiter = None
                    continue
                await waiter
                if not run.is_waiting and run.timed is not None:
                    run.timed()
                run.is_waiting = True
            elif not driver.pump():
                waiting = driver.fill()
                if waiting is not None:
                    rounds = 0
                    await waiting
            rounds += 1
            if rounds >= _ROUNDS:
                rounds = 0
                await asyncio.sleep(0)

    # Ending

    def _stop(self) -> abc.DisposableBase | None:
        self.over = True
        upstream, self._upstream = self._upstream, None
        self.drained()
        return upstream

    def dispose(self) -> None:
        """Cancel the source: what it holds open is closed."""
        if not self.over:
            upstream = self._stop()
            if upstream is not None:
                upstream.dispose()

    async def released(self) -> None:
        """Wait until what the source holds open is closed, once it is over."""
        driver = self.run.driver
        if driver is not None and driver.over:
            await driver.released()

    def on_loop(self, function: Any) -> None:
        """Call *function* on the thread of the source's loop."""
        loop = self._loop
        if loop is None or _runs_here(loop):
            function()
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing is left to be done there
                loop.call_soon_threadsafe(function)


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    return getattr(loop, "_thread_id", None) in {None, threading.get_ident()}


__all__ = ("Connection", "Sink")
