"""`record`: a stream on a virtual clock, written down; `from_marbles`: a text as a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reactivex import abc

from semflux.clock import Clock, Timer, VirtualClock
from semflux.errors import ConfigurationError
from semflux.flux import Flux
from semflux.flux.creating import Created, FluxSink
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.operators.timing import clock_of
from semflux.testing.clocks import ClockScheduler, SteppedClock
from semflux.testing.marbles import Marbles, Mark, marks_at
from semflux.testing.signals import Signal, SignalKind, next_signal
from semflux.testing.subscriptions import PushSubscription, bare
from semflux.testing.verification import run_here, settle

# A source


def from_marbles(
    text: str | Marbles,
    values: Mapping[str, Any] | None = None,
    *,
    error: Exception | None = None,
    step: float = 1.0,
    clock: Clock | None = None,
) -> Flux[Any]:
    """A source that emits what *text* shows, when it shows it: `from_marbles("--a--b|")`. For each subscriber anew.

    *values*, *error* and *step* as in `Marbles.parse`. Time is that of *clock*; default: that of the verification or
    the recording that it is used in, else the running loop's.

    Raises:
        ConfigurationError: if the text cannot be read, or shows a cancel, which is a subscriber's.
    """
    marbles = text if isinstance(text, Marbles) else Marbles.parse(text, values, error=error, step=step)
    if any(mark.signal is None for mark in marbles.marks):
        raise ConfigurationError("from_marbles(): a cancel (`!`) is what a subscriber does, not a source")
    groups = marks_at(marbles.marks)

    def begin(sink: FluxSink[Any]) -> None:
        _Play(sink, groups, clock).go_on()

    return Flux(Created(begin))


class _Play:
    """One subscription to a text: one timer at a time."""

    def __init__(
        self, sink: FluxSink[Any], groups: Sequence[tuple[float, list[Signal]]], clock: Clock | None
    ) -> None:
        self._sink = sink
        self._left = list(reversed(groups))
        self._timer: Timer | None = None
        self._clock: Clock | None = None
        if groups and groups[-1][0] > 0:
            self._clock = clock_of("from_marbles", clock, sink.run)
        self._begin = 0.0 if self._clock is None else self._clock.monotonic()
        sink.on_dispose(self._cancel)

    def _cancel(self) -> None:
        self._left = []
        if self._timer is not None:
            self._timer.cancel()

    def go_on(self) -> None:
        """Emit what is due, and wait for the next."""
        sink, clock = self._sink, self._clock
        now = 0.0 if clock is None else clock.monotonic() - self._begin
        while self._left and self._left[-1][0] <= now + 1e-9:
            for signal in self._left.pop()[1]:
                if signal.kind is SignalKind.NEXT:
                    sink.next(signal.value)
                elif signal.kind is SignalKind.ERROR:
                    sink.error(signal.value)
                else:
                    sink.complete()
        if self._left and clock is not None:
            self._timer = clock.call_later(self._left[-1][0] - now, self.go_on)


# What came


class Notes:
    """Marks, written down as they come."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.marks: list[Mark] = []
        """So far."""
        self.begin: float | None = None
        """When somebody subscribed first; None: nobody has."""

    @property
    def marbles(self) -> Marbles:
        """What came so far."""
        return Marbles(tuple(self.marks), self.begin)

    def subscribed(self) -> None:
        """Somebody subscribes now."""
        if self.begin is None:
            self.begin = round(self._clock.monotonic(), 6)

    def note(self, signal: Signal | None) -> None:
        """This came now; None: a cancel."""
        self.marks.append(Mark(signal, round(self._clock.monotonic(), 6)))


class _NotingLink(Link[Any, Any]):
    __slots__ = ("_notes",)

    def __init__(self, below: abc.ObserverBase[Any], run: Run, notes: Notes) -> None:
        super().__init__(below, run)
        self._notes = notes
        notes.subscribed()

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self._notes.note(next_signal(value))
            self.below.on_next(value)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self._notes.note(Signal(SignalKind.ERROR, error))
        super().on_error(error)

    def on_completed(self) -> None:
        if not self.stopped:
            self._notes.note(Signal(SignalKind.COMPLETE))
        super().on_completed()

    def dispose(self) -> None:
        if not self.stopped:
            self._notes.note(None)
        super().dispose()


