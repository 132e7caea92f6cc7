"""Only checked, never run: a match over `AnyChatEvent` is proved exhaustive by mypy and pyright.

Taking one arm out of `exhaustive` must make both complain at `assert_never`.
"""

from __future__ import annotations

from typing import assert_never, assert_type

from semflux.errors import SemfluxError
from semflux.events import (
    Abort,
    AnyChatEvent,
    ChatEvent,
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
from semflux.messages import ToolCall
from semflux.response import ChatResponse, CitedSource, MediaBlock, SearchResult, StepResponse
from semflux.usage import Usage


def exhaustive(event: AnyChatEvent) -> str:
    """Every class has its arm, and its fields have their types."""
    match event:
        case ResponseStart() | Heartbeat() | TextStart() | TextEnd() | ThinkingStart() | ThinkingEnd():
            return event.response_id
        case Status(sub_type=sub_type, text=text):
            assert_type(text, str | None)
            return sub_type
        case TextDelta(text) | ThinkingDelta(text) | ThinkingSignature(text) | ThinkingRedacted(text):
            return assert_type(text, str)
        case RefusalDelta(text=text) | ToolCallArgsDelta(text=text) | ServerToolArgsDelta(text=text):
            return assert_type(text, str)
        case ResponseEnd(response=response) | Abort(response=response):
            assert_type(response, ChatResponse | None)
        case StepStart(attempt=attempt):
            assert_type(attempt, int)
        case StepEnd(response=step):
            assert_type(step, StepResponse | None)
        case ToolCallStart(tool_call_id=call_id):
            assert_type(call_id, str | None)
        case ToolCallEnd(tool_call=call) | ToolResult(tool_call=call):
            assert_type(call, ToolCall | None)
        case ServerToolStart(sub_type=kind):
            assert_type(kind, str | None)
        case ServerToolResult(results=results):
            assert_type(results, tuple[SearchResult, ...])
        case Citation(citation=citation):
            assert_type(citation, CitedSource)
        case MediaPartial(block=block) | MediaDone(block=block):
            assert_type(block, MediaBlock)
        case ContentFilter(blocked=blocked):
            assert_type(blocked, bool)
        case UsageEvent(usage=usage):
            assert_type(usage, Usage)
        case Error(error=error):
            assert_type(error, SemfluxError)
        case Raw() | Custom():
            return event.type
        case _:
            assert_never(event)
    return ""


def generic(event: ChatEvent) -> None:
    """Access that is the same on all classes is typed on the base."""
    assert_type(event.text, str | None)
    assert_type(event.tool_call, ToolCall | None)
    assert_type(event.usage, Usage | None)
    assert_type(event.response, ChatResponse | StepResponse | None)
    assert_type(event.error, SemfluxError | None)


def from_json(fields: dict[str, object]) -> None:
    """What is read from JSON can be matched."""
    assert_type(ChatEvent.from_dict(fields), AnyChatEvent)
