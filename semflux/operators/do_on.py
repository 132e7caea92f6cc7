"""`do_on_next`, `do_on_error`, `do_on_complete`, `do_on_cancel`: look at a signal as it passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.hooks import Hooks
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")


def _nothing(*args: Any) -> None:
    pass


class _DoLink(Link[T, T]):
    """Calls back before a signal goes on. A callback that raises makes its exception the error."""

    __slots__ = ("_on_cancel", "_on_complete", "_on_error", "_on_next")

    def __init__(
        self,
        below: abc.ObserverBase[T],
        run: Run,
        on_next: Callable[[Any], object] = _nothing,
        on_error: Callable[[Exception], object] = _nothing,
        on_complete: Callable[[], object] = _nothing,
        on_cancel: Callable[[], object] = _nothing,
    ) -> None:
        super().__init__(below, run)
        self._on_next = on_next
        self._on_error = on_error
        self._on_complete = on_complete
        self._on_cancel = on_cancel

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        try:
            self._on_next(value)
        except Exception as error:
            self.fail(error)
        else:
            self.below.on_next(value)

    def on_error(self, error: Exception) -> None:
        if self.stopped:
            return
        try:
            self._on_error(error)
        except Exception as raised:
            raised.__context__ = error
            error = raised
        super().on_error(error)

    def on_completed(self) -> None:
        if self.stopped:
            return
        try:
            self._on_complete()
        except Exception as error:
            super().on_error(error)
        else:
            super().on_completed()

    def cut(self, error: Exception) -> None:
        # Not a cancel of what is below, so no callback.
        self.stopped = True
        super().dispose()
        self.below.on_error(error)

    def dispose(self) -> None:
        if not self.stopped:
            self.stopped = True
            try:
                self._on_cancel()
            except Exception as error:
                # Reactor makes it the error and cancels nothing. Nobody below listens any more, and a source
                # left running would leak, so it goes where errors without a receiver go.
                Hooks.drop_error(error)
        super().dispose()


def do_on_next(callback: Callable[[T], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Calls *callback* with each item before it goes on. If it raises, the source is cancelled and that is
    the error."""
    return lift(lambda below, run: _DoLink(below, run, on_next=callback))


def do_on_error(callback: Callable[[Exception], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Calls *callback* with the error before it goes on. If it raises, its exception takes the place of the
    error, which stays as the `__context__`."""
    return lift(lambda below, run: _DoLink(below, run, on_error=callback))


def do_on_complete(callback: Callable[[], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Calls *callback* before the end goes on; not at an error, not at a cancel."""
    return lift(lambda below, run: _DoLink(below, run, on_complete=callback))


def do_on_cancel(callback: Callable[[], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Calls *callback* when what is below cancels, before the source is told; not at an end. What it raises
    goes to `Hooks.on_error_dropped`; the source is cancelled all the same."""
    return lift(lambda below, run: _DoLink(below, run, on_cancel=callback))


__all__ = ("do_on_cancel", "do_on_complete", "do_on_error", "do_on_next")
