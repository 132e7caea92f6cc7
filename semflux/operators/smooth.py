"""`smooth`: the deltas of text in steady pieces."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable
from typing import Any

from reactivex import Observable, abc

from semflux.clock import Clock, Timer
from semflux.cuts import NAMES, Cut, Cutter
from semflux.errors import ConfigurationError
from semflux.events import AnyChatEvent, TextDelta, ThinkingDelta, freeze_event, thaw_event
from semflux.operators.coalesce import continues
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.operators.timing import clock_of


class _SmoothLink(Link[AnyChatEvent, AnyChatEvent]):
    """Holds the piece that is not whole yet, and those that wait for their time."""

    __slots__ = ("_clock", "_cutter", "_delay", "_kinds", "_last", "_max_lag", "_seq", "_timer", "_waiting")

    def __init__(
        self,
        below: abc.ObserverBase[AnyChatEvent],
        run: Run,
        cutter: Cutter,
        kinds: tuple[type[Any], ...],
        delay: float | None,
        max_lag: float,
        clock: Clock | None,
    ) -> None:
        super().__init__(below, run)
        if delay is not None:
            # The timer lets something out while a subscriber that pulls waits for the source.
            run.alone = False
        self._cutter = cutter
        self._kinds = kinds
        self._delay = delay
        self._max_lag = max_lag
        self._clock = clock
        self._timer: Timer | None = None
        self._last: Any = None
        self._waiting: deque[tuple[Any, str]] = deque()
        self._seq = -1

    def on_next(self, value: AnyChatEvent) -> None:
        if self.stopped:
            return
        if not isinstance(value, self._kinds) or value.attributes:
            # A boundary, or anything else that has its place in the order.
            self._flush()
            if not self.stopped:
                self._give(value)
            return
        if self._last is not None and not continues(self._last, value):
            self._flush()
            if self.stopped:
                return
        self._last = value
        try:
            pieces = self._cutter.feed(value.text or "")
        except Exception as error:
            self.fail(error)
            return
        self._waiting.extend([(value, piece) for piece in pieces])
        if self._delay is None:
            self._let_out(len(pieces))
        elif self._timer is None and self._waiting:
            self._ring()

    def _ring(self) -> None:
        self._timer = None
        if self.stopped or not self._waiting or self._delay is None:
            return
        try:
            clock = clock_of("smooth(delay=...)", self._clock, self.run)
        except ConfigurationError as error:
            self.fail(error)
            return
        self._timer = clock.call_later(self._delay, self._ring)
        self._let_out(math.ceil(len(self._waiting) * self._delay / self._max_lag))

    def _let_out(self, count: int) -> None:
        for _ in range(count):
            if self.stopped or not self._waiting:
                return
            event, piece = self._waiting.popleft()
            self._give(event, piece)

    def _flush(self) -> None:
        last, self._last = self._last, None
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        rest = self._cutter.finish()
        if rest:
            self._waiting.append((last, rest))
        self._let_out(len(self._waiting))

    def _give(self, event: Any, text: str | None = None) -> None:
        """The event, with *text* for its own; under the next free number where its own is used up."""
        seq = max(event.seq, self._seq + 1) if event.seq >= 0 else event.seq
        self._seq = max(self._seq, seq)
        state = self.run.state
        if seq >= state.seq >= 0:
            # The stream counts on from here: what comes later keeps its own number.
            state.seq = seq + 1
        if seq != event.seq or (text is not None and text != event.text):
            draft: Any = thaw_event(event)
            draft.seq = seq
            if text is not None:
                draft.text = text
            event = freeze_event(draft)
        self.below.on_next(event)

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
        self._stop()
        self._last = None
        self._waiting.clear()
        self._cutter.finish()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        super().dispose()


def smooth(
    by: Cut = "word",
    *,
    delay: float | None = None,
    max_lag: float = 1.0,
    thinking: bool = True,
    clock: Clock | None = None,
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """The deltas of text, and of thinking if *thinking*, cut anew into steady pieces. Nothing is lost, and the order is
    kept: any other event, and the end, first let out all that is held, at once. Deltas with attributes stay whole.

    *by*: "word" (with the space after it; a character in scripts without spaces, such as Chinese or Thai), "line", "char"
    (as a reader sees it, accents and joined emoji whole), a pattern (up to the end of its match), or a function that
    gets the text held and gives the length of the next piece, None while it is not whole. *delay*: seconds between
    pieces; None: as they come. *max_lag*: seconds; where more wait than that takes, several go out at a time.
    *clock*: gives the time; default: that of the source, else the running loop's.

    Pieces of one event need numbers of their own, which the stream counts on from: *seq* rises without a repeat, and an
    event that was on its way already gets another one. What resumes by *seq*, such as a log, belongs above it.

    ```
    TEXT+ TEXT~on TEXT~e_tw TEXT~o TEXT-|        smooth()
    TEXT+ -------- TEXT~one_ ----- TEXT~two TEXT-|
    ```

    Raises:
        ConfigurationError: if *by* is none of these, or a time is not above zero.
    """
    if not (callable(by) or isinstance(by, re.Pattern) or by in NAMES):
        raise ConfigurationError(
            f"smooth(by={by!r}): write one of {NAMES}, a compiled pattern, or a function"
        )
    for name, seconds in (("delay", delay), ("max_lag", max_lag)):
        if seconds is not None and not seconds > 0:
            raise ConfigurationError(f"smooth({name}={seconds!r}): seconds above zero")
    kinds: tuple[type[Any], ...] = (TextDelta, ThinkingDelta) if thinking else (TextDelta,)
    return lift(lambda below, run: _SmoothLink(below, run, Cutter(by), kinds, delay, max_lag, clock))


__all__ = ("smooth",)
