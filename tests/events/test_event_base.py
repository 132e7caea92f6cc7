"""What every event has: identity, generic access, a safe `repr`, and no way to change it."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from semflux.errors import SemfluxError
from semflux.events import (
    EVENT_CLASSES,
    ChatEvent,
    ChatEventGroup,
    ChatEventType,
    ContentFilter,
    Error,
    Heartbeat,
    Origin,
    Raw,
    ServerToolResult,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolResult,
    freeze_event,
    thaw_event,
)
from semflux.frozen import FrozenDict
from semflux.messages import ToolCall
from tests.events.samples import SAMPLES, sample

T, G = ChatEventType, ChatEventGroup
EVENTS = list(SAMPLES.values())

GENERIC = (
    "text",
    "sub_type",
    "name",
    "tool_call_id",
    "tool_call",
    "block",
    "citation",
    "usage",
    "response",
    "error",
    "raw",
)
"""What every event answers, None where it means nothing."""


def own_fields(event: ChatEvent) -> set[str]:
    common = {field.name for field in attrs.fields(ChatEvent)}
    return {field.name for field in attrs.fields(type(event))} - common


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_says_where_it_belongs(event: ChatEvent) -> None:
    """The ids come from its origin, the time is aware and in UTC."""
    assert (event.response_id, event.provider_response_id, event.step) == ("abc", "abc", 1)
    assert (event.item_id, event.index, event.raw_type, event.seq) == ("abc", 3, "abc", 9)
    assert event.timestamp == datetime(2026, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC)
    assert event.attributes["abc"] == "abc"


@pytest.mark.parametrize("event", EVENTS)
def test_access_is_the_same_on_all_classes(event: ChatEvent) -> None:
    """A router asks any event for anything; what the class has no field for is None."""
    answered = {name for name in GENERIC if getattr(event, name) is not None}
    derived = {"tool_call_id", "name"} if event.type is T.TOOL_RESULT else set()
    assert answered == (own_fields(event) & set(GENERIC)) | derived
    assert event.is_(event.type)
    assert event.is_(T.RAW, event.type)
    assert not event.is_()
    assert event.in_group(event.group)
    assert not event.in_group(*(set(G) - {event.group}))
    assert event.is_delta == event.type.endswith(("_DELTA", "_PARTIAL"))
    assert event.is_content == event.type.is_content
    assert event.is_terminal == (event.type in {T.RESPONSE_END, T.ABORT, T.ERROR})
    assert event.has_text == ("text" in own_fields(event))


def test_a_field_of_a_class_that_is_absent_answers_none() -> None:
    """As do the fields that the class does not have."""
    event = ContentFilter()
    assert (event.sub_type, event.text, event.tool_call, event.has_text) == (None, None, None, False)
    assert not TextDelta("").has_text


def test_a_tool_result_answers_with_the_id_and_name_of_its_call() -> None:
    """So that a router finds the call of any tool event in the same way."""
    assert (ToolResult(ToolCall(id="c", name="f")).tool_call_id, ToolResult(None).tool_call_id) == ("c", None)
    assert (ToolResult(ToolCall(id="c", name="f")).name, ToolResult(None).name) == ("f", None)


def test_an_event_by_hand_needs_only_its_own_fields() -> None:
    """Everything common has a default, and says that nothing is known yet."""
    event = TextDelta("a")
    assert (event.seq, event.time, event.response_id, event.step) == (-1, 0.0, "", 0)
    assert (event.item_id, event.index, event.raw_type, event.attributes) == (None, None, None, {})


@pytest.mark.parametrize("type_", T)
def test_repr_shows_at_most_80_characters_of_a_text_and_no_media(type_: ChatEventType) -> None:
    """Logs hold reprs: not a whole answer, no image, no vendor block."""
    shown = repr(sample(type_, text="x" * 500, data="M" * 500))
    assert "x" * 81 not in shown
    assert "M" * 5 not in shown
    assert shown.startswith(f"{EVENT_CLASSES[type_].__name__}(")


def test_repr_shows_what_differs_from_the_default() -> None:
    """And nothing of the origin, the time and the vendor's object."""
    event = TextDelta("hi", index=0, seq=4, time=5.0, origin=Origin(response_id="r"))
    assert repr(event) == "TextDelta(index=0, seq=4, text='hi')"
    assert repr(Heartbeat()) == "Heartbeat()"
    assert repr(Raw({"secret": 1})) == "Raw()"
    assert repr(TextDelta("x" * 81)) == f"TextDelta(text='{'x' * 80}'... (81 characters))"
    assert repr(Error(SemfluxError("no"))) == "Error(error=SemfluxError('no'))"
    assert (
        repr(Heartbeat(attributes={"a": (1,), "b": (1, 2)}))
        == "Heartbeat(attributes={'a': (1,), 'b': (1, 2)})"
    )


def assert_frozen(value: Any) -> None:
    """Everything in *value*, down to the scalars, refuses to change."""
    if attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                setattr(value, field.name, None)
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                delattr(value, field.name)
            assert_frozen(getattr(value, field.name))
    elif isinstance(value, dict):
        assert type(value) is FrozenDict
        with pytest.raises(TypeError):
            value["x"] = 1
        for item in value.values():
            assert_frozen(item)
    elif isinstance(value, tuple):
        for item in value:
            assert_frozen(item)
    else:
        # An exception is the one value that Python itself writes to: its traceback.
        assert isinstance(value, str | int | float | bool | None | SemfluxError)


