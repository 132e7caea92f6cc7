"""`switch_map`: the items of the newest source only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.inner import Gate, Inner
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")
U = TypeVar("U")


class _SwitchLink(Link[Any, Any]):
    """All signals, of the source and of the inner ones, come through one gate."""

    __slots__ = ("_done", "_function", "_gate", "_inner")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, function: Callable[[Any], Any]) -> None:
        super().__init__(below, run)
        run.alone = False
        self._function = function
        self._gate = Gate()
        self._inner: Inner | None = None
        self._done = False

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self._gate.enter(self._take, value)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self._gate.enter(self.fail, error)

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
        self._leave()
        try:
            source = self._function(value)
        except Exception as error:
            self.fail(error)
            return
        self._inner = inner = Inner(self._inner_next, self._inner_error, self._inner_completed)
        inner.begin(source, self.run)
        if self.stopped:
            inner.dispose()

    def _leave(self) -> None:
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.dispose()

    def _inner_next(self, inner: Inner, value: Any) -> None:
        self._gate.enter(self._emit, inner, value)

    def _inner_error(self, inner: Inner, error: Exception) -> None:
        self._gate.enter(self._inner_failed, inner, error)

    def _inner_completed(self, inner: Inner) -> None:
        self._gate.enter(self._inner_ended, inner)

    def _emit(self, inner: Inner, value: Any) -> None:
        if inner is self._inner and not self.stopped:
            self.below.on_next(value)

    def _inner_failed(self, inner: Inner, error: Exception) -> None:
        if inner is self._inner:
            self.fail(error)

    def _inner_ended(self, inner: Inner) -> None:
        if inner is self._inner:
            self._inner = None
            self._end_if_over()

    def _end_if_over(self) -> None:
        if self._done and self._inner is None:
            super().on_completed()

    def dispose(self) -> None:
        super().dispose()
        self._leave()


def switch_map(
    function: Callable[[T], abc.ObservableBase[U]],
) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """The items of the source that *function* gives for the newest item. The one before is cancelled first, and nothing
    of it comes any more. An error of any, and what *function* raises, cancels the rest and is the error; the end comes
    when the source and the newest one have ended.

    ```
    --a-----b-------|        switch_map(lambda x: of(x, x, x).delayed)
    ---a--a--b--b--b|
    ```
    """
    return lift(lambda below, run: _SwitchLink(below, run, function))


__all__ = ("switch_map",)
