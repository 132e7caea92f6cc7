"""The table of types, groups and phases, and the one class of each type."""

from __future__ import annotations

import re

import pytest

from semflux.events import (
    EVENT_CLASSES,
    TERMINAL_TYPES,
    AnyChatEvent,
    ChatEvent,
    ChatEventGroup,
    ChatEventPhase,
    ChatEventType,
    UsageEvent,
)

G, P, T = ChatEventGroup, ChatEventPhase, ChatEventType

CONTRACT = """
LIFECYCLE RESPONSE_START(START) STATUS(NONE) HEARTBEAT(NONE) RESPONSE_END(END) ABORT(END)
STEP STEP_START(START) STEP_END(END)
TEXT TEXT_START(START) TEXT_DELTA(DELTA) TEXT_END(END)
THINKING THINKING_START(START) THINKING_DELTA(DELTA) THINKING_END(END) THINKING_SIGNATURE(NONE) \
THINKING_REDACTED(NONE)
TOOL_CALL TOOL_CALL_START(START) TOOL_CALL_ARGS_DELTA(DELTA) TOOL_CALL_END(END) TOOL_RESULT(NONE)
SERVER_TOOL SERVER_TOOL_START(START) SERVER_TOOL_ARGS_DELTA(DELTA) SERVER_TOOL_RESULT(END)
MEDIA CITATION(NONE) MEDIA_PARTIAL(DELTA) MEDIA_DONE(END)
SAFETY REFUSAL_DELTA(DELTA) CONTENT_FILTER(NONE)
META USAGE(NONE) ERROR(NONE) RAW(NONE) CUSTOM(NONE)
"""
TABLE = {
    T[name]: (G[line.split()[0]], P[phase])
    for line in CONTRACT.strip().splitlines()
    for name, phase in re.findall(r"(\w+)\((\w+)\)", line)
}


def test_the_contract_has_31_types_in_9_groups_and_4_phases() -> None:
    """The numbers that the contract names."""
    assert (len(TABLE), len(G), len(P)) == (31, 9, 4)
    assert set(T) == set(TABLE)
    assert {group for group, _ in TABLE.values()} == set(G)


@pytest.mark.parametrize("type_", T)
def test_a_type_belongs_to_its_group_and_phase(type_: ChatEventType) -> None:
    """As the contract's table says; the classes agree."""
    assert (type_.group, type_.phase) == TABLE[type_]
    assert (EVENT_CLASSES[type_].group, EVENT_CLASSES[type_].phase) == TABLE[type_]


@pytest.mark.parametrize("enum", [T, G, P])
def test_the_value_of_a_word_is_its_name(enum: type[ChatEventType | ChatEventGroup | ChatEventPhase]) -> None:
    """So that logs, JSON and code use the same word."""
    assert [(word.name, str(word)) for word in enum] == [(word.name, word.name) for word in enum]


def test_only_the_three_last_events_are_terminal() -> None:
    """END ends a block or step as well: it is not the same thing."""
    assert {type_ for type_ in T if type_.is_terminal} == {T.RESPONSE_END, T.ABORT, T.ERROR}
    assert {T.RESPONSE_END, T.ABORT, T.ERROR} == TERMINAL_TYPES


def test_content_is_what_the_model_said_or_did() -> None:
    """Everything outside LIFECYCLE, STEP and META."""
    assert {type_ for type_ in T if type_.is_content} == {
        type_ for type_, (group, _) in TABLE.items() if group not in {G.LIFECYCLE, G.STEP, G.META}
    }


def test_each_class_is_named_after_its_type() -> None:
    """TEXT_DELTA is `TextDelta`; `UsageEvent` alone has more to its name: `Usage` is the value in it."""
    names = {type_: "".join(word.capitalize() for word in type_.split("_")) for type_ in T}
    names[T.USAGE] = "UsageEvent"
    assert {type_: cls.__name__ for type_, cls in EVENT_CLASSES.items()} == names
    assert EVENT_CLASSES[T.USAGE] is UsageEvent


def test_any_chat_event_is_the_union_of_all_classes() -> None:
    """A type checker that has seen all of its members has seen all events."""
    assert set(AnyChatEvent.__args__) == set(EVENT_CLASSES.values())
    assert all(cls.__base__ is ChatEvent for cls in EVENT_CLASSES.values())
