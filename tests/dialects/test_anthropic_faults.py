"""Anthropic messages: errors in the stream, bodies that are no stream, and whole answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from semflux.errors import (
    BadRequestError,
    EmptyResponseError,
    JsonTooDeepError,
    NotAStreamError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    SemfluxError,
    TruncatedStreamError,
)
from semflux.events import ChatEventType
from semflux.wire.limits import Limits
from tests.frames import STOP, an, blk, claude, cuts, dl, end, md, read, sse, start, text_block

T = ChatEventType
TURN = md("end_turn")
OVERLOADED = {"type": "overloaded_error", "message": "Overloaded"}


@pytest.mark.parametrize(
    "frame, cls",
    [
        (an("error", error=OVERLOADED), OverloadedError),
        (sse({"error": OVERLOADED}, "error"), OverloadedError),
        (sse({"error": OVERLOADED}), OverloadedError),
        (sse({"error": "boom"}), ProviderError),
        (sse({"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}), RateLimitError),
        (an("error", error={"type": "invalid_request_error", "message": "x"}), BadRequestError),
        (an("error"), ProviderError),
        (an("error", error=5), ProviderError),
        (sse("Internal error", "error"), ProviderError),
        (sse(["x"], "error"), ProviderError),
    ],
)  # fmt: skip
def test_an_error_in_the_stream_fails_it(frame: bytes, cls: type[ProviderError]) -> None:
    """In the class that the same failure has as a status, with what had come."""
    seen = claude(start(), text_block(0, "par"), frame, TURN, STOP)

    assert type(seen.error) is cls
    assert (seen.error.provider, seen.response.text, seen.response.partial) == ("anthropic", "par", True)
    assert seen.events[-1].usage is not None
    assert seen.events[-1].usage.input_tokens == 3


def test_the_usage_of_an_error_frame_is_taken_first() -> None:
    """So that what was paid for is known."""
    seen = claude(start(), an("error", error=OVERLOADED, usage={"output_tokens": 9}))

    assert seen.events[-1].usage is not None
    assert (seen.events[-1].usage.input_tokens, seen.events[-1].usage.output_tokens) == (3, 9)


def test_held_input_comes_before_the_ends_of_a_failing_stream() -> None:
    """The partial call has it."""
    frames = (start(), blk(0, "text", text=""), blk(1, "tool_use", id="u", name="f", input={"a": 1}))

    for broken in ((), (an("error", error=OVERLOADED),), (sse("{broken"),)):
        seen = claude(*frames, *broken)
        assert seen.calls == [("u", "f", '{"a":1}')]
        assert seen.of(T.TOOL_CALL_END)[0].attributes == {"partial": True}
        assert seen.repairs == {}


@pytest.mark.parametrize(
    "body, cls",
    [
        (b"", EmptyResponseError),
        (b"<html>\n", NotAStreamError),
        (b"event: message_start\n", TruncatedStreamError),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}', OverloadedError),
        (b'{"error":"x"}', ProviderError),
        (b'{"id":"x"}', ProviderError),
        (b'{"content":"x"}', ProviderError),
        (b"[1]", NotAStreamError),
        (b'{"content":[', TruncatedStreamError),
    ],
)  # fmt: skip
def test_a_body_that_is_no_stream_says_what_it_is(body: bytes, cls: type[SemfluxError]) -> None:
    """However it is cut."""
    for data in (body, cuts(body, 1)):
        assert type(read(data, "anthropic").error) is cls


def test_a_whole_answer_means_what_its_stream_means() -> None:
    """Blocks of every kind, usage, reason: the same response."""
    results = [{"type": "web_search_result", "url": "u", "title": "A"}]
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "SIG"},
        {"type": "redacted_thinking", "data": "R"},
        {"type": "text", "text": "hi", "citations": [{"url": "u"}]},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": results},
        {"type": "hologram", "x": 1},
        {"type": "tool_use", "id": "u", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "v", "name": "g", "input": {}},
    ]
    usage = {"input_tokens": 3, "output_tokens": 5}
    message = {
        "id": "m1",
        "type": "message",
        "model": "claude",
        "content": content,
        "stop_reason": "tool_use",
        "usage": usage,
    }
    whole = read(json.dumps(message).encode(), "anthropic")
    streamed = claude(
        start(input_tokens=3, output_tokens=1),
        blk(0, "thinking", thinking="", signature=""), dl(0, "thinking_delta", thinking="hm"),
        dl(0, "signature_delta", signature="SIG"), end(0),
        blk(1, "redacted_thinking", data="R"), end(1),
        blk(2, "text", text=""), dl(2, "text_delta", text="hi"), dl(2, "citations_delta", citation={"url": "u"}), end(2),
        blk(3, "server_tool_use", id="s", name="web_search", input={}),
        dl(3, "input_json_delta", partial_json='{"query": "q"}'), end(3),
        blk(4, "web_search_tool_result", tool_use_id="s", content=results), end(4),
        blk(5, "hologram", x=1), end(5),
        blk(6, "tool_use", id="u", name="f", input={}), dl(6, "input_json_delta", partial_json='{"a":1}'), end(6),
        blk(7, "tool_use", id="v", name="g", input={}), end(7),
        md("tool_use", usage), STOP,
    )  # fmt: skip

    assert {**whole.response.to_dict(), "response_id": ""} == {
        **streamed.response.to_dict(),
        "response_id": "",
    }
    assert whole.repairs == {}
    assert len(whole.response.message.parts) == 8


def test_a_whole_answer_without_usage_or_reason() -> None:
    """It ended where its JSON did."""
    seen = read(b'{"id":"m","content":[{"type":"text","text":"hi"}]}', "anthropic")

    assert (seen.response.text, seen.response.usage, seen.response.finish_reason) == ("hi", None, "stop")


def test_json_cut_anywhere_is_an_error() -> None:
    """One of ours, whatever the place."""
    body = b'{"id":"m","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"u","name":"f","input":{"a":[1]}}]}'

    for size in range(1, len(body)):
        assert isinstance(read(body[:size], "anthropic").error, TruncatedStreamError | NotAStreamError)


def test_the_bounds_on_json_are_those_that_were_asked_for() -> None:
    """On the short and on the general way, and in whole answers."""
    limits = Limits(max_json_depth=4)
    deep = an("content_block_delta", index=0, delta={"type": "text_delta", "text": "a", "x": [[[1]]]})

    assert claude(start(), text_block(0, "a"), TURN, STOP, limits=limits).error is None
    assert isinstance(claude(start(), blk(0, "text", text=""), deep, limits=limits).error, JsonTooDeepError)
    assert isinstance(read(b'{"content":[[[[[]]]]]}', "anthropic", limits=limits).error, JsonTooDeepError)


def test_what_is_frozen_is_frozen_all_the_way_down() -> None:
    """The vendor's blocks on server tool events too."""
    seen = claude(start(), blk(0, "server_tool_use", id="s", name="x", input={"a": [1]}), end(0),
                  blk(1, "x_tool_result", tool_use_id="s", content=[{"y": 1}]), end(1), TURN, STOP)  # fmt: skip

    for event in seen.of(T.SERVER_TOOL_START, T.SERVER_TOOL_RESULT):
        with pytest.raises(TypeError, match="immutable"):
            event.raw["type"] = "x"
        hash(event.raw)
