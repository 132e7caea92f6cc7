"""`take`: the first items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import reactivex
from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.operators.lift import EndingLink, lift
from semflux.operators.run import Run

T = TypeVar("T")


class _TakeLink(EndingLink[T, T]):
    __slots__ = ("_left",)

    def __init__(self, below: abc.ObserverBase[T], run: Run, count: int) -> None:
        super().__init__(below, run)
        self._left = count

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        self._left -= 1
        if self._left:
            self.below.on_next(value)
        else:
            self.end_with(value)


def take(count: int) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The first *count* items, then the end; the source is cancelled first. With 0 it is never subscribed.

    ```
    --1--2--3--4--|        take(2)
    --1--2|
    ```

    Raises:
        ConfigurationError: if *count* is negative.
    """
    if count < 0:
        raise ConfigurationError(f"take({count}): the count must not be negative")
    if count == 0:
        empty: Observable[Any] = reactivex.empty()
        return lambda source: empty
    return lift(lambda below, run: _TakeLink(below, run, count))


__all__ = ("take",)
