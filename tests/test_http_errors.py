"""Refusals as errors: by status and body, and by error objects in the stream."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semflux.errors import (
    AuthenticationError,
    BadRequestError,
    ConflictError,
    ContextLengthError,
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
)
from semflux.http_errors import error_for_status, error_from_object, retry_after
from semflux.secret import Secret

KEY = "canary-Q7xV2mP9sLkR4tZ8"


def failed(status: int, body: object = b"", **headers: str) -> ProviderError:
    """The error for *status*; *body* is made JSON where it is no text, headers are named with `_` for `-`."""
    content = body if isinstance(body, (str, bytes)) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return error_for_status(status, named, content, provider="acme", attempts=1, now=784_111_777.0)


@pytest.mark.parametrize(
    "status, cls, retryable",
    [
        (400, BadRequestError, False),
        (401, AuthenticationError, False),
        (402, QuotaExceededError, False),
        (403, PermissionDeniedError, False),
        (404, NotFoundError, False),
        (408, RequestTimeoutError, True),
        (409, ConflictError, True),
        (413, RequestTooLargeError, False),
        (418, ProviderError, False),
        (422, BadRequestError, False),
        (429, RateLimitError, True),
        (500, ServerError, True),
        (501, ServerError, False),
        (502, ServerError, True),
        (503, ServerError, True),
        (504, ServerError, True),
        (529, OverloadedError, True),
        (302, RedirectRefusedError, False),
        (600, ProviderError, False),
    ],
)
def test_a_status_has_its_class_and_its_answer_to_retry(status: int, cls: type, retryable: bool) -> None:
    """S1 to S10; an empty body says no more."""
    error = failed(status)
    assert (type(error), error.retryable, error.status, error.phase, error.provider, error.attempts) == (
        cls,
        retryable,
        status,
        "headers",
        "acme",
        1,
    )


@pytest.mark.parametrize(
    "status, body, cls",
    [
        (400, {"error": {"code": "context_length_exceeded", "message": "m"}}, ContextLengthError),
        (
            400,
            {"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}},
            ContextLengthError,
        ),
        (400, {"error": {"type": "exceed_context_size_error", "message": "m"}}, ContextLengthError),
        (
            400,
            {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}},
            QuotaExceededError,
        ),
        (400, {"error": {"type": "server_error", "message": "m"}}, BadRequestError),
        (403, {"error": {"code": "insufficient_quota", "message": "m"}}, QuotaExceededError),
        (413, {"error": {"code": "context_length_exceeded", "message": "m"}}, ContextLengthError),
        (429, {"error": {"code": "insufficient_quota", "message": "m"}}, QuotaExceededError),
        (429, {"error": {"type": "enforced_spend_limit_reached", "message": "m"}}, QuotaExceededError),
        (429, {"error": {"type": "billing_error", "message": "m"}}, QuotaExceededError),
        (
            429,
            {"error": {"message": "see https://h/account/billing to raise your rate limit"}},
            RateLimitError,
        ),
        (429, {"error": {"type": "engine_overloaded_error", "message": "m"}}, OverloadedError),
        (418, {"error": {"code": "rate_limit_exceeded", "message": "m"}}, RateLimitError),
        (500, {"error": {"type": "overloaded_error", "message": "m"}}, OverloadedError),
        (
            503,
            {"error": {"code": 503, "message": "The model is overloaded", "status": "UNAVAILABLE"}},
            OverloadedError,
        ),
        (503, {"error": {"type": "service_unavailable_error", "message": "m"}}, ServerError),
    ],
)
def test_a_code_or_message_makes_the_class_sharper(status: int, body: object, cls: type) -> None:
    """Only along its own line: a 400 is never the server's fault."""
    assert type(failed(status, body)) is cls


@pytest.mark.parametrize(
    "status, said, expected",
    [(400, "true", True), (500, "false", False), (429, "FALSE", False), (500, "maybe", True)],
)
def test_x_should_retry_wins(status: int, said: str, expected: bool) -> None:
    """S13."""
    assert failed(status, x_should_retry=said).retryable is expected


