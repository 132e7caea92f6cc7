"""`map_not_none`: each item through a function, without what it gives None for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")
U = TypeVar("U")


class _MapNotNoneLink(Link[T, U]):
    __slots__ = ("_function",)

    def __init__(self, below: abc.ObserverBase[U], run: Run, function: Callable[[Any], U | None]) -> None:
        super().__init__(below, run)
        self._function = function

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        try:
            result = self._function(value)
        except Exception as error:
            self.fail(error)
        else:
            if result is not None:
                self.below.on_next(result)


def map_not_none(function: Callable[[T], U | None]) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """*function* of each item, where it is not None. If it raises, the source is cancelled and that is the error.

    ```
    --1--2--3--|        map_not_none({1: "a", 3: "c"}.get)
    --a-----c--|
    ```
    """
    return lift(lambda below, run: _MapNotNoneLink(below, run, function))


__all__ = ("map_not_none",)
