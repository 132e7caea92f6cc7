"""What a stream came to: the response over its steps, and the values in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from semflux.messages import Message, ToolCall
from semflux.response import (
    ChatResponse,
    CitedSource,
    MediaBlock,
    RepairReport,
    SearchResult,
    StepResponse,
)
from semflux.usage import Usage
from tests.events.strategies import responses, steps

CALL_1, CALL_2 = ToolCall(id="c1", name="f", arguments={}), ToolCall(id="c2", name="g", arguments={})
SOURCE = CitedSource(url="https://example.org", title="Example")
IMAGE = MediaBlock(kind="image", data="QUJD")

FIRST = StepResponse(
    step=0,
    text="let me see",
    thinking="hm",
    tool_calls=(CALL_1,),
    media=(IMAGE,),
    finish_reason="tool_calls",
    provider_finish_reason="tool_use",
    usage=Usage(input_tokens=10, output_tokens=5, total_tokens=15),
    model="m-1",
    provider_response_id="msg_1",
    message=Message("assistant", "let me see"),
    logprobs=({"token": "let"},),
)
BROKEN = StepResponse(
    step=1,
    text="lost",
    thinking="lost",
    refusal="lost",
    tool_calls=(ToolCall(id="c9"),),
    citations=(CitedSource(title="lost"),),
    media=(MediaBlock(kind="image", url="lost"),),
    usage=Usage(input_tokens=1),
    model="lost",
    provider_response_id="lost",
    message=Message("assistant", "lost"),
    logprobs=({"token": "lost"},),
    partial=True,
)
LAST = StepResponse(
    step=2,
    text="done",
    thinking=" so",
    refusal="not that",
    tool_calls=(CALL_2,),
    citations=(SOURCE,),
    finish_reason="stop",
    provider_finish_reason="end_turn",
    usage=Usage(input_tokens=20, output_tokens=7, total_tokens=27),
    model="m-2",
    provider_response_id="msg_2",
    message=Message("assistant", "done"),
    logprobs=({"token": "done"},),
)


def test_a_response_is_its_last_step_and_the_sum_of_all() -> None:
    """text, message, model and the vendor's words are the last step's; the rest goes over all."""
    response = ChatResponse.of([FIRST, LAST], response_id="r", finish_reason="stop")
    assert response.text == "done"
    assert response.full_text == "let me seedone"
    assert response.thinking == "hm so"
    assert response.refusal == "not that"
    assert response.tool_calls == (CALL_1, CALL_2)
    assert response.citations == (SOURCE,)
    assert response.media == (IMAGE,)
    assert response.logprobs == ({"token": "let"}, {"token": "done"})
    assert response.message == Message("assistant", "done")
    assert (response.model, response.provider_response_id) == ("m-2", "msg_2")
    assert (response.finish_reason, response.provider_finish_reason) == ("stop", "end_turn")
    assert response.usage == Usage(input_tokens=30, output_tokens=12, total_tokens=42)
    assert response.steps == (FIRST, LAST)
    assert not response.partial


def test_a_step_that_was_recovered_from_counts_in_steps_and_usage_alone() -> None:
    """What the failing attempt said is not part of the answer; what it cost is."""
    response = ChatResponse.of([FIRST, BROKEN, LAST])
    without = ChatResponse.of([FIRST, LAST])
    names = (
        "text",
        "full_text",
        "thinking",
        "refusal",
        "tool_calls",
        "citations",
        "media",
        "logprobs",
        "message",
        "model",
        "provider_response_id",
        "provider_finish_reason",
    )
    assert {name: getattr(response, name) for name in names} == {
        name: getattr(without, name) for name in names
    }
    assert response.steps == (FIRST, BROKEN, LAST)
    assert response.usage == Usage(input_tokens=31, output_tokens=12, total_tokens=42)


def test_the_failing_step_of_a_failed_stream_is_its_last_word() -> None:
    """An ERROR's response has all that was completed and the partial text; recovered steps stay out."""
    failing = StepResponse(step=2, text="half a sen", partial=True)
    response = ChatResponse.of([FIRST, BROKEN, failing], partial=True)
    assert response.text == "half a sen"
    assert response.full_text == "let me seehalf a sen"


def test_a_response_without_steps_is_empty() -> None:
    """A stream that failed before the provider accepted the call."""
    response = ChatResponse(partial=True)
    assert (response.text, response.full_text, response.tool_calls) == ("", "", ())
    assert (response.model, response.provider_finish_reason, response.usage) == (None, None, None)
    assert response.message == Message("assistant")
    assert ChatResponse.of([]).usage is None


