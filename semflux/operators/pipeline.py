"""The four stages of a stream as one operator: normalize, aggregate, terminate, filter.

They give what the four operators give one after another, for less than half of the cost, and a
traceback from socket to subscriber stays short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactivex import Observable, abc

from semflux.aggregate import Aggregator
from semflux.errors import SemfluxError
from semflux.events import AnyChatEvent, ChatEvent
from semflux.filters import delivers
from semflux.normalize import Normalizer
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.terminate import Terminator


class PipelineLink(Link[Any, AnyChatEvent]):
    """The four stages at work in one subscription."""

    __slots__ = ("_fold", "_keep", "_normalizer", "_push", "_stamp", "_terminator")

    def __init__(
        self, below: abc.ObserverBase[AnyChatEvent], run: Run, keep: Callable[[ChatEvent], bool] | None
    ) -> None:
        super().__init__(below, run)
        run.head = self
        self._normalizer = Normalizer(run.state)
        self._terminator = Terminator(run.state)
        self._push = self._normalizer.push
        self._fold = Aggregator(run.state).fold
        self._stamp = self._terminator.stamp
        self._keep = None if keep is None else delivers(keep)

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        try:
            self._emit(self._push(value))
        except SemfluxError as error:
            if not self.stopped:
                self.run.fail(error)

    def _emit(self, drafts: Any) -> None:
        fold, stamp, keep, down = self._fold, self._stamp, self._keep, self.below.on_next
        for draft in drafts:
            event = stamp(fold(draft))
            if event is not None and (keep is None or keep(event)):
                down(event)
                if self.stopped:
                    return
        if self._terminator.ended:
            self._end()

    def _end(self) -> None:
        if self.stopped:
            return
        self.dispose()
        error = self._terminator.error
        if error is None:
            self.below.on_completed()
        else:
            self.below.on_error(error)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self._emit(self._normalizer.finish(error))

    def on_completed(self) -> None:
        if self.stopped:
            return
        try:
            self._emit(self._normalizer.finish())
        except SemfluxError as error:
            self._emit(self._normalizer.finish(error))
        self._emit(self._terminator.finish())


def pipeline(
    keep: Callable[[ChatEvent], bool] | None = None,
) -> Callable[[abc.ObservableBase[Any]], Observable[AnyChatEvent]]:
    """normalize, aggregate, terminate and filter_events(*keep*) in one operator; None keeps all."""
    return lift(lambda below, run: PipelineLink(below, run, keep))


__all__ = ("PipelineLink", "pipeline")
