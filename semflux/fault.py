"""What a provider's error object says, and which error class that means.

Rule 1. The class comes from the status where there is one, else from the provider's own code or type
(`_WORDS`); a failure has the same class told by status or in the stream.
Rule 2. A code or message may only make the class of a status sharper, along `_SHARPER`: a 429 can be a
used-up quota, a 400 a prompt that is too long; a 400 is never a server's fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

import attrs

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

ErrorClass: TypeAlias = type[ProviderError]
"""A class of the provider's part of the error tree."""

_MAX_WORD = 128  # characters of a code or type that are looked at

_STATUSES: dict[int, ErrorClass] = {
    400: BadRequestError,
    401: AuthenticationError,
    402: QuotaExceededError,
    403: PermissionDeniedError,
    404: NotFoundError,
    408: RequestTimeoutError,
    409: ConflictError,
    413: RequestTooLargeError,
    422: BadRequestError,
    429: RateLimitError,
    529: OverloadedError,
}
_RANGES: dict[int, ErrorClass] = {3: RedirectRefusedError, 5: ServerError}
"""By the hundreds, for statuses that are not in the table."""

RETRIED_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed, quota aside."""

# Codes, types and exception names as OpenAI, Anthropic, Azure, Google, AWS, DeepSeek, DashScope, Groq,
# Moonshot, vLLM and llama.cpp write them; `_word` makes the spellings alike. A word that only names a
# status (service_unavailable, timeout_error: 504) has the class of that status.
_WORDS: dict[str, ErrorClass] = {
    word: cls
    for cls, words in (
        (
            ContextLengthError,
            (
                "contextlength contextlengthexceeded contextwindowexceeded exceedcontextsize maxcontextlengthexceeded "
                "modelcontextwindowexceeded prompttoolong inputtoolong"
            ),
        ),
        (
            QuotaExceededError,
            (
                "insufficientquota quotaexceeded exceededcurrentquota quota billing billinghardlimitreached "
                "billingnotactive insufficientbalance insufficientcredits insufficientfunds enforcedspendlimitreached "
                "spendlimitreached spendinglimitreached spendlimitexceeded paymentrequired arrearage "
                "allocationquotafreetieronly"
            ),
        ),
        (
            RateLimitError,
            (
                "ratelimit ratelimited ratelimitexceeded ratelimitreached toomanyrequests throttling throttled "
                "throttlingratequota throttlingallocationquota limitrequests resourceexhausted requestlimitexceeded"
            ),
        ),
        (
            OverloadedError,
            (
                "overloaded engineoverloaded modeloverloaded serverisoverloaded serveroverloaded systemoverloaded "
                "slowdown nocapacity capacityexceeded"
            ),
        ),
        (
            AuthenticationError,
            (
                "authentication invalidapikey incorrectapikey apikeyinvalid unauthorized unauthenticated "
                "invalidauthentication unrecognizedclient missingapikey expiredtoken"
            ),
        ),
        (
            PermissionDeniedError,
            (
                "permission permissiondenied forbidden accessdenied modelaccessdenied insufficientpermissions "
                "unsupportedcountryregionterritory accountdeactivated"
            ),
        ),
        (NotFoundError, "notfound modelnotfound resourcenotfound deploymentnotfound"),
        (RequestTimeoutError, "requesttimeout modeltimeout"),
        (ConflictError, "conflict aborted"),
        (RequestTooLargeError, "requesttoolarge requestentitytoolarge payloadtoolarge contenttoolarge"),
        (
            ServerError,
            (
                "api server internal internalserver internalfailure unavailable serviceunavailable badgateway "
                "gatewaytimeout timeout deadlineexceeded modelstream"
            ),
        ),
        (
            BadRequestError,
            (
                "invalidrequest badrequest validation invalidargument invalidparameter invalidvalue invalidtype "
                "invalidprompt failedprecondition unprocessableentity unsupportedparameter unsupportedvalue "
                "missingrequiredparameter tooluse toolusefailed contentfilter contentpolicyviolation datainspectionfailed"
            ),
        ),
    )
    for word in words.split()
}

_SHARPER: dict[ErrorClass, frozenset[ErrorClass]] = {
    BadRequestError: frozenset({ContextLengthError, QuotaExceededError}),
    RequestTooLargeError: frozenset({ContextLengthError}),
    PermissionDeniedError: frozenset({QuotaExceededError}),
    RateLimitError: frozenset({QuotaExceededError, OverloadedError}),
    ServerError: frozenset({OverloadedError}),
    ProviderError: frozenset({ContextLengthError, QuotaExceededError, OverloadedError}),
}

# For vendors whose codes say less than their words: Anthropic's "prompt is too long" and "credit balance
# is too low" are plain invalid_request_errors. "billing" alone proves nothing: rate limits mention it too.
_MESSAGES: tuple[tuple[re.Pattern[str], ErrorClass], ...] = (
    (
        re.compile(
            r"context (?:length|window|limit|size)|maximum (?:context|prompt) length|prompt is too long|"
            r"input is too long|input token count|too many (?:input )?tokens|reduce the length of the (?:messages|prompt)",
            re.IGNORECASE,
        ),
        ContextLengthError,
    ),
    (
        re.compile(
            r"credit balance|insufficient (?:balance|credits?|funds|quota)|out of credits|spend(?:ing)? limit",
            re.IGNORECASE,
        ),
        QuotaExceededError,
    ),
    (re.compile(r"overloaded|at capacity|no capacity|out of capacity", re.IGNORECASE), OverloadedError),
)


@attrs.frozen
class Fault:
    """What a provider's error object says, whichever way it says it."""

    message: str = attrs.field(default="", repr=False)
    """The provider's words, neither redacted nor cut; "" when it has none."""
    words: tuple[str, ...] = ()
    """Its code, type and status, the most exact first."""
    status: int | None = None
    """The HTTP status among them; None when there is none."""
    request_id: str | None = None
    """The id of the failed request, where the body has it; None when it has not."""


