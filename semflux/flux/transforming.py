"""Operators that make other items of the items."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from reactivex import abc

from semflux import operators as ops
from semflux.clock import Clock
from semflux.flux.base import Base
from semflux.operators.deferred import deferred
from semflux.operators.flat_map import CONCURRENCY
from semflux.operators.handle import HandleSink
from semflux.operators.materialize import Signal

if TYPE_CHECKING:
    from semflux.flux.flux import Flux

T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A")
R = TypeVar("R")


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

    def flat_map(
        self,
        function: Callable[[T], abc.ObservableBase[U]],
        concurrency: int = CONCURRENCY,
        *,
        delay_errors: bool = False,
    ) -> Flux[U]:
        """The items of the sources that *function* gives, as they come; at most *concurrency* sources at once.
        *delay_errors*: errors wait until all have ended."""
        return self._flux(ops.flat_map(function, concurrency, delay_errors=delay_errors))

    def concat_map(
        self, function: Callable[[T], abc.ObservableBase[U]], *, delay_errors: bool = False
    ) -> Flux[U]:
        """The items of the sources that *function* gives, one source after another, in order. *delay_errors*: errors
        wait until all have ended."""
        return self._flux(ops.concat_map(function, delay_errors=delay_errors))

    def buffer(self, count: int) -> Flux[list[T]]:
        """Lists of *count* items; the last one, of fewer, at the end."""
        return self._flux(ops.buffer(count))

    def buffer_until(self, predicate: Callable[[T], object], cut_before: bool = False) -> Flux[list[T]]:
        """Lists that end with an item for which *predicate* is true; *cut_before*: that begin with one."""
        return self._flux(ops.buffer_until(predicate, cut_before))

    def buffer_while(self, predicate: Callable[[T], object]) -> Flux[list[T]]:
        """Lists of consecutive items for which *predicate* is true; the others cut, and are left out."""
        return self._flux(ops.buffer_while(predicate))

    def buffer_until_changed(self, key: Callable[[T], object] | None = None) -> Flux[list[T]]:
        """Lists of consecutive items that are equal, or whose *key* is."""
        return self._flux(ops.buffer_until_changed(key))

    def buffer_timeout(self, count: int, seconds: float, *, clock: Clock | None = None) -> Flux[list[T]]:
        """Lists of *count* items, or of what there is *seconds* after the first of them came; never an empty one."""
        return self._flux(ops.buffer_timeout(count, seconds, clock=clock))

    def materialize(self) -> Flux[Signal[T]]:
        """Each signal as an item, the end and an error too; then the end."""
        return self._flux(ops.materialize())

    def dematerialize(self: Base[Signal[U]]) -> Flux[U]:
        """The signals that the items are."""
        return self.flux_class(ops.dematerialize()(self.observable))

    def transform(self, function: Callable[[Self], R]) -> R:
        """What *function* makes of the stream: a chain of operators that has a name."""
        return function(self)

    def transform_deferred(self, function: Callable[[Self], abc.ObservableBase[U]]) -> Flux[U]:
        """For each subscription what *function* makes of the stream then: a chain with a state of its own."""
        return self.flux_class(deferred(lambda: function(self)))


__all__ = ("Transforming",)
