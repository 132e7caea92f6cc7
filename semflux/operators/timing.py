"""The clock of a timed operator, and what its timer and its items come through."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from reactivex import abc

from semflux.clock import Clock, Timer
from semflux.errors import ConfigurationError
from semflux.operators.inner import Gate
from semflux.operators.lift import Link
from semflux.operators.run import Run, running_clock

CLOSE = 1e-6
"""Seconds that a timer may ring too early: a sum of floats is not exact."""


def clock_of(name: str, given: Clock | None, run: Run) -> Clock:
    """The clock that was *given* to the operator *name*; else that of the source, else the running loop's.

    Raises:
        ConfigurationError: if no loop is running.
    """
    clock = given or run.clock or running_clock()
    if clock is None:
        raise ConfigurationError(
            f"{name} needs a running event loop to count in: use block(), or subscribe inside asyncio.run(...)"
        )
    return clock


def monotonic_of(given: Clock | None, run: Run) -> Callable[[], float]:
    """What tells the seconds for intervals, for an operator that sets no timer: it needs no loop."""
    clock = given or run.clock or running_clock()
    return time.monotonic if clock is None else clock.monotonic


def checked(name: str, seconds: float) -> float:
    """The *seconds* of the operator *name*.

    Raises:
        ConfigurationError: if they are not above zero.
    """
    if not seconds > 0:
        raise ConfigurationError(f"{name}({seconds!r}): it takes a number of seconds above zero")
    return seconds


class TimedLink(Link[Any, Any]):
    """A link with one timer, which may ring on another thread than items come on: all comes through one gate.

    A child says what is done at the start (`begin`), with an item (`take`), at the end (`finish`), and when the timer
    rings (`ring`).
    """

    __slots__ = ("_clock", "_gate", "_given", "_name", "_timer")

    upstream: abc.DisposableBase | None

    def __init__(self, below: abc.ObserverBase[Any], run: Run, name: str, clock: Clock | None) -> None:
        super().__init__(below, run)
        # The timer lets something out, or ends the stream, while a subscriber that pulls waits for the source.
        run.alone = False
        self._name = name
        self._given = clock
        self._clock: Clock | None = None
        self._gate = Gate()
        self._timer: Timer | None = None

    def begin(self) -> None:
        """It is subscribed, and has a clock."""

    def take(self, value: Any) -> None:
        """An item."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def finish(self) -> None:
        """The source has completed."""
        self.end()

    def ring(self) -> None:
        """The time has come."""
        raise NotImplementedError  # pragma: no cover  # abstract

    # What a child calls

    def now(self) -> float:
        """Seconds of the clock."""
        clock = self._clock
        assert clock is not None  # there is one before anything is taken
        return clock.monotonic()

    def ring_in(self, seconds: float) -> None:
        """Set the timer, unless it is set."""
        clock = self._clock
        if self._timer is None and clock is not None:
            self._timer = clock.call_later(max(0.0, seconds), self._rings)
            if self.stopped:
                # Disposed of on another thread meanwhile.
                self._rest()

    @property
    def is_set(self) -> bool:
        """True while the timer is."""
        return self._timer is not None

    def end(self) -> None:
        """Tell the end."""
        self._rest()
        super().on_completed()

    # How it works

    def connect(self, upstream: abc.DisposableBase) -> None:
        super().connect(upstream)
        self._gate.enter(self._start)

    def _start(self) -> None:
        if self.stopped or self._clock is not None:
            return
        try:
            self._clock = clock_of(f"{self._name}()", self._given, self.run)
        except ConfigurationError as error:
            self.fail(error)
            return
        self.begin()

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self._gate.enter(self._take, value)

    def _take(self, value: Any) -> None:
        self._start()
        if not self.stopped:
            self.take(value)

    def on_error(self, error: Exception) -> None:
        self._gate.enter(self._fail, error)

    def _fail(self, error: Exception) -> None:
        self._rest()
        super().on_error(error)

    def on_completed(self) -> None:
        self._gate.enter(self._finish)

    def _finish(self) -> None:
        if not self.stopped:
            self._start()
        if not self.stopped:
            # It may go on for a while: the source is over, and is not to be cancelled.
            self.upstream = None
            self.finish()

    def _rings(self) -> None:
        self._gate.enter(self._ring)

    def _ring(self) -> None:
        self._timer = None
        if not self.stopped:
            self.ring()

    def _rest(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def dispose(self) -> None:
        self._rest()
        super().dispose()


__all__ = ("CLOSE", "TimedLink", "checked", "clock_of", "monotonic_of")
