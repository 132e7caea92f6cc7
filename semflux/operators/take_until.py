"""`take_until`: the items up to the first one for which a predicate holds, that one included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.lift import EndingLink, lift
from semflux.operators.run import Run

T = TypeVar("T")


class _TakeUntilLink(EndingLink[T, T]):
    __slots__ = ("_predicate",)

    def __init__(self, below: abc.ObserverBase[T], run: Run, predicate: Callable[[Any], object]) -> None:
        super().__init__(below, run)
        self._predicate = predicate

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        failure: Exception | None = None
        last: object = False
        try:
            last = self._predicate(value)
        except Exception as error:
            failure = error
        if not last and failure is None:
            self.below.on_next(value)
        else:
            self.end_with(value, failure)


def take_until(predicate: Callable[[T], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The items up to, and with, the first one for which *predicate* is true. An item at which it raises
    is delivered, then the error. (RxPY's operator of this name takes an observable.)

    ```
    --1--2--3--4--|        take_until(lambda x: x == 3)
    --1--2--3|
    ```
    """
    return lift(lambda below, run: _TakeUntilLink(below, run, predicate))


__all__ = ("take_until",)
