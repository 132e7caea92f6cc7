"""Events as JSON: nothing is lost, and nothing that is no event comes in."""

from __future__ import annotations

import copy
import json
import random
from typing import Any, get_type_hints

import attrs
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semflux.errors import ConfigurationError, RateLimitError, SemfluxError
from semflux.events import (
    EVENT_CLASSES,
    NO_ORIGIN,
    ChatEvent,
    Custom,
    Error,
    Heartbeat,
    Origin,
    Raw,
    ResponseEnd,
    Status,
    StepEnd,
    StepStart,
    TextDelta,
    UsageEvent,
    schema,
)
from semflux.messages import Message, TextPart
from semflux.response import ChatResponse, CitedSource, SearchResult, StepResponse
from semflux.usage import Usage
from tests.events.samples import SAMPLES
from tests.events.strategies import any_events, events_of, json_values

CLASSES = list(EVENT_CLASSES.values())
SLOW: Any = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
"""Responses are large trees: to draw one takes longer than to test it."""
SCHEMA = schema()
VALIDATORS: dict[Any, Any] = {
    cls.type: jsonschema.Draft202012Validator({"$ref": f"#/$defs/{cls.__name__}", "$defs": SCHEMA["$defs"]})
    for cls in CLASSES
}
"""By type: to try all 31 in turn, as the schema's `oneOf` does, takes as many times longer."""


def through_json(fields: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(fields))
    return read


@pytest.mark.parametrize("cls", CLASSES)
@given(data=st.data())
@settings(max_examples=40, **SLOW)
def test_every_event_survives_json(cls: type[ChatEvent], data: st.DataObject) -> None:
    """What was written is read back equal: by meaning, by origin and order, and written anew."""
    event = data.draw(events_of(cls))
    fields = event.to_dict()
    back = ChatEvent.from_dict(through_json(fields))
    assert back == event
    assert type(back) is cls
    assert not back.is_draft
    assert (back.origin, back.seq) == (event.origin, event.seq)
    assert abs(back.time - event.time) < 1e-4  # a float of 2e11 seconds is no finer
    assert back.to_dict() == fields


@pytest.mark.parametrize("cls", CLASSES)
@given(data=st.data())
@settings(max_examples=15, **SLOW)
def test_the_schema_describes_every_event_that_is_written(cls: type[ChatEvent], data: st.DataObject) -> None:
    """The schema is made from the classes, as the writer is; here they meet."""
    VALIDATORS[cls.type].validate(through_json(data.draw(events_of(cls)).to_dict()))


Places = list[tuple[Any, Any]]


def places_in(value: Any) -> Places:
    """Where in *value*, at any depth, something stands: its container and key."""
    found: Places = []
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            found += [(value, key), *places_in(value[key])]
    return found


def read_or_refuse(fields: dict[str, Any]) -> None:
    """The reader gives an event like any other, or names the field; it takes what the schema allows."""
    try:
        back = ChatEvent.from_dict(copy.deepcopy(fields))
    except ConfigurationError as error:
        assert str(error).startswith("event field ")
        # The reader knows dates, and offsets; the schema's "date-time" is a note to its readers.
        type_ = fields.get("type")
        known = isinstance(type_, str) and type_ in VALIDATORS
        assert not known or "timestamp" in str(error) or not VALIDATORS[type_].is_valid(fields), error
    else:
        assert ChatEvent.from_dict(back.to_dict()) == back
        VALIDATORS[back.type].validate(through_json(back.to_dict()))
        hash(back)
        repr(back)


@given(event=any_events, value=json_values, chance=st.randoms(use_true_random=False))
@settings(max_examples=200, **SLOW)
def test_a_damaged_event_is_read_or_refused(event: Any, value: Any, chance: random.Random) -> None:
    """One value of any event's JSON is replaced by any other or lost."""
    fields = through_json(event.to_dict())
    inside, key = chance.choice(places_in(fields))
    if chance.random() < 0.2:
        del inside[key]
    else:
        inside[key] = value
    read_or_refuse(fields)


