"""Operators that make other items of the items."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from semflux import operators as ops
from semflux.flux.base import Base
from semflux.operators.handle import HandleSink

if TYPE_CHECKING:
    from semflux.flux.flux import Flux

T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A")


class Transforming(Base[T], Generic[T]):
    """`map` and what is like it; for Flux and ChatStream, both give a Flux."""

    __slots__ = ()

    def map(self, function: Callable[[T], U]) -> Flux[U]:
        """*function* of each item. If it raises, the source is cancelled and its exception is the error."""
        return self._flux(ops.map_(function))

    def map_not_none(self, function: Callable[[T], U | None]) -> Flux[U]:
        """*function* of each item, where it is not None."""
        return self._flux(ops.map_not_none(function))

    def handle(self, function: Callable[[T, HandleSink[U]], object]) -> Flux[U]:
        """Calls *function* with each item and a sink: at most one `next` for each, and `complete` or `error`."""
        return self._flux(ops.handle(function))

    def concat_map_iterable(self, function: Callable[[T], Iterable[U]]) -> Flux[U]:
        """The items of the iterable that *function* gives for each item, in order."""
        return self._flux(ops.concat_map_iterable(function))

    def scan(self, function: Callable[[T, T], T]) -> Flux[T]:
        """The first item, then `function(so_far, item)` for each other one."""
        return self._flux(ops.scan(function))

    def scan_with(self, seed: Callable[[], A], function: Callable[[A, T], A]) -> Flux[A]:
        """`seed()`, made anew for each subscription, then `function(so_far, item)` for each item."""
        return self._flux(ops.scan_with(seed, function))

    def index(self) -> Flux[tuple[int, T]]:
        """Each item with its number, from 0."""
        return self._flux(ops.index())


__all__ = ("Transforming",)
