"""partial_json: values of the JSON in a chat stream, while it comes."""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any, TypedDict

import attrs
import msgspec
import pytest
import reactivex

import semflux
from semflux import (
    ChatStream,
    ConfigurationError,
    JsonMatch,
    JsonTooDeepError,
    PartialJsonError,
    TextDelta,
    ToolArgumentsError,
    ToolCall,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolCallStart,
    TruncatedStreamError,
)
from semflux.events import Abort, StepEnd
from semflux.wire.limits import Limits
from tests.frames import DONE, an, blk, cc, dl, end, md, start, tc
from tests.operators.watching import END, item, signals, watch
from tests.recovering import source
from tests.streams import wrap

ITEMS = '{"items": [{"name": "Ada", "age": 36}, {"name": "Zoë", "age": 7}]}'


def parsed(*frames: bytes) -> ChatStream:
    return semflux.parse(b"".join(frames), dialect="openai-chat")


def said(*texts: str, finish: str = "stop") -> ChatStream:
    return parsed(*[cc({"content": text}) for text in texts], cc(finish=finish), DONE)


def called(*args: str, name: str = "add") -> ChatStream:
    frames = [cc(tc(0, "c1", name, "")), *[cc(tc(0, args=piece)) for piece in args]]
    return parsed(*frames, cc(finish="tool_calls"), DONE)


def by_hand(*events: Any) -> ChatStream:
    return ChatStream(reactivex.of(*events))


def test_values_come_as_each_is_whole() -> None:
    found = signals(said(*ITEMS).partial_json("$.items[*].name"))
    assert [
        item(JsonMatch(("items", 0, "name"), "Ada")),
        item(JsonMatch(("items", 1, "name"), "Zoë")),
        END,
    ] == found


def test_they_come_before_the_document_is_whole() -> None:
    """A stream that breaks after them has given them, and fails as it does."""
    seen = watch(parsed(cc({"content": '{"a": [1, 2'})).partial_json("$.a[*]"))
    assert [1] == [match.value for match in seen.items]
    assert isinstance(seen.error, TruncatedStreamError)


def test_several_paths_and_strings_that_grow() -> None:
    found = watch(
        said('{"title": "Bl', "ue", ' sky", "n": 1}').partial_json("$.title", "$.n", partial=True)
    ).items
    assert [
        ("$.title", "Bl", "Bl", False),
        ("$.title", "Blue", "ue", False),
        ("$.title", "Blue sky", " sky", True),
        ("$.n", 1, None, True),
    ] == [(match.path, match.value, match.delta, match.complete) for match in found]


class Struct(msgspec.Struct):
    name: str
    age: int


@dataclasses.dataclass
class Data:
    name: str
    age: int


@attrs.frozen
class Attrs:
    name: str
    age: int


class Typed(TypedDict):
    name: str
    age: int


@pytest.mark.parametrize("type_", [Struct, Data, Attrs, Typed])
def test_values_of_a_type(type_: type[Any]) -> None:
    expected = [type_(name="Ada", age=36), type_(name="Zoë", age=7), END[0]]
    *values, ended = signals(said(*ITEMS).partial_json("$.items[*]", type=type_))
    assert expected == [*[value for _, value in values], ended[0]]


def test_values_of_plain_types() -> None:
    assert [36, 7] == watch(said(ITEMS).partial_json("$.items[*].age", type=int)).items
    assert [["a"]] == watch(said('{"tags": ["a"]}').partial_json("$.tags", type=list[str])).items


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    "type_, says",
    [
        (int, "'$.items[0].name' does not fit the type asked for: Expected `int`, got `str`"),
        (Colour, "'$.items[0].name' does not fit the type asked for"),
    ],
)
def test_a_value_of_another_type_is_an_error(type_: type[Any], says: str) -> None:
    """Which names the path, and does not quote the value."""
    seen = watch(said("so: ", ITEMS).partial_json("$.items[*].name", type=type_))
    assert isinstance(seen.error, PartialJsonError)
    assert (f"what stands at {says}", "type") == (str(seen.error), seen.error.kind)
    assert seen.error.__context__ is None
    assert seen.error.partial is not None
    assert [] == seen.items


@dataclasses.dataclass
class Picky:
    name: str

    def __post_init__(self) -> None:
        raise KeyError(self.name)


@pytest.mark.parametrize("stream", [said(ITEMS), by_hand(TextDelta(ITEMS))])
def test_what_a_type_raises_is_the_error(stream: ChatStream) -> None:
    seen = watch(stream.partial_json("$.items[*]", type=Picky))
    assert (KeyError, ("Ada",)) == (type(seen.error), seen.error.args)


