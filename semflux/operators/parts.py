"""`PartsLink`: gives the items of a stream out to parts of it, and drives the source as far as somebody waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactivex import abc

from semflux.errors import SemfluxError
from semflux.operators.connection import Connection
from semflux.operators.delivery import ITEM_WEIGHT
from semflux.operators.lift import Lifted, Link
from semflux.operators.part import AskingReader, Outlet, Part, ReaderOwner
from semflux.operators.reader import NOBODY, Reader
from semflux.operators.run import Run, run_of

AHEAD = 64
"""Items that the source is asked for at once."""


class _Main(ReaderOwner, abc.ObserverBase[Any]):
    """Stands below a link whose subscriber pulls: the parts wait there until they are wanted."""

    __slots__ = ("link", "reader")

    def __init__(self, link: PartsLink, below: abc.ObserverBase[Any], run: Run) -> None:
        super().__init__(link)
        self.link = link
        self.reader = AskingReader(self, below, run)

    def on_next(self, value: Any) -> None:
        self.reader.offer(value, ITEM_WEIGHT)

    def on_error(self, error: Exception) -> None:
        self.reader.end(error)

    def on_completed(self) -> None:
        self.reader.end(None)

    def left(self, reader: Reader) -> None:
        self.link.dispose()

    def fail_one(self, reader: Reader, error: SemfluxError) -> None:
        # At the first stage, so that what is open in a chat stream is ended in order.
        if not self.giver.run.fail(error):
            self.link.fail(error)

    def abort_one(self, reader: Reader, reason: str) -> None:
        self.giver.run.abort(reason)


class PartsLink(Link[Any, Any]):
    """Gives the items out to parts, and the parts to what is below.

    An error goes to the open parts first, then to what is below. Who leaves the stream of parts leaves the open ones
    as they are: the source is cancelled with the last of them. For a subscriber that pulls, the source goes on while
    somebody waits, for a part or for an item of one, and a little ahead of that for who reads already.
    """

    __slots__ = ("_connection", "_left", "_main", "_parts")

    below: abc.ObserverBase[Any]

    def __init__(self, below: abc.ObserverBase[Any], run: Run) -> None:
        super().__init__(below, run)
        self._parts: dict[Outlet, None] = {}
        self._left = False
        self._main: _Main | None = None
        self._connection: Connection | None = None

    def open(self, outlet: Outlet, part: Part[Any]) -> None:
        """Another part begins."""
        self._parts[outlet] = None
        self.below.on_next(part)

    def close(self, outlet: Outlet) -> None:
        """A part has ended."""
        self._parts.pop(outlet, None)
        outlet.end(None)
        self._release()

    def part_left(self, outlet: Outlet, *, for_good: bool) -> None:
        """Nobody reads *outlet* any more."""
        self._parts.pop(outlet, None)
        self._release()
        if not for_good:
            self.drained()

    def _release(self) -> None:
        if self._left and not self._parts and not self.stopped:
            super().dispose()

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self._let_go()
            self._finish(error)

    def on_completed(self) -> None:
        if not self.stopped:
            self._let_go()
            self._finish(None)

    def cut(self, error: Exception) -> None:
        if not self.stopped:
            super().dispose()
            self._finish(error)

    def _finish(self, error: Exception | None) -> None:
        parts, self._parts = self._parts, {}
        for outlet in parts:
            outlet.end(error)
        if self._left:
            return
        if error is None:
            self.below.on_completed()
        else:
            self.below.on_error(error)

    def _let_go(self) -> abc.DisposableBase | None:
        self._connection = None
        return super()._let_go()

    def dispose(self) -> None:
        if not self._left:
            self._left = True
            self.below = NOBODY
            self._main = None
            self._release()
            self.drained()

    # For a subscriber that pulls

    def begin(
        self, source: abc.ObservableBase[Any], below: abc.ObserverBase[Any], run: Run
    ) -> abc.DisposableBase:
        """Subscribe to *source*, to be driven as far as somebody waits; *run* is that of who pulls."""
        self._main = main = _Main(self, below, run)
        self.below = main
        self._connection = connection = Connection(source, self, self.run)
        self.connect(connection)
        connection.start()
        main.reader.start()
        return main.reader

    def emit(self, item: Any) -> None:
        """The next item."""
        self.on_next(item)
        if self._main is not None:
            self._main.reader.wake()

    def end(self, error: Exception | None) -> None:
        """The end."""
        if error is None:
            self.on_completed()
        else:
            self.on_error(error)

    def room(self) -> int:
        """How many items may come."""
        least = AHEAD
        main = None if self._main is None else self._main.reader
        if main is not None:
            if main.is_hungry:
                return AHEAD
            least = min(least, main.wanted)
        for outlet in self._parts:
            reader = outlet.reader
            if reader is None:
                least = 0
            elif reader.is_hungry:
                return AHEAD
            elif reader.run.pull:
                least = min(least, reader.wanted)
        return max(0, least)

    def drained(self) -> None:
        """Somebody waits for an item, or has taken one."""
        if self._connection is not None:
            self._connection.drained()


class Parted(Lifted[Any]):
    """A source with a `PartsLink` on it. One whose subscriber pulls gets a run of its own, over the same state."""

    def __init__(
        self, source: abc.ObservableBase[Any], make: Callable[[abc.ObserverBase[Any], Run], PartsLink]
    ) -> None:
        super().__init__(source, make)
        self._make_parts = make

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        if not run.pull or run.driver is not None:
            return super()._subscribe_core(observer, scheduler)
        above = Run(pull=True, demand=0, state=run.state).within(run)
        return self._make_parts(NOBODY, above).begin(self.source, observer, run)


__all__ = ("AHEAD", "Parted", "PartsLink")
