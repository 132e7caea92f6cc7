"""How a verification is subscribed: pushed to without a limit, or pulling what its steps request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler

from semflux.flux import Flux, Mono
from semflux.flux.edge import PullEdge, attach
from semflux.operators.lift import subscribe_to
from semflux.operators.run import Run
from semflux.testing.signals import Signal, SignalKind, next_signal


class Recorder(abc.ObserverBase[Any], abc.DisposableBase):
    """The lowest observer there can be: hands on all that it is told, and notes what must not be told.

    Unlike the edge of `Flux.subscribe` it hides nothing: what comes after an end is a *breach*.
    """

    def __init__(self, receive: Callable[[Signal], None]) -> None:
        self._receive = receive
        self.over: bool = False
        """True once an end came, or it was disposed of."""
        self.cancelled: bool = False
        """True once it was disposed of."""
        self.breaches: list[str] = []
        """What came after the end, in words."""
        self.upstream: abc.DisposableBase | None = None
        """What it is subscribed to."""

    def _tell(self, signal: Signal) -> None:
        if self.cancelled:
            return  # a source may need a moment to see a cancel
        if self.over:
            self.breaches.append(f"{signal} came after the end")
            return
        self.over = signal.is_terminal
        self._receive(signal)

    def on_next(self, value: Any) -> None:
        self._tell(next_signal(value))

    def on_error(self, error: Exception) -> None:
        self._tell(Signal(SignalKind.ERROR, error))

    def on_completed(self) -> None:
        self._tell(Signal(SignalKind.COMPLETE))

    def connect(self, upstream: abc.DisposableBase) -> None:
        """What to dispose of; at once if it was disposed of already."""
        if self.cancelled:
            upstream.dispose()
        else:
            self.upstream = upstream

    def dispose(self) -> None:
        self.cancelled = self.over = True
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.dispose()

    def subscribe(self, source: abc.ObservableBase[Any], run: Run) -> None:
        """Subscribe to *source*, from the trampoline, as `Flux.subscribe` does."""

        def begin(*_: Any) -> None:
            self.connect(subscribe_to(source, self, run))

        trampoline = CurrentThreadScheduler.singleton()
        if trampoline.schedule_required():
            trampoline.schedule(begin)
        else:
            begin()


def bare(stream: Any) -> abc.ObservableBase[Any]:
    """*stream* without the edge that a Flux or Mono puts below itself."""
    if isinstance(stream, (Flux, Mono)):
        of_any: Flux[Any] | Mono[Any] = stream  # pyright: ignore[reportUnknownVariableType]
        return of_any.to_observable()
    source: abc.ObservableBase[Any] = stream
    return source


class PushSubscription:
    """Everything is wanted, as fast as it comes."""

    demand: int | None = None
    """Items that may still come; None: any number."""

    def __init__(
        self,
        source: abc.ObservableBase[Any],
        feed: Callable[[Signal], None],
        run: Run,
    ) -> None:
        self._source = source
        self._recorder = Recorder(feed)
        self._run = run

    @property
    def breaches(self) -> list[str]:
        """What came after the end, in words."""
        return self._recorder.breaches

    def start(self) -> None:
        """Subscribe."""
        self._recorder.subscribe(self._source, self._run)

    def dispose(self) -> None:
        """Cancel."""
        self._recorder.dispose()

    async def released(self) -> None:
        """Wait until what the source held open is closed."""
        driver = self._run.driver
        if driver is not None and driver.over:
            await driver.released()


class _PulledEdge(PullEdge[Any]):
    """The edge of an `async for`, which says when something has come."""

    def __init__(self, run: Run, woken: Callable[[], None]) -> None:
        self._woken = woken
        super().__init__(run)

    def _wake(self) -> None:
        super()._wake()
        self._woken()


class PullSubscription:
    """Only what is requested is pulled, as `async for` does. A source that pushes by itself is not held
    up: what it gives beyond the demand waits here."""

    def __init__(
        self,
        source: abc.ObservableBase[Any],
        feed: Callable[[Signal], None],
        run: Run,
    ) -> None:
        self._source = source
        self._feed = feed
        self._run = run
        self._edge = _PulledEdge(self._run, self._woken)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._started = False
        self._pulling = False
        self._ended = False
        self.demand: int = run.demand
        """Items that may still come."""
        self.breaches: list[str] = []
        """Always empty: this edge sees no signal after the end."""

    def start(self) -> None:
        """Subscribe, and pull."""
        attach(self._source, self._edge, self._run)
        self._started = True
        self.pull()

    def request(self, count: int) -> None:
        """Let *count* more items come."""
        self.demand += count
        self._run.want(self.demand)
        self.pull()

    def _woken(self) -> None:
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.pull)
        else:
            self.pull()

    def pull(self) -> None:
        """Move the source on, as far as the demand and what is there go."""
        if self._pulling or not self._started:
            return
        self._pulling = True
        run = self._run
        if self.demand > 0 and not run.is_waiting:
            run.is_waiting = True
            if run.timed is not None:
                run.timed()
        try:
            while self._hand_on() and self._move():
                pass
        finally:
            self._pulling = False
            # Limits on the next item count only while one is wanted.
            run.is_waiting = self.demand > 0

    def _hand_on(self) -> bool:
        """Feed what has come; True if more is wanted and may come."""
        edge = self._edge
        while edge.items and self.demand > 0:
            self.demand -= 1
            self._feed(next_signal(edge.items.popleft()))
        if edge.items or not edge.stopped:
            return self.demand > 0
        if not self._ended:
            self._ended = True
            self._feed(
                Signal(SignalKind.COMPLETE) if edge.error is None else Signal(SignalKind.ERROR, edge.error)
            )
        return False

    def _move(self) -> bool:
        """Let the driver push once; False if it waits, or there is none."""
        edge, run = self._edge, self._run
        driver = run.driver
        if driver is None or driver.over or edge.reading is not None:
            return False
        run.want(self.demand)
        if not driver.pump():
            waiting = driver.fill()
            if waiting is not None:
                edge.read(self._reads(waiting))
                return False
        return True

    async def _reads(self, waiting: Awaitable[None]) -> None:
        await waiting

    def dispose(self) -> None:
        """Cancel."""
        self._ended = True
        self._edge.dispose()

    async def released(self) -> None:
        """Wait until what the source held open is closed."""
        driver = self._run.driver
        if driver is not None and driver.over:
            await driver.released()


__all__ = ("PullSubscription", "PushSubscription", "Recorder", "bare")
