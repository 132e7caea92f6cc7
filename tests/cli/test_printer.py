"""What reaches a terminal, and what reaches a pipe."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from semflux.cli.printer import DIM, Printer, escape, to_json

HOSTILE = "a\x1b[2Jb\x07\r\x00c\x9b31m\x7f\u202ed\u2066e\n\tf é 😀"


class Tty(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def tty(encoding: str = "utf-8") -> Any:
    return Tty(io.BytesIO(), encoding=encoding)


def written(stream: Any) -> str:
    text: str = stream.buffer.getvalue().decode(stream.encoding)
    return text


@pytest.fixture(autouse=True)
def colourful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_gets_control_characters_as_escapes() -> None:
    """C0 but line feed and tab, DEL, C1, bidirectional overrides and isolates; letters of any kind stay."""
    stream = tty()
    Printer(stream).write(HOSTILE)
    expected = "a\\x1b[2Jb\\x07\\x0d\\x00c\\x9b31m\\x7f\\u202ed\\u2066e\n\tf é 😀"
    assert written(stream) == expected
    assert escape(HOSTILE) == expected


def test_a_pipe_gets_every_byte_as_it_is() -> None:
    """UTF-8, whatever the locale says; styles are for eyes."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    Printer(stream).write(HOSTILE, DIM)
    assert stream.buffer.getvalue() == HOSTILE.encode()


def test_a_terminal_of_few_letters_gets_escapes_and_no_error() -> None:
    stream = tty("ascii")
    Printer(stream).write("é 😀")
    assert written(stream) == "\\xe9 \\U0001f600"


def test_each_write_is_flushed() -> None:
    stream = tty()
    Printer(stream).write("x")
    assert written(stream) == "x"


def test_a_style_goes_around_the_text() -> None:
    stream = tty()
    Printer(stream).write("x", DIM)
    assert written(stream) == "\x1b[2mx\x1b[0m"


@pytest.mark.parametrize(
    "variables, color", [({"NO_COLOR": "1"}, True), ({"TERM": "dumb"}, True), ({}, False)]
)
def test_colours_can_be_declined(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], color: bool
) -> None:
    """By NO_COLOR, by a terminal that has none, by an argument."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = tty()
    printer = Printer(stream, color=color)
    printer.write("x", DIM)
    printer.erase_line()
    assert written(stream) == "x"


def test_an_empty_no_color_declines_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert Printer(tty()).color


def test_a_line_is_one_line_and_starts_one() -> None:
    """What comes from elsewhere cannot make it two, not in a pipe either."""
    stream = io.TextIOWrapper(io.BytesIO())
    printer = Printer(stream)
    printer.write("half")
    printer.line("a\nb\r\n \x1bc")
    printer.end_line()
    assert stream.buffer.getvalue() == b"half\na b \\x1bc\n"


def test_a_line_can_be_taken_back() -> None:
    stream = tty()
    printer = Printer(stream)
    printer.erase_line()
    printer.write("wait")
    printer.erase_line()
    assert written(stream) == "wait\r\x1b[2K"
    assert printer.at_line_start


def test_a_closed_stream_swallows_all() -> None:
    printer = Printer(None)
    printer.line("x")
    assert not printer.is_terminal


def test_json_hides_nothing_and_harms_no_terminal() -> None:
    """Escapes of JSON itself: a reader gets back what was there, lone surrogates too."""
    value = {"text": HOSTILE + "\ud800 \u2028", "\u202ekey": [1, None, 10**50]}
    line = to_json(value)
    assert json.loads(line) == value
    assert escape(line) == line
    assert "\n" not in line
    assert "é 😀" in line
    line.encode()
