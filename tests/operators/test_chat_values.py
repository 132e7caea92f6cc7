"""thinking, tool_calls, citations, dedupe_snapshots: what is in a chat stream, by itself."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import reactivex

import semflux
from semflux import (
    ChatEventType,
    ChatStream,
    Citation,
    CitedSource,
    ConfigurationError,
    Retry,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ToolArgumentsError,
    ToolCall,
    ToolCallEnd,
    ToolNotFoundError,
    ToolSpec,
)
from semflux.contract import violations_of
from semflux.errors import SemfluxError, TruncatedStreamError
from semflux.events import RefusalDelta, ServerToolArgsDelta
from tests.frames import DONE, cc, sse, tc
from tests.operators.watching import END, item, signals, watch
from tests.recovering import source
from tests.streams import wrap

T = ChatEventType

WEATHER = ToolSpec(
    name="weather",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
TIME = ToolSpec(name="time")


def parsed(*frames: bytes) -> ChatStream:
    return semflux.parse(b"".join(frames), dialect="openai-chat")


def by_hand(*events: Any) -> ChatStream:
    return ChatStream(reactivex.of(*events))


def call(args: str, name: str = "weather", *, end: bytes = cc(finish="tool_calls") + DONE) -> ChatStream:
    return parsed(cc({"content": "so"}), cc(tc(0, "c1", name, args[:3])), cc(tc(0, args=args[3:])), end)


def test_thinking_gives_the_pieces_of_the_reasoning() -> None:
    told = signals(
        parsed(cc({"reasoning_content": "hm"}), cc({"content": "a"}), cc(finish="stop"), DONE).thinking()
    )
    assert [item("hm"), END] == told


def test_citations_come_one_for_each_occurrence() -> None:
    cited = CitedSource(url="https://a.example")
    events = wrap(Citation(cited), TextDelta("a"), Citation(cited))
    assert [item(cited), item(cited), END] == signals(by_hand(*events).citations())


# tool_calls


def test_calls_come_when_they_are_complete() -> None:
    """In the order of their ends, with parsed arguments."""
    body = parsed(
        cc(tc(0, "a", "weather", '{"city":')),
        cc(tc(1, "b", "time", "")),
        cc(tc(0, args='"Oslo"}')),
        cc(finish="tool_calls"),
        DONE,
    )
    found = watch(body.tool_calls(WEATHER, TIME)).items
    assert [("a", {"city": "Oslo"}), ("b", {})] == [(each.id, each.arguments) for each in found]


@pytest.mark.parametrize(
    "args, says",
    [
        ('{"city": "Os', "cannot be used"),
        ("[1]", "no JSON object"),
        ('{"town": "Oslo"}', "$ is against"),
        ('{"city": 7}', "$.city is against 'type': 'string'"),
        ('{"city": "secret", "days": [1, "secret"]}', "$.days[1] is against 'type': 'integer'"),
    ],
)
def test_a_call_that_must_not_be_run_is_an_error(args: str, says: str) -> None:
    """Which says what is wrong and quotes nothing of it; what had arrived is in it."""
    seen = watch(call(args).tool_calls(WEATHER))
    assert isinstance(seen.error, ToolArgumentsError)
    assert says in str(seen.error)
    assert "secret" not in str(seen.error)
    assert seen.error.partial is not None
    assert "so" == seen.error.partial.text
    assert [] == seen.items


def test_a_call_of_no_tool_of_ours_is_an_error() -> None:
    seen = watch(call("{}", "rm").tool_calls(WEATHER))
    assert isinstance(seen.error, ToolNotFoundError)
    assert "'rm'" in str(seen.error)
    assert ["c1"] == [each.id for each in watch(call("{}", "rm").tool_calls()).items]


def test_such_calls_can_be_kept_or_dropped() -> None:
    """Kept, they say what is wrong, in words for the model."""
    (kept,) = watch(call('{"city": 7}').tool_calls(WEATHER, invalid="keep")).items
    assert ({"city": 7}, False) == (kept.arguments, kept.is_complete)
    assert "$.city" in kept.arguments_error
    (cut,) = watch(call('{"city').tool_calls(invalid="keep")).items
    (event,) = watch(call('{"city').only(ToolCallEnd)).items
    assert event.tool_call == cut
    assert [END] == signals(call('{"city": 7}').tool_calls(WEATHER, invalid="drop"))


def test_free_text_of_a_custom_tool_is_no_json() -> None:
    custom = ToolCall(id="c", name="weather", arguments_json="rain?", kind="custom")
    assert [item(custom), END] == signals(
        ChatStream(reactivex.of(ToolCallEnd(tool_call=custom))).tool_calls(WEATHER)
    )
    other = watch(ChatStream(reactivex.of(ToolCallEnd(tool_call=custom))).tool_calls(TIME))
    assert isinstance(other.error, ToolNotFoundError)


def test_what_the_end_of_a_failing_stream_cut_short_does_not_come() -> None:
    """The failure is told by itself."""
    seen = watch(call('{"city', end=b"").tool_calls(WEATHER))
    assert ([], TruncatedStreamError) == (seen.items, type(seen.error))
    assert [END] == signals(ChatStream(reactivex.of(ToolCallEnd())).tool_calls())


@pytest.mark.parametrize("way", ["pull", "push", "await", "parse"])
async def test_its_failure_ends_the_stream_in_order(way: str) -> None:
    """A tap above sees ERROR."""
    above: list[str] = []
    frames = [cc(tc(0, "c1", "weather", '{"x": 1}')), cc(finish="tool_calls"), DONE]
    stream = source(way, frames).do_on_next(lambda event: above.append(event.type.value))
    with pytest.raises(ToolArgumentsError):
        await stream.tool_calls(WEATHER).collect_list()
    assert ["STEP_END", "ERROR"] == above[-2:]


def test_a_failure_over_events_by_hand() -> None:
    broken = ToolCallEnd(tool_call=ToolCall(id="c", name="x", arguments_error="cut"))
    assert isinstance(watch(ChatStream(reactivex.of(broken)).tool_calls()).error, ToolArgumentsError)


@pytest.mark.parametrize(
    "tools, says",
    [
        ([WEATHER, WEATHER], "two tools are called 'weather'"),
        ([ToolSpec(name="x", parameters={"type": 7})], "no JSON Schema"),
    ],
)
def test_tools_that_cannot_be_held_to_are_refused(tools: list[ToolSpec], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        call("{}").tool_calls(*tools)


def test_what_becomes_of_others_is_one_of_three() -> None:
    wrong: Any = "ignore"
    with pytest.raises(ConfigurationError, match="'keep'"):
        call("{}").tool_calls(invalid=wrong)


def test_a_schema_fetches_nothing() -> None:
    """A reference that leads nowhere is the author's mistake."""
    far = ToolSpec(name="weather", parameters={"$ref": "http://127.0.0.1:1/schema"})
    seen = watch(call("{}").tool_calls(far))
    assert isinstance(seen.error, ConfigurationError)
    assert "cannot be applied" in str(seen.error)