KINDS: list[Any] = [None, True, -1, 1.5, "x", [], {}]


@pytest.mark.parametrize("event", SAMPLES.values())
def test_a_full_event_with_any_damage_is_read_or_refused(event: ChatEvent) -> None:
    """Every value of it in turn, replaced by one of each kind, or lost."""
    fields = through_json(event.to_dict())
    for inside, key in places_in(fields):
        kept = inside[key]
        for value in KINDS:
            inside[key] = value
            read_or_refuse(fields)
        if isinstance(inside, dict):
            del inside[key]
            read_or_refuse(fields)
        inside[key] = kept


@given(value=json_values)
@settings(**SLOW)
def test_any_json_that_is_no_event_is_refused(value: Any) -> None:
    """Whatever comes out of a file: one class of error, and its message says what is wrong."""
    with pytest.raises(ConfigurationError, match=r"^(event field (v|type)|an event) (must be|is)"):
        ChatEvent.from_dict(value)


def test_the_keys_are_the_names_of_the_attributes() -> None:
    """Identity lies flat beside the own fields; only the origin's model has a name of its own."""
    origin = Origin(
        response_id="r1", provider_response_id="msg_1", step=2, dialect="anthropic", model="claude-1"
    )
    event = StepStart(
        "claude",
        3,
        origin=origin,
        item_id="i",
        index=0,
        raw_type="x",
        attributes={"a": (1,)},
        seq=7,
        time=1.5,
    )
    assert event.to_dict() == {
        "v": 1,
        "type": "STEP_START",
        "seq": 7,
        "timestamp": "1970-01-01T00:00:01.500000+00:00",
        "response_id": "r1",
        "step": 2,
        "provider_response_id": "msg_1",
        "dialect": "anthropic",
        "provider_model": "claude-1",
        "item_id": "i",
        "index": 0,
        "raw_type": "x",
        "attributes": {"a": [1]},
        "model": "claude",
        "attempt": 3,
    }


def test_what_says_nothing_is_left_out() -> None:
    """An event that was never delivered and has no origin is its type and its own fields."""
    assert TextDelta("a").to_dict() == {"v": 1, "type": "TEXT_DELTA", "step": 0, "text": "a"}
    assert Status("retry").to_dict()["text"] is None


@pytest.mark.parametrize("time", [1e-6, -1e-6, 9e-7, 5e-7, 1_767_225_600.123456, -0.5])
def test_times_are_kept_to_the_microsecond(time: float) -> None:
    """A time is written with six digits, and reading and writing it again changes nothing."""
    fields = Heartbeat(time=time).to_dict()
    back = ChatEvent.from_dict(fields)
    assert back.time == pytest.approx(time, abs=1e-6)
    assert back.to_dict() == fields


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 10**400])
def test_numbers_that_json_cannot_write_stay_what_they_are(number: float) -> None:
    """The codec changes no number; Python's own JSON writes these, stricter writers refuse them."""
    back = ChatEvent.from_dict(through_json(Raw({"n": number}).to_dict()))
    assert repr(back.raw) == repr({"n": number})


def test_lone_surrogates_stay_what_they_are() -> None:
    """They never come from a dialect; a hand-made event may hold one."""
    back = ChatEvent.from_dict(through_json(TextDelta("\ud800").to_dict()))
    assert back.text == "\ud800"


def test_events_of_one_step_share_their_origin_again() -> None:
    """A log of ten thousand deltas is read with one origin; the default one is `NO_ORIGIN`."""
    fields = TextDelta("a", origin=Origin(response_id="r", step=1)).to_dict()
    first, second = ChatEvent.from_dict(fields), ChatEvent.from_dict(fields)
    assert first.origin is second.origin
    assert ChatEvent.from_dict(TextDelta("a").to_dict()).origin is NO_ORIGIN


