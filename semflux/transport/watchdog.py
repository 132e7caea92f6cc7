"""The watchdog: one timer a stream for all five limits of `Timeouts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from semflux.errors import (
    ConnectTimeoutError,
    ErrorPhase,
    FirstEventTimeoutError,
    IdleTimeoutError,
    PoolTimeoutError,
    TotalTimeoutError,
    TransportError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from semflux.clock import Clock, Timer
    from semflux.http import Timeouts
    from semflux.transport.base import Phase

Limit: TypeAlias = Literal["pool", "connect", "first", "idle", "total"]
"""The name of a limit, as in `Timeouts`."""

_SLACK = 1e-6
"""Seconds by which a timer may ring early and still be on time: clocks round."""

_LIMITS: dict[Limit, tuple[type[TransportError], str, str]] = {
    "pool": (
        PoolTimeoutError,
        "no connection of the pool came free",
        "allow more connections, or wait longer with",
    ),
    "connect": (
        ConnectTimeoutError,
        "no connection was made",
        "check the address and the network, or wait longer with",
    ),
    "first": (
        FirstEventTimeoutError,
        "no content came after the request was sent",
        "if the model thinks for so long, wait longer with",
    ),
    "idle": (
        IdleTimeoutError,
        "no byte came",
        "if the provider pauses for so long, wait longer with",
    ),
    "total": (
        TotalTimeoutError,
        "the stream was not over",
        "ask for less, or wait longer with",
    ),
}


def timeout_error(limit: Limit, seconds: float, *, phase: ErrorPhase | None = None) -> TransportError:
    """The error for a *limit* of *seconds* that passed: it names both, and what to change."""
    cls, what, advice = _LIMITS[limit]
    message = f"{what} within {seconds:g} s (the {limit} limit): {advice} timeouts=Timeouts({limit}=...)"
    return cls(message, phase=phase)


class Watchdog:
    """Tells once, through *on_expire*, that a limit of *timeouts* passed; the caller ends the stream.

    Which limits run: *total* from the making of the watchdog to its closing, whatever happens;
    *pool* and *connect* in their phase; *first* from the request to the first content event, and
    *idle* from there on, both only while the stream waits for bytes. A limit of None never passes;
    *idle* does not stand in for a *first* of None.

    Cheap where streams are hot: `life` writes a timestamp, `pause` and `resume` write one each. The
    one timer is not moved by them: when it rings too early it sets itself anew. It is replaced only
    when a nearer limit begins. Belongs to the clock's thread. After expiry or `close` every method
    does nothing, and no timer is left.
    """

    __slots__ = (
        "_began",
        "_clock",
        "_closed",
        "_content",
        "_due",
        "_last",
        "_on_expire",
        "_paused_at",
        "_phase",
        "_started",
        "_timeouts",
        "_timer",
    )

    def __init__(self, clock: Clock, timeouts: Timeouts, on_expire: Callable[[TransportError], None]) -> None:
        """*on_expire* is called from a timer of *clock*, never from within a method of this object."""
        self._clock = clock
        self._timeouts = timeouts
        self._on_expire = on_expire
        self._closed = False
        self._timer: Timer | None = None
        self._due = 0.0
        # In monotonic seconds: the making; the start of the phase; the last byte; the pause.
        now = clock.monotonic()
        self._started = now
        self._began = now
        self._last = now
        self._paused_at: float | None = None
        self._phase: Phase | None = None
        self._content = False
        self._rearm()

    def arm(self, phase: Phase) -> None:
        """A phase of an opening begins: the *on_phase* of `Transport.open`.

        "pool" and "connect" start the limit of that name, "request" is a `step`.
        """
        if phase == "request":
            self.step()
        elif not self._closed:
            self._phase = phase
            self._began = self._clock.monotonic()
            self._rearm()

    def step(self) -> None:
        """A new request is under way: *first* applies again, from now, and the stream waits."""
        if not self._closed:
            self._phase = "request"
            self._content = False
            self._paused_at = None
            self._began = self._clock.monotonic()
            self._rearm()

    def life(self) -> None:
        """Bytes came."""
        self._last = self._clock.monotonic()

    def content(self) -> None:
        """The first content event of the step came: *idle* replaces *first*."""
        if not self._closed and not self._content:
            self._content = True
            self._last = self._clock.monotonic()
            self._rearm()

    def pause(self) -> None:
        """The stream asks for no bytes now: *first* and *idle* stand still. Idempotent."""
        if self._paused_at is None:
            self._paused_at = self._clock.monotonic()

    def resume(self) -> None:
        """The stream waits for bytes again: *first* and *idle* run on where they stood. Idempotent."""
        if self._paused_at is not None:
            now = self._clock.monotonic()
            stood = now - self._paused_at
            self._paused_at = None
            self._began += stood
            # Bytes that came during the pause: nothing of the pause counts.
            self._last = min(self._last + stood, now)
            self._rearm()

    def close(self) -> None:
        """The stream is over. Idempotent."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _nearest(self) -> tuple[float, Limit, float] | None:
        """When the next limit passes, which one, and its seconds."""
        timeouts = self._timeouts
        limit: Limit | None = None
        since = self._began
        seconds: float | None = None
        if self._phase == "pool":
            limit, seconds = "pool", timeouts.pool
        elif self._phase == "connect":
            limit, seconds = "connect", timeouts.connect
        elif self._phase is not None and self._paused_at is None:
            if self._content:
                limit, seconds, since = "idle", timeouts.idle, self._last
            else:
                limit, seconds = "first", timeouts.first
        total = timeouts.total
        if limit is None or seconds is None:
            return None if total is None else (self._started + total, "total", total)
        if total is not None and self._started + total < since + seconds:
            return self._started + total, "total", total
        return since + seconds, limit, seconds

    def _rearm(self) -> None:
        """See to it that the timer rings no later than the next limit; leave an earlier one alone."""
        nearest = None if self._closed else self._nearest()
        if nearest is None:
            return
        if self._timer is not None:
            if self._due <= nearest[0]:
                return
            self._timer.cancel()
        self._due = nearest[0]
        self._timer = self._clock.call_later(self._due - self._clock.monotonic(), self._ring)

    def _ring(self) -> None:
        self._timer = None
        nearest = self._nearest()
        if nearest is None:
            return
        due, limit, seconds = nearest
        if due - self._clock.monotonic() > _SLACK:
            self._rearm()
            return
        phase: ErrorPhase = "stream" if self._content else "first_event"
        if self._phase in (None, "pool", "connect"):
            phase = "connect"
        self.close()
        self._on_expire(timeout_error(limit, seconds, phase=phase))


__all__ = ("Limit", "Watchdog", "timeout_error")
