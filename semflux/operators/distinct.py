"""`distinct`, `distinct_until_changed`: without items that came before."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.filter import FilterLink
from semflux.operators.lift import lift

T = TypeVar("T")
_NONE: Any = object()


def distinct(
    key: Callable[[T], Hashable] | None = None,
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Each item once: without those that are equal to an earlier one, or whose *key* is. It remembers all of them.

    ```
    --1--2--1--|        distinct()
    --1--2-----|
    ```
    """

    def make() -> Callable[[Any], bool]:
        seen: set[Any] = set()

        def is_new(item: Any) -> bool:
            found = item if key is None else key(item)
            if found in seen:
                return False
            seen.add(found)
            return True

        return is_new

    return lift(lambda below, run: FilterLink(below, run, make()))


def distinct_until_changed(
    key: Callable[[T], object] | None = None,
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Without items that are equal to the one just before, or whose *key* is.

    ```
    --1--1--2--1--|        distinct_until_changed()
    --1-----2--1--|
    ```
    """

    def make() -> Callable[[Any], bool]:
        latest: Any = _NONE

        def has_changed(item: Any) -> bool:
            nonlocal latest
            found = item if key is None else key(item)
            if latest is not _NONE and latest == found:
                return False
            latest = found
            return True

        return has_changed

    return lift(lambda below, run: FilterLink(below, run, make()))


__all__ = ("distinct", "distinct_until_changed")
