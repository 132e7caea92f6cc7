"""`timeout`: limits on the first item, on the next one, and on the whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.clock import Clock, LoopClock, Timer
from semflux.errors import (
    ConfigurationError,
    FirstEventTimeoutError,
    IdleTimeoutError,
    TotalTimeoutError,
    TransportError,
)
from semflux.events import ChatEvent
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")

_LIMITS: dict[str, tuple[type[TransportError], str]] = {
    "first": (FirstEventTimeoutError, "nothing came"),
    "item": (IdleTimeoutError, "nothing more came"),
    "total": (TotalTimeoutError, "the stream was not over"),
}


class TimeoutLink(Link[Any, Any]):
    """The limits at work in one subscription: one timer, which is set anew only when it rings too early.

    Items write a time and nothing else. *first* and *item* stand still while a pulling consumer does not ask
    for more. A stream of ours is failed at its first stage, so that what is open is ended in order.
    """

    __slots__ = ("_chat", "_clock", "_limits", "_seen", "_since", "_started", "_timer", "_wanted")

    def __init__(
        self,
        below: abc.ObserverBase[Any],
        run: Run,
        limits: dict[str, float | None],
        clock: Clock | None,
        chat: bool,
    ) -> None:
        super().__init__(below, run)
        self._limits = limits
        self._clock = clock
        self._chat = chat
        self._timer: Timer | None = None
        self._seen = False
        self._since = self._started = self._wanted = 0.0

    def connect(self, upstream: abc.DisposableBase) -> None:
        super().connect(upstream)
        if self.stopped:
            return
        clock = self._clock or self.run.clock
        if clock is None:
            try:
                clock = LoopClock(asyncio.get_running_loop())
            except RuntimeError:
                self.fail(
                    ConfigurationError(
                        "timeout() needs a running event loop to count in: use block(), or subscribe inside "
                        "asyncio.run(...)"
                    )
                )
                return
        self._clock = clock
        self._since = self._started = self._wanted = clock.monotonic()
        if self.run.pull:
            self.run.timed = self._want
        self._set()

    def _want(self) -> None:
        """A pulling consumer wants more: from now on its wait counts."""
        if self._clock is not None:
            self._wanted = self._clock.monotonic()

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        self.below.on_next(value)
        clock = self._clock
        if clock is None or self.stopped or self._timer is None:
            return
        self._since = clock.monotonic()
        if not self._seen and (not self._chat or (isinstance(value, ChatEvent) and value.is_content)):
            self._seen = True
            self._timer.cancel()
            self._set()

    def _due(self) -> tuple[float, str, float] | None:
        """When the next limit passes, its name, its seconds."""
        name = "item" if self._seen else "first"
        found: list[tuple[float, str, float]] = []
        seconds = self._limits[name]
        if seconds is not None:
            since = self._since if self._seen else self._started
            found.append((max(since, self._wanted) + seconds, name, seconds))
        total = self._limits["total"]
        if total is not None:
            found.append((self._started + total, "total", total))
        return min(found, default=None)

    def _set(self) -> None:
        due, clock = self._due(), self._clock
        if due is not None and clock is not None:
            self._timer = clock.call_later(max(0.0, due[0] - clock.monotonic()), self._ring)

    def _ring(self) -> None:
        due, clock = self._due(), self._clock
        if self.stopped or due is None or clock is None:
            return
        when, name, seconds = due
        if name != "total" and not self.run.is_waiting:
            # Nobody asks for more: the limit begins again when somebody does.
            self._timer = clock.call_later(seconds, self._ring)
        elif when - clock.monotonic() > 1e-6:
            self._set()
        else:
            self._expire(name, seconds)

    def _expire(self, name: str, seconds: float) -> None:
        cls, what = _LIMITS[name]
        error = cls(f"{what} within {seconds:g} s, the limit of timeout({name}=...)", phase="sink")
        if not (self._chat and self.run.fail(error)):
            self.fail(error)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def on_error(self, error: Exception) -> None:
        self._cancel()
        super().on_error(error)

    def on_completed(self) -> None:
        self._cancel()
        super().on_completed()

    def dispose(self) -> None:
        self._cancel()
        super().dispose()


def timeout(
    total: float | None = None,
    *,
    first: float | None = None,
    item: float | None = None,
    clock: Clock | None = None,
    chat: bool = False,
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Fails the stream when a limit passes; the source is cancelled first.

    *first*: seconds from the subscription to the first item, on a chat stream to the first content event.
    *item*: seconds from one item to the next, after that. *total*: seconds for the whole. None: no limit.
    *clock*: gives the time; default: that of the source, else the running loop's.

    Errors: FirstEventTimeoutError, IdleTimeoutError, TotalTimeoutError, all of them TimeoutErrors too.

    ```
    --1-----------        timeout(item=3)
    --1---X(IdleTimeoutError)
    ```

    Raises:
        ConfigurationError: if a limit is not above zero.
    """
    limits = {"first": first, "item": item, "total": total}
    for name, seconds in limits.items():
        if seconds is not None and not seconds > 0:
            raise ConfigurationError(
                f"timeout({name}={seconds!r}): a limit is a number of seconds above zero"
            )
    return lift(lambda below, run: TimeoutLink(below, run, limits, clock, chat))


__all__ = ("TimeoutLink", "timeout")
