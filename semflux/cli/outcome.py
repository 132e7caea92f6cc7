"""How a stream ended: the exit status, and what is said about it on standard error."""

from __future__ import annotations

from semflux.cli.printer import RED, Printer
from semflux.errors import ConfigurationError, SemfluxError
from semflux.events import Abort, ChatEvent, Error
from semflux.response import ChatResponse

OK = 0
"""The stream ended in RESPONSE_END."""
FAILED = 1
"""The stream ended in ERROR, or the answer could not be written."""
WRONG_USAGE = 2
"""The command was wrong: an argument, a file, a model, a missing key."""
ABORTED = 3
"""The stream ended in ABORT."""
INTERRUPTED = 130
"""Ctrl-C: 128 and the number of SIGINT, as shells count."""
BROKEN_PIPE = 141
"""Whoever read our output has gone: 128 and the number of SIGPIPE."""


def status_of(last: ChatEvent | None) -> int:
    """The exit status of a stream whose last event is *last*."""
    if isinstance(last, Error):
        return status_of_error(last.error)
    return ABORTED if isinstance(last, Abort) else OK


def status_of_error(error: Exception) -> int:
    """The exit status of a failure."""
    return WRONG_USAGE if isinstance(error, ConfigurationError) else FAILED


def tell_error(err: Printer, error: Exception) -> None:
    """Say what went wrong, in one line."""
    err.line(f"semflux: {describe(error)}", RED)


def describe(error: Exception) -> str:
    """*error* in a sentence: its class, its message, and what support would ask for."""
    text = str(error) or "no details"
    if isinstance(error, ConfigurationError):
        return text
    if isinstance(error, OSError) and not isinstance(error, SemfluxError):
        name = f" {error.filename!r}" if error.filename else ""
        return f"{error.strerror or text}{name}"
    cause = error.__cause__
    if isinstance(cause, OSError):
        text = f"the input could not be read: {cause.strerror or type(cause).__name__}"
    facts: list[str] = []
    if isinstance(error, SemfluxError):
        if error.status is not None and str(error.status) not in text:
            facts.append(f"status {error.status}")
        if error.request_id:
            facts.append(f"request id {error.request_id}")
        if error.retry_after is not None:
            facts.append(f"try again in {error.retry_after:g} s")
    return f"{type(error).__name__}: {text}" + (f" ({', '.join(facts)})" if facts else "")


def tell_outcome(err: Printer, last: ChatEvent | None) -> None:
    """Say how a stream ended, if not well, and what was mended on the way."""
    response = last.response if last is not None else None
    if isinstance(response, ChatResponse) and response.repairs:
        counts = ", ".join([f"{kind} {count}" for kind, count in sorted(response.repairs.repairs.items())])
        err.line(f"semflux: mended what the provider got wrong: {counts}")
    if isinstance(last, Error):
        tell_error(err, last.error)
    elif isinstance(last, Abort):
        err.line(f"semflux: the stream was aborted: {last.reason or 'no reason given'}", RED)


__all__ = (
    "ABORTED",
    "BROKEN_PIPE",
    "FAILED",
    "INTERRUPTED",
    "OK",
    "WRONG_USAGE",
    "describe",
    "status_of",
    "status_of_error",
    "tell_error",
    "tell_outcome",
)
