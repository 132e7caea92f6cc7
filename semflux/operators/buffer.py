"""`buffer`, `buffer_until`, `buffer_while`, `buffer_until_changed`, `buffer_timeout`: items in lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.clock import Clock
from semflux.operators.cutting import (
    Cut,
    Cutting,
    TimedCutting,
    at_changes,
    by_count,
    by_count_or_time,
    until,
    while_,
)
from semflux.operators.lift import lift
from semflux.operators.run import Run

T = TypeVar("T")


class _BufferLink(Cutting):
    __slots__ = ("_cut", "_items")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, cut: Cut) -> None:
        super().__init__(below, run)
        self._cut = cut
        self._items: list[Any] = []

    @property
    def size(self) -> int:
        return len(self._items)

    def add(self, value: Any) -> None:
        self._items.append(value)

    def flush(self) -> None:
        if self._items and not self.stopped:
            items, self._items = self._items, []
            self.below.on_next(items)

    def on_error(self, error: Exception) -> None:
        self._items = []
        super().on_error(error)

    def on_completed(self) -> None:
        self.flush()
        super().on_completed()

    def dispose(self) -> None:
        self._items = []
        super().dispose()


def _buffered(make: Callable[[], Cut]) -> Callable[[abc.ObservableBase[Any]], Observable[list[Any]]]:
    return lift(lambda below, run: _BufferLink(below, run, make()))


def buffer(count: int) -> Callable[[abc.ObservableBase[T]], Observable[list[T]]]:
    """Lists of *count* items; the last one, of fewer, at the end, and not at an error.

    ```
    --1--2--3--|        buffer(2)
    -----[1, 2]-[3]|
    ```

    Raises:
        ConfigurationError: if *count* is not above zero.
    """
    return _buffered(by_count("buffer", count))


def buffer_until(
    predicate: Callable[[T], object], cut_before: bool = False
) -> Callable[[abc.ObservableBase[T]], Observable[list[T]]]:
    """Lists that end with an item for which *predicate* is true; *cut_before*: that begin with one.

    ```
    --1--2--3--|        buffer_until(lambda x: x == 2)
    -----[1, 2]-[3]|
    ```
    """
    return _buffered(until(predicate, cut_before))


def buffer_while(predicate: Callable[[T], object]) -> Callable[[abc.ObservableBase[T]], Observable[list[T]]]:
    """Lists of consecutive items for which *predicate* is true; the others cut, and are left out.

    ```
    --1--2--0--3--|        buffer_while(lambda x: x > 0)
    --------[1, 2]-[3]|
    ```
    """
    return _buffered(while_(predicate))


def buffer_until_changed(
    key: Callable[[T], object] | None = None,
) -> Callable[[abc.ObservableBase[T]], Observable[list[T]]]:
    """Lists of consecutive items that are equal, or whose *key* is.

    ```
    --1--1--2--|        buffer_until_changed()
    --------[1, 1]-[2]|
    ```
    """
    return _buffered(at_changes(key))


class _BufferTimeoutLink(TimedCutting, _BufferLink):
    pass


def buffer_timeout(
    count: int, seconds: float, *, clock: Clock | None = None
) -> Callable[[abc.ObservableBase[T]], Observable[list[T]]]:
    """Lists of *count* items, or of what there is *seconds* after the first of them came. Never an empty one; the
    last one at the end, and not at an error. *clock*: gives the time; default: that of the source, else the running
    loop's. (RxPY's `buffer_with_time_or_count` ticks all the time, and gives empty lists.)

    ```
    --1--2---------3--|        buffer_timeout(9, 5)
    --------[1, 2]----[3]|
    ```

    Raises:
        ConfigurationError: if *count* or *seconds* is not above zero.
    """
    make = by_count_or_time("buffer_timeout", count, seconds)

    def link(below: abc.ObserverBase[Any], run: Run) -> _BufferTimeoutLink:
        made = _BufferTimeoutLink(below, run, make())
        made.set_time("buffer_timeout()", seconds, clock)
        return made

    return lift(link)


__all__ = ("buffer", "buffer_timeout", "buffer_until", "buffer_until_changed", "buffer_while")
