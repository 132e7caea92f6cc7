"""`skip`, `skip_while`, `skip_until`: without the first items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.operators.filter import FilterLink
from semflux.operators.lift import lift

T = TypeVar("T")


def _from_the_first(
    make: Callable[[], Callable[[Any], object]],
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """All items from the first one on for which the predicate that *make* gives is true; it is asked no more then."""

    def predicate() -> Callable[[Any], object]:
        begins = make()
        begun = False

        def passes(item: Any) -> object:
            nonlocal begun
            begun = begun or bool(begins(item))
            return begun

        return passes

    return lift(lambda below, run: FilterLink(below, run, predicate()))


def skip(count: int) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Without the first *count* items.

    ```
    --1--2--3--|        skip(2)
    --------3--|
    ```

    Raises:
        ConfigurationError: if *count* is negative.
    """
    if count < 0:
        raise ConfigurationError(f"skip({count}): the count must not be negative")

    def make() -> Callable[[Any], object]:
        left = count

        def begins(item: Any) -> bool:
            nonlocal left
            left -= 1
            return left < 0

        return begins

    return _from_the_first(make)


def skip_while(predicate: Callable[[T], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Without the items up to the first one for which *predicate* is false, which comes.

    ```
    --1--2--3--1--|        skip_while(lambda x: x < 3)
    --------3--1--|
    ```
    """
    return _from_the_first(lambda: lambda item: not predicate(item))


def skip_until(predicate: Callable[[T], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Without the items up to the first one for which *predicate* is true, which comes. (RxPY's operator of this
    name takes an observable.)

    ```
    --1--2--3--1--|        skip_until(lambda x: x == 3)
    --------3--1--|
    ```
    """
    return _from_the_first(lambda: predicate)


__all__ = ("skip", "skip_until", "skip_while")
