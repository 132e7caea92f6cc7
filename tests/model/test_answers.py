"""What comes back over a raw socket: streams, whole answers, refusals, pages of proxies. Rows B and S of faults.md."""

from __future__ import annotations

import asyncio
import email.utils
import time
from typing import Any

import pytest

from semflux.errors import (
    AuthenticationError,
    BadRequestError,
    ConflictError,
    ContextLengthError,
    EmptyResponseError,
    NotAStreamError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    RedirectRefusedError,
    RequestTimeoutError,
    RequestTooLargeError,
    ServerError,
    TruncatedStreamError,
    UnexpectedContentTypeError,
)
from tests.faultserver import EOF, REQUEST, FaultServer, Step, answer, head
from tests.model.asking import (
    BODIES,
    CANARY,
    CHAT,
    DIALECTS,
    FRAME,
    JSON,
    SSE,
    WHOLE,
    asking,
    model_at,
    one,
    pushed,
    read,
    streamed,
    types,
)

REFUSED = ["RESPONSE_START", "ERROR"]
"""The types of a stream that the provider did not accept: no step has begun."""
HTML = b"<html><head><title>Bad gateway</title></head><body>" + b"<p>nginx</p>" * 100 + b"</body></html>"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("take", [read, pushed])
async def test_a_stream_gives_its_events_in_order(dialect: str, take: Any) -> None:
    async with asking([REQUEST, streamed(BODIES[dialect])], dialect=dialect) as (model, _):
        seen = await take(model.prompt("hi").stream())
    assert seen.error is None
    assert [name for name in types(seen) if name != "USAGE"] == [*FRAME, "STEP_END", "RESPONSE_END"]
    assert seen.response.text == "Hello"
    assert seen.response.finish_reason == "stop"
    assert seen.response.repairs.to_dict() == {"repairs": {}, "notes": {}}
    usage = seen.response.usage
    assert usage is not None
    assert usage.input_tokens == 3


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_connection_is_used_again_after_a_stream_that_ended_well(dialect: str) -> None:
    """Three calls, one connection; the same for whole answers."""
    script: list[Step] = [
        REQUEST,
        streamed(BODIES[dialect]),
        REQUEST,
        streamed(BODIES[dialect]),
        REQUEST,
        answer(WHOLE[dialect], JSON),
    ]
    async with asking(script, dialect=dialect) as (model, server):
        for _ in range(3):
            assert (await model.prompt("hi").call()).text == "Hello"
        assert len(server.requests) == 3
        assert len(server.seen) == 1


async def test_a_connection_is_used_again_after_a_refusal() -> None:
    script: list[Step] = [REQUEST, answer(b"{}", JSON, status="400 Bad"), REQUEST, streamed(CHAT)]
    async with asking(script) as (model, server):
        with pytest.raises(BadRequestError):
            await model.prompt("hi").call()
        await model.prompt("hi").call()
        assert len(server.seen) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "kind", [JSON, "Content-Type: application/vnd.x+json; charset=utf-8", SSE, "X-None: 1"]
)
async def test_a_whole_answer_gives_the_same_events_as_a_stream(dialect: str, kind: str) -> None:
    """B4. Whatever it calls itself, JSON where a stream should be is seen by its first byte."""
    seen = await one(answer(WHOLE[dialect], kind), dialect=dialect)
    assert seen.error is None
    assert [name for name in types(seen) if name not in ("USAGE", "TEXT_DELTA")] == [
        "RESPONSE_START",
        "STEP_START",
        "TEXT_START",
        "TEXT_END",
        "STEP_END",
        "RESPONSE_END",
    ]
    streamed_one = (await one(streamed(BODIES[dialect]), dialect=dialect)).response
    mine = seen.response
    assert (mine.text, mine.finish_reason, mine.message) == ("Hello", "stop", streamed_one.message)
    assert mine.usage is not None
    assert streamed_one.usage is not None
    assert mine.usage.input_tokens == streamed_one.usage.input_tokens


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "kind",
    [
        "X-None: 1",
        "Content-Type: text/plain",
        "Content-Type: application/octet-stream",
        "Content-Type: application/x-ndjson",
        JSON,
    ],
)
async def test_a_stream_under_a_wrong_content_type_is_read_and_counted(dialect: str, kind: str) -> None:
    """B5. JSON too: some servers say it whatever they send."""
    seen = await one(streamed(BODIES[dialect], kind), dialect=dialect)
    assert seen.response.text == "Hello"
    assert dict(seen.response.repairs.notes) == {"content_type": 1}


@pytest.mark.parametrize(
    "kind", ["text/event-stream", "TEXT/Event-Stream; charset=utf-8", "text/event-stream;x"]
)
async def test_the_proper_content_type_is_not_counted(kind: str) -> None:
    seen = await one(streamed(CHAT, f"Content-Type: {kind}"))
    assert dict(seen.response.repairs.notes) == {}


