"""`Reader`: one subscriber of a source that does not wait for it alone, and what waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from reactivex import abc

from semflux.errors import BufferOverflowError, SemfluxError
from semflux.events import ChatEvent
from semflux.operators.delivery import WAITING, Delivery, Policy, Room, coalesced, delivery_of, weight_of
from semflux.operators.hooks import Hooks
from semflux.operators.run import UNBOUNDED, Run
from semflux.operators.waking import wake


class Owner(Protocol):
    """Who feeds readers."""

    @property
    def can_wait(self) -> bool:
        """True if what feeds it stops when there is no room."""
        ...

    def left(self, reader: Reader) -> None:
        """*reader* has left: cancelled, or told its end."""
        ...

    def drained(self) -> None:
        """There is room again, perhaps."""
        ...

    def fail_one(self, reader: Reader, error: SemfluxError) -> None:
        """End *reader* alone with *error*."""
        ...

    def abort_one(self, reader: Reader, reason: str) -> None:
        """End *reader* alone with ABORT."""
        ...

    async def released(self) -> None:
        """Wait until what the source holds open is closed, once it is over."""
        ...


class Reader(abc.DisposableBase):
    """Delivers to one observer, in order: at once while it wants more, else from a buffer.

    For a subscriber that pulls it is the `Driver` of its run. It is fed and drained from any threads; the observer is
    called by one of them at a time. An observer that raises leaves alone.
    """

    __slots__ = (
        "_below",
        "_busy",
        "_counts",
        "_dropped",
        "_ended",
        "_extra",
        "_lock",
        "_policy",
        "_room",
        "_seen",
        "_started",
        "_told",
        "_waiter",
        "items",
        "over",
        "owner",
        "run",
        "weight",
    )

    def __init__(
        self,
        owner: Owner,
        below: abc.ObserverBase[Any],
        run: Run,
        *,
        room: Room,
        policy: Policy = "block",
        dropped: Callable[[Any], object] | None = None,
    ) -> None:
        self.owner: Owner = owner
        self.run: Run = run
        self.over: bool = False
        """True once it has been told the end, or has left."""
        self.items: deque[tuple[Any, int, Delivery]] = deque()
        """What waits, each with its weight and its class."""
        self.weight: int = 0
        """Of all that waits, in bytes."""
        self._below = below
        self._room = room
        self._extra = 0
        self._counts = [0, 0, 0]  # of what waits, by class
        self._policy: Policy = policy
        self._dropped = dropped
        self._lock = threading.Lock()
        self._busy = False
        self._told = 0
        """Items that came; and how many of them had when it was last pumped."""
        self._seen = 0
        self._started = False
        self._ended: tuple[Exception | None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        if run.pull:
            run.drive(self)

    # Room

    @property
    def is_full(self) -> bool:
        """True if nothing more should come."""
        return len(self.items) >= self._room.items + self._extra or self.weight >= self._room.weight

    def room(self) -> int:
        """How many more items may come; unlimited for one that takes all, or for which nothing waits."""
        if not self.run.pull or self._policy not in WAITING or self._ended is not None:
            return UNBOUNDED
        with self._lock:
            if self.is_full:
                self._make_room()
            return 0 if self.is_full else self._room.items + self._extra - len(self.items)

    def _make_room(self) -> None:
        """Without loss of what matters; under the lock."""
        if self._policy == "coalesce":
            self._hold(coalesced([item for item, _, _ in self.items]))
        elif self._policy == "drop" and self._counts[Delivery.FIRST_TO_GO]:
            self._hold([item for item, _, kind in self.items if kind is not Delivery.FIRST_TO_GO])

    def _hold(self, items: list[Any]) -> None:
        self.items.clear()
        self.weight = 0
        self._counts = [0, 0, 0]
        for item in items:
            self._append(item, weight_of(item))

    def _append(self, item: Any, weight: int) -> None:
        kind = delivery_of(item)
        self.items.append((item, weight, kind))
        self._counts[kind] += 1
        self.weight += weight

    # Feeding

    def preload(self, items: list[Any]) -> None:
        """What it gets first; it does not count against its room."""
        self._extra = len(items)
        for item in items:
            self._append(item, 0)

    def start(self) -> None:
        """Its subscriber can be told something now."""
        self._started = True
        self.pump()

    def offer(self, item: Any, weight: int) -> None:
        """The next item."""
        error: SemfluxError | None = None
        gone: Any = _NONE
        with self._lock:
            if self.over or self._ended is not None:
                return
            self._told += 1
            direct = self._started and not self._busy and not self.items and self.run.demand > 0
            if direct:
                self._busy = True
            else:
                gone, error = self._put(item, weight)
        if direct:
            try:
                self._deliver(item)
            finally:
                self._busy = False
            if self.items or self._ended is not None:
                self._drain()
        elif error is not None:
            if isinstance(item, ChatEvent):
                # It is a part of what the stream came to, which its end will say.
                self._append(item, 0)
            self.owner.fail_one(self, error)
        else:
            if gone is not _NONE and self._dropped is not None:
                try:
                    self._dropped(gone)
                except Exception as raised:
                    Hooks.drop_error(raised)
            if self._started and self.run.demand > 0:
                self._drain()
        self._wake()

    def _put(self, item: Any, weight: int) -> tuple[Any, SemfluxError | None]:
        """Keep it; what had to go for it, or the error that there is no room for it. Under the lock."""
        gone: Any = _NONE
        if self.run.pull and self.is_full:
            if self._policy in WAITING:
                self._make_room()
                if self.is_full and not (self.owner.can_wait and self._may_exceed()):
                    return gone, self._overflow()
            elif self._policy == "error":
                return gone, self._overflow()
            elif delivery_of(item) is Delivery.KEPT:
                if not self._may_exceed():
                    return gone, self._overflow()
            elif (
                len(self.items) - self._counts[Delivery.KEPT] >= self._room.items
                or self.weight >= self._room.weight
            ):
                place = self._who_goes(delivery_of(item))
                if place is None:
                    return item, None
                gone, freed, kind = self.items[place]
                self.weight -= freed
                self._counts[kind] -= 1
                del self.items[place]
        self._append(item, weight)
        return gone, None

    def _may_exceed(self) -> bool:
        """A source that heeds demand finishes what it is at, and what tells where the stream is has to go somewhere."""
        return len(self.items) < 2 * self._room.items + self._extra + _SPARE

    def _who_goes(self, coming: Delivery) -> int | None:
        """The place of what goes for an item of class *coming*; None: that item itself."""
        if coming is Delivery.FIRST_TO_GO:
            return None
        if self._counts[Delivery.FIRST_TO_GO]:
            goes = Delivery.FIRST_TO_GO
        elif self._policy == "drop_oldest" and self._counts[Delivery.MAY_GO]:
            goes = Delivery.MAY_GO
        else:
            return None
        return next(place for place, (_, _, kind) in enumerate(self.items) if kind is goes)

    def _overflow(self) -> BufferOverflowError:
        return BufferOverflowError(
            f"a subscriber was too slow: {len(self.items)} items ({self.weight} bytes) wait for it, and its room is "
            f"{self._room.items} items and {self._room.weight} bytes; read faster, or choose another policy"
        )

    def end(self, error: Exception | None, *last: Any) -> None:
        """The end, after what waits and after *last*."""
        with self._lock:
            if self.over or self._ended is not None:
                return
            for item in last:
                self._append(item, 0)
            self._ended = (error,)
        if self._started:
            self._drain()
        self._wake()

    # Delivering

    def _drain(self) -> bool:
        """Deliver what waits, as far as it is wanted; True if anything was delivered."""
        with self._lock:
            if self._busy or not self._started:
                return False
            self._busy = True
        moved = False
        ended: tuple[Exception | None] | None = None
        try:
            while True:
                with self._lock:
                    if self.over or not self.items or self.run.demand <= 0:
                        ended = None if self.over or self.items else self._ended
                        self._busy = False
                        break
                    item, weight, kind = self.items.popleft()
                    self.weight -= weight
                    self._counts[kind] -= 1
                    self._extra = max(0, self._extra - 1)
                moved = True
                self._deliver(item)
        except BaseException:
            # Not after the loop: another thread may be at it by then.
            self._busy = False
            raise
        if ended is not None:
            self._finish(ended[0])
        return moved

    def _deliver(self, item: Any) -> None:
        if self.over:
            return
        try:
            self._below.on_next(item)
        except Exception as error:
            self._reject(error)

    def _reject(self, error: Exception) -> None:
        """Its observer raised: it leaves, and is told, if it still listens."""
        below = self._below
        self.dispose()
        if getattr(below, "stopped", False) or getattr(below, "is_stopped", False):
            Hooks.drop_error(error)
            return
        try:
            below.on_error(error)
        except Exception as again:
            Hooks.drop_error(again)

    def _finish(self, error: Exception | None) -> None:
        below = self._below
        self.over = True
        self._below = NOBODY
        self.owner.left(self)
        try:
            if error is None:
                below.on_completed()
            else:
                below.on_error(error)
        except Exception as raised:
            Hooks.drop_error(raised)
        self._wake()

    def dispose(self) -> None:
        if self.over:
            return
        self.over = True
        self._below = NOBODY
        with self._lock:
            self._hold([])
        self._wake()
        self.owner.left(self)

    # The driver of its run

    def pump(self) -> bool:
        """Deliver what waits, as far as it is wanted."""
        self._seen = self._told
        moved = self._drain()
        if moved:
            self.owner.drained()
        return moved or self.over

    def fill(self) -> Awaitable[None] | None:
        """Until something comes."""
        with self._lock:
            if (self.items or self._ended is not None) and self.run.demand > 0:
                return None
            if self._told != self._seen:
                # Another thread has told something meanwhile, straight to who waits.
                return None
            self._waiter = waiter = asyncio.get_running_loop().create_future()
        return waiter

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            wake(waiter)

    def start_task(self) -> None:
        """Nobody pulls any more: what comes goes on at once."""
        self.run.pull = False
        self.run.demand = UNBOUNDED
        self.pump()

    async def released(self) -> None:
        """Wait until what the source holds open is closed, once it is over."""
        await self.owner.released()

    def fail(self, error: SemfluxError) -> None:
        """End this subscription with *error*, and no other."""
        self.owner.fail_one(self, error)

    def abort(self, reason: str) -> None:
        """End this subscription with ABORT, and no other."""
        self.owner.abort_one(self, reason)


class _Nobody(abc.ObserverBase[Any]):
    """Listens in the place of a subscriber that has left: nothing of it is kept."""

    def on_next(self, value: Any) -> None:
        """Not delivered."""

    def on_error(self, error: Exception) -> None:
        """Not delivered."""

    def on_completed(self) -> None:
        """Not delivered."""


NOBODY = _Nobody()
"""An observer that takes nothing: in the place of one that has left."""
_NONE = object()
_SPARE = 1024


__all__ = ("NOBODY", "Owner", "Reader")
