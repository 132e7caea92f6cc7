"""Anthropic messages: how a message ends, and what gateways leave out, repeat or get wrong."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.errors import BadFrameError, RepairError, TruncatedStreamError
from semflux.events import ChatEventType
from tests.frames import STOP, an, blk, claude, dl, end, md, sse, start, text_block

T = ChatEventType
TEXT = text_block(0, "hi")
TURN = md("end_turn")


# How a message ends.


@pytest.mark.parametrize(
    "said, means, status",
    [
        ("end_turn", "stop", None), ("stop_sequence", "stop", "stop_sequence"), ("max_tokens", "length", "max_tokens"),
        ("model_context_window_exceeded", "length", "model_context_window_exceeded"), ("tool_use", "tool_calls", None),
        ("pause_turn", "other", "pause_turn"), ("brand_new", "other", None),
    ],
)  # fmt: skip
def test_stop_reasons(said: str, means: str, status: str | None) -> None:
    """Ours, the vendor's, and a STATUS for some."""
    seen = claude(start(), TEXT, md(said, stop_sequence="###" if said == "stop_sequence" else None), STOP)

    assert (seen.response.finish_reason, seen.response.provider_finish_reason) == (means, said)
    assert [event.sub_type for event in seen.of(T.STATUS)] == ([] if status is None else [status])
    if said == "stop_sequence":
        assert seen.texts(T.STATUS) == ["###"]


@pytest.mark.parametrize(
    "details, sub_type, text",
    [
        ({"category": "cyber", "explanation": "no"}, "cyber", "no"),
        (None, "refusal", None),
        ([], "refusal", None),
    ],
)
def test_a_refusal_is_a_filter(details: Any, sub_type: str, text: str | None) -> None:
    """CONTENT_FILTER, and the finish reason says so."""
    seen = claude(start(), md("refusal", stop_details=details), STOP)

    event = seen.of(T.CONTENT_FILTER)[0]
    assert (event.sub_type, event.text, event.blocked) == (sub_type, text, True)
    assert seen.response.finish_reason == "refusal"


def test_message_stop_without_a_reason_is_a_stop() -> None:
    """The vendor's own word is None."""
    seen = claude(start(), TEXT, STOP)

    assert (seen.response.finish_reason, seen.response.provider_finish_reason) == ("stop", None)


def test_only_message_stop_is_the_finish_signal() -> None:
    """A stop reason alone is none."""
    seen = claude(start(), TEXT, TURN)

    assert isinstance(seen.error, TruncatedStreamError)
    assert seen.response.text == "hi"


def test_edits_of_the_context_are_raw() -> None:
    """Where there were any."""
    management = {"applied_edits": [{"type": "clear"}]}
    frame = an("message_delta", delta={"stop_reason": "end_turn"}, context_management=management)
    none = an("message_delta", context_management={"applied_edits": []})

    assert claude(start(), none, frame, STOP).of(T.RAW)[0].raw == {
        "context_management": {"applied_edits": ({"type": "clear"},)}
    }


# What gateways leave out, repeat or get wrong.


def test_a_missing_start_of_the_message_is_tolerated() -> None:
    """Nothing is counted."""
    seen = claude(TEXT, TURN, STOP)

    assert (seen.response.text, seen.repairs) == ("hi", {})


def test_a_second_start_of_the_same_message_is_ignored_and_another_one_is_a_bad_frame() -> None:
    """Two answers in one stream cannot be told apart."""
    again = claude(start(), TEXT, start(input_tokens=99), TURN, STOP)
    assert (again.response.text, again.repairs) == ("hi", {"duplicate_start": 1})
    assert again.response.usage is not None
    assert again.response.usage.input_tokens == 3

    error = claude(start(), TEXT, start(id="m2"), TURN, STOP).error
    assert isinstance(error, BadFrameError)
    assert error.kind == "shape"


def test_a_start_may_hold_the_whole_message() -> None:
    """Blocks without frames of their own, and the reason; message_stop may follow at once."""
    content = [
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "u", "name": "f", "input": {"a": 1}},
    ]
    seen = claude(start(content, "tool_use"), STOP)

    assert (seen.response.text, seen.calls) == ("hi", [("u", "f", '{"a":1}')])
    assert (seen.response.finish_reason, seen.repairs) == ("tool_calls", {})


@pytest.mark.parametrize("named", [True, False])
def test_the_name_of_a_frame_is_its_type_else_its_events_name(named: bool) -> None:
    """Gateways leave either out."""
    frames = start() + TEXT + TURN + STOP
    if named:
        frames = b"".join([line for line in frames.splitlines(True) if not line.startswith(b"event:")])
    else:
        for name in (
            b"message_start",
            b"content_block_start",
            b"content_block_delta",
            b"content_block_stop",
            b"message_delta",
            b"message_stop",
        ):
            frames = frames.replace(b'{"type": "' + name + b'"}', b"{}").replace(
                b'{"type": "' + name + b'", ', b"{"
            )

    seen = claude(frames)
    assert (seen.response.text, seen.repairs) == ("hi", {})


