"""OpenRouter's `reasoning_details`: what proves reasoning is kept whole, and goes back."""

from __future__ import annotations

import json

from semflux import ThinkingDelta, ThinkingSignature, VendorPart, parse
from semflux.dialects.openai_chat_request import build_openai_chat
from semflux.dialects.vendors import OPENROUTER
from semflux.messages import Message, ToolCall, ToolCallPart
from semflux.request import ChatRequest
from semflux.secret import Secret


def _frame(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "g", "model": "m", "choices": [choice]}).encode() + b"\n\n"


def _detail(**fields: object) -> dict[str, object]:
    return {"reasoning_details": [{"type": "reasoning.text", "format": "a-v1", "index": 0, **fields}]}


STREAM = b"".join(
    [
        _frame({"reasoning": "Let ", **_detail(text="Let ")}),
        _frame({"reasoning": "me.", **_detail(text="me.")}),
        _frame(_detail(signature="PROOF")),
        _frame({"content": "Yes."}),
        _frame({}, "stop"),
        b"data: [DONE]\n\n",
    ]
)


def test_the_pieces_of_a_detail_are_one_vendor_part() -> None:
    """Texts grow, the rest is the same in each piece; the text is not thinking a second time."""
    events = parse(STREAM, dialect="openai-chat").collect_list().block()
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["Let ", "me."]
    assert [event.text for event in events if isinstance(event, ThinkingSignature)] == ["PROOF"]
    response = parse(STREAM, dialect="openai-chat").response().block()
    whole = {"type": "reasoning.text", "format": "a-v1", "index": 0, "text": "Let me.", "signature": "PROOF"}
    assert VendorPart("openai-chat", whole) in response.message.parts


def test_a_detail_without_a_proof_is_not_kept() -> None:
    """It only repeats the thinking."""
    stream = STREAM.replace(b"PROOF", b"")
    response = parse(stream, dialect="openai-chat").response().block()
    assert [part for part in response.message.parts if isinstance(part, VendorPart)] == []


def test_details_go_back_with_a_tool_turn() -> None:
    """OpenRouter hands them on to the vendor that asks for them."""
    said = parse(STREAM, dialect="openai-chat").response().block().message
    call = ToolCallPart(ToolCall(id="c", name="f", arguments_json="{}", arguments={}))
    messages = (Message.user("hi"), Message("assistant", (*said.parts, call)), Message.tool("c", "1"))
    request = ChatRequest(model="m", messages=messages)
    built = build_openai_chat(request, base_url="https://x.example", api_key=Secret("k"), vendor=OPENROUTER)
    sent = json.loads(built.body)["messages"][1]
    assert [detail["signature"] for detail in sent["reasoning_details"]] == ["PROOF"]
