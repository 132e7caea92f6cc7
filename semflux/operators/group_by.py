"""`group_by`: a stream for each key, of the items that have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from reactivex import Observable, abc

from semflux.operators.part import Outlet, Part
from semflux.operators.parts import Parted, PartsLink
from semflux.operators.run import Run

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Group(Part[V], Generic[K, V]):
    """The items that have one key, as a stream for one subscriber."""

    def __init__(self, outlet: Outlet, key: K) -> None:
        super().__init__(outlet)
        self.key: K = key
        """What its items have in common."""


class _GroupLink(PartsLink):
    __slots__ = ("_groups", "_key", "_value")

    def __init__(
        self,
        below: abc.ObserverBase[Any],
        run: Run,
        key: Callable[[Any], Any],
        value: Callable[[Any], Any] | None,
    ) -> None:
        super().__init__(below, run)
        self._key = key
        self._value = value
        self._groups: dict[Any, Outlet] = {}

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        try:
            key = self._key(value)
            group = self._groups.get(key)
            if self._value is not None:
                value = self._value(value)
        except Exception as error:
            self.fail(error)
            return
        if group is None:
            if self._left:
                return
            self._groups[key] = group = Outlet(self, key)
            self.open(group, Group(group, key))
        group.emit(value)

    def part_left(self, outlet: Outlet, *, for_good: bool) -> None:
        if not for_good and self._groups.get(outlet.key) is outlet:
            del self._groups[outlet.key]
        super().part_left(outlet, for_good=for_good)

    def _let_go(self) -> abc.DisposableBase | None:
        self._groups = {}
        return super()._let_go()


@overload
def group_by(key: Callable[[T], K]) -> Callable[[abc.ObservableBase[T]], Observable[Group[K, T]]]: ...
@overload
def group_by(
    key: Callable[[T], K], value: Callable[[T], V]
) -> Callable[[abc.ObservableBase[T]], Observable[Group[K, V]]]: ...
def group_by(
    key: Callable[[Any], Any], value: Callable[[Any], Any] | None = None
) -> Callable[[abc.ObservableBase[Any]], Observable[Group[Any, Any]]]:
    """For each *key* of an item a stream of the items that have it, or of their *value*.

    A group is a stream for one subscriber, a second one gets AlreadyConsumedError. It begins with its first item, ends
    with the source, and holds its items until its subscriber comes: 100,000 of them or 16 MiB, then it fails with
    BufferOverflowError. When its subscriber leaves, the next item of that key opens another group. A group that nobody
    subscribed to, and that nothing refers to any more, is dropped with all that was still to come for it.

    Read all groups as they come: a group that waits for its turn holds its items, so `flat_map(..., concurrency)`
    must not be less than the number of groups. With `concat_map` all groups but the first wait for the end. (Reactor
    hangs there; this goes on, up to that bound.) Who leaves the stream of groups leaves the open ones as they are: the
    source is cancelled with the last of them. For a subscriber that pulls, the source goes on while somebody waits for
    a group or for an item.

    ```
    --1--2--3--|        group_by(lambda x: x % 2)
    --+--+-----|
      |  2-----|
      1-----3--|
    ```
    """
    return lambda source: Parted(source, lambda below, run: _GroupLink(below, run, key, value))


__all__ = ("Group", "group_by")
