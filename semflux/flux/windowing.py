"""Operators that make streams of parts of a stream, or of its items."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from reactivex import Observable, abc

from semflux import operators as ops
from semflux.clock import Clock
from semflux.flux.base import Base
from semflux.operators.flat_map import CONCURRENCY
from semflux.operators.group_by import Group
from semflux.operators.materialize import Signal
from semflux.operators.part import Part

if TYPE_CHECKING:
    from semflux.flux.flux import Flux
    from semflux.flux.grouped import GroupedFlux

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
K = TypeVar("K")


class Windowing(Base[T], Generic[T]):
    """The `window_*` and `group_by`, `switch_*` and `expand*`; for Flux and ChatStream.

    A window, or a group, is a Flux for one subscriber, a second one gets AlreadyConsumedError. It begins with its first item and
    holds its items until its subscriber comes. Who leaves the stream of them leaves the open ones as they are; the
    source is cancelled when all are gone.
    """

    __slots__ = ()

    def window(self, count: int) -> Flux[Flux[T]]:
        """Streams of *count* items each; the last one may have fewer."""
        return self._windows(ops.window(count))

    def window_until(self, predicate: Callable[[T], object], cut_before: bool = False) -> Flux[Flux[T]]:
        """Streams that end with an item for which *predicate* is true; *cut_before*: that begin with one."""
        return self._windows(ops.window_until(predicate, cut_before))

    def window_while(self, predicate: Callable[[T], object]) -> Flux[Flux[T]]:
        """Streams of consecutive items for which *predicate* is true; the others cut, and are left out."""
        return self._windows(ops.window_while(predicate))

    def window_until_changed(self, key: Callable[[T], object] | None = None) -> Flux[Flux[T]]:
        """Streams of consecutive items that are equal, or whose *key* is."""
        return self._windows(ops.window_until_changed(key))

    def window_timeout(self, count: int, seconds: float, *, clock: Clock | None = None) -> Flux[Flux[T]]:
        """Streams of *count* items, or of what comes within *seconds* after the first of them; never an empty one."""
        return self._windows(ops.window_timeout(count, seconds, clock=clock))

    @overload
    def group_by(self, key: Callable[[T], K]) -> Flux[GroupedFlux[K, T]]: ...
    @overload
    def group_by(self, key: Callable[[T], K], value: Callable[[T], V]) -> Flux[GroupedFlux[K, V]]: ...
    def group_by(
        self, key: Callable[[T], Any], value: Callable[[T], Any] | None = None
    ) -> Flux[GroupedFlux[Any, Any]]:
        """For each *key* a stream of the items that have it, or of their *value*. Read all of them as they come: a
        `flat_map` needs a concurrency that is not less than the number of groups."""
        found: Any = ops.group_by(key) if value is None else ops.group_by(key, value)
        return self._flux(lambda source: ops.map_(self._group)(found(source)))

    def _group(self, group: Group[Any, Any]) -> GroupedFlux[Any, Any]:
        return self.grouped_class(group, group.key)

    def flat_map_sequential(
        self,
        function: Callable[[T], abc.ObservableBase[U]],
        concurrency: int = CONCURRENCY,
        *,
        delay_errors: bool = False,
    ) -> Flux[U]:
        """The items of the sources that *function* gives, in the order of the sources, though up to *concurrency* of
        them are subscribed to at once."""
        return self._flux(ops.flat_map_sequential(function, concurrency, delay_errors=delay_errors))

    def switch_map(self, function: Callable[[T], abc.ObservableBase[U]]) -> Flux[U]:
        """The items of the source that *function* gives for the newest item; the one before is cancelled first."""
        return self._flux(ops.switch_map(function))

    def switch_on_first(self, function: Callable[[Signal[T], Flux[T]], abc.ObservableBase[U]]) -> Flux[U]:
        """What *function* makes of the stream, given its first signal, which may be an end, and the whole stream."""
        return self._flux(ops.switch_on_first(lambda signal, part: function(signal, self._window(part))))

    def expand(self, function: Callable[[T], abc.ObservableBase[T]]) -> Flux[T]:
        """The items, then those of the streams that *function* gives for each, then for each of those: breadth
        first."""
        return self._flux(ops.expand(function))

    def expand_deep(self, function: Callable[[T], abc.ObservableBase[T]]) -> Flux[T]:
        """Each item, then all that comes of it by the streams that *function* gives: depth first."""
        return self._flux(ops.expand_deep(function))

    def _windows(self, operator: Callable[[abc.ObservableBase[T]], Observable[Part[T]]]) -> Flux[Flux[T]]:
        return self._flux(lambda source: ops.map_(self._window)(operator(source)))

    def _window(self, part: Part[T]) -> Flux[T]:
        return self.flux_class(part)


__all__ = ("Windowing",)
