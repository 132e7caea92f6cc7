"""`smooth`: text in steady pieces, whatever the pieces of the provider."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from reactivex import Observable, abc

from semflux.clock import Clock, Timer
from semflux.cutting import CutBy, Cutter, cutter_of
from semflux.errors import ConfigurationError
from semflux.events import AnyChatEvent, TextDelta, ThinkingDelta, change_event, freeze_event
from semflux.operators.delivery import joins
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.operators.timing import clock_of

MAX_CHARS = 1000
"""Characters of a piece at most, unless it is said."""

MAX_LAG = 1.0
"""Seconds that a piece waits at most, unless it is said."""

_AHEAD = 64
"""Pieces that wait, from which on a source that is pulled is not read."""

_TICK = 0.002
"""Seconds between two calls of the timer at least: pieces that are to come faster come several at a time."""


class _SmoothLink(Link[AnyChatEvent, AnyChatEvent]):
    """Cuts deltas, and lets the pieces out one after the other; what is no piece waits behind those before it."""

    __slots__ = (
        "_clock",
        "_cut",
        "_cutter",
        "_deadline",
        "_delay",
        "_given",
        "_held",
        "_max_lag",
        "_queue",
        "_seq",
        "_timer",
        "_waiting",
    )

    def __init__(
        self,
        below: abc.ObserverBase[AnyChatEvent],
        run: Run,
        cutter: Cutter,
        cut: tuple[type[Any], ...],
        delay: float | None,
        max_lag: float,
        clock: Clock | None,
    ) -> None:
        super().__init__(below, run)
        self._cutter = cutter
        self._cut = cut
        self._delay = delay
        self._max_lag = max_lag
        self._given = clock
        self._clock: Clock | None = None
        self._timer: Timer | None = None
        self._held: Any = None
        """The last delta, while the cutter has some of its block."""
        self._queue: deque[tuple[Any, float | None]] = deque()
        """What waits for its time; a piece has a latest time."""
        self._waiting = 0
        """Pieces in the queue."""
        self._deadline = 0.0
        """The latest time of the last piece in the queue."""
        self._seq = -1
        """That of the last event that went out."""
        if delay is not None:
            # The timer lets something out while a subscriber that pulls waits for the source.
            run.alone = False

    def on_next(self, value: AnyChatEvent) -> None:
        if self.stopped:
            return
        if not isinstance(value, self._cut) or value.attributes:
            # Facts of one piece, such as its log probabilities, are true of the whole piece alone.
            self._settle()
            self._pass(value)
            return
        if self._held is not None and not joins(self._held, value):
            self._settle()
            if self.stopped:
                return
        self._held = value
        try:
            pieces = self._cutter.feed(value.text or "")
        except Exception as error:  # what the user's function raised
            self._settle()
            self._release()
            if not self.stopped:
                self._hand_seq_on()
                self.fail(error)
            return
        for piece in pieces:
            self._offer(_with_text(value, piece))
            if self.stopped:
                return

    def _settle(self) -> None:
        """The text is over: the rest of it is a piece."""
        held, self._held = self._held, None
        if held is not None:
            rest = self._cutter.finish()
            if rest:
                self._offer(_with_text(held, rest))

    def _pass(self, value: AnyChatEvent) -> None:
        """Let out what is no piece: behind those that wait, or with all of them if it ends the stream."""
        if self.stopped:
            return
        if value.is_terminal:
            self._release()
            if self.stopped:
                return
        if self._queue:
            self._queue.append((value, None))
        else:
            self._emit(value)

    def _offer(self, piece: Any) -> None:
        """Let out a piece, when it is its time."""
        if self._delay is None:
            self._emit(piece)
            return
        clock = self._clock
        if clock is None:
            try:
                clock = self._clock = clock_of("smooth(delay=...)", self._given, self.run)
            except ConfigurationError as error:
                self.fail(error)
                return
        if self._timer is None and not self._queue:
            self._timer = clock.call_later(self._delay, self._ring)
            self._emit(piece)
            return
        self._deadline = clock.monotonic() + self._max_lag
        self._queue.append((piece, self._deadline))
        self._waiting += 1
        self._weigh()
        if self._waiting == 1 and self._max_lag < self._delay and self._timer is not None:
            self._timer.cancel()
            self._timer = clock.call_later(self._max_lag, self._ring)

    def _ring(self) -> None:
        self._timer = None
        clock, queue = self._clock, self._queue
        if self.stopped or not queue or clock is None or self._delay is None:
            return
        now = clock.monotonic()
        left = (self._deadline - now) / self._waiting if self._waiting else 0.0
        step = min(self._delay, left)
        due = 1 if step >= _TICK else self._waiting if step <= 0 else max(1, round(_TICK / step))
        while queue and not self.stopped:
            value, latest = queue[0]
            if latest is not None:
                if due <= 0 and latest > now:
                    step = min(step, latest - now)
                    break
                due -= 1
                self._waiting -= 1
            queue.popleft()
            self._emit(value)
        self._weigh()
        if not self.stopped and self._timer is None:
            self._timer = clock.call_later(max(step, min(_TICK, self._delay)), self._ring)

    def _release(self) -> None:
        """Let all out that waits."""
        queue = self._queue
        while queue and not self.stopped:
            self._emit(queue.popleft()[0])
        self._stop_timer()

    def _weigh(self) -> None:
        """Say whether so much waits that the source is to wait too."""
        run, ahead = self.run, self._waiting >= _AHEAD
        if ahead is not run.is_ahead:
            run.is_ahead = ahead
            if not ahead and run.wake is not None:
                # Whether what went out has reached the subscriber is not known here.
                run.wake()

    def _stop_timer(self) -> None:
        self._waiting = 0
        self._weigh()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _emit(self, value: Any) -> None:
        seq = value.seq
        if seq >= 0:
            if seq <= self._seq:
                seq = self._seq + 1
                value = change_event(value, seq=seq)
            self._seq = seq
        self.below.on_next(value)

    def _hand_seq_on(self) -> None:
        """What a recovery below says next comes after all that went out here."""
        state = self.run.state
        state.seq = max(state.seq, self._seq + 1)

    def on_error(self, error: Exception) -> None:
        # What is held came before the failure, and is lost by no other way.
        if not self.stopped:
            self._settle()
            self._release()
            self._hand_seq_on()
            super().on_error(error)

    def on_completed(self) -> None:
        if not self.stopped:
            self._settle()
            self._release()
            super().on_completed()

    def dispose(self) -> None:
        self.stopped = True
        self._held = None
        self._queue.clear()
        self._cutter.finish()
        self._stop_timer()
        super().dispose()


def _with_text(event: Any, text: str) -> Any:
    """*event* with this text: itself if it has it already."""
    if event.text == text:
        return event
    draft: Any = event.draft_class(text, event.origin, event.item_id, event.index, event.raw_type)
    draft.seq, draft.time = event.seq, event.time
    return freeze_event(draft)


def smooth(
    by: CutBy = "word",
    *,
    delay: float | None = None,
    max_lag: float = MAX_LAG,
    max_chars: int = MAX_CHARS,
    thinking: bool = True,
    clock: Clock | None = None,
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """The deltas of text in steady pieces. Nothing is lost, and the order is kept: any other event, and the end, first
    let out what is held.

    *by*: "word", with the space before it; a character where a script has no spaces (Han, kana, Thai, Lao, Khmer,
    Myanmar); "line", with its end; "grapheme"; a compiled pattern, whose match ends a piece; or a function that gets
    what is held, *max_chars* of it at most, and gives the length of its first piece, None while there is none. No
    piece ends inside a grapheme (an emoji, a letter with its marks): so it waits for the character after it.

    *delay*: seconds between two pieces; None: they are cut, and not delayed. *max_lag*: seconds that a piece waits
    for its time at most: where the source is ahead, pieces come faster. A terminal event, or a failure, lets
    everything out at once. *max_chars*: a longer piece is cut between graphemes. *thinking*: cut reasoning too.
    *clock*: gives the time; default: that of the source, else the running loop's. Deltas with attributes stay whole.
    A source that is pulled is not read while many pieces wait.

    Several pieces of one event cannot all have its `seq`: an event whose number has been given out below gets the
    next one, so that the numbers rise without a repeat. Above and below, one event may have different numbers.

    ```
    TEXT+ TEXT~Hel TEXT~lo you, an TEXT~d me TEXT-|                     smooth()
    TEXT+ -------- TEXT~Hello TEXT~_you, TEXT~_and TEXT~_me TEXT-|
    ```

    Raises:
        ConfigurationError: if *by* is nothing to cut by, or a bound is not above zero. What a function of yours gives
            wrongly is the stream's error.
    """
    make = cutter_of(by, max_chars)
    if delay is not None and not delay > 0:
        raise ConfigurationError(f"smooth(delay={delay!r}): seconds above zero; None for no delay")
    if not max_lag > 0:
        raise ConfigurationError(f"smooth(max_lag={max_lag!r}): seconds above zero; delay=None for no delay")
    cut: tuple[type[Any], ...] = (TextDelta, ThinkingDelta) if thinking else (TextDelta,)
    return lift(lambda below, run: _SmoothLink(below, run, make(), cut, delay, max_lag, clock))


__all__ = ("MAX_CHARS", "MAX_LAG", "smooth")
