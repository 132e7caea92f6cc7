"""`flat_map`, `concat_map`, `merge_with`, `merge`: the items of several sources, as they come or in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import reactivex
from reactivex import Observable, abc

from semflux.errors import CompositeError, ConfigurationError
from semflux.operators.inner import Inner, MapLink
from semflux.operators.lift import lift
from semflux.operators.run import UNBOUNDED, Run

T = TypeVar("T")
U = TypeVar("U")

CONCURRENCY = 256
"""Sources that `flat_map` is subscribed to at once, unless told otherwise."""


class FlatMapLink(MapLink):
    """Some of the sources at once; the items beyond wait."""

    __slots__ = ("_concurrency", "_delays_errors", "_done", "_errors", "_inners", "_waiting")

    def __init__(
        self,
        below: abc.ObserverBase[Any],
        run: Run,
        function: Callable[[Any], Any],
        concurrency: int,
        delays_errors: bool = False,
    ) -> None:
        super().__init__(below, run, function)
        self._concurrency = concurrency
        self._delays_errors = delays_errors
        self._inners: set[Inner] = set()
        self._waiting: deque[Any] = deque()
        self._errors: list[Exception] = []
        self._done = False

    def _source_failed(self, error: Exception) -> None:
        if self._delays_errors:
            self._errors.append(error)
            self._source_ended()
        else:
            self.cut(error)

    def _source_ended(self) -> None:
        self._done = True
        self._end_if_over()

    def _active(self) -> int:
        """How many sources there is no room for another one beside of."""
        return len(self._inners)

    def _take(self, value: Any) -> None:
        if self.stopped:
            return
        if self._active() >= self._concurrency:
            self._waiting.append(value)
            return
        source = self.source_of(value)
        if not self.stopped:
            inner = self.new_inner()
            self._inners.add(inner)
            self.begin(inner, source)

    def _inner_failed(self, inner: Any, error: Exception) -> None:
        if self._delays_errors:
            self._errors.append(error)
            self._inner_ended(inner)
        else:
            self.cut(error)

    def _inner_ended(self, inner: Any) -> None:
        self._inners.discard(inner)
        if self._waiting and not self.stopped:
            self._take(self._waiting.popleft())
        self._end_if_over()

    def _end_if_over(self) -> None:
        if not self._done or self._inners or self._waiting or self.stopped:
            return
        self._stop()
        if self._errors:
            self.below.on_error(CompositeError.of(self._errors))
        else:
            self.below.on_completed()

    def dispose(self) -> None:
        self._stop()
        self._waiting.clear()
        inners, self._inners = self._inners, set()
        super().dispose()
        for inner in inners:
            inner.dispose()


def check_concurrency(name: str, concurrency: int) -> None:
    """For the operator *name*.

    Raises:
        ConfigurationError: if *concurrency* is not above zero.
    """
    if concurrency < 1:
        raise ConfigurationError(f"{name}(concurrency={concurrency}): it takes one source at least")


def flat_map(
    function: Callable[[T], abc.ObservableBase[U]],
    concurrency: int = CONCURRENCY,
    *,
    delay_errors: bool = False,
) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """The items of the sources that *function* gives, as they come; at most *concurrency* are subscribed to at once,
    items beyond wait. An error of any, and what *function* raises, cancels the rest and is the error.
    *delay_errors*: an error waits until all have ended; several are one CompositeError.

    ```
    --a-----b--|        flat_map(lambda x: of(x, x).delayed)
    --a--a--b--b|
    ```

    Raises:
        ConfigurationError: if *concurrency* is not above zero.
    """
    check_concurrency("flat_map", concurrency)
    return lift(lambda below, run: FlatMapLink(below, run, function, concurrency, delay_errors))


def concat_map(
    function: Callable[[T], abc.ObservableBase[U]], *, delay_errors: bool = False
) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """The items of the sources that *function* gives, one source after another, in order. An error cuts at once.
    *delay_errors*: it waits until all have ended; several are one CompositeError. What *function* raises cuts at once.

    ```
    --a-b------|        concat_map(lambda x: of(x, x).delayed)
    --a--a--b--b|
    ```
    """
    return lift(lambda below, run: FlatMapLink(below, run, function, 1, delay_errors))


def merge(*sources: abc.ObservableBase[T]) -> Observable[T]:
    """The items of all *sources* as they come. An error of any cancels the rest.

    ```
    --1-----2--|    ----8--|        merge(a, b)
    --1-8---2--|
    ```
    """

    def itself(source: abc.ObservableBase[T]) -> abc.ObservableBase[T]:
        return source

    return flat_map(itself, UNBOUNDED)(reactivex.from_iterable(sources))


def merge_with(*others: abc.ObservableBase[T]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The items of the source and of *others* as they come; see `merge`.

    ```
    --1-----2--|        merge_with(of(8))
    8-1-----2--|
    ```
    """
    return lambda source: merge(source, *others)


__all__ = (
    "CONCURRENCY",
    "FlatMapLink",
    "check_concurrency",
    "concat_map",
    "flat_map",
    "merge",
    "merge_with",
)
