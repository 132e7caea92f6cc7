"""OpenAI chat: the finish signal, other choices, and frames of a wrong shape."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.errors import BadFrameError, RepairError, TruncatedStreamError
from semflux.events import ChatEventType
from tests.frames import DONE, cc, chat, chunk, cu, read, sse, tc

T = ChatEventType

STOP = cc({}, "stop")


# The finish signal.


@pytest.mark.parametrize(
    "said, means",
    [
        ("stop", "stop"), ("STOP", "stop"), ("eos", "stop"), ("length", "length"), ("model_length", "length"),
        ("tool_calls", "tool_calls"), ("function_call", "tool_calls"), ("content_filter", "content_filter"),
        ("sensitive", "content_filter"), ("something_new", "other"),
    ],
)  # fmt: skip
def test_finish_reasons_are_ours_and_the_vendors(said: str, means: str) -> None:
    """Ours in `finish_reason`, the vendor's own word in `provider_finish_reason`."""
    seen = chat(cc({"content": "x"}), cc({}, said), DONE)

    assert (seen.response.finish_reason, seen.response.provider_finish_reason) == (means, said)


@pytest.mark.parametrize(
    "finish, args, means",
    [
        ("stop", "{}", "tool_calls"), ("stop", "", "tool_calls"), ("stop", '{"a":', "stop"), ("stop", "[1]", "stop"),
        ("length", "{}", "length"), ("content_filter", "{}", "content_filter"), ("tool_calls", '{"a":', "tool_calls"),
    ],
)  # fmt: skip
def test_stop_with_complete_calls_means_tool_calls(finish: str, args: str, means: str) -> None:
    """And only stop, and only when each call is one whole JSON object."""
    assert chat(cc(tc(0, "a", "f", args)), cc({}, finish), DONE).response.finish_reason == means


def test_content_beside_the_finish_reason_counts() -> None:
    """Text, and calls."""
    seen = chat(cc({"content": "almost "}), cc({"content": "all", **tc(0, "a", "f", "{}")}, "stop"), DONE)

    assert seen.response.text == "almost all"
    assert seen.calls == [("a", "f", "{}")]


def test_a_finish_reason_may_be_repeated_and_is_never_unset() -> None:
    """The first one counts; null and "" are none."""
    seen = chat(cc({"content": "a"}, "length"), cc({}, None), cc({}, ""), cc({}, "stop"), DONE)

    assert seen.response.finish_reason == "length"
    assert len(seen.of(T.STEP_END)) == 1


def test_content_after_the_finish_signal_belongs_to_the_step() -> None:
    """Until the end marker, and in a block of its own."""
    seen = chat(cc({"content": "a"}, "stop"), cc({"content": "b"}), cu(1, 2), DONE)

    assert seen.response.text == "ab"
    assert len(seen.of(T.TEXT_START)) == len(seen.of(T.TEXT_END)) == 2


@pytest.mark.parametrize(
    "frames, reason",
    [
        ([cc({"content": "x"})], "stop"),
        ([cc(tc(0, "a", "f", "{}"))], "tool_calls"),
        ([cc({"refusal": "no"})], "refusal"),
        ([], "stop"),
    ],
)
def test_done_without_a_reason_is_the_finish_signal(frames: list[bytes], reason: str) -> None:
    """The vendor's own word is None."""
    seen = chat(*frames, DONE)

    assert (seen.error, seen.response.finish_reason, seen.response.provider_finish_reason) == (
        None,
        reason,
        None,
    )
    assert seen.repairs == {}


def test_a_missing_done_is_counted() -> None:
    """The stream ends well all the same; in strict mode it does not."""
    frames = (cc({"content": "x"}), STOP)

    assert chat(*frames).repairs == {"missing_done": 1}
    error = chat(*frames, strict=True).error
    assert isinstance(error, RepairError)
    assert error.kind == "missing_done"


