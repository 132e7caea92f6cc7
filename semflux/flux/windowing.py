"""Operators that make streams of parts of a stream, or of its items."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from reactivex import Observable, abc

from semflux import operators as ops
from semflux.clock import Clock
from semflux.flux.base import Base
from semflux.operators.parts import Part

if TYPE_CHECKING:
    from semflux.flux.flux import Flux

T = TypeVar("T")
U = TypeVar("U")


class Windowing(Base[T], Generic[T]):
    """The `window_*`; for Flux and ChatStream.

    A window is a Flux for one subscriber, a second one gets AlreadyConsumedError. It begins with its first item and
    holds its items until its subscriber comes. Who leaves the stream of windows leaves the open one as it is; the
    source is cancelled when both are gone.
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

    def _windows(
        self, operator: Callable[[abc.ObservableBase[T]], Observable[Part[T]]]
    ) -> Flux[Flux[T]]:
        return self._flux(lambda source: ops.map_(self._window)(operator(source)))

    def _window(self, part: Part[T]) -> Flux[T]:
        return self.flux_class(part)


__all__ = ("Windowing",)
