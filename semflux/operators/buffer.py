"""`buffer`, `buffer_until`, `buffer_while`, `buffer_until_changed`, `buffer_timeout`: items in lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.clock import Clock, Timer
from semflux.errors import ConfigurationError
from semflux.operators.inner import Gate
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.operators.timing import clock_of

T = TypeVar("T")
_NONE: Any = object()

Cut = Callable[[Any, int], tuple[bool, bool, bool]]
"""What to do at an item, given the size of the list so far: let the list out before it, add it, let out after it."""


class _BufferLink(Link[Any, Any]):
    __slots__ = ("_cut", "_items")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, cut: Cut) -> None:
        super().__init__(below, run)
        self._cut = cut
        self._items: list[Any] = []

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        try:
            before, adds, after = self._cut(value, len(self._items))
        except Exception as error:
            self.fail(error)
            return
        if before:
            self.flush()
        if adds and not self.stopped:
            self.add(value)
        if after:
            self.flush()

    def add(self, value: Any) -> None:
        """Take *value* into the list."""
        self._items.append(value)

    def flush(self) -> None:
        """Let the list out, unless it is empty."""
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
    if count < 1:
        raise ConfigurationError(f"buffer({count}): a list has one item at least")
    return _buffered(lambda: lambda item, size: (False, True, size + 1 == count))


def buffer_until(
    predicate: Callable[[T], object], cut_before: bool = False
) -> Callable[[abc.ObservableBase[T]], Observable[list[T]]]:
    """Lists that end with an item for which *predicate* is true; *cut_before*: that begin with one.

    ```
    --1--2--3--|        buffer_until(lambda x: x == 2)
    -----[1, 2]-[3]|
    ```
    """

    def cut(item: Any, size: int) -> tuple[bool, bool, bool]:
        found = bool(predicate(item))
        return found and cut_before, True, found and not cut_before

    return _buffered(lambda: cut)


def buffer_while(predicate: Callable[[T], object]) -> Callable[[abc.ObservableBase[T]], Observable[list[T]]]:
    """Lists of consecutive items for which *predicate* is true; the others cut, and are left out.

    ```
    --1--2--0--3--|        buffer_while(lambda x: x > 0)
    --------[1, 2]-[3]|
    ```
    """

    def cut(item: Any, size: int) -> tuple[bool, bool, bool]:
        keeps = bool(predicate(item))
        return not keeps, keeps, False

    return _buffered(lambda: cut)


def buffer_until_changed(
    key: Callable[[T], object] | None = None,
) -> Callable[[abc.ObservableBase[T]], Observable[list[T]]]:
    """Lists of consecutive items that are equal, or whose *key* is.

    ```
    --1--1--2--|        buffer_until_changed()
    --------[1, 1]-[2]|
    ```
    """

    def make() -> Cut:
        latest: Any = _NONE

        def cut(item: Any, size: int) -> tuple[bool, bool, bool]:
            nonlocal latest
            found = item if key is None else key(item)
            changed = latest is not _NONE and latest != found
            latest = found
            return changed, True, False

        return cut

    return _buffered(make)


class _BufferTimeoutLink(_BufferLink):
    """The timer may ring on another thread than items come on: both come through one gate."""

    __slots__ = ("_clock", "_gate", "_round", "_seconds", "_timer")

    def __init__(
        self, below: abc.ObserverBase[Any], run: Run, cut: Cut, seconds: float, clock: Clock | None
    ) -> None:
        super().__init__(below, run, cut)
        self._seconds = seconds
        self._clock = clock
        self._gate = Gate()
        self._timer: Timer | None = None
        self._round = 0

    def on_next(self, value: Any) -> None:
        self._gate.enter(super().on_next, value)

    def on_error(self, error: Exception) -> None:
        self._gate.enter(self._fail, error)

    def on_completed(self) -> None:
        self._gate.enter(self._complete)

    def _fail(self, error: Exception) -> None:
        self._cancel()
        super().on_error(error)

    def _complete(self) -> None:
        super().on_completed()

    def add(self, value: Any) -> None:
        if not self._items:
            try:
                clock = clock_of("buffer_timeout()", self._clock, self.run)
            except ConfigurationError as error:
                self.fail(error)
                return
            self._round += 1
            self._timer = clock.call_later(self._seconds, self._ring, self._round)
        super().add(value)

    def _ring(self, number: int) -> None:
        self._gate.enter(self._flush_of, number)

    def _flush_of(self, number: int) -> None:
        if number == self._round:
            self.flush()

    def flush(self) -> None:
        self._cancel()
        super().flush()

    def _cancel(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def dispose(self) -> None:
        self._cancel()
        super().dispose()


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
    if count < 1 or not seconds > 0:
        raise ConfigurationError(f"buffer_timeout({count}, {seconds!r}): both are above zero")

    def cut(item: Any, size: int) -> tuple[bool, bool, bool]:
        return False, True, size + 1 >= count

    return lift(lambda below, run: _BufferTimeoutLink(below, run, cut, seconds, clock))


__all__ = ("Cut", "buffer", "buffer_timeout", "buffer_until", "buffer_until_changed", "buffer_while")
