"""`switch_on_first`: what to make of a stream is decided at its first signal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.inner import Inner
from semflux.operators.lift import Link, lift
from semflux.operators.materialize import Signal
from semflux.operators.part import Outlet, Part
from semflux.operators.run import Run

T = TypeVar("T")
U = TypeVar("U")


class _SwitchOnFirstLink(Link[Any, Any]):
    """Feeds the whole stream to one part, from which the function makes what goes below."""

    __slots__ = ("_function", "_inner", "_over", "_whole")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, function: Callable[[Any, Any], Any]) -> None:
        super().__init__(below, run)
        self._function = function
        self._whole: Outlet | None = None
        self._inner: Inner | None = None
        self._over = False

    def connect(self, upstream: abc.DisposableBase) -> None:
        if self._over:
            upstream.dispose()
        else:
            super().connect(upstream)

    def on_next(self, value: Any) -> None:
        if self._over or self.stopped:
            return
        if self._whole is None:
            self._begin(Signal.of_next(value))
        else:
            self._whole.emit(value)

    def on_error(self, error: Exception) -> None:
        self._end(Signal.of_error(error))

    def on_completed(self) -> None:
        self._end(Signal.of_complete())

    def _end(self, signal: Signal[Any]) -> None:
        if self._over or self.stopped:
            return
        self._over = True
        self.upstream = None
        if self._whole is None:
            self._begin(signal)
        else:
            self._whole.end(signal.error)

    def _begin(self, signal: Signal[Any]) -> None:
        self._whole = whole = Outlet(self)
        part: Part[Any] = Part(whole)
        try:
            source = self._function(signal, part)
        except Exception as error:
            self.fail(error)
            return
        self._inner = inner = Inner(self._inner_next, self._inner_error, self._inner_completed)
        inner.begin(source, self.run)
        if self.stopped:
            inner.dispose()
        elif signal.is_next:
            # Not before the inner one listens: what is held comes from the trampoline, which may be long.
            whole.emit(signal.value)
        else:
            whole.end(signal.error)

    def part_left(self, outlet: Outlet, *, for_good: bool) -> None:
        """The whole stream is not read any more: its source is cancelled. What goes below may go on."""
        self._over = True
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.dispose()

    def drained(self) -> None:
        """The source goes at the pace of what is below."""

    def _inner_next(self, inner: Inner, value: Any) -> None:
        self.below.on_next(value)

    def _inner_error(self, inner: Inner, error: Exception) -> None:
        self.cut(error)

    def _inner_completed(self, inner: Inner) -> None:
        self.complete()

    def dispose(self) -> None:
        super().dispose()
        inner, self._inner = self._inner, None
        self._whole = None
        if inner is not None:
            inner.dispose()


def switch_on_first(
    function: Callable[[Signal[T], Part[T]], abc.ObservableBase[U]],
) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """What *function* makes of the stream, given its first signal and the whole stream, first item included. The signal
    may be an end or an error: then the whole stream has that only. The whole stream is for one subscriber, a second
    one gets AlreadyConsumedError; the source is cancelled when that one leaves, when none can come any more, and when
    what *function* gave ends. What *function* raises is the error; the source is cancelled first.

    ```
    --1--2--3--|        switch_on_first(lambda first, all: all.pipe(map(lambda x: x + first.value)))
    --2--3--4--|
    ```
    """
    return lift(lambda below, run: _SwitchOnFirstLink(below, run, function))


__all__ = ("switch_on_first",)
