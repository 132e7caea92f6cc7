"""`scan`, `scan_with`, `index`: each item with what came before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import reactivex
from reactivex import Observable, abc

from semflux.operators.concat import concat
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")
A = TypeVar("A")
U = TypeVar("U")
_NONE: Any = object()


class _ScanLink(Link[Any, Any]):
    __slots__ = ("_function", "_so_far")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, function: Callable[[Any, Any], Any]) -> None:
        super().__init__(below, run)
        self._function = function
        self._so_far: Any = _NONE

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        if self._so_far is not _NONE:
            try:
                value = self._function(self._so_far, value)
            except Exception as error:
                self.fail(error)
                return
        self._so_far = value
        self.below.on_next(value)

    def dispose(self) -> None:
        self._so_far = _NONE
        super().dispose()


def scan(function: Callable[[T, T], T]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The first item, then `function(so_far, item)` for each other one.

    ```
    --1--2--3--|        scan(lambda a, x: a + x)
    --1--3--6--|
    ```
    """
    return lift(lambda below, run: _ScanLink(below, run, function))


def scan_with(
    seed: Callable[[], A], function: Callable[[A, T], A]
) -> Callable[[abc.ObservableBase[T]], Observable[A]]:
    """`seed()`, made anew for each subscription, then `function(so_far, item)` for each item. (RxPY's `scan` does
    not give the seed.)

    ```
    ----1--2--|        scan_with(lambda: 10, lambda a, x: a + x)
    10--11-13-|
    ```
    """

    def operator(source: abc.ObservableBase[T]) -> Observable[A]:
        seeded: Any = concat(reactivex.from_callable(seed), source)
        return lift(lambda below, run: _ScanLink(below, run, function))(seeded)

    return operator


class _IndexLink(Link[T, tuple[int, T]]):
    __slots__ = ("_next",)

    def __init__(self, below: abc.ObserverBase[tuple[int, T]], run: Run) -> None:
        super().__init__(below, run)
        self._next = 0

    def on_next(self, value: T) -> None:
        if not self.stopped:
            number = self._next
            self._next += 1
            self.below.on_next((number, value))


def index() -> Callable[[abc.ObservableBase[T]], Observable[tuple[int, T]]]:
    """Each item with its number, from 0.

    ```
    --a------b------|        index()
    --(0, a)-(1, b)-|
    ```
    """
    return lift(_IndexLink)


__all__ = ("index", "scan", "scan_with")
