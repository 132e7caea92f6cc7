"""`handle`: for each item at most one item, and an end if wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")
U = TypeVar("U")
_NONE: Any = object()


class HandleSink(Generic[U]):
    """What the function of `handle` answers with, for the item at hand: at most one `next`, one end."""

    __slots__ = ("ended", "failure", "value")

    def __init__(self) -> None:
        self.value: Any = _NONE
        """The item to give; a mark of `handle` for none."""
        self.ended: bool = False
        """True once an end was told."""
        self.failure: Exception | None = None
        """The error of that end; None for a good one."""

    @property
    def has_value(self) -> bool:
        """True once an item was given."""
        return self.value is not _NONE

    def next(self, value: U) -> None:
        """Give this item.

        Raises:
            ConfigurationError: at the second one for the same item, and after an end.
        """
        if self.value is not _NONE or self.ended:
            raise ConfigurationError("handle(): at most one next for each item, and none after an end")
        self.value = value

    def complete(self) -> None:
        """End the stream after this; the source is cancelled."""
        self._end(None)

    def error(self, error: Exception) -> None:
        """Fail the stream after this; the source is cancelled."""
        self._end(error)

    def _end(self, failure: Exception | None) -> None:
        if self.ended:
            raise ConfigurationError("handle(): at most one end")
        self.ended = True
        self.failure = failure


class _HandleLink(Link[T, U]):
    __slots__ = ("_function",)

    def __init__(
        self, below: abc.ObserverBase[U], run: Run, function: Callable[[Any, HandleSink[U]], object]
    ) -> None:
        super().__init__(below, run)
        self._function = function

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        sink: HandleSink[U] = HandleSink()
        try:
            self._function(value, sink)
        except Exception as error:
            self.fail(error)
            return
        if sink.value is not _NONE:
            self.below.on_next(sink.value)
        if sink.failure is not None:
            self.fail(sink.failure)
        elif sink.ended:
            self.complete()


def handle(
    function: Callable[[T, HandleSink[U]], object],
) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """Calls *function* with each item and a sink: `next` gives one item at most, `complete` and `error` end the
    stream; neither leaves the item out. If it raises, the source is cancelled and that is the error.

    ```
    --1--2--3--|        handle(lambda x, sink: sink.next(x * 10) if x < 3 else sink.complete())
    --10-20-|
    ```
    """
    return lift(lambda below, run: _HandleLink(below, run, function))


__all__ = ("HandleSink", "handle")
