"""`ChatStream`: the Flux of chat events that `parse()` and a model's `stream()` give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactivex import abc

from semflux import operators as ops
from semflux.clock import Clock
from semflux.errors import StreamAbortedError
from semflux.events import Abort, AnyChatEvent, ChatEvent, ChatEventGroup, ChatEventType, ResponseEnd
from semflux.flux.flux import Flux
from semflux.flux.mono import Mono
from semflux.operators.do_finally import SignalType
from semflux.operators.lift import Lifted
from semflux.response import ChatResponse
from semflux.retry import ErrorFilter, Retry


class ChatStream(Flux[AnyChatEvent]):
    """A stream of semantic events.

    RESPONSE_START comes first; exactly one of RESPONSE_END, ABORT and ERROR comes last. ERROR is followed
    by the same exception as the error of the stream. Operators that keep events as they are give a
    `ChatStream` again, the others a `Flux`.
    """

    __slots__ = ()
    is_chat = True

    def filter(self, predicate: Callable[[AnyChatEvent], object]) -> ChatStream:
        """The events for which *predicate* is true, and no others: no terminal event either."""
        return ChatStream(self._apply(ops.filter_(predicate)))

    def filter_events(self, keep: Callable[[ChatEvent], object]) -> ChatStream:
        """The events for which *keep* is true, and the frame of the stream: steps, lifecycle, terminal."""
        return ChatStream(self._apply(ops.filter_events(keep)))

    def only(self, *types: ChatEventType | type[ChatEvent]) -> ChatStream:
        """Exactly the events of these types, or classes."""
        return ChatStream(self._apply(ops.only(*types)))

    def in_group(self, *groups: ChatEventGroup) -> ChatStream:
        """Exactly the events of these groups."""
        return ChatStream(self._apply(ops.in_group(*groups)))

    def text(self) -> Flux[str]:
        """The pieces of the answer's text."""
        return Flux(self._apply(ops.text()))

    def response(self) -> Mono[ChatResponse]:
        """What the stream comes to.

        Errors:
            StreamAbortedError: if it ends in ABORT. Otherwise the error of the stream.
        """
        return Mono(self._apply(ops.only(ResponseEnd, Abort))).map(_response_of)

    def take(self, count: int) -> ChatStream:
        """The first *count* events; the source is cancelled before the end is told."""
        return ChatStream(self._apply(ops.take(count)))

    def take_while(self, predicate: Callable[[AnyChatEvent], object]) -> ChatStream:
        """The events up to, and without, the first one for which *predicate* is false."""
        return ChatStream(self._apply(ops.take_while(predicate)))

    def take_until(self, predicate: Callable[[AnyChatEvent], object]) -> ChatStream:
        """The events up to, and with, the first one for which *predicate* is true."""
        return ChatStream(self._apply(ops.take_until(predicate)))

    def do_on_next(self, callback: Callable[[AnyChatEvent], object]) -> ChatStream:
        """Calls *callback* with each event before it goes on."""
        return ChatStream(self._apply(ops.do_on_next(callback)))

    def do_on_error(self, callback: Callable[[Exception], object]) -> ChatStream:
        """Calls *callback* with the error before it goes on."""
        return ChatStream(self._apply(ops.do_on_error(callback)))

    def do_on_complete(self, callback: Callable[[], object]) -> ChatStream:
        """Calls *callback* before the end goes on; not at an error, not at a cancel."""
        return ChatStream(self._apply(ops.do_on_complete(callback)))

    def do_on_cancel(self, callback: Callable[[], object]) -> ChatStream:
        """Calls *callback* when the subscriber cancels, before the source is told."""
        return ChatStream(self._apply(ops.do_on_cancel(callback)))

    def do_finally(self, callback: Callable[[SignalType], object]) -> ChatStream:
        """Calls *callback* exactly once with how it ended, after everything else."""
        return ChatStream(self._apply(ops.do_finally(callback)))

    # Recovery

    def retry(self, retries: int | None = None) -> ChatStream:
        """Subscribe again, at once, when it fails: at most *retries* times; None: for ever. Only before the first
        content event; the last failure is the error, as it is."""
        return ChatStream(self._apply(ops.retry(retries, chat=True)))

    def retry_when(self, policy: Retry) -> ChatStream:
        """Subscribe again when it fails, as *policy* says: `Retry.backoff(3, min_backoff=0.5)`. Only before the
        first content event, unless the policy restarts."""
        return ChatStream(self._apply(ops.retry_when(policy, chat=True)))

    def on_error_resume(
        self,
        fallback: Callable[[Exception], abc.ObservableBase[AnyChatEvent]],
        errors: ErrorFilter | None = None,
    ) -> ChatStream:
        """Go on with the stream that *fallback* gives for the error, or for those of *errors* alone."""
        return ChatStream(self._apply(ops.on_error_resume(fallback, errors, chat=True)))

    def on_error_return(self, value: Any, errors: ErrorFilter | None = None) -> ChatStream:
        """End with one more step that says the text *value*, in place of the error."""
        return ChatStream(self._apply(ops.on_error_return(value, errors, chat=True)))

    def on_error_map(
        self, change: Callable[[Exception], Exception], errors: ErrorFilter | None = None
    ) -> ChatStream:
        """Put the error that *change* gives in the place of the error."""
        return ChatStream(self._apply(ops.on_error_map(change, errors, chat=True)))

    def fallback_to(
        self, *sources: abc.ObservableBase[AnyChatEvent], errors: ErrorFilter | None = None
    ) -> ChatStream:
        """Go on with the next of *sources* at each failure; the last one's error is final."""
        return ChatStream(self._apply(ops.fallback_to(*sources, errors=errors, chat=True)))

    def timeout(
        self,
        total: float | None = None,
        *,
        first: float | None = None,
        item: float | None = None,
        fallback: abc.ObservableBase[AnyChatEvent] | None = None,
        clock: Clock | None = None,
    ) -> ChatStream:
        """Fail when a limit, in seconds, passes: *first* until the first content event, *item* from one to the next,
        *total* for the whole; the source is cancelled first. *fallback*: go on with that stream instead."""
        limited = ChatStream(self._apply(ops.timeout(total, first=first, item=item, clock=clock, chat=True)))
        return limited if fallback is None else limited.on_error_resume(lambda error: fallback, TimeoutError)

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
