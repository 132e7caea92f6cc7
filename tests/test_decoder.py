"""The decoder: bytes of one step in, drafts out, lazily; and what the end of the bytes means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from semflux.decoder import Decoder
from semflux.dialects import dialect as find_dialect
from semflux.dialects.anthropic import ANTHROPIC
from semflux.dialects.base import (
    Dialect,
    Out,
    Parser,
    ParserOptions,
    int_of,
    require,
    string_of,
    text_of,
    whole_object,
)
from semflux.dialects.openai_chat import OPENAI_CHAT
from semflux.errors import (
    BadFrameError,
    ConfigurationError,
    FrameTooLargeError,
    NotAStreamError,
    RepairError,
    TruncatedStreamError,
)
from semflux.events import ChatEventType
from semflux.normalize import SEAL
from semflux.response import CitedSource
from semflux.state import IMPLIED, RunState
from semflux.usage import Usage
from semflux.wire.limits import Limits
from tests.frames import DONE, an, cc, chat, completion, cu, cuts, meaning, read, sse

T = ChatEventType
STOP = cc({}, "stop")


def decoder(dialect: Dialect = OPENAI_CHAT, state: RunState | None = None) -> Decoder:
    return Decoder(dialect, state or RunState(response_id="r"))


def names(drafts: Iterable[Any]) -> list[str]:
    return ["SEAL" if draft is SEAL else str(draft.type) for draft in drafts]


def test_drafts_come_when_they_are_asked_for() -> None:
    """What is good before a fault comes first; an iterator that is left is gone on with."""
    made = decoder()
    made.receive(cc({"content": "a"}) + cc({"content": "b"}) + sse("{broken"))

    assert next(made.events()).text == "a"
    assert next(made.events()).text == "b"
    with pytest.raises(BadFrameError):
        next(made.events())


def test_bytes_may_come_while_drafts_are_taken() -> None:
    """`events` goes on with what is there."""
    made = decoder()
    frame = cc({"content": "a"})
    made.receive(frame[:10])
    assert list(made.events()) == []
    made.receive(frame[10:])

    assert [draft.text for draft in made.events()] == ["a"]
    assert made.bytes_seen == len(frame)


def test_the_step_is_over_with_the_end_marker() -> None:
    """The held STEP_END comes then; later bytes are counted, and nothing more is made of them."""
    state = RunState(response_id="r")
    made = decoder(state=state)
    made.receive(cc({"content": "a"}, "stop") + cu(1, 2))
    assert names(made.events()) == ["TEXT_DELTA", "SEAL", "USAGE"]
    assert made.finished
    assert not made.done

    made.receive(DONE + b": comment\n\n")
    assert names(made.events()) == ["STEP_END"]
    assert made.done

    made.receive(cc({"content": "late"}))
    made.receive(b"")
    assert [*made.events(), *made.close(), *made.flush()] == []
    assert state.ledger.notes == {"bytes_after_end": len(cc({"content": "late"}))}


def test_without_the_end_marker_the_end_of_the_bytes_ends_the_step() -> None:
    """Counted as the dialect sees it."""
    made = decoder()
    made.receive(cc({"content": "a"}, "stop"))
    drafts = list(made.events())

    assert names([*drafts, *made.close()]) == ["TEXT_DELTA", "SEAL", "STEP_END"]


def test_a_strict_stream_fails_there() -> None:
    """Before the STEP_END."""
    made = decoder(state=RunState(strict=True))
    made.receive(cc({}, "stop"))

    with pytest.raises(RepairError):
        list(made.close())


def test_what_is_held_back_is_given_at_the_end_of_a_failing_stream() -> None:
    """By `flush`, or before the error of `close`."""
    made = decoder()
    made.receive(cc({"content": "<thi"}))
    assert list(made.events()) == []
    assert [draft.text for draft in made.flush()] == ["<thi"]

    made = decoder()
    made.receive(cc({"content": "<thi"}))
    closing = made.close()
    assert next(closing).text == "<thi"
    with pytest.raises(TruncatedStreamError):
        next(closing)


# A last frame without its blank line.


@pytest.mark.parametrize(
    "rest, text, notes",
    [
        (b"data: [DONE]", "a", {}),
        (b"data: [DONE]\n", "a", {}),
        (cc({"content": "b"})[:-2], "ab", {}),
        (cc({"content": "b"})[:-1], "ab", {}),
        (cc({"content": "b"})[:-5], "a", {"cut_frame": 1}),
        (b"data: [DO", "a", {"cut_frame": 1}),
        (b"da", "a", {}),
        (b"data: 5", "a", {"bad_frame_after_finish": 1}),
    ],
)  # fmt: skip
def test_after_the_finish_signal_any_end_is_a_good_one(rest: bytes, text: str, notes: dict[str, int]) -> None:
    """A frame that is whole but for its blank line counts, a cut one is dropped."""
    seen = chat(cc({"content": "a"}, "stop"), rest)

    assert (seen.error, seen.response.text) == (None, text)
    assert seen.response.repairs.notes == notes
    assert seen.repairs == ({} if b"[DONE]" in rest else {"missing_done": 1})


def test_before_the_finish_signal_a_whole_frame_may_bring_it() -> None:
    """A reason in the last frame, or the marker; a cut frame is dropped and the stream is truncated."""
    assert chat(cc({"content": "a"}), STOP[:-2]).error is None
    assert chat(cc({"content": "a"}), b"data: [DONE]").error is None
    assert isinstance(chat(cc({"content": "a"}), STOP[:-3]).error, TruncatedStreamError)
    assert isinstance(chat(cc({"content": "a"}), b'data: {"x": NaN}').error, TruncatedStreamError)
    assert isinstance(chat(cc({"content": "a"}), b"data: 5").error, BadFrameError)


def test_frames_over_their_bound() -> None:
    """An error before the finish signal; after it they are dropped, and the step is over."""
    limits = Limits(max_line_bytes=200, max_event_bytes=150)
    for large in (
        cc({"content": "x" * 300}),
        b"data: " + b"x" * 300,
        b"data: " + b"x" * 120 + b"\ndata: " + b"y" * 120,
    ):
        error = chat(cc({"content": "a"}), large, limits=limits).error
        assert isinstance(error, FrameTooLargeError), large

        late = chat(cc({"content": "a"}, "stop"), large, limits=limits)
        assert (late.error, late.response.text) == (None, "a")
        assert late.response.repairs.notes == {"bad_frame_after_finish": 1}


# JSON instead of a stream.


def test_json_is_recognized_by_its_first_byte_or_because_its_content_type_says_so() -> None:
    """No line of an event stream starts like this."""
    body = completion({"content": "hi"})
    made = decoder()
    made.receive(b" \n" + body)
    assert list(made.events()) == []
    assert made.bytes_seen == len(body) + 2
    assert names(made.close()) == ["TEXT_DELTA", "SEAL", "STEP_END"]

    told = decoder()
    told.expect_json()
    told.expect_json()
    told.receive(b"oops")
    with pytest.raises(TruncatedStreamError):
        list(told.close())

    late = decoder()
    late.receive(b"\n")
    late.expect_json()
    late.receive(body)
    assert names(late.close()) == ["TEXT_DELTA", "SEAL", "STEP_END"]


def test_a_bom_is_no_part_of_anything() -> None:
    """Before a stream, before JSON, cut or not."""
    bom = b"\xef\xbb\xbf"
    for body in (cc({"content": "hi"}) + STOP + DONE, completion({"content": "hi"})):
        whole = read(bom + body, "openai-chat")
        assert whole.response.text == "hi"
        for size in (1, 2, 3, 4):
            assert meaning(read(cuts(bom + body, size), "openai-chat")) == meaning(whole)
    assert isinstance(read(bom[:2], "openai-chat").error, TruncatedStreamError)


# Any dialect: frames of lines, no end marker.


class LinesParser(Parser):
    """A dialect of one's own: each line is a text; the line `false` is the finish signal."""

    def decode(self, event: str | None, data: bytes) -> Iterable[Any]:
        if data == b"false":
            yield self.out.finish("stop", None)
        else:
            yield self.out.text(data.decode())

    def decode_whole(self, data: bytes) -> Iterable[Any]:
        raise NotImplementedError


