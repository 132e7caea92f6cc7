"""`collect_list`: all items as one list."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc

from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")


class _CollectListLink(Link[T, list[T]]):
    __slots__ = ("_items",)

    def __init__(self, below: abc.ObserverBase[list[T]], run: Run) -> None:
        super().__init__(below, run)
        self._items: list[T] = []

    def on_next(self, value: T) -> None:
        if not self.stopped:
            self._items.append(value)

    def on_completed(self) -> None:
        if not self.stopped:
            self.below.on_next(self._items)
            super().on_completed()

    def dispose(self) -> None:
        self._items = []
        super().dispose()


def collect_list() -> Callable[[abc.ObservableBase[T]], Observable[list[T]]]:
    """One list of all items at the end; an empty one for an empty stream.

    ```
    --1--2--|        collect_list()
    --------[1, 2]|
    ```
    """
    return lift(_CollectListLink)


__all__ = ("collect_list",)