def test_without_jsonschema_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(ConfigurationError, match=r"semflux\[schema\]"):
        call("{}").tool_calls(WEATHER)
    assert 1 == len(watch(call("{}").tool_calls()).items)


# dedupe_snapshots


def resent(*snapshots: str, tail: bytes = cc(finish="stop") + DONE) -> ChatStream:
    return parsed(*[cc({"content": snapshot}) for snapshot in snapshots], tail)


def test_a_snapshot_gives_what_it_has_of_new() -> None:
    """The text is told once; a repeat is left out."""
    seen = watch(resent("a", "ab", "ab", "abc").dedupe_snapshots())
    assert ["a", "b", "c"] == [event.text for event in seen.items if event.type is T.TEXT_DELTA]
    assert "abc" == seen.items[-1].response.text
    assert violations_of(seen.items, seq="rising") == ()


def test_what_is_no_snapshot_goes_on_from_the_last_one() -> None:
    seen = watch(resent("ab", "c", "abcd").dedupe_snapshots())
    assert "abcd" == seen.items[-1].response.text


def test_each_block_each_call_and_each_step_begins_anew() -> None:
    block = [TextStart(), TextDelta("a"), TextDelta("ab"), TextEnd()]
    events = [*wrap(*block, *block)[:-1], *wrap(TextDelta("a"), RefusalDelta("n"), RefusalDelta("no"))[1:-1]]
    calls = [ServerToolArgsDelta("{", item_id="s"), ServerToolArgsDelta("{}", item_id="s")]
    seen = watch(by_hand(*events, *calls, ThinkingDelta("t"), ThinkingDelta("t")).dedupe_snapshots())
    assert ["a", "b", "a", "b", "a", "n", "o", "{", "}", "t"] == [e.text for e in seen.items if e.is_delta]
    body = parsed(cc(tc(0, "c", "f", "{")), cc(tc(0, args='{"a":1}')), cc(finish="tool_calls"), DONE)
    (made,) = watch(body.dedupe_snapshots().tool_calls()).items
    assert {"a": 1} == made.arguments


def test_a_failure_tells_the_text_once_and_a_recovery_too() -> None:
    busy = sse({"error": {"message": "busy", "code": 503}})
    seen = watch(resent("a", "ab", tail=busy).dedupe_snapshots())
    assert isinstance(seen.error, SemfluxError)
    assert seen.error.partial is not None
    assert "ab" == seen.error.partial.text
    recovered = watch(resent("a", "ab", tail=busy).dedupe_snapshots().retry_when(Retry.max(1).restart()))
    assert isinstance(recovered.error, SemfluxError)
    assert recovered.error.partial is not None
    assert ["ab", "ab"] == [step.text for step in recovered.error.partial.steps]


def test_snapshots_that_change_nothing_do_not_come() -> None:
    """A block that begins, or a usage that says the same."""
    found = watch(resent("a").snapshots()).items
    assert len(found) == len({repr(each.to_dict()) for each in found})
