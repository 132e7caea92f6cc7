"""The terminator: one terminal event, then the end. The one place where ERROR meets `on_error`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from semflux.errors import SemfluxError, TruncatedStreamError
from semflux.events import AnyChatEvent, Error, thaw_event
from semflux.normalize import as_semflux_error
from semflux.stage import Stage
from semflux.state import RunState


class Terminator(Stage[AnyChatEvent, AnyChatEvent]):
    """Events in; the same events out, stamped with *seq* and time, frozen, up to the terminal one.

    After the terminal event `ended` is true and `error` is what `on_error` must bring: None after
    RESPONSE_END and ABORT. What comes later is dropped and counted. An input that ends without a
    terminal event gives ERROR(TruncatedStreamError).
    """

    def __init__(self, state: RunState | None = None) -> None:
        self._state = state or RunState()
        self.ended: bool = False
        self.error: SemfluxError | None = None

    def push(self, item: AnyChatEvent) -> Iterable[AnyChatEvent]:
        event = self.stamp(item)
        return () if event is None else (event,)

    def stamp(self, event: Any) -> Any:
        """The event as it is delivered; None once the stream is over."""
        if self.ended:
            self._state.ledger.count("after_terminal")
            return None
        if not event.is_draft:
            event = thaw_event(event)
        state = self._state
        event.seq = state.seq
        state.seq += 1
        event.time = state.time()
        if event.is_terminal:
            self.ended = True
            self.error = event.error
        event.__class__ = event.frozen_class
        return event

    def finish(self, error: BaseException | None = None) -> Iterable[AnyChatEvent]:
        if self.ended:
            return ()
        if error is None:
            error = TruncatedStreamError("the stream ended before anything said that it was over")
        failure = as_semflux_error(error)
        response = self._state.fold.response(partial=True)
        if failure.partial is None:
            failure.partial = response
        return self.push(Error.draft_class(failure, response, response.usage, self._state.origin))


__all__ = ("Terminator",)
