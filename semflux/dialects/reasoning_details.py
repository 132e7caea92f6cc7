"""OpenRouter's `reasoning_details`: proofs of reasoning, in pieces, that go back with the next request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from semflux.dialects.base import text_of

_GROWING = ("text", "summary", "data", "signature")


class ReasoningDetails:
    """Puts the pieces of each detail together, by their index or id."""

    __slots__ = ("_details",)

    def __init__(self) -> None:
        self._details: dict[Any, tuple[dict[str, Any], dict[str, list[str]]]] = {}

    def add(self, detail: dict[str, Any]) -> None:
        """A piece comes."""
        index, name = detail.get("index"), text_of(detail.get("id"))
        key = index if isinstance(index, int) else name or text_of(detail.get("type"))
        fields, grown = self._details.setdefault(key, ({}, {}))
        for field, value in detail.items():
            if field in _GROWING and isinstance(value, str):
                grown.setdefault(field, []).append(value)
            elif value is not None:
                fields[field] = value

    def whole(self) -> Iterator[dict[str, Any]]:
        """The details worth keeping, each whole: those that hold a proof. The rest repeats the thinking.
        Each is given once."""
        details, self._details = self._details, {}
        for fields, grown in details.values():
            joined = {field: "".join(pieces) for field, pieces in grown.items()}
            if joined.get("signature") or joined.get("data"):
                yield {**fields, **joined}


__all__ = ("ReasoningDetails",)
