"""Operators that let some items through, as they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, Self, TypeVar

from reactivex import abc

from semflux import operators as ops
from semflux.flux.base import Base

T = TypeVar("T")


class Filtering(Base[T], Generic[T]):
    """`filter`, the takes and the skips; for Flux and ChatStream."""

    __slots__ = ()

    def filter(self, predicate: Callable[[T], object]) -> Self:
        """The items for which *predicate* is true, and no others: no terminal event either."""
        return self._same(ops.filter_(predicate))

    def take(self, count: int) -> Self:
        """The first *count* items; the source is cancelled before the end is told."""
        return self._same(ops.take(count))

    def take_while(self, predicate: Callable[[T], object]) -> Self:
        """The items up to, and without, the first one for which *predicate* is false."""
        return self._same(ops.take_while(predicate))

    def take_until(self, predicate: Callable[[T], object]) -> Self:
        """The items up to, and with, the first one for which *predicate* is true."""
        return self._same(ops.take_until(predicate))

    def skip(self, count: int) -> Self:
        """Without the first *count* items."""
        return self._same(ops.skip(count))

    def skip_while(self, predicate: Callable[[T], object]) -> Self:
        """Without the items up to the first one for which *predicate* is false, which comes."""
        return self._same(ops.skip_while(predicate))

    def skip_until(self, predicate: Callable[[T], object]) -> Self:
        """Without the items up to the first one for which *predicate* is true, which comes."""
        return self._same(ops.skip_until(predicate))

    def distinct(self, key: Callable[[T], Hashable] | None = None) -> Self:
        """Each item once, or each *key*. It remembers all of them."""
        return self._same(ops.distinct(key))

    def distinct_until_changed(self, key: Callable[[T], object] | None = None) -> Self:
        """Without items that are equal to the one just before, or whose *key* is."""
        return self._same(ops.distinct_until_changed(key))

    def take_until_other(self, other: abc.ObservableBase[Any]) -> Self:
        """The items until *other* gives its first item, or completes."""
        return self._same(ops.take_until_other(other))


__all__ = ("Filtering",)
