"""`GroupedFlux`: the items of a stream that have one key."""

from __future__ import annotations

from typing import Generic, Self, TypeVar

from reactivex import abc

from semflux.flux.base import Base
from semflux.flux.flux import Flux

T = TypeVar("T")
K = TypeVar("K")


class GroupedFlux(Flux[T], Generic[K, T]):
    """What `group_by` gives for each key: a stream of the items that have it, for one subscriber."""

    __slots__ = ("_key",)

    def __init__(self, observable: abc.ObservableBase[T], key: K) -> None:
        super().__init__(observable)
        self._key = key

    @property
    def key(self) -> K:
        """What its items have in common."""
        return self._key

    def _again(self, observable: abc.ObservableBase[T]) -> Self:
        return type(self)(observable, self._key)


# What `group_by` makes.
Base.grouped_class = GroupedFlux

__all__ = ("GroupedFlux",)
