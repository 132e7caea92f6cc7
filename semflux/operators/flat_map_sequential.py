"""`flat_map_sequential`: several sources at once, their items in the order of the sources."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.flat_map import CONCURRENCY, FlatMapLink, check_concurrency
from semflux.operators.inner import Holding, Inner
from semflux.operators.lift import lift
from semflux.operators.run import Run

T = TypeVar("T")
U = TypeVar("U")


class _SequentialLink(FlatMapLink):
    __slots__ = ("_slots",)

    def __init__(
        self,
        below: abc.ObserverBase[Any],
        run: Run,
        function: Callable[[Any], Any],
        concurrency: int,
        delays_errors: bool,
    ) -> None:
        super().__init__(below, run, function, concurrency, delays_errors)
        self._slots: deque[Holding] = deque()

    def _active(self) -> int:
        # One that has ended and waits for its turn takes room too: else all of them would wait in memory.
        return len(self._slots)

    def new_inner(self) -> Inner:
        slot = Holding(self._inner_next, self._inner_error, self._inner_completed)
        self._slots.append(slot)
        return slot

    def _inner_gave(self, inner: Any, value: Any) -> None:
        if self.stopped:
            return
        if inner is self._slots[0]:
            self.below.on_next(value)
        else:
            inner.items.append(value)

    def _inner_ended(self, inner: Any) -> None:
        self._inners.discard(inner)
        inner.over = True
        slots = self._slots
        while slots and slots[0].over and not self.stopped:
            slots.popleft()
            if self._waiting:
                self._take(self._waiting.popleft())
            if slots:
                self._let_out(slots[0].items)
        self._end_if_over()

    def _let_out(self, items: deque[Any]) -> None:
        while items and not self.stopped:
            self.below.on_next(items.popleft())

    def dispose(self) -> None:
        super().dispose()
        self._slots.clear()


def flat_map_sequential(
    function: Callable[[T], abc.ObservableBase[U]],
    concurrency: int = CONCURRENCY,
    *,
    delay_errors: bool = False,
) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """The items of the sources that *function* gives, in the order of the sources, though up to *concurrency* of them
    are subscribed to at once: what comes of one before its turn waits, without bound. An error of any, and what
    *function* raises, cancels the rest and is the error. *delay_errors*: an error waits until all have ended; several
    are one CompositeError.

    ```
    --a-b--------|        flat_map_sequential(lambda x: of(x, x).delayed)
    -----a--ab-b-|
    ```

    Raises:
        ConfigurationError: if *concurrency* is not above zero.
    """
    check_concurrency("flat_map_sequential", concurrency)
    return lift(lambda below, run: _SequentialLink(below, run, function, concurrency, delay_errors))


__all__ = ("flat_map_sequential",)
