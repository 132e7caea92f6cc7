"""Streams made by hand: stamped events of one or more steps, and the rules that they break."""

from __future__ import annotations

from typing import Any

import attrs

from semflux.contract import violations_of
from semflux.events import ChatEvent, ChatEventType, Origin, ResponseEnd, ResponseStart, StepEnd, StepStart
from semflux.messages import ToolCall
from semflux.response import ChatResponse, StepResponse

T = ChatEventType
EMPTY = StepResponse()
"""What a step without content comes to."""
TWO = ChatResponse.of([EMPTY, EMPTY])
"""What two of them come to."""


def stream(*events: ChatEvent, response_id: str = "r") -> list[ChatEvent]:
    """*events* as they are delivered: stamped, with the number of the step they stand in."""
    step, stamped = -1, []
    for seq, event in enumerate(events):
        step += event.type is T.STEP_START
        origin = Origin(response_id=response_id, step=max(step, 0))
        stamped.append(attrs.evolve(event, seq=seq, origin=origin))
    return stamped


def wrap(*content: ChatEvent, **came_to: Any) -> list[ChatEvent]:
    """A stream of one step with *content*, whose response is made of *came_to*."""
    step = StepResponse(**came_to)
    end = ResponseEnd(ChatResponse.of([step]))
    return stream(ResponseStart(), StepStart(), *content, StepEnd(step), end)


def rules(events: list[ChatEvent], **options: Any) -> list[int]:
    """The rules that *events* break."""
    return [violation.rule for violation in violations_of(events, **options)]


def call(call_id: str = "c", arguments_json: str = "") -> ToolCall:
    return ToolCall(id=call_id, name="f", arguments_json=arguments_json)
