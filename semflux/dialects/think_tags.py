"""Reasoning that a model writes into its text, between `<think>` and `</think>`."""

from __future__ import annotations

from collections.abc import Iterator

from semflux.request import ThinkTags

_OPEN, _CLOSE = "<think>", "</think>"


class ThinkSplitter:
    """Splits text into (is_thinking, piece) pairs; tags may be cut anywhere.

    At most a tag less one character is held back (and, before the first tag, the blanks that precede
    it); `flush` gives it.
    """

    __slots__ = ("_held", "_inside", "_mode", "passes")

    def __init__(self, mode: ThinkTags) -> None:
        self._mode = mode
        self._inside = False
        self._held: str = ""
        self.passes: bool = mode == "never"
        """True once no tag can matter any more: text need not come through here."""

    def split(self, text: str) -> Iterator[tuple[bool, str]]:
        """The pieces of *text* that are decided."""
        text = self._held + text
        self._held = ""
        while text:
            if not self._inside and self._mode == "auto":
                # Only the very first thing of the text may open; blanks before it do not count.
                body = text.lstrip()
                if _OPEN.startswith(body) and body != _OPEN:
                    self._held = text
                    return
                if not body.startswith(_OPEN):
                    self.passes = True
                    yield False, text
                    return
                text = body
            tag = _CLOSE if self._inside else _OPEN
            at = text.find(tag)
            if at < 0:
                keep = _overlap(text, tag)
                if keep < len(text):
                    yield self._inside, text[: len(text) - keep]
                self._held = text[len(text) - keep :]
                return
            if at:
                yield self._inside, text[:at]
            text = text[at + len(tag) :]
            if self._inside and self._mode == "auto":
                self._inside = False
                self.passes = True
                if text:
                    yield False, text
                return
            self._inside = not self._inside

    def flush(self) -> Iterator[tuple[bool, str]]:
        """What was held back, when no more text comes."""
        held, self._held = self._held, ""
        if held:
            yield self._inside, held


def _overlap(text: str, tag: str) -> int:
    """Characters at the end of *text* that may be the beginning of *tag*."""
    for size in range(min(len(tag) - 1, len(text)), 0, -1):
        if tag.startswith(text[-size:]):
            return size
    return 0


__all__ = ("ThinkSplitter",)
