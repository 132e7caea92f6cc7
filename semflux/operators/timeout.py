"""`timeout`: limits on the first item, on the next one, and on the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.clock import Clock, Timer
from semflux.errors import (
    ConfigurationError,
    FirstEventTimeoutError,
    IdleTimeoutError,
    SemfluxError,
    TotalTimeoutError,
    TransportError,
)
from semflux.events import ChatEvent
from semflux.operators.lift import Link, Owned
from semflux.operators.on_error import on_error_resume
from semflux.operators.run import Run
from semflux.operators.timing import CLOSE, clock_of

T = TypeVar("T")

_LIMITS: dict[str, tuple[type[TransportError], str]] = {
    "first": (FirstEventTimeoutError, "nothing came"),
    "item": (IdleTimeoutError, "nothing more came"),
    "total": (TotalTimeoutError, "the stream was not over"),
}

_MARK = "_timeout"


class _Wanting:
    """What a run calls when its pulling consumer wants more: tells all limits of that run."""

    def __init__(self) -> None:
        self.links: list[TimeoutLink] = []

    def __call__(self) -> None:
        for link in self.links:
            link.want()


class TimeoutLink(Link[Any, Any]):
    """The limits at work in one subscription: one timer, which is set anew only when it rings too early.

    Items write a time and nothing else. *first* and *item* stand still while a pulling consumer does not ask
    for more: a timer that rings then is set again when it does. *total* never stands still. A stream of ours is failed at its first stage, so that what is open is
    ended in order.
    """

    __slots__ = (
        "_chat", "_clock", "_idle", "_limits", "_mark", "_paused", "_seen", "_since", "_started", "_suspended",
        "_timer", "_wanted", "_wanting",
    )  # fmt: skip

    def __init__(
        self,
        below: abc.ObserverBase[Any],
        run: Run,
        limits: dict[str, float | None],
        clock: Clock | None,
        mark: object,
        *,
        chat: bool,
    ) -> None:
        super().__init__(below, run)
        self._limits = limits
        self._clock = clock
        self._chat = chat
        self._mark = mark
        """Put on its errors, so that a fallback knows them, and copies of them, from others."""
        self._timer: Timer | None = None
        self._seen = False
        self._since = self._started = self._wanted = 0.0
        self._idle = False
        """True after an item, until a pulling consumer wants another."""
        self._paused = 0.0
        """Seconds for which it did not, before the first item."""
        self._suspended = False
        """True if the timer rang meanwhile."""
        self._wanting: _Wanting | None = None

    def connect(self, upstream: abc.DisposableBase) -> None:
        super().connect(upstream)
        if self.stopped:
            return
        try:
            clock = clock_of("timeout()", self._clock, self.run)
        except ConfigurationError as error:
            self._fail(error)
            return
        self._clock = clock
        self._since = self._started = self._wanted = clock.monotonic()
        if self.run.pull:
            self._idle = True
            wanting = self.run.timed
            if not isinstance(wanting, _Wanting):
                wanting = self.run.timed = _Wanting()
            wanting.links.append(self)
            self._wanting = wanting
        self._set()

    def want(self) -> None:
        """A pulling consumer wants more: from now on its wait counts."""
        if self._idle and self._clock is not None:
            self._idle = False
            self._wanted = self._clock.monotonic()
            self._paused += self._wanted - self._since
        if self._suspended:
            self._suspended = False
            self._rest()
            self._set()

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        self.below.on_next(value)
        first = not self._seen and (not self._chat or (isinstance(value, ChatEvent) and value.is_content))
        self._seen = self._seen or first
        clock = self._clock
        if self.stopped or clock is None:
            return
        self._since = clock.monotonic()
        self._idle = self.run.pull
        if first:
            self._rest()
            self._set()

    def _due(self) -> list[tuple[float, str, float]]:
        """When the limits pass, with their names and seconds; the next one first."""
        found: list[tuple[float, str, float]] = []
        limits = self._limits
        first, item, total = limits["first"], limits["item"], limits["total"]
        if self._seen:
            if item is not None:
                found.append((max(self._since, self._wanted) + item, "item", item))
        elif first is not None:
            found.append((self._started + self._paused + first, "first", first))
        if total is not None:
            found.append((self._started + total, "total", total))
        return sorted(found)

    def _set(self) -> None:
        self._set_at([when for when, _, _ in self._due()])

    def _set_at(self, times: list[float]) -> None:
        clock = self._clock
        if times and clock is not None:
            self._timer = clock.call_later(max(0.0, min(times) - clock.monotonic()), self._ring)

    def _ring(self) -> None:
        clock = self._clock
        if self.stopped or clock is None:
            return
        now = clock.monotonic()
        times: list[float] = []
        for when, name, seconds in self._due():
            if name != "total" and not self.run.is_waiting:
                self._suspended = True
            elif when - now > CLOSE:
                times.append(when)
            else:
                cls, what = _LIMITS[name]
                error = cls(f"{what} within {seconds:g} s, the limit of timeout({name}=...)", phase="sink")
                vars(error)[_MARK] = self._mark
                self._fail(error)
                return
        self._set_at(times)

    def _fail(self, error: SemfluxError) -> None:
        if self._chat:
            self.run.fail(error, self)
        # For a stream that is not ours, or whose source is over while its events are still on their way.
        self.fail(error)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._rest()
        if self._wanting is not None:
            self._wanting.links.remove(self)
            self._wanting = None

    def on_error(self, error: Exception) -> None:
        self._end()
        super().on_error(error)

    def on_completed(self) -> None:
        self._end()
        super().on_completed()

    def dispose(self) -> None:
        self._end()
        super().dispose()


def timeout(
    total: float | None = None,
    *,
    first: float | None = None,
    item: float | None = None,
    fallback: abc.ObservableBase[T] | None = None,
    clock: Clock | None = None,
    chat: bool = False,
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Fails the stream when a limit passes; the source is cancelled first.

    *first*: seconds from the subscription to the first item, on a chat stream to the first content event.
    *item*: seconds from one item to the next, after that. *total*: seconds for the whole. None: no limit.
    *fallback*: goes on with this stream when a limit passes, without limits; other errors are left alone.
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
    mark = object()

    def limited(source: abc.ObservableBase[T]) -> Observable[T]:
        return Owned(source, lambda below, run: TimeoutLink(below, run, limits, clock, mark, chat=chat))

    if fallback is None:
        return limited
    resumed = on_error_resume(lambda error: fallback, lambda error: vars(error).get(_MARK) is mark, chat=chat)
    return lambda source: resumed(limited(source))


__all__ = ("TimeoutLink", "timeout")
