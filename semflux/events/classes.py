"""The 31 event classes, in the order of their groups. One class for each type, named after it."""

# The base answers None by properties; a class that has the field puts a slot in their place, which attrs
# and mypy understand. And pyright does not know what a field with a converter holds, though it is declared.
# pyright: reportIncompatibleMethodOverride=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from semflux.errors import SemfluxError
from semflux.events.base import ChatEvent, define_draft
from semflux.events.types import TERMINAL_TYPES, ChatEventType
from semflux.frozen import freeze
from semflux.messages import ToolCall
from semflux.response import ChatResponse, CitedSource, FinishReason, MediaBlock, SearchResult, StepResponse
from semflux.usage import Usage

T = ChatEventType


# LIFECYCLE


@attrs.frozen(repr=False, eq=False)
class ResponseStart(ChatEvent):
    """The stream has begun; nothing has been sent yet."""

    type: ClassVar[ChatEventType] = T.RESPONSE_START


@attrs.frozen(repr=False, eq=False)
class Status(ChatEvent):
    """Something changed that is neither content nor an end."""

    type: ClassVar[ChatEventType] = T.STATUS
    sub_type: str
    """queued, in_progress, retry, fallback, restart, tool_progress, pause_turn, or a vendor's word."""
    text: str | None = None
    """An explanation; None when there is none."""


@attrs.frozen(repr=False, eq=False)
class Heartbeat(ChatEvent):
    """The vendor's sign of life."""

    type: ClassVar[ChatEventType] = T.HEARTBEAT


@attrs.frozen(repr=False, eq=False)
class ResponseEnd(ChatEvent):
    """The stream has ended well. Terminal."""

    type: ClassVar[ChatEventType] = T.RESPONSE_END
    response: ChatResponse | None = None
    """What it came to, over all steps; always there on a delivered event."""
    usage: Usage | None = None
    """The sum over all steps; None when the provider gave none."""
    finish_reason: FinishReason | None = None
    """Why it ended."""


@attrs.frozen(repr=False, eq=False)
class Abort(ChatEvent):
    """The other side has stopped the stream. Terminal."""

    type: ClassVar[ChatEventType] = T.ABORT
    reason: str | None = None
    """Why; None when not said."""
    response: ChatResponse | None = None
    """What had arrived."""
    usage: Usage | None = None
    """What had been used; None when the provider gave none."""


# STEP


@attrs.frozen(repr=False, eq=False)
class StepStart(ChatEvent):
    """The provider has accepted a call of the model."""

    type: ClassVar[ChatEventType] = T.STEP_START
    model: str | None = None
    """The model that was asked for; None when unknown, as in a recording."""
    attempt: int = 1
    """Which attempt at this step was accepted, from 1."""


@attrs.frozen(repr=False, eq=False)
class StepEnd(ChatEvent):
    """A call of the model is over."""

    type: ClassVar[ChatEventType] = T.STEP_END
    response: StepResponse | None = None
    """What this step came to; always there on a delivered event."""
    usage: Usage | None = None
    """What this step used; None when the provider gave nothing."""
    finish_reason: FinishReason | None = None
    """Why it ended; None when it failed or was aborted."""
    provider_finish_reason: str | None = None
    """The vendor's own word for it; None when it said none."""


# TEXT


@attrs.frozen(repr=False, eq=False)
class TextStart(ChatEvent):
    """A block of the answer's text begins."""

    type: ClassVar[ChatEventType] = T.TEXT_START


@attrs.frozen(repr=False, eq=False)
class TextDelta(ChatEvent):
    """A piece of the answer's text."""

    type: ClassVar[ChatEventType] = T.TEXT_DELTA
    text: str


@attrs.frozen(repr=False, eq=False)
class TextEnd(ChatEvent):
    """A block of the answer's text is whole."""

    type: ClassVar[ChatEventType] = T.TEXT_END


# THINKING


@attrs.frozen(repr=False, eq=False)
class ThinkingStart(ChatEvent):
    """A block of reasoning begins."""

    type: ClassVar[ChatEventType] = T.THINKING_START


@attrs.frozen(repr=False, eq=False)
class ThinkingDelta(ChatEvent):
    """A piece of reasoning."""

    type: ClassVar[ChatEventType] = T.THINKING_DELTA
    text: str


