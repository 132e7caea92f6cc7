"""`Fanout`: one stream, many readers, one order for all of them; and what late ones get of what has been."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler

from semflux.errors import BufferOverflowError, OperatorError, SemfluxError
from semflux.events import ChatEvent
from semflux.operators.delivery import Policy, Room, weight_of
from semflux.operators.hooks import Hooks
from semflux.operators.reader import Reader
from semflux.operators.run import UNBOUNDED, Run
from semflux.operators.snapshot import Snapshot

REPLAY_ROOM = Room(items=10_000, weight=16 * 1024 * 1024)
"""What is kept for late subscribers, where no number is given."""


class History:
    """What late subscribers get: the last *count* items that are not older than *ttl* seconds; None: all."""

    def __init__(
        self,
        count: int | None,
        ttl: float | None,
        now: Callable[[], float],
        room: Room = REPLAY_ROOM,
        *,
        compact: bool = False,
    ) -> None:
        self.compact = compact
        """True if late subscribers of a chat stream get its snapshot instead."""
        self.lost: bool = False
        """True if more came than there is room for, though all of it was asked for."""
        self._count = count
        self._ttl = ttl
        self._now = now
        self._room = room
        self._items: deque[tuple[float, Any, int]] = deque()
        self._weight = 0

    def add(self, item: Any, weight: int) -> None:
        """The next item."""
        if self.compact or self.lost:
            return
        self._items.append((self._now() if self._ttl is not None else 0.0, item, weight))
        self._weight += weight
        self._forget()

    def _forget(self) -> None:
        items, ttl = self._items, self._ttl
        while items and ttl is not None and self._now() - items[0][0] >= ttl:
            self._drop()
        while self._count is not None and len(items) > self._count:
            self._drop()
        while items and (len(items) > self._room.items or self._weight > self._room.weight):
            if self._count is None and ttl is None:
                self.lost = True
                items.clear()
                self._weight = 0
                return
            self._drop()

    def _drop(self) -> None:
        self._weight -= self._items.popleft()[2]

    def items(self) -> list[Any]:
        """What there is to get now."""
        self._forget()
        return [item for _, item, _ in self._items]


class Source(Protocol):
    """What feeds a fan-out."""

    @property
    def can_wait(self) -> bool:
        """True if it stops when there is no room."""
        ...

    def drained(self) -> None:
        """There is room again, perhaps."""
        ...

    async def released(self) -> None:
        """Wait until what it holds open is closed, once it is over."""
        ...


class Fanout:
    """The readers of one stream.

    Guarantees: all see the same order, an item from inside an item comes after it; a reader that raises, fails or
    leaves is not seen by the others; who comes after the end is told it, after the history where there is one.
    """

    def __init__(
        self,
        source: Source,
        *,
        room: Room,
        policy: Policy,
        history: History | None = None,
        snapshot: Snapshot | None = None,
        emptied: Callable[[], object] = lambda: None,
    ) -> None:
        self._source = source
        self._room = room
        self._policy: Policy = policy
        self._history = history
        self._snapshot = snapshot
        self._emptied = emptied
        self.lock: threading.Lock = threading.Lock()
        """Held while readers come and go, and while an item enters the history."""
        self._busy = False
        self._later: deque[tuple[Any]] = deque()
        self._closing: list[Callable[[], None]] = []
        self._ends: tuple[Exception | None] | None = None
        self.readers: tuple[Reader, ...] = ()
        """Those that listen now."""
        self.over: bool = False
        """True once the end has come."""
        self.error: Exception | None = None
        """What it ended with; None if it ended well, or has not."""

    # Readers

    def add(self, below: abc.ObserverBase[Any], run: Run, before: Callable[[], list[Any]] = list) -> Reader:
        """Somebody listens: it gets *before*, what the history has, and what comes from now on."""
        reader = Reader(self, below, run.undriven(), room=self._room, policy=self._policy)
        with self.lock:
            items = before()
            missed = False
            if self._history is not None:
                missed = self._history.lost and self._snapshot is None
                compact = self._history.compact or self._history.lost
                past: list[Any] = (
                    list(self._snapshot.events())
                    if compact and self._snapshot is not None
                    else self._history.items()
                )
                items = [*items, *past]
            reader.preload(items)
            if not self.over and not missed:
                self.readers = (*self.readers, reader)
        if missed:
            reader.end(
                BufferOverflowError("more came than is kept for late subscribers: give replay() a number")
            )
        elif self.over:
            reader.end(self.error)

        # From the trampoline, so that a disposable exists before the first item.
        def begin(scheduler: abc.SchedulerBase, state: object = None) -> None:
            reader.start()

        CurrentThreadScheduler.singleton().schedule(begin)
        return reader

    @property
    def is_ending(self) -> bool:
        """True once the end has come, or the terminal event which it follows: nobody should join any more."""
        return self.over or (self._snapshot is not None and self._snapshot.is_ended)

    def room(self) -> int:
        """How many more items all of them have room for."""
        return min([reader.room() for reader in self.readers], default=UNBOUNDED)

    @property
    def is_full(self) -> bool:
        """True if one of those that pull has no room at all."""
        return any(reader.room() <= 0 for reader in self.readers)

    # The source's side

    def emit(self, item: Any) -> None:
        """The next item."""
        if self.over:
            Hooks.drop_next(item)
            return
        self._later.append((item,))
        self._run()

    def end(self, error: Exception | None) -> None:
        """The end, for all of them, after what waits."""
        if self.over or self._ends is not None:
            if error is not None:
                Hooks.drop_error(error)
            return
        self._ends = (error,)
        self._run()

    def _run(self) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            while self._later:
                self._tell(self._later.popleft()[0])
                while self._closing:
                    self._closing.pop()()
        finally:
            self._busy = False
        if self._ends is not None and not self.over:
            self._end(self._ends[0])

    def _tell(self, item: Any) -> None:
        weight = weight_of(item)
        with self.lock:
            if self._snapshot is not None and isinstance(item, ChatEvent):
                self._snapshot.add(item)
            if self._history is not None:
                self._history.add(item, weight)
            readers = self.readers
        for reader in readers:
            reader.offer(item, weight)

    def _end(self, error: Exception | None) -> None:
        with self.lock:
            self.over = True
            self.error = error
            readers, self.readers = self.readers, ()
        for reader in readers:
            reader.end(error)

    def stop(self) -> None:
        """The source was disconnected: all that listen are told so."""
        for reader in self.readers:
            if self._snapshot is None:
                self.fail_one(
                    reader, OperatorError("the shared source was disconnected", kind="disconnected")
                )
            else:
                self.abort_one(reader, "disconnected")
        self.over = True

    # What readers do

    @property
    def can_wait(self) -> bool:
        """True if the source stops when there is no room."""
        return self._source.can_wait

    def left(self, reader: Reader) -> None:
        """A reader is no more."""
        with self.lock:
            known = reader in self.readers
            self.readers = tuple([each for each in self.readers if each is not reader])
        if known:
            self._source.drained()
            if not self.readers and not self.over:
                self._emptied()

    def drained(self) -> None:
        """There is room again, perhaps."""
        self._source.drained()

    def fail_one(self, reader: Reader, error: SemfluxError) -> None:
        """End *reader* alone with *error*, after what waits for it; a chat stream is ended in order."""

        def close() -> None:
            snapshot = self._whole()
            if snapshot is None:
                reader.end(error)
            else:
                last, failure = snapshot.failing(error)
                reader.end(failure, *last)
            self.left(reader)

        self._close(close)

    def abort_one(self, reader: Reader, reason: str) -> None:
        """End *reader* alone: with ABORT, where it is a chat stream."""

        def close() -> None:
            snapshot = self._whole()
            reader.end(None, *([] if snapshot is None else snapshot.aborting(reason)))
            self.left(reader)

        self._close(close)

    def _close(self, close: Callable[[], None]) -> None:
        # In the middle of an item some readers have it already: all are to have it first.
        if self._busy:
            self._closing.append(close)
        else:
            close()

    def _whole(self) -> Snapshot | None:
        """The stream so far, where it can be ended in order."""
        snapshot = self._snapshot
        return None if snapshot is None or not snapshot.is_whole or snapshot.is_ended else snapshot

    async def released(self) -> None:
        """Wait until what the source holds open is closed, once it is over."""
        await self._source.released()


__all__ = ("REPLAY_ROOM", "Fanout", "History", "Source")
