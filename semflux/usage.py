"""Token usage: one value class, and its two ways to combine.

`merge` joins two observations of the *same* step: the newer one replaces, field by field, where it
says something. `add` sums two *different* steps. Mixing them up is how totals come out doubled.
"""

# pyright does not know what a field with a converter holds, though it is declared.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import attrs

from semflux.frozen import EMPTY, FrozenDict, clip, freeze, thaw

_SUMMED = (
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "audio_input_tokens",
    "audio_output_tokens",
    "total_tokens",
    "cost",
)
_LABELS = ("service_tier", "region")


@attrs.frozen(kw_only=True)
class Usage:
    """What a step, or a whole stream, has used. Absent is None; zero is 0."""

    input_tokens: int | None = None
    """Tokens of the prompt: all of them, cached ones and what server tools fed in included."""
    output_tokens: int | None = None
    """Tokens of the answer, reasoning included."""
    reasoning_tokens: int | None = None
    """Tokens of reasoning; they are part of *output_tokens*."""
    cache_read_tokens: int | None = None
    """Tokens of the prompt read from the provider's cache; part of *input_tokens*."""
    cache_write_tokens: int | None = None
    """Tokens of the prompt written to the provider's cache; part of *input_tokens*."""
    cache_write_5m_tokens: int | None = None
    """Those of *cache_write_tokens* that are kept for five minutes."""
    cache_write_1h_tokens: int | None = None
    """Those of *cache_write_tokens* that are kept for an hour."""
    audio_input_tokens: int | None = None
    """Audio tokens of the prompt; part of *input_tokens*."""
    audio_output_tokens: int | None = None
    """Audio tokens of the answer; part of *output_tokens*."""
    total_tokens: int | None = None
    """The provider's total, else input plus output; None where neither is known."""
    requests: FrozenDict[str, int] = attrs.field(default=EMPTY, converter=freeze, repr=clip)
    """Requests of server tools, by the vendor's name for the kind; empty when there were none."""
    service_tier: str | None = attrs.field(default=None, repr=clip)
    """The vendor's tier that served the step; None when it gave none."""
    region: str | None = attrs.field(default=None, repr=clip)
    """Where it was served; None when the vendor gave none."""
    details: Any = attrs.field(default=None, converter=freeze, repr=clip)
    """The vendor's own usage object of one step; None for sums over several steps."""
    cost: float | None = None
    """The price, in the price table's currency; None without a price table."""

    def merge(self, newer: Usage) -> Usage:
        """Both as one observation of one step: *newer* wins wherever it is present, 0 included."""
        changes: dict[str, Any] = {}
        for name in (*_SUMMED, *_LABELS, "details"):
            value = getattr(newer, name)
            if value is not None:
                changes[name] = value
        if newer.requests:
            changes["requests"] = {**self.requests, **newer.requests}
        return attrs.evolve(self, **changes) if changes else self

    def add(self, other: Usage) -> Usage:
        """The sum over two steps. Labels keep the first; the vendors' objects stay with their steps."""
        values: dict[str, Any] = {}
        for name in _SUMMED:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is not None or theirs is not None:
                values[name] = (mine or 0) + (theirs or 0)
        for name in _LABELS:
            values[name] = getattr(self, name) or getattr(other, name)
        requests = dict(self.requests)
        for kind, count in other.requests.items():
            requests[kind] = requests.get(kind, 0) + count
        return Usage(requests=requests, **values)

    @property
    def uncached_tokens(self) -> int | None:
        """Tokens of the prompt that were neither read from nor written to a cache; None if unknown."""
        if self.input_tokens is None:
            return None
        return self.input_tokens - (self.cache_read_tokens or 0) - (self.cache_write_tokens or 0)

    def to_dict(self) -> dict[str, Any]:
        """The fields that are present, JSON-able."""
        fields: dict[str, Any] = {}
        for field in attrs.fields(Usage):
            value = getattr(self, field.name)
            if value is not None and (field.name != "requests" or value):
                fields[field.name] = thaw(value)
        return fields

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Usage:
        """The usage that `to_dict` wrote."""
        return cls(**fields)


def total(usages: Iterable[Usage | None]) -> Usage | None:
    """The sum of *usages*; None where no step gave any, the usage itself where one step did."""
    result: Usage | None = None
    for usage in usages:
        if usage is not None:
            result = usage if result is None else result.add(usage)
    return result


class Pricer(Protocol):
    """A price table: gives what a step cost."""

    def __call__(self, usage: Usage, model: str | None) -> float | None:
        """The price of *usage* with *model*; None where the table does not know the model."""
        ...  # pragma: no cover  # protocol


__all__ = ("Pricer", "Usage", "total")
