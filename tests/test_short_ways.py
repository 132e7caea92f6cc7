"""The short ways of the hot path give what the long ways give, and refuse what is not for them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semflux import Limits, parse
from semflux.decoder import Decoder
from semflux.dialects.anthropic import ANTHROPIC
from semflux.dialects.openai_chat import OPENAI_CHAT
from semflux.errors import BadFrameError, ToolArgumentsError
from semflux.events import StepStart, ToolCallArgsDelta, ToolCallStart
from semflux.fold import Fold
from semflux.state import RunState
from semflux.wire import NdjsonFramer, SseFramer
from tests.frames import DONE, STOP, blk, cc, cu, dl, end, md, meaning, start, tc, text_block
from tests.frames import read as read_as
from tests.notation import Machine, draft


def read(data, dialect="openai-chat"):
    """OpenAI chat unless another is meant."""
    return read_as(data, dialect)


CHAT = [
    cc({"role": "assistant"}),
    cc({"content": "a"}),
    cc({"content": "天"}),
    cc({"reasoning_content": "t"}),
    cc(tc(0, "x", "f", "{")),
    cc(tc(1, "y", "g", "{")),
    cc(tc(0, None, None, '"k":1')),
    cc(tc(1, None, None, '"k":2')),
    cc(tc(0, None, None, "}")),
    cc(tc(1, None, None, "}")),
    cc(finish="tool_calls"),
    cu(3, 2),
    DONE,
]


def test_a_chunk_that_is_one_frame_gives_what_any_other_cutting_gives() -> None:
    """Nearly every server sends them so."""
    whole = meaning(read(b"".join(CHAT)))
    assert meaning(read(CHAT)) == whole
    assert [call.arguments for call in read(CHAT).response.tool_calls] == [{"k": 1}, {"k": 2}]


@given(st.lists(st.integers(0, 2), min_size=len(CHAT), max_size=len(CHAT)))
def test_frames_alone_or_together(joins: list[int]) -> None:
    """Chunks of one frame beside chunks of several, in any mixture."""
    chunks: list[bytes] = []
    for frame, join in zip(CHAT, joins, strict=True):
        if join and chunks:
            chunks[-1] += frame
        else:
            chunks.append(frame)
    assert meaning(read(chunks)) == meaning(read(CHAT))


def taking(dialect=OPENAI_CHAT, first: bytes = CHAT[0]) -> Decoder:
    state = RunState()
    state.step = 0
    decoder = Decoder(dialect, state)
    # The framer looks closely at the first chunks, to see what kind of body this is.
    for chunk in (first, b": hello\n\n"):
        decoder.receive(chunk)
        list(decoder.events())
    return decoder


def taken(decoder: Decoder, data: bytes) -> Any:
    """What the short way gives; None for what is not for it."""
    return decoder.take(data)


def test_the_short_way_takes_a_whole_frame_alone() -> None:
    """A tuple of what follows; None for what must be received."""
    decoder = taking()
    list(taken(decoder, cc({"content": "the first text might begin with a tag"})))
    assert [draft.text for draft in taken(decoder, cc({"content": "a"}))] == ["a"]
    assert isinstance(taken(decoder, cc({"content": "a"})), tuple)
    assert taken(decoder, cc({"content": "a"})[:-1]) is None
    assert taken(decoder, b"data: x\ndata: y\n\n") is None
    assert taken(decoder, b"data:{}\n\n") is None
    assert taken(decoder, b": hello\n\n") is None
    assert taken(decoder, b"event: unseen\ndata: {}\n\n") is None
    decoder.receive(b"data: ")
    assert taken(decoder, cc({"content": "a"})) is None


def test_what_needs_more_than_a_tuple_is_an_iterator() -> None:
    """It is the one that `events` gives, until it is used up."""
    decoder = taking()
    drafts = taken(decoder, cc({"content": "a"}, "stop"))
    assert drafts is decoder.events()
    assert taken(decoder, cc({"content": "b"})) is None
    assert [type(draft).__name__ for draft in drafts] == ["TextDelta", "Seal"]
    end = taken(decoder, DONE)
    assert [type(draft).__name__ for draft in end] == ["StepEnd"]
    assert decoder.done


def test_a_bad_frame_on_the_short_way_is_a_bad_frame() -> None:
    """Before the finish signal it fails the stream, after it it is counted."""
    with pytest.raises(BadFrameError, match="frame 2 of the openai-chat stream"):
        list(taken(taking(), b"data: {nonsense}\n\n"))
    decoder = taking()
    list(taken(decoder, cc(finish="stop")))
    assert list(taken(decoder, b"data: {nonsense}\n\n")) == []
    seen = parse([*CHAT[:2], b"data: [1]\n\n"], dialect="openai-chat")
    with pytest.raises(BadFrameError):
        seen.block()


def test_a_parser_that_raises_at_once_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that makes tuples may refuse a frame before it gives anything."""
    decoder = taking()

    def refuse(event: str | None, data: bytes):
        raise BadFrameError("no", kind="shape")

    monkeypatch.setattr(decoder.parser, "decode", refuse)
    with pytest.raises(BadFrameError, match="frame 2"):
        taken(decoder, cc({"content": "a"}))
    list(taken(taking(), cc(finish="stop")))
    decoder = taking()
    list(taken(decoder, cc(finish="stop")))
    monkeypatch.setattr(decoder.parser, "decode", refuse)
    assert taken(decoder, cc({"content": "a"})) == ()