_MESSAGE_KEYS = ("message", "Message", "msg", "detail", "error_message", "error_description", "error")
_WORD_KEYS = ("code", "type", "status", "__type", "error_type")
_STATUS_KEYS = ("status", "status_code", "statusCode", "http_status", "code")


def _object(value: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _first(value: object) -> object:
    """*value* without the lists around it: some servers wrap the one object."""
    while items := _list(value):
        value = items[0]
    return value


def _text(value: object, depth: int = 3) -> str:
    """The words in *value*: a string, the first such field of an object, the first three of a list."""
    if isinstance(value, str):
        return value
    if depth == 0:
        return ""
    fields = _object(value) or {}
    for key in _MESSAGE_KEYS:
        if text := _text(fields.get(key), depth - 1):
            return text
    return "; ".join([text for item in _list(value)[:3] if (text := _text(item, depth - 1))])


def http_status(value: object) -> int | None:
    """*value* as an HTTP status of failure; codes of other kinds ("1301") give None."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    return value if type(value) is int and 400 <= value <= 599 else None


def read_fault(value: object) -> Fault:
    """What *value*, a decoded JSON value, says about a failure.

    Takes `{error: {message, type, code}}`, `{error: "..."}`, `{message}`, `{detail}`, `{errors: [...]}`, a bare
    error object, each also as the only item of a list, and plain text.
    """
    value = _first(value)
    outer = _object(value)
    if outer is None:
        return Fault(_text(value))
    inner = _first(outer.get("error") or outer.get("errors") or outer)
    fields = _object(inner) or outer
    message = _text(inner) or _text(outer)
    names: list[object] = []
    if isinstance(inner, str) and (told := _text({key: outer[key] for key in outer if key != "error"})):
        # {error: "rate_limited", message: "..."}: a name, and the words beside it.
        message = told
        names.append(inner)
    raw = (_object(fields.get("metadata")) or {}).get("raw")
    if isinstance(raw, str):
        message = f"{message}: {raw}"  # OpenRouter: the upstream provider's own answer
    sources = (fields,) if fields is outer else (fields, outer)
    names += [part.get(key) for part in sources for key in _WORD_KEYS]
    statuses = [status for part in sources for key in _STATUS_KEYS if (status := http_status(part.get(key)))]
    request_id = outer.get("request_id")
    return Fault(
        message,
        tuple([str(name) for name in names if type(name) in (str, int) and name not in ("", "error")]),
        statuses[0] if statuses else None,
        request_id if isinstance(request_id, str) else None,
    )


def _word(text: str) -> str:
    """*text* as it stands in `_WORDS`: `overloaded_error`, `OverloadedException` are "overloaded"."""
    plain = re.sub(r"[^a-z0-9]", "", text[:_MAX_WORD].lower())
    return plain.removesuffix("exception").removesuffix("error")


def _class_of_status(status: int) -> ErrorClass:
    return _STATUSES.get(status) or _RANGES.get(status // 100, ProviderError)


def classify(status: int | None, words: Iterable[str], message: str) -> ErrorClass:
    """The class that *status*, else the first known of *words*, means, made sharper by the others."""
    named = [cls for word in words if (cls := _WORDS.get(_word(word)))]
    base = ProviderError if status is None else _class_of_status(status)
    if base is ProviderError and named:
        base = named[0]
    told = (*named, *(cls for pattern, cls in _MESSAGES if pattern.search(message)))
    return next((cls for cls in told if cls in _SHARPER.get(base, ())), base)


def is_retryable(cls: ErrorClass, status: int | None) -> bool:
    """True if the same request may succeed after such an error; of the 5xx only some are worth it."""
    if cls is ServerError and status is not None:
        return status in RETRIED_STATUSES
    return cls.default_retryable


__all__ = ("RETRIED_STATUSES", "ErrorClass", "Fault", "classify", "http_status", "is_retryable", "read_fault")
