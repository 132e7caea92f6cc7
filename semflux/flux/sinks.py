"""`Sinks`: streams that code feeds by hand, with a result for each attempt."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Generic, TypeVar

from reactivex import abc

from semflux.clock import Clock
from semflux.errors import AlreadyConsumedError, BufferOverflowError, ConfigurationError, OperatorError
from semflux.flux.flux import Flux
from semflux.operators.delivery import Room, weight_of
from semflux.operators.fanout import Fanout, History
from semflux.operators.lift import NOTHING, Direct
from semflux.operators.run import run_of

T = TypeVar("T")


class EmitResult(StrEnum):
    """What became of an attempt to emit."""

    OK = "OK"
    """It is delivered, or waits for its subscribers."""
    FAIL_TERMINATED = "FAIL_TERMINATED"
    """The sink has ended before."""
    FAIL_OVERFLOW = "FAIL_OVERFLOW"
    """A subscriber's buffer is full: nobody got it."""
    FAIL_CANCELLED = "FAIL_CANCELLED"
    """Its subscribers have left, and it ended with them."""
    FAIL_NON_SERIALIZED = "FAIL_NON_SERIALIZED"
    """Another thread is emitting at this moment."""
    FAIL_ZERO_SUBSCRIBER = "FAIL_ZERO_SUBSCRIBER"
    """Nobody listens, and what waits for the first subscriber is all there is room for."""

    @property
    def is_success(self) -> bool:
        """True for OK."""
        return self is EmitResult.OK


RetryHandler = Callable[[EmitResult], bool]
"""Says whether to try again after a failed attempt."""


class _SinkSource(Direct[Any]):
    def __init__(self, sink: Sink[Any]) -> None:
        super().__init__()
        self._sink = sink

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        return self._sink.attach(observer, scheduler)


