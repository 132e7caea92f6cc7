"""`deferred`, `deferred_contextual`, `transform_deferred`: what is subscribed to is made for each subscriber."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.context import Context
from semflux.operators.inner import unwrapped
from semflux.operators.lift import NOTHING, Direct, PassLink, subscribe_to
from semflux.operators.run import run_of

T = TypeVar("T")
U = TypeVar("U")


class _Deferred(Direct[T]):
    def __init__(self, make: Callable[[Context], abc.ObservableBase[T]]) -> None:
        super().__init__()
        self._make = make

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        try:
            source = self._make(run.context)
        except Exception as error:
            observer.on_error(error)
            return NOTHING
        link = PassLink(observer, run)
        # With the subscriber's own Run, so that it is pulled as it would be without this.
        link.connect(subscribe_to(unwrapped(source), link, run))
        return link


def deferred(make: Callable[[], abc.ObservableBase[T]]) -> Observable[T]:
    """For each subscriber the stream that *make* gives then. What it raises is the error.

    ```
    make()        deferred(make)
      --1--2--|
    ```
    """
    return _Deferred(lambda context: make())


def deferred_contextual(make: Callable[[Context], abc.ObservableBase[T]]) -> Observable[T]:
    """As `deferred`, for the context of each subscriber."""
    return _Deferred(make)


def transform_deferred(
    function: Callable[[Observable[T]], abc.ObservableBase[U]],
) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """For each subscriber the stream that *function* makes of the source then: a chain with a state of its own for
    each. What it raises is the error, and the source is not subscribed to.

    ```
    --1--2--|        transform_deferred(lambda source: source.pipe(map_(str)))
    --"1"--"2"--|
    ```
    """

    def operator(source: abc.ObservableBase[T]) -> Observable[U]:
        given: Any = source
        return _Deferred(lambda context: function(given))

    return operator


__all__ = ("deferred", "deferred_contextual", "transform_deferred")
