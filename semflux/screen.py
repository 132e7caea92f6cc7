"""`Screen`: a chat stream without what must not be in it, however it is cut, in its events and in its responses.

Texts are looked at joined: the pieces of a step's text (of its thinking, its refusal, of one call's arguments) are
one text, as a reader sees them. What waits is events, not text: a piece that may be the beginning of something is
held back whole, and what comes after it behind it; so the order stays, and each event keeps its place in it.

Rule 1. A piece whose text does not change is the same event. A changed one has lost its log probabilities; one without
        text left is left out.
Rule 2. A text goes on over the ends of its blocks until another kind of content comes: what one vendor says in one
        block, another says in three.
Rule 3. The responses on STEP_END and on the terminal event are folded anew from what passed, nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias, cast

import attrs

from semflux.errors import BlockedContentError
from semflux.events import (
    Abort,
    AnyChatEvent,
    ChatEvent,
    ChatEventGroup,
    ChatEventType,
    ResponseEnd,
    ToolCallEnd,
    change_event,
    freeze_event,
)
from semflux.events import Error as ErrorEvent
from semflux.fold import complete_call
from semflux.frozen import FrozenDict
from semflux.matching import Match, Matcher, replaced
from semflux.messages import ToolCall
from semflux.refold import Refold, changed
from semflux.response import ChatResponse, CitedSource, MediaBlock, SearchResult

T, G = ChatEventType, ChatEventGroup

Lane: TypeAlias = Literal["text", "thinking", "refusal", "tool_args", "other"]
"""What is looked at: three kinds of prose; the arguments of calls, server tools' too; and "other": results of tools,
citations, status texts, transcripts, and the vendors' own objects on events, each string by itself."""

LANES: tuple[Lane, ...] = ("text", "thinking", "refusal", "tool_args", "other")
"""All of them."""

PROSE: tuple[Lane, ...] = ("text", "thinking", "refusal")
"""What a reader is shown as the model's own words."""

_LANES: dict[ChatEventType, Lane] = {
    T.TEXT_DELTA: "text",
    T.THINKING_DELTA: "thinking",
    T.REFUSAL_DELTA: "refusal",
    T.TOOL_CALL_ARGS_DELTA: "tool_args",
    T.SERVER_TOOL_ARGS_DELTA: "tool_args",
}
_OTHER: dict[ChatEventType, tuple[str, ...]] = {
    T.STATUS: ("text",),
    T.TOOL_RESULT: ("text",),
    T.SERVER_TOOL_START: ("text", "raw"),
    T.SERVER_TOOL_RESULT: ("text", "results", "raw"),
    T.CITATION: ("citation",),
    T.MEDIA_PARTIAL: ("block",),
    T.MEDIA_DONE: ("block",),
    T.CONTENT_FILTER: ("text",),
    T.RAW: ("raw", "attributes"),
    T.CUSTOM: ("raw",),
}
"""The fields with strings in them, by type."""

_VALUES = (CitedSource, SearchResult, MediaBlock)
_NO_TEXT = frozenset({"data", "kind", "mime_type"})
_OPENING: dict[ChatEventType, tuple[Lane, int]] = {
    T.TEXT_START: ("text", 1),
    T.TEXT_END: ("text", -1),
    T.THINKING_START: ("thinking", 1),
    T.THINKING_END: ("thinking", -1),
}
_INTERRUPTING = frozenset({G.TEXT, G.THINKING, G.TOOL_CALL, G.SERVER_TOOL, G.MEDIA, G.SAFETY})
_ASIDE = frozenset({T.CITATION, T.CONTENT_FILTER})
"""Content that is said about a text, in the middle of it."""

_Key: TypeAlias = tuple[Lane, str | None]


@attrs.frozen
class Stop:
    """That a match ends the stream, and how."""

    reason: str
    """What ABORT, or the error, says."""
    fails: bool = False
    """True for an error, False for ABORT."""

    def error(self, partial: ChatResponse | None) -> BlockedContentError:
        """The error that says so."""
        return BlockedContentError(
            f"the answer was stopped by guard(): {self.reason}", phase="sink", partial=partial
        )