@attrs.frozen(repr=False, eq=False)
class ThinkingEnd(ChatEvent):
    """A block of reasoning is whole."""

    type: ClassVar[ChatEventType] = T.THINKING_END


@attrs.frozen(repr=False, eq=False)
class ThinkingSignature(ChatEvent):
    """The signature of a block of reasoning: whole, and replacing an earlier one of the block."""

    type: ClassVar[ChatEventType] = T.THINKING_SIGNATURE
    text: str


@attrs.frozen(repr=False, eq=False)
class ThinkingRedacted(ChatEvent):
    """A block of reasoning in encrypted form."""

    type: ClassVar[ChatEventType] = T.THINKING_REDACTED
    text: str


# TOOL_CALL


@attrs.frozen(repr=False, eq=False)
class ToolCallStart(ChatEvent):
    """The model begins to call a tool."""

    type: ClassVar[ChatEventType] = T.TOOL_CALL_START
    tool_call_id: str | None = None
    """The call's id; always there on a delivered event."""
    name: str | None = None
    """The tool's name; None when the provider never sends one."""


@attrs.frozen(repr=False, eq=False)
class ToolCallArgsDelta(ChatEvent):
    """A piece of a call's argument text: any slice of it."""

    type: ClassVar[ChatEventType] = T.TOOL_CALL_ARGS_DELTA
    text: str
    tool_call_id: str | None = None
    """The call's id; always there on a delivered event."""
    name: str | None = None
    """The tool's name; None when unknown."""


@attrs.frozen(repr=False, eq=False)
class ToolCallEnd(ChatEvent):
    """A call is whole."""

    type: ClassVar[ChatEventType] = T.TOOL_CALL_END
    tool_call_id: str | None = None
    """The call's id; always there on a delivered event."""
    name: str | None = None
    """The tool's name; None when the provider never sent one."""
    tool_call: ToolCall | None = None
    """The call with its arguments; always there on a delivered event."""


@attrs.frozen(repr=False, eq=False)
class ToolResult(ChatEvent):
    """A tool of ours has given its result."""

    type: ClassVar[ChatEventType] = T.TOOL_RESULT
    tool_call: ToolCall | None
    """The call it answers."""
    text: str = ""
    """What goes back to the model."""
    is_error: bool = False
    """True if the tool failed, or the call could not be run."""
    duration: float | None = None
    """Seconds that the tool took; None when it did not run."""

    @property
    def tool_call_id(self) -> str | None:
        """The id of the call it answers."""
        return None if self.tool_call is None else self.tool_call.id

    @property
    def name(self) -> str | None:
        """The name of the tool."""
        return None if self.tool_call is None else self.tool_call.name


# SERVER_TOOL


@attrs.frozen(repr=False, eq=False)
class ServerToolStart(ChatEvent):
    """The provider begins to use a tool of its own."""

    type: ClassVar[ChatEventType] = T.SERVER_TOOL_START
    sub_type: str | None = None
    """web_search, code_execution, file_search, mcp ..."""
    name: str | None = None
    """The vendor's name of the tool; None when it gives none."""
    text: str | None = None
    """What it was given, where that is known at the start; None otherwise."""
    raw: Any = attrs.field(default=None, converter=freeze)
    """The vendor's block."""


@attrs.frozen(repr=False, eq=False)
class ServerToolArgsDelta(ChatEvent):
    """A piece of what the provider's own tool is given."""

    type: ClassVar[ChatEventType] = T.SERVER_TOOL_ARGS_DELTA
    text: str
    sub_type: str | None = None
    """web_search, code_execution, file_search, mcp ..."""


@attrs.frozen(repr=False, eq=False)
class ServerToolResult(ChatEvent):
    """The provider's own tool has ended."""

    type: ClassVar[ChatEventType] = T.SERVER_TOOL_RESULT
    sub_type: str | None = None
    """web_search, code_execution, file_search, mcp ..."""
    text: str | None = None
    """A readable form of the result; None when there is none."""
    results: tuple[SearchResult, ...] = ()
    """The hits of a search; empty for other tools."""
    is_error: bool = False
    """True if the tool failed."""
    raw: Any = attrs.field(default=None, converter=freeze)
    """The vendor's block; None where the result never came."""


