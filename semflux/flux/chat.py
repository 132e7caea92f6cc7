"""`ChatStream`: the Flux of chat events that `parse()` and a model's `stream()` give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from semflux import operators as ops
from semflux.clock import Clock
from semflux.errors import StreamAbortedError
from semflux.events import Abort, AnyChatEvent, ChatEvent, ChatEventGroup, ChatEventType, ResponseEnd
from semflux.flux.flux import Flux
from semflux.flux.mono import Mono
from semflux.operators.lift import Lifted
from semflux.response import ChatResponse
from semflux.retry import ErrorFilter


class ChatStream(Flux[AnyChatEvent]):
    """A stream of semantic events.

    RESPONSE_START comes first; exactly one of RESPONSE_END, ABORT and ERROR comes last. ERROR is followed
    by the same exception as the error of the stream. Operators that keep events as they are give a
    `ChatStream` again, the others a `Flux`.
    """

    __slots__ = ()
    is_chat = True

    def filter_events(self, keep: Callable[[ChatEvent], object]) -> ChatStream:
        """The events for which *keep* is true, and the frame of the stream: steps, lifecycle, terminal."""
        return ChatStream(self._apply(ops.filter_events(keep)))

    def only(self, *types: ChatEventType | type[ChatEvent]) -> ChatStream:
        """Exactly the events of these types, or classes."""
        return ChatStream(self._apply(ops.only(*types)))

    def in_group(self, *groups: ChatEventGroup) -> ChatStream:
        """Exactly the events of these groups."""
        return ChatStream(self._apply(ops.in_group(*groups)))

    def coalesce(
        self, max_chars: int | None = None, max_delay: float | None = None, *, clock: Clock | None = None
    ) -> ChatStream:
        """Consecutive deltas of one block as one: *max_chars* held at most, for *max_delay* seconds at most. Nothing is
        lost, the order is kept, and any other event first lets out what is held."""
        return ChatStream(self._apply(ops.coalesce(max_chars, max_delay, clock=clock)))

    def snapshots(self) -> Flux[ChatResponse]:
        """The response so far after each event of content or usage; the whole one at RESPONSE_END."""
        return Flux(self._apply(ops.snapshots()))

    def text(self) -> Flux[str]:
        """The pieces of the answer's text."""
        return Flux(self._apply(ops.text()))

    def response(self) -> Mono[ChatResponse]:
        """What the stream comes to.

        Errors:
            StreamAbortedError: if it ends in ABORT. Otherwise the error of the stream.
        """
        return Mono(self._apply(ops.only(ResponseEnd, Abort))).map(_response_of)

    def on_error_return(self, value: Any, errors: ErrorFilter | None = None) -> ChatStream:
        """End with one more step that says the text *value*, in place of the error."""
        return ChatStream(self._apply(ops.on_error_return(value, errors, chat=True)))

    def abort(self, reason: str) -> None:
        """Stop it from this side, for all who are subscribed to it now: what is open is ended, ABORT comes, and the
        stream completes. Without effect where it is over. On the thread of its loop only.

        A subscriber that only wants to leave disposes, or breaks out of its loop.
        """
        source: Any = self._observable
        while isinstance(source, Lifted):
            source = source.source
        for run in list(getattr(source, "runs", ())):
            run.abort(reason)


def _response_of(event: AnyChatEvent) -> ChatResponse:
    if isinstance(event, ResponseEnd) and event.response is not None:
        return event.response
    reason = event.reason if isinstance(event, Abort) else None
    raise StreamAbortedError(
        f"the stream was aborted: {reason}" if reason else "the stream was aborted from the other side",
        partial=event.response if isinstance(event.response, ChatResponse) else None,
    )


__all__ = ("ChatStream",)