def test_a_recovered_step_alone_gives_no_answer() -> None:
    """Two attempts failed, then the stream ended well without a step: nothing was said."""
    assert ChatResponse.of([BROKEN]).text == ""


def test_to_dict_has_the_keys_of_the_contract() -> None:
    """Section 7: these and no others, none of them a clock."""
    fields = ChatResponse.of([FIRST, LAST], response_id="r", finish_reason="stop").to_dict()
    assert list(fields) == [
        "text",
        "full_text",
        "thinking",
        "refusal",
        "tool_calls",
        "citations",
        "media",
        "finish_reason",
        "provider_finish_reason",
        "usage",
        "model",
        "provider_response_id",
        "response_id",
        "message",
        "steps",
        "repairs",
        "partial",
    ]
    assert fields["tool_calls"][0] == {
        "id": "c1",
        "name": "f",
        "arguments": {},
        "arguments_json": "",
        "arguments_error": None,
    }
    assert fields["citations"] == [{"url": "https://example.org", "title": "Example"}]
    assert fields["media"] == [{"kind": "image", "data": "QUJD"}]
    assert fields["usage"] == {"input_tokens": 30, "output_tokens": 12, "total_tokens": 42}
    assert fields["repairs"] == {"repairs": {}, "notes": {}}
    assert ChatResponse().to_dict()["usage"] is None


def test_two_responses_over_the_same_steps_differ_in_their_id_alone() -> None:
    """So that two runs over the same bytes can be compared."""
    one = ChatResponse.of([FIRST], response_id="r1").to_dict()
    two = ChatResponse.of([FIRST], response_id="r2").to_dict()
    assert {key for key in one if one[key] != two[key]} == {"response_id"}


def through_json(fields: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(fields))
    return read


@given(responses)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_responses_survive_json(response: ChatResponse) -> None:
    """What is derived is not read back but derived anew."""
    back = ChatResponse.from_dict(through_json(response.to_dict()))
    assert back == response
    assert back.to_dict() == response.to_dict()


@given(steps)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_steps_survive_json(step: StepResponse) -> None:
    """A step is the unit of a session's store."""
    assert StepResponse.from_dict(through_json(step.to_dict())) == step


@pytest.mark.parametrize(
    "data, size", [(None, None), ("", 0), ("QQ==", 1), ("QUI=", 2), ("QUJD", 3), ("QQ", 1)]
)
def test_the_size_of_media_is_that_of_its_bytes(data: str | None, size: int | None) -> None:
    """Base64 is a third larger; media known by its address alone has no size."""
    assert MediaBlock(kind="image", data=data).size == size


def test_reprs_are_short_and_hide_content() -> None:
    """Media bytes, vendor objects, queries of addresses and long texts do not belong into logs."""
    block = MediaBlock(kind="image", data="QUJD", url="data:image/png;base64,QUJD")
    assert repr(block) == (
        "MediaBlock(kind='image', mime_type=None, data=<4 characters>, url='data:...', transcript=None)"
    )
    source = CitedSource(
        url="https://example.org/a?token=s3cret", cited_text="x" * 81, raw={"token": "s3cret"}
    )
    assert "s3cret" not in repr(source)
    assert f"'{'x' * 80}'... (81 characters)" in repr(source)
    assert repr(SearchResult(url="https://example.org/?q=1")) == (
        "SearchResult(title=None, url='https://example.org/', snippet=None)"
    )


def test_values_hold_what_is_present_in_to_dict() -> None:
    """Fields that are None are left out; 0 and "" are not."""
    assert CitedSource(start=0, end=4, raw={"a": [1]}).to_dict() == {"start": 0, "end": 4, "raw": {"a": [1]}}
    assert SearchResult(title="").to_dict() == {"title": ""}
    assert MediaBlock(kind="audio", transcript="hi").to_dict() == {"kind": "audio", "transcript": "hi"}


def test_a_repair_report_is_true_if_anything_was_mended() -> None:
    """Notes are no repairs."""
    report = RepairReport({"missing_end": 2, "made_up_id": 1}, {"comment": 7})
    assert report
    assert report.count == 3
    assert report.to_dict() == {"repairs": {"missing_end": 2, "made_up_id": 1}, "notes": {"comment": 7}}
    assert not RepairReport(notes={"comment": 7})


def test_a_response_is_immutable_and_hashable() -> None:
    """All subscribers share it."""
    response = ChatResponse.of([FIRST, LAST])
    with pytest.raises(AttributeError):
        response.partial = True  # type: ignore[misc]  # that is the point
    assert hash(response) == hash(ChatResponse.of([FIRST, LAST]))
