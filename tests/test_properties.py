"""Laws of the core, tried on streams that hypothesis makes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import semflux
from semflux.aggregate import Aggregator
from semflux.contract import violations_of
from semflux.errors import SemfluxError
from semflux.events import ChatEvent, ChatEventType, Origin
from semflux.filters import ChatEventFilter, delivers
from semflux.frozen import FrozenDict, thaw
from semflux.normalize import SEAL, Normalizer
from semflux.stage import chain
from semflux.state import IMPLIED, Boundaries, RunState
from semflux.terminate import Terminator
from semflux.testing.strategies import cuttings, wild_events
from tests.frames import DONE, STOP, an, cc, chunk, claude, cu, md, meaning, read, sse, start
from tests.golden import GOLDEN
from tests.notation import FULL, Machine, draft, show

T = ChatEventType
ORIGIN = Origin(response_id="r")

# Drafts in any order.

_boundaries = st.sampled_from([IMPLIED, FULL, Boundaries(text_end=True, tool_ids=True)])


def _item(token: str) -> Any:
    if token == "SEAL":
        return SEAL
    item = draft(token)
    item.origin = ORIGIN
    return item


def _wild(*tokens: str) -> st.SearchStrategy[list[Any]]:
    return wild_events(also=st.builds(_item, st.sampled_from(tokens)), origin=ORIGIN)


_streams = _wild("SEAL", "STEP+0", "STEP+1", "STEP-0")


@given(_streams, _boundaries, st.sampled_from(["RESP-", "$", "ABORT", "!!"]))
def test_row_12_whatever_comes_in_is_balanced(drafts: list[Any], boundaries: Boundaries, end: str) -> None:
    """Per group and key, as many STARTs as ENDs; nothing is open at the end; every text can be encoded."""
    out = Machine(boundaries).feed("STEP+0").push(*drafts).feed(end).out

    opened: dict[Any, int] = {}
    for event in out:
        if event.group in {"TEXT", "THINKING", "TOOL_CALL", "SERVER_TOOL"} and event.type.phase in {
            "START",
            "END",
        }:
            key: Any = (event.group, event.tool_call_id or event.item_id, event.index)
            if event.group == "SERVER_TOOL":
                key = (event.group, event.item_id)
            opened[key] = opened.get(key, 0) + (1 if event.type.phase == "START" else -1)
            assert opened[key] in {0, 1}
        (event.text or "").encode()
    assert set(opened.values()) <= {0}


@given(_streams, _boundaries, st.sampled_from(["RESP-", "ABORT", "!!"]))
def test_normalizing_twice_changes_nothing(drafts: list[Any], boundaries: Boundaries, end: str) -> None:
    """And the second time there is nothing to repair."""
    once = Machine(boundaries).feed("STEP+0").push(*drafts).feed(end).out
    shown = show(once)
    again = Machine(FULL, strict=True)
    for event in once:
        again.push(event)

    assert again.shown == shown


# Steps of a legal number: their order is the pump's.
@given(
    _wild("SEAL", "STEP+0", "STEP-0"), _boundaries, st.sampled_from(["RESP-", "ABORT", "!!"]), st.booleans()
)
@settings(max_examples=200)
def test_whatever_comes_in_the_checker_finds_nothing(
    drafts: list[Any], boundaries: Boundaries, end: str, strict: bool
) -> None:
    """Normalized, aggregated, terminated: one legal stream, in strict mode too; deltas joined are the aggregate."""
    state = RunState(response_id="r", boundaries=boundaries, strict=strict)
    pipeline = chain(Normalizer(state), Aggregator(state), Terminator(state))
    events: list[ChatEvent] = []
    ends_a_step = any(getattr(item, "type", None) is T.STEP_END for item in drafts)
    try:
        for item in [_item("RESP+"), _item("STEP+0"), *drafts]:
            events += pipeline.push(item)
        failure = None if end == "RESP-" else SemfluxError("x")
        events += pipeline.push(_item(end)) if end != "!!" else pipeline.finish(failure)
    except SemfluxError as error:
        assert strict
        events += pipeline.finish(error)

    if not ends_a_step:
        assert violations_of(events) == ()
    assert sum(event.is_terminal for event in events) == 1


# Bytes.

_golden = st.sampled_from(GOLDEN)


@given(_golden, st.data())
def test_any_cutting_of_the_bytes_gives_the_same(golden: tuple[str, str, list[bytes]], data: Any) -> None:
    """The same events and the same ending."""
    dialect, _, frames = golden
    whole = b"".join(frames)

    assert meaning(read(data.draw(cuttings(whole)), dialect)) == meaning(read(whole, dialect))


@given(
    _golden,
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=4),
    st.booleans(),
)
@settings(max_examples=300)
def test_any_broken_bytes_end_in_one_of_our_errors_or_well(
    golden: tuple[str, str, list[bytes]], changes: list[tuple[int, int]], strict: bool
) -> None:
    """And in the same way, however they are cut. `read` checks the order of what comes."""
    dialect, _, frames = golden
    data = bytearray(b"".join(frames))
    for place, value in changes:
        data[place % len(data)] = value

    whole = read(bytes(data), dialect, strict=strict)
    assert meaning(
        read([bytes(data[i : i + 13]) for i in range(0, len(data), 13)], dialect, strict=strict)
    ) == meaning(whole)
    for event in whole.events:
        (event.text or "").encode()


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 10**12)
    | st.sampled_from([0.5, -1e9, "", "x", "error ", "\ud83d", "tool_use", "0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "index", "id", "x"]), inner, max_size=3)
    ),
    max_leaves=4,
)


def _nodes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *[node for key, item in inner for node in _nodes(item, (*path, key))]]


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy


def _parsed(frame: bytes) -> tuple[str | None, Any]:
    lines = frame.decode().splitlines()
    name = next((line[7:] for line in lines if line.startswith("event: ")), None)
    data = next((line[6:] for line in lines if line.startswith("data: {")), None)
    return name, None if data is None else json.loads(data)


@given(_golden, st.data(), st.booleans())
@settings(max_examples=500)
def test_wrong_shapes_raise_nothing_but_errors_of_ours(
    golden: tuple[str, str, list[bytes]], data: Any, strict: bool
) -> None:
    """Any JSON value in the place of any node of valid frames."""
    dialect, _, frames = golden
    split = [part + b"\n\n" for frame in frames for part in frame.split(b"\n\n") if part]
    made: list[bytes] = []
    for frame in split:
        name, value = _parsed(frame)
        if value is None or data.draw(st.integers(0, 3)):
            made.append(frame)
            continue
        path = data.draw(st.sampled_from(_nodes(value)))
        made.append(sse(json.dumps(_replaced(value, path, data.draw(_json))), name))

    seen = read(b"".join(made), dialect, strict=strict)
    for event in seen.events:
        (event.text or "").encode()
        json.dumps(event.to_dict())
        _assert_frozen(event.raw)
        _assert_frozen(event.attributes)


def _assert_frozen(value: Any) -> None:
    assert not isinstance(value, list)
    if isinstance(value, dict):
        assert type(value) is FrozenDict
        for item in value.values():
            _assert_frozen(item)
    elif isinstance(value, tuple):
        for item in value:
            _assert_frozen(item)


@given(
    _json, st.sampled_from(["openai-chat", "anthropic"]), st.sampled_from([None, "error", "x"]), st.booleans()
)
def test_any_json_as_a_frame_or_a_body_is_read_or_refused(
    value: Any, dialect: str, event: str | None, whole: bool
) -> None:
    """By nothing but errors of ours."""
    data = json.dumps(value).encode() if whole else sse(json.dumps(value), event)

    assert read(data, dialect).error is not None


# The short way and the general one.

_delta = st.fixed_dictionaries(
    {},
    optional={
        "role": st.just("assistant"),
        "content": st.none() | st.sampled_from(["", "a", "<think>", "</think>", "ü", "\ud83d", "\ude00"]),
        "reasoning_content": st.none() | st.sampled_from(["", "hm"]),
        "refusal": st.none() | st.sampled_from(["no"]),
        "tool_calls": st.none()
        | st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "index": st.none() | st.sampled_from([0, 1, 5000, -1]),
                    "id": st.none() | st.sampled_from(["", "a", "b"]),
                    "type": st.just("function"),
                    "function": st.none()
                    | st.fixed_dictionaries(
                        {},
                        optional={
                            "name": st.none() | st.sampled_from(["", "f", "g"]),
                            "arguments": st.none() | st.sampled_from(["", "{", "}", "{}"]),
                        },
                    ),
                },
            ),
            max_size=2,
        ),
    },
)


@given(st.lists(_delta, max_size=8), st.booleans())
@settings(max_examples=300)
def test_the_two_ways_of_openai_chat_give_the_same(deltas: list[dict[str, Any]], strict: bool) -> None:
    """A named event takes the general way; so does a field that is not known, or another order of keys, perhaps."""
    ends = [cc({}, "stop"), cu(1, 2), DONE]
    short = read(b"".join([*[cc(delta) for delta in deltas], *ends]), "openai-chat", strict=strict)
    named = [b"event: x\n" + cc(delta) for delta in deltas]
    unknown = [cc({"zzz": None, **delta}) for delta in deltas]
    other = [
        chunk({"zzz": 1, "delta": dict(reversed(delta.items())), "logprobs": None}, zzz=[1])
        for delta in deltas
    ]

    for frames in (named, unknown, other):
        assert meaning(read(b"".join([*frames, *ends]), "openai-chat", strict=strict)) == meaning(short)


_deltas = st.one_of(
    st.fixed_dictionaries({"type": st.just("text_delta"), "text": st.sampled_from(["", "a", "\ud83d"])}),
    st.fixed_dictionaries({"type": st.just("thinking_delta"), "thinking": st.sampled_from(["", "t"])}),
    st.fixed_dictionaries(
        {"type": st.just("input_json_delta"), "partial_json": st.sampled_from(["", "{", "}"])}
    ),
    st.fixed_dictionaries({"type": st.just("signature_delta"), "signature": st.just("S")}),
)
_blocks = st.sampled_from(
    [
        {"type": "text", "text": ""}, {"type": "thinking", "thinking": ""}, {"type": "tool_use", "id": "u", "name": "f"},
        {"type": "tool_use", "id": "v", "name": "g", "input": {"a": 1}}, {"type": "server_tool_use", "id": "s", "name": "w"},
        {"type": "hologram"},
    ]
)  # fmt: skip
_frames = st.one_of(
    st.builds(
        lambda i, block: {"type": "content_block_start", "index": i, "content_block": block},
        st.integers(0, 2),
        _blocks,
    ),
    st.builds(
        lambda i, delta: {"type": "content_block_delta", "index": i, "delta": delta},
        st.integers(0, 2),
        _deltas,
    ),
    st.builds(lambda i: {"type": "content_block_stop", "index": i}, st.integers(0, 2)),
)


@given(st.lists(_frames, max_size=12), st.booleans())
@settings(max_examples=300)
def test_the_two_ways_of_anthropic_give_the_same(frames: list[dict[str, Any]], strict: bool) -> None:
    """A frame with another event's name takes the general way; one without a name the short one, keys in any order."""
    short = claude(start(), *[an(**frame) for frame in frames], md("end_turn"), STOP, strict=strict)

    for name in ("other", None):
        other = [sse(dict(reversed(frame.items())), name) for frame in frames]
        assert meaning(claude(start(), *other, md("end_turn"), STOP, strict=strict)) == meaning(short)


