"""A provider's refusal as one error: by status and body, or by an error object in the stream.

Which class it is, `fault.py` knows. `x-should-retry` wins over the class's own answer to "may it be sent
again". An error holds the provider's own message, redacted and cut; never a header, a body or a URL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeAlias
from urllib.parse import urlsplit

import msgspec

from semflux.errors import (
    MAX_ERROR_TEXT,
    AuthenticationError,
    ContextLengthError,
    ErrorPhase,
    NotFoundError,
    PermissionDeniedError,
    ProviderError,
    QuotaExceededError,
    RedirectRefusedError,
)
from semflux.fault import ErrorClass, classify, http_status, is_retryable, read_fault
from semflux.redaction import mask_secrets, redact
from semflux.secret import Secret

_Secrets: TypeAlias = Iterable[Secret | str]

MAX_HTML_TEXT = 200
"""Characters of an HTML page that an error shows."""
_MAX_READ = 65_536  # bytes of a body that are looked at
_MAX_ID = 128

_HINTS: dict[ErrorClass, str] = {
    AuthenticationError: "Check the API key.",
    PermissionDeniedError: "Check what the key may do, and the region.",
    NotFoundError: "Check the model's name and base_url.",
    ContextLengthError: "Shorten the conversation, or ask for fewer tokens.",
    QuotaExceededError: "Waiting does not help: check the account's balance and limits.",
}

_ID_HEADERS = (
    "x-request-id",
    "request-id",
    "x-amzn-requestid",
    "x-amz-request-id",
    "apim-request-id",
    "x-ms-request-id",
    "x-ms-client-request-id",
    "x-goog-request-id",
    "x-trace-id",
    "cf-ray",
)


def _clean(text: str, secrets: _Secrets, limit: int = MAX_ERROR_TEXT) -> str:
    """*text* redacted, on one line, in at most *limit* characters."""
    line = " ".join("".join([c if c.isprintable() else " " for c in text[:_MAX_READ]]).split())
    line = redact(line[: 8 * limit], secrets)
    return line if len(line) <= limit else line[: limit - 3] + "..."


def _short(text: str | None, secrets: _Secrets) -> str | None:
    """A code or id that is safe to keep; None for none."""
    if text is None or not text.isascii() or not text.isprintable():
        return None
    return mask_secrets(text, secrets)[:_MAX_ID] or None


def _sentence(start: str, code: str | None, text: str, cls: ErrorClass) -> str:
    sentence = f"{start} ({code})" if code else start
    sentence = f"{sentence}: {text}" if text else f"{sentence}."
    hint = _HINTS.get(cls)
    if hint is None:
        return sentence
    return f"{sentence} {hint}" if sentence.endswith((".", "!", "?")) else f"{sentence}. {hint}"


def error_from_code(
    code: str | int | None,
    message: str,
    *,
    provider: str | None,
    status: int | None = None,
    phase: ErrorPhase = "stream",
    words: Iterable[str] = (),
    request_id: str | None = None,
    retry_after: float | None = None,
    attempts: int = 0,
    secrets: _Secrets = (),
) -> ProviderError:
    """The error for a failure told inside a stream.

    *code* is the provider's own code or type, *words* further ones, less exact. A number from 400 to 599,
    also as text, is a status. The class is the one that the same failure has as a status; an unknown code
    gives a plain `ProviderError`.
    """
    secrets = tuple(secrets)
    said = [*([] if code is None else [str(code)]), *words]
    if status is None:
        status = next((number for word in said if (number := http_status(word))), None)
    cls = classify(status, said, message)
    kept = _short(next((word for word in said if not word.isdigit()), said[0] if said else None), secrets)
    start = f"{provider or 'the provider'} reported an error"
    return cls(
        _sentence(start, kept, _clean(message, secrets), cls),
        phase=phase,
        provider=provider,
        status=status,
        code=kept,
        request_id=_short(request_id, secrets),
        retryable=is_retryable(cls, status),
        retry_after=retry_after,
        attempts=attempts,
    )


def error_from_object(
    value: object,
    *,
    provider: str | None,
    phase: ErrorPhase = "stream",
    request_id: str | None = None,
    attempts: int = 0,
    secrets: _Secrets = (),
) -> ProviderError:
    """The error for *value*, an error object of a stream as decoded JSON, or the frame around it."""
    fault = read_fault(value)
    return error_from_code(
        None,
        fault.message,
        provider=provider,
        status=fault.status,
        phase=phase,
        words=fault.words,
        request_id=request_id or fault.request_id,
        attempts=attempts,
        secrets=secrets,
    )


# RFC 9110, 5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT". The two obsolete forms are not read. strptime would
# read names of days and months in the process's own language.
_DATE = re.compile(r"[A-Za-z]{3}, (\d{2}) ([A-Za-z]{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE]\+?[0-9]{1,3})?")


def _seconds_until(text: str, now: float | None) -> float | None:
    match = _DATE.fullmatch(text)
    if match is None or now is None or match[2].lower() not in _MONTHS:
        return None
    month = _MONTHS.index(match[2].lower()) + 1
    day, year, hour, minute, second = [int(match[i]) for i in (1, 3, 4, 5, 6)]
    try:
        then = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return then.timestamp() - now


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds the provider asks to wait: `retry-after-ms`, else `retry-after` as seconds or an HTTP date.

    *headers* have lower-case names; *now* is the time in seconds since 1970, without which a date gives
    None. So do values that are not above 0 and finite.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        seconds = float(text) * scale if _SECONDS.fullmatch(text) else _seconds_until(text, now)
        if seconds is not None and 0 < seconds < math.inf:
            return seconds
    return None


_TITLE = re.compile(r"<title[^<>]{0,200}>([^<]{1,2000})", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]{0,2000}>")


def _read_body(body: bytes | str, content_type: str) -> tuple[object, int]:
    """The decoded JSON of *body*, or its text, and how many characters of the message may be shown."""
    raw = (body.encode("utf-8", "replace") if isinstance(body, str) else body).lstrip()
    if raw[:1] in (b"{", b"[", b'"') and len(raw) <= _MAX_READ:
        try:
            return msgspec.json.decode(raw), MAX_ERROR_TEXT
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            pass
    text = raw[:_MAX_READ].decode("utf-8", "replace")
    if "html" not in content_type and not text.startswith("<"):
        return text, MAX_ERROR_TEXT
    title = _TITLE.search(text)
    return title[1] if title else _TAG.sub(" ", text), MAX_HTML_TEXT


def _redirect_host(location: str) -> str:
    try:
        host = urlsplit(location).hostname
    except ValueError:
        return "an unreadable address"
    if host is None:
        return "another path of the same host"
    return host if re.fullmatch(r"[A-Za-z0-9.:_-]{1,253}", host) else "an unreadable address"


def request_id_of(headers: Mapping[str, str], secrets: _Secrets = ()) -> str | None:
    """The provider's id of a request, from the headers (names in lower case) of its answer; None for none."""
    return _short(next((headers[name] for name in _ID_HEADERS if name in headers), None), tuple(secrets))


