"""`filter_`: the items for which a predicate holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")


class FilterLink(Link[T, T]):
    """`filter_` at work in one subscription; what decides by an event's type is made of it too."""

    __slots__ = ("_down", "_predicate")

    def __init__(self, below: abc.ObserverBase[T], run: Run, predicate: Callable[[Any], object]) -> None:
        super().__init__(below, run)
        self._down = below.on_next
        self._predicate = predicate

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        try:
            keep = self._predicate(value)
        except Exception as error:
            self.fail(error)
        else:
            if keep:
                self._down(value)


def filter_(predicate: Callable[[T], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The items for which *predicate* is true. If it raises, the source is cancelled and that is the error.

    ```
    --1--2--3--|        filter_(lambda x: x > 1)
    -----2--3--|
    ```
    """
    return lift(lambda below, run: FilterLink(below, run, predicate))


__all__ = ("FilterLink", "filter_")
