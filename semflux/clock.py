"""Where time comes from: `LoopClock` in life, `VirtualClock` in tests.

Whatever waits takes a `Clock` as an argument, so that a test moves time by hand.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable


class Timer(Protocol):
    """A call that is going to happen."""

    __slots__ = ()

    def cancel(self) -> None:
        """Make it not happen. Idempotent; without effect once it has happened."""
        ...


class Clock(Protocol):
    """Tells the time and calls back later. Belongs to one thread, as an event loop does."""

    __slots__ = ()

    def time(self) -> float:
        """Seconds since 1970, UTC: for timestamps. It may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since some start: for intervals. It never goes back."""
        ...

    def call_later(self, delay: float, fn: Callable[..., object], *args: Any) -> Timer:
        """Call `fn(*args)` once, *delay* seconds from now, never inside this call.

        Calls due at different times happen in the order of those times.
        """
        ...


class LoopClock(Clock):
    """The clock of an asyncio event loop; its timers are the loop's. Use it on that loop's thread."""

    __slots__ = ("_loop",)

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return self._loop.time()

    def call_later(self, delay: float, fn: Callable[..., object], *args: Any) -> Timer:
        return self._loop.call_later(delay, fn, *args)


class _VirtualTimer(Timer):
    __slots__ = ("args", "fn", "order", "when")

    def __init__(self, when: float, order: int, fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.when = when
        self.order = order
        self.fn: Callable[..., object] | None = fn
        self.args = args

    def __lt__(self, other: _VirtualTimer) -> bool:
        return (self.when, self.order) < (other.when, other.order)

    def cancel(self) -> None:
        self.fn = None
        self.args = ()


class VirtualClock(Clock):
    """A clock that stands still until `advance` is called.

    ```python
    clock = VirtualClock()
    clock.call_later(5, print, "five")
    clock.advance(10)                   # prints "five", with clock.monotonic() == 5.0
    ```
    """

    __slots__ = ("_made", "_now", "_start", "_timers")

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        """*start*: what `time()` says at first, in seconds since 1970. `monotonic()` begins at 0."""
        self._start = start
        self._now = 0.0
        self._made = 0
        self._timers: list[_VirtualTimer] = []

    @property
    def pending(self) -> int:
        """Timers that were neither called nor cancelled."""
        return sum(timer.fn is not None for timer in self._timers)

    def time(self) -> float:
        return self._start + self._now

    def monotonic(self) -> float:
        return self._now

    def call_later(self, delay: float, fn: Callable[..., object], *args: Any) -> Timer:
        self._made += 1
        timer = _VirtualTimer(self._now + max(delay, 0.0), self._made, fn, args)
        heapq.heappush(self._timers, timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Let *seconds* pass.

        What falls due on the way is called in order of its time, then of its making, each at its own
        time; timers that these calls make take part. What a timer raises comes out of here, with the
        clock stopped at that timer. Coroutines that a timer wakes run when the loop next does.
        """
        end = self._now + seconds
        while self._timers and self._timers[0].when <= end:
            timer = heapq.heappop(self._timers)
            fn = timer.fn
            if fn is not None:
                args = timer.args
                timer.cancel()
                self._now = timer.when
                fn(*args)
        self._now = end


__all__ = ("Clock", "LoopClock", "Timer", "VirtualClock")
