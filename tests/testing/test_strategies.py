"""The shipped strategies: what they make is what they say, and the laws of a stream hold for all of it.

The laws have the letters of the list that the project was built by: (a) cutting, (b) one start and one end, (c) ERROR
and `on_error`, (d) text, (e) arguments, (f) usage, (g) filters, (h) leaving, (i) subscribers apart.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import reactivex
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import semflux
from semflux import (
    ChatEventFilter,
    ChatEventGroup,
    ChatEventType,
    ChatStream,
    ConfigurationError,
    SemfluxError,
)
from semflux.contract import violations_of
from semflux.dialects import DIALECTS
from semflux.filters import delivers
from semflux.frozen import thaw
from semflux.testing import assert_well_formed
from semflux.testing.strategies import (
    Answer,
    ProviderStream,
    TextPiece,
    answers,
    cuttings,
    event_streams,
    faults,
    provider_streams,
    register_renderer,
    wild_events,
)
from tests.frames import cc, read
from tests.operators.watching import watch

T, G = ChatEventType, ChatEventGroup
LANDED = sorted({dialect.name for dialect in DIALECTS.values()})

provided = st.sampled_from(LANDED).flatmap(provider_streams)
"""Bytes of any dialect."""


def told(stream: Any) -> tuple[list[Any], Exception | None, bool]:
    """What a subscriber is told."""
    events: list[Any] = []
    errors: list[Exception] = []
    ends: list[bool] = []
    stream.subscribe(events.append, errors.append, lambda: ends.append(True))
    assert len(errors) + len(ends) == 1
    return events, errors[0] if errors else None, bool(ends)


def anonymous(events: list[Any]) -> list[Any]:
    """Without ids of ours, which are of one subscription."""
    found = [event.to_dict() for event in events]
    told = json.dumps([{**each, "timestamp": ""} for each in found])
    return list(json.loads(re.sub(r"sf_[0-9a-f]{32}", "", told)))


# What they make


@given(event_streams())
@settings(max_examples=300)
def test_event_streams_are_legal(events: list[Any]) -> None:
    assert_well_formed(events)
    assert events == [
        semflux.ChatEvent.from_dict(json.loads(json.dumps(event.to_dict()))) for event in events
    ]


@given(event_streams(ends=["ABORT"], groups=[G.TEXT, G.TOOL_CALL], max_steps=1, max_parts=2))
def test_event_streams_keep_to_what_was_asked(events: list[Any]) -> None:
    assert T.ABORT is events[-1].type
    assert {event.group for event in events} <= {G.TEXT, G.TOOL_CALL, G.LIFECYCLE, G.STEP, G.MEDIA}
    assert sum(event.type is T.STEP_START for event in events) <= 1


def some(strategy: st.SearchStrategy[Any], condition: Any) -> Any:
    """An example for which *condition* is true, whichever comes first."""
    return find(
        strategy, condition, settings=settings(max_examples=3000, phases=[Phase.generate], database=None)
    )


@pytest.mark.parametrize("type_", sorted(T))
def test_every_type_comes(type_: ChatEventType) -> None:
    assert some(event_streams(), lambda events: any(event.type is type_ for event in events))


def test_blocks_overlap_and_pieces_of_calls_are_interleaved() -> None:
    def overlaps(events: list[Any]) -> bool:
        opened: set[Any] = set()
        for event in events:
            if event.type is T.TEXT_START:
                opened.add(event.index)
            if event.type is T.TEXT_END:
                opened.discard(event.index)
            if len(opened) > 1:
                return True
        return False

    def interleaves(events: list[Any]) -> bool:
        ids = [event.tool_call_id for event in events if event.type is T.TOOL_CALL_ARGS_DELTA]
        return len(ids) > 2 and ids[0] == ids[2] != ids[1]

    assert overlaps(some(event_streams(), overlaps))
    assert interleaves(some(event_streams(), interleaves))


@given(provided, st.data())
@settings(max_examples=300)
def test_a_providers_stream_comes_to_its_answer(made: ProviderStream, data: Any) -> None:
    """However it is cut: and without one repair."""
    seen = read(data.draw(cuttings(made.data)), made.dialect)
    response, answer = seen.response, made.answer
    assert seen.error is None
    assert (answer.text, answer.thinking, answer.finish_reason) == (
        response.text,
        response.thinking,
        response.finish_reason,
    )
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == [
        (call.id, call.name, thaw(call.arguments)) for call in response.tool_calls
    ]
    wanted = None if answer.usage is None else (answer.usage.input_tokens, answer.usage.output_tokens)
    usage = response.usage
    assert wanted == (None if usage is None else (usage.input_tokens, usage.output_tokens))
    assert {} == dict(response.repairs.repairs)


@given(st.binary(max_size=40), st.data())
def test_cuttings_lose_nothing(whole: bytes, data: Any) -> None:
    assert whole == b"".join(data.draw(cuttings(whole)))


@given(provided, st.data())
def test_a_fault_says_what_it_is(made: ProviderStream, data: Any) -> None:
    fault = data.draw(faults(made.data))
    assert fault.what
    assert "data" not in repr(fault).split("what=")[0]


def test_there_are_faults_of_each_kind() -> None:
    data = b"data: 1\n\ndata: 2\n\n"
    for what in ("cut off", "byte ", "missing", "twice", "changed places", "comes b'data: {\"error", "502"):
        assert what in some(faults(data), lambda fault, what=what: what in fault.what).what


@given(wild_events(max_size=5))
def test_wild_events_are_drafts(drafts: list[Any]) -> None:
    assert len(drafts) <= 5
    assert all(item.is_draft for item in drafts)


@given(answers(thinking=False, tools=False, max_parts=2))
def test_answers_have_the_parts_that_were_asked_for(answer: Answer) -> None:
    assert len(answer.parts) <= 2
    assert all(isinstance(part, TextPiece) for part in answer.parts)
    assert () == answer.calls


def test_a_dialect_of_yours_is_taught_or_given() -> None:
    with pytest.raises(ConfigurationError, match="register_renderer"):
        some(provider_streams("mine"), lambda made: True)

    def write(answer: Answer) -> Iterator[Any]:
        yield "said", {"text": answer.text}

    given_ = some(provider_streams("mine", renderer=write), lambda made: b"said" in made.data)
    assert "mine" == given_.dialect
    register_renderer("mine", write)
    assert b"said" in some(provider_streams("mine"), lambda made: True).data


def test_without_hypothesis_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'hypothesis' else some(name, *a)\n"
        "import semflux.testing\n"
        "try:\n    import semflux.testing.strategies\nexcept ImportError as error:\n    print(error)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert "pip install 'semflux[testing]'" in done.stdout


# The laws


@given(provided, st.data(), st.booleans())
@settings(max_examples=200)
def test_a_any_chunking_gives_the_same_events(made: ProviderStream, data: Any, broken: bool) -> None:
    """Of broken bytes too."""
    body = data.draw(faults(made.data)).data if broken else made.data
    whole, whole_error, _ = told(semflux.parse(body, dialect=made.dialect))
    cut, cut_error, _ = told(semflux.parse(data.draw(cuttings(body)), dialect=made.dialect))
    assert anonymous(whole) == anonymous(cut)
    assert (type(whole_error), str(whole_error)) == (type(cut_error), str(cut_error))


@given(provided, st.data())
@settings(max_examples=200)
def test_b_one_start_first_and_one_end_last(made: ProviderStream, data: Any) -> None:
    events, _, _ = told(semflux.parse(data.draw(faults(made.data)).data, dialect=made.dialect))
    assert [T.RESPONSE_START] == [event.type for event in events if event.type is T.RESPONSE_START]
    assert T.RESPONSE_START is events[0].type
    assert [events[-1]] == [event for event in events if event.is_terminal]
    assert () == violations_of(events)


@given(provided, st.data())
@settings(max_examples=200)
def test_c_error_comes_directly_before_on_error(made: ProviderStream, data: Any) -> None:
    """The same exception, of ours; and none without the other."""
    events, error, ended = told(semflux.parse(data.draw(faults(made.data)).data, dialect=made.dialect))
    assert events[-1].error is error
    assert ended == (error is None)
    assert error is None or isinstance(error, SemfluxError)


@given(event_streams())
def test_d_deltas_of_text_are_the_snapshots(events: list[Any]) -> None:
    """Of each step, and at every event."""
    for end in [event for event in events if event.type is T.STEP_END]:
        said = [e.text for e in events if e.type is T.TEXT_DELTA and e.step == end.step]
        assert "".join(said) == end.response.text
    text = ""
    for snapshot in watch(ChatStream(reactivex.of(*events)).snapshots()).items:
        assert snapshot.full_text.startswith(text)
        text = snapshot.full_text
    assert text == events[-1].response.full_text


@given(event_streams())
def test_e_arguments_parse_or_say_why_not(events: list[Any]) -> None:
    for end in [event for event in events if event.type is T.TOOL_CALL_END]:
        call = end.tool_call
        pieces = [e.text for e in events if e.type is T.TOOL_CALL_ARGS_DELTA and e.tool_call_id == call.id]
        assert "".join(pieces) == call.arguments_json
        if call.arguments_error is None:
            assert thaw(call.arguments) == (json.loads(call.arguments_json) if call.arguments_json else {})
        else:
            assert call.arguments is None


@given(event_streams())
def test_f_usage_is_the_last_report_of_each_step_and_their_sum(events: list[Any]) -> None:
    steps: dict[int, Any] = {}
    for event in events:
        if event.type is T.USAGE:
            steps[event.step] = event.usage
        if event.type is T.STEP_END:
            assert event.usage == steps.get(event.step)
    total = sum(usage.input_tokens for usage in steps.values())
    assert (total if steps else None) == (events[-1].usage and events[-1].usage.input_tokens)


@given(event_streams(), st.sets(st.sampled_from(sorted(G))), st.sets(st.sampled_from(sorted(T))))
def test_g_filters_commute_and_change_no_response(events: list[Any], groups: Any, types: Any) -> None:
    one, other = ChatEventFilter.of_group(*groups), ChatEventFilter.of(*types)
    source = ChatStream(reactivex.of(*events))
    first = watch(source.filter_events(one).filter_events(other)).items
    assert first == watch(source.filter_events(other).filter_events(one)).items
    assert first == [event for event in events if delivers(one)(event) and delivers(other)(event)]
    assert events[-1] == first[-1]


@given(provided, st.data())
def test_h_leaving_at_any_event_gives_a_prefix(made: ProviderStream, data: Any) -> None:
    """The source is closed once, if it was begun, and nothing comes later."""
    whole, _, _ = told(semflux.parse(made.data, dialect=made.dialect))
    count = data.draw(st.integers(1, len(whole)))
    opened: list[bool] = []
    closed: list[bool] = []

    def chunks() -> Iterator[bytes]:
        opened.append(True)
        try:
            yield from data.draw(cuttings(made.data))
        finally:
            closed.append(True)

    events: list[Any] = []
    semflux.parse(chunks(), dialect=made.dialect).take(count).subscribe(events.append)
    assert anonymous(whole[:count]) == anonymous(events)
    assert opened == closed
    assert len(opened) <= 1


@given(event_streams(), st.integers(0, 30))
def test_i_a_subscriber_that_raises_changes_nothing_for_the_others(events: list[Any], at: int) -> None:
    subject = reactivex.Subject[Any]()
    shared = ChatStream(subject).share()
    seen: list[Any] = []
    failed: list[Exception] = []

    def raise_late(event: Any) -> None:
        if event.seq >= at:
            raise ValueError(event.seq)

    subscriptions = [shared.subscribe(raise_late, failed.append), shared.subscribe(seen.append)]
    for event in events:
        subject.on_next(event)
    subject.on_completed()
    assert events == seen
    assert [min(at, len(events))] == [error.args[0] for error in failed] or at >= len(events)
    for subscription in subscriptions:
        subscription.dispose()


# Operators that change what is said


@given(event_streams(), st.sampled_from(["a", "Hello", "o w", "日", "\n", "e"]), st.booleans())
@settings(max_examples=200)
def test_what_is_held_back_is_in_no_event(events: list[Any], phrase: str, as_pattern: bool) -> None:
    """The rest is all there, in order."""
    wanted: Any = re.compile(re.escape(phrase)) if as_pattern else phrase
    stream = ChatStream(reactivex.of(*events)).hold_back(wanted, replace="*", ignore_case=False)
    seen = watch(stream).items
    assert () == violations_of(seen, seq="rising")
    for step in {event.step for event in events}:
        before, after = (
            "".join([e.text for e in each if e.type is T.TEXT_DELTA and e.step == step])
            for each in (events, seen)
        )
        assert before.replace(phrase, "*").replace("*", "") == after.replace("*", "") or phrase in before
        assert len(after) <= len(before)
    assert [e.seq for e in events if not e.is_delta] == [e.seq for e in seen if not e.is_delta]


@given(event_streams(), st.integers(1, 5))
def test_coalescing_and_late_readers_get_the_same_stream(events: list[Any], size: int) -> None:
    merged = watch(ChatStream(reactivex.of(*events)).coalesce(size)).items
    assert () == violations_of(merged, seq="rising")
    assert events[-1] == merged[-1]
    late = ChatStream(reactivex.of(*events)).replay(compact=True)
    connection = late.connect()
    assert () == violations_of(watch(late.stream).items, seq="rising")
    assert events[-1] == watch(late.stream).items[-1]
    connection.dispose()


def test_the_answer_of_a_frame_by_hand_is_one_of_them() -> None:
    """The strategies and the frames of the other tests speak of the same format."""
    assert b'"content": "a"' in cc({"content": "a"})
    made = some(provider_streams("openai-chat"), lambda stream: stream.answer.text == "a")
    assert "a" == read(made.data, "openai-chat").response.text
