"""The standard streams: for eyes where one is a terminal, byte for byte where it is not.

Rule 1. What a model or a provider wrote reaches a terminal without control characters: C0 (but line feed
and tab), DEL, C1 and the bidirectional controls are shown as escapes, so that nothing it writes can move
the cursor, set a title, or make text read otherwise than it is.
Rule 2. What goes elsewhere is UTF-8 and goes as it is.
Rule 3. Every write is flushed: someone may be waiting at the other end.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, TextIO

DIM = "2"
"""The style of what is not the answer: thinking, notes, figures."""
BOLD = "1"
"""The style of headings."""
RED = "31"
"""The style of errors."""

_ESCAPES = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    if chr(code) not in "\n\t"
}
# In JSON these stand in strings alone, where an escape means the same; lone surrogates have no UTF-8.
_JSON_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def escape(text: str) -> str:
    """*text* with its control characters shown as escapes; line feed and tab stay."""
    return text.translate(_ESCAPES)


def to_json(value: Any) -> str:
    """*value* as JSON in one line that may be shown on any terminal. Nothing is lost."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _JSON_ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Printer:
    """Writes to one standard stream. None, for a stream that is closed, swallows all.

    Raises `OSError` where the other end cannot take it, `BrokenPipeError` where it is gone.
    """

    def __init__(self, stream: TextIO | None, *, color: bool = True) -> None:
        self._stream = stream
        self.is_terminal: bool = stream is not None and stream.isatty()
        self.color: bool = (
            color
            and self.is_terminal
            and not os.environ.get("NO_COLOR")  # https://no-color.org: set and not empty
            and os.environ.get("TERM") != "dumb"
        )
        self.at_line_start: bool = True
        """True if the last character written was a line feed, or nothing was written."""

    def write(self, text: str, style: str | None = None) -> None:
        """Write *text*, in *style* where there are colours."""
        if not text or self._stream is None:
            return
        self.at_line_start = text.endswith("\n")
        encoding = "utf-8"
        if self.is_terminal:
            encoding = self._stream.encoding
            text = escape(text)
            if style and self.color:
                text = f"\x1b[{style}m{text}\x1b[0m"
        self._send(text, encoding)

    def line(self, text: str, style: str | None = None) -> None:
        """Write *text* as one line of its own: line breaks in it become spaces."""
        self.end_line()
        self.write(escape(" ".join(text.split())), style)
        self.write("\n")

    def end_line(self) -> None:
        """Go to the start of a line, if not there already."""
        if not self.at_line_start:
            self.write("\n")

    def erase_line(self) -> None:
        """Take back the line that is being written; only where there are colours."""
        if self.color and not self.at_line_start:
            self._send("\r\x1b[2K", "ascii")
            self.at_line_start = True

    def _send(self, text: str, encoding: str) -> None:
        assert self._stream is not None
        self._stream.buffer.write(text.encode(encoding, "backslashreplace"))
        self._stream.buffer.flush()


__all__ = ("BOLD", "DIM", "RED", "Printer", "escape", "to_json")
