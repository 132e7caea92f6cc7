"""Operators that make other items of the items."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from semflux import operators as ops
from semflux.flux.base import Base

if TYPE_CHECKING:
    from semflux.flux.flux import Flux

T = TypeVar("T")
U = TypeVar("U")


class Transforming(Base[T], Generic[T]):
    """`map` and what is like it; for Flux and ChatStream, both give a Flux."""

    __slots__ = ()

    def map(self, function: Callable[[T], U]) -> Flux[U]:
        """*function* of each item. If it raises, the source is cancelled and its exception is the error."""
        return self._flux(ops.map_(function))


__all__ = ("Transforming",)
