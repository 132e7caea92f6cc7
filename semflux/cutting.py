"""Where a text may be cut: between graphemes, words, lines, or where a function says, whatever the pieces it comes in.

A place is known to be an end once the character after it is known: it might go on with a combining mark. Python knows
the categories of characters, not all properties that Unicode's own rules go by: where those are missing, two
characters rather stay together.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Literal, Protocol, TypeAlias

from semflux.errors import ConfigurationError

Chunker: TypeAlias = Callable[[str], int | None]
"""Gets what waits; gives the length of its first piece, or None while that is not complete."""

CutBy: TypeAlias = Literal["word", "line", "grapheme"] | re.Pattern[str] | Chunker
"""How a text is cut."""

_KINDS = ("word", "line", "grapheme")

_FIRST_SPACELESS = "\u0e00"
_ZWJ = "\u200d"
_CONTROL = frozenset({"Cc", "Zl", "Zp"})
_MARKS = frozenset({"Mn", "Me", "Mc"})
_PICTURES = frozenset({"So", "Sm", "Sk", "Cn", "Po"})
_PREPENDED = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
_EXTENDING = frozenset("\u200c\u200d\u0e33\u0eb3\uff9e\uff9f")
_VIRAMA = 9
_PLAIN_END = "\u0300"
"""The first character that goes on with what is before it; soft controls aside, CR LF is all there is below."""


def _extends(char: str) -> bool:
    return (
        unicodedata.category(char) in _MARKS
        or char in _EXTENDING
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
    )


def _hangul(char: str) -> str:
    """L, V, T, LV, LVT, or nothing."""
    if "\u1100" <= char <= "\u115f" or "\ua960" <= char <= "\ua97c":
        return "L"
    if "\u1160" <= char <= "\u11a7" or "\ud7b0" <= char <= "\ud7c6":
        return "V"
    if "\u11a8" <= char <= "\u11ff" or "\ud7cb" <= char <= "\ud7fb":
        return "T"
    if "\uac00" <= char <= "\ud7a3":
        return "LVT" if (ord(char) - 0xAC00) % 28 else "LV"
    return ""


_SYLLABLES = {
    "L": ("L", "V", "LV", "LVT"),
    "V": ("V", "T"),
    "LV": ("V", "T"),
    "T": ("T",),
    "LVT": ("T",),
    "": (),
}


@cache
def _spaceless() -> re.Pattern[str]:
    # Not at import: it is one of the dearest things there would be, for those who never call `smooth`.
    return re.compile(
        "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
        "\u2e80-\u303f\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff9f"
        "\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
    )


def _is_spaceless(char: str) -> bool:
    """True for scripts that put no space between words, with their punctuation: Thai, Lao, Myanmar, Khmer, Han, kana."""
    return char >= _FIRST_SPACELESS and _spaceless().match(char) is not None


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def goes_on(before: str, char: str, *, paired: bool = False) -> bool:
    """True if *char* belongs to the same grapheme as *before*, the character before it. *paired*: *before* is the
    second half of a flag."""
    if char < _PLAIN_END and before < _PLAIN_END:
        return before == "\r" and char == "\n"
    if unicodedata.category(before) in _CONTROL or unicodedata.category(char) in _CONTROL:
        return False
    if _extends(char) or before in _PREPENDED:
        return True
    if before == _ZWJ:
        return unicodedata.category(char) in _PICTURES
    if _is_regional(before) and _is_regional(char):
        return not paired
    if "\ud800" <= before <= "\udbff" and "\udc00" <= char <= "\udfff":
        return True
    if unicodedata.combining(before) == _VIRAMA and unicodedata.category(char) == "Lo":
        return True
    return _hangul(char) in _SYLLABLES[_hangul(before)]


class Cutter(Protocol):
    """Cuts one text that comes in pieces."""

    def feed(self, text: str) -> list[str]:
        """More of it; the pieces that are complete now."""
        ...

    def finish(self) -> str:
        """No more of it comes: what is left. Ready for another text."""
        ...


class ScanningCutter:
    """Cuts into words, lines or graphemes; looks at each character once."""

    __slots__ = (
        "_before",
        "_cut_at",
        "_end",
        "_is_space",
        "_kind",
        "_paired",
        "_rest",
        "_spaceless",
        "max_chars",
    )

    def __init__(self, kind: str, max_chars: int) -> None:
        self._kind = kind
        self.max_chars: int = max_chars
        self._reset()

    def _reset(self) -> None:
        self._rest = ""
        self._before = ""
        self._end = 0
        """The last end of a grapheme in the rest: a piece that grows too long is cut there."""
        self._paired = False
        self._spaceless = False
        self._is_space = False

    def feed(self, text: str) -> list[str]:
        """More of it; the pieces that are complete now."""
        pieces: list[str] = []
        start, at = 0, len(self._rest)
        buffer = self._rest + text
        before, end = self._before, self._end
        for char in text:
            if before:
                if char < _PLAIN_END and before < _PLAIN_END:
                    joined = before == "\r" and char == "\n"
                else:
                    joined = goes_on(before, char, paired=self._paired)
                cut = False
                if not joined:
                    cut = self._is_end(before, char)
                    end = at
                elif at - start >= self.max_chars and end == start:
                    # One grapheme without an end: some bound there must be.
                    end = at
                if not cut and at - start >= self.max_chars:
                    pieces.append(buffer[start:end])
                    start = end
                elif cut:
                    pieces.append(buffer[start:at])
                    start = end = at
                self._paired = joined and _is_regional(char)
                if not joined:
                    self._spaceless = _is_spaceless(char)
            else:
                self._spaceless = _is_spaceless(char)
            self._is_space = char.isspace()
            before = char
            at += 1
        if before == "\n" and self._kind != "word":
            # Nothing goes on with it.
            pieces.append(buffer[start:])
            self._reset()
            return pieces
        self._before = before
        self._rest = buffer[start:]
        self._end = end - start
        return pieces

    def _is_end(self, before: str, char: str) -> bool:
        """True if a piece ends between two graphemes."""
        if self._kind == "grapheme":
            return True
        if self._kind == "line":
            return before in "\r\n"
        if self._is_space:
            return False
        return self._spaceless or char.isspace() or _is_spaceless(char)

    def finish(self) -> str:
        """What is left."""
        rest = self._rest
        self._reset()
        return rest


class AskingCutter:
    """Cuts where a function says; shows it *max_chars* at a time, so that a long text is not looked at again and again."""

    __slots__ = ("_ask", "_max_chars", "_rest")

    def __init__(self, ask: Chunker, max_chars: int) -> None:
        self._ask = ask
        self._max_chars = max_chars
        self._rest = ""

    def feed(self, text: str) -> list[str]:
        """More of it; the pieces that are complete now."""
        pieces: list[str] = []
        buffer = self._rest + text
        start, size = 0, len(buffer)
        try:
            while start < size:
                window = buffer[start : start + self._max_chars]
                length = self._ask(window)
                if length is None:
                    if size - start <= self._max_chars:
                        break
                    # Too long to wait on: all but a grapheme that may go on.
                    length = _last_end(buffer, start, start + self._max_chars) - start
                elif type(length) is not int or not 0 < length <= len(window):
                    raise ConfigurationError(
                        f"smooth(by=...): the function gave {length!r:.40} for {len(window)} characters: give the "
                        "length of the first piece, or None"
                    )
                end = _next_end(buffer, start + length, start + 2 * self._max_chars)
                if end is None:
                    break
                pieces.append(buffer[start:end])
                start = end
        except BaseException:
            # Nothing is lost: what was cut off just now is a part of the rest.
            self._rest = buffer
            raise
        self._rest = buffer[start:]
        return pieces

    def finish(self) -> str:
        """What is left."""
        rest, self._rest = self._rest, ""
        return rest


def _is_inside(text: str, at: int) -> bool:
    """True if *at* is inside a grapheme of *text*."""
    before = text[at - 1]
    paired = False
    if _is_regional(before):
        first = at - 1
        while first > 0 and _is_regional(text[first - 1]):
            first -= 1
        paired = (at - first) % 2 == 0
    return goes_on(before, text[at], paired=paired)


def _next_end(text: str, at: int, latest: int) -> int | None:
    """The first end of a grapheme from *at* on, or *latest*; None if it is not known yet."""
    while at < len(text):
        if at >= latest or not _is_inside(text, at):
            return at
        at += 1
    return at if text[at - 1] == "\n" else None


def _last_end(text: str, start: int, at: int) -> int:
    """The last end of a grapheme up to *at*; *at* itself where there is none."""
    for end in range(at, start, -1):
        if not _is_inside(text, end):
            return end
    return at


def _asker(pattern: re.Pattern[str]) -> Chunker:
    def ask(buffer: str) -> int | None:
        found = pattern.search(buffer)
        if found is not None and not found.end():
            found = pattern.search(buffer, 1)
        return None if found is None else found.end()

    return ask


def cutter_of(by: CutBy, max_chars: int) -> Callable[[], Cutter]:
    """What makes a cutter for each text.

    Raises:
        ConfigurationError: if *by* is nothing to cut by, or *max_chars* is below 1.
    """
    if max_chars < 1:
        raise ConfigurationError(f"smooth(max_chars={max_chars!r}): a piece has a character at least")
    if isinstance(by, str):
        if by not in _KINDS:
            raise ConfigurationError(
                f"smooth(by={by!r}): write one of {', '.join(_KINDS)}, or a pattern or function"
            )
        return lambda: ScanningCutter(by, max_chars)
    if isinstance(by, re.Pattern):
        if not isinstance(by.pattern, str):
            raise ConfigurationError("smooth(by=...): a pattern of bytes finds nothing in text")
        asker = _asker(by)
        return lambda: AskingCutter(asker, max_chars)
    if not callable(by):
        raise ConfigurationError(
            f"smooth(by={by!r:.40}): write one of {', '.join(_KINDS)}, or a pattern or function"
        )
    return lambda: AskingCutter(by, max_chars)


__all__ = ("AskingCutter", "Chunker", "CutBy", "Cutter", "ScanningCutter", "cutter_of", "goes_on")