class _Strand:
    """A text in pieces: its matches, and what is decided about it."""

    __slots__ = ("_make", "_matcher", "_offset", "fed", "matches")

    def __init__(self, make: Callable[[], Matcher]) -> None:
        self._make = make
        self._matcher: Matcher | None = None
        self._offset = 0
        """Where in the strand the matcher's text begins."""
        self.fed = 0
        """Characters so far."""
        self.matches: deque[Match] = deque()
        """Those that are decided, and not passed yet."""

    @property
    def decided(self) -> int:
        return self.fed if self._matcher is None else self._offset + self._matcher.decided

    def feed(self, text: str) -> None:
        if self._matcher is None:
            self._matcher = self._make()
            self._offset = self.fed
        self.fed += len(text)
        self._add(self._matcher.feed(text))

    def settle(self) -> None:
        """What comes next is another text."""
        matcher, self._matcher = self._matcher, None
        if matcher is not None:
            self._add(matcher.finish())

    def _add(self, matches: Iterable[Match]) -> None:
        by = self._offset
        self.matches.extend([Match(by + start, by + end, text) for start, end, text in matches])


class Screen:
    """Takes events in, and gives them out when it is clear what is to be seen of them.

    What `take` and `finish` raise is what a replacement function raised; `ready` raises nothing.
    """

    def __init__(
        self, make: Callable[[], Matcher], lanes: Iterable[Lane], refold: Refold, stop: Stop | None = None
    ) -> None:
        """*make* gives a matcher for each text; *refold* puts what passed on the events. *stop*: nothing is
        replaced, but the texts end before the first match."""
        self._make = make
        self._lanes = frozenset(lanes)
        self._refold = refold
        self._stop = stop
        self.stopped: bool = False
        """True once something was found that stops the stream; the pieces of its texts are left out from there on."""
        self.over: bool = False
        """True once the terminal event has passed."""
        self.error: BlockedContentError | None = None
        """What the stream must end with, where its good end came before it could be stopped, and is an ERROR now."""
        self._queue: deque[tuple[ChatEvent, _Strand | None, int]] = deque()
        """What waits, with its text's strand and where in it the piece begins."""
        self._strands: dict[_Key, _Strand] = {}
        self._open: dict[Lane, int] = {"text": 0, "thinking": 0}
        self._group: ChatEventGroup | None = None
        """That of the last content."""

    # In

    def take(self, event: AnyChatEvent) -> None:
        """The next event."""
        type_ = event.type
        lane = _LANES.get(type_)
        if lane is None or event.group is not self._group:
            self._settle(event, type_)
        if type_ is T.TOOL_CALL_ARGS_DELTA:
            self._refold.pieces.add(event.tool_call_id)
        if lane in self._lanes:
            if self.stopped:
                return
            key = (lane, (event.tool_call_id or event.item_id) if lane == "tool_args" else None)
            strand = self._strands.get(key)
            if strand is None:
                strand = self._strands[key] = _Strand(self._make)
            start = strand.fed
            strand.feed(event.text or "")
            self._queue.append((event, strand, start))
            return
        if "other" in self._lanes and type_ in _OTHER:
            event = self._masked_fields(event, _OTHER[type_])
        elif isinstance(event, ToolCallEnd):
            event = self._masked_call(event)
        self._queue.append((event, None, 0))

    def finish(self) -> None:
        """No more comes."""
        for strand in self._strands.values():
            strand.settle()
        self._strands.clear()

    def _settle(self, event: ChatEvent, type_: ChatEventType) -> None:
        """End the texts that *event* interrupts."""
        group = type_.group
        opening = _OPENING.get(type_)
        if opening is not None:
            lane, by = opening
            self._open[lane] = max(0, self._open[lane] + by)
        if group is G.STEP or type_.is_terminal:
            self.finish()
            self._open = {"text": 0, "thinking": 0}
            self._group = None
        elif group in _INTERRUPTING and type_ not in _ASIDE:
            if group is not self._group:
                self._group = group
                for key, strand in self._strands.items():
                    if key[0] != "tool_args" and not self._open.get(key[0]):
                        strand.settle()
            if type_ is T.TOOL_CALL_END or type_ is T.SERVER_TOOL_RESULT:
                over = self._strands.pop(("tool_args", event.tool_call_id or event.item_id), None)
                if over is not None:
                    over.settle()

    # Out

    def ready(self) -> Iterator[AnyChatEvent]:
        """What can be seen now, in order."""
        queue = self._queue
        while queue:
            event, strand, start = queue[0]
            out: Any = event
            if strand is not None:
                if self.stopped:
                    queue.popleft()
                    continue
                end = start + len(event.text or "")
                if strand.decided < end:
                    return
                out = self._cut(event, strand, start, end)
            queue.popleft()
            if out is not None:
                shown = self._refold.passed(out)
                self.over = shown.is_terminal
                yield self._stopped_end(shown) if self.stopped and isinstance(shown, ResponseEnd) else shown

    def _stopped_end(self, event: ResponseEnd) -> AnyChatEvent:
        """What takes the place of a good end that came before it was clear that it is none."""
        stop = self._stop
        assert stop is not None
        response = event.response
        if response is not None:
            response = attrs.evolve(response, finish_reason=None, partial=True)
        draft: Any
        if stop.fails:
            self.error = stop.error(response)
            draft = ErrorEvent.draft_class(self.error, response, event.usage, event.origin)
        else:
            draft = Abort.draft_class(stop.reason, response, event.usage, event.origin)
        draft.seq, draft.time = event.seq, event.time
        ended: AnyChatEvent = freeze_event(draft)
        return ended

    def _cut(self, event: ChatEvent, strand: _Strand, start: int, end: int) -> ChatEvent | None:
        """The piece as it is to be seen; None if nothing of it is."""
        text = event.text or ""
        out: list[str] = []
        at = start
        matches = strand.matches
        while matches and matches[0].start < end:
            match = matches[0]
            if match.start >= start:
                out.append(text[at - start : match.start - start])
                if self._stop is not None:
                    self.stopped = True
                    at = end
                    break
                out.append(match.text)
            at = min(match.end, end)
            if match.end > end:
                break
            matches.popleft()
        out.append(text[at - start :])
        shown = "".join(out)
        if shown == text:
            return event
        if not shown:
            return None
        fields: dict[str, Any] = {"text": shown}
        if "logprobs" in event.attributes:
            fields["attributes"] = FrozenDict(
                {key: item for key, item in event.attributes.items() if key != "logprobs"}
            )
        return cast("ChatEvent", change_event(event, **fields))

    # Strings that come whole

    def _mask(self, text: str) -> str:
        return replaced(text, self._make())

    def _masked_call(self, event: ToolCallEnd) -> ToolCallEnd:
        """Where its arguments came by no piece: a filter above leaves them out."""
        call = event.tool_call
        if "tool_args" not in self._lanes or call is None or event.tool_call_id in self._refold.pieces:
            return event
        text = self._mask(call.arguments_json)
        masked: ToolCall = complete_call(call.id, call.name, [text], custom=call.kind == "custom")
        shown: ToolCallEnd = changed(event, tool_call=call if text == call.arguments_json else masked)
        return shown

    def _masked_fields(self, event: Any, names: tuple[str, ...]) -> Any:
        return changed(event, **{name: self._masked(getattr(event, name)) for name in names})

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._mask(value)
        if isinstance(value, FrozenDict):
            fields = cast("FrozenDict[str, Any]", value)
            return FrozenDict({key: self._masked(item) for key, item in fields.items()})
        if isinstance(value, tuple):
            return tuple(map(self._masked, cast("Iterable[Any]", value)))
        if isinstance(value, _VALUES):
            names = [field.name for field in attrs.fields(type(value)) if field.name not in _NO_TEXT]
            return attrs.evolve(value, **{name: self._masked(getattr(value, name)) for name in names})
        return value


__all__ = ("LANES", "PROSE", "Lane", "Screen", "Stop")
