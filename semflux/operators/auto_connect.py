"""`auto_connect`: connect with the first subscribers, and stay connected."""

from __future__ import annotations

from reactivex import abc

from semflux.errors import ConfigurationError
from semflux.operators.fanout import Fanout
from semflux.operators.lift import Direct
from semflux.operators.publish import Publication
from semflux.operators.run import Run, run_of


class AutoConnect(Direct[object]):
    """A publication that connects once, when it has had *count* subscribers (0: at once), and is never disconnected
    from here. Who comes after its end is told it.

    Raises:
        ConfigurationError: if *count* is negative.
    """

    def __init__(self, publication: Publication, count: int = 1) -> None:
        super().__init__()
        if count < 0:
            raise ConfigurationError(f"auto_connect({count}): the count must not be negative")
        self._publication = publication
        self._missing = count
        self._fanout: Fanout | None = None
        if count == 0:
            self._connect()

    @property
    def runs(self) -> tuple[Run, ...]:
        """The run of the connection: what `ChatStream.abort` aborts."""
        return self._publication.runs

    def _connect(self, by: Run | None = None) -> None:
        self._fanout = self._publication.fanout
        self._publication.connect(by=by)

    def _subscribe_core(
        self, observer: abc.ObserverBase[object], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        if self._fanout is not None:
            return self._fanout.add(observer, run)
        reader = self._publication.subscribe_link(observer, run)
        self._missing -= 1
        if self._missing <= 0:
            self._connect(run)
        return reader


__all__ = ("AutoConnect",)
