"""`expand`, `expand_deep`: the items, and what comes of each, and of that again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.inner import Gate, Inner
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")


class _ExpandLink(Link[Any, Any]):
    """One source after another; all signals come through one gate, so that none is inside another."""

    __slots__ = ("_function", "_gate", "_inner", "_waiting")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, function: Callable[[Any], Any]) -> None:
        super().__init__(below, run)
        run.alone = False
        self._function = function
        self._gate = Gate()
        self._inner: Inner | None = None
        self._waiting: deque[Any] = deque()

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self._gate.enter(self._take, value)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self._gate.enter(self.fail, error)

    def on_completed(self) -> None:
        if not self.stopped:
            self.upstream = None
            self._gate.enter(self._advance)

    def _take(self, value: Any) -> None:
        if self.stopped:
            return
        self.below.on_next(value)
        if self.stopped:
            return
        try:
            self._waiting.append(self._function(value))
        except Exception as error:
            self.fail(error)

    def _advance(self) -> None:
        if self.stopped:
            return
        if not self._waiting:
            super().on_completed()
            return
        self._inner = inner = Inner(self._inner_next, self._inner_error, self._inner_completed)
        inner.begin(self._waiting.popleft(), self.run)
        if self.stopped:
            inner.dispose()

    def _inner_next(self, inner: Inner, value: Any) -> None:
        self.on_next(value)

    def _inner_error(self, inner: Inner, error: Exception) -> None:
        self.on_error(error)

    def _inner_completed(self, inner: Inner) -> None:
        self.on_completed()

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


class _Level(Inner):
    """A source, and those of its items that wait until what came of the one before is over."""

    __slots__ = ("items", "over")

    def __init__(self, on_next: Any, on_error: Any, on_completed: Any) -> None:
        super().__init__(on_next, on_error, on_completed)
        self.items: deque[Any] = deque()
        self.over = False


class _ExpandDeepLink(Link[Any, Any]):
    """The sources on the way down; the last one is at work."""

    __slots__ = ("_function", "_gate", "_levels", "_top")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, function: Callable[[Any], Any]) -> None:
        super().__init__(below, run)
        run.alone = False
        self._function = function
        self._gate = Gate()
        self._top = self._new_level()
        self._levels = [self._top]

    def _new_level(self) -> _Level:
        return _Level(self._inner_next, self._inner_error, self._inner_completed)

    def on_next(self, value: Any) -> None:
        self._inner_next(self._top, value)

    def on_error(self, error: Exception) -> None:
        self._inner_error(self._top, error)

    def on_completed(self) -> None:
        if not self.stopped:
            self.upstream = None
            self._inner_completed(self._top)

    def _inner_next(self, inner: Inner, value: Any) -> None:
        if not self.stopped:
            self._gate.enter(self._arrived, inner, value)

    def _inner_error(self, inner: Inner, error: Exception) -> None:
        if not self.stopped:
            self._gate.enter(self.fail, error)

    def _inner_completed(self, inner: Inner) -> None:
        if not self.stopped:
            self._gate.enter(self._ended, inner)

    def _arrived(self, level: _Level, value: Any) -> None:
        level.items.append(value)
        self._advance()

    def _ended(self, level: _Level) -> None:
        level.over = True
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
        super().on_completed()

    def _expand(self, value: Any) -> None:
        self.below.on_next(value)
        if self.stopped:
            return
        try:
            source = self._function(value)
        except Exception as error:
            self.fail(error)
            return
        level = self._new_level()
        self._levels.append(level)
        level.begin(source, self.run)
        if self.stopped:
            level.dispose()

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
