"""`limit_rate`: ask the source for items in batches of a size of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.operators.connection import Connection
from semflux.operators.delivery import Room
from semflux.operators.lift import Lifted, subscribe_to
from semflux.operators.one_reader import OneReader, no_link
from semflux.operators.run import Run, run_of


class Batches(OneReader):
    """Asks for *high* items, and for as many as were consumed each time that *low* of them were."""

    def __init__(
        self, below: abc.ObserverBase[Any], run: Run, above: Run, high: int, low: int, *, chat: bool
    ) -> None:
        super().__init__(below, run, above, room=Room(items=high), policy="block", chat=chat)
        self._low = low
        self._left = high
        self._come = 0
        self._counted = 0
        self._connection: Connection | None = None

    def begin(self, source: abc.ObservableBase[Any]) -> None:
        """Subscribe to *source*."""
        self._connection = connection = Connection(source, self, self.above)
        self.connect(connection)
        connection.start()

    @property
    def consumed(self) -> int:
        """Items that were read since more were asked for."""
        return self._come - len(self.reader.items) - self._counted

    def room(self) -> int:
        """How many more may come."""
        consumed = self.consumed
        if consumed >= self._low:
            self._counted += consumed
            self._left += consumed
        return max(0, self._left)

    def emit(self, item: Any) -> None:
        self._left -= 1
        self._come += 1
        super().emit(item)

    def drained(self) -> None:
        if self._connection is not None:
            self._connection.drained()


class Limited(Lifted[Any]):
    """A source that is asked for items in batches. A callback subscriber gets it as it is."""

    def __init__(self, source: abc.ObservableBase[Any], high: int, low: int, *, chat: bool = False) -> None:
        super().__init__(source, no_link)
        self._high = high
        self._low = low
        self._chat = chat

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        if not run.pull or run.driver is not None:
            return subscribe_to(self.source, observer, run)
        above = Run(pull=True, state=run.state).within(run)
        batches = Batches(observer, run, above, self._high, self._low, chat=self._chat)
        batches.begin(self.source)
        return batches


def limit_rate(
    high: int, low: int | None = None, *, chat: bool = False
) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    """The source is asked for *high* items, and for more each time that *low* of them are consumed; default: three
    quarters. So the source works ahead of a subscriber that pulls, by *high* items at most.

    Raises:
        ConfigurationError: if *high* is below 1, or *low* is not from 1 to *high*.
    """
    if high < 1:
        raise ConfigurationError(f"limit_rate({high}): a batch is one item at least")
    low = high - (high >> 2) if low is None else low
    if not 1 <= low <= high:
        raise ConfigurationError(f"limit_rate({high}, {low}): the second number is from 1 to {high}")
    least = low
    return lambda source: Limited(source, high, least, chat=chat)


__all__ = ("Batches", "Limited", "limit_rate")
