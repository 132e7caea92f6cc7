"""`do_finally`: clean-up, once, whatever the end."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from reactivex import Observable, abc

from semflux.operators.hooks import Hooks
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")


class SignalType(StrEnum):
    """How a subscription ended."""

    ON_COMPLETE = "ON_COMPLETE"
    ON_ERROR = "ON_ERROR"
    CANCEL = "CANCEL"


class _DoFinallyLink(Link[T, T]):
    __slots__ = ("_callback",)

    def __init__(
        self, below: abc.ObserverBase[T], run: Run, callback: Callable[[SignalType], object]
    ) -> None:
        super().__init__(below, run)
        self._callback = callback

    def on_next(self, value: T) -> None:
        if not self.stopped:
            self.below.on_next(value)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            try:
                super().on_error(error)
            finally:
                self._call(SignalType.ON_ERROR)

    def on_completed(self) -> None:
        if not self.stopped:
            try:
                super().on_completed()
            finally:
                self._call(SignalType.ON_COMPLETE)

    def dispose(self) -> None:
        cancelled = not self.stopped
        super().dispose()
        if cancelled:
            self._call(SignalType.CANCEL)

    def _call(self, signal: SignalType) -> None:
        try:
            self._callback(signal)
        except Exception as error:
            Hooks.drop_error(error)


def do_finally(
    callback: Callable[[SignalType], object],
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Calls *callback* exactly once with how it ended, after the signal went down, or after the source was
    cancelled; so at an end several of them run from the bottom up. What it raises goes to `Hooks.on_error_dropped`.

    ```
    --1--2--|        do_finally(release)
    --1--2--|  release(ON_COMPLETE)
    ```
    """
    return lift(lambda below, run: _DoFinallyLink(below, run, callback))


__all__ = ("SignalType", "do_finally")
