"""`single`: the one item of a stream that has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.errors import EmptySequenceError, TooManyItemsError
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")
_NONE = object()


class _SingleLink(Link[T, T]):
    __slots__ = ("_value",)

    def __init__(self, below: abc.ObserverBase[T], run: Run) -> None:
        super().__init__(below, run)
        self._value: Any = _NONE

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        if self._value is _NONE:
            self._value = value
        else:
            self.fail(TooManyItemsError("single(): the stream has more than one item"))

    def on_completed(self) -> None:
        if self.stopped:
            return
        if self._value is _NONE:
            self.on_error(EmptySequenceError("single(): the stream has no item"))
        else:
            self.below.on_next(self._value)
            super().on_completed()


def single() -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The one item, when the stream has ended.

    Errors:
        EmptySequenceError: if there is none. TooManyItemsError: at the second item; the source is cancelled.

    ```
    --1--|        single()
    -----1|
    ```
    """
    return lift(_SingleLink)


__all__ = ("single",)