# Filters, and what events come to.

_types = st.lists(st.sampled_from(list(T)), max_size=6)


@given(_golden, _types, _types, st.booleans())
def test_filtering_is_delivery_and_commutes(
    golden: tuple[str, str, list[bytes]], one: list[T], other: list[T], by_type: bool
) -> None:
    """Filter by one and then by another, or the other way round, or by both at once; the response is the same."""
    dialect, _, frames = golden
    data = b"".join(frames)
    filters = [ChatEventFilter.of(*types) for types in (one, other)]
    if not by_type:
        filters = [ChatEventFilter(keep) for keep in filters]
    everything = read(data, dialect)

    def seen(stream: Any) -> list[tuple[Any, ...]]:
        events: list[ChatEvent] = []
        stream.subscribe(events.append, lambda error: None)
        last: Any = events[-1].response
        assert {**last.to_dict(), "response_id": ""} == {**everything.response.to_dict(), "response_id": ""}
        return [(event.seq, event.type, event.text) for event in events]

    first, second = filters
    expected = [
        (e.seq, e.type, e.text) for e in everything.events if delivers(first)(e) and delivers(second)(e)
    ]
    assert seen(semflux.parse(data, dialect=dialect).filter_events(first).filter_events(second)) == expected
    assert seen(semflux.parse(data, dialect=dialect).filter_events(second).filter_events(first)) == expected
    assert seen(semflux.parse(data, dialect=dialect, event_filter=first).filter_events(second)) == expected
    assert seen(semflux.parse(data, dialect=dialect, event_filter=first & second)) == expected


@given(_golden)
def test_deltas_joined_are_the_aggregate(golden: tuple[str, str, list[bytes]]) -> None:
    """Text, thinking, refusal, and the arguments of each call; and the response survives JSON."""
    dialect, _, frames = golden
    seen = read(b"".join(frames), dialect)
    response = seen.response

    assert "".join(event.text for event in seen.of(T.TEXT_DELTA)) == response.text
    assert "".join(event.text for event in seen.of(T.THINKING_DELTA)) == response.thinking
    assert "".join(event.text for event in seen.of(T.REFUSAL_DELTA)) == response.refusal
    for call in response.tool_calls:
        pieces = [event.text for event in seen.of(T.TOOL_CALL_ARGS_DELTA) if event.tool_call_id == call.id]
        assert "".join(pieces) == call.arguments_json
        assert json.loads(call.arguments_json) == thaw(call.arguments)
    assert semflux.ChatResponse.from_dict(json.loads(json.dumps(response.to_dict()))) == response
