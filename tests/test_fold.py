"""The fold: what events come to, in the order of the stream, and within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.errors import ResponseTooLargeError, ToolArgumentsError
from semflux.events import (
    ChatEvent,
    Citation,
    MediaDone,
    MediaPartial,
    Origin,
    Raw,
    RefusalDelta,
    ServerToolArgsDelta,
    ServerToolResult,
    ServerToolStart,
    StepEnd,
    StepStart,
    TextDelta,
    TextStart,
    ThinkingDelta,
    ThinkingRedacted,
    ThinkingSignature,
    ThinkingStart,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageEvent,
)
from semflux.fold import Fold, complete_call
from semflux.frozen import FrozenDict
from semflux.messages import (
    RedactedThinkingPart,
    RefusalPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolCallPart,
    VendorPart,
)
from semflux.response import CitedSource, MediaBlock, RepairReport, StepResponse
from semflux.usage import Usage
from semflux.wire.limits import Limits


def fold_of(*events: ChatEvent, limits: Limits | None = None, **options: Any) -> Fold:
    fold = Fold("r", limits, **options)
    for event in events:
        fold.add(event)  # type: ignore[arg-type]  # any event
    return fold


def step_of(*events: ChatEvent, **options: Any) -> StepResponse:
    """What a step of *events* comes to."""
    return fold_of(StepStart(), *events, StepEnd(), **options).steps[0]


def call(id: str, *fragments: str, name: str = "f") -> list[ChatEvent]:
    return [ToolCallStart(id, name), *[ToolCallArgsDelta(f, id) for f in fragments], ToolCallEnd(id, name)]


# Texts and the message.


def test_deltas_are_joined_in_the_order_of_the_stream() -> None:
    """Over all blocks, however they are interleaved; the message has them block by block."""
    step = step_of(
        TextStart(index=0), TextDelta("a", index=0), TextStart(index=1), TextDelta("x", index=1), TextDelta("b", index=0),
        ThinkingStart(index=2), ThinkingDelta("t", index=2), ThinkingStart(index=3), ThinkingDelta("u", index=3), ThinkingDelta("v", index=2),
    )  # fmt: skip

    assert (step.text, step.thinking) == ("axb", "tuv")
    assert step.message.parts == (TextPart("ab"), TextPart("x"), ThinkingPart("tv"), ThinkingPart("u"))


def test_blocks_without_starts_are_found_by_their_identity() -> None:
    """Events that were made by hand need no boundaries."""
    step = step_of(
        TextDelta("a", index=0),
        TextDelta("b", index=1),
        TextDelta("c", index=0),
        ThinkingDelta("t"),
        ThinkingDelta("u"),
    )

    assert step.message.parts == (TextPart("ac"), TextPart("b"), ThinkingPart("tu"))


def test_a_signature_belongs_to_its_block_and_replaces() -> None:
    """By identity; without one, to the latest block; before any thinking it is a part of its own."""
    step = step_of(
        ThinkingStart(index=0), ThinkingDelta("a", index=0), ThinkingStart(index=1), ThinkingDelta("b", index=1),
        ThinkingSignature("one", index=0), ThinkingSignature("two", index=0), ThinkingSignature("last"),
    )  # fmt: skip
    assert step.message.parts == (ThinkingPart("a", "two"), ThinkingPart("b", "last"))

    assert step_of(ThinkingSignature("s", item_id="i")).message.parts == (ThinkingPart("", "s", "i"),)
    assert step_of(ThinkingStart(), TextStart()).message.parts == ()


def test_a_message_has_its_parts_in_the_order_of_the_stream() -> None:
    """Thinking, redacted data, text, calls, refusals, vendor blocks verbatim."""
    step = step_of(
        ThinkingRedacted("R"), ThinkingStart(), ThinkingDelta("t"), *call("c", "{}"), RefusalDelta("n"), RefusalDelta("o"),
        Raw({"x": 1}, attributes={"block": {"type": "odd"}}), Raw({"frame": 2}), TextStart(), TextDelta("a"), RefusalDelta("!"),
    )  # fmt: skip

    assert step.message.parts == (
        RedactedThinkingPart("R"), ThinkingPart("t"), ToolCallPart(step.tool_calls[0]), RefusalPart("no"),
        VendorPart("", {"type": "odd"}), TextPart("a"), RefusalPart("!"),
    )  # fmt: skip
    assert step.refusal == "no!"


def test_server_tools_are_vendor_parts_with_their_input_put_in() -> None:
    """Parsed where it is JSON, as text where not; a result that repeats the whole item takes its place."""
    start = {"type": "use", "id": "s", "input": {}}
    args = FrozenDict(args_key="input")
    whole = FrozenDict(whole=True)

    def parts(*events: ChatEvent) -> list[Any]:
        return [part.raw for part in step_of(*events).message.parts if isinstance(part, VendorPart)]

    begin = ServerToolStart("x", raw=start, item_id="s", attributes=args)
    assert parts(
        begin, ServerToolArgsDelta('{"q"', item_id="s"), ServerToolArgsDelta(":1}", item_id="s")
    ) == [{**start, "input": {"q": 1}}]
    assert parts(begin, ServerToolArgsDelta("cut", item_id="s"), ServerToolResult(raw={"r": 1}, item_id="s")) == [
        {**start, "input": "cut"}, {"r": 1},
    ]  # fmt: skip
    assert parts(begin, ServerToolResult(raw={"all": 1}, item_id="s", attributes=whole)) == [{"all": 1}]
    assert parts(ServerToolResult(raw={"all": 1}, item_id="s", attributes=whole)) == [{"all": 1}]
    assert (
        parts(
            ServerToolStart("x", item_id="s"),
            ServerToolArgsDelta("a", item_id="other"),
            ServerToolResult(item_id="s"),
        )
        == []
    )


def test_citations_media_and_log_probabilities_are_gathered() -> None:
    """Finished media only."""
    source, block = CitedSource(url="u"), MediaBlock(kind="image", url="i")
    logprobs = FrozenDict(logprobs=({"token": "a"},))
    step = step_of(
        Citation(source),
        Citation(source),
        MediaPartial(block),
        MediaDone(block),
        TextDelta("a", attributes=logprobs),
    )

    assert (step.citations, step.media, step.logprobs) == ((source, source), (block,), ({"token": "a"},))


# Calls.


@pytest.mark.parametrize(
    "fragments, arguments, error",
    [
        ([], {}, None), ([""], {}, None), (["{", '"a":1}'], {"a": 1}, None), (["[1]"], (1,), None), (["5"], 5, None),
        (['"x"'], "x", None), (["null"], None, None), (['{"a":'], None, "JSON"), (["{}{}"], None, "JSON"), (["NaN"], None, "JSON"),
        (['{"a":Infinity}'], None, "JSON"), (['{"a":1e999}'], None, "JSON"), (["[" * 200 + "]" * 200], None, "nested"),
        (['{"a":"\\ud83d\\ude00 \\ud83d"}'], {"a": "😀 \ufffd"}, None),
    ],
)  # fmt: skip
def test_the_arguments_of_a_call(fragments: list[str], arguments: Any, error: str | None) -> None:
    """None at all is an empty object; JSON of any kind is parsed; what is no whole JSON says why."""
    made = complete_call("c", "f", fragments)

    assert (made.arguments_json, made.arguments) == ("".join(fragments), arguments)
    assert made.arguments_error is None if error is None else error in str(made.arguments_error)
    assert made.is_complete is (isinstance(arguments, dict) and error is None)


def test_the_text_of_a_custom_tool_is_never_parsed() -> None:
    """It is text, and complete."""
    start = ToolCallStart("c", "f", attributes={"kind": "custom"})
    made = step_of(start, ToolCallArgsDelta("{not json", "c"), ToolCallEnd("c")).tool_calls[0]

    assert made == ToolCall(id="c", name="f", arguments_json="{not json", kind="custom")
    assert made.is_complete


def test_calls_are_in_the_order_of_their_starts() -> None:
    """Complete ones can be asked for while the step is open; a name may come with the end."""
    fold = fold_of(
        StepStart(),
        ToolCallStart("a"),
        ToolCallStart("b", "g"),
        ToolCallArgsDelta("{}", "b"),
        ToolCallEnd("b"),
    )
    assert [made.id for made in fold.calls] == ["b"]
    assert fold.call("a") is None
    assert fold.call(None) is None

    fold.add(ToolCallEnd("a", "late"))
    assert [(made.id, made.name) for made in fold.calls] == [("a", "late"), ("b", "g")]


def test_a_call_that_never_ended_is_in_the_step_as_far_as_it_came() -> None:
    """With why it cannot be run."""
    step = step_of(ToolCallArgsDelta('{"a"', "c", "f"))

    assert [(c.id, c.name, c.arguments, c.is_complete) for c in step.tool_calls] == [("c", "f", None, False)]


# Usage, identity, steps.


def test_usage_of_a_step_replaces_and_of_steps_adds() -> None:
    """(input, reasoning, output, total): (10,2,5,15) + (20,3,7,27) + (30,0,9,39) is (60,5,21,81)."""
    fold = fold_of()
    for step, (inputs, reasoning, output) in enumerate([(10, 2, 5), (20, 3, 7), (30, 0, 9)]):
        at = Origin(step=step)
        fold.add(StepStart(origin=at))
        fold.add(UsageEvent(Usage(input_tokens=99, output_tokens=1), origin=at))
        fold.add(UsageEvent(Usage(input_tokens=inputs, reasoning_tokens=reasoning), origin=at))
        fold.add(StepEnd(None, Usage(output_tokens=output), origin=at))
    usage = fold.response(partial=False).usage

    assert usage is not None
    assert (usage.input_tokens, usage.reasoning_tokens, usage.output_tokens, usage.total_tokens) == (
        60,
        5,
        21,
        81,
    )


def test_the_usage_of_the_end_alone_counts() -> None:
    """Nothing came before it."""
    step = fold_of(StepStart(), StepEnd(None, Usage(input_tokens=1))).steps[0]

    assert step.usage == Usage(input_tokens=1)


def test_the_total_is_the_vendors_else_the_sum_else_none() -> None:
    """And the price where there is a table, unless the vendor says one."""
    assert step_of(UsageEvent(Usage(input_tokens=1))).usage == Usage(input_tokens=1)
    assert step_of(UsageEvent(Usage(input_tokens=1, output_tokens=2, total_tokens=9))).usage == Usage(
        input_tokens=1, output_tokens=2, total_tokens=9
    )

    asked: list[Any] = []

    def price(usage: Usage, model: str | None) -> float | None:
        asked.append(model)
        return 0.5

    origin = Origin(model="m")
    assert step_of(UsageEvent(Usage(input_tokens=1), origin=origin), pricer=price).usage == Usage(
        input_tokens=1, cost=0.5
    )
    assert step_of(UsageEvent(Usage(cost=2.0), origin=origin), pricer=price).usage == Usage(cost=2.0)
    assert asked == ["m"]


def test_a_failing_steps_last_usage_counts() -> None:
    """What was paid for is known."""
    fold = fold_of(StepStart(), UsageEvent(Usage(input_tokens=3)), TextDelta("par"))
    response = fold.response(partial=True)

    assert response.usage == Usage(input_tokens=3)
    assert (response.text, response.partial, response.steps[0].partial) == ("par", True, True)


def test_a_response_before_anything_is_empty() -> None:
    """No step, no text, no usage; the counts of repairs are asked for."""
    response = fold_of(repairs=lambda: RepairReport({"x": 1})).response(partial=False)

    assert (response.steps, response.text, response.usage, response.repairs.count) == ((), "", None, 1)
    assert response.response_id == "r"


def test_a_step_opens_with_its_first_event_where_no_start_came() -> None:
    """Streams that were made by hand; usage and vendor blocks open it too."""
    for event in (TextDelta("a"), UsageEvent(Usage(input_tokens=1)), Raw({}, attributes={"block": {"x": 1}})):
        assert len(fold_of(event).response(partial=True).steps) == 1
    assert fold_of(Raw({})).response(partial=True).steps == ()


def test_content_is_what_decides_about_a_retry() -> None:
    """USAGE and RAW are none; a new step begins anew."""
    fold = fold_of(StepStart(), UsageEvent(Usage()), Raw({}, attributes={"block": {}}))
    assert not fold.content_seen

    fold.add(TextStart())
    assert fold.content_seen
    fold.add(StepStart())
    assert not fold.content_seen


def test_who_answered_is_known_from_usage_and_the_end() -> None:
    """The last thing that was said of it."""
    origin = Origin(model="m", provider_response_id="p", dialect="d")
    step = fold_of(StepStart(), Raw({}, attributes={"block": {"b": 1}}), StepEnd(origin=origin)).steps[0]

    assert (step.model, step.provider_response_id, step.message.parts) == (
        "m",
        "p",
        (VendorPart("d", {"b": 1}),),
    )


# Why it ended.


@pytest.mark.parametrize(
    "events, said, means",
    [
        ([TextDelta("a")], "stop", "stop"), ([*call("c", "{}")], "stop", "tool_calls"), ([*call("c")], "stop", "tool_calls"),
        ([*call("c", "{}"), *call("d", "{")], "stop", "stop"), ([ToolCallStart("c", "f")], "stop", "stop"),
        ([*call("c", "{}")], "length", "length"), ([RefusalDelta("no")], "stop", "refusal"),
        ([RefusalDelta("no"), TextDelta("a")], "stop", "stop"), ([RefusalDelta("no")], "length", "length"), ([], None, None),
    ],
)  # fmt: skip
def test_stop_means_more_where_the_content_says_more(events: list[ChatEvent], said: Any, means: Any) -> None:
    """Complete calls, or nothing but a refusal."""
    fold = fold_of(StepStart(), *events, StepEnd(finish_reason=said, provider_finish_reason="v"))

    assert (fold.steps[0].finish_reason, fold.steps[0].provider_finish_reason) == (means, "v")
    assert fold.response(partial=False).finish_reason == means
    assert fold.response(partial=False, finish_reason="max_steps").finish_reason == "max_steps"


def test_a_partial_step_has_no_finish_reason() -> None:
    """It did not end well."""
    fold = fold_of(StepStart(), TextDelta("a"), StepEnd(finish_reason="stop", attributes={"partial": True}))

    assert (fold.steps[0].finish_reason, fold.steps[0].partial) == (None, True)
    assert fold.response(partial=True).finish_reason is None


# Bounds.

SMALL = Limits(max_text_chars=3, max_thinking_chars=3, max_tool_args_chars=3, max_tool_calls=1)


@pytest.mark.parametrize(
    "events, cls, kind",
    [
        ([TextDelta("ab"), TextDelta("cd")], ResponseTooLargeError, "text"),
        ([ThinkingDelta("ab"), ThinkingDelta("cd")], ResponseTooLargeError, "thinking"),
        ([RefusalDelta("ab"), RefusalDelta("cd")], ResponseTooLargeError, "refusal"),
        ([ToolCallStart("a", "f"), ToolCallArgsDelta("ab", "a"), ToolCallArgsDelta("cd", "a")], ToolArgumentsError, "size"),
        ([ToolCallStart("a", "f"), ToolCallStart("b", "f")], ToolArgumentsError, "count"),
    ],
)  # fmt: skip
def test_a_bound_is_passed_by_the_event_that_passes_it(
    events: list[ChatEvent], cls: type[Exception], kind: str
) -> None:
    """What was inside it stays; the next step begins anew; after `release` nothing is refused."""
    fold = fold_of(StepStart(), *events[:-1], limits=SMALL)
    inside = fold.response(partial=True)

    with pytest.raises(cls) as caught:
        fold.add(events[-1])  # type: ignore[arg-type]  # any event
    assert getattr(caught.value, "kind", None) == kind
    assert fold.response(partial=True) == inside

    fold.release()
    fold.add(events[-1])  # type: ignore[arg-type]  # any event
    fold.add(StepEnd())
    fold.add(StepStart(origin=Origin(step=1)))
    with pytest.raises(cls):
        for event in events:
            fold.add(event)  # type: ignore[arg-type]  # any event


def test_the_lane_is_the_same_as_adding() -> None:
    """A short way for more text or thinking of one block, with its bound; none where the delta has attributes."""
    for delta, kind in ((TextDelta("a"), "text"), (ThinkingDelta("a"), "thinking")):
        fold = fold_of(StepStart(), delta, limits=SMALL)
        lane = fold.lane(delta)
        assert lane is not None
        lane("b")
        assert getattr(fold.response(partial=True), kind) == "ab"
        with pytest.raises(ResponseTooLargeError) as caught:
            lane("cd")
        assert caught.value.kind == kind
    assert fold_of(StepStart()).lane(TextDelta("a")) is None
    assert fold_of(StepStart(), TextDelta("a")).lane(TextDelta("a", attributes={"logprobs": ()})) is None


def test_events_that_say_nothing_are_passed_over() -> None:
    """Such as one that is no content."""
    assert fold_of(MediaPartial(MediaBlock(kind="image"))).response(partial=True).steps == ()
