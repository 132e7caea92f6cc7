"""`Cutting`: where a stream is cut into lists or windows, and what the operators that do so have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from semflux.clock import Clock, Timer
from semflux.errors import ConfigurationError
from semflux.operators.inner import Gate
from semflux.operators.lift import Link
from semflux.operators.timing import clock_of

_NONE: Any = object()

Cut = Callable[[Any, int], tuple[bool, bool, bool]]
"""What to do at an item, given how many are in the piece so far: end the piece before it, add it, end it after it."""

MakeCut = Callable[[], Cut]
"""Makes a cut for one subscription."""


def by_count(name: str, count: int) -> MakeCut:
    """Pieces of *count* items, for the operator *name*.

    Raises:
        ConfigurationError: if *count* is not above zero.
    """
    if count < 1:
        raise ConfigurationError(f"{name}({count}): a piece has one item at least")
    return lambda: lambda item, size: (False, True, size + 1 == count)


def by_count_or_time(name: str, count: int, seconds: float) -> MakeCut:
    """Pieces of *count* items; the time is minded elsewhere.

    Raises:
        ConfigurationError: if *count* or *seconds* is not above zero.
    """
    if count < 1 or not seconds > 0:
        raise ConfigurationError(f"{name}({count}, {seconds!r}): both are above zero")
    return lambda: lambda item, size: (False, True, size + 1 >= count)


def until(predicate: Callable[[Any], object], cut_before: bool) -> MakeCut:
    """Pieces that end with an item for which *predicate* is true; *cut_before*: that begin with one."""

    def cut(item: Any, size: int) -> tuple[bool, bool, bool]:
        found = bool(predicate(item))
        return found and cut_before, True, found and not cut_before

    return lambda: cut


def while_(predicate: Callable[[Any], object]) -> MakeCut:
    """Pieces of consecutive items for which *predicate* is true; the others are in none."""

    def cut(item: Any, size: int) -> tuple[bool, bool, bool]:
        keeps = bool(predicate(item))
        return not keeps, keeps, False

    return lambda: cut


def at_changes(key: Callable[[Any], object] | None) -> MakeCut:
    """Pieces of consecutive items that are equal, or whose *key* is."""

    def make() -> Cut:
        latest: Any = _NONE

        def cut(item: Any, size: int) -> tuple[bool, bool, bool]:
            nonlocal latest
            found = item if key is None else key(item)
            changed = latest is not _NONE and latest != found
            latest = found
            return changed, True, False

        return cut

    return make


class Cutting(Link[Any, Any]):
    """A link that puts the items in pieces, as its cut says."""

    __slots__ = ()
    _cut: Cut

    @property
    def size(self) -> int:
        """How many items the piece has so far."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def add(self, value: Any) -> None:
        """Take *value* into the piece."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def flush(self) -> None:
        """End the piece, unless it is empty."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        try:
            before, adds, after = self._cut(value, self.size)
        except Exception as error:
            self.fail(error)
            return
        if before:
            self.flush()
        if adds and not self.stopped:
            self.add(value)
        if after:
            self.flush()


class TimedCutting(Cutting):
    """Ends a piece some time after its first item, too. The timer may ring on another thread than items come on: both
    come through one gate."""

    _name: str
    _seconds: float
    _clock: Clock | None
    _gate: Gate
    _timer: Timer | None
    _round: int

    def set_time(self, name: str, seconds: float, clock: Clock | None) -> None:
        """After how many *seconds* of *clock*, for the operator *name*."""
        # The timer lets something out while a subscriber that pulls waits for the source.
        self.run.alone = False
        self._name = name
        self._seconds = seconds
        self._clock = clock
        self._gate = Gate()
        self._timer = None
        self._round = 0

    def on_next(self, value: Any) -> None:
        self._gate.enter(super().on_next, value)

    def on_error(self, error: Exception) -> None:
        self._gate.enter(self._end, error)

    def on_completed(self) -> None:
        self._gate.enter(self._end, None)

    def _end(self, error: Exception | None) -> None:
        self._cancel()
        if error is None:
            super().on_completed()
        else:
            super().on_error(error)

    def add(self, value: Any) -> None:
        if self.size == 0:
            try:
                clock = clock_of(self._name, self._clock, self.run)
            except ConfigurationError as error:
                self.fail(error)
                return
            self._round += 1
            self._timer = clock.call_later(self._seconds, self._ring, self._round)
        super().add(value)

    def _ring(self, number: int) -> None:
        self._gate.enter(self._flush_of, number)

    def _flush_of(self, number: int) -> None:
        if number == self._round:
            self.flush()

    def flush(self) -> None:
        self._cancel()
        super().flush()

    def _cancel(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _let_go(self) -> Any:
        self._cancel()
        return super()._let_go()


__all__ = (
    "Cut",
    "Cutting",
    "MakeCut",
    "TimedCutting",
    "at_changes",
    "by_count",
    "by_count_or_time",
    "until",
    "while_",
)
