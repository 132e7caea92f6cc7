"""`zip_`, `combine_latest`, `first_with_value`, `first_with_signal`, `take_until_other`: sources that look at one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import reactivex
from reactivex import Observable, abc

from semflux.errors import EmptySequenceError
from semflux.operators.inner import Gate, Inner, unwrapped
from semflux.operators.lift import Direct, Link, lift
from semflux.operators.run import Run, run_of

T = TypeVar("T")


def _plain(sources: tuple[abc.ObservableBase[Any], ...]) -> list[Any]:
    return [unwrapped(source) for source in sources]


def zip_(*sources: abc.ObservableBase[Any]) -> Observable[tuple[Any, ...]]:
    """Tuples of the first items of all *sources*, of the second ones, and so on; the end when one can give no more.

    ```
    --1--2--|    ---a---b---c--|        zip_(a, b)
    ---(1, a)---(2, b)|
    ```
    """
    return reactivex.zip(*_plain(sources))


def combine_latest(*sources: abc.ObservableBase[Any]) -> Observable[tuple[Any, ...]]:
    """Tuples of the newest items of all *sources*, at each item, once each has had one; the end when all have ended.

    ```
    --1-----2--|    ---a---|        combine_latest(a, b)
    ---(1, a)-(2, a)|
    ```
    """
    return reactivex.combine_latest(*_plain(sources))


class _FirstLink(Link[Any, Any]):
    """All are subscribed to; the first one that gives an item stays. *any_signal*: or that ends."""

    __slots__ = ("_any_signal", "_errors", "_gate", "_inners", "_winner")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, *, any_signal: bool) -> None:
        super().__init__(below, run)
        self._any_signal = any_signal
        self._gate = Gate()
        self._inners: list[Inner] = []
        self._winner: Inner | None = None
        self._errors: list[Exception] = []

    def begin(self, sources: list[Any]) -> None:
        """Subscribe to all, until one has won."""
        self._inners = [Inner(self._next, self._error, self._completed) for _ in sources]
        for inner, source in zip(list(self._inners), sources, strict=True):
            if self._winner is not None or self.stopped:
                return
            inner.begin(source, self.run)
        if not sources:
            self._lost()

    def _next(self, inner: Inner, value: Any) -> None:
        self._gate.enter(self._take, inner, value)

    def _take(self, inner: Inner, value: Any) -> None:
        self._win(inner)
        if self._winner is inner and not self.stopped:
            self.below.on_next(value)

    def _win(self, inner: Inner) -> None:
        if self._winner is None and not self.stopped:
            self._winner = inner
            losers, self._inners = self._inners, [inner]
            for other in losers:
                if other is not inner:
                    other.dispose()

    def _error(self, inner: Inner, error: Exception) -> None:
        self._gate.enter(self._ended, inner, error)

    def _completed(self, inner: Inner) -> None:
        self._gate.enter(self._ended, inner, None)

    def _ended(self, inner: Inner, error: Exception | None) -> None:
        if self._any_signal:
            self._win(inner)
        if self._winner is inner:
            if error is None:
                super().on_completed()
            else:
                super().on_error(error)
            return
        if error is not None:
            self._errors.append(error)
        if inner in self._inners:
            self._inners.remove(inner)
            if not self._inners:
                self._lost()

    def _lost(self) -> None:
        if self._any_signal:
            super().on_completed()
            return
        failure = EmptySequenceError("first_with_value(): no source had an item")
        if self._errors:
            failure.__cause__ = ExceptionGroup("the errors of the sources", self._errors)
        super().on_error(failure)

    def dispose(self) -> None:
        self.stopped = True
        inners, self._inners = self._inners, []
        for inner in inners:
            inner.dispose()
        super().dispose()


class _First(Direct[T]):
    def __init__(self, sources: list[Any], *, any_signal: bool) -> None:
        super().__init__()
        self._sources = sources
        self._any_signal = any_signal

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        link = _FirstLink(observer, run_of(scheduler), any_signal=self._any_signal)
        link.begin(self._sources)
        return link


def first_with_value(*sources: abc.ObservableBase[T]) -> Observable[T]:
    """The one of *sources* that gives an item first; the others are cancelled. An empty or failed one is left out.

    Errors:
        EmptySequenceError: if none has an item; the sources' errors are its `__cause__`.

    ```
    ------1--2--|    ---8--9--|        first_with_value(a, b)
    ---8--9--|
    ```
    """
    return _First(_plain(sources), any_signal=False)


def first_with_signal(*sources: abc.ObservableBase[T]) -> Observable[T]:
    """The one of *sources* that does anything first: gives an item, completes or fails; the others are cancelled. Without
    a source, the end. (RxPY's `amb`.)

    ```
    ------1--2--|    ---X        first_with_signal(a, b)
    ---X
    ```
    """
    return _First(_plain(sources), any_signal=True)


def or_else(other: abc.ObservableBase[T]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The source or *other*, whichever does anything first; see `first_with_signal`.

    ```
    ------1--2--|    ---8--9--|        or_else(b)
    ---8--9--|
    ```
    """
    return lambda source: first_with_signal(source, other)


class _TakeUntilOtherLink(Link[Any, Any]):
    """Signals of both come through one gate."""

    __slots__ = ("_gate", "_other")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, other: abc.ObservableBase[Any]) -> None:
        super().__init__(below, run)
        self._gate = Gate()
        self._other = Inner(self._other_next, self._other_error, self._other_completed)
        self._other.begin(other, run)

    def on_next(self, value: Any) -> None:
        self._gate.enter(self._pass, value)

    def _pass(self, value: Any) -> None:
        if not self.stopped:
            self.below.on_next(value)

    def on_error(self, error: Exception) -> None:
        self._gate.enter(self.cut, error)

    def on_completed(self) -> None:
        self.upstream = None
        self._gate.enter(self.complete)

    def _other_next(self, inner: Inner, value: Any) -> None:
        self._gate.enter(self.complete)

    def _other_error(self, inner: Inner, error: Exception) -> None:
        self._gate.enter(self.cut, error)

    def _other_completed(self, inner: Inner) -> None:
        self._gate.enter(self.complete)

    def dispose(self) -> None:
        self.stopped = True
        self._other.dispose()
        super().dispose()


def take_until_other(
    other: abc.ObservableBase[Any],
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The items until *other* gives its first item, or completes; then the source is cancelled. An error of *other* is
    the error. (RxPY's `take_until`, which goes on where *other* completes.)

    ```
    --1--2--3--|    ------x        take_until_other(b)
    --1--2|
    ```
    """
    return lift(lambda below, run: _TakeUntilOtherLink(below, run, other))


__all__ = ("combine_latest", "first_with_signal", "first_with_value", "or_else", "take_until_other", "zip_")
