"""`publish`: one subscription to a source, made by hand, for all who are subscribed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactivex import abc
from reactivex.disposable import Disposable

from semflux.clock import Clock
from semflux.operators.connection import Connection
from semflux.operators.delivery import Policy, Room
from semflux.operators.fanout import Fanout, History
from semflux.operators.lift import Direct
from semflux.operators.run import Run, run_of
from semflux.operators.snapshot import Snapshot


class Publication(Direct[Any]):
    """A source that is subscribed to once, by `connect`, for all of its subscribers.

    Guarantees: all see the same items in the same order, chat events with the same *seq*; one that fails, raises or
    leaves is not seen by the others; the source goes at the pace of the slowest one that pulls, once its buffer is
    full, unless the policy says otherwise. Callback subscribers have no buffer, and are called at once.
    """

    def __init__(
        self,
        source: abc.ObservableBase[Any],
        *,
        chat: bool = False,
        policy: Policy = "block",
        room: Room | None = None,
        history: Callable[[], History] | None = None,
    ) -> None:
        super().__init__()
        self._source = source
        self._chat = chat
        self._policy: Policy = policy
        self._room = room or Room()
        self._history = history
        self._connection: Connection | None = None
        self._connected: Fanout | None = None
        self._fanout = self._new()
        self.emptied: list[Callable[[], object]] = []
        """Called when the last subscriber has left a source that goes on."""

    def _new(self) -> Fanout:
        fanout = Fanout(
            self,
            room=self._room,
            policy=self._policy,
            history=None if self._history is None else self._history(),
            snapshot=Snapshot() if self._chat else None,
            emptied=lambda: self._emptied(fanout),
        )
        return fanout

    def _emptied(self, fanout: Fanout) -> None:
        # Those of an earlier connection leave when it ends.
        for call in self.emptied if fanout is self._fanout else ():
            call()

    @property
    def fanout(self) -> Fanout:
        """The readers of now: of the connection that there is, or of the next one."""
        if self._fanout.is_ending and self._history is None:
            self._fanout = self._new()
        return self._fanout

    @property
    def is_connected(self) -> bool:
        """True while the source is subscribed to."""
        return self._connection is not None and not self._connection.over

    @property
    def connection(self) -> Connection | None:
        """The latest one; None before the first."""
        return self._connection

    @property
    def runs(self) -> tuple[Run, ...]:
        """The run of the connection: what `ChatStream.abort` aborts."""
        return (self._connection.run,) if self._connection is not None and self.is_connected else ()

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        return self.fanout.add(observer, run_of(scheduler))

    def connect(self, clock: Clock | None = None, by: Run | None = None) -> abc.DisposableBase:
        """Subscribe to the source, if that is not done; disposing of what this gives disconnects from it. *by*: the run
        of the subscriber for which that is done, and whose context the source sees."""
        connection = self._connection
        if connection is None or connection.over or self._connected is not self._fanout:
            if self._fanout.over:
                self._fanout = self._new()
            self._connected = self._fanout
            run = Run(pull=True)
            if by is not None:
                run.within(by)
            run.clock = clock or run.clock
            self._connection = connection = Connection(self._source, self._fanout, run)
            connection.start()
        mine, readers = connection, self._fanout
        return Disposable(lambda: self._disconnect(mine, readers))

    @staticmethod
    def _disconnect(connection: Connection, readers: Fanout) -> None:
        if not connection.over:
            connection.dispose()
            readers.stop()

    def disconnect(self) -> None:
        """Cancel the source, if it is subscribed to."""
        if self._connection is not None and self._connected is not None:
            self._disconnect(self._connection, self._connected)

    # What the fan-out asks

    @property
    def can_wait(self) -> bool:
        """True if the source stops when there is no room."""
        return self._connection is None or self._connection.can_wait

    def drained(self) -> None:
        """There is room again, perhaps."""
        if self._connection is not None:
            self._connection.drained()

    async def released(self) -> None:
        """Wait until what the source holds open is closed, once it is over."""
        if self._connection is not None:
            await self._connection.released()


def publish(
    *, chat: bool = False, policy: Policy = "block", room: Room | None = None
) -> Callable[[abc.ObservableBase[Any]], Publication]:
    """One subscription to the source for all subscribers, made by `connect`; who comes late misses what was.

    ```
    --1--2--3--|        publish(), a second subscriber after 1
    --1--2--3--|
        --2--3--|
    ```
    """
    return lambda source: Publication(source, chat=chat, policy=policy, room=room)


__all__ = ("Publication", "publish")
