"""The rules of order: a legal stream and an illegal one for each."""

from __future__ import annotations

import attrs
import pytest

from semflux.contract import (
    BLOCK,
    CALL,
    SERVER_TOOL,
    STREAM,
    Breach,
    Checker,
    State,
    Violation,
    violations_of,
)
from semflux.errors import SemfluxError
from semflux.events import (
    Abort,
    ChatEvent,
    ChatEventType,
    Citation,
    Custom,
    Error,
    Heartbeat,
    Origin,
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
from semflux.response import ChatResponse, CitedSource, StepResponse
from semflux.usage import Usage
from tests.streams import EMPTY, TWO, call, rules, stream, wrap

T = ChatEventType

TOOL_STEP = StepResponse(text="ab", thinking="t", refusal="no", tool_calls=(call("c1", "{}"), call("c2")))
LAST_STEP = StepResponse(step=1, text="xyz")
LEGAL = stream(
    ResponseStart(),
    Heartbeat(),
    StepStart("m"),
    Status("in_progress"),
    ThinkingStart(item_id="a", index=0),
    ThinkingDelta("t", item_id="a", index=0),
    ThinkingSignature("s", item_id="a", index=0),
    ThinkingEnd(item_id="a", index=0),
    ThinkingRedacted("r"),
    UsageEvent(Usage(input_tokens=1)),
    TextStart(item_id="b", index=1),
    TextStart(item_id="c", index=2),
    TextDelta("a", item_id="c", index=2),
    TextEnd(item_id="c", index=2),
    TextDelta("b"),
    ToolCallStart("c1", "f"),
    ToolCallArgsDelta("{", "c1"),
    ToolCallStart("c2", "f"),
    ToolCallEnd("c2", "f", call("c2")),
    RefusalDelta("no"),
    ToolCallArgsDelta("}", "c1"),
    TextEnd(item_id="b", index=1),
    ToolCallEnd("c1", "f", call("c1", "{}")),
    ServerToolStart("web_search", item_id="s"),
    ServerToolArgsDelta("q", item_id="s"),
    ServerToolResult(item_id="s"),
    ToolResult(call("c1", "{}"), "ok"),
    StepEnd(TOOL_STEP),
    Raw({"x": 1}),
    StepStart("m"),
    TextStart(),
    TextDelta("x"),
    Custom("agent"),
    TextDelta("yz"),
    TextEnd(),
    Citation(CitedSource(url="u")),
    StepEnd(LAST_STEP),
    ResponseEnd(ChatResponse.of([TOOL_STEP, LAST_STEP])),
)


def test_a_legal_stream_breaks_no_rule() -> None:
    """Two steps with everything in them."""
    assert violations_of(LEGAL) == ()


@pytest.mark.parametrize("cut", range(len(LEGAL)))
def test_a_cut_stream_only_lacks_its_end(cut: int) -> None:
    """After a cancel nothing more comes: what came until then is legal."""
    checker = Checker()
    for event in LEGAL[:cut]:
        checker.check(event)
    assert checker.violations == ()
    assert checker.finish() == (Violation(1, "the stream has no terminal event", cut - 1),)


@pytest.mark.parametrize("lost", range(len(LEGAL)))
def test_every_loss_of_an_event_is_seen(lost: int) -> None:
    """By its *seq* at least, except for the last event."""
    assert violations_of(LEGAL[:lost] + LEGAL[lost + 1 :]) != ()


@pytest.mark.parametrize("end", [ResponseEnd(ChatResponse()), Abort(response=ChatResponse())])
def test_a_stream_may_end_without_a_step(end: ChatEvent) -> None:
    """The provider was never reached, or the other side stopped it before."""
    assert rules(stream(ResponseStart(), end)) == []
    assert rules(stream(ResponseStart(), Error(SemfluxError("no"), ChatResponse()))) == []


RULE_1: dict[str, tuple[list[ChatEvent], list[int]]] = {
    "nothing": ([], [1]),
    "no start": (stream(ResponseEnd(ChatResponse())), [1]),
    "a late start": (stream(Status("x"), ResponseStart(), ResponseEnd(ChatResponse())), [1, 1]),
    "a step before the start": (
        stream(StepStart(), StepEnd(StepResponse()), ResponseEnd(ChatResponse.of([StepResponse()]))),
        [1],
    ),
    "a second start": (stream(ResponseStart(), ResponseStart(), ResponseEnd(ChatResponse())), [1]),
    "a start inside a step": (wrap(ResponseStart()), [1]),
    "no end": (stream(ResponseStart()), [1]),
    "two ends": (
        stream(ResponseStart(), ResponseEnd(ChatResponse()), Error(SemfluxError("x"), ChatResponse())),
        [1],
    ),
    "something after the end": (stream(ResponseStart(), ResponseEnd(ChatResponse()), Status("late")), [1]),
}


@pytest.mark.parametrize("name", RULE_1)
def test_rule_1_start_and_end(name: str) -> None:
    """RESPONSE_START is first, once; exactly one terminal event comes, last."""
    events, broken = RULE_1[name]
    assert rules(events) == broken


def numbered(*numbers: int) -> list[ChatEvent]:
    """Two empty steps; the events that begin and end them say *numbers*."""
    events = stream(
        ResponseStart(), StepStart(), StepEnd(EMPTY), StepStart(), StepEnd(EMPTY), ResponseEnd(TWO)
    )
    for place, number in enumerate(numbers, 1):
        events[place] = attrs.evolve(events[place], origin=Origin(response_id="r", step=number))
    return events


RULE_2: dict[str, tuple[list[ChatEvent], list[int]]] = {
    "legal numbers": (numbered(0, 0, 1, 1), []),
    "a number left out": (numbered(0, 0, 2, 2), [2, 2, 2]),
    "steps from 1": (numbered(1, 1, 1, 1), [2, 2]),
    "the end of another step": (numbered(0, 1, 1, 1), [2]),
    "a step that falls": (numbered(0, 0, 1, 0), [2, 2]),
    "another response": ([*stream(ResponseStart(), Status("x"), response_id="q")[:1], *LEGAL[1:]], [2] * 37),
    "a nested step": (
        stream(
            ResponseStart(), StepStart(), StepStart(), StepEnd(EMPTY), ResponseEnd(ChatResponse.of([EMPTY]))
        ),
        [2],
    ),
    "an end without a step": (
        stream(ResponseStart(), StepStart(), StepEnd(EMPTY), StepEnd(EMPTY), ResponseEnd(TWO)),
        [2],
    ),
    "a terminal event inside a step": (
        stream(ResponseStart(), StepStart(), ResponseEnd(ChatResponse())),
        [2],
    ),
}


@pytest.mark.parametrize("name", RULE_2)
def test_rule_2_response_and_steps(name: str) -> None:
    """One response_id; steps are numbered, do not nest, and end before the next and the end."""
    events, broken = RULE_2[name]
    assert rules(events) == broken


def test_rule_2_content_says_the_step_it_stands_in() -> None:
    """An origin that was made for another step."""
    events = wrap(UsageEvent(Usage()))
    events[2] = attrs.evolve(events[2], origin=Origin(response_id="r", step=1))
    assert rules(events) == [2, 2, 2]
    assert violations_of(events)[0].message == "USAGE says step 1 in step 0"


@pytest.mark.parametrize(
    "event", [RefusalDelta(""), UsageEvent(Usage()), Citation(CitedSource()), ThinkingRedacted("")]
)
def test_rule_3_content_and_usage_come_inside_a_step(event: ChatEvent) -> None:
    """Before STEP_START the provider has accepted nothing; after STEP_END the step is counted."""
    assert rules(wrap(event)) == []
    assert rules(stream(ResponseStart(), event, ResponseEnd(ChatResponse()))) == [3]


@pytest.mark.parametrize("event", [Status("x"), Heartbeat(), Raw({}), Custom("agent")])
def test_rule_3_leaves_the_rest_alone(event: ChatEvent) -> None:
    """Signs of life, and what nobody modelled, come at any time."""
    assert rules(wrap(event)) == []
    assert rules(stream(ResponseStart(), event, ResponseEnd(ChatResponse()))) == []


def renumbered(*numbers: int) -> list[ChatEvent]:
    events = stream(ResponseStart(), Status("a"), Status("b"), ResponseEnd(ChatResponse()))
    return [attrs.evolve(event, seq=number) for event, number in zip(events, numbers, strict=True)]


@pytest.mark.parametrize(
    "numbers, exact, rising",
    [
        ((0, 1, 2, 3), [], []),
        ((0, 1, 3, 4), [8], []),
        ((2, 5, 6, 9), [8, 8, 8], []),
        ((0, 1, 1, 2), [8], [8]),
        ((0, 2, 1, 3), [8, 8], [8]),
        ((-1, -1, -1, -1), [8, 8, 8, 8], [8, 8, 8, 8]),
    ],
)
def test_rule_8_order_of_delivery(numbers: tuple[int, ...], exact: list[int], rising: list[int]) -> None:
    """No gap and no repeat; a filter makes holes, never a repeat; before the stamp there is none."""
    assert rules(renumbered(*numbers)) == exact
    assert rules(renumbered(*numbers), seq="rising") == rising
    assert rules(renumbered(*numbers), seq="ignored") == []


def test_a_violation_says_where_and_what() -> None:
    """A sentence that starts with the type of the event, and the event's place."""
    (found,) = violations_of(wrap(TextDelta("x"), text="x"))
    assert found == Violation(4, "TEXT_DELTA lies outside a block of its group", 2, T.TEXT_DELTA)
    assert str(found) == "rule 4: TEXT_DELTA lies outside a block of its group (seq 2)"


def test_the_tables_say_something_of_every_state_and_type() -> None:
    """The stream's table has all 31 types in every state; all cells lead to a state with a row."""
    for state, row in STREAM.items():
        assert set(row) == set(T), state
    for table in (STREAM, BLOCK, CALL, SERVER_TOOL):
        for row in table.values():
            for cell in row.values():
                assert (cell.then if isinstance(cell, Breach) else cell) in table
    assert STREAM[State.IN_STEP][T.STEP_END] is State.RUNNING
