"""`take_while`: the items before a predicate fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")


class _TakeWhileLink(Link[T, T]):
    __slots__ = ("_predicate",)

    def __init__(self, below: abc.ObserverBase[T], run: Run, predicate: Callable[[Any], object]) -> None:
        super().__init__(below, run)
        self._predicate = predicate

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        try:
            goes_on = self._predicate(value)
        except Exception as error:
            self.fail(error)
            return
        if goes_on:
            self.below.on_next(value)
        else:
            self.complete()


def take_while(predicate: Callable[[T], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The items up to, and without, the first one for which *predicate* is false.

    ```
    --1--2--3--1--|        take_while(lambda x: x < 3)
    --1--2--|
    ```
    """
    return lift(lambda below, run: _TakeWhileLink(below, run, predicate))


__all__ = ("take_while",)
