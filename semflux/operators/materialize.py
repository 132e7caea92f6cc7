"""`materialize`, `dematerialize`, `do_on_each`: signals as values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs
from reactivex import Observable, abc

from semflux.operators.do_finally import SignalType
from semflux.operators.do_on import do_on_complete, do_on_error, do_on_next
from semflux.operators.lift import Link, lift

T = TypeVar("T")
V = TypeVar("V")


@attrs.frozen
class Signal(Generic[T]):
    """An item, an error or the end, as a value. Two errors are equal if they are the same object, and not already if
    they say the same, as in RxPY."""

    type: SignalType | None
    """How it ended; None for an item."""
    value: T | None = None
    """The item; None for an end."""
    error: Exception | None = attrs.field(default=None)
    """The error; None for an item and for a good end."""

    @staticmethod
    def of_next(value: V) -> Signal[V]:
        """The signal of an item."""
        return Signal(None, value)

    @staticmethod
    def of_error(error: Exception) -> Signal[Any]:
        """The signal of an error."""
        return Signal(SignalType.ON_ERROR, None, error)

    @staticmethod
    def of_complete() -> Signal[Any]:
        """The signal of a good end."""
        return Signal(SignalType.ON_COMPLETE)

    @property
    def is_next(self) -> bool:
        """True for an item."""
        return self.type is None

    @property
    def is_error(self) -> bool:
        """True for an error."""
        return self.type is SignalType.ON_ERROR

    @property
    def is_complete(self) -> bool:
        """True for a good end."""
        return self.type is SignalType.ON_COMPLETE


class _MaterializeLink(Link[Any, Signal[Any]]):
    __slots__ = ()

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self.below.on_next(Signal.of_next(value))

    def on_error(self, error: Exception) -> None:
        self._end(Signal.of_error(error))

    def on_completed(self) -> None:
        self._end(Signal.of_complete())

    def _end(self, signal: Signal[Any]) -> None:
        if not self.stopped:
            self.below.on_next(signal)
            super().on_completed()


def materialize() -> Callable[[abc.ObservableBase[T]], Observable[Signal[T]]]:
    """Each signal as an item, the end and an error too; then the end.

    ```
    --1--X        materialize()
    --next(1)-error(X)|
    ```
    """
    return lift(_MaterializeLink)


class _DematerializeLink(Link[Signal[Any], Any]):
    __slots__ = ()

    def on_next(self, value: Signal[Any]) -> None:
        if self.stopped:
            return
        if value.error is not None:
            self.cut(value.error)
        elif value.is_complete:
            self.complete()
        else:
            self.below.on_next(value.value)


def dematerialize() -> Callable[[abc.ObservableBase[Signal[T]]], Observable[T]]:
    """The signals that the items are; at an end the source is cancelled.

    ```
    --next(1)-error(X)|        dematerialize()
    --1--X
    ```
    """
    return lift(_DematerializeLink)


def do_on_each(callback: Callable[[Signal[T]], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Calls *callback* with each item, the error or the end, as a `Signal`, before it goes on. If it raises, the source
    is cancelled and that is the error, which it is told too.

    ```
    --1--|        do_on_each(print)
    --1--|
    ```
    """

    def told(item: T) -> None:
        callback(Signal.of_next(item))

    def operator(source: abc.ObservableBase[T]) -> Observable[T]:
        items = do_on_next(told)(source)
        failures: Observable[T] = do_on_error(lambda error: callback(Signal.of_error(error)))(items)
        return do_on_complete(lambda: callback(Signal.of_complete()))(failures)

    return operator


__all__ = ("Signal", "dematerialize", "do_on_each", "materialize")