class Sink(Generic[T]):
    """A stream that is fed by hand; made by `Sinks`.

    May be fed from any thread, by one at a time: a second one gets FAIL_NON_SERIALIZED, at once. What is emitted from
    inside an item comes after it. What a subscriber raises is its own.
    """

    def __init__(
        self,
        *,
        room: Room,
        single: bool = False,
        auto_cancel: bool = True,
        history: History | None = None,
    ) -> None:
        self._room = room
        self._single = single
        self._auto_cancel = auto_cancel
        self._keeps = history is not None
        self._waiting: deque[tuple[Any, int]] = deque()
        self._weight = 0
        self._taken = False
        self._cancelled = False
        self._ended = False
        self._guard = threading.Lock()
        self._holder: int | None = None
        self._fanout = Fanout(self, room=room, policy="block", history=history, emptied=self._emptied)

    # Feeding it

    def try_emit_next(self, item: T) -> EmitResult:
        """Emit *item*, if that can be done now. Never waits, and never raises."""
        return self._serialized(lambda: self._next(item))

    def try_emit_error(self, error: Exception) -> EmitResult:
        """End it with *error*."""
        return self._serialized(lambda: self._end(error))

    def try_emit_complete(self) -> EmitResult:
        """End it."""
        return self._serialized(lambda: self._end(None))

    def emit_next(self, item: T, handler: RetryHandler | None = None) -> None:
        """Emit *item*; *handler* is asked after each failure whether to try again.

        Raises:
            BufferOverflowError: if there is no room.
            OperatorError: if it fails otherwise; its `kind` is the result, in small letters.
        """
        self._insist(lambda: self.try_emit_next(item), handler)

    def emit_error(self, error: Exception, handler: RetryHandler | None = None) -> None:
        """End it with *error*; raises as `emit_next` does."""
        self._insist(lambda: self.try_emit_error(error), handler)

    def emit_complete(self, handler: RetryHandler | None = None) -> None:
        """End it; raises as `emit_next` does."""
        self._insist(self.try_emit_complete, handler)

    def _insist(self, attempt: Callable[[], EmitResult], handler: RetryHandler | None) -> None:
        while True:
            result = attempt()
            if result is EmitResult.OK:
                return
            if handler is None or not handler(result):
                cls = BufferOverflowError if result is EmitResult.FAIL_OVERFLOW else OperatorError
                raise cls(f"the sink did not take it: {result}", kind=result.lower())

    def _serialized(self, attempt: Callable[[], EmitResult]) -> EmitResult:
        me = threading.get_ident()
        if self._holder == me:
            # From inside an item: it comes after that.
            return attempt()
        if not self._guard.acquire(blocking=False):
            return EmitResult.FAIL_NON_SERIALIZED
        self._holder = me
        try:
            return attempt()
        finally:
            self._holder = None
            self._guard.release()

    def _refused(self) -> EmitResult | None:
        if self._ended:
            return EmitResult.FAIL_TERMINATED
        return EmitResult.FAIL_CANCELLED if self._cancelled else None

    def _next(self, item: T) -> EmitResult:
        refused = self._refused()
        if refused is not None:
            return refused
        if not self._keeps:
            with self._fanout.lock:
                if not self._fanout.readers:
                    return self._warm_up(item)
        if self._fanout.is_full:
            return EmitResult.FAIL_OVERFLOW
        self._fanout.emit(item)
        return EmitResult.OK

    def _warm_up(self, item: T) -> EmitResult:
        if len(self._waiting) >= self._room.items or self._weight >= self._room.weight:
            return EmitResult.FAIL_OVERFLOW if self._single else EmitResult.FAIL_ZERO_SUBSCRIBER
        weight = weight_of(item)
        self._waiting.append((item, weight))
        self._weight += weight
        return EmitResult.OK

    def _end(self, error: Exception | None) -> EmitResult:
        refused = self._refused()
        if refused is not None:
            return refused
        self._ended = True
        self._fanout.end(error)
        return EmitResult.OK

    # Reading it

    def as_flux(self) -> Flux[T]:
        """The stream of it."""
        return Flux(_SinkSource(self))

    @property
    def current_subscriber_count(self) -> int:
        """How many listen now."""
        return len(self._fanout.readers)

    def attach(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        """Somebody subscribes."""
        if self._single and self._taken:
            observer.on_error(
                AlreadyConsumedError("a unicast sink has one subscriber: use Sinks.multicast() for several")
            )
            return NOTHING
        if self._cancelled:
            observer.on_completed()
            return NOTHING
        self._taken = True
        return self._fanout.add(observer, run_of(scheduler), self._take)

    def _take(self) -> list[Any]:
        """What waits: it belongs to the first one."""
        waiting = [item for item, _ in self._waiting]
        self._waiting.clear()
        self._weight = 0
        return waiting

    def _emptied(self) -> None:
        if self._auto_cancel and not self._keeps:
            self._cancelled = True

    # What the fan-out asks

    @property
    def can_wait(self) -> bool:
        """False: who feeds it is told that there is no room."""
        return False

    def drained(self) -> None:
        """Nobody waits for room."""

    async def released(self) -> None:
        """Nothing is held open."""


class Sinks:
    """Makes sinks. What waits in one is bounded: by its *buffer* of items, and by 8 MiB."""

    @staticmethod
    def unicast(*, buffer: int = 1024) -> Sink[Any]:
        """For one subscriber, who gets all, what came before it too; a second one fails with AlreadyConsumedError.

        Raises:
            ConfigurationError: if *buffer* is below 1.
        """
        return Sink(room=_room(buffer, "unicast"), single=True)

    @staticmethod
    def multicast(*, buffer: int = 1024, auto_cancel: bool = True) -> Sink[Any]:
        """For any number of subscribers; what comes while there is none waits for the next one.

        *auto_cancel*: when the last subscriber leaves, the sink is over.

        Raises:
            ConfigurationError: if *buffer* is below 1.
        """
        return Sink(room=_room(buffer, "multicast"), auto_cancel=auto_cancel)

    @staticmethod
    def replay(
        n: int | None = None, ttl: float | None = None, *, buffer: int = 1024, clock: Clock | None = None
    ) -> Sink[Any]:
        """For any number of subscribers, who get the last *n* items that are not older than *ttl* seconds first.

        Without either they get everything, of 10,000 items and 16 MiB at most: who subscribes after more than that
        fails with BufferOverflowError.

        Raises:
            ConfigurationError: if *n* is negative, *ttl* is not above zero, or *buffer* is below 1.
        """
        if n is not None and n < 0:
            raise ConfigurationError(f"Sinks.replay(n={n}): the number must not be negative")
        if ttl is not None and not ttl > 0:
            raise ConfigurationError(f"Sinks.replay(ttl={ttl!r}): a time in seconds, above zero")
        now = time.monotonic if clock is None else clock.monotonic
        return Sink(room=_room(buffer, "replay"), history=History(n, ttl, now))


def _room(buffer: int, name: str) -> Room:
    if buffer < 1:
        raise ConfigurationError(f"Sinks.{name}(buffer={buffer}): there must be room for one item at least")
    return Room(items=buffer)


__all__ = ("EmitResult", "RetryHandler", "Sink", "Sinks")