def test_what_comes_after_done_is_dropped_and_counted() -> None:
    """The stream is over when the marker is read, whatever follows."""
    seen = read([cc({"content": "ok"}) + STOP + DONE + cc({"content": "late"}), b": more\n\n"], "openai-chat")

    assert seen.response.text == "ok"
    assert seen.error is None


def test_the_stream_ends_before_bytes_that_would_be_an_error() -> None:
    """A frame behind the marker is not even looked at."""
    assert (
        chat(cc({"content": "ok"}), STOP, DONE, sse("{not json"), sse({"error": {"message": "x"}})).error
        is None
    )


def test_without_the_finish_signal_a_stream_is_truncated() -> None:
    """Complete-looking calls too: they are told, but the step is partial."""
    seen = chat(cc({"content": "trunc"}), cc(tc(0, "a", "rm", '{"path":"/"}')))

    assert isinstance(seen.error, TruncatedStreamError)
    assert (seen.response.partial, seen.response.text, seen.response.finish_reason) == (True, "trunc", None)
    assert seen.of(T.STEP_END)[0].attributes == {"partial": True}
    assert seen.of(T.TOOL_CALL_END)[0].attributes == {"partial": True}


def test_other_choices_are_custom_events() -> None:
    """Choice 0 is the answer, and its finish counts."""
    seen = chat(
        cc({"content": "A"}), cc({"content": "B"}, index=1), cc({}, "length", index=1), cc({"content": "a"}), STOP, cu(2, 4), DONE,
    )  # fmt: skip

    assert (seen.response.text, seen.response.finish_reason) == ("Aa", "stop")
    assert [(e.sub_type, e.index, e.raw["delta"]) for e in seen.of(T.CUSTOM)] == [
        ("choice", 1, {"content": "B"}), ("choice", 1, {}),
    ]  # fmt: skip
    two = chunk({"index": 0, "delta": {"content": "x"}}, {"index": 1, "delta": {"content": "y"}})
    assert chat(two, STOP, DONE).response.text == "x"


@pytest.mark.parametrize(
    "frame",
    [
        chunk("choice"), chunk(None), sse({"choices": {}}), sse({"choices": 1}), cc("text"), cc([1]), cc({"content": 5}),
        cc({"content": [5]}), cc({"tool_calls": {}}), cc({"tool_calls": ["x"]}), cc({"tool_calls": [{"function": 1}]}),
        cc({"tool_calls": [{"index": "0", "function": {}}]}), cc({"tool_calls": [{"index": True}]}),
        cc({"tool_calls": [{"index": 0, "function": {"arguments": 5}}]}), cc({"refusal": {}}), cc({"refusal": 1}),
        cc(tc(-1, "a", "f", "{}")), cc(tc(10**9, "a", "f", "{}")), cc({**tc(10**9, "a", "f", "{}"), "x": 1}),
        sse([]), sse(5), sse("null"), sse("true"),
    ],
)  # fmt: skip
def test_a_wrong_shape_is_a_bad_frame(frame: bytes) -> None:
    """Kind "shape", with the number of the frame; after the finish signal it is dropped and counted."""
    error = chat(cc({"content": "a"}), frame, STOP, DONE).error
    assert isinstance(error, BadFrameError)
    assert (error.kind, error.provider) == ("shape", "openai-chat")
    assert "frame 2" in str(error)

    late = chat(cc({"content": "a"}, "stop"), frame, DONE)
    assert (late.error, late.response.text) == (None, "a")
    assert late.response.repairs.notes == {"bad_frame_after_finish": 1}


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_details": 5}, {"reasoning_details": {}}, {"reasoning": 5}, {"images": 7}, {"images": {"a": 1}}, {"audio": 1},
        {"annotations": 3}, {"annotations": [5]}, {"function_call": 5}, {"tool_calls": [{}]}, {"audio": {"data": 4}},
    ],
)  # fmt: skip
def test_an_odd_value_of_an_optional_field_does_no_harm(delta: dict[str, Any]) -> None:
    """It is left out."""
    seen = chat(cc(delta), cc({"content": "a"}), STOP, DONE)

    assert (seen.error, seen.response.text) == (None, "a")
