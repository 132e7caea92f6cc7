"""`ignore_elements`: only the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.filter import FilterLink
from semflux.operators.lift import lift

T = TypeVar("T")


def ignore_elements() -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """No item; the end, or the error.

    ```
    --1--2--|        ignore_elements()
    --------|
    ```
    """

    def nothing(item: Any) -> bool:
        return False

    return lift(lambda below, run: FilterLink(below, run, nothing))


__all__ = ("ignore_elements",)