@pytest.mark.parametrize(
    "headers, expected",
    [
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "1e9"}, 1e9),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "NaN"}, None),
        ({"retry-after": "Infinity"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:47 GMT"}, 10.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:27 GMT"}, None),
        ({"retry-after": "Sun, 06 Foo 1994 08:49:47 GMT"}, None),
        ({"retry-after": "Sun, 66 Nov 1994 08:49:47 GMT"}, None),
        ({"retry-after-ms": "250", "retry-after": "20"}, 0.25),
        ({"retry-after-ms": "-1", "retry-after": "20"}, 20.0),
        ({}, None),
    ],
)
def test_the_wait_is_read_in_all_its_forms(headers: dict[str, str], expected: float | None) -> None:
    """S7: milliseconds win; what is not above 0 and finite is no answer."""
    assert retry_after(headers, now=784_111_777.0) == expected


def test_a_date_without_a_clock_is_no_answer() -> None:
    """The time is an argument here."""
    assert retry_after({"retry-after": "Sun, 06 Nov 1994 08:49:47 GMT"}) is None


def test_the_wait_is_on_the_error() -> None:
    """Whoever retries decides what is too long."""
    assert failed(429, Retry_After="90").retry_after == 90.0


@pytest.mark.parametrize(
    "body, message, code",
    [
        ({"error": {"message": "m", "type": "t", "code": "c"}}, "acme answered 418 (c): m", "c"),
        ({"error": {"message": "m", "type": "t", "code": None}}, "acme answered 418 (t): m", "t"),
        (
            {"error": {"message": "m", "code": 418, "status": "TEAPOT"}},
            "acme answered 418 (TEAPOT): m",
            "TEAPOT",
        ),
        ({"error": {"message": "m", "code": 1301}}, "acme answered 418 (1301): m", "1301"),
        ({"type": "error", "error": {"type": "t", "message": "m"}}, "acme answered 418 (t): m", "t"),
        ({"error": "m"}, "acme answered 418: m", None),
        ({"error": "c", "message": "m"}, "acme answered 418 (c): m", "c"),
        ({"error": {"error": {"message": "m"}}}, "acme answered 418: m", None),
        ({"message": "m"}, "acme answered 418: m", None),
        ({"detail": "m"}, "acme answered 418: m", None),
        ({"detail": [{"msg": "a"}, {"msg": "b"}, {}, {"msg": "c"}]}, "acme answered 418: a; b", None),
        ({"errors": [{"message": "m", "code": "c"}]}, "acme answered 418 (c): m", "c"),
        ([{"error": {"message": "m"}}], "acme answered 418: m", None),
        ({"object": "error", "message": "m", "type": "t", "code": 418}, "acme answered 418 (t): m", "t"),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": "why"}}},
            "acme answered 418: Provider returned error: why",
            None,
        ),
        ({"error": {"message": "m", "code": True}}, "acme answered 418: m", None),
        ({"error": {"message": "m", "code": "\u0441"}}, "acme answered 418: m", None),
        ([], "acme answered 418.", None),
        ({"x": 1}, "acme answered 418.", None),
        ('"m"', "acme answered 418: m", None),
        ("plain\n text\x1b[0m", "acme answered 418: plain text [0m", None),
        ("{broken", "acme answered 418: {broken", None),
        ("[" * 10_000 + "1", None, None),
        (b"\xff", "acme answered 418: \ufffd", None),
    ],
)
def test_the_providers_words_and_code_are_found(body: object, message: str | None, code: str | None) -> None:
    """Whichever of the usual shapes they come in; text that is no JSON is shown as it is, on one line."""
    error = failed(418, body)
    assert error.code == code
    assert message is None or str(error) == message


def test_a_hint_says_what_to_do() -> None:
    """Where the class knows; in a sentence of its own."""
    assert [str(failed(401, {"error": text})) for text in ("no", "No!", "")] == [
        "acme answered 401: no. Check the API key.",
        "acme answered 401: No! Check the API key.",
        "acme answered 401. Check the API key.",
    ]


def test_the_providers_message_is_cut() -> None:
    """At 2,048 characters."""
    assert len(str(failed(418, {"error": "word " * 2000}))) == len("acme answered 418: ") + 2048


