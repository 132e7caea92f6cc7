"""What goes over HTTP, without doing it: the request a dialect builds and the time it may take.

Rule 1. Keys travel in headers as `Secret`, never in a URL: a `base_url` with a key, a user or a password
in it is refused.
Rule 2. Plain http only to this machine.
Rule 3. Header names are tokens; values hold no control character and nothing outside Latin-1. An error
about a header or a URL names it and never shows its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv6Address, ip_address
from typing import Any, cast
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import attrs
import msgspec

from semflux.errors import ConfigurationError
from semflux.redaction import redact
from semflux.secret import Secret

# RFC 9110, 5.6.2: "token = 1*tchar". https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Tab is allowed within a field value; all other control characters and what Latin-1 lacks are not.
_BAD_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")
_BAD_URL = re.compile(r"[\x00-\x20\x7f\\]")
_SECRET_NAME = re.compile(r"key|token|secret|sig|pass|auth|cred|code", re.IGNORECASE)
_KEY_HEADERS = frozenset(
    {"authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization"}
)


def _reveal(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def check_header(name: str, value: str | Secret) -> None:
    """Raise a `ConfigurationError` where *name* or *value* may not be sent as an HTTP header.

    The error names the header and never shows its value.
    """
    if not _TOKEN.fullmatch(name):
        raise ConfigurationError(
            "a header name is made of letters, digits and '-' alone; one of yours is not"
        )
    # No local variable holds a revealed value: a traceback with locals would show it.
    if _BAD_VALUE.search(_reveal(value)):
        raise ConfigurationError(
            f"the value of the header {name!r} holds a line break, another control character or a letter outside "
            "Latin-1; was a key read from a file together with its line end? Then strip() it"
        )


def _check_headers(
    instance: object, attribute: attrs.Attribute[Any], value: Iterable[tuple[str, str | Secret]]
) -> None:
    for name, content in value:
        check_header(name, content)


@attrs.frozen(kw_only=True)
class HttpRequest:
    """One HTTP request, ready to be sent. Its headers are checked when it is made.

    Raises: `ConfigurationError` for a header that may not be sent.
    """

    url: str = attrs.field(repr=lambda url: repr(url.split("?")[0]))
    """The whole address; it holds no key."""
    headers: tuple[tuple[str, str | Secret], ...] = attrs.field(
        default=(), repr=False, validator=_check_headers
    )
    """Names and values in order; keys only as `Secret`."""
    body: bytes = attrs.field(default=b"", repr=lambda body: f"<{len(body)} bytes>")
    """The body; empty for none."""
    method: str = "POST"
    """The HTTP method."""


def _limit(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
        raise ConfigurationError(
            f"Timeouts({attribute.name}=...) takes seconds above zero, or None for no limit"
        )


@attrs.frozen(kw_only=True)
class Timeouts:
    """Limits in seconds; None switches one off.

    *idle* and *first* run only while the reader waits for bytes it asked for.
    """

    connect: float | None = attrs.field(default=10.0, validator=_limit)
    """To make a connection, TLS included."""
    pool: float | None = attrs.field(default=30.0, validator=_limit)
    """To wait for a free connection of the pool."""
    first: float | None = attrs.field(default=600.0, validator=_limit)
    """From sending the request to the first content event of a step; replaces *idle* until then."""
    idle: float | None = attrs.field(default=300.0, validator=_limit)
    """Between two pieces of the body; any byte counts as life, comments and pings too."""
    total: float | None = attrs.field(default=None, validator=_limit)
    """For the whole stream."""


def is_loopback(host: str) -> bool:
    """True if *host*, a name or an address without brackets, is this machine by its spelling alone.

    Nothing is looked up; spellings that only some resolvers read as an address (127.1, 0x7f.1) are not it.
    """
    host = host.rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def check_base_url(url: str, *, plain_http: bool = False) -> str:
    """*url* without a slash at its end, if it may be asked.

    A query may stay where it holds no secret (`?api-version=...`). Plain http is for this machine, and for
    others only with *plain_http*.

    Raises: `ConfigurationError`, which says what to write and never shows the URL.
    """
    if _BAD_URL.search(url):
        raise ConfigurationError("base_url holds a space, a control character or a backslash: take it out")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # `port` is read for its check alone
    except ValueError:
        raise ConfigurationError("base_url is no URL: write it like https://api.example.com/v1") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError(
            "base_url needs its scheme and host: write it like https://api.example.com/v1"
        )
    if "@" in parts.netloc:
        raise ConfigurationError(
            "base_url holds a user or password: take it out and pass the key as api_key="
        )
    if "#" in url:
        raise ConfigurationError("base_url ends in a '#' part, which is never sent: take it out")
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if _SECRET_NAME.search(name) or redact(value) != value:
            raise ConfigurationError(
                "base_url holds a key in its query, where proxies and logs see it: take it out and pass it as api_key="
            )
    if parts.scheme == "http" and not plain_http and not is_loopback(host):
        raise ConfigurationError(
            f"base_url must be https: plain http would show the key and the prompt to everyone on the way to {host} "
            "(http is for this machine alone: localhost, 127.0.0.1, [::1]; a network that you trust takes plain_http=True)"
        )
    return parts._replace(path=parts.path.rstrip("/")).geturl()


def join_url(base_url: str, path: str, query: Mapping[str, str] | None = None) -> str:
    """*base_url*, checked, with *path* added and those of *query* that it does not have yet."""
    # Whether plain http will do is the caller's to know, who has asked `check_base_url` already.
    parts = urlsplit(check_base_url(base_url, plain_http=True))
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    given = {name for name, _ in pairs}
    pairs.extend([(name, value) for name, value in (query or {}).items() if name not in given])
    return parts._replace(path=parts.path + path, query=urlencode(pairs)).geturl()


def quote_segment(text: str) -> str:
    """*text* as one segment of a URL's path."""
    return quote(text, safe="")


