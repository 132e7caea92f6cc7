"""The aggregator: what the events came to so far, on those that tell it."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.aggregate import Aggregator
from semflux.errors import SemfluxError
from semflux.events import (
    Abort,
    ChatEvent,
    Error,
    ResponseEnd,
    StepEnd,
    StepStart,
    TextDelta,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageEvent,
)
from semflux.response import ChatResponse
from semflux.state import RunState
from semflux.usage import Usage


def run(*events: ChatEvent, state: RunState | None = None) -> list[Any]:
    aggregator = Aggregator(state)
    return [out for event in events for out in aggregator.push(event)]  # type: ignore[arg-type]  # any event


def test_events_come_out_one_for_one() -> None:
    """Frozen ones as copies: they may have been seen."""
    delta = TextDelta("a")
    out = run(StepStart(), delta, StepEnd())

    assert [event.type for event in out] == ["STEP_START", "TEXT_DELTA", "STEP_END"]
    assert out[1] == delta.draft_class("a")
    assert out[1] is not delta
    draft = TextDelta.draft_class("a")
    assert run(draft) == [draft]


def test_the_end_of_a_call_brings_the_call() -> None:
    """Its arguments parsed."""
    end = run(ToolCallStart("c", "f"), ToolCallArgsDelta("{}", "c"), ToolCallEnd("c"))[-1]

    assert (end.tool_call.id, end.tool_call.name, end.tool_call.arguments) == ("c", "f", {})


def test_usage_brings_what_the_step_has_used_as_of_now() -> None:
    """Merged with what came before, the total put in."""
    first, second = run(UsageEvent(Usage(input_tokens=1)), UsageEvent(Usage(output_tokens=2)))

    assert first.usage == Usage(input_tokens=1)
    assert second.usage == Usage(input_tokens=1, output_tokens=2, total_tokens=3)


def test_the_end_of_a_step_brings_the_step_and_the_end_of_the_stream_all_of_them() -> None:
    """Response, usage and reason."""
    step, end = run(
        StepStart(), TextDelta("a"), UsageEvent(Usage(input_tokens=1)), StepEnd(finish_reason="length"), ResponseEnd()
    )[-2:]  # fmt: skip

    assert (step.response.text, step.usage, step.finish_reason) == ("a", Usage(input_tokens=1), "length")
    assert (end.response.text, end.usage, end.finish_reason, end.response.partial) == (
        "a",
        Usage(input_tokens=1),
        "length",
        False,
    )
    assert end.response.steps == (step.response,)


def test_a_reason_of_the_end_of_the_stream_wins() -> None:
    """Such as max_steps."""
    end = run(StepStart(), StepEnd(finish_reason="tool_calls"), ResponseEnd(None, None, "max_steps"))[-1]

    assert (end.finish_reason, end.response.finish_reason) == ("max_steps", "max_steps")


@pytest.mark.parametrize("terminal", [Abort("why"), Error(SemfluxError("x"))], ids=["abort", "error"])
def test_abort_and_error_bring_what_had_arrived(terminal: ChatEvent) -> None:
    """As a partial response; the exception has it too."""
    event = run(StepStart(), TextDelta("par"), UsageEvent(Usage(input_tokens=1)), terminal)[-1]

    assert (event.response.text, event.response.partial, event.usage) == ("par", True, Usage(input_tokens=1))
    if isinstance(event, Error):
        assert event.error.partial == event.response


def test_a_partial_response_that_an_exception_has_already_stays() -> None:
    """It knew better."""
    known = ChatResponse(response_id="known")
    event = run(Error(SemfluxError("x", partial=known)))[0]

    assert event.error.partial is known


def test_the_fold_is_the_streams_own() -> None:
    """There is no second aggregate: what the state holds is what the events say."""
    state = RunState(response_id="r")
    end = run(StepStart(), TextDelta("a"), StepEnd(), ResponseEnd(), state=state)[-1]

    assert state.fold.response(partial=False) == end.response