def test_missing_stops_are_mended_and_counted() -> None:
    """Of text, of a call with held input, of thinking that text follows."""
    seen = claude(
        start(),
        blk(0, "thinking", thinking=""), dl(0, "thinking_delta", thinking="t"),
        blk(1, "text", text=""), dl(1, "text_delta", text="x"),
        blk(2, "tool_use", id="u", name="f", input={"a": 1}),
        TURN, STOP,
    )  # fmt: skip

    assert (seen.response.thinking, seen.response.text, seen.calls) == ("t", "x", [("u", "f", '{"a":1}')])
    assert seen.repairs == {"missing_end": 3}
    assert isinstance(claude(start(), blk(0, "text", text=""), STOP, strict=True).error, RepairError)


def test_a_block_under_a_used_index_is_a_block_of_its_own() -> None:
    """What waited of the first comes out."""
    seen = claude(
        start(),
        blk(0, "tool_use", id="u", name="f", input={"a": 1}), blk(0, "tool_use", id="v", name="g"),
        dl(0, "input_json_delta", partial_json="{}"), end(0), md("tool_use"), STOP,
    )  # fmt: skip

    assert seen.calls == [("u", "f", '{"a":1}'), ("v", "g", "{}")]
    assert seen.repairs == {"missing_end": 1}


def test_a_missing_index_is_the_next_blocks_or_the_latest() -> None:
    """A start opens the next one, the others are of the latest."""
    seen = claude(
        start(), blk(None, "text", text=""), dl(None, "text_delta", text="a"), end(None),
        blk(None, "text", text=""), dl(None, "text_delta", text="b"), end(None), TURN, STOP,
    )  # fmt: skip

    assert (seen.response.text, seen.repairs) == ("ab", {})
    assert [event.index for event in seen.of(T.TEXT_DELTA)] == [0, 1]


def test_deltas_of_a_block_that_never_started_are_mended_where_they_can_be() -> None:
    """Text and thinking open their block; input has no tool; a stop ends nothing."""
    seen = claude(
        start(), dl(0, "text_delta", text="a"), dl(1, "thinking_delta", thinking="t"), dl(1, "signature_delta", signature="S"),
        dl(2, "input_json_delta", partial_json="{}"), end(2), dl(3, "x_delta", x=1), TURN, STOP,
    )  # fmt: skip

    assert (seen.response.text, seen.response.thinking) == ("a", "t")
    assert seen.repairs == {"missing_start": 2, "missing_end": 2, "orphan_delta": 1, "stray_end": 1}
    assert len(seen.of(T.RAW)) == 2


@pytest.mark.parametrize(
    "frame",
    [
        an("message_start", message=[]), an("message_start", message={"usage": 5}), an("message_start", message={"content": [5]}),
        an("content_block_start", index=0), an("content_block_start", index=0, content_block=5), an("content_block_delta", index=0),
        an("content_block_delta", index=0, delta=[]), dl(0, "text_delta", text=5), dl(0, "thinking_delta", thinking={}),
        dl(0, "input_json_delta", partial_json={}), dl(0, "signature_delta", signature=1), dl(0, "citations_delta", citation="u"),
        an("message_delta", delta=5), an("message_delta", usage=[]), end(-1), end(10**9), an("content_block_stop", index="0"),
        an("content_block_stop", index=True), sse([]), sse("5"), sse("{broken"),
    ],
)  # fmt: skip
def test_a_wrong_shape_is_a_bad_frame(frame: bytes) -> None:
    """Kind "shape" (or "json"), with the number of the frame."""
    error = claude(frame, TEXT, TURN, STOP).error

    assert isinstance(error, BadFrameError)
    assert error.kind == ("json" if b"broken" in frame else "shape")
    assert "frame 1 of the anthropic stream" in str(error)


def test_odd_values_of_optional_fields_do_no_harm() -> None:
    """They are left out."""
    seen = claude(
        an("message_start", message=None), an("message_start", message={"id": 5, "model": [], "content": 7, "stop_reason": 3}),
        blk(0, "text", text=5, citations=7), dl(0, "text_delta", text="a"), dl(0, "text_delta", text=None), dl(0, "signature_delta"), end(0),
        blk(1, "thinking", thinking=[], signature={}), dl(1, "thinking_delta", thinking=None), dl(1, "signature_delta"),
        dl(1, "input_json_delta", partial_json=None), end(1),
        blk(2, "redacted_thinking", data=4), end(2), an("message_delta"), an("message_delta", delta=None, usage={}), STOP,
    )  # fmt: skip

    assert (seen.error, seen.response.text) == (None, "a")


def test_empty_frames_are_counted_and_say_nothing() -> None:
    """Nor does a comment."""
    seen = claude(start(), b"data:\n\n", b"event: ping\ndata: \n\n", b": hi\n\n", TEXT, TURN, STOP)

    assert (seen.response.text, seen.repairs) == ("hi", {})
    assert seen.response.repairs.notes == {"empty_frame": 2, "comment": 1}