def test_deeper_places_are_named() -> None:
    seen = watch(said(ITEMS.replace("36", '"x"')).partial_json("$", type=dict[str, list[Struct]]))
    assert "Expected `int`, got `str` - at `$[...][0].age`" in str(seen.error)
    seen = watch(called("{}").partial_json("$", type=Struct, tool="add"))
    assert isinstance(seen.error, ToolArgumentsError)
    assert (
        "the arguments of 'add' cannot be used: what stands at '$' does not fit the type asked for: Object missing "
        in str(seen.error)
    )


# The text


def test_each_step_is_a_document() -> None:
    """And its text blocks are one text."""
    one, two = [TextDelta('{"a": '), TextDelta("1}")], [TextDelta('{"a": 2}')]
    events = [*wrap(*one)[:-1], *wrap(*two)[1:]]
    assert [1, 2] == [match.value for match in watch(by_hand(*events).partial_json("$.a")).items]
    blocks = [
        start(),
        *(blk(0, "text", text=""), dl(0, "text_delta", text='{"a": "x'), end(0)),
        *(blk(1, "text", text=""), dl(1, "text_delta", text='y"}'), end(1)),
        *(md("end_turn"), an("message_stop")),
    ]
    stream = semflux.parse(b"".join(blocks), dialect="anthropic")
    assert ["xy"] == watch(stream.partial_json("$.a", type=str)).items


def test_text_around_the_json_is_passed_over() -> None:
    texts = ["Here [sic]:\n", '```json\n{"a"', ": 1}\n```", "\nIs {that} all?"]
    assert [1] == watch(said(*texts).partial_json("$.a", type=int)).items
    strict = watch(said(*texts).partial_json("$.a", find=False))
    assert "invalid JSON at character 0: expected a value" == str(strict.error)
    assert [1] == watch(said(" 1").partial_json("$", type=int, find=False)).items


def test_a_step_that_calls_tools_needs_no_json() -> None:
    body = parsed(
        cc({"content": "I look it [up]."}), cc(tc(0, "c", "f", "{}")), cc(finish="tool_calls"), DONE
    )
    assert [END] == signals(body.partial_json("$.a"))
    assert [END] == signals(said().partial_json("$.a"))
    assert [END] == signals(said(" ").partial_json("$.a"))
    cut = parsed(cc({"content": '{"a":'}), cc(tc(0, "c", "f", "{}")), cc(finish="tool_calls"), DONE)
    assert isinstance(watch(cut.partial_json("$.a")).error, PartialJsonError)


@pytest.mark.parametrize(
    "text, kind",
    [("I cannot.", "no_json"), ('{"b": 1, "a', "cut_short"), ('{"b": 1, x', "json")],
)
def test_an_answer_that_is_no_json_is_an_error(text: str, kind: str) -> None:
    seen = watch(said(*text, finish="length").partial_json("$.a"))
    assert isinstance(seen.error, PartialJsonError)
    assert kind == seen.error.kind
    assert seen.error.partial is not None
    assert text == seen.error.partial.text


def test_json_too_deep_is_an_error() -> None:
    seen = watch(said("[[1]]").partial_json("$[0]", limits=Limits(max_json_depth=1)))
    assert isinstance(seen.error, JsonTooDeepError)


@pytest.mark.parametrize("way", ["pull", "push", "await", "parse"])
@pytest.mark.parametrize("text", ['{"a": 1, x', '{"a": 1, "'])
async def test_its_failure_ends_the_stream_in_order(way: str, text: str) -> None:
    """A tap above sees ERROR once, and last."""
    above: list[str] = []
    frames = [cc({"content": text}), cc({"content": "x"}), cc(finish="stop"), DONE]
    stream = source(way, frames).do_on_next(lambda event: above.append(event.type.value))
    with pytest.raises(PartialJsonError):
        await stream.partial_json("$.a").collect_list()
    assert ("ERROR", 1) == (above[-1], above.count("ERROR"))
    assert "STEP_END" in above


def test_what_an_abort_cut_short_is_no_error() -> None:
    events = wrap(TextDelta('{"a": 1, "b'))[:-2]
    assert [item(JsonMatch(("a",), 1)), END] == signals(by_hand(*events, Abort("enough")).partial_json("$.a"))
    partial = StepEnd(attributes={"partial": True})
    assert END == signals(by_hand(*events, partial).partial_json("$.a"))[-1]


