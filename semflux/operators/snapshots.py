"""`snapshots`: what the stream came to so far, after each event that adds to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactivex import Observable, abc

from semflux.events import Abort, AnyChatEvent, Error, ResponseEnd
from semflux.fold import Fold
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.response import ChatResponse
from semflux.wire.limits import BOUNDED_BEFORE


class _SnapshotsLink(Link[AnyChatEvent, ChatResponse]):
    __slots__ = ("_fold", "_last")

    def __init__(self, below: abc.ObserverBase[ChatResponse], run: Run) -> None:
        super().__init__(below, run)
        self._fold: Fold | None = None
        self._last: Any = None

    def on_next(self, value: AnyChatEvent) -> None:
        if self.stopped:
            return
        snapshot: Any = None
        if isinstance(value, (ResponseEnd, Abort, Error)):
            # It carries the whole, with what no event tells: the ledger of repairs, the price.
            snapshot = value.response
        if snapshot is None:
            fold = self._fold
            if fold is None:
                fold = self._fold = Fold(value.response_id, BOUNDED_BEFORE)
            try:
                fold.add(value)
                adds = value.is_content or value.usage is not None or value.is_terminal
                snapshot = fold.response(partial=not isinstance(value, ResponseEnd)) if adds else None
            except Exception as error:
                self.fail(error)
                return
        if snapshot is not None and snapshot != self._last:
            self._last = snapshot
            self.below.on_next(snapshot)

    def dispose(self) -> None:
        self._fold = self._last = None
        super().dispose()


def snapshots() -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[ChatResponse]]:
    """The response so far after each event of content or usage that changes it, partial until RESPONSE_END brings the
    whole one.

    Each one is folded anew from all that came: put `coalesce` above it where an answer is long.

    ```
    RESP+ TEXT~a TEXT~b RESP-|        snapshots()
    ------"a"----"ab"---"ab"-|
    ```
    """
    return lift(_SnapshotsLink)


__all__ = ("snapshots",)