def _mend(value: object) -> object:
    """*value* with surrogate pairs joined and lone ones as U+FFFD: UTF-8 has no others."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
        return {_mend(key): _mend(item) for key, item in pairs.items()}
    if isinstance(value, (list, tuple)):
        return [_mend(item) for item in cast("Sequence[object]", value)]
    return value


def encode_body(body: Mapping[str, object]) -> bytes:
    """*body* as JSON in UTF-8; a lone surrogate in a text becomes U+FFFD.

    Raises: `ConfigurationError` where something in it is no JSON.
    """
    try:
        try:
            return msgspec.json.encode(body)
        except UnicodeEncodeError:
            return msgspec.json.encode(_mend(body))
    except (TypeError, ValueError, OverflowError, RecursionError):
        # None of these is chained: they may carry the prompt.
        raise ConfigurationError(
            "the request cannot be written as JSON: tool parameters, response schema, metadata and extra take "
            "dicts with string keys, lists, strings, numbers, bools and None"
        ) from None


def json_request(
    url: str,
    body: Mapping[str, object],
    *,
    headers: Iterable[tuple[str, str | Secret]],
    extra_headers: Mapping[str, str | Secret],
    stream: bool,
) -> HttpRequest:
    """A POST of *body*; *extra_headers* replace those of the same name, in any letter case.

    Values of headers that carry keys become `Secret`s. `accept-encoding`, `user-agent` and the like are the
    transport's.
    """
    merged: dict[str, tuple[str, str | Secret]] = {}
    fixed = (
        ("content-type", "application/json"),
        ("accept", "text/event-stream" if stream else "application/json"),
    )
    for name, value in (*fixed, *headers, *extra_headers.items()):
        low = name.lower()
        merged[low] = (low, Secret(value) if low in _KEY_HEADERS else value)
    return HttpRequest(url=url, headers=tuple(merged.values()), body=encode_body(body))


__all__ = (
    "HttpRequest",
    "Timeouts",
    "check_base_url",
    "check_header",
    "encode_body",
    "is_loopback",
    "join_url",
    "json_request",
    "quote_segment",
)