@pytest.mark.parametrize("event", EVENTS)
def test_events_are_immutable_all_the_way_down(event: ChatEvent) -> None:
    """All subscribers share one object: none can change what another sees."""
    assert_frozen(event)
    with pytest.raises((AttributeError, TypeError)):
        event.extra = 1  # type: ignore[attr-defined]  # that is the point


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize(
    "clone",
    [
        *[
            lambda event, n=n: pickle.loads(pickle.dumps(event, n))
            for n in range(2, pickle.HIGHEST_PROTOCOL + 1)
        ],
        copy.copy,
        copy.deepcopy,
    ],
)
def test_events_pickle_and_copy(event: ChatEvent, clone: Any) -> None:
    """To another process and back: meaning, origin, order and time."""
    back: ChatEvent = clone(event)
    assert type(back) is type(event)
    assert back.to_dict() == event.to_dict()
    assert (back.origin, back.seq, back.time) == (event.origin, event.seq, event.time)
    assert back == event
    assert hash(back) == hash(event)


@pytest.mark.parametrize("event", EVENTS)
def test_events_compare_by_meaning(event: ChatEvent) -> None:
    """When, as which and for whom it was delivered makes no difference; what it says does."""
    elsewhere = attrs.evolve(event, seq=77, time=1.0, origin=Origin(response_id="other", step=5))
    assert event == elsewhere
    assert hash(event) == hash(elsewhere)
    assert event != attrs.evolve(event, item_id="other")
    assert event != attrs.evolve(event, attributes={})


def test_events_of_different_classes_differ() -> None:
    """Though all their fields are the same."""
    events: list[ChatEvent] = [TextStart(), TextStart(), TextEnd()]
    assert events[0] == events[1]
    assert events[0] != events[2]
    assert len(set(events)) == 2


def test_errors_in_events_compare_by_what_they_say() -> None:
    """Two exception objects are never equal; two events that tell of the same failure are."""
    assert Error(SemfluxError("a", code="1")) == Error(SemfluxError("a", code="1"))
    assert Error(SemfluxError("a", code="1")) != Error(SemfluxError("a", code="2"))


@pytest.mark.parametrize("event", EVENTS)
def test_a_draft_becomes_its_event_in_place(event: Any) -> None:
    """thaw, change, freeze: no second object is made at the end, and the first event stays as it was."""
    draft = thaw_event(event)
    assert draft is not event
    assert draft.is_draft
    assert isinstance(draft, type(event))
    assert thaw_event(draft) is draft
    assert repr(draft) == repr(event)
    draft.item_id = "changed"
    draft.seq = 10
    frozen = freeze_event(draft)
    assert frozen is draft
    assert type(frozen) is type(event)
    assert not frozen.is_draft
    assert frozen == attrs.evolve(event, item_id="changed")
    assert (frozen.seq, event.seq) == (10, 9)
    assert_frozen(frozen)


@pytest.mark.parametrize("event", EVENTS)
def test_a_new_draft_takes_own_fields_first_then_the_common_ones(event: Any) -> None:
    """All by position: that is the quick way of a chunk."""
    names = [field.name for field in attrs.fields(type(event)) if field.name in own_fields(event)]
    common = [event.origin, event.item_id, event.index, event.raw_type, event.attributes]
    draft = event.draft()(*[getattr(event, name) for name in names], *common)
    assert (draft.seq, draft.time) == (-1, 0.0)
    assert freeze_event(draft) == event


def test_drafts_compare_by_meaning_and_have_no_hash() -> None:
    """They change, so no set may hold them; and a draft is not yet the event."""
    first: Any = TextDelta.draft()("a")
    second: Any = TextDelta.draft()("a")
    assert first == second
    assert first != TextDelta("a")
    with pytest.raises(TypeError):
        hash(first)


def test_positions_are_the_own_fields() -> None:
    """A few positional fields, the rest by name."""
    assert ToolCallArgsDelta("{", "c1", "f") == ToolCallArgsDelta(text="{", tool_call_id="c1", name="f")
    assert StepStart("m", 2).attempt == 2
    anything: Any = TextDelta
    with pytest.raises(TypeError):
        anything("a", "b")


def test_values_given_as_lists_and_dicts_are_frozen() -> None:
    """Whoever keeps the dict that an event was made from cannot change the event."""
    mine: dict[str, Any] = {"a": [1, {"b": 2}]}
    event = ServerToolResult(raw=mine, attributes=mine)
    mine["a"].append(3)
    assert event.raw == event.attributes == {"a": (1, {"b": 2})}


def test_a_match_reads_the_fields_of_a_class() -> None:
    """The way of the README, at run time; that it is exhaustive is shown by tests/typing/match.py."""
    match SAMPLES[T.TOOL_CALL_END]:
        case ToolCallEnd(tool_call=ToolCall(name=name)):
            assert name == "abc"
        case other:
            pytest.fail(f"{other} is no ToolCallEnd")
