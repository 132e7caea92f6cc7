"""OpenAI chat: text, reasoning, calls, refusals and the finish signal."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.errors import BadFrameError, RepairError, TruncatedStreamError
from semflux.events import ChatEventType
from tests.frames import DONE, cc, chat, chunk, completion, cu, read, sse, tc

T = ChatEventType

STOP = cc({}, "stop")
CALLS = cc({}, "tool_calls")


def test_text_comes_as_it_came() -> None:
    """One TEXT_DELTA for each delta, the block implied around them."""
    seen = chat(cc({"role": "assistant", "content": ""}), cc({"content": "Hel"}), cc({"content": "lo"}), STOP, DONE)

    assert [str(event.type) for event in seen.events] == [
        "RESPONSE_START", "STEP_START", "TEXT_START", "TEXT_DELTA", "TEXT_DELTA", "TEXT_END", "STEP_END", "RESPONSE_END",
    ]  # fmt: skip
    assert seen.texts(T.TEXT_DELTA) == ["Hel", "lo"]
    assert seen.of(T.TEXT_START, T.TEXT_END)[0].attributes == {"implied": True}
    assert (seen.response.text, seen.response.finish_reason, seen.repairs) == ("Hello", "stop", {})
    assert seen.response.provider_finish_reason == "stop"


def test_role_only_and_null_deltas_start_nothing() -> None:
    """TEXT_START comes with the first character, so that the time to it is right."""
    seen = chat(cc({"role": "assistant", "content": ""}), cc({"content": None}), cc(None), cc({"content": "x"}), STOP, DONE)

    assert [event.type for event in seen.events[:4]] == [T.RESPONSE_START, T.STEP_START, T.TEXT_START, T.TEXT_DELTA]


def test_who_answers_is_told_once_and_never_unset() -> None:
    """An id may change per chunk or be empty; the first one counts; a missing choice index is 0."""
    seen = chat(
        sse({"id": "", "model": "", "choices": [{"delta": {"content": "a"}}]}),
        sse({"id": "first", "model": "", "choices": [{"delta": {"content": "b"}}]}),
        sse({"id": "second", "model": "m", "choices": [{"delta": {"content": "c"}, "finish_reason": "stop"}]}),
        DONE,
    )

    assert (seen.response.provider_response_id, seen.response.model) == ("first", "m")
    assert [e.provider_response_id for e in seen.of(T.TEXT_DELTA)] == [None, "first", "first"]


@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": "hm"}, {"reasoning_content": " ok"}],
        [{"reasoning": "hm"}, {"reasoning_content": " ok"}],
        [{"reasoning_content": "hm", "reasoning": "hm"}, {"reasoning": " ok", "reasoning_content": ""}],
        [{"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, {"reasoning": " ok"}],
        [{"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, {"reasoning_details": [{"summary": " ok"}]}],
        [{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}, " ok", {"x": 1}]}]}],
        [{"content": [{"type": "thinking", "thinking": "hm ok"}]}],
    ],
)  # fmt: skip
def test_reasoning_is_read_from_whichever_field_has_it_and_from_one_of_them(deltas: list[dict[str, Any]]) -> None:
    """reasoning_content wins over reasoning, that over reasoning_details; repeats in the others are not added."""
    seen = chat(*[cc(delta) for delta in deltas], cc({"content": "42"}), STOP, DONE)

    assert (seen.response.thinking, seen.response.text) == ("hm ok", "42")


def test_reasoning_text_and_calls_in_one_chunk_come_in_this_order() -> None:
    """As a model makes them (GLM)."""
    delta = {"reasoning_content": "t", "content": "x", **tc(0, "a", "f", "{}")}
    seen = chat(cc(delta), CALLS, DONE)

    assert [str(e.type) for e in seen.events if e.group in {"TEXT", "THINKING", "TOOL_CALL"}] == [
        "THINKING_START", "THINKING_DELTA", "THINKING_END", "TEXT_START", "TEXT_DELTA", "TEXT_END",
        "TOOL_CALL_START", "TOOL_CALL_ARGS_DELTA", "TOOL_CALL_END",
    ]  # fmt: skip


def test_signatures_and_encrypted_reasoning_of_the_details_are_kept() -> None:
    """OpenRouter: they must be sent back."""
    seen = chat(
        cc({"reasoning": "hm", "reasoning_details": [{"text": "hm", "signature": "SIG"}, {"data": "ENC"}, "?"]}),
        STOP,
        DONE,
    )

    assert seen.types == ["THINKING_DELTA", "THINKING_SIGNATURE", "THINKING_REDACTED"]
    parts = seen.response.message.to_dict()["parts"]
    assert [(p["type"], p.get("signature") or p.get("data")) for p in parts] == [
        ("thinking", "SIG"), ("redacted_thinking", "ENC"),
    ]  # fmt: skip


def test_content_may_be_a_list_of_parts() -> None:
    """Mistral: text and plain strings are text, anything else is RAW."""
    reference = {"type": "reference", "reference_ids": [1]}
    seen = chat(cc({"content": [{"type": "text", "text": "a"}, "b", "", {"type": "text", "text": ""}, reference]}), STOP, DONE)

    assert seen.response.text == "ab"
    assert [event.raw for event in seen.of(T.RAW)] == [{"type": "reference", "reference_ids": (1,)}]


# Calls. Which fragment belongs to which call is in tests/test_calls.py.


@pytest.mark.parametrize(
    ("deltas", "calls"),
    [
        ([tc(0, "a", "f", '{"k":1}'), tc(0, "b", "g", '{"k":2}')], [("a", "f", '{"k":1}'), ("b", "g", '{"k":2}')]),
        ([tc(None, "a", "f", '{"k"'), tc(None, None, None, ":1}")], [("a", "f", '{"k":1}')]),
        ([tc(0, "a", "f", "{"), tc(0, "", "", '"k":1}')], [("a", "f", '{"k":1}')]),
        ([tc(0, "a", "f"), tc(0, None, None, '{"k":1}'), {"tool_calls": None}], [("a", "f", '{"k":1}')]),
        ([tc(0, "a", "f", "")], [("a", "f", "")]),
        ([tc(0, "a", "f", '{"x":'), tc(1, "b", "g", '{"y":'), tc(0, None, None, "1}"), tc(1, None, None, "2}")],
         [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]),
        ([{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": {"k": [1]}}}]}],
         [("a", "f", '{"k":[1]}')]),
        ([{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}, None]}], [("a", "f", "")]),
        ([tc(0, "a"), tc(0, None, "f"), tc(0, None, None, "{}")], [("a", "f", "{}")]),
    ],
)  # fmt: skip
def test_calls_are_put_together(deltas: list[dict[str, Any]], calls: list[tuple[str, str, str]]) -> None:
    """The same index twice, a missing one, empty ids, null arguments, none at all, interleaved ones, an object."""
    seen = chat(*[cc(delta) for delta in deltas], CALLS, DONE)

    assert seen.calls == calls
    assert [event.tool_call for event in seen.of(T.TOOL_CALL_END)] == list(seen.response.tool_calls)
    assert seen.response.finish_reason == "tool_calls"


def test_without_any_index_a_fragment_goes_on_with_the_last_call() -> None:
    """No index, then the id, then the last id."""
    seen = chat(
        cc(tc(None, "a", "f", '{"x":')), cc(tc(None, None, None, "1}")),
        cc(tc(None, "b", "g", '{"y":')), cc({**tc(None, None, None, "2}"), "extra": 0}),
        CALLS, DONE,
    )  # fmt: skip

    assert seen.calls == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]
    assert seen.repairs == {"relabelled": 2}


def test_after_a_fragment_with_an_index_a_bare_one_is_of_no_earlier_id() -> None:
    """What goes on is the latest call, not the latest id."""
    seen = chat(cc(tc(None, "a", "f", "{}")), cc(tc(1, None, "g", '{"y":')), cc(tc(None, None, None, "2}")), CALLS, DONE)

    assert [call[2] for call in seen.calls] == ["{}2}", '{"y":']
    assert seen.repairs == {"made_up_id": 1, "relabelled": 1}


def test_a_call_without_arguments_has_an_empty_object() -> None:
    """A tool without parameters."""
    call = chat(cc(tc(0, "a", "now", "")), CALLS, DONE).response.tool_calls[0]

    assert (call.arguments_json, call.arguments, call.arguments_error) == ("", {}, None)


def test_empty_lists_of_calls_on_text_chunks_say_nothing() -> None:
    """`tool_calls: []` is no tool mode."""
    seen = chat(cc({"content": "a", "tool_calls": []}), cc({"content": "b", "tool_calls": None}), STOP, DONE)

    assert (seen.types, seen.response.text) == (["TEXT_DELTA", "TEXT_DELTA"], "ab")


def test_extra_content_of_a_call_is_on_its_start() -> None:
    """Gemini behind this format puts its thought signature there."""
    delta = tc(0, "a", "f", "{}")
    delta["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "S"}}
    seen = chat(cc(delta), CALLS, DONE)

    assert seen.of(T.TOOL_CALL_START)[0].attributes["extra_content"] == {"google": {"thought_signature": "S"}}


def test_the_legacy_function_call_is_a_call() -> None:
    """It has no id in its format: the made-up one is no repair."""
    seen = chat(
        cc({"function_call": {"name": "f", "arguments": '{"a"'}}),
        cc({"function_call": {"arguments": ":1}"}}),
        cc({}, "function_call"),
        DONE,
        strict=True,
    )

    assert seen.calls == [("call_0_0", "f", '{"a":1}')]
    assert (seen.response.finish_reason, seen.repairs) == ("tool_calls", {})


def test_a_refusal_is_no_text() -> None:
    """REFUSAL_DELTA only; "stop" then means a refusal."""
    seen = chat(cc({"role": "assistant", "content": None, "refusal": ""}), cc({"refusal": "I "}), cc({"refusal": "won't"}), STOP, DONE)

    assert seen.types == ["REFUSAL_DELTA", "REFUSAL_DELTA"]
    assert (seen.response.refusal, seen.response.text, seen.response.finish_reason) == ("I won't", "", "refusal")
    assert seen.response.provider_finish_reason == "stop"


# The finish signal.


@pytest.mark.parametrize(
    ("said", "means"),
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
    ("finish", "args", "means"),
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
    ("frames", "reason"),
    [([cc({"content": "x"})], "stop"), ([cc(tc(0, "a", "f", "{}"))], "tool_calls"), ([cc({"refusal": "no"})], "refusal"), ([], "stop")],
)
def test_done_without_a_reason_is_the_finish_signal(frames: list[bytes], reason: str) -> None:
    """The vendor's own word is None."""
    seen = chat(*frames, DONE)

    assert (seen.error, seen.response.finish_reason, seen.response.provider_finish_reason) == (None, reason, None)
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
    assert chat(cc({"content": "ok"}), STOP, DONE, sse("{not json"), sse({"error": {"message": "x"}})).error is None


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


def test_a_whole_answer_of_any_kind_can_be_read() -> None:
    """More of it is in test_openai_chat_whole.py."""
    assert read(completion({"content": "hi"}), "openai-chat").response.text == "hi"
