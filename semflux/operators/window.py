"""`window`, `window_until`, `window_while`, `window_until_changed`, `window_timeout`: the items as streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.clock import Clock
from semflux.operators.cutting import (
    Cut,
    Cutting,
    MakeCut,
    TimedCutting,
    at_changes,
    by_count,
    by_count_or_time,
    until,
    while_,
)
from semflux.operators.part import Outlet, Part
from semflux.operators.parts import Parted, PartsLink
from semflux.operators.run import Run

T = TypeVar("T")


class _WindowLink(Cutting, PartsLink):
    __slots__ = ("_cut", "_size", "_window")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, cut: Cut) -> None:
        super().__init__(below, run)
        self._cut = cut
        self._size = 0
        self._window: Outlet | None = None

    @property
    def size(self) -> int:
        return self._size

    def add(self, value: Any) -> None:
        window = self._window
        if window is None:
            self._window = window = Outlet(self)
            self.open(window, Part(window))
        self._size += 1
        window.emit(value)

    def flush(self) -> None:
        window, self._window = self._window, None
        self._size = 0
        if window is not None:
            self.close(window)

    def _let_go(self) -> abc.DisposableBase | None:
        self._window = None
        return super()._let_go()


def _windowed(make: MakeCut) -> Callable[[abc.ObservableBase[Any]], Observable[Part[Any]]]:
    return lambda source: Parted(source, lambda below, run: _WindowLink(below, run, make()))


def window(count: int) -> Callable[[abc.ObservableBase[T]], Observable[Part[T]]]:
    """Windows of *count* items; the last one may have fewer.

    A window is a stream for one subscriber, a second one gets AlreadyConsumedError. It begins with its first item, is
    never empty, and holds its items until its subscriber comes: 100,000 of them or 16 MiB, then it fails with
    BufferOverflowError. When its subscriber leaves, or nothing refers to it any more before one came, its items are
    dropped. An error is that of the open window and of the stream of windows. Who leaves the stream of windows leaves
    the open one as it is: the source is cancelled when both are gone. For a subscriber that pulls, the source goes on
    while somebody waits for a window or for an item.

    ```
    --1--2--3--|        window(2)
    --+-----+--|
      1--2| 3--|
    ```

    Raises:
        ConfigurationError: if *count* is not above zero.
    """
    return _windowed(by_count("window", count))


def window_until(
    predicate: Callable[[T], object], cut_before: bool = False
) -> Callable[[abc.ObservableBase[T]], Observable[Part[T]]]:
    """Windows that end with an item for which *predicate* is true; *cut_before*: that begin with one. See `window`.

    ```
    --1--2--3--|        window_until(lambda x: x == 2)
    --+-----+--|
      1--2| 3--|
    ```
    """
    return _windowed(until(predicate, cut_before))


def window_while(
    predicate: Callable[[T], object],
) -> Callable[[abc.ObservableBase[T]], Observable[Part[T]]]:
    """Windows of consecutive items for which *predicate* is true; the others cut, and are left out. See `window`.

    ```
    --1--2--0--3--|        window_while(lambda x: x > 0)
    --+--------+--|
      1--2--|  3--|
    ```
    """
    return _windowed(while_(predicate))


def window_until_changed(
    key: Callable[[T], object] | None = None,
) -> Callable[[abc.ObservableBase[T]], Observable[Part[T]]]:
    """Windows of consecutive items that are equal, or whose *key* is. See `window`.

    ```
    --1--1--2--|        window_until_changed()
    --+-----+--|
      1--1--|2--|
    ```
    """
    return _windowed(at_changes(key))


class _WindowTimeoutLink(TimedCutting, _WindowLink):
    pass


def window_timeout(
    count: int, seconds: float, *, clock: Clock | None = None
) -> Callable[[abc.ObservableBase[T]], Observable[Part[T]]]:
    """Windows of *count* items, or of what comes within *seconds* after the first of them. See `window`. *clock*: gives
    the time; default: that of the source, else the running loop's. (Reactor's opens a window at once, and the next one
    when the time is over, so that some are empty.)

    ```
    --1--2---------3--|        window_timeout(9, 5)
    --+------------+--|
      1--2--|      3--|
    ```

    Raises:
        ConfigurationError: if *count* or *seconds* is not above zero.
    """
    make = by_count_or_time("window_timeout", count, seconds)

    def link(below: abc.ObserverBase[Any], run: Run) -> PartsLink:
        made = _WindowTimeoutLink(below, run, make())
        made.set_time("window_timeout()", seconds, clock)
        return made

    return lambda source: Parted(source, link)


__all__ = ("window", "window_timeout", "window_until", "window_until_changed", "window_while")