def error_for_status(
    status: int,
    headers: Mapping[str, str],
    body: bytes | str,
    *,
    provider: str | None,
    attempts: int = 0,
    secrets: _Secrets = (),
    now: float | None = None,
) -> ProviderError:
    """The error for an answer whose status says that the request failed.

    *secrets* are what the request carried (its `Secret`s), so that an echo of them is hidden; *now* is the
    time in seconds since 1970, for a `retry-after` that is a date.
    """
    secrets = tuple(secrets)
    low = {name.lower(): value for name, value in headers.items()}
    content, limit = _read_body(body, low.get("content-type", "").lower())
    fault = read_fault(content)
    words = [*([low["x-amzn-errortype"].split(":")[0]] if "x-amzn-errortype" in low else []), *fault.words]
    cls = classify(status, words, fault.message)
    start = f"{provider or 'the provider'} answered {status}"
    text = _clean(fault.message, secrets, limit)
    if cls is RedirectRefusedError:
        # Only the host: the rest of the address may hold a key.
        text = (
            f"it redirects to {_clean(_redirect_host(low.get('location', '')), secrets)}. "
            "Redirects are not followed, since they would carry the key along; set base_url to the final address."
        )
    code = _short(next((word for word in words if not word.isdigit()), words[0] if words else None), secrets)
    wanted = low.get("x-should-retry", "").strip().lower()
    return cls(
        _sentence(start, code, text, cls),
        phase="headers",
        provider=provider,
        status=status,
        code=code,
        request_id=request_id_of(low, secrets) or _short(fault.request_id, secrets),
        retryable={"true": True, "false": False}.get(wanted, is_retryable(cls, status)),
        retry_after=retry_after(low, now=now),
        attempts=attempts,
    )


__all__ = (
    "MAX_HTML_TEXT",
    "error_for_status",
    "error_from_code",
    "error_from_object",
    "request_id_of",
    "retry_after",
)
