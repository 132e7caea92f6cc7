"""`switch_map`: the items of the newest source only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.inner import Inner, MapLink
from semflux.operators.lift import lift
from semflux.operators.run import Run

T = TypeVar("T")
U = TypeVar("U")


class _SwitchLink(MapLink):
    __slots__ = ("_done", "_inner")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, function: Callable[[Any], Any]) -> None:
        super().__init__(below, run, function)
        self._inner: Inner | None = None
        self._done = False

    def _source_ended(self) -> None:
        self._done = True
        self._end_if_over()

    def _take(self, value: Any) -> None:
        if self.stopped:
            return
        self._leave()
        source = self.source_of(value)
        if not self.stopped:
            self._inner = inner = self.new_inner()
            self.begin(inner, source)

    def _leave(self) -> None:
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.dispose()

    def _inner_gave(self, inner: Any, value: Any) -> None:
        if inner is self._inner:
            super()._inner_gave(inner, value)

    def _inner_failed(self, inner: Any, error: Exception) -> None:
        if inner is self._inner:
            self.cut(error)

    def _inner_ended(self, inner: Any) -> None:
        if inner is self._inner:
            self._inner = None
            self._end_if_over()

    def _end_if_over(self) -> None:
        if self._done and self._inner is None and not self.stopped:
            self._stop()
            self.below.on_completed()

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
