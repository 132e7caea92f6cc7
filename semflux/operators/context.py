"""`Context`: what a subscriber says to the operators and sources above it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any


class Context(Mapping[Hashable, Any]):
    """An immutable mapping that belongs to one subscription, and goes up from the subscriber to the source.

    Keys are anything hashable. `context_write` adds to it for what is above; `Flux.defer_contextual` reads it.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[Any, Any] | None = None) -> None:
        self._values: dict[Hashable, Any] = dict(values or {})

    def __getitem__(self, key: Hashable) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def put(self, key: Hashable, value: Any) -> Context:
        """Another one, with *value* under *key*."""
        return Context({**self._values, key: value})

    def put_all(self, values: Mapping[Any, Any]) -> Context:
        """Another one, with *values* too, which go before those that there are."""
        return Context({**self._values, **values})

    def delete(self, key: Hashable) -> Context:
        """Another one, without *key*; the same one, where it has none."""
        if key not in self._values:
            return self
        return Context({name: value for name, value in self._values.items() if name != key})

    def __repr__(self) -> str:
        # Values may be secrets.
        return f"<Context of {len(self._values)}>"


EMPTY = Context()
"""The one of a subscription to which nobody has written."""

__all__ = ("EMPTY", "Context")
