"""`map_`: each item through a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc

from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")
U = TypeVar("U")


class _MapLink(Link[T, U]):
    __slots__ = ("_down", "_function")

    def __init__(self, below: abc.ObserverBase[U], run: Run, function: Callable[[T], U]) -> None:
        super().__init__(below, run)
        self._down = below.on_next
        self._function = function

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        try:
            result = self._function(value)
        except Exception as error:
            self.fail(error)
        else:
            self._down(result)


def map_(function: Callable[[T], U]) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """*function* of each item. If it raises, the source is cancelled and its exception is the error.

    ```
    --1--2--3--|        map_(lambda x: x * 10)
    --10-20-30-|
    ```
    """
    return lift(lambda below, run: _MapLink(below, run, function))


__all__ = ("map_",)
