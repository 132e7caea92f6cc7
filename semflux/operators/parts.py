"""`Part`: a part of a stream as a stream of its own, for one subscriber; `PartsLink`: what gives the items out to parts."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler

from semflux.errors import AlreadyConsumedError, BufferOverflowError, SemfluxError
from semflux.operators.connection import Connection
from semflux.operators.delivery import ITEM_WEIGHT, Room, weight_of
from semflux.operators.lift import NOTHING, Direct, Lifted, Link
from semflux.operators.reader import NOBODY, Reader
from semflux.operators.run import Run, run_of

T = TypeVar("T")

HELD = Room(items=100_000, weight=16 * 1024 * 1024)
"""What a part holds until its subscriber comes, or for one that pulls and is slow."""

AHEAD = 64
"""Items that the source is asked for at once."""


class Giver(Protocol):
    """What feeds a part."""

    run: Run

    def part_left(self, outlet: Outlet, *, for_good: bool) -> None:
        """Nobody reads *outlet* any more; *for_good*: what is still to come for it is nobody's either."""
        ...

    def drained(self) -> None:
        """Somebody waits for an item, or has taken one."""
        ...


class _Asking(Reader):
    """A reader that says when its subscriber waits, and knows whether it still does."""

    __slots__ = ("_asked",)

    def __init__(self, outlet: _Owned, below: abc.ObserverBase[Any], run: Run) -> None:
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


class _Owned:
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


class Outlet(_Owned):
    """The giving side of a part: holds what comes before the subscriber does."""

    __slots__ = ("_ended", "_gone", "_held", "_lock", "_weight", "key", "reader", "taken")

    def __init__(self, giver: Giver, key: Any = None) -> None:
        super().__init__(giver)
        self.key: Any = key
        """What the giver knows it by."""
        self.taken: bool = False
        """True once somebody has subscribed."""
        self.reader: _Asking | None = None
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
        run = run_of(scheduler)
        if run.driver is not None:
            # Another source of this subscription is driven by it already.
            run = run.another()
        reader = _Asking(self, observer, run)
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


class _Main(_Owned, abc.ObserverBase[Any]):
    """Stands below a link whose subscriber pulls: the parts wait there until they are wanted."""

    __slots__ = ("link", "reader")

    def __init__(self, link: PartsLink, below: abc.ObserverBase[Any], run: Run) -> None:
        super().__init__(link)
        self.link = link
        self.reader = _Asking(self, below, run)

    def on_next(self, value: Any) -> None:
        self.reader.offer(value, ITEM_WEIGHT)

    def on_error(self, error: Exception) -> None:
        self.reader.end(error)

    def on_completed(self) -> None:
        self.reader.end(None)

    def left(self, reader: Reader) -> None:
        self.link.dispose()

    def fail_one(self, reader: Reader, error: SemfluxError) -> None:
        # At the first stage, so that what is open in a chat stream is ended in order.
        if not self.giver.run.fail(error):
            self.link.fail(error)

    def abort_one(self, reader: Reader, reason: str) -> None:
        self.giver.run.abort(reason)


class PartsLink(Link[Any, Any]):
    """Gives the items out to parts, and the parts to what is below.

    An error goes to the open parts first, then to what is below. Who leaves the stream of parts leaves the open ones
    as they are: the source is cancelled with the last of them. For a subscriber that pulls, the source goes on while
    somebody waits, for a part or for an item of one, and a little ahead of that for who reads already.
    """

    __slots__ = ("_connection", "_left", "_main", "_parts")

    below: abc.ObserverBase[Any]

    def __init__(self, below: abc.ObserverBase[Any], run: Run) -> None:
        super().__init__(below, run)
        self._parts: dict[Outlet, None] = {}
        self._left = False
        self._main: _Main | None = None
        self._connection: Connection | None = None

    def open(self, outlet: Outlet, part: Part[Any]) -> None:
        """Another part begins."""
        self._parts[outlet] = None
        self.below.on_next(part)

    def close(self, outlet: Outlet) -> None:
        """A part has ended."""
        self._parts.pop(outlet, None)
        outlet.end(None)
        self._release()

    def part_left(self, outlet: Outlet, *, for_good: bool) -> None:
        """Nobody reads *outlet* any more."""
        self._parts.pop(outlet, None)
        self._release()
        if not for_good:
            self.drained()

    def _release(self) -> None:
        if self._left and not self._parts and not self.stopped:
            super().dispose()

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self._let_go()
            self._finish(error)

    def on_completed(self) -> None:
        if not self.stopped:
            self._let_go()
            self._finish(None)

    def fail(self, error: Exception) -> None:
        if not self.stopped:
            super().dispose()
            self._finish(error)

    def _finish(self, error: Exception | None) -> None:
        parts, self._parts = self._parts, {}
        for outlet in parts:
            outlet.end(error)
        if self._left:
            return
        if error is None:
            self.below.on_completed()
        else:
            self.below.on_error(error)

    def _let_go(self) -> abc.DisposableBase | None:
        self._connection = None
        return super()._let_go()

    def dispose(self) -> None:
        if not self._left:
            self._left = True
            self.below = NOBODY
            self._main = None
            self._release()
            self.drained()

    # For a subscriber that pulls

    def begin(
        self, source: abc.ObservableBase[Any], below: abc.ObserverBase[Any], run: Run
    ) -> abc.DisposableBase:
        """Subscribe to *source*, to be driven as far as somebody waits; *run* is that of who pulls."""
        self._main = main = _Main(self, below, run)
        self.below = main
        self._connection = connection = Connection(source, self, self.run)
        self.connect(connection)
        connection.start()
        main.reader.start()
        return main.reader

    def emit(self, item: Any) -> None:
        """The next item."""
        self.on_next(item)
        if self._main is not None:
            self._main.reader.wake()

    def end(self, error: Exception | None) -> None:
        """The end."""
        if error is None:
            self.on_completed()
        else:
            self.on_error(error)

    def room(self) -> int:
        """How many items may come."""
        least = AHEAD
        main = None if self._main is None else self._main.reader
        if main is not None:
            if main.is_hungry:
                return AHEAD
            least = min(least, main.wanted)
        for outlet in self._parts:
            reader = outlet.reader
            if reader is None:
                least = 0
            elif reader.is_hungry:
                return AHEAD
            elif reader.run.pull:
                least = min(least, reader.wanted)
        return max(0, least)

    def drained(self) -> None:
        """Somebody waits for an item, or has taken one."""
        if self._connection is not None:
            self._connection.drained()


class Parted(Lifted[Any]):
    """A source with a `PartsLink` on it. One whose subscriber pulls gets a run of its own, over the same state."""

    def __init__(
        self, source: abc.ObservableBase[Any], make: Callable[[abc.ObserverBase[Any], Run], PartsLink]
    ) -> None:
        super().__init__(source, make)
        self._make_parts = make

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        if not run.pull or run.driver is not None:
            return super()._subscribe_core(observer, scheduler)
        above = Run(pull=True, demand=0, state=run.state)
        above.clock = run.clock
        return self._make_parts(NOBODY, above).begin(self.source, observer, run)


__all__ = ("AHEAD", "HELD", "Giver", "Outlet", "Part", "Parted", "PartsLink")
