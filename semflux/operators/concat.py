"""`concat`, `concat_with`, `start_with`, `switch_if_empty`, `default_if_empty`: one source after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import reactivex
from reactivex import Observable, abc

from semflux.operators.inner import Sequel, unwrapped
from semflux.operators.lift import Direct
from semflux.operators.run import Run, run_of

T = TypeVar("T")


class _ConcatLink(Sequel):
    __slots__ = ("_if_empty", "_sources")

    def __init__(
        self,
        below: abc.ObserverBase[Any],
        run: Run,
        sources: tuple[abc.ObservableBase[Any], ...],
        if_empty: bool,
    ) -> None:
        super().__init__(below, run)
        self._sources = list(reversed(sources))
        self._if_empty = if_empty

    def _ended(self) -> None:
        """The next source; the end after the last."""
        if self.stopped:
            return
        self.upstream = None
        if not self._sources or (self._if_empty and self._seen):
            self._stop()
            self.below.on_completed()
            return
        self.follow(unwrapped(self._sources.pop()))

    def dispose(self) -> None:
        self._sources = []
        super().dispose()


class _Concat(Direct[T]):
    def __init__(self, sources: tuple[abc.ObservableBase[Any], ...], *, if_empty: bool = False) -> None:
        super().__init__()
        self._sources = sources
        self._if_empty = if_empty

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        link = _ConcatLink(observer, run_of(scheduler), self._sources, self._if_empty)
        link.on_completed()
        return link


def concat(*sources: abc.ObservableBase[T]) -> Observable[T]:
    """The items of *sources*, one source after another: each is subscribed to when the one before it has completed.
    An error ends it at once.

    ```
    --1--2|   --3--|        concat(a, b)
    --1--2----3--|
    ```
    """
    return _Concat(sources)


def concat_with(*others: abc.ObservableBase[T]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """After the source *others*, one after another; see `concat`.

    ```
    --1--2--|        concat_with(of(8, 9))
    --1--2--8-9|
    ```
    """
    return lambda source: _Concat((source, *others))


def start_with(*items: T) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """*items*, then the source.

    ```
    ----1--2--|        start_with(0)
    0---1--2--|
    ```
    """
    return lambda source: _Concat((reactivex.of(*items), source))


def default_if_empty(value: T) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """*value* where the source has no item.

    ```
    -----|        default_if_empty(0)
    -----0|
    ```
    """
    return lambda source: _Concat((source, reactivex.of(value)), if_empty=True)


def switch_if_empty(other: abc.ObservableBase[T]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """*other* where the source completes without an item.

    ```
    -----|        switch_if_empty(of(8, 9))
    -----8-9|
    ```
    """
    return lambda source: _Concat((source, other), if_empty=True)


__all__ = ("concat", "concat_with", "default_if_empty", "start_with", "switch_if_empty")
