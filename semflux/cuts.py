"""Where a text that is still coming may be cut: words, lines and characters as a reader sees them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Literal, TypeAlias

from semflux.errors import ConfigurationError

Cut: TypeAlias = Literal["word", "line", "char"] | re.Pattern[str] | Callable[[str], int | None]
"""How to cut: by a name; after each match of a pattern; or by what gives the length of the next piece, if it is whole."""

NAMES = ("word", "line", "char")
"""The cuts that have a name."""

_LONGEST = 80
"""Characters of a word that are held at most: an address, or data in base64, goes out in such parts."""

_OFTEN = 1024
"""Characters that are held up to which a pattern or a function looks at them again with each feed."""

_WORDS = re.compile(r"(?<=\s)(?=\S)", re.ASCII)
_LINES = re.compile(r"(?<=\n)")
_JOINER = "\u200d"
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Scripts that put no spaces between words: each character is a piece. Hangul has spaces."""


def _extends(before: str, char: str, flags: int) -> bool:
    """True if no reader sees a boundary between *before*, with *flags* regional indicators up to it, and *char*."""
    if char < "\u0300":
        return before == "\r" and char == "\n"
    return (
        char == _JOINER
        or (before == _JOINER and unicodedata.category(char) == "So")
        or unicodedata.category(char) in {"Mn", "Me", "Mc"}
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
        or "\u1160" <= char <= "\u11ff"
        or char in "\u0e33\u0eb3\uff9e\uff9f"
        or (flags % 2 == 1 and _is_flag(char))
    )


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


class Cutter:
    """Cuts a text into pieces as it comes. The pieces joined are the text.

    By name, each character is looked at once. A pattern or a function sees what is held again with each feed; where
    that is long, only each time that it has grown by a quarter.
    """

    __slots__ = ("_before", "_by", "_flags", "_held", "_length", "_single", "_waiting")

    def __init__(self, by: Cut) -> None:
        self._by = by
        self._held: list[str] = []
        self._before = ""
        self._flags = 0
        """Regional indicators up to there: two are one flag."""
        self._single = False
        """True if the piece has a character of a script without spaces."""
        self._length = 0
        """Characters that are held."""
        self._waiting = 0
        """Characters that must come before a pattern or a function is asked again."""

    def feed(self, text: str) -> list[str]:
        """The pieces that are whole now."""
        if not isinstance(self._by, str):
            return self._measure(text)
        if self._by != "char" and not self._single and text.isascii() and self._before.isascii():
            pieces = self._quickly(text, _WORDS if self._by == "word" else _LINES)
            if pieces is not None:
                return pieces
        return self._scan(text)

    def finish(self) -> str:
        """What is held: the text ends here."""
        rest = "".join(self._held)
        self._held = []
        self._before = ""
        self._flags = self._length = self._waiting = 0
        self._single = False
        return rest

    def _quickly(self, text: str, bounds: re.Pattern[str]) -> list[str] | None:
        """As `_scan`, for ASCII; None where a word is too long."""
        places = [found.start() for found in bounds.finditer(text)]
        if self._before and text and self._parts(self._before, text[0]):
            places.insert(0, 0)
        length = self._length
        start = 0
        for place in [*places, len(text)]:
            if self._by == "word" and length + place - start > _LONGEST:
                return None
            start, length = place, 0
        pieces: list[str] = []
        start = 0
        for place in places:
            pieces.append("".join([*self._held, text[start:place]]))
            self._held = []
            start = place
            self._length = 0
        if start < len(text):
            self._held.append(text[start:])
            self._length += len(text) - start
            self._before = text[-1]
            self._flags = 0
        return pieces

    def _scan(self, text: str) -> list[str]:
        pieces: list[str] = []
        start = 0
        for place, char in enumerate(text):
            before = self._before
            if before and not _extends(before, char, self._flags) and self._parts(before, char):
                self._held.append(text[start:place])
                pieces.append("".join(self._held))
                self._held = []
                start = place
                self._single = False
                self._length = 0
            self._length += 1
            self._flags = self._flags + 1 if _is_flag(char) else 0
            self._single = self._single or _UNSPACED.match(char) is not None
            self._before = char
        if start < len(text):
            self._held.append(text[start:])
        return pieces

    def _parts(self, before: str, char: str) -> bool:
        """True if a piece ends between two characters."""
        if self._by == "char":
            return True
        if self._by == "line":
            return before == "\n"
        if self._length >= _LONGEST:
            return True
        if char.isspace():
            return False
        return before.isspace() or _UNSPACED.match(char) is not None or (self._single and char.isalnum())

    def _measure(self, text: str) -> list[str]:
        self._held.append(text)
        self._waiting -= len(text)
        if self._waiting > 0:
            return []
        buffer = "".join(self._held)
        pieces: list[str] = []
        start = 0
        while start < len(buffer):
            size = self._size(buffer, start)
            if size is None:
                break
            if not 0 < size <= len(buffer) - start:
                raise ConfigurationError(
                    f"smooth(by=...): the function gave {size} for a text of {len(buffer) - start} characters: it gives "
                    "the length of the next piece, at least 1, or None"
                )
            pieces.append(buffer[start : start + size])
            start += size
        left = len(buffer) - start
        self._held = [buffer[start:]] if left else []
        self._waiting = left // 4 if left > _OFTEN else 0
        return pieces

    def _size(self, buffer: str, start: int) -> int | None:
        by = self._by
        if isinstance(by, re.Pattern):
            found = by.search(buffer, start)
            return found.end() - start if found is not None and found.end() > start else None
        assert callable(by)
        size: object = by(buffer[start : start + _OFTEN])
        if size is None and len(buffer) - start > _OFTEN:
            size = by(buffer[start:])
        if size is not None and (not isinstance(size, int) or isinstance(size, bool)):
            raise ConfigurationError(
                f"smooth(by=...): the function gave a {type(size).__name__}: it gives the length of the next piece, or "
                "None"
            )
        return size


__all__ = ("NAMES", "Cut", "Cutter")
