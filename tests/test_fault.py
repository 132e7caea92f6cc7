"""Failures told inside a stream: error objects, codes and what they mean."""

from __future__ import annotations

import pytest

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
    RequestTooLargeError,
    ServerError,
)
from semflux.fault import Fault, read_fault
from semflux.http_errors import error_from_code, error_from_object


@pytest.mark.parametrize(
    "word, cls, retryable",
    [
        ("overloaded_error", OverloadedError, True),
        ("rate_limit_error", RateLimitError, True),
        ("rate_limit_exceeded", RateLimitError, True),
        ("rateLimitExceeded", RateLimitError, True),
        ("RESOURCE_EXHAUSTED", RateLimitError, True),
        ("ThrottlingException", RateLimitError, True),
        ("insufficient_quota", QuotaExceededError, False),
        ("invalid_request_error", BadRequestError, False),
        ("ValidationException", BadRequestError, False),
        ("CONTEXT_LENGTH_EXCEEDED", ContextLengthError, False),
        ("authentication_error", AuthenticationError, False),
        ("permission_error", PermissionDeniedError, False),
        ("not_found_error", NotFoundError, False),
        ("request_too_large", RequestTooLargeError, False),
        ("api_error", ServerError, True),
        ("server_error", ServerError, True),
        ("internal_error", ServerError, True),
        ("InternalServerException", ServerError, True),
        ("timeout_error", ServerError, True),
        ("conflict_error", ConflictError, True),
        (429, RateLimitError, True),
        ("429", RateLimitError, True),
        ("501", ServerError, False),
        ("1301", ProviderError, False),
        ("999", ProviderError, False),
        (200, ProviderError, False),
        ("something_new", ProviderError, False),
        (None, ProviderError, False),
    ],
)
def test_a_code_in_the_stream_has_the_class_it_has_as_a_status(
    word: str | int | None, cls: type, retryable: bool
) -> None:
    """M1 and M2; numbers are statuses, unknown words give the plain class."""
    error = error_from_code(word, "m", provider="acme")
    assert (type(error), error.retryable, error.phase) == (cls, retryable, "stream")


def test_an_error_from_a_code_keeps_what_it_is_told() -> None:
    """For a dialect that has taken its frame apart."""
    error = error_from_code(
        "overloaded_error",
        "Overloaded",
        provider="acme",
        status=529,
        phase="first_event",
        request_id="r1",
        retry_after=2.0,
        attempts=3,
    )
    assert error.describe() == {
        "class": "OverloadedError",
        "message": "acme reported an error (overloaded_error): Overloaded",
        "kind": "overloaded",
        "phase": "first_event",
        "provider": "acme",
        "status": 529,
        "code": "overloaded_error",
        "request_id": "r1",
        "retryable": True,
        "retry_after": 2.0,
        "attempts": 3,
    }


@pytest.mark.parametrize(
    "value, cls, status, code, message",
    [
        (
            {"message": "m", "type": "server_error", "param": None, "code": None},
            ServerError,
            None,
            "server_error",
            "the provider reported an error (server_error): m",
        ),
        (
            {"type": "error", "error": {"details": None, "type": "overloaded_error", "message": "m"}},
            OverloadedError,
            None,
            "overloaded_error",
            "the provider reported an error (overloaded_error): m",
        ),
        (
            {
                "error": {
                    "message": "m",
                    "type": "invalid_request_error",
                    "code": "tool_use_failed",
                    "status_code": 400,
                }
            },
            BadRequestError,
            400,
            "tool_use_failed",
            "the provider reported an error (tool_use_failed): m",
        ),
        (
            {"error": {"message": "m", "code": 429}},
            RateLimitError,
            429,
            "429",
            "the provider reported an error (429): m",
        ),
        (
            "the model is overloaded",
            OverloadedError,
            None,
            None,
            "the provider reported an error: the model is overloaded",
        ),
        (None, ProviderError, None, None, "the provider reported an error."),
    ],
)
def test_an_error_object_of_a_stream_is_read(
    value: object, cls: type, status: int | None, code: str | None, message: str
) -> None:
    """The frame, the object in it, or plain text."""
    error = error_from_object(value, provider=None)
    assert (type(error), error.status, error.code, str(error)) == (cls, status, code, message)


def test_a_fault_keeps_the_words_in_order() -> None:
    """Code before type before status, those of the error object before those around it."""
    value = {
        "type": "outer",
        "request_id": "r",
        "error": {"status": "S", "type": "t", "code": "c", "message": "m"},
    }
    assert read_fault(value) == Fault("m", ("c", "t", "S", "outer"), None, "r")
