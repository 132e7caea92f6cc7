"""`PartialJsonReader`: values out of a JSON document, while it comes.

Each character is looked at once, or twice where it ends a number: what a piece costs is its own length, however
much came before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from semflux.errors import JsonTooDeepError, PartialJsonError
from semflux.frozen import FrozenDict, Json
from semflux.json_paths import Growth, JsonMatch, Key, Segment
from semflux.wire.json import parse_number
from semflux.wire.limits import DEFAULT_LIMITS, Limits

_SPACE = re.compile(r"[ \t\n\r]*").match
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*').match
_DIGITS = re.compile(r"[-+0-9.eE]*").match
_HEX = re.compile(r"[0-9a-fA-F]{0,4}").match
_OPENER = re.compile(r"[\[{]").search
_WORDS: dict[str, tuple[str, Any]] = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class _Frame:
    """An array or object that is open."""

    __slots__ = ("active", "is_object", "keep", "key", "wanted")

    def __init__(
        self,
        is_object: bool,
        active: list[tuple[Segment, ...]],
        wanted: bool,
        keep: list[Any] | dict[str, Any] | None,
    ) -> None:
        self.is_object = is_object
        self.active = active
        """The paths that may lead to something in it."""
        self.wanted = wanted
        self.keep = keep
        """What is in it so far; None if nobody wants to know."""
        self.key: Key = "" if is_object else 0
        """Where in it the next value stands."""


class PartialJsonReader:
    """Reads one JSON text in pieces, and tells the values that stand at *paths* as each is whole.

    What is inside comes before what it is in; a value at several paths comes once; a name that is given twice
    is told twice, and the object has the last. *partial*: strings at *paths* also come as they grow, once for each
    piece of text. *find*: the document is the first array or object in the text that has something at *paths*; what
    stands around it is no JSON. A bracket that is followed by no JSON at once (`[sic]`) is part of that.

    `feed` and `finish` must be read to their ends. After an error the reader is of no more use.
    """

    def __init__(
        self,
        paths: Iterable[tuple[Segment, ...]],
        *,
        partial: bool = False,
        find: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        tool_call_id: str | None = None,
    ) -> None:
        self._paths = list(paths)
        self._partial = partial
        self._find = find
        self._limits = limits
        self._tool_call_id = tool_call_id
        self._before = 0
        """Characters of the pieces before this one."""
        self._out: list[JsonMatch] = []
        self._frames: list[_Frame] = []
        self._state: Callable[[str, int], int] = self._seek if find else self._read_value
        self._expected = "an array or object" if find else "a value"
        self._blank = True
        self._found = False
        """Whether a document was whole."""
        self._matched = False
        self._sure = not find
        """Whether this is surely JSON."""
        self._doubt = ""
        """What was wrong with the first bracket that was none of JSON's."""
        # The value at hand.
        self._active: list[tuple[Segment, ...]] = []
        self._wanted = False
        self._kept = False
        self._pieces: list[str] = []
        self._told = 0
        """How many of the pieces have been told."""
        self._in_key = False
        self._in_string = False
        self._high = ""
        """A high surrogate that waits for its other half."""
        self._digits = ""
        self._word: tuple[str, Any] = ("", None)
        self._start = 0
        """Where the number began."""

    @property
    def is_blank(self) -> bool:
        """True if there was nothing but white space."""
        return self._blank

    def feed(self, text: str) -> Iterator[JsonMatch]:
        """The matches in the next piece of the text.

        Raises:
            PartialJsonError: if it is no JSON (kind "json").
            JsonTooDeepError: if it is nested deeper than *limits* allow.
        """
        at, end = 0, len(text)
        if self._blank and not text.isspace():
            self._blank = not text
        while at < end:
            at = self._state(text, at)
            if self._out:
                yield from self._take()
        self._before += end
        if self._partial and self._in_string and self._wanted and self._told < len(self._pieces):
            self._sure = self._matched = True
            yield JsonMatch(
                self._keys(), Growth(self._pieces, len(self._pieces)), False, self._news(), self._tool_call_id
            )

    def finish(self) -> Iterator[JsonMatch]:
        """There is no more of it: the last matches.

        Raises:
            PartialJsonError: if it is cut short (kind "cut_short"), or there is no JSON at all ("no_json").
        """
        if self._state == self._read_number and not self._frames:
            self._end_number(0)
            yield from self._take()
        elif self._found and not self._sure:
            return
        elif not self._found and self._state == self._seek:
            raise PartialJsonError(f"there is no JSON in the text{self._doubt}", kind="no_json")
        elif self._blank:
            raise PartialJsonError("there is no JSON: the text is empty", kind="no_json")
        elif self._state not in (self._seek, self._read_rest):
            raise PartialJsonError(
                f"the JSON is cut short: the text ends at character {self._before}, where {self._expected} is expected",
                kind="cut_short",
            )

    def _take(self) -> list[JsonMatch]:
        out, self._out = self._out, []
        return out

    def _keys(self) -> tuple[Key, ...]:
        return tuple([frame.key for frame in self._frames])

    def _news(self) -> str:
        news = "".join(self._pieces[self._told :])
        self._told = len(self._pieces)
        return news

    def _go(self, state: Callable[[str, int], int], expected: str) -> None:
        self._state = state
        self._expected = expected

    def _wrong(self, at: int) -> int:
        return self._refuse(at, self._before + at, f"expected {self._expected}")

    def _refuse(self, at: int, where: int, why: str) -> int:
        """It is no JSON at the character *where*, or else it goes on at *at* of this piece."""
        if self._sure:
            raise PartialJsonError(f"invalid JSON at character {where}: {why}")
        # A bracket of the prose around it, of which nothing was told yet.
        if not self._doubt:
            self._doubt = f": at character {where}, {why}"
        self._frames.clear()
        self._in_string = False
        self._go(self._seek, "an array or object")
        return at

    # Around the document

    def _seek(self, text: str, at: int) -> int:
        found = _OPENER(text, at)
        if found is None:
            return len(text)
        self._sure = False
        self._state = self._read_value
        return found.start()

    def _read_rest(self, text: str, at: int) -> int:
        at = _space(text, at)
        return at if at == len(text) else self._wrong(at)

    def _skip(self, text: str, at: int) -> int:
        return len(text)

    def _close_document(self) -> None:
        self._found = True
        if not self._find:
            self._go(self._read_rest, "nothing more")
        elif self._matched:
            self._sure = False
            self._state = self._skip
        else:
            self._sure = False
            self._go(self._seek, "an array or object")

    # Values

    def _read_value(self, text: str, at: int) -> int:
        at = _space(text, at)
        if at == len(text):
            return at
        char = text[at]
        if char == '"':
            self._begin()
            self._begin_string(in_key=False)
            return at + 1
        if char in "{[":
            self._begin()
            self._open(char == "{")
            return at + 1
        if char in _WORDS:
            self._begin()
            self._word = _WORDS[char]
            self._digits = ""
            self._go(self._read_word, self._word[0])
            return at
        if char in "-0123456789":
            self._begin()
            self._digits = ""
            self._pieces = []
            self._start = self._before + at
            self._go(self._read_number, "the rest of a number")
            return at
        return self._wrong(at)

    def _begin(self) -> None:
        """Who wants the value that begins."""
        frames = self._frames
        depth = len(frames)
        if frames:
            frame = frames[-1]
            key = frame.key
            step = depth - 1
            self._active = [path for path in frame.active if path[step] is None or path[step] == key]
            self._kept = frame.keep is not None
        else:
            self._active = self._paths
            self._kept = False
        self._wanted = False
        if self._active:
            self._wanted = any(len(path) == depth for path in self._active)
            if self._wanted:
                self._kept = True
                self._active = [path for path in self._active if len(path) > depth]

    def _open(self, is_object: bool) -> None:
        keep: list[Any] | dict[str, Any] | None = None
        if self._kept:
            keep = {} if is_object else []
        self._frames.append(_Frame(is_object, self._active, self._wanted, keep))
        if len(self._frames) > self._limits.max_json_depth:
            raise JsonTooDeepError(
                f"JSON is nested deeper than max_json_depth ({self._limits.max_json_depth})"
            )
        if is_object:
            self._go(self._read_first_name, "a name or '}'")
        else:
            self._go(self._read_first, "a value or ']'")

    def _read_first(self, text: str, at: int) -> int:
        at = _space(text, at)
        if at == len(text):
            return at
        if text[at] == "]":
            self._close()
            return at + 1
        self._state = self._read_value
        return at

    def _read_first_name(self, text: str, at: int) -> int:
        at = _space(text, at)
        if at == len(text):
            return at
        if text[at] == "}":
            self._close()
            return at + 1
        return self._read_name(text, at)

    def _read_name(self, text: str, at: int) -> int:
        at = _space(text, at)
        if at == len(text):
            return at
        if text[at] != '"':
            return self._wrong(at)
        self._begin_string(in_key=True)
        return at + 1

    def _read_colon(self, text: str, at: int) -> int:
        at = _space(text, at)
        if at == len(text):
            return at
        if text[at] != ":":
            return self._wrong(at)
        self._go(self._read_value, "a value")
        return at + 1

    def _read_comma(self, text: str, at: int) -> int:
        at = _space(text, at)
        if at == len(text):
            return at
        char = text[at]
        is_object = self._frames[-1].is_object
        if char == ",":
            if is_object:
                self._go(self._read_name, "a name")
            else:
                self._go(self._read_value, "a value")
        elif char == ("}" if is_object else "]"):
            self._close()
        else:
            return self._wrong(at)
        return at + 1

    def _close(self) -> None:
        frame = self._frames.pop()
        self._wanted = frame.wanted
        keep = frame.keep
        if keep is None:
            self._end(None)
        else:
            # What is in it is frozen already.
            self._end(FrozenDict(keep) if isinstance(keep, dict) else tuple(keep))

    def _end(self, value: Json, delta: str | None = None) -> None:
        """A value is whole."""
        frames = self._frames
        if self._wanted:
            self._matched = True
            self._out.append(JsonMatch(self._keys(), value, True, delta, self._tool_call_id))
        if not frames:
            self._close_document()
            return
        self._sure = True
        frame = frames[-1]
        keep = frame.keep
        key = frame.key
        if isinstance(key, int):
            if keep is not None:
                keep.append(value)  # type: ignore[union-attr]  # a list where keys are numbers
            frame.key = key + 1
            self._go(self._read_comma, "',' or ']'")
        else:
            if keep is not None:
                keep[key] = value  # type: ignore[call-overload]  # a dict where keys are names
            self._go(self._read_comma, "',' or '}'")

    # Words and numbers

    def _read_word(self, text: str, at: int) -> int:
        word, value = self._word
        rest = word[len(self._digits) :]
        piece = text[at : at + len(rest)]
        if not rest.startswith(piece):
            return self._wrong(at + next(i for i, char in enumerate(piece) if char != rest[i]))
        self._digits += piece
        if self._digits == word:
            self._end(value)
        return at + len(piece)

    def _read_number(self, text: str, at: int) -> int:
        stop = _end_of(_DIGITS, text, at)
        if stop > at:
            self._pieces.append(text[at:stop])
        return self._end_number(stop) if stop < len(text) else stop

    def _end_number(self, at: int) -> int:
        try:
            number = parse_number("".join(self._pieces), self._limits)
        except ValueError as error:
            why = str(error)
        else:
            self._end(number)
            return at
        return self._refuse(at, self._start, why)

    # Strings

    def _begin_string(self, in_key: bool) -> None:
        self._in_key = in_key
        self._in_string = not in_key
        self._pieces = []
        self._told = 0
        self._high = ""
        self._go(self._read_string, "the rest of a string")

    def _read_string(self, text: str, at: int) -> int:
        stop = _end_of(_PLAIN, text, at)
        if stop > at:
            self._add(text[at:stop])
            if stop == len(text):
                return stop
        char = text[stop]
        if char == '"':
            self._end_string()
        elif char == "\\":
            self._go(self._read_escape, "the rest of an escape")
        else:
            self._expected = "no control character in a string"
            return self._wrong(stop)
        return stop + 1

    def _add(self, piece: str) -> None:
        self._add_high()
        if self._in_key or self._kept:
            self._pieces.append(piece)

    def _add_high(self) -> None:
        """No other half has come."""
        if self._high:
            self._pieces.append(self._high)
            self._high = ""

    def _read_escape(self, text: str, at: int) -> int:
        char = text[at]
        if char == "u":
            self._digits = ""
            self._go(self._read_hex, "four hexadecimal digits")
            return at + 1
        plain = _ESCAPES.get(char)
        if plain is None:
            return self._wrong(at)
        self._add(plain)
        self._go(self._read_string, "the rest of a string")
        return at + 1

    def _read_hex(self, text: str, at: int) -> int:
        stop = min(_end_of(_HEX, text, at), at + 4 - len(self._digits))
        self._digits += text[at:stop]
        if len(self._digits) == 4:
            self._add_unit(int(self._digits, 16))
            self._go(self._read_string, "the rest of a string")
        elif stop < len(text):
            return self._wrong(stop)
        return stop

    def _add_unit(self, unit: int) -> None:
        if self._high and 0xDC00 <= unit < 0xE000:
            high, self._high = ord(self._high), ""
            self._add(chr(0x10000 + ((high - 0xD800) << 10) + unit - 0xDC00))
        elif 0xD800 <= unit < 0xDC00:
            self._add_high()
            self._high = chr(unit)
        else:
            self._add(chr(unit))

    def _end_string(self) -> None:
        self._add_high()
        if self._in_key:
            self._sure = True
            self._frames[-1].key = "".join(self._pieces)
            self._go(self._read_colon, "':'")
            return
        self._in_string = False
        text = "".join(self._pieces)
        self._end(text, self._news() if self._partial and self._wanted else None)


def _end_of(match: Callable[[str, int], re.Match[str] | None], text: str, at: int) -> int:
    found = match(text, at)
    assert found is not None  # each of the patterns matches nothing, too
    return found.end()


def _space(text: str, at: int) -> int:
    """Where the white space ends."""
    return at if text[at] > " " else _end_of(_SPACE, text, at)


__all__ = ("PartialJsonReader",)
