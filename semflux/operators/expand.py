"""`expand`, `expand_deep`: the items, and what comes of each, and of that again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.inner import Holding, Inner, MapLink
from semflux.operators.lift import lift
from semflux.operators.run import Run

T = TypeVar("T")


class _ExpandLink(MapLink):
    """One source after another."""

    __slots__ = ("_inner", "_waiting")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, function: Callable[[Any], Any]) -> None:
        super().__init__(below, run, function)
        self._inner: Inner | None = None
        self._waiting: deque[Any] = deque()

    def _take(self, value: Any) -> None:
        if self.stopped:
            return
        self.below.on_next(value)
        if not self.stopped:
            self._waiting.append(self.source_of(value))

    def _inner_gave(self, inner: Any, value: Any) -> None:
        self._take(value)

    def _source_ended(self) -> None:
        if self.stopped:
            return
        if not self._waiting:
            self._stop()
            self.below.on_completed()
            return
        self._inner = inner = self.new_inner()
        self.begin(inner, self._waiting.popleft())

    def _inner_ended(self, inner: Any) -> None:
        self._source_ended()

    def dispose(self) -> None:
        super().dispose()
        self._waiting.clear()
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.dispose()


def expand(
    function: Callable[[T], abc.ObservableBase[T]],
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The items of the source, then those of the streams that *function* gives for each of them, then for each of
    those, and so on: breadth first, one stream after another. *function* is called right after its item was delivered;
    the streams wait. An error of any, and what *function* raises, cancels the rest and is the error.

    ```
    --1--5--|        expand(lambda x: of(x * 10, x * 10 + 1) if x < 10 else empty())
    --1--5--10-11-50-51|
    ```
    """
    return lift(lambda below, run: _ExpandLink(below, run, function))


class _ExpandDeepLink(MapLink):
    """The sources on the way down; the last one is at work, what the others give meanwhile waits."""

    __slots__ = ("_levels", "_top")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, function: Callable[[Any], Any]) -> None:
        super().__init__(below, run, function)
        self._top = self._new_level()
        self._levels = [self._top]

    def _new_level(self) -> Holding:
        return Holding(self._inner_next, self._inner_error, self._inner_completed)

    def _take(self, value: Any) -> None:
        self._inner_gave(self._top, value)

    def _source_ended(self) -> None:
        self._inner_ended(self._top)

    def _inner_gave(self, inner: Any, value: Any) -> None:
        inner.items.append(value)
        self._advance()

    def _inner_ended(self, inner: Any) -> None:
        inner.over = True
        self._advance()

    def _advance(self) -> None:
        levels = self._levels
        while levels and not self.stopped:
            level = levels[-1]
            if level.items:
                self._expand(level.items.popleft())
            elif level.over:
                levels.pop()
            else:
                return
        if not self.stopped:
            self._stop()
            self.below.on_completed()

    def _expand(self, value: Any) -> None:
        self.below.on_next(value)
        source = None if self.stopped else self.source_of(value)
        if not self.stopped:
            level = self._new_level()
            self._levels.append(level)
            self.begin(level, source)

    def dispose(self) -> None:
        super().dispose()
        levels, self._levels = self._levels, []
        for level in levels:
            level.items.clear()
            level.dispose()


def expand_deep(
    function: Callable[[T], abc.ObservableBase[T]],
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Each item of the source, then all that comes of it: the items of the stream that *function* gives for it, each
    with what comes of it in its turn; depth first. What a stream gives meanwhile waits. An error of any, and what
    *function* raises, cancels the rest and is the error, at once. (Reactor's `expandDeep` tells it last.)

    ```
    --1--5--|        expand_deep(lambda x: of(x * 10, x * 10 + 1) if x < 10 else empty())
    --1--10-11-5-50-51|
    ```
    """
    return lift(lambda below, run: _ExpandDeepLink(below, run, function))


__all__ = ("expand", "expand_deep")
