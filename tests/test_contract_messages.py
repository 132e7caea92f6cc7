"""What the checker says of a stream that breaks a rule: which event, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from semflux.contract import Checker, violations_of
from semflux.events import (
    ChatEvent,
    Origin,
    ResponseEnd,
    ResponseStart,
    ServerToolStart,
    Status,
    StepEnd,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingEnd,
    ThinkingStart,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolCallStart,
)
from semflux.response import ChatResponse, StepResponse
from tests.streams import EMPTY, TWO, call, stream, wrap

PLAIN = stream(ResponseStart(), Status("a"), Status("b"), ResponseEnd(ChatResponse()))
STEPS = stream(ResponseStart(), StepStart(), StepEnd(EMPTY), StepStart(), StepEnd(EMPTY), ResponseEnd(TWO))
START = ToolCallStart("c")
CALL_STEP = StepResponse(tool_calls=(call(),))
CALLED: dict[str, Any] = {"tool_calls": (call(),)}


def changed(events: list[ChatEvent], place: int, **fields: Any) -> list[ChatEvent]:
    return [*events[:place], attrs.evolve(events[place], **fields), *events[place + 1 :]]


def in_step(number: int) -> Origin:
    return Origin(response_id="r", step=number)


SAID: list[tuple[list[ChatEvent], list[str]]] = [
    (changed(PLAIN, 2, seq=1), ["STATUS has seq 1 after 1", "RESPONSE_END has seq 3, not 2"]),
    (changed(PLAIN, 3, seq=7), ["RESPONSE_END has seq 7, not 3"]),
    (changed(PLAIN, 2, origin=Origin(response_id="q")), ["STATUS has another response_id than the stream"]),
    (
        changed(STEPS, 4, origin=in_step(0)),
        ["STEP_END falls back to step 0 from 1", "STEP_END has number 0 in step 1"],
    ),
    (changed(STEPS, 2, origin=in_step(1)), ["STEP_END has number 1 in step 0"]),
    (
        changed(changed(changed(STEPS, 3, origin=in_step(2)), 4, origin=in_step(2)), 5, origin=in_step(2)),
        ["STEP_START has number 2, not 1", "STEP_END has number 2 in step 1"],
    ),
    (wrap(TextStart()), ["STEP_END leaves a block of TEXT open"]),
    (wrap(START, **CALLED), ["STEP_END leaves call 'c' open"]),
    (
        stream(ResponseStart(), StepStart(), StepEnd(), ResponseEnd(ChatResponse.of([EMPTY]))),
        ["STEP_END has no response", "RESPONSE_END has a response whose steps are not those of the stream"],
    ),
    (stream(ResponseStart(), ResponseEnd()), ["RESPONSE_END has no response"]),
    (wrap(text="a"), ["STEP_END has a response whose text is not the deltas joined"]),
    (wrap(thinking="a"), ["STEP_END has a response whose thinking is not the deltas joined"]),
    (wrap(refusal="a"), ["STEP_END has a response whose refusal is not the deltas joined"]),
    (wrap(**CALLED), ["STEP_END has a response whose tool calls are not those of the step"]),
    (wrap(ServerToolStart(item_id="s")), ["RESPONSE_END leaves server tool 's' without a result"]),
    (wrap(ServerToolStart()), ["SERVER_TOOL_START has no item_id"]),
    (
        wrap(TextStart(), ThinkingStart(), ThinkingEnd(), TextEnd()),
        ["THINKING_START begins inside a block of the other group"],
    ),
    (wrap(ToolCallStart()), ["TOOL_CALL_START has no tool_call_id"]),
    (wrap(START, ToolCallEnd("c"), **CALLED), ["TOOL_CALL_END has not the call that it ends"]),
    (
        wrap(
            START, ToolCallArgsDelta("{}", "c"), ToolCallEnd("c", None, call()), tool_calls=(call("c", "{}"),)
        ),
        ["TOOL_CALL_END has a call whose arguments_json is not the deltas joined"],
    ),
    (
        stream(
            ResponseStart(),
            StepStart(),
            START,
            StepEnd(CALL_STEP),
            StepStart(),
            ToolCallEnd("c", None, call()),
            StepEnd(EMPTY),
            ResponseEnd(ChatResponse.of([CALL_STEP, EMPTY])),
        ),
        ["STEP_END leaves call 'c' open", "TOOL_CALL_END belongs to a call of an earlier step"],
    ),
]


@pytest.mark.parametrize("events, said", SAID, ids=[said[-1] for _, said in SAID])
def test_what_is_wrong_is_said_of_the_event_that_is_wrong(events: list[ChatEvent], said: list[str]) -> None:
    assert said == [violation.message for violation in violations_of(events)]


def test_a_checker_wants_every_event_unless_it_is_told_otherwise() -> None:
    """A gap in *seq* is a breach of the default, as it is for `violations_of`."""
    checker = Checker()
    for event in PLAIN[0], PLAIN[2]:
        checker.check(event)
    assert ["STATUS has seq 2, not 1"] == [violation.message for violation in checker.violations]


def test_half_an_identity_is_not_none() -> None:
    """Only a delta that names no block at all belongs to the one that is open."""
    for named in ({"item_id": "a"}, {"index": 0}):
        events = wrap(
            TextStart(item_id="a", index=0),
            TextDelta("x", **named),
            TextEnd(item_id="a", index=0),
            text="x",
        )
        assert ["TEXT_DELTA lies outside a block of its group"] == [v.message for v in violations_of(events)]
