"""`semflux replay`: recorded bytes of a provider as events, text or a response."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from semflux.cli.outcome import status_of, tell_outcome
from semflux.cli.printer import Printer, to_json
from semflux.errors import ConfigurationError, SemfluxError
from semflux.events import AnyChatEvent, TextDelta
from semflux.flux.parse import parse

Format: TypeAlias = Literal["events", "text", "response"]
"""What is printed."""

DEFAULT_CHUNK = 16 * 1024
"""Bytes that are read at a time, at most."""


def run_replay(arguments: argparse.Namespace, out: Printer, err: Printer) -> int:
    """`semflux replay FILE --dialect D --format F [--strict] [--chunk N]`; gives the exit status."""
    show = _SHOWS[arguments.format]
    last: AnyChatEvent | None = None
    raised: list[Exception] = []

    def on_next(event: AnyChatEvent) -> None:
        nonlocal last
        last = event
        show(event, out)

    def on_error(error: Exception) -> None:
        # The stream's own error is its last event too; what else comes here was raised by our writing.
        if not isinstance(error, SemfluxError):
            raised.append(error)

    with _opened(arguments.file) as file:
        chunks = _chunks(file, arguments.chunk)
        # A synchronous source: everything has happened when `subscribe` returns.
        parse(chunks, dialect=arguments.dialect, strict=arguments.strict).subscribe(on_next, on_error)
    if raised:
        raise raised[0]
    if out.is_terminal:
        out.end_line()
    tell_outcome(err, last)
    return status_of(last)


def _opened(name: str) -> contextlib.AbstractContextManager[BinaryIO]:
    if name == "-":
        if sys.stdin is None:
            raise ConfigurationError("standard input is closed: name a file, or pipe one in")
        return contextlib.nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise ConfigurationError(f"cannot read {name!r}: {error.strerror or type(error).__name__}") from None


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """What is there of *file*, *size* bytes at most at a time: a live pipe is shown as it comes."""
    read: Callable[[int], bytes] = getattr(file, "read1", file.read)
    while data := read(size):
        yield data


def _show_event(event: AnyChatEvent, out: Printer) -> None:
    out.write(to_json(event.to_dict()) + "\n")


def _show_text(event: AnyChatEvent, out: Printer) -> None:
    if isinstance(event, TextDelta):
        out.write(event.text)


def _show_response(event: AnyChatEvent, out: Printer) -> None:
    if event.is_terminal and event.response is not None:
        out.write(to_json(event.response.to_dict()) + "\n")


_SHOWS: dict[Format, Callable[[AnyChatEvent, Printer], None]] = {
    "events": _show_event,
    "text": _show_text,
    "response": _show_response,
}

__all__ = ("DEFAULT_CHUNK", "Format", "run_replay")
