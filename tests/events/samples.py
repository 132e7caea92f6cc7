"""One event of each class with all its fields, and a text that is longer than anything may show."""

from __future__ import annotations

from typing import Any

from semflux.errors import RateLimitError
from semflux.events import EVENT_CLASSES, ChatEvent, ChatEventType, Origin
from semflux.messages import Message, TextPart, ToolCall, VendorPart
from semflux.response import (
    ChatResponse,
    CitedSource,
    MediaBlock,
    RepairReport,
    SearchResult,
    StepResponse,
)
from semflux.usage import Usage

T = ChatEventType


def sample(type_: ChatEventType, text: str = "abc", data: str = "QUJD") -> ChatEvent:
    """An event of *type_*: each of its texts is *text*, all media bytes are *data*."""
    call = ToolCall(id=text, name=text, arguments_json=text, arguments={"a": [text]}, arguments_error=text)
    usage = Usage(
        input_tokens=1, requests={text: 1}, service_tier=text, region=text, details={"d": [text]}, cost=0.5
    )
    source = CitedSource(url=text, title=text, cited_text=text, start=0, end=1, raw={"r": [text]})
    block = MediaBlock(kind="image", mime_type=text, data=data, url=f"data:image/png;{data}", transcript=text)
    step = StepResponse(
        text=text,
        thinking=text,
        refusal=text,
        tool_calls=(call,),
        citations=(source,),
        media=(block,),
        finish_reason="stop",
        provider_finish_reason=text,
        usage=usage,
        model=text,
        provider_response_id=text,
        message=Message(
            "assistant", (TextPart(text), VendorPart("d", {"v": [text]})), attributes={"a": [text]}
        ),
        logprobs=({"token": text},),
    )
    response = ChatResponse(
        response_id=text,
        steps=(step,),
        finish_reason="stop",
        usage=usage,
        repairs=RepairReport({text: 1}, {text: 2}),
    )
    error = RateLimitError(text, provider=text, code=text, request_id=text, partial=response)
    values: dict[str, Any] = {
        "text": text,
        "sub_type": text,
        "reason": text,
        "model": text,
        "finish_reason": "stop",
        "provider_finish_reason": text,
        "response": step if type_ is T.STEP_END else response,
        "usage": usage,
        "tool_call_id": text,
        "name": text,
        "tool_call": call,
        "duration": 0.25,
        "raw": {"r": [data, {"n": 1}]},
        "results": (SearchResult(title=text, url=text, snippet=text),),
        "citation": source,
        "block": block,
        "error": error,
        "attempt": 2,
        "is_error": True,
        "blocked": True,
    }
    cls = EVENT_CLASSES[type_]
    slots: set[str] = set(getattr(cls, "__slots__", ()))
    own = {name: value for name, value in values.items() if name in slots}
    return cls(
        **own,
        origin=Origin(response_id=text, provider_response_id=text, step=1, dialect=text, model=text),
        item_id=text,
        index=3,
        raw_type=text,
        attributes={"logprobs": [{"token": text}], text: text},
        seq=9,
        time=1_767_225_600.25,
    )


SAMPLES = {type_: sample(type_) for type_ in T}
"""One event of each class."""
