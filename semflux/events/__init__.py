"""What we hear: 31 immutable event classes in 9 groups, and their JSON form.

types.py     the enums: type, group, phase, as one table
base.py      ChatEvent: identity, order, generic access; drafts
classes.py   one class for each type
shapes.py    values as JSON: written, read back and described, from their annotations
codec.py     to_dict, from_dict, the JSON Schema
"""

from __future__ import annotations

from typing import TypeAlias

from semflux.events.base import (
    NO_ORIGIN,
    SCHEMA_VERSION,
    ChatEvent,
    Origin,
    change_event,
    freeze_event,
    thaw_event,
)
from semflux.events.classes import (
    EVENT_CLASSES,
    Abort,
    Citation,
    ContentFilter,
    Custom,
    Error,
    Heartbeat,
    MediaDone,
    MediaPartial,
    Raw,
    RefusalDelta,
    ResponseEnd,
    ResponseStart,
    ServerToolArgsDelta,
    ServerToolResult,
    ServerToolStart,
    Status,
    StepEnd,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingRedacted,
    ThinkingSignature,
    ThinkingStart,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    UsageEvent,
)
from semflux.events.codec import schema
from semflux.events.types import TERMINAL_TYPES, ChatEventGroup, ChatEventPhase, ChatEventType

AnyChatEvent: TypeAlias = (
    ResponseStart
    | Status
    | Heartbeat
    | ResponseEnd
    | Abort
    | StepStart
    | StepEnd
    | TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ThinkingSignature
    | ThinkingRedacted
    | ToolCallStart
    | ToolCallArgsDelta
    | ToolCallEnd
    | ToolResult
    | ServerToolStart
    | ServerToolArgsDelta
    | ServerToolResult
    | Citation
    | MediaPartial
    | MediaDone
    | RefusalDelta
    | ContentFilter
    | UsageEvent
    | Error
    | Raw
    | Custom
)
"""Any event: type checkers prove a `match` over it exhaustive."""

__all__ = (
    "EVENT_CLASSES",
    "NO_ORIGIN",
    "SCHEMA_VERSION",
    "TERMINAL_TYPES",
    "Abort",
    "AnyChatEvent",
    "ChatEvent",
    "ChatEventGroup",
    "ChatEventPhase",
    "ChatEventType",
    "Citation",
    "ContentFilter",
    "Custom",
    "Error",
    "Heartbeat",
    "MediaDone",
    "MediaPartial",
    "Origin",
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
    "change_event",
    "freeze_event",
    "schema",
    "thaw_event",
)