# MEDIA


@attrs.frozen(repr=False, eq=False)
class Citation(ChatEvent):
    """A part of the answer rests on a source."""

    type: ClassVar[ChatEventType] = T.CITATION
    citation: CitedSource


@attrs.frozen(repr=False, eq=False)
class MediaPartial(ChatEvent):
    """A piece, or a preview, of media that is being made."""

    type: ClassVar[ChatEventType] = T.MEDIA_PARTIAL
    block: MediaBlock


@attrs.frozen(repr=False, eq=False)
class MediaDone(ChatEvent):
    """Media is whole."""

    type: ClassVar[ChatEventType] = T.MEDIA_DONE
    block: MediaBlock


# SAFETY


@attrs.frozen(repr=False, eq=False)
class RefusalDelta(ChatEvent):
    """A piece of the model's words of refusal; these are not text."""

    type: ClassVar[ChatEventType] = T.REFUSAL_DELTA
    text: str


@attrs.frozen(repr=False, eq=False)
class ContentFilter(ChatEvent):
    """The provider's filter spoke."""

    type: ClassVar[ChatEventType] = T.CONTENT_FILTER
    sub_type: str | None = None
    """What it found, such as "hate" or "SAFETY"; None when not said."""
    text: str | None = None
    """An explanation; None when there is none."""
    blocked: bool = False
    """True if the answer was cut or refused because of it."""


# META


@attrs.frozen(repr=False, eq=False)
class UsageEvent(ChatEvent):
    """What the step has used as of now: an observation, not an amount to add.

    The one class not named after its type alone: `Usage` is the value it carries.
    """

    type: ClassVar[ChatEventType] = T.USAGE
    usage: Usage


@attrs.frozen(repr=False, eq=False)
class Error(ChatEvent):
    """The stream has failed. Terminal; `on_error` follows with the same exception."""

    type: ClassVar[ChatEventType] = T.ERROR
    error: SemfluxError = attrs.field(
        eq=lambda error: None if error is None else tuple(error.describe().values())
    )
    response: ChatResponse | None = None
    """All that was completed, and the failing step's partial text."""
    usage: Usage | None = None
    """What had been used; None when the provider gave none."""


@attrs.frozen(repr=False, eq=False)
class Raw(ChatEvent):
    """A frame or block that nobody modelled: nothing is lost silently."""

    type: ClassVar[ChatEventType] = T.RAW
    raw: Any = attrs.field(converter=freeze)


@attrs.frozen(repr=False, eq=False)
class Custom(ChatEvent):
    """An event outside the model: a third party's, another choice's ("choice"), a sub-agent's ("agent")."""

    type: ClassVar[ChatEventType] = T.CUSTOM
    sub_type: str
    raw: Any = attrs.field(default=None, converter=freeze)


EVENT_CLASSES: dict[ChatEventType, type[ChatEvent]] = {
    cls.type: cls
    for cls in list(globals().values())
    if isinstance(cls, type) and issubclass(cls, ChatEvent) and cls is not ChatEvent
}
"""The class of each type."""

_TERMINAL = property(lambda self: True, doc="True: nothing follows.")

for _type, _class in EVENT_CLASSES.items():
    _class.group = _type.group
    _class.phase = _type.phase
    if _type in TERMINAL_TYPES:
        _class.is_terminal = _TERMINAL  # type: ignore[method-assign,assignment]  # a constant of the class
    define_draft(_class)

__all__ = (
    "EVENT_CLASSES",
    "Abort",
    "Citation",
    "ContentFilter",
    "Custom",
    "Error",
    "Heartbeat",
    "MediaDone",
    "MediaPartial",
    "Raw",
    "RefusalDelta",
    "ResponseEnd",
    "ResponseStart",
    "ServerToolArgsDelta",
    "ServerToolResult",
    "ServerToolStart",
    "Status",
    "StepEnd",
    "StepStart",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ThinkingDelta",
    "ThinkingEnd",
    "ThinkingRedacted",
    "ThinkingSignature",
    "ThinkingStart",
    "ToolCallArgsDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolResult",
    "UsageEvent",
)
