"""Hypothesis strategies: any event of each class, and the values in it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from semflux.errors import ERROR_CLASSES, ErrorPhase, SemfluxError
from semflux.events import EVENT_CLASSES, AnyChatEvent, ChatEvent, ChatEventType, Origin
from semflux.messages import (
    MediaPart,
    Message,
    RedactedThinkingPart,
    RefusalPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
    VendorPart,
)
from semflux.response import (
    ChatResponse,
    CitedSource,
    FinishReason,
    MediaBlock,
    RepairReport,
    SearchResult,
    StepResponse,
)
from semflux.usage import Usage

T = ChatEventType


def words(alias: Any) -> st.SearchStrategy[Any]:
    """One of the words of a Literal."""
    return st.sampled_from(alias.__args__)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


# A choice of texts and numbers is one draw, not one for each character: responses are large trees.
texts = st.sampled_from(["", "a", "Grüße", "😀\u2028", '"\\\x00', "</script>"]) | st.text(max_size=3)
counts = st.sampled_from([0, 1, 2, 2**53 + 1, 2**70])
floats = st.sampled_from([0.0, -0.0, 0.1, 1e-300, 1.7976931348623157e308]) | st.floats(
    allow_nan=False, allow_infinity=False
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=3,
)
objects = st.dictionaries(texts, json_values, max_size=1)
kinds = st.sampled_from(["image", "audio", "video", "file"])

tool_calls = st.builds(
    ToolCall,
    id=texts,
    name=texts,
    arguments_json=texts,
    arguments=json_values,
    arguments_error=maybe(texts),
    kind=st.sampled_from(["function", "custom"]),
)
usages = st.builds(
    Usage,
    input_tokens=maybe(counts),
    output_tokens=maybe(counts),
    total_tokens=maybe(counts),
    requests=st.dictionaries(texts, counts, max_size=1),
    service_tier=maybe(texts),
    details=json_values,
    cost=maybe(floats),
)
citations = st.builds(
    CitedSource,
    url=maybe(texts),
    title=maybe(texts),
    cited_text=maybe(texts),
    start=maybe(counts),
    end=maybe(counts),
    raw=json_values,
)
blocks = st.builds(
    MediaBlock,
    kind=kinds,
    mime_type=maybe(texts),
    data=maybe(texts),
    url=maybe(texts),
    transcript=maybe(texts),
)
results = st.builds(SearchResult, title=maybe(texts), url=maybe(texts), snippet=maybe(texts))
parts: st.SearchStrategy[Any] = st.one_of(
    st.builds(TextPart, texts),
    st.builds(ThinkingPart, texts, maybe(texts), maybe(texts)),
    st.builds(RedactedThinkingPart, texts),
    st.builds(RefusalPart, texts),
    st.builds(ToolCallPart, tool_calls),
    st.builds(ToolResultPart, texts, texts, st.booleans(), maybe(texts)),
    st.builds(MediaPart, kinds, maybe(texts), maybe(texts), maybe(texts), maybe(texts)),
    st.builds(VendorPart, texts, json_values),
)
messages = st.builds(
    Message, st.just("assistant"), st.lists(parts, max_size=2).map(tuple), attributes=objects
)
finish_reasons = words(FinishReason)


def tuples(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=1).map(tuple)


steps = st.builds(
    StepResponse,
    step=counts,
    text=texts,
    thinking=texts,
    refusal=texts,
    tool_calls=tuples(tool_calls),
    citations=tuples(citations),
    media=tuples(blocks),
    finish_reason=maybe(finish_reasons),
    provider_finish_reason=maybe(texts),
    usage=maybe(usages),
    model=maybe(texts),
    provider_response_id=maybe(texts),
    message=messages,
    logprobs=tuples(json_values),
    partial=st.booleans(),
)
reports = st.builds(
    RepairReport, st.dictionaries(texts, counts, max_size=1), st.dictionaries(texts, counts, max_size=1)
)
responses = st.builds(
    ChatResponse,
    response_id=texts,
    steps=tuples(steps),
    finish_reason=maybe(finish_reasons),
    usage=maybe(usages),
    repairs=reports,
    partial=st.booleans(),
)


@st.composite
def errors(draw: st.DrawFn) -> SemfluxError:
    cls = ERROR_CLASSES[draw(st.sampled_from(sorted(ERROR_CLASSES)))]
    return cls(
        draw(texts),
        kind=draw(maybe(texts)),
        phase=draw(maybe(words(ErrorPhase))),
        provider=draw(maybe(texts)),
        status=draw(maybe(counts)),
        code=draw(maybe(texts)),
        request_id=draw(maybe(texts)),
        retryable=draw(maybe(st.booleans())),
        retry_after=draw(maybe(floats)),
        attempts=draw(counts),
    )


origins = st.builds(
    Origin,
    response_id=texts,
    provider_response_id=maybe(texts),
    step=counts,
    dialect=maybe(texts),
    model=maybe(texts),
)
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "origin": origins,
    "item_id": maybe(texts),
    "index": maybe(st.integers()),
    "raw_type": maybe(texts),
    "attributes": objects,
    "seq": st.integers(min_value=-1, max_value=2**70),
    "time": st.just(0.0) | st.floats(min_value=-1e10, max_value=2e11),
}
NAMED = {"tool_call_id": maybe(texts), "name": maybe(texts)}
USED = {"usage": maybe(usages), "finish_reason": maybe(finish_reasons)}
OWN: dict[ChatEventType, dict[str, st.SearchStrategy[Any]]] = {
    T.STATUS: {"sub_type": texts, "text": maybe(texts)},
    T.RESPONSE_END: {"response": maybe(responses), **USED},
    T.ABORT: {"reason": maybe(texts), "response": maybe(responses), "usage": maybe(usages)},
    T.STEP_START: {"model": maybe(texts), "attempt": counts},
    T.STEP_END: {"response": maybe(steps), **USED, "provider_finish_reason": maybe(texts)},
    T.TEXT_DELTA: {"text": texts},
    T.THINKING_DELTA: {"text": texts},
    T.THINKING_SIGNATURE: {"text": texts},
    T.THINKING_REDACTED: {"text": texts},
    T.TOOL_CALL_START: NAMED,
    T.TOOL_CALL_ARGS_DELTA: {"text": texts, **NAMED},
    T.TOOL_CALL_END: {**NAMED, "tool_call": maybe(tool_calls)},
    T.TOOL_RESULT: {
        "tool_call": maybe(tool_calls),
        "text": texts,
        "is_error": st.booleans(),
        "duration": maybe(floats),
    },
    T.SERVER_TOOL_START: {
        "sub_type": maybe(texts),
        "name": maybe(texts),
        "text": maybe(texts),
        "raw": json_values,
    },
    T.SERVER_TOOL_ARGS_DELTA: {"text": texts, "sub_type": maybe(texts)},
    T.SERVER_TOOL_RESULT: {
        "sub_type": maybe(texts),
        "text": maybe(texts),
        "results": tuples(results),
        "is_error": st.booleans(),
        "raw": json_values,
    },
    T.CITATION: {"citation": citations},
    T.MEDIA_PARTIAL: {"block": blocks},
    T.MEDIA_DONE: {"block": blocks},
    T.REFUSAL_DELTA: {"text": texts},
    T.CONTENT_FILTER: {"sub_type": maybe(texts), "text": maybe(texts), "blocked": st.booleans()},
    T.USAGE: {"usage": usages},
    T.ERROR: {"error": errors(), "response": maybe(responses), "usage": maybe(usages)},
    T.RAW: {"raw": json_values},
    T.CUSTOM: {"sub_type": texts, "raw": json_values},
}


def events_of(cls: type[ChatEvent]) -> st.SearchStrategy[Any]:
    """Any event of *cls*."""
    return st.builds(cls, **COMMON, **OWN.get(cls.type, {}))


any_events: st.SearchStrategy[AnyChatEvent] = st.sampled_from(sorted(EVENT_CLASSES)).flatmap(
    lambda type_: events_of(EVENT_CLASSES[type_])
)
