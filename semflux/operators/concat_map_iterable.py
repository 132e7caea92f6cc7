"""`concat_map_iterable`: for each item the items of an iterable, at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")
U = TypeVar("U")
_END: Any = object()


class _ConcatMapIterableLink(Link[T, U]):
    __slots__ = ("_function",)

    def __init__(self, below: abc.ObserverBase[U], run: Run, function: Callable[[Any], Iterable[U]]) -> None:
        super().__init__(below, run)
        self._function = function

    def on_next(self, value: T) -> None:
        if self.stopped:
            return
        try:
            items = iter(self._function(value))
        except Exception as error:
            self.fail(error)
            return
        down = self.below.on_next
        try:
            while not self.stopped:
                try:
                    # Not a `for`: what the iterator raises is told from what is below raises.
                    item = next(items, _END)
                except Exception as error:
                    self.fail(error)
                    return
                if item is _END:
                    return
                down(item)
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()


def concat_map_iterable(
    function: Callable[[T], Iterable[U]],
) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """The items of the iterable that *function* gives for each item, in order. A dispose stops the iteration, and
    closes a generator. What *function* or the iterable raises is the error; the source is cancelled first.

    ```
    --ab--c--|        concat_map_iterable(list)
    --a-b-c--|
    ```
    """
    return lift(lambda below, run: _ConcatMapIterableLink(below, run, function))


__all__ = ("concat_map_iterable",)
