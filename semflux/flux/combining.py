"""Operators that bring other sources in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from reactivex import abc

from semflux import operators as ops
from semflux.flux.base import Base

if TYPE_CHECKING:
    from semflux.flux.flux import Flux

T = TypeVar("T")
U = TypeVar("U")


class Combining(Base[T], Generic[T]):
    """`start_with`, `concat_with` and the like; for Flux, Mono and ChatStream."""

    __slots__ = ()

    def start_with(self, *items: U) -> Flux[T | U]:
        """*items*, then the source."""
        source: Any = self._observable
        return self.flux_class(ops.start_with(*items)(source))

    def concat_with(self, *others: abc.ObservableBase[U]) -> Flux[T | U]:
        """After the source *others*, one after another; an error ends it at once."""
        source: Any = self._observable
        return self.flux_class(ops.concat_with(*others)(source))

    def default_if_empty(self, value: T) -> Self:
        """*value* where the source has no item."""
        return self._same(ops.default_if_empty(value))

    def switch_if_empty(self, other: abc.ObservableBase[T]) -> Self:
        """*other* where the source completes without an item."""
        return self._same(ops.switch_if_empty(other))

    def or_else(self, other: abc.ObservableBase[T]) -> Self:
        """The source or *other*, whichever gives an item, completes or fails first; the other one is cancelled."""
        return self._same(ops.or_else(other))

    def merge_with(self, *others: abc.ObservableBase[U]) -> Flux[T | U]:
        """The items of the source and of *others* as they come; an error of any cancels the rest."""
        source: Any = self._observable
        return self.flux_class(ops.merge_with(*others)(source))


__all__ = ("Combining",)