LINES = Dialect(name="lines", title="a test", framing="ndjson", boundaries=IMPLIED, parser=LinesParser)


def test_a_dialect_without_marker_and_held_text_needs_no_more_than_decode() -> None:
    """The default of `missing_end` counts nothing, that of `finish` gives nothing."""
    state = RunState(response_id="r")
    made = Decoder(LINES, state)
    made.receive(b'{"a":1}\nfalse\n')

    assert names([*made.events(), *made.close()]) == ["TEXT_DELTA", "SEAL", "STEP_END"]
    assert state.ledger.report().count == 0


def test_a_body_of_lines_that_is_no_json_is_told_by_its_bad_frame() -> None:
    """There is no line that does not belong to the framing."""
    made = Decoder(LINES, RunState())
    made.receive(b"1\n")

    with pytest.raises(TruncatedStreamError):
        list(made.close())


# The small tools of dialects.


def test_out_fills_in_what_all_events_of_a_step_share() -> None:
    """Who answers, the frame's name; and it makes every draft a dialect needs."""
    state = RunState(response_id="r")
    state.step = 2
    out = Out(state, "d")
    out.raw_type = "frame"
    out.identify("", None)
    out.identify("p", "")
    out.identify("q", "m")
    out.identify("x", "y")
    drafts = [
        out.text("a", 1, "i"), out.text_start(1), out.text_end(1), out.thinking("t"), out.thinking_start(), out.thinking_end(),
        out.tool_start("c", "f"), out.tool_args("x", 0, "c", "f"), out.tool_end("c"), out.usage(Usage()), out.heartbeat(),
        out.citation(CitedSource()), out.raw({"a": [1]}), out.raw(1, 2, {"b": 1}), out.event(T.STATUS, "x", item_id="i"),
    ]  # fmt: skip

    assert {(d.response_id, d.provider_response_id, d.step, d.raw_type) for d in drafts} == {
        ("r", "p", 2, "frame")
    }
    assert {(d.origin.dialect, d.origin.model) for d in drafts} == {("d", "m")}
    assert state.origin is out.origin
    assert (drafts[0].index, drafts[0].item_id) == (1, "i")
    assert drafts[12].raw == {"a": (1,)}
    assert (drafts[13].index, drafts[13].attributes) == (2, {"block": {"b": 1}})