def noted(source: abc.ObservableBase[Any], notes: Notes) -> Flux[Any]:
    """*source*, with all that passes, and each cancel, written into *notes*: its subscriptions on one line."""
    return Flux(lift(lambda below, run: _NotingLink(below, run, notes))(bare(source)))


def stream_of(
    given: abc.ObservableBase[Any] | Callable[[VirtualClock], abc.ObservableBase[Any]], clock: VirtualClock
) -> abc.ObservableBase[Any]:
    """The stream that was *given*, or that the function makes for *clock*."""
    # Not asked whether it is a function: RxPY's observables can be called too.
    if isinstance(given, abc.ObservableBase):
        stream: abc.ObservableBase[Any] = given  # pyright: ignore[reportUnknownVariableType]
        return stream
    return given(clock)


class Subscriber:
    """One who subscribes at a time, may cancel at a time, and writes down what comes."""

    def __init__(
        self, clock: SteppedClock, stream: abc.ObservableBase[Any], joins: float, cancel_at: float | None
    ) -> None:
        self._notes = Notes(clock)
        self._joins = joins
        run = Run(scheduler=ClockScheduler(clock))
        run.clock = clock
        self._subscription = PushSubscription(bare(stream), self._notes.note, run)
        if joins > 0:
            clock.call_later(joins, self._subscribe)
        if cancel_at is not None:
            clock.call_later(cancel_at, self._cancel)

    @property
    def over(self) -> bool:
        """True once it was told an end, or has cancelled."""
        marks = self._notes.marks
        return bool(marks) and marks[-1].is_end

    @property
    def marbles(self) -> Marbles:
        """What came so far."""
        return self._notes.marbles

    def start(self) -> None:
        """Subscribe, if it is to be done at once."""
        if not self._joins > 0:
            self._subscribe()

    def _subscribe(self) -> None:
        self._notes.subscribed()
        self._subscription.start()

    def _cancel(self) -> None:
        if not self.over:
            self._subscription.dispose()
            self._notes.note(None)

    async def leave(self) -> None:
        """It has seen enough."""
        self._subscription.dispose()
        await self._subscription.released()


async def play(clock: SteppedClock, subscribers: Sequence[Subscriber], seconds: float) -> None:
    """Let them subscribe, and time pass, until all is over, nothing more can happen, or *seconds* have passed."""
    try:
        for subscriber in subscribers:
            subscriber.start()
        while True:
            await settle()
            due = clock.next_due
            if due is None or due > seconds or all(subscriber.over for subscriber in subscribers):
                return
            clock.advance_to(due)
    finally:
        for subscriber in subscribers:
            await subscriber.leave()


async def record_async(
    stream: abc.ObservableBase[Any] | Callable[[VirtualClock], abc.ObservableBase[Any]],
    *,
    seconds: float = 3600.0,
    cancel_at: float | None = None,
) -> Marbles:
    """As `record`, in a coroutine."""
    clock = SteppedClock()
    subscriber = Subscriber(clock, stream_of(stream, clock), 0.0, cancel_at)
    await play(clock, [subscriber], seconds)
    return subscriber.marbles


def record(
    stream: abc.ObservableBase[Any] | Callable[[VirtualClock], abc.ObservableBase[Any]],
    *,
    seconds: float = 3600.0,
    cancel_at: float | None = None,
) -> Marbles:
    """Subscribe to *stream*, or to what a function makes of the `VirtualClock`, and write down what comes, and when.

    Timed operators, and those of RxPY, go by the clock; nothing is waited for, so that what needs real time (a socket,
    a thread, `asyncio.sleep`) does not come. It ends with the stream, after *seconds* of virtual time, or when nothing
    more can happen; a line without an end says so. *cancel_at*: when the subscriber cancels, in seconds.

    Raises:
        BlockingInLoopError: inside a running loop: `await record_async(...)` there.
    """
    return run_here(record_async(stream, seconds=seconds, cancel_at=cancel_at), "record", "record_async")


__all__ = ("Notes", "Subscriber", "from_marbles", "noted", "play", "record", "record_async", "stream_of")