async def test_a_page_is_no_stream() -> None:
    """B1. The error shows the beginning of it, on one line."""
    seen = await one(answer(HTML, "Content-Type: text/html; charset=utf-8", "x-request-id: r1"))
    assert types(seen) == REFUSED
    error = seen.error
    assert isinstance(error, UnexpectedContentTypeError)
    assert (error.status, error.attempts, error.request_id, error.provider) == (200, 1, "r1", "openai")
    assert "text/html" in str(error)
    assert "Bad gateway" in str(error)
    assert "base_url" in str(error)
    assert len(str(error)) < 400
    assert "\n" not in str(error)


async def test_a_page_that_breaks_off_is_told_as_far_as_it_came() -> None:
    seen = await one(head("200 OK", "Content-Type: text/html", length=1000), b"<p>begin", EOF_NOW)
    assert isinstance(seen.error, UnexpectedContentTypeError)
    assert "begin" in str(seen.error)


async def EOF_NOW(seen: Any) -> None:
    """Close without the rest."""
    seen.writer.close()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", [SSE, "X-None: 1", "Content-Type: text/plain", JSON])
async def test_a_page_that_calls_itself_a_stream_is_none(dialect: str, kind: str) -> None:
    """B2."""
    seen = await one(answer(HTML + b"\n", kind), dialect=dialect)
    assert isinstance(seen.error, NotAStreamError)
    assert types(seen) == ["RESPONSE_START", "STEP_START", "STEP_END", "ERROR"]


@pytest.mark.parametrize("kind", [SSE, JSON, "X-None: 1"])
@pytest.mark.parametrize(
    "dialect, body, cls, code",
    [
        (
            "openai-chat",
            b'{"error": {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}',
            RateLimitError,
            "rate_limit_exceeded",
        ),
        (
            "anthropic",
            b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}',
            OverloadedError,
            "overloaded_error",
        ),
        ("openai-chat", b'{"error": {"message": "hm", "code": "novel"}}', ProviderError, "novel"),
    ],
)
async def test_an_error_with_status_200_is_that_error(
    kind: str, dialect: str, body: bytes, cls: type[ProviderError], code: str
) -> None:
    """B3."""
    seen = await one(answer(body, kind, "request-id: r7"), dialect=dialect)
    assert type(seen.error) is cls
    assert seen.error.code == code
    assert (seen.error.attempts, seen.error.request_id) == (1, "r7")
    assert seen.events[-1].error is seen.error


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "script",
    [
        [head("204 No Content")],
        [answer(b"", SSE)],
        [answer(b"", JSON)],
        [answer(b"")],
        [streamed(b"")],
        [head("200 OK", SSE)],
        [head("205 Reset Content", length=0)],
    ],
)
async def test_no_body_at_all_is_an_empty_response(dialect: str, script: list[Any]) -> None:
    """S12."""
    seen = await one(*script, dialect=dialect)
    assert type(seen.error) is EmptyResponseError
    assert seen.error.retryable
    assert seen.error.attempts == 1


@pytest.mark.parametrize("body", [b"\n", b" ", b": ping\n\n", b"data: {", b"\xef\xbb\xbf"])
async def test_a_body_that_says_nothing_is_a_cut_stream(body: bytes) -> None:
    seen = await one(answer(body, SSE))
    assert type(seen.error) is TruncatedStreamError


@pytest.mark.parametrize("body", [b'{"choices": [', b'{"id": "c1"'])
async def test_a_whole_answer_that_is_cut_is_a_cut_stream(body: bytes) -> None:
    seen = await one(answer(body, JSON))
    assert type(seen.error) is TruncatedStreamError


@pytest.mark.parametrize("body", [b"12", b'"hello"', b"null", b"true", b"[1, 2]", b"hello"])
async def test_json_that_is_no_object_is_no_answer(body: bytes) -> None:
    seen = await one(answer(body + b"\n", JSON))
    assert type(seen.error) is NotAStreamError


