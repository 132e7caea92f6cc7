"""`do_first`, `do_on_subscribe`, `do_on_terminate`, `do_after_terminate`: at the beginning and at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.do_finally import SignalType, do_finally
from semflux.operators.do_on import do_on_complete, do_on_error
from semflux.operators.lift import NOTHING, Lifted, PassLink, lift
from semflux.operators.run import Run

T = TypeVar("T")


class _DoFirst(Lifted[T]):
    """Calls back before the source is subscribed to; so those below, which are subscribed to first, come first."""

    def __init__(self, source: abc.ObservableBase[T], callback: Callable[[], object]) -> None:
        super().__init__(source, PassLink)
        self._callback = callback

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        try:
            self._callback()
        except Exception as error:
            observer.on_error(error)
            return NOTHING
        return super()._subscribe_core(observer, scheduler)


def do_first(callback: Callable[[], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Calls *callback* before the source is subscribed to; several of them from the bottom up. If it raises, that is
    the error, and the source is not subscribed to.

    ```
      --1--2--|        do_first(begin)
    begin() --1--2--|
    ```
    """
    return lambda source: _DoFirst(source, callback)


class _DoOnSubscribeLink(PassLink):
    """Calls back when the source has been subscribed to, before anything of it goes down."""

    __slots__ = ("_callback", "_called")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, callback: Callable[[], object]) -> None:
        super().__init__(below, run)
        self._callback = callback
        self._called = False

    def _call(self) -> None:
        if not self._called:
            self._called = True
            try:
                self._callback()
            except Exception as error:
                self.fail(error)

    def connect(self, upstream: abc.DisposableBase) -> None:
        super().connect(upstream)
        if not self.stopped:
            self._call()

    def on_next(self, value: Any) -> None:
        self._call()
        super().on_next(value)

    def on_error(self, error: Exception) -> None:
        self._call()
        super().on_error(error)

    def on_completed(self) -> None:
        self._call()
        super().on_completed()


def do_on_subscribe(callback: Callable[[], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Calls *callback* when the source has been subscribed to, before anything of it goes down. If it raises, the
    source is cancelled and that is the error.

    ```
    --1--2--|        do_on_subscribe(begin)
    begin() --1--2--|
    ```
    """
    return lift(lambda below, run: _DoOnSubscribeLink(below, run, callback))


def do_on_terminate(callback: Callable[[], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Calls *callback* before the end or the error goes on; not at a cancel. If it raises, that is the error.

    ```
    --1--2--|        do_on_terminate(finish)
    --1--2--finish() |
    ```
    """

    def operator(source: abc.ObservableBase[T]) -> Observable[T]:
        failures: Observable[T] = do_on_error(lambda error: callback())(source)
        return do_on_complete(callback)(failures)

    return operator


def do_after_terminate(callback: Callable[[], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Calls *callback* after the end or the error went down; not at a cancel. What it raises goes to
    `Hooks.on_error_dropped`.

    ```
    --1--2--|        do_after_terminate(clean)
    --1--2--| clean()
    ```
    """

    def call(signal: SignalType) -> None:
        if signal is not SignalType.CANCEL:
            callback()

    return do_finally(call)


__all__ = ("do_after_terminate", "do_first", "do_on_subscribe", "do_on_terminate")