def test_events_by_hand() -> None:
    """They may end without an end of the step."""
    assert [1] == watch(by_hand(TextDelta("[1]")).partial_json("$[0]", type=int)).items
    assert [12] == watch(by_hand(TextDelta("12")).partial_json("$", type=int, find=False)).items
    cut = watch(by_hand(TextDelta("[1")).partial_json("$[0]"))
    assert isinstance(cut.error, PartialJsonError)
    wrong = watch(by_hand(TextDelta('[1,"'), TextDelta("\n")).partial_json("$[0]"))
    assert ([1], "json") == ([match.value for match in wrong.items], wrong.error.kind)


def test_what_the_subscriber_raises_is_none_of_it() -> None:
    """Even if it is an error of the same class."""
    seen = watch(said("[1]").partial_json("$[0]").do_on_next(_raise))
    assert "mine" == str(seen.error)


def _raise(match: JsonMatch) -> None:
    raise PartialJsonError("mine")


def test_no_more_comes_once_enough_was_taken() -> None:
    assert [1] == watch(said("[1, 2, 3]").partial_json("$[*]", type=int).take(1)).items


# Arguments


def test_arguments_of_a_tool() -> None:
    """Of all its calls, however they are mixed; and of no other's."""
    body = parsed(
        cc({"content": '{"a": 0}'}),
        cc(tc(0, "c1", "add", '{"a": "x')),
        cc(tc(1, "c2", "add", '{"a": 1}')),
        cc(tc(2, "c3", "other", '{"a": 2}')),
        cc(tc(0, args='y"}')),
        cc(finish="tool_calls"),
        DONE,
    )
    found = watch(body.partial_json("$.a", tool="add", partial=True)).items
    assert [("c1", "x", False), ("c2", 1, True), ("c1", "xy", True)] == [
        (match.tool_call_id, match.value, match.complete) for match in found
    ]


def test_no_arguments_are_the_empty_object() -> None:
    assert [{}] == [match.value for match in watch(called().partial_json("$", tool="add")).items]


@pytest.mark.parametrize(
    "args, says, kind",
    [
        ('{"a": 1, "b', "the JSON is cut short: the text ends at character 11", "cut_short"),
        ('{"a": x', "invalid JSON at character 6: expected a value", "json"),
        ('Sure: {"a": 1}', "invalid JSON at character 0", "json"),
    ],
)
def test_wrong_arguments_are_an_error(args: str, says: str, kind: str) -> None:
    seen = watch(called(*args).partial_json("$.a", tool="add"))
    assert isinstance(seen.error, ToolArgumentsError)
    assert str(seen.error).startswith(f"the arguments of 'add' cannot be used: {says}")
    assert kind == seen.error.kind
    assert [END] == signals(called(*args).partial_json("$.a", tool="sub"))


def test_arguments_that_a_failure_cut_short_are_told_by_it() -> None:
    body = parsed(cc(tc(0, "c1", "add", '{"a": 1, "b')))
    seen = watch(body.partial_json("$.a", tool="add"))
    assert ([1], TruncatedStreamError) == ([match.value for match in seen.items], type(seen.error))


def test_calls_by_hand() -> None:
    events = [
        ToolCallStart("c", "add"),
        ToolCallArgsDelta('{"a": 1}', "c"),
        ToolCallEnd("c", tool_call=ToolCall(id="c")),
        ToolCallArgsDelta("x", "c"),
        ToolCallEnd("d"),
    ]
    assert [item(JsonMatch(("a",), 1, tool_call_id="c")), END] == signals(
        by_hand(*events).partial_json("$.a", tool="add")
    )


# Wrong calls


@pytest.mark.parametrize(
    "args, options, says",
    [
        (["$..a"], {}, "Supported are"),
        (["$.a", "b"], {}, "begins with"),
        (["$.a"], {"tool": ""}, "name of a tool"),
        (["$.a"], {"type": int, "partial": True}, "leave out one"),
        (["$.a"], {"type": list[int] | tuple[int, int]}, "msgspec cannot make this type"),
        (["$.a"], {"type": ChatStream}, "msgspec cannot make <class .*a dataclass"),
    ],
)
def test_wrong_calls_are_refused_at_assembly(args: list[str], options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        said("{}").partial_json(*args, **options)


def test_a_growing_answer_costs_what_it_is_long() -> None:
    """4,000 events, one letter each, give 4,000 deltas of one letter."""
    text = json.dumps({"a": "x" * 4_000})
    found = watch(by_hand(*map(TextDelta, text)).partial_json("$.a", partial=True)).items
    assert 4_000 == sum(len(match.delta) for match in found)
    assert "x" * 4_000 == found[-1].value