def test_events_with_names_take_it_once_the_name_is_known() -> None:
    """Anthropic's frames have two lines."""
    decoder = taking(ANTHROPIC, start() + blk(0, "text", text=""))
    delta = dl(0, "text_delta", text="a")
    assert taken(decoder, delta) is None
    decoder.receive(delta)
    list(decoder.events())
    assert [draft.text for draft in taken(decoder, delta)] == ["a"]
    call = blk(1, "tool_use", id="t", name="f", input={}) + dl(1, "input_json_delta", partial_json='{"k"')
    call += dl(1, "input_json_delta", partial_json=":1}") + end(1)
    data = b"".join([start(), text_block(0, "a", "b"), call, md("tool_use"), STOP])
    singles = [frame + b"\n\n" for frame in data.split(b"\n\n")[:-1]]
    assert meaning(read(singles, "anthropic")) == meaning(read(data, "anthropic"))


def test_lines_have_no_short_way() -> None:
    """A framer may have none."""
    framer = NdjsonFramer()
    assert framer.single(b"{}\n") is None
    sse = SseFramer()
    for chunk in (b"data: a\n\n", b"data: b\n\n"):
        sse.receive(chunk)
        assert len(list(sse.frames())) == 1
    assert sse.single(b"data: b\n\n") == (None, b"b", True)
    assert sse.single(b"datum: b\n\n") is None
    assert (sse.frames_seen, sse.bytes_seen) == (3, 27)


def test_the_lane_of_a_call_is_the_same_as_adding() -> None:
    """With the same bound."""
    fold = Fold(limits=Limits(max_tool_args_chars=3))
    for event in (StepStart(), ToolCallStart("c", "f"), ToolCallArgsDelta("1", "c")):
        fold.add(event)
    assert fold.call_lane("other") is None
    lane = fold.call_lane("c")
    assert lane is not None
    lane("23")
    with pytest.raises(ToolArgumentsError, match="bound of 3 characters"):
        lane("4")


def test_a_call_is_plain_once_it_has_started_while_nothing_of_it_is_held() -> None:
    """And for a fragment of its own item alone: what else comes goes the long way."""
    machine = Machine().feed("TOOL~[a]1{i,0}")
    more = draft("TOOL~2{i,0}")
    assert machine.normalizer.plain_call(more) is None
    machine.feed("TOOL~[a:f]2{i,0}")
    plain = machine.normalizer.plain_call(more)
    assert plain is not None
    assert "a" == plain.id
    assert machine.normalizer.plain_call(draft("TOOL~2{other,0}")) is None
    assert machine.normalizer.plain_call(draft("TOOL~2{i,1}")) is None
    machine.feed("TOOL~\ud83d{i,0}")
    assert machine.normalizer.plain_call(more) is None


@pytest.mark.parametrize("group", ["TEXT", "THINK"])
def test_a_block_is_plain_for_its_own_deltas_while_nothing_of_it_is_held(group: str) -> None:
    other = "THINK" if group == "TEXT" else "TEXT"
    machine = Machine()
    assert not machine.normalizer.is_plain(draft(f"{group}~a{{i,0}}"))
    machine.feed(f"{group}+{{i,0}}")
    assert machine.normalizer.is_plain(draft(f"{group}~a{{i,0}}"))
    for token in (f"{other}~a{{i,0}}", f"{group}~a{{j,0}}", f"{group}~a{{i,1}}", f"{group}~a"):
        assert not machine.normalizer.is_plain(draft(token))
    machine.feed(f"{group}~\ud83d{{i,0}}")
    assert not machine.normalizer.is_plain(draft(f"{group}~a{{i,0}}"))
    machine.feed(f"{group}-{{i,0}}")
    assert not machine.normalizer.is_plain(draft(f"{group}~a{{i,0}}"))


@pytest.mark.parametrize("group", ["TEXT", "THINK"])
def test_of_several_blocks_one_is_plain_and_all_get_their_deltas(group: str) -> None:
    """The latest that started; when one ends, the oldest that is left."""
    machine = Machine().feed(f"{group}+{{a,0}} {group}+{{b,1}} {group}+{{c,2}}")
    for open_, likely in (("abc", "c"), ("ab", "a"), ("b", "b")):
        for place, item in enumerate("abc"):
            if item in open_:
                token = f"{group}~x{{{item},{place}}}"
                assert (item == likely) is machine.normalizer.is_plain(draft(token))
                machine.feed(token)
                assert item == machine.out[-1].item_id
        machine.feed(f"{group}-{{{open_[-1]},2}}" if open_ == "abc" else f"{group}-{{a,0}}")
    assert [] == [event.type for event in machine.out if "implied" in event.attributes]


@pytest.mark.parametrize(
    "between",
    [cc({"content": "x"}), cc(tc(2, "z", "h", "{}")), cu(1, 1), b": c\n\n"],
    ids=["text", "call", "usage", "comment"],
)
def test_whatever_comes_between_fragments_they_find_their_calls(between: bytes) -> None:
    """Lanes end with the next event of another kind."""
    frames = [*CHAT[:7], between, *CHAT[7:]]
    seen = read(b"".join(frames))
    found = {call.name: json.loads(call.arguments_json) for call in seen.response.tool_calls}
    assert {name: found[name] for name in "fg"} == {"f": {"k": 1}, "g": {"k": 2}}


def test_a_chunk_may_bring_everything_at_once() -> None:
    """Reasoning, text and a call in one delta (GLM): the short ways are for one of them alone."""
    both = cc({"reasoning_content": "t", "content": "a"})
    all_three = cc({"reasoning_content": "u", "content": "b", **tc(0, "x", "f", "{}")})
    seen = read([CHAT[0], both, all_three, cc(finish="tool_calls"), DONE])
    assert (seen.response.thinking, seen.response.text) == ("tu", "ab")
    assert [call.name for call in seen.response.tool_calls] == ["f"]
