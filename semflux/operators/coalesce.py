"""`coalesce`: fewer and larger deltas, for screens and databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactivex import Observable, abc

from semflux.clock import Clock, Timer
from semflux.errors import ConfigurationError
from semflux.events import (
    AnyChatEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
)
from semflux.operators.delivery import joined, joins
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.operators.timing import clock_of

_MERGED = (TextDelta, ThinkingDelta, ToolCallArgsDelta)


class _CoalesceLink(Link[AnyChatEvent, AnyChatEvent]):
    """Holds the deltas of one block: their texts, and the last event, whose place the merged one takes."""

    __slots__ = ("_clock", "_delay", "_last", "_max_chars", "_size", "_texts", "_timer")

    def __init__(
        self,
        below: abc.ObserverBase[AnyChatEvent],
        run: Run,
        max_chars: int | None,
        max_delay: float | None,
        clock: Clock | None,
    ) -> None:
        super().__init__(below, run)
        if max_delay is not None:
            # The timer lets something out while a subscriber that pulls waits for the source.
            run.alone = False
        self._max_chars = max_chars
        self._delay = max_delay
        self._clock = clock
        self._timer: Timer | None = None
        self._last: Any = None
        self._texts: list[str] = []
        self._size = 0

    def on_next(self, value: AnyChatEvent) -> None:
        if self.stopped:
            return
        if not isinstance(value, _MERGED):
            # A boundary, or anything else that has its place in the order.
            self._flush()
            if not self.stopped:
                self.below.on_next(value)
            return
        if self._last is not None and not _continues(self._last, value):
            self._flush()
            if self.stopped:
                return
        if self._last is None and self._delay is not None and not self._start():
            return
        self._last = value
        self._texts.append(value.text)
        self._size += len(value.text)
        if self._max_chars is not None and self._size >= self._max_chars:
            self._flush()

    def _start(self) -> bool:
        """The time of the first delta begins to count; False if there is no clock for it."""
        assert self._delay is not None
        try:
            clock = clock_of("coalesce(max_delay=...)", self._clock, self.run)
        except ConfigurationError as error:
            self.fail(error)
            return False
        self._timer = clock.call_later(self._delay, self._ring)
        return True

    def _ring(self) -> None:
        self._timer = None
        if not self.stopped:
            self._flush()

    def _flush(self) -> None:
        last, texts = self._last, self._texts
        if last is None:
            return
        self._drop()
        self.below.on_next(joined(last, texts))

    def _drop(self) -> None:
        self._last = None
        self._texts = []
        self._size = 0
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def on_error(self, error: Exception) -> None:
        # What is held came before the failure, and is lost by no other way.
        if not self.stopped:
            self._flush()
            super().on_error(error)

    def on_completed(self) -> None:
        if not self.stopped:
            self._flush()
            super().on_completed()

    def dispose(self) -> None:
        self.stopped = True
        self._drop()
        super().dispose()


def _continues(last: Any, event: Any) -> bool:
    """True if *event* is a piece of the same block as *last*, and both can be told by one event."""
    # Facts of one piece, such as its log probabilities, are true of that piece alone.
    return joins(last, event) and not last.attributes and last.response_id == event.response_id


def coalesce(
    max_chars: int | None = None, max_delay: float | None = None, *, clock: Clock | None = None
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """Consecutive deltas of one block of text, thinking or arguments as one. Nothing is lost, and the order is kept:
    any other event, and the end, first let out what is held. The merged event stands in the place of its last one.

    *max_chars*: characters that are held at most; what reaches them goes out whole. *max_delay*: seconds that the
    first of the held deltas waits at most. None: no such bound; at least one of the two is needed. *clock*: gives
    the time; default: that of the source, else the running loop's. Deltas with attributes stay alone.

    ```
    TEXT+ TEXT~a TEXT~b TEXT~c TEXT-|        coalesce(max_chars=2)
    TEXT+ ------ TEXT~ab ---- TEXT~c TEXT-|
    ```

    Raises:
        ConfigurationError: if a bound is not above zero, or there is none.
    """
    if max_chars is None and max_delay is None:
        raise ConfigurationError("coalesce() needs max_chars, max_delay, or both")
    for name, bound in (("max_chars", max_chars), ("max_delay", max_delay)):
        if bound is not None and not bound > 0:
            raise ConfigurationError(f"coalesce({name}={bound!r}): a bound is above zero")
    return lift(lambda below, run: _CoalesceLink(below, run, max_chars, max_delay, clock))


__all__ = ("coalesce",)