STATUSES: list[tuple[str, bytes, type[ProviderError]]] = [
    ("400 Bad Request", b'{"error": {"message": "no such field", "code": "c"}}', BadRequestError),
    ("422 Unprocessable", b'{"detail": [{"msg": "no such field"}], "code": "c"}', BadRequestError),
    (
        "400 Bad Request",
        b'{"error": {"message": "This model\'s maximum context length is 8", "code": "context_length_exceeded"}}',
        ContextLengthError,
    ),
    (
        "401 Unauthorized",
        b'{"error": {"message": "wrong key", "code": "invalid_api_key"}}',
        AuthenticationError,
    ),
    ("403 Forbidden", b'{"error": {"message": "not here", "code": "c"}}', PermissionDeniedError),
    ("404 Not Found", b'{"error": {"message": "no model", "code": "model_not_found"}}', NotFoundError),
    ("408 Timeout", b"", RequestTimeoutError),
    ("409 Conflict", b"", ConflictError),
    ("413 Too Large", HTML, RequestTooLargeError),
    ("429 Slow Down", b'{"error": {"message": "later", "code": "rate_limit_exceeded"}}', RateLimitError),
    ("429 Slow Down", b'{"error": {"message": "pay", "code": "insufficient_quota"}}', QuotaExceededError),
    ("402 Pay", b'{"error": {"message": "pay"}}', QuotaExceededError),
    ("500 Oops", b'{"error": {"message": "oops", "type": "server_error"}}', ServerError),
    ("502 Bad Gateway", HTML, ServerError),
    ("503 Unavailable", b"", ServerError),
    ("504 Timeout", b"not json {", ServerError),
    ("529 Overloaded", b'{"error": {"type": "overloaded_error", "message": "Overloaded"}}', OverloadedError),
    ("418 Teapot", b"", ProviderError),
    ("599 What", b"", ServerError),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("status, body, cls", STATUSES)
async def test_a_refusal_is_the_error_of_its_status(
    dialect: str, status: str, body: bytes, cls: type[ProviderError]
) -> None:
    """S1 to S10. RESPONSE_START and ERROR, no step; one request, since nothing is retried."""
    async with asking([REQUEST, answer(body, JSON, "x-request-id: r1", status=status)], dialect=dialect) as (
        model,
        server,
    ):
        seen = await read(model.prompt("hi").stream())
        assert len(server.requests) == 1
    error = seen.error
    assert error is not None
    assert isinstance(error, cls)
    assert types(seen) == REFUSED
    assert seen.events[-1].error is error
    assert (error.status, error.phase, error.attempts) == (int(status[:3]), "headers", 1)
    assert error.request_id == "r1"
    assert error.provider == {"openai-chat": "openai", "anthropic": "anthropic"}[dialect]
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    "headers, expected",
    [
        (["retry-after: 7"], 7.0),
        (["retry-after: 7", "retry-after-ms: 1500"], 1.5),
        (["retry-after: -3"], None),
        (["retry-after: NaN"], None),
        (["retry-after: 1e9"], 1e9),
        ([], None),
    ],
)
async def test_a_refusal_says_when_to_come_back(headers: list[str], expected: float | None) -> None:
    """S7."""
    seen = await one(answer(b"{}", JSON, *headers, status="429 Slow Down"))
    assert isinstance(seen.error, RateLimitError)
    assert seen.error.retry_after == expected


async def test_a_refusal_may_say_it_with_a_date() -> None:
    date = email.utils.formatdate(time.time() + 1000, usegmt=True)
    seen = await one(answer(b"{}", JSON, f"retry-after: {date}", status="503 Later"))
    assert seen.error is not None
    assert seen.error.retry_after is not None
    assert 900 < seen.error.retry_after < 1001


@pytest.mark.parametrize("status, word, retryable", [("400 Bad", "true", True), ("500 Oops", "false", False)])
async def test_x_should_retry_wins(status: str, word: str, retryable: bool) -> None:
    """S13."""
    seen = await one(answer(b"{}", JSON, f"x-should-retry: {word}", status=status))
    assert seen.error is not None
    assert seen.error.retryable is retryable


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent", "300 Many", "304 Not Modified"]
)
async def test_a_redirect_is_refused_and_the_other_server_sees_nothing(status: str) -> None:
    """S11."""
    async with FaultServer([REQUEST, EOF]) as other:
        async with asking([REQUEST, head(status, f"Location: {other.url}?key={CANARY}", length=0)]) as (
            model,
            server,
        ):
            seen = await read(model.prompt("hi").stream())
            assert len(server.requests) == 1
        assert other.seen == []
    assert isinstance(seen.error, RedirectRefusedError)
    assert "127.0.0.1" in str(seen.error)
    assert CANARY not in str(seen.error)
    assert types(seen) == REFUSED


async def test_of_a_large_refusal_only_the_beginning_is_read() -> None:
    body = b'{"error": {"message": "' + b"x " * 200_000 + b'"}}'
    async with asking([REQUEST, head("400 Bad", JSON, length=len(body)), body, EOF]) as (model, server):
        seen = await read(model.prompt("hi").stream())
        async with asyncio.timeout(5):
            await server.seen[0].eof.wait()
    assert isinstance(seen.error, BadRequestError)
    assert len(str(seen.error)) < 2300


async def test_a_call_raises_the_error_of_the_stream() -> None:
    async with (
        FaultServer([REQUEST, answer(b"{}", JSON, status="401 Who")]) as server,
        model_at(server) as model,
    ):
        with pytest.raises(AuthenticationError) as caught:
            await model.prompt("hi").call()
    assert caught.value.attempts == 1
    assert caught.value.partial is not None
    assert caught.value.partial.steps == ()
