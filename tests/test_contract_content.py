"""The rules of what is inside a step: blocks, calls, server tools, and what they come to."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.errors import SemfluxError
from semflux.events import (
    ChatEvent,
    Error,
    RefusalDelta,
    ResponseEnd,
    ResponseStart,
    ServerToolArgsDelta,
    ServerToolResult,
    ServerToolStart,
    StepEnd,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
)
from semflux.response import ChatResponse, StepResponse
from tests.streams import EMPTY, TWO, call, rules, stream, wrap

A: dict[str, Any] = {"item_id": "a", "index": 0}
B: dict[str, Any] = {"item_id": "b", "index": 1}

RULE_4: dict[str, tuple[list[ChatEvent], list[int]]] = {
    "blocks side by side": (wrap(TextStart(**A), TextStart(**B), TextEnd(**A), TextEnd(**B)), []),
    "one after the other": (wrap(TextStart(), TextEnd(), ThinkingStart(), ThinkingEnd()), []),
    "the same twice": (wrap(TextStart(**A), TextEnd(**A), TextStart(**A), TextEnd(**A)), []),
    "a delta without identity in the only block": (
        wrap(TextStart(**A), TextDelta("x"), TextEnd(**A), text="x"),
        [],
    ),
    "a delta without identity and two blocks": (
        wrap(TextStart(**A), TextStart(**B), TextDelta("x"), TextEnd(**A), TextEnd(**B), text="x"),
        [4],
    ),
    "a delta with another identity": (wrap(TextStart(**A), TextDelta("x", **B), TextEnd(**A), text="x"), [4]),
    "a delta outside": (wrap(TextDelta("x"), text="x"), [4]),
    "a delta in a block of the other group": (
        wrap(TextStart(), ThinkingDelta("x"), TextEnd(), thinking="x"),
        [4],
    ),
    "an end without a start": (wrap(ThinkingEnd()), [4]),
    "an end with another identity": (wrap(TextStart(**A), TextEnd()), [4, 4]),
    "a start twice": (wrap(TextStart(), TextStart(), TextEnd()), [4]),
    "an overlap of groups": (wrap(TextStart(), ThinkingStart(), ThinkingEnd(), TextEnd()), [4]),
    "a block left open": (wrap(TextStart()), [4]),
}


@pytest.mark.parametrize("name", RULE_4)
def test_rule_4_blocks(name: str) -> None:
    """Deltas lie inside their blocks, groups do not overlap, blocks end with their step."""
    events, broken = RULE_4[name]
    assert rules(events) == broken


START, END, RESULT = ToolCallStart("c"), ToolCallEnd("c", None, call()), ToolResult(call())
ARGS = ToolCallArgsDelta("", "c")
CALLED: dict[str, Any] = {"tool_calls": (call(),)}
CALL_STEP = StepResponse(tool_calls=(call(),))


def two_steps(first: StepResponse, *events: ChatEvent) -> list[ChatEvent]:
    """*events* with a STEP_END, and a second step, somewhere in them."""
    return stream(
        ResponseStart(), StepStart(), *events, StepEnd(EMPTY), ResponseEnd(ChatResponse.of([first, EMPTY]))
    )


RULE_5: dict[str, tuple[list[ChatEvent], list[int]]] = {
    "without arguments": (wrap(START, END, **CALLED), []),
    "with its result": (wrap(START, ARGS, END, RESULT, **CALLED), []),
    "no START, but a delta": (wrap(ARGS, END, **CALLED), [5]),
    "no START": (wrap(END, **CALLED), [5]),
    "no END": (wrap(START, **CALLED), [5]),
    "two STARTs": (wrap(START, START, END, **CALLED), [5]),
    "two ENDs": (wrap(START, END, END, **CALLED), [5]),
    "a delta after the END": (wrap(START, END, ARGS, **CALLED), [5]),
    "an id used twice": (wrap(START, END, START, **CALLED), [5]),
    "an id used again after the result": (wrap(START, END, RESULT, START, END, ARGS, **CALLED), [5, 5, 5]),
    "a result before the END": (wrap(START, RESULT, END, **CALLED), [5]),
    "a result of nothing": (wrap(RESULT), [5]),
    "a second result": (wrap(START, END, RESULT, RESULT, **CALLED), [5]),
    "no id": (wrap(ToolCallStart(), ToolResult(None)), [5, 5]),
    "an END without the call": (wrap(START, ToolCallEnd("c"), **CALLED), [5]),
    "an END with another call": (wrap(START, ToolCallEnd("c", None, call("d")), **CALLED), [5]),
    "a result in the next step": (
        two_steps(CALL_STEP, START, END, StepEnd(CALL_STEP), StepStart(), RESULT),
        [5],
    ),
    "an END in the next step": (two_steps(CALL_STEP, START, StepEnd(CALL_STEP), StepStart(), END), [5, 5]),
    "a delta in the next step": (two_steps(CALL_STEP, START, StepEnd(CALL_STEP), StepStart(), ARGS), [5, 5]),
    "an id of an earlier step": (
        two_steps(CALL_STEP, START, END, StepEnd(CALL_STEP), StepStart(), START),
        [5],
    ),
}


@pytest.mark.parametrize("name", RULE_5)
def test_rule_5_tool_calls(name: str) -> None:
    """START, deltas, END, and the result in the same step; no id twice."""
    events, broken = RULE_5[name]
    assert rules(events) == broken


S: dict[str, Any] = {"item_id": "s"}
RULE_6: dict[str, tuple[list[ChatEvent], list[int]]] = {
    "one": (wrap(ServerToolStart(**S), ServerToolArgsDelta("q", **S), ServerToolResult(**S)), []),
    "one after the other": (
        wrap(ServerToolStart(**S), ServerToolResult(**S), ServerToolStart(**S), ServerToolResult(**S)),
        [],
    ),
    "a result without START": (wrap(ServerToolResult(**S)), [6]),
    "a delta without START": (wrap(ServerToolArgsDelta("q", **S)), [6]),
    "a result of another": (wrap(ServerToolStart(**S), ServerToolResult(item_id="t")), [6, 6]),
    "two STARTs": (wrap(ServerToolStart(**S), ServerToolStart(**S), ServerToolResult(**S)), [6]),
    "two results": (wrap(ServerToolStart(**S), ServerToolResult(**S), ServerToolResult(**S)), [6]),
    "no result": (wrap(ServerToolStart(**S)), [6]),
    "no item id": (wrap(ServerToolStart()), [6]),
}


@pytest.mark.parametrize("name", RULE_6)
def test_rule_6_server_tools(name: str) -> None:
    """A result has a START with its item_id, and each START gets one before the end."""
    events, broken = RULE_6[name]
    assert rules(events) == broken


def test_rule_6_lets_a_later_step_answer() -> None:
    """A provider that pauses its turn gives the result in its next answer."""
    events = stream(
        ResponseStart(),
        StepStart(),
        ServerToolStart(item_id="s"),
        StepEnd(EMPTY),
        StepStart(),
        ServerToolResult(item_id="s"),
        StepEnd(EMPTY),
        ResponseEnd(TWO),
    )
    assert rules(events) == []


TEXT = (TextStart(), TextDelta("a"), TextDelta("b"), TextEnd())
THOUGHT = (ThinkingStart(), ThinkingDelta("a"), ThinkingDelta("b"), ThinkingEnd())
WHOLE_CALL = (START, ToolCallArgsDelta("{}", "c"), ToolCallEnd("c", None, call("c", "{}")))

RULE_7: dict[str, tuple[list[ChatEvent], list[int]]] = {
    "text": (wrap(*TEXT, text="ab"), []),
    "text that lacks a delta": (wrap(*TEXT, text="a"), [7]),
    "text that no delta brought": (wrap(text="ab"), [7]),
    "thinking": (wrap(*THOUGHT, thinking="ab"), []),
    "other thinking": (wrap(*THOUGHT, thinking="ba"), [7]),
    "a refusal": (wrap(RefusalDelta("a"), RefusalDelta("b"), refusal="ab"), []),
    "a refusal as text": (wrap(RefusalDelta("ab"), text="ab"), [7, 7]),
    "arguments": (wrap(*WHOLE_CALL, tool_calls=(call("c", "{}"),)), []),
    "arguments that the response lacks": (wrap(*WHOLE_CALL, **CALLED), [7]),
    "a call that the response lacks": (wrap(*WHOLE_CALL), [7]),
    "arguments that the END lacks": (wrap(*WHOLE_CALL[:2], END, tool_calls=(call("c", "{}"),)), [7]),
    "no step response": (
        stream(ResponseStart(), StepStart(), StepEnd(), ResponseEnd(ChatResponse.of([EMPTY]))),
        [7, 7],
    ),
    "no response": (stream(ResponseStart(), ResponseEnd()), [7]),
    "a step that the response lacks": (
        stream(ResponseStart(), StepStart(), StepEnd(EMPTY), ResponseEnd(ChatResponse())),
        [7],
    ),
}


@pytest.mark.parametrize("name", RULE_7)
def test_rule_7_the_aggregate_is_the_deltas_joined(name: str) -> None:
    """There is no second path."""
    events, broken = RULE_7[name]
    assert rules(events) == broken


def test_rule_7_a_partial_step_has_its_open_calls_too() -> None:
    """A failing stream ends its calls, then its step: what had come is there."""
    cut = call("c", '{"a')
    step = StepResponse(tool_calls=(cut,), partial=True)
    ends = (ToolCallEnd("c", None, cut), StepEnd(step))
    error = Error(SemfluxError("lost"), ChatResponse.of([step], partial=True))
    assert (
        rules(stream(ResponseStart(), StepStart(), START, ToolCallArgsDelta('{"a', "c"), *ends, error)) == []
    )
