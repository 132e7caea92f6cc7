"""`ref_count`: connect with the first subscribers, disconnect after the last."""

from __future__ import annotations

import asyncio

from reactivex import abc

from semflux.clock import Clock, LoopClock, Timer
from semflux.errors import ConfigurationError
from semflux.operators.lift import Direct
from semflux.operators.publish import Publication
from semflux.operators.run import Run, run_of


class RefCount(Direct[object]):
    """A publication that connects when it has *count* subscribers, and disconnects when the last one has left and
    nobody came within *grace* seconds. After its end, or a disconnection, the next subscribers start it anew.

    Raises:
        ConfigurationError: if *count* is below 1, or *grace* is negative.
    """

    def __init__(
        self, publication: Publication, count: int = 1, grace: float = 0.0, clock: Clock | None = None
    ) -> None:
        super().__init__()
        if count < 1:
            raise ConfigurationError(f"ref_count({count}): it connects with one subscriber at least")
        if not grace >= 0:
            raise ConfigurationError(f"ref_count(grace={grace!r}): a time in seconds, 0 or more")
        self._publication = publication
        self._count = count
        self._grace = grace
        self._clock = clock
        self._timer: Timer | None = None
        publication.emptied.append(self._left)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The run of the connection: what `ChatStream.abort` aborts."""
        return self._publication.runs

    def _subscribe_core(
        self, observer: abc.ObserverBase[object], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        self._cancel()
        publication = self._publication
        run = run_of(scheduler)
        reader = publication.subscribe_link(observer, run)
        fanout = publication.fanout
        if not fanout.over and len(fanout.readers) >= self._count:
            publication.connect(self._clock, run)
        return reader

    def _cancel(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _left(self) -> None:
        connection = self._publication.connection
        if connection is not None and not connection.over:
            if self._grace > 0:
                connection.on_loop(self._wait)
            else:
                self._publication.disconnect()

    def _wait(self) -> None:
        clock = self._clock
        if clock is None:
            try:
                clock = LoopClock(asyncio.get_running_loop())
            except RuntimeError:
                # Nobody counts the time here: there is none to wait for.
                self._publication.disconnect()
                return
        self._cancel()
        self._timer = clock.call_later(self._grace, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if not self._publication.fanout.readers:
            self._publication.disconnect()


__all__ = ("RefCount",)