def test_a_draft_is_written_as_its_event() -> None:
    """Logs may stand before the last stage."""
    draft: Any = TextDelta.draft()("a")
    assert draft.to_dict() == TextDelta("a").to_dict()


def test_an_error_comes_back_as_its_class_with_the_response_as_its_partial() -> None:
    """The error and its event hold the same response; it is written once."""
    response = ChatResponse(response_id="r", steps=(StepResponse(text="half", partial=True),), partial=True)
    error = RateLimitError("slow down", status=429, retry_after=2.5, attempts=3, partial=response)
    fields = through_json(Error(error, response).to_dict())
    assert fields["error"]["class"] == "RateLimitError"
    back = ChatEvent.from_dict(fields)
    assert isinstance(back, Error)
    assert type(back.error) is RateLimitError
    assert back.error.describe() == error.describe()
    assert back.error.partial is back.response
    assert back.response == response


def test_an_error_of_an_unknown_class_comes_back_as_the_base() -> None:
    """A user's own subclass, or one of a later version, keeps its fields but not its class."""

    class HouseError(SemfluxError):
        pass

    back = ChatEvent.from_dict(Error(HouseError("no", kind="house", code="7")).to_dict())
    assert isinstance(back, Error)
    assert type(back.error) is SemfluxError
    assert (str(back.error), back.error.kind, back.error.code) == ("no", "house", "7")
    assert back.error.partial is None


def test_keys_nobody_knows_are_ignored_at_every_depth() -> None:
    """A later version may add fields without a new number."""
    event = StepEnd(StepResponse(message=Message("assistant", "hi"), citations=(CitedSource(url="u"),)))
    fields = event.to_dict()
    for place in (fields, fields["response"], fields["response"]["message"]["parts"][0]):
        place["new"] = {"a": 1}
    fields["response"]["citations"][0]["new"] = 1
    assert ChatEvent.from_dict(fields) == event


