"""`OneReader`: an operator that parts the pace of its source from that of its one subscriber."""

from __future__ import annotations

from typing import Any

from reactivex import abc

from semflux.errors import SemfluxError
from semflux.operators.delivery import Policy, Room, weight_of
from semflux.operators.lift import Lifted, Link, subscribe_to
from semflux.operators.reader import Reader
from semflux.operators.run import Run, run_of


class OneReader(abc.DisposableBase):
    """What stands between one subscriber that pulls and a source with a run of its own, over the same state.

    *chat*: a failure enters the stream at its first stage, so that what is open is ended in order.
    """

    def __init__(
        self,
        below: abc.ObserverBase[Any],
        run: Run,
        above: Run,
        *,
        room: Room,
        policy: Policy,
        dropped: Any = None,
        chat: bool = False,
    ) -> None:
        above.within(run)
        self.above = above
        """The run of the source."""
        self.reader: Reader = Reader(self, below, run, room=room, policy=policy, dropped=dropped)
        self.upstream: abc.DisposableBase | None = None
        self.over: bool = False
        """True once the source has ended, or the subscriber has left."""
        self._chat = chat
        self._failing = False
        self._last: list[Any] = []

    def connect(self, upstream: abc.DisposableBase) -> None:
        """What to dispose of when it ends; at once if it has ended already."""
        if self.over:
            upstream.dispose()
        else:
            self.upstream = upstream
        self.reader.start()

    def emit(self, item: Any) -> None:
        """The next item."""
        if self._failing:
            self._last.append(item)
        else:
            self.reader.offer(item, weight_of(item))

    def end(self, error: Exception | None) -> None:
        """The end."""
        self.over = True
        last, self._last = self._last, []
        self.reader.end(error, *last)

    def dispose(self) -> None:
        self.reader.dispose()

    # What the reader asks

    @property
    def can_wait(self) -> bool:
        """True if the source stops when there is no room."""
        return self.above.pull and self.above.driver is not None

    def left(self, reader: Reader) -> None:
        """The subscriber is no more."""
        self.over = True
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.dispose()

    def drained(self) -> None:
        """There is room again, perhaps."""

    def fail_one(self, reader: Reader, error: SemfluxError) -> None:
        """End the stream with *error*: at its first stage, if it is a chat stream of ours."""
        if self._failing or self.over:
            return
        self._failing = True
        if not (self._chat and self.above.fail(error)):
            upstream, self.upstream = self.upstream, None
            if upstream is not None:
                upstream.dispose()
            self.end(error)

    def abort_one(self, reader: Reader, reason: str) -> None:
        """End the stream with ABORT."""
        self.above.abort(reason)

    async def released(self) -> None:
        """Wait until what the source holds open is closed, once it is over."""
        driver = self.above.driver
        if driver is not None and driver.over:
            await driver.released()


class _Feeding(Link[Any, Any]):
    """Takes what the source pushes."""

    __slots__ = ("_one",)

    def __init__(self, one: OneReader, run: Run) -> None:
        super().__init__(self, run)
        self._one = one

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self._one.emit(value)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self.stopped = True
            self._one.end(error)

    def on_completed(self) -> None:
        if not self.stopped:
            self.stopped = True
            self._one.end(None)


class Pushed(Lifted[Any]):
    """A source that is asked for everything, whatever its subscriber wants: what comes too early waits, or goes.

    A callback subscriber wants everything: it gets the source as it is.
    """

    def __init__(
        self,
        source: abc.ObservableBase[Any],
        *,
        room: Room,
        policy: Policy,
        dropped: Any = None,
        chat: bool = False,
    ) -> None:
        super().__init__(source, no_link)
        self._room = room
        self._policy: Policy = policy
        self._dropped = dropped
        self._chat = chat

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        if not run.pull or run.driver is not None:
            return subscribe_to(self.source, observer, run)
        above = Run(state=run.state).within(run)
        one = OneReader(
            observer,
            run,
            above,
            room=self._room,
            policy=self._policy,
            dropped=self._dropped,
            chat=self._chat,
        )
        feeding = _Feeding(one, above)
        feeding.connect(subscribe_to(self.source, feeding, above))
        one.connect(feeding)
        return one


def no_link(below: abc.ObserverBase[Any], run: Run) -> Link[Any, Any]:
    """In the place of what makes a link: these operators stand between two runs, and make none."""
    raise NotImplementedError  # pragma: no cover  # never called


__all__ = ("OneReader", "Pushed", "no_link")