@pytest.mark.parametrize(
    "body, message",
    [
        ("<html><title>502 Bad Gateway</title>" + "<p>x " * 900, "acme answered 502: 502 Bad Gateway"),
        ("<!doctype html><body><h1>Sorry</h1> <b>later</b>", "acme answered 502: Sorry later"),
        ("<p>" + "word " * 900, "acme answered 502: " + ("word " * 40)[:197] + "..."),
    ],
)
def test_of_an_html_page_only_a_little_is_shown(body: str, message: str) -> None:
    """S9: its title, else at most 200 characters of its text."""
    assert [str(failed(502, body)), str(failed(502, body, content_type="text/html"))] == [message, message]


def test_a_page_is_known_by_its_content_type_too() -> None:
    """Where it does not begin with a tag."""
    assert len(str(failed(500, "x " * 900, content_type="text/html"))) == len("acme answered 500: ") + 200


@pytest.mark.parametrize(
    "location, where",
    [
        ("https://evil.example/v1?key=canary", "evil.example"),
        ("/v2/canary", "another path of the same host"),
        ("", "another path of the same host"),
        ("https://[canary", "an unreadable address"),
        ("https://can ary\u00e9/", "an unreadable address"),
    ],
)
def test_a_redirect_shows_only_its_host(location: str, where: str) -> None:
    """S11: the rest of the address may hold a key."""
    assert str(failed(307, Location=location)) == (
        f"acme answered 307: it redirects to {where}. Redirects are not followed, since they would carry the key "
        "along; set base_url to the final address."
    )


@pytest.mark.parametrize(
    "headers, body, expected",
    [
        ({"x_request_id": "r1", "cf_ray": "r2"}, {}, "r1"),
        ({"request_id": "r1"}, {}, "r1"),
        ({"X_Amzn_RequestId": "r1"}, {}, "r1"),
        ({}, {"request_id": "r1"}, "r1"),
        ({}, {"request_id": 1}, None),
        ({"x_request_id": "a\x1bb"}, {}, None),
        ({"x_request_id": "x" * 300}, {}, "x" * 128),
        ({}, {}, None),
    ],
)
def test_the_request_id_is_kept(headers: dict[str, str], body: object, expected: str | None) -> None:
    """From the headers, else from the body; short and printable, or not at all."""
    assert failed(418, body, **headers).request_id == expected


def test_the_exception_name_of_aws_is_a_code() -> None:
    """It stands in a header, with an address behind it."""
    error = failed(400, {"message": "m"}, x_amzn_errortype="ThrottlingException:http://internal/")
    assert (type(error), error.code) == (BadRequestError, "ThrottlingException")


def test_no_part_of_a_key_stays_in_an_error() -> None:
    """S2: the body echoes it, whole and in part, and so do code and request id."""
    body = {"error": {"message": f"wrong key {KEY}, {KEY[:12]}...", "code": KEY}, "request_id": KEY}
    secrets = (Secret(f"Bearer {KEY}"),)
    errors = [
        error_for_status(401, {}, json.dumps(body), provider="acme", secrets=secrets),
        error_for_status(502, {"x-request-id": KEY}, f"<p>{KEY}", provider="acme", secrets=secrets),
        error_for_status(302, {"location": f"https://{KEY}.example"}, b"", provider="acme", secrets=secrets),
        error_from_object(body, provider="acme", secrets=secrets),
    ]
    shown = [str(error) + repr(error.__dict__) + repr(error.args) for error in errors]
    assert [
        text for text in shown if KEY[:8].lower() in text.lower() or KEY[-8:].lower() in text.lower()
    ] == []


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(
                ["error", "errors", "message", "code", "type", "status", "detail", "metadata", "raw"]
            ),
            inner,
        )
    ),
)


@given(st.integers(100, 999), JSON)
def test_no_shape_of_body_breaks_the_reading(status: int, value: object) -> None:
    """Whatever a provider sends, one ProviderError comes of it."""
    assert isinstance(failed(status, value), ProviderError)
    assert isinstance(error_from_object(value, provider="acme"), ProviderError)


@given(st.integers(100, 999), st.binary(max_size=300), st.dictionaries(st.text(), st.text()))
def test_no_bytes_and_no_headers_break_the_reading(status: int, body: bytes, headers: dict[str, str]) -> None:
    """Nor do these."""
    assert isinstance(error_for_status(status, headers, body, provider="acme", now=0.0), ProviderError)
