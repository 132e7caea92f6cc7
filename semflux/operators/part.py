"""`Part`: a part of a stream as a stream of its own, for one subscriber."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler

from semflux.errors import AlreadyConsumedError, BufferOverflowError, SemfluxError
from semflux.operators.delivery import Room, weight_of
from semflux.operators.lift import NOTHING, Direct
from semflux.operators.reader import Reader
from semflux.operators.run import Run, run_of

T = TypeVar("T")

HELD = Room(items=100_000, weight=16 * 1024 * 1024)
"""What a part holds until its subscriber comes, or for one that pulls and is slow."""


class Giver(Protocol):
    """What feeds a part."""

    run: Run

    def part_left(self, outlet: Outlet, *, for_good: bool) -> None:
        """Nobody reads *outlet* any more; *for_good*: what is still to come for it is nobody's either."""
        ...

    def drained(self) -> None:
        """Somebody waits for an item, or has taken one."""
        ...


class AskingReader(Reader):
    """A reader that says when its subscriber waits, and knows whether it still does."""

    __slots__ = ("_asked",)

    def __init__(self, outlet: ReaderOwner, below: abc.ObserverBase[Any], run: Run) -> None:
        self._asked = 0
        super().__init__(outlet, below, run, room=HELD)

    @property
    def is_hungry(self) -> bool:
        """True if its subscriber waits, and has had nothing since it began to."""
        run = self.run
        return run.pull and run.is_waiting and not self.over and run.demand >= self._asked > 0

    def fill(self) -> Awaitable[None] | None:
        waiting = super().fill()
        if waiting is not None:
            self._asked = self.run.demand
            self.owner.drained()
        return None if self._waiter is None else waiting

    @property
    def wanted(self) -> int:
        """Items that are wanted, and do not wait already."""
        return self.run.demand - len(self.items)

    def wake(self) -> None:
        """Its subscriber may have got something in another way."""
        self._wake()


class ReaderOwner:
    """Owns a reader, on behalf of what feeds it."""

    __slots__ = ("giver",)
    can_wait = False

    def __init__(self, giver: Giver) -> None:
        self.giver: Giver = giver

    def drained(self) -> None:
        """There is room again, or somebody waits."""
        self.giver.drained()

    async def released(self) -> None:
        """Wait until what the source holds open is closed, once it is over."""
        driver = self.giver.run.driver
        if driver is not None and driver.over:
            await driver.released()

    def left(self, reader: Reader) -> None:
        """The subscriber is no more."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def fail_one(self, reader: Reader, error: SemfluxError) -> None:
        """End it with *error*."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def abort_one(self, reader: Reader, reason: str) -> None:
        """End it from the other side."""
        raise NotImplementedError  # pragma: no cover  # abstract


class Outlet(ReaderOwner):
    """The giving side of a part: holds what comes before the subscriber does."""

    __slots__ = ("_ended", "_gone", "_held", "_lock", "_weight", "key", "reader", "taken")

    def __init__(self, giver: Giver, key: Any = None) -> None:
        super().__init__(giver)
        self.key: Any = key
        """What the giver knows it by."""
        self.taken: bool = False
        """True once somebody has subscribed."""
        self.reader: AskingReader | None = None
        """The subscriber; None before it has come."""
        self._held: deque[Any] = deque()
        self._weight = 0
        self._gone = False
        self._ended: tuple[Exception | None] | None = None
        self._lock = threading.Lock()

    def emit(self, item: Any) -> None:
        """The next item; dropped, if nobody is there for it any more."""
        reader = self.reader
        if reader is None:
            with self._lock:
                reader = self.reader
                if reader is None and not self._gone:
                    self._hold(item)
        if reader is not None and not self._gone:
            reader.offer(item, weight_of(item))

    def _hold(self, item: Any) -> None:
        self._weight += weight_of(item)
        self._held.append(item)
        if len(self._held) > HELD.items or self._weight > HELD.weight:
            self._ended = (
                BufferOverflowError(
                    f"a part of the stream that nobody had subscribed to held {len(self._held)} items "
                    f"({self._weight} bytes), and its room is {HELD.items} items and {HELD.weight} bytes: subscribe "
                    "to each part as it comes"
                ),
            )
            self._drop()
            self.giver.part_left(self, for_good=True)

    def _drop(self) -> None:
        self._gone = True
        self._held.clear()

    def end(self, error: Exception | None) -> None:
        """The end, after what is held."""
        with self._lock:
            if self._ended is None:
                self._ended = (error,)
            reader = self.reader
        if reader is not None:
            reader.end(error)

    def attach(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        """The subscriber comes."""
        if self.taken:
            observer.on_error(
                AlreadyConsumedError("a window or group has one subscriber: share() it for several of them")
            )
            return NOTHING
        self.taken = True
        reader = AskingReader(self, observer, run_of(scheduler).undriven())
        with self._lock:
            held, self._held = self._held, deque()
            reader.preload(list(held))
            self.reader = reader
            ended = self._ended
        if ended is not None:
            reader.end(ended[0])

        def begin(*_: Any) -> None:
            reader.start()
            self.drained()

        if held or ended is not None:
            # From the trampoline, so that a disposable exists before the first item.
            CurrentThreadScheduler.singleton().schedule(begin)
        else:
            begin()
        return reader

    def abandon(self) -> None:
        """Nobody can subscribe any more."""
        # Without the lock: this may come from the middle of anything.
        self._drop()
        self.giver.part_left(self, for_good=True)

    # What the reader asks

    def left(self, reader: Reader) -> None:
        gone, self._gone = self._gone, True
        if not gone:
            self.giver.part_left(self, for_good=False)

    def fail_one(self, reader: Reader, error: SemfluxError) -> None:
        self._close(reader, error)

    def abort_one(self, reader: Reader, reason: str) -> None:
        self._close(reader, None)

    def _close(self, reader: Reader, error: Exception | None) -> None:
        self._gone = True
        reader.end(error)
        self.giver.part_left(self, for_good=True)


class Part(Direct[T]):
    """A part of a stream, for one subscriber: a second one gets AlreadyConsumedError.

    What comes before its subscriber is held for it. If nobody has subscribed and nothing refers to it any more, its
    items are dropped.
    """

    def __init__(self, outlet: Outlet) -> None:
        super().__init__()
        self._outlet = outlet

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        return self._outlet.attach(observer, scheduler)

    def __del__(self) -> None:
        if not self._outlet.taken:
            self._outlet.abandon()


__all__ = ("HELD", "AskingReader", "Giver", "Outlet", "Part", "ReaderOwner")
