"""Operators that make one value of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from semflux import operators as ops
from semflux.flux.base import Base
from semflux.flux.mono import Mono

T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A")
D = TypeVar("D")
K = TypeVar("K")
_NONE: Any = object()


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

    def first_or_none(self) -> Mono[T]:
        """As `next`: awaited, it gives None where there is no item."""
        return self.next()

    def single_or_empty(self) -> Mono[T]:
        """The one item, or nothing; TooManyItemsError with two."""
        return Mono(self._apply(ops.single_or_empty()))

    @overload
    def last(self) -> Mono[T]: ...
    @overload
    def last(self, default: D) -> Mono[T | D]: ...
    def last(self, default: Any = _NONE) -> Mono[Any]:
        """The last item, at the end; without one *default*, or EmptySequenceError where none is given."""
        found: Any = ops.last() if default is _NONE else ops.last(default)
        return Mono(self._apply(found))

    @overload
    def element_at(self, index: int) -> Mono[T]: ...
    @overload
    def element_at(self, index: int, default: D) -> Mono[T | D]: ...
    def element_at(self, index: int, default: Any = _NONE) -> Mono[Any]:
        """The item at *index*, from 0; where the stream is shorter *default*, or EmptySequenceError."""
        found: Any = ops.element_at(index) if default is _NONE else ops.element_at(index, default)
        return Mono(self._apply(found))

    def count(self) -> Mono[int]:
        """How many items there were, at the end."""
        return Mono(self._apply(ops.count()))

    def any(self, predicate: Callable[[T], object]) -> Mono[bool]:
        """True at the first item for which *predicate* is true; False at the end."""
        return Mono(self._apply(ops.any_(predicate)))

    def all(self, predicate: Callable[[T], object]) -> Mono[bool]:
        """False at the first item for which *predicate* is false; True at the end."""
        return Mono(self._apply(ops.all_(predicate)))

    def has_elements(self) -> Mono[bool]:
        """True at the first item; False for an empty stream."""
        return Mono(self._apply(ops.has_elements()))

    def has_element(self, value: T) -> Mono[bool]:
        """True at the first item that equals *value*; False at the end."""
        return Mono(self._apply(ops.has_element(value)))

    def ignore_elements(self) -> Mono[T]:
        """No item; the end, or the error."""
        return Mono(self._apply(ops.ignore_elements()))

    @overload
    def then(self) -> Mono[Any]: ...
    @overload
    def then(self, other: Mono[U]) -> Mono[U]: ...
    def then(self, other: Mono[Any] | None = None) -> Mono[Any]:
        """Only the end; with *other*: after it that one's item."""
        ended: Any = self._apply(ops.ignore_elements())
        return Mono(ended if other is None else ops.concat_with(other)(ended))

    def collect(self, factory: Callable[[], A], add: Callable[[A, T], object]) -> Mono[A]:
        """The container that *factory* made, after `add(container, item)` for each item."""
        return Mono(self._apply(ops.collect(factory, add)))

    @overload
    def collect_map(self, key: Callable[[T], K]) -> Mono[dict[K, T]]: ...
    @overload
    def collect_map(self, key: Callable[[T], K], value: Callable[[T], U]) -> Mono[dict[K, U]]: ...
    def collect_map(
        self, key: Callable[[T], Any], value: Callable[[T], Any] | None = None
    ) -> Mono[dict[Any, Any]]:
        """A dict from `key(item)` to the item, or to `value(item)`; the later of two with one key."""
        found: Any = ops.collect_map(key) if value is None else ops.collect_map(key, value)
        return Mono(self._apply(found))

    def reduce(self, function: Callable[[T, T], T]) -> Mono[T]:
        """`function(so_far, item)` over all items, beginning with the first; an empty stream stays empty."""
        return Mono(self._apply(ops.reduce(function)))

    def reduce_with(self, seed: Callable[[], A], function: Callable[[A, T], A]) -> Mono[A]:
        """`function(so_far, item)` over all items, beginning with `seed()`, made anew for each subscription."""
        return Mono(self._apply(ops.reduce_with(seed, function)))


__all__ = ("Collecting",)
