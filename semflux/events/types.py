"""The 31 event types, their 9 groups and 4 phases, as one table."""

from __future__ import annotations

from enum import StrEnum


class ChatEventGroup(StrEnum):
    """What an event is about. Closed: types to come join an existing group."""

    LIFECYCLE = "LIFECYCLE"
    STEP = "STEP"
    TEXT = "TEXT"
    THINKING = "THINKING"
    TOOL_CALL = "TOOL_CALL"
    SERVER_TOOL = "SERVER_TOOL"
    MEDIA = "MEDIA"
    SAFETY = "SAFETY"
    META = "META"


class ChatEventPhase(StrEnum):
    """Where in its scope an event stands. END ends a block, a step or the stream; see `is_terminal`."""

    START = "START"
    DELTA = "DELTA"
    END = "END"
    NONE = "NONE"


class ChatEventType(StrEnum):
    """What happened. The value is the name."""

    RESPONSE_START = "RESPONSE_START"
    STATUS = "STATUS"
    HEARTBEAT = "HEARTBEAT"
    RESPONSE_END = "RESPONSE_END"
    ABORT = "ABORT"
    STEP_START = "STEP_START"
    STEP_END = "STEP_END"
    TEXT_START = "TEXT_START"
    TEXT_DELTA = "TEXT_DELTA"
    TEXT_END = "TEXT_END"
    THINKING_START = "THINKING_START"
    THINKING_DELTA = "THINKING_DELTA"
    THINKING_END = "THINKING_END"
    THINKING_SIGNATURE = "THINKING_SIGNATURE"
    THINKING_REDACTED = "THINKING_REDACTED"
    TOOL_CALL_START = "TOOL_CALL_START"
    TOOL_CALL_ARGS_DELTA = "TOOL_CALL_ARGS_DELTA"
    TOOL_CALL_END = "TOOL_CALL_END"
    TOOL_RESULT = "TOOL_RESULT"
    SERVER_TOOL_START = "SERVER_TOOL_START"
    SERVER_TOOL_ARGS_DELTA = "SERVER_TOOL_ARGS_DELTA"
    SERVER_TOOL_RESULT = "SERVER_TOOL_RESULT"
    CITATION = "CITATION"
    MEDIA_PARTIAL = "MEDIA_PARTIAL"
    MEDIA_DONE = "MEDIA_DONE"
    REFUSAL_DELTA = "REFUSAL_DELTA"
    CONTENT_FILTER = "CONTENT_FILTER"
    USAGE = "USAGE"
    ERROR = "ERROR"
    RAW = "RAW"
    CUSTOM = "CUSTOM"

    @property
    def group(self) -> ChatEventGroup:
        """The group it belongs to, for ever."""
        return _TABLE[self][0]

    @property
    def phase(self) -> ChatEventPhase:
        """Its phase, for ever."""
        return _TABLE[self][1]

    @property
    def is_terminal(self) -> bool:
        """True for RESPONSE_END, ABORT and ERROR: nothing follows one of these."""
        return self in TERMINAL_TYPES

    @property
    def is_content(self) -> bool:
        """True outside LIFECYCLE, STEP and META: something the model said or did."""
        return _TABLE[self][0] not in _NO_CONTENT


_T, _G, _P = ChatEventType, ChatEventGroup, ChatEventPhase

_NO_CONTENT = frozenset({_G.LIFECYCLE, _G.STEP, _G.META})

TERMINAL_TYPES = frozenset({_T.RESPONSE_END, _T.ABORT, _T.ERROR})
"""The types that end a stream."""

_TABLE: dict[ChatEventType, tuple[ChatEventGroup, ChatEventPhase]] = {
    _T.RESPONSE_START: (_G.LIFECYCLE, _P.START),
    _T.STATUS: (_G.LIFECYCLE, _P.NONE),
    _T.HEARTBEAT: (_G.LIFECYCLE, _P.NONE),
    _T.RESPONSE_END: (_G.LIFECYCLE, _P.END),
    _T.ABORT: (_G.LIFECYCLE, _P.END),
    _T.STEP_START: (_G.STEP, _P.START),
    _T.STEP_END: (_G.STEP, _P.END),
    _T.TEXT_START: (_G.TEXT, _P.START),
    _T.TEXT_DELTA: (_G.TEXT, _P.DELTA),
    _T.TEXT_END: (_G.TEXT, _P.END),
    _T.THINKING_START: (_G.THINKING, _P.START),
    _T.THINKING_DELTA: (_G.THINKING, _P.DELTA),
    _T.THINKING_END: (_G.THINKING, _P.END),
    _T.THINKING_SIGNATURE: (_G.THINKING, _P.NONE),
    _T.THINKING_REDACTED: (_G.THINKING, _P.NONE),
    _T.TOOL_CALL_START: (_G.TOOL_CALL, _P.START),
    _T.TOOL_CALL_ARGS_DELTA: (_G.TOOL_CALL, _P.DELTA),
    _T.TOOL_CALL_END: (_G.TOOL_CALL, _P.END),
    _T.TOOL_RESULT: (_G.TOOL_CALL, _P.NONE),
    _T.SERVER_TOOL_START: (_G.SERVER_TOOL, _P.START),
    _T.SERVER_TOOL_ARGS_DELTA: (_G.SERVER_TOOL, _P.DELTA),
    _T.SERVER_TOOL_RESULT: (_G.SERVER_TOOL, _P.END),
    _T.CITATION: (_G.MEDIA, _P.NONE),
    _T.MEDIA_PARTIAL: (_G.MEDIA, _P.DELTA),
    _T.MEDIA_DONE: (_G.MEDIA, _P.END),
    _T.REFUSAL_DELTA: (_G.SAFETY, _P.DELTA),
    _T.CONTENT_FILTER: (_G.SAFETY, _P.NONE),
    _T.USAGE: (_G.META, _P.NONE),
    _T.ERROR: (_G.META, _P.NONE),
    _T.RAW: (_G.META, _P.NONE),
    _T.CUSTOM: (_G.META, _P.NONE),
}

__all__ = ("TERMINAL_TYPES", "ChatEventGroup", "ChatEventPhase", "ChatEventType")