@pytest.mark.parametrize(
    "fields, message",
    [
        ([], "an event must be an object, not an array"),
        (None, "an event must be an object, not null"),
        ({1, 2}, "an event must be an object, not a Python set"),
        ({}, "event field v is missing"),
        ({"v": True}, "event field v must be an integer, not a boolean"),
        ({"v": 0}, "event field v must be 1"),
        ({"v": -1}, "event field v must not be negative"),
        ({"v": 2}, "event field v is from a later version of semflux; this one reads up to 1: upgrade it"),
        ({"v": 1}, "event field type is missing"),
        ({"v": 1, "type": 5}, "event field type must be a string, not a number"),
        ({"v": 1, "type": "TEXT"}, "event field type is 'TEXT', which is no event type"),
        ({"v": 1, "type": "TEXT_DELTA"}, "event field text is missing"),
        ({"v": 1, "type": "TEXT_DELTA", "text": None}, "event field text must be a string, not null"),
        ({"v": 1, "type": "TEXT_DELTA", "text": "", "seq": 1.5}, "event field seq must be an integer"),
        (
            {"v": 1, "type": "HEARTBEAT", "timestamp": "2026-01-01"},
            "event field timestamp must say its offset from UTC",
        ),
        (
            {"v": 1, "type": "HEARTBEAT", "timestamp": "yesterday"},
            "event field timestamp must be a date and time in ISO 8601",
        ),
        (
            {"v": 1, "type": "HEARTBEAT", "timestamp": "0001-01-01T00:00:00+14:00"},
            "event field timestamp must be a date and time in ISO 8601",
        ),
        (
            {"v": 1, "type": "HEARTBEAT", "timestamp": 7},
            "event field timestamp must be a string, not a number",
        ),
        (
            {"v": 1, "type": "HEARTBEAT", "attributes": []},
            "event field attributes must be an object, not an array",
        ),
        (
            {"v": 1, "type": "RESPONSE_END", "finish_reason": "bored"},
            "event field finish_reason must be one of stop, length, tool_calls, content_filter, refusal, "
            "max_steps, approval_required, other",
        ),
        (
            {"v": 1, "type": "TOOL_RESULT", "tool_call": None, "is_error": 1},
            "event field is_error must be a boolean, not a number",
        ),
        (
            {"v": 1, "type": "TOOL_RESULT", "tool_call": None, "duration": "1"},
            "event field duration must be a number, not a string",
        ),
        (
            {"v": 1, "type": "STEP_END", "response": {"tool_calls": [{"id": "a"}, {}]}},
            "event field response.tool_calls[1].id is missing",
        ),
        (
            {"v": 1, "type": "STEP_END", "response": {"message": {"role": "tool", "parts": [{}]}}},
            "event field response.message.parts[0].type is missing",
        ),
        (
            {"v": 1, "type": "STEP_END", "response": {"message": {"role": "tool", "parts": [{"type": "x"}]}}},
            "event field response.message.parts[0].type must be one of text, thinking, redacted_thinking, "
            "refusal, tool_call, tool_result, media, vendor",
        ),
        (
            {"v": 1, "type": "USAGE", "usage": {"requests": {"web": "1"}}},
            "event field usage.requests.'web' must be an integer, not a string",
        ),
        (
            {"v": 1, "type": "SERVER_TOOL_RESULT", "results": {}},
            "event field results must be an array, not an object",
        ),
        ({"v": 1, "type": "ERROR", "error": {"class": "X"}}, "event field error.message is missing"),
    ],
)
def test_the_message_names_the_field_and_what_is_wrong(fields: Any, message: str) -> None:
    """The path leads from the event to the value; the value itself, maybe private, is not shown."""
    with pytest.raises(ConfigurationError) as caught:
        ChatEvent.from_dict(fields)
    assert str(caught.value) == message
    assert caught.value.kind == "event"


def test_json_nested_too_deep_is_refused() -> None:
    """What was read with another parser may be deeper than Python can follow."""
    deep: Any = None
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ConfigurationError, match="event field raw is nested too deep"):
        ChatEvent.from_dict({"v": 1, "type": "RAW", "raw": deep})
    while deep:  # one level at a time: freeing it all at once is as deep
        deep = deep.pop()


def test_integers_written_as_floats_are_integers() -> None:
    """JavaScript knows one kind of number."""
    back = ChatEvent.from_dict({"v": 1.0, "type": "TEXT_DELTA", "text": "", "seq": 5.0, "index": 2.0})
    assert (back.seq, back.index) == (5, 2)
    assert isinstance(back.index, int)


@pytest.mark.parametrize(
    "event",
    [
        ResponseEnd(ChatResponse(steps=(StepResponse(text="a"),))),
        UsageEvent(Usage(details={}, requests={})),
        StepEnd(StepResponse(message=Message("assistant", (TextPart("a"),), attributes={"k": 1}))),
        Custom("agent", {}),
        EVENT_CLASSES["SERVER_TOOL_RESULT"](results=(SearchResult(), SearchResult(url="u"))),  # type: ignore[index,call-arg]  # a StrEnum's key is a string too
    ],
)
def test_empty_values_are_kept_apart_from_absent_ones(event: ChatEvent) -> None:
    """An empty vendor object, empty attributes and a result without fields come back as they were."""
    assert ChatEvent.from_dict(event.to_dict()) == event


def test_every_field_of_every_class_is_written() -> None:
    """A field that is added to a class is in its JSON without another line of code."""
    common = {field.name for field in attrs.fields(ChatEvent)}
    for cls in CLASSES:
        own = [
            field for field in get_type_hints(cls) if field in {f.name for f in attrs.fields(cls)} - common
        ]
        definition = schema()["$defs"][cls.__name__]
        assert set(definition["properties"]) == {"type", *own}
