"""Operators that make one value of a stream."""

from __future__ import annotations

from typing import Generic, TypeVar

from semflux import operators as ops
from semflux.flux.base import Base
from semflux.flux.mono import Mono

T = TypeVar("T")


class Collecting(Base[T], Generic[T]):
    """`next`, `collect_list` and the like; for Flux and ChatStream, both give a Mono."""

    __slots__ = ()

    def next(self) -> Mono[T]:
        """The first item, then the source is cancelled; nothing if there is none."""
        return Mono(self._apply(ops.take(1)))

    def single(self) -> Mono[T]:
        """The one item; EmptySequenceError without one, TooManyItemsError with two."""
        return Mono(self._apply(ops.single()))

    def collect_list(self) -> Mono[list[T]]:
        """All items as one list."""
        return Mono(self._apply(ops.collect_list()))


__all__ = ("Collecting",)
