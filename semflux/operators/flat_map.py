"""`flat_map`, `concat_map`, `merge_with`, `merge`: the items of several sources, as they come or in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import reactivex
from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.operators.inner import Gate, Inner
from semflux.operators.lift import Link, lift
from semflux.operators.run import UNBOUNDED, Run

T = TypeVar("T")
U = TypeVar("U")

CONCURRENCY = 256
"""Sources that `flat_map` is subscribed to at once, unless told otherwise."""


class _FlatMapLink(Link[Any, Any]):
    """All signals, of the source and of the inner ones, come through one gate."""

    __slots__ = ("_concurrency", "_done", "_function", "_gate", "_inners", "_waiting")

    def __init__(
        self, below: abc.ObserverBase[Any], run: Run, function: Callable[[Any], Any], concurrency: int
    ) -> None:
        super().__init__(below, run)
        run.alone = False
        self._function = function
        self._concurrency = concurrency
        self._gate = Gate()
        self._inners: set[Inner] = set()
        self._waiting: deque[Any] = deque()
        self._done = False

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self._gate.enter(self._take, value)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self._gate.enter(self.cut, error)

    def on_completed(self) -> None:
        if not self.stopped:
            self._gate.enter(self._source_ended)

    def _source_ended(self) -> None:
        self._done = True
        self.upstream = None
        self._end_if_over()

    def _take(self, value: Any) -> None:
        if self.stopped:
            return
        if len(self._inners) >= self._concurrency:
            self._waiting.append(value)
            return
        try:
            source = self._function(value)
        except Exception as error:
            self.fail(error)
            return
        inner = Inner(self._inner_next, self._inner_error, self._inner_completed)
        self._inners.add(inner)
        inner.begin(source, self.run)
        if self.stopped:
            inner.dispose()

    def _inner_next(self, inner: Inner, value: Any) -> None:
        self._gate.enter(self._emit, value)

    def _inner_error(self, inner: Inner, error: Exception) -> None:
        self._gate.enter(self.cut, error)

    def _inner_completed(self, inner: Inner) -> None:
        self._gate.enter(self._inner_ended, inner)

    def _emit(self, value: Any) -> None:
        if not self.stopped:
            self.below.on_next(value)

    def _inner_ended(self, inner: Inner) -> None:
        self._inners.discard(inner)
        if self._waiting and not self.stopped:
            self._take(self._waiting.popleft())
        self._end_if_over()

    def _end_if_over(self) -> None:
        if self._done and not self._inners and not self._waiting:
            super().on_completed()

    def dispose(self) -> None:
        self.stopped = True
        self._waiting.clear()
        inners, self._inners = self._inners, set()
        super().dispose()
        for inner in inners:
            inner.dispose()


def flat_map(
    function: Callable[[T], abc.ObservableBase[U]], concurrency: int = CONCURRENCY
) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """The items of the sources that *function* gives, as they come; at most *concurrency* are subscribed to at once,
    items beyond wait. An error of any, and what *function* raises, cancels the rest and is the error.

    ```
    --a-----b--|        flat_map(lambda x: of(x, x).delayed)
    --a--a--b--b|
    ```

    Raises:
        ConfigurationError: if *concurrency* is not above zero.
    """
    if concurrency < 1:
        raise ConfigurationError(f"flat_map(concurrency={concurrency}): it takes one source at least")
    return lift(lambda below, run: _FlatMapLink(below, run, function, concurrency))


def concat_map(
    function: Callable[[T], abc.ObservableBase[U]],
) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """The items of the sources that *function* gives, one source after another, in order. An error cuts at once.

    ```
    --a-b------|        concat_map(lambda x: of(x, x).delayed)
    --a--a--b--b|
    ```
    """
    return lift(lambda below, run: _FlatMapLink(below, run, function, 1))


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


__all__ = ("CONCURRENCY", "concat_map", "flat_map", "merge", "merge_with")
