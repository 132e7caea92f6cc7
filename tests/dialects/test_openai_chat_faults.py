"""OpenAI chat: errors in the stream, bodies that are no stream, and whole answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from semflux.errors import (
    BadFrameError,
    ContextLengthError,
    EmptyResponseError,
    JsonTooDeepError,
    NotAStreamError,
    OverloadedError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    SemfluxError,
    ServerError,
    TruncatedStreamError,
)
from semflux.events import ChatEventType
from semflux.wire.limits import Limits
from tests.frames import DONE, Seen, cc, chat, chunk, completion, cu, cuts, read, sse, tc

T = ChatEventType
STOP = cc({}, "stop")


@pytest.mark.parametrize(
    "frame, cls",
    [
        (sse({"error": {"message": "quota exceeded", "type": "insufficient_quota", "code": 429}}), QuotaExceededError),
        (sse({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}), RateLimitError),
        (sse({"error": {"message": "x", "type": "overloaded_error"}}), OverloadedError),
        (sse({"error": "something broke"}), ProviderError),
        (sse({"error": True}), ProviderError),
        (sse({"object": "error", "message": "too long", "code": "context_length_exceeded"}), ContextLengthError),
        (sse({"error": {"message": "x", "code": 500}, "choices": [{"delta": {"content": "no"}}]}), ServerError),
        (sse({"message": "boom", "code": "server_error"}, "error"), ServerError),
        (sse({"error": {"message": "boom", "code": 503}}, "error"), ServerError),
        (sse(["boom"], "error"), ProviderError),
        (sse("boom", "error"), ProviderError),
        (sse("error something broke"), ProviderError),
        (sse("Error 500 something"), ProviderError),
        (sse('"error as a JSON string"'), ProviderError),
    ],
)  # fmt: skip
def test_an_error_in_the_stream_fails_it(frame: bytes, cls: type[ProviderError]) -> None:
    """In the class that the same failure has as a status; what had come is in the partial response; DONE behind
    it does not matter."""
    seen = chat(cc({"content": "par"}), frame, DONE)

    assert type(seen.error) is cls
    assert (seen.error.provider, seen.error.phase) == ("openai-chat", "stream")
    assert seen.texts(T.TEXT_DELTA) == ["par"]
    assert (seen.response.text, seen.response.partial) == ("par", True)
    assert seen.error.partial == seen.response


@pytest.mark.parametrize("value", [None, False, "", {}, 0, []])
def test_an_empty_error_is_none(value: Any) -> None:
    """Some servers send `error: null` on every chunk."""
    frame = chunk({"index": 0, "delta": {"content": "a"}}, error=value)

    assert chat(frame, STOP, DONE).response.text == "a"


def test_an_error_after_the_finish_signal_fails_the_stream_and_its_usage_counts() -> None:
    """The usage of its own frame is taken first."""
    error = {"error": {"message": "x", "code": 500}, "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    seen = chat(cc({"content": "a"}, "stop"), cu(1, 1), sse(error), DONE)

    assert isinstance(seen.error, ServerError)
    assert seen.events[-1].usage is not None
    assert (seen.events[-1].usage.input_tokens, seen.events[-1].usage.output_tokens) == (3, 4)


def test_held_text_comes_before_the_ends_of_a_failing_stream() -> None:
    """Half a tag, half a pair."""
    seen = chat(cc({"content": "<thi"}), sse({"error": "x"}))
    assert seen.response.text == "<thi"

    seen = chat(b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n', sse({"error": "x"}))
    assert seen.response.text == "a\ufffd"


# Frames that are no JSON, or too much of it.


@pytest.mark.parametrize(
    "data, cls, kind",
    [
        ("{not json", BadFrameError, "json"),
        ('{"choices":[{"delta":{"content":"a"},"x":NaN}]}', BadFrameError, "json"),
        ('{"choices":[{"delta":{"content":"a"},"x":Infinity}]}', BadFrameError, "json"),
        ('{"choices":[{"delta":{"content":"a"},"logprobs":{"x":1e999}}]}', BadFrameError, "json"),
        ('{"choices":[{"delta":{"content":"a"},"x":' + "9" * 5000 + "}]}", BadFrameError, "json"),
        (
            '{"choices":[{"delta":{"content":"a"},"x":' + "[" * 100_000 + "]" * 100_000 + "}]}",
            JsonTooDeepError,
            None,
        ),
    ],
    ids=["broken", "NaN", "Infinity", "1e999", "5000 digits", "deep"],
)
def test_a_frame_that_is_no_json_fails_the_stream(
    data: str, cls: type[SemfluxError], kind: str | None
) -> None:
    """Unless the finish signal has come; the message quotes nothing of it."""
    error = chat(cc({"content": "a"}), sse(data), STOP, DONE).error

    assert type(error) is cls
    assert kind is None or error.kind == kind
    assert "content" not in str(error)
    assert chat(cc({"content": "a"}), STOP, sse(data), DONE).error is None


def test_the_bounds_on_json_are_those_that_were_asked_for() -> None:
    """A depth that the default allows, on the short and on the general way."""
    limits = Limits(max_json_depth=6)
    shallow = cc({"content": "a"})
    deep = chunk({"index": 0, "delta": {"content": "a"}, "x": [[[[1]]]]})

    assert chat(shallow, STOP, DONE, limits=limits).error is None
    assert isinstance(chat(deep, STOP, DONE, limits=limits).error, JsonTooDeepError)
    assert isinstance(read(deep[6:-2], "openai-chat", limits=limits).error, JsonTooDeepError)


def test_invalid_utf8_becomes_replacement_characters() -> None:
    """And does not kill the stream."""
    frame = cc({"content": "a?b"}).replace(b"?", b"\xff")

    assert chat(frame, STOP, DONE).response.text == "a\ufffdb"


def test_names_and_ids_hold_no_half_pairs() -> None:
    """Every string of an event can be written."""
    frame = (
        rb'data: {"id":"i\ud83d","model":"m","choices":[{"delta":{"tool_calls":[{"index":0,"id":"a\ud83d",'
    )
    frame += (
        rb'"function":{"name":"f\ud83d","arguments":"{\"x\":\"\\ud83d\"}"}}]},"finish_reason":"tool_calls"}]}'
        b"\n\n"
    )
    seen = chat(frame, DONE)

    assert seen.response.provider_response_id == "i\ufffd"
    assert [(call.id, call.name, call.arguments) for call in seen.response.tool_calls] == [
        ("a\ufffd", "f\ufffd", {"x": "\ufffd"}),
    ]  # fmt: skip


def test_control_characters_in_text_are_kept() -> None:
    """NUL, and U+2028 and its like, which end no line."""
    assert chat(cc({"content": "a\u0000\u2028b\u0085c"}), STOP, DONE).response.text == "a\u0000\u2028b\u0085c"


# Bodies that are something else.


@pytest.mark.parametrize(
    "body, cls",
    [
        (b"", EmptyResponseError),
        (b"<!doctype html>\n<html><body>502 Bad Gateway</body></html>\n", NotAStreamError),
        (b"502 Bad Gateway\r\n", NotAStreamError),
        (b"<html>", TruncatedStreamError),
        (b"\n\n : hello\n\n", NotAStreamError),
        (b": hello\n\n", TruncatedStreamError),
        (b"   \n \n", NotAStreamError),
        (b"\n\r\n", TruncatedStreamError),
        (b"[1, 2]", NotAStreamError),
        (b"[]", NotAStreamError),
        (b'{"a": 1', TruncatedStreamError),
        (b'{"a": nonsense}', NotAStreamError),
        (b'{"error": {"message": "no such model", "code": "model_not_found"}}', ProviderError),
        (b'[{"error": {"message": "x", "code": 500}}]', ServerError),
        (b'{"object": "list", "data": []}', ProviderError),
        (b"\xef\xbb\xbf  \n {}", ProviderError),
    ],
)  # fmt: skip
def test_a_body_that_is_no_stream_says_what_it_is(body: bytes, cls: type[SemfluxError]) -> None:
    """A page, nothing, an error as plain JSON, JSON of another kind; however it is cut."""
    errors = [read(data, "openai-chat").error for data in (body, cuts(body, 1))]

    assert all(isinstance(error, cls) for error in errors)
    assert str(errors[0]) == str(errors[1])


def test_blanks_before_the_json_are_looked_through_only_so_far() -> None:
    """The same, however the bytes are cut."""
    body = b"\n" * 5000 + b"{}"

    errors = [read(data, "openai-chat").error for data in (body, cuts(body, 1), cuts(body, 4096))]
    assert len({(type(error), str(error)) for error in errors}) == 1


# Whole answers.


MESSAGES: list[tuple[dict[str, Any], str, list[dict[str, Any]]]] = [
    ({"role": "assistant", "content": "Hello"}, "stop", [{"content": "Hel"}, {"content": "lo"}]),
    ({"content": None, "refusal": "I won't"}, "stop", [{"refusal": "I "}, {"refusal": "won't"}]),
    ({"content": "x", "reasoning_content": "hm"}, "stop", [{"reasoning_content": "hm"}, {"content": "x"}]),
    ({"content": "<think>hm</think>x"}, "length", [{"content": "<think>hm"}, {"content": "</think>x"}]),
    (
        {
            "content": None,
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        "tool_calls",
        [tc(0, "a", "f", "{"), tc(0, None, None, "}")],
    ),
    (
        {
            "content": "A",
            "annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.example/"}}],
        },
        "stop",
        [
            {"content": "A"},
            {"annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.example/"}}]},
        ],
    ),
]


@pytest.mark.parametrize("message, finish, deltas", MESSAGES)
def test_a_whole_answer_means_what_its_stream_means(
    message: dict[str, Any], finish: str, deltas: list[dict[str, Any]]
) -> None:
    """The same response but for the cut of the deltas."""
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    whole = read(completion(message, finish, usage=usage), "openai-chat")
    streamed = chat(*[cc(delta) for delta in deltas], cc({}, finish), chunk(usage=usage), DONE)

    assert response_of(whole) == response_of(streamed)
    assert whole.repairs == streamed.repairs == {}


def response_of(seen: Seen) -> dict[str, Any]:
    return {**seen.response.to_dict(), "response_id": ""}


def test_each_call_of_a_whole_answer_is_a_call_of_its_own() -> None:
    """With the same id, or none."""
    call = {"function": {"name": "f", "arguments": "{}"}}
    seen = read(
        completion({"tool_calls": [call, call, {"id": "x", **call}, {"id": "x", **call}]}, "tool_calls"),
        "openai-chat",
    )

    assert [call[0] for call in seen.calls] == ["call_0_0", "call_0_1", "x", "call_0_3"]


def test_audio_of_a_whole_answer_is_done() -> None:
    """Nothing more of it will come."""
    seen = read(completion({"content": None, "audio": {"data": "QUJD", "transcript": "Hi"}}), "openai-chat")

    assert seen.response.text == "Hi"
    assert [block.data for block in seen.response.media] == ["QUJD"]


def test_a_whole_answer_may_be_the_only_item_of_a_list_and_have_blanks_around_it() -> None:
    """Some proxies wrap it."""
    body = b" \n[" + completion({"content": "hi"}) + b"]\n"

    assert read(cuts(body, 1), "openai-chat").response.text == "hi"


def test_an_answer_without_a_finish_reason_is_whole_all_the_same() -> None:
    """It ended where its JSON did."""
    seen = read(completion({"content": "hi"}, None), "openai-chat")

    assert (seen.response.finish_reason, seen.response.provider_finish_reason) == ("stop", None)


def test_a_whole_answer_too_large_is_refused_while_it_comes() -> None:
    """At the bound on one frame."""
    error = read(
        [completion({"content": "x" * 999}), b" "], "openai-chat", limits=Limits(max_event_bytes=500)
    ).error

    assert error is not None
    assert (type(error).__name__, error.kind) == ("ResponseTooLargeError", "bytes")


def test_json_cut_anywhere_is_an_error() -> None:
    """And one of ours, whatever the place."""
    body = completion(
        {"content": "hi", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}
    )

    for size in range(1, len(body)):
        assert isinstance(read(body[:size], "openai-chat").error, TruncatedStreamError | NotAStreamError)


def test_json_lines_instead_of_events_are_no_stream() -> None:
    """The wrong dialect."""
    assert isinstance(read(b'{"a":1}\n{"a":2}\n', "openai-chat").error, NotAStreamError)


def test_an_error_can_be_shown() -> None:
    """It says who and what, and what to do."""
    seen = chat(sse({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}))

    assert str(seen.error).startswith(
        "openai-chat reported an error (insufficient_quota): You exceeded your quota"
    )
    assert json.dumps(seen.events[-1].to_dict())
