"""`ChatStream`: the Flux of chat events that `parse()` and a model's `stream()` give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from semflux import operators as ops
from semflux.clock import Clock
from semflux.cutting import CutBy
from semflux.errors import StreamAbortedError
from semflux.events import Abort, AnyChatEvent, ChatEvent, ChatEventGroup, ChatEventType, ResponseEnd
from semflux.flux.flux import Flux
from semflux.flux.mono import Mono
from semflux.json_paths import JsonMatch
from semflux.matching import Replacement
from semflux.messages import ToolCall
from semflux.operators.hold_back import WINDOW
from semflux.operators.lift import Lifted
from semflux.operators.smooth import MAX_CHARS, MAX_LAG
from semflux.operators.tool_calls import Invalid
from semflux.redaction import MASK
from semflux.request import ToolSpec
from semflux.response import ChatResponse, CitedSource
from semflux.retry import ErrorFilter
from semflux.screen import LANES, PROSE, Lane
from semflux.wire.limits import DEFAULT_LIMITS, Limits

T = TypeVar("T")


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

    def smooth(
        self,
        by: CutBy = "word",
        *,
        delay: float | None = None,
        max_lag: float = MAX_LAG,
        max_chars: int = MAX_CHARS,
        thinking: bool = True,
        clock: Clock | None = None,
    ) -> ChatStream:
        """Text and reasoning in steady pieces: words, lines, graphemes, or what a pattern or function says; *delay*
        seconds apart, *max_lag* seconds late at most."""
        return ChatStream(
            self._apply(
                ops.smooth(
                    by, delay=delay, max_lag=max_lag, max_chars=max_chars, thinking=thinking, clock=clock
                )
            )
        )

    def snapshots(self) -> Flux[ChatResponse]:
        """The response so far after each event of content or usage; the whole one at RESPONSE_END."""
        return Flux(self._apply(ops.snapshots()))

    def text(self) -> Flux[str]:
        """The pieces of the answer's text."""
        return Flux(self._apply(ops.text()))

    def thinking(self) -> Flux[str]:
        """The pieces of the model's reasoning."""
        return Flux(self._apply(ops.thinking()))

    def tool_calls(self, *tools: ToolSpec, invalid: Invalid = "error") -> Flux[ToolCall]:
        """Each call when it is complete; with *tools* it is one of them, and keeps to its schema. *invalid*: what
        becomes of others: "error", "keep", "drop"."""
        return Flux(self._apply(ops.tool_calls(*tools, invalid=invalid)))

    @overload
    def partial_json(
        self,
        path: str,
        *more: str,
        tool: str | None = None,
        partial: bool = False,
        find: bool = True,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Flux[JsonMatch]: ...
    @overload
    def partial_json(
        self,
        path: str,
        *more: str,
        type: type[T],
        tool: str | None = None,
        find: bool = True,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Flux[T]: ...
    def partial_json(self, path: str, *more: str, **options: Any) -> Flux[Any]:
        """The values at *path* (`$.items[*].name`) of JSON in the text, or in the arguments of *tool*, as each is whole;
        *partial*: strings as they grow; *type*: what each is made into; *find*: pass over text around the JSON."""
        return Flux(self._apply(ops.partial_json(path, *more, **options)))

    def citations(self) -> Flux[CitedSource]:
        """The source of each citation, as it comes."""
        return Flux(self._apply(ops.citations()))

    def hold_back(
        self,
        *phrases: str | re.Pattern[str],
        replace: str | Replacement = MASK,
        lanes: Iterable[Lane] = PROSE,
        ignore_case: bool = True,
        window: int = WINDOW,
    ) -> ChatStream:
        """*replace* in the place of *phrases*, however the text is cut: never is half of one shown, and the responses
        tell the same."""
        return ChatStream(
            self._apply(
                ops.hold_back(*phrases, replace=replace, lanes=lanes, ignore_case=ignore_case, window=window)
            )
        )

    def guard(
        self,
        *phrases: str | re.Pattern[str],
        reason: str = "blocked",
        fail: bool = False,
        lanes: Iterable[Lane] = PROSE,
        ignore_case: bool = True,
        window: int = WINDOW,
    ) -> ChatStream:
        """ABORT with *reason* at the first of *phrases*, of which nothing is shown; *fail*: BlockedContentError."""
        return ChatStream(
            self._apply(
                ops.guard(
                    *phrases, reason=reason, fail=fail, lanes=lanes, ignore_case=ignore_case, window=window
                )
            )
        )

    def redact(
        self,
        *patterns: str | re.Pattern[str],
        mask: str | Replacement = MASK,
        lanes: Iterable[Lane] = LANES,
        window: int = WINDOW,
    ) -> ChatStream:
        """*mask* in the place of *patterns*, in all that the events say; without any, of what looks like a key."""
        return ChatStream(self._apply(ops.redact(*patterns, mask=mask, lanes=lanes, window=window)))

    def dedupe_snapshots(self) -> ChatStream:
        """For a provider whose deltas each resend the whole block so far: only what each has of new."""
        return ChatStream(self._apply(ops.dedupe_snapshots()))

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
