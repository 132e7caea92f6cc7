"""Filters: which events a subscriber is shown."""

from __future__ import annotations

from typing import Any

import pytest

import semflux
from semflux.errors import ConfigurationError, SemfluxError
from semflux.events import (
    Abort,
    ChatEvent,
    ChatEventGroup,
    ChatEventType,
    Error,
    Heartbeat,
    Raw,
    ResponseEnd,
    ResponseStart,
    Status,
    StepEnd,
    StepStart,
    TextDelta,
    TextStart,
    ThinkingDelta,
)
from semflux.filters import ALWAYS_DELIVERED, ChatEventFilter, delivers, shown_classes
from tests.frames import DONE, cc, chat, cu

T, G = ChatEventType, ChatEventGroup
F = ChatEventFilter

EVENTS: list[ChatEvent] = [
    ResponseStart(), StepStart(), Status("x"), Heartbeat(), Raw({}), TextStart(), TextDelta("a"), ThinkingDelta("t"), StepEnd(),
    ResponseEnd(), Abort(), Error(SemfluxError("x")),
]  # fmt: skip


def passed(predicate: Any, events: list[ChatEvent] = EVENTS) -> list[str]:
    return [str(event.type) for event in events if predicate(event)]


def is_short(event: ChatEvent) -> bool:
    """A predicate that looks at more than the type."""
    return event.text is not None and len(event.text) < 2


@pytest.mark.parametrize(
    "keep, types",
    [
        (F.of(T.TEXT_DELTA), ["TEXT_DELTA"]),
        (F.of(), []),
        (F.of_group(G.TEXT), ["TEXT_START", "TEXT_DELTA"]),
        (F.of_group(G.TEXT, G.THINKING), ["TEXT_START", "TEXT_DELTA", "THINKING_DELTA"]),
        (F.of(T.TEXT_DELTA) | F.of(T.RAW), ["RAW", "TEXT_DELTA"]),
        (F.of(T.TEXT_DELTA).or_(F.of(T.RAW)), ["RAW", "TEXT_DELTA"]),
        (F.of_group(G.TEXT) & ~F.of(T.TEXT_START), ["TEXT_DELTA"]),
        (F.of_group(G.TEXT).and_(F.of(T.TEXT_START).negate()), ["TEXT_DELTA"]),
        (F(is_short), ["TEXT_DELTA", "THINKING_DELTA"]),
        (F(is_short) & F.of(T.TEXT_DELTA), ["TEXT_DELTA"]),
        (F.of(T.TEXT_DELTA) & is_short, ["TEXT_DELTA"]),
        (F.of(T.RAW) | is_short, ["RAW", "TEXT_DELTA", "THINKING_DELTA"]),
        (F(is_short) | F.of(T.RAW), ["RAW", "TEXT_DELTA", "THINKING_DELTA"]),
        (~F(is_short) & F.of_group(G.TEXT), ["TEXT_START"]),
        (F(lambda event: event.text), ["TEXT_DELTA", "THINKING_DELTA"]),
    ],
)  # fmt: skip
def test_filters_are_predicates_that_combine(keep: ChatEventFilter, types: list[str]) -> None:
    """By type, by group, by anything; or, and, not."""
    assert passed(keep) == types


def test_all_and_default() -> None:
    """All of them, and all but HEARTBEAT and RAW."""
    assert passed(F.all()) == [str(event.type) for event in EVENTS]
    assert passed(F.DEFAULT) == [
        str(event.type) for event in EVENTS if event.type not in {T.HEARTBEAT, T.RAW}
    ]
    assert passed(~F.all()) == []


def test_a_type_may_be_given_by_its_name_or_class() -> None:
    """A group by its name."""
    assert passed(F.of("TEXT_DELTA")) == passed(F.of(TextDelta)) == ["TEXT_DELTA"]  # type: ignore[arg-type]
    assert passed(F.of_group("TEXT")) == ["TEXT_START", "TEXT_DELTA"]  # type: ignore[arg-type]


def test_what_is_no_type_or_group_is_refused() -> None:
    """At once, not by showing nothing; the message says what to write."""
    for wrong in ("text", ChatEvent, None):
        with pytest.raises(ConfigurationError, match="no event type: write"):
            F.of(wrong)  # type: ignore[arg-type]  # none
        with pytest.raises(ConfigurationError, match="no group of events: write"):
            F.of_group(wrong)  # type: ignore[arg-type]  # none


def test_a_filter_shows_what_it_lets_through() -> None:
    """Where that is known."""
    assert repr(F.of(T.TEXT_DELTA, T.RAW)) == "ChatEventFilter.of(RAW, TEXT_DELTA)"
    assert repr(F(is_short)) == "ChatEventFilter(...)"


@pytest.mark.parametrize(
    "keep",
    [
        F.of(T.TEXT_DELTA),
        F(lambda event: event.type is T.TEXT_DELTA),
        lambda event: event.type is T.TEXT_DELTA,
    ],
)
def test_the_frame_of_a_stream_is_always_delivered(keep: Any) -> None:
    """Steps, lifecycle events but HEARTBEAT, and every terminal event."""
    frame = [
        "RESPONSE_START",
        "STEP_START",
        "STATUS",
        "TEXT_DELTA",
        "STEP_END",
        "RESPONSE_END",
        "ABORT",
        "ERROR",
    ]

    assert passed(delivers(keep)) == frame
    assert passed(lambda event: event.type in ALWAYS_DELIVERED | {T.TEXT_DELTA}) == frame


def test_drafts_are_delivered_as_their_events_are() -> None:
    """The pipeline may ask before or after it freezes."""
    drafts = [Heartbeat.draft_class(), TextDelta.draft_class("a"), StepStart.draft_class()]

    assert passed(delivers(F.DEFAULT), drafts) == ["TEXT_DELTA", "STEP_START"]
    assert passed(delivers(is_short), drafts) == ["TEXT_DELTA", "STEP_START"]


def test_filters_by_type_are_known_by_their_classes() -> None:
    """So that nothing needs to be asked for each event."""
    shown = shown_classes(F.of(T.TEXT_DELTA))
    everything = shown_classes(None)

    assert shown is not None
    assert everything is not None
    assert TextDelta in shown
    assert ResponseEnd in shown
    assert Heartbeat not in shown
    assert len(everything) == len(T)
    assert shown_classes(is_short) is None


@pytest.mark.parametrize("keep", [F.of(), F.of(T.HEARTBEAT), ~F.all(), F(is_short), is_short, F.DEFAULT])
def test_a_filter_changes_delivery_and_nothing_else(keep: Any) -> None:
    """Holes in *seq*, the same totals; what is delivered is what passes of all."""
    frames = (cc({"content": "ab"}), cc({"content": "c"}), cc({"x": 1}), cc({}, "stop"), cu(1, 2), DONE)
    everything = chat(*frames)
    events: list[ChatEvent] = []
    semflux.parse(b"".join(frames), dialect="openai-chat", event_filter=keep).subscribe(events.append)

    keeps = delivers(keep)
    assert [(e.seq, e.type) for e in events] == [(e.seq, e.type) for e in everything.events if keeps(e)]
    response: Any = events[-1].response
    assert {**response.to_dict(), "response_id": ""} == {**everything.response.to_dict(), "response_id": ""}
