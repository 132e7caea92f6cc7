"""The assistant message while it is being made: its parts in the order of the stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from semflux.errors import BadFrameError
from semflux.messages import (
    Part,
    RedactedThinkingPart,
    RefusalPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolCallPart,
    VendorPart,
)
from semflux.wire.json import decode as decode_json


class Piece:
    """A part that is still being made."""

    __slots__ = ("args_key", "index", "item_id", "kind", "raw", "signature", "texts")

    def __init__(self, kind: str, item_id: str | None, index: int | None, raw: Any = None) -> None:
        self.kind: str = kind
        """text, thinking, redacted, refusal, call, server or vendor."""
        self.item_id: str | None = item_id
        self.index: int | None = index
        self.texts: list[str] = []
        """What it has so far, joined once at the end."""
        self.signature: str | None = None
        self.raw: Any = raw
        """The vendor's block, or the id of the call."""
        self.args_key: str | None = None
        """The key of *raw* that the texts, as JSON, belong under; None when they belong nowhere."""

    def part(self, calls: Mapping[str, ToolCall], dialect: str | None) -> Part | None:
        """The part that it is; None when nothing came of it."""
        text = "".join(self.texts)
        match self.kind:
            case "text":
                return TextPart(text) if text else None
            case "thinking":
                return ThinkingPart(text, self.signature, self.item_id) if text or self.signature else None
            case "redacted":
                return RedactedThinkingPart(text)
            case "refusal":
                return RefusalPart(text)
            case "call":
                return ToolCallPart(calls[self.raw])
            case _:
                return None if self.raw is None else VendorPart(dialect or "", self._block(text))

    def _block(self, text: str) -> Any:
        """The vendor's block, with what came for it in pieces put in."""
        if self.args_key is None or not text:
            return self.raw
        try:
            return {**self.raw, self.args_key: decode_json(text)}
        except BadFrameError:
            return {**self.raw, self.args_key: text}


class Pieces:
    """The pieces of one message."""

    __slots__ = ("_found", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._found: dict[tuple[str, str | None, int | None], Piece] = {}
        """The latest piece of each kind and identity."""

    def add(self, kind: str, event: Any, raw: Any = None) -> Piece:
        """A new piece at the end, with the identity of *event*."""
        piece = Piece(kind, event.item_id, event.index, raw)
        self._pieces.append(piece)
        self._found[_key(kind, event)] = piece
        return piece

    def last(self, kind: str) -> Piece | None:
        """The last piece, if it is of *kind*."""
        return self._pieces[-1] if self._pieces and self._pieces[-1].kind == kind else None

    def find(self, kind: str, event: Any) -> Piece | None:
        """The latest piece of *kind* with the identity of *event*; None when there is none."""
        return self._found.get(_key(kind, event))

    def parts(self, calls: Mapping[str, ToolCall], dialect: str | None) -> Iterator[Part]:
        """What the pieces came to."""
        for piece in self._pieces:
            part = piece.part(calls, dialect)
            if part is not None:
                yield part


def _key(kind: str, event: Any) -> tuple[str, str | None, int | None]:
    # A server's tool is known by its id alone: its result may come under another index.
    return (kind, event.item_id, None if kind == "server" else event.index)


__all__ = ("Piece", "Pieces")