def test_the_first_finish_signal_is_the_one_that_counts() -> None:
    """A second one only seals again."""
    out = Out(RunState(), "d")

    assert out.finish("length", "max") is SEAL
    assert out.finish("stop", "end") is SEAL
    assert (out.end.finish_reason, out.end.provider_finish_reason) == ("length", "max")


@pytest.mark.parametrize(
    "value, number",
    [
        (3, 3),
        (3.0, 3),
        (-1, -1),
        (2**70, 2**70),
        (True, None),
        ("3", None),
        (None, None),
        (float("nan"), None),
        (1e300, None),
    ],
)
def test_counts_are_whole_numbers(value: Any, number: int | None) -> None:
    """Some vendors send floats."""
    assert int_of(value) == number


def test_strings_and_shapes() -> None:
    """What is no string is none; what has a wrong shape is a bad frame that quotes nothing."""
    assert (text_of("a"), text_of("a\ud83d"), text_of(5), string_of("a\ud83d"), string_of(None)) == (
        "a",
        "a\ufffd",
        "",
        "a\ud83d",
        "",
    )
    assert require(None, dict, "x") is None
    assert require([1], list, "x") == [1]
    with pytest.raises(BadFrameError, match="the delta is str, not an object"):
        require("secret", dict, "the delta")
    assert whole_object([{"a": 1}]) == {"a": 1}
    with pytest.raises(NotAStreamError):
        whole_object([1, 2])


def test_options_of_a_parser() -> None:
    """The provider's name, for errors of gateways and imitators."""
    for dialect, frame in ((OPENAI_CHAT, sse({"error": "x"})), (ANTHROPIC, an("error", error="x"))):
        made = Decoder(dialect, RunState(), ParserOptions(provider="groq"))
        made.receive(frame)
        with pytest.raises(Exception, match=r"^groq reported") as caught:
            list(made.events())
        assert caught.value.provider == "groq"  # type: ignore[attr-defined]  # ours


def test_a_dialect_is_found_by_its_name() -> None:
    """What is none is refused; the message lists what there is, and what may have been meant."""
    assert find_dialect("openai-chat") is OPENAI_CHAT
    assert find_dialect("anthropic") is ANTHROPIC
    with pytest.raises(ConfigurationError, match="did you mean 'openai-chat'"):
        find_dialect("openai_chat")
    with pytest.raises(ConfigurationError, match="openai-chat, anthropic"):
        find_dialect("zzz")
