"""OpenAI chat: text, reasoning, calls and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.events import ChatEventType
from tests.frames import DONE, cc, chat, sse, tc

T = ChatEventType

STOP = cc({}, "stop")
CALLS = cc({}, "tool_calls")


def test_text_comes_as_it_came() -> None:
    """One TEXT_DELTA for each delta, the block implied around them."""
    seen = chat(
        cc({"role": "assistant", "content": ""}), cc({"content": "Hel"}), cc({"content": "lo"}), STOP, DONE
    )

    assert [str(event.type) for event in seen.events] == [
        "RESPONSE_START", "STEP_START", "TEXT_START", "TEXT_DELTA", "TEXT_DELTA", "TEXT_END", "STEP_END", "RESPONSE_END",
    ]  # fmt: skip
    assert seen.texts(T.TEXT_DELTA) == ["Hel", "lo"]
    assert seen.of(T.TEXT_START, T.TEXT_END)[0].attributes == {"implied": True}
    assert (seen.response.text, seen.response.finish_reason, seen.repairs) == ("Hello", "stop", {})
    assert seen.response.provider_finish_reason == "stop"


def test_role_only_and_null_deltas_start_nothing() -> None:
    """TEXT_START comes with the first character, so that the time to it is right."""
    seen = chat(
        cc({"role": "assistant", "content": ""}),
        cc({"content": None}),
        cc(None),
        cc({"content": "x"}),
        STOP,
        DONE,
    )

    assert [event.type for event in seen.events[:4]] == [
        T.RESPONSE_START,
        T.STEP_START,
        T.TEXT_START,
        T.TEXT_DELTA,
    ]


def test_who_answers_is_told_once_and_never_unset() -> None:
    """An id may change per chunk or be empty; the first one counts; a missing choice index is 0."""
    seen = chat(
        sse({"id": "", "model": "", "choices": [{"delta": {"content": "a"}}]}),
        sse({"id": "first", "model": "", "choices": [{"delta": {"content": "b"}}]}),
        sse(
            {"id": "second", "model": "m", "choices": [{"delta": {"content": "c"}, "finish_reason": "stop"}]}
        ),
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
def test_reasoning_is_read_from_whichever_field_has_it_and_from_one_of_them(
    deltas: list[dict[str, Any]],
) -> None:
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
    """OpenRouter: they must be sent back. Where nothing else comes, they alone are the reasoning."""
    text = {"type": "reasoning.text", "index": 0, "text": "hm", "signature": "SIG", "format": None}
    seen = chat(
        cc(
            {
                "reasoning": "hm",
                "reasoning_details": [text, {"type": "reasoning.encrypted", "index": 1, "data": "ENC"}, "?"],
            }
        ),
        cc({"reasoning_details": [{"type": "reasoning.encrypted", "index": 2, "data": "MORE"}]}),
        STOP,
        DONE,
    )

    assert seen.types[:4] == [
        "THINKING_DELTA",
        "THINKING_SIGNATURE",
        "THINKING_REDACTED",
        "THINKING_REDACTED",
    ]
    assert seen.response.thinking == "hm"
    parts = seen.response.message.to_dict()["parts"]
    assert [(part["type"], part.get("signature") or part.get("data")) for part in parts[:3]] == [
        ("thinking", "SIG"), ("redacted_thinking", "ENC"), ("redacted_thinking", "MORE"),
    ]  # fmt: skip


def test_content_may_be_a_list_of_parts() -> None:
    """Mistral: text and plain strings are text, anything else is RAW."""
    reference = {"type": "reference", "reference_ids": [1]}
    seen = chat(
        cc({"content": [{"type": "text", "text": "a"}, "b", "", {"type": "text", "text": ""}, reference]}),
        STOP,
        DONE,
    )

    assert seen.response.text == "ab"
    assert [event.raw for event in seen.of(T.RAW)] == [{"type": "reference", "reference_ids": (1,)}]


# Calls. Which fragment belongs to which call is in tests/test_calls.py.


@pytest.mark.parametrize(
    "deltas, calls",
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
    seen = chat(
        cc(tc(None, "a", "f", "{}")),
        cc(tc(1, None, "g", '{"y":')),
        cc(tc(None, None, None, "2}")),
        CALLS,
        DONE,
    )

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
    seen = chat(
        cc({"role": "assistant", "content": None, "refusal": ""}),
        cc({"refusal": "I "}),
        cc({"refusal": "won't"}),
        STOP,
        DONE,
    )

    assert seen.types == ["REFUSAL_DELTA", "REFUSAL_DELTA"]
    assert (seen.response.refusal, seen.response.text, seen.response.finish_reason) == (
        "I won't",
        "",
        "refusal",
    )
    assert seen.response.provider_finish_reason == "stop"
