"""`collect`, `collect_map`, `reduce`, `reduce_with`, `count`, `last`, `single_or_empty`: one value at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from reactivex import Observable, abc

from semflux.errors import EmptySequenceError, TooManyItemsError
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")
A = TypeVar("A")
K = TypeVar("K")
V = TypeVar("V")
_NONE: Any = object()
"""No item."""


class _FoldLink(Link[Any, Any]):
    """Takes items in, and gives at the end what they came to."""

    __slots__ = ("_folded", "_seed", "_step")

    def __init__(
        self,
        below: abc.ObserverBase[Any],
        run: Run,
        seed: Callable[[], Any],
        step: Callable[[Any, Any], Any],
    ) -> None:
        super().__init__(below, run)
        self._seed: Callable[[], Any] | None = seed
        self._step = step
        self._folded: Any = _NONE

    def _begin(self) -> None:
        # At the first signal: what the supplier of a seed raises is an error of the stream, in order.
        seed, self._seed = self._seed, None
        if seed is not None:
            self._folded = seed()

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        try:
            self._begin()
            self._folded = self._step(self._folded, value)
        except Exception as error:
            self.fail(error)

    def on_completed(self) -> None:
        if self.stopped:
            return
        try:
            self._begin()
        except Exception as error:
            self.on_error(error)
            return
        folded, self._folded = self._folded, _NONE
        if folded is not _NONE:
            self.below.on_next(folded)
        super().on_completed()

    def dispose(self) -> None:
        self._folded = _NONE
        super().dispose()


def _no_seed() -> Any:
    return _NONE


def _folded(
    seed: Callable[[], Any], step: Callable[[Any, Any], Any]
) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    return lift(lambda below, run: _FoldLink(below, run, seed, step))


def reduce_with(
    seed: Callable[[], A], function: Callable[[A, T], A]
) -> Callable[[abc.ObservableBase[T]], Observable[A]]:
    """At the end `function(so_far, item)` over all items, beginning with `seed()`, which is made anew for each
    subscription; an empty stream gives the seed. What either raises is the error.

    ```
    --1--2--3--|        reduce_with(lambda: 10, lambda a, x: a + x)
    -----------16|
    ```
    """
    return _folded(seed, function)


def reduce(function: Callable[[T, T], T]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """At the end `function(so_far, item)` over all items, beginning with the first; an empty stream stays empty.

    ```
    --1--2--3--|        reduce(lambda a, x: a + x)
    -----------6|
    ```
    """
    return _folded(_no_seed, lambda so_far, item: item if so_far is _NONE else function(so_far, item))


def collect(
    factory: Callable[[], A], add: Callable[[A, T], object]
) -> Callable[[abc.ObservableBase[T]], Observable[A]]:
    """At the end the container that *factory* made for this subscription, after `add(container, item)` for each.

    ```
    --1--2--1--|        collect(set, set.add)
    -----------{1, 2}|
    ```
    """

    def step(container: A, item: T) -> A:
        add(container, item)
        return container

    return _folded(factory, step)


@overload
def collect_map(key: Callable[[T], K]) -> Callable[[abc.ObservableBase[T]], Observable[dict[K, T]]]: ...
@overload
def collect_map(
    key: Callable[[T], K], value: Callable[[T], V]
) -> Callable[[abc.ObservableBase[T]], Observable[dict[K, V]]]: ...
def collect_map(
    key: Callable[[Any], Any], value: Callable[[Any], Any] | None = None
) -> Callable[[abc.ObservableBase[Any]], Observable[dict[Any, Any]]]:
    """At the end a dict: `key(item)` to the item, or to `value(item)`. Of two with one key the later one stays.

    ```
    --a--bb--|        collect_map(len)
    ---------{1: "a", 2: "bb"}|
    ```
    """

    def add(found: dict[Any, Any], item: Any) -> None:
        found[key(item)] = item if value is None else value(item)

    def make() -> dict[Any, Any]:
        return {}

    return collect(make, add)


def count() -> Callable[[abc.ObservableBase[Any]], Observable[int]]:
    """At the end how many items there were.

    ```
    --a--b--|        count()
    --------2|
    ```
    """
    return _folded(lambda: 0, lambda so_far, item: so_far + 1)


def last(default: Any = _NONE) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The last item, at the end; *default* where there is none.

    Errors:
        EmptySequenceError: if there is no item, and no *default*.

    ```
    --1--2--|        last()
    --------2|
    ```
    """
    newest = _folded(lambda: default, lambda so_far, item: item)
    if default is not _NONE:
        return newest
    return lift(lambda below, run: _LastLink(below, run, _no_seed, lambda so_far, item: item))


class _LastLink(_FoldLink):
    __slots__ = ()

    def on_completed(self) -> None:
        if not self.stopped and self._folded is _NONE:
            self.on_error(EmptySequenceError("last(): the stream has no item"))
        super().on_completed()


def single_or_empty() -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The one item, when the stream has ended; nothing where there is none.

    Errors:
        TooManyItemsError: at the second item; the source is cancelled.

    ```
    -------|        single_or_empty()
    -------|
    ```
    """

    def step(so_far: Any, item: Any) -> Any:
        if so_far is not _NONE:
            raise TooManyItemsError("single_or_empty(): the stream has more than one item")
        return item

    return _folded(_no_seed, step)


__all__ = ("collect", "collect_map", "count", "last", "reduce", "reduce_with", "single_or_empty")
