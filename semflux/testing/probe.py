"""`PublisherProbe`: counts what is done to a stream; `Requests`: what a subscription has asked for."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from reactivex import abc

from semflux.flux import ChatStream, Flux
from semflux.operators.lift import Link, lift
from semflux.operators.run import UNBOUNDED, Run
from semflux.testing.subscriptions import bare

T = TypeVar("T")


class Requests:
    """How many items a subscription has asked for, as far as its demand has been looked at."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._last = max(run.demand, 0)
        self._total = self._last

    @property
    def left(self) -> int:
        """Items that may still come."""
        return self._run.demand

    @property
    def total(self) -> int:
        """Items asked for so far; `UNBOUNDED` where any number is wanted."""
        demand = max(self._run.demand, 0)
        if demand >= UNBOUNDED // 2:
            return UNBOUNDED
        self._total += max(demand - self._last, 0)
        self._last = demand
        return self._total


def _hold(holds: object, text: str) -> None:
    if not holds:
        raise AssertionError(text)


class _ProbeLink(Link[Any, Any]):
    __slots__ = ("_probe",)

    def __init__(self, below: abc.ObserverBase[Any], run: Run, probe: PublisherProbe[Any]) -> None:
        super().__init__(below, run)
        self._probe = probe

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self.below.on_next(value)

    def dispose(self) -> None:
        if not self.stopped:
            self._probe.cancel_count += 1
        super().dispose()


class PublisherProbe(Generic[T]):
    """Counts what is done to a stream: for the branch of a flow that must be taken, or must not.

    ```python
    probe = PublisherProbe(Flux.just("from the backup"))
    ...                                  # a flow that may subscribe to probe.flux()
    probe.assert_was_subscribed()
    ```
    """

    def __init__(self, source: abc.ObservableBase[T]) -> None:
        self._source = source
        self._requests: list[Requests] = []
        self.cancel_count: int = 0
        """Subscriptions that were cancelled before an end."""

    @staticmethod
    def empty() -> PublisherProbe[Any]:
        """A probe of a stream without items."""
        return PublisherProbe(Flux.empty())

    def flux(self) -> Flux[T]:
        """The stream to be used; a `ChatStream` where the source is one."""
        source: Any = self._source
        probed: Any = lift(self._link)(bare(source))
        return ChatStream(probed) if isinstance(source, ChatStream) else Flux(probed)  # type: ignore[return-value]  # it has the items of its source

    def _link(self, below: abc.ObserverBase[Any], run: Run) -> _ProbeLink:
        self._requests.append(Requests(run))
        return _ProbeLink(below, run, self)

    @property
    def subscribe_count(self) -> int:
        """Subscriptions so far."""
        return len(self._requests)

    @property
    def was_subscribed(self) -> bool:
        """Whether anybody has subscribed."""
        return bool(self._requests)

    @property
    def was_cancelled(self) -> bool:
        """Whether anybody has cancelled."""
        return self.cancel_count > 0

    @property
    def was_requested(self) -> bool:
        """Whether anybody has asked for an item."""
        return any(requests.total > 0 for requests in self._requests)

    def assert_was_subscribed(self) -> None:
        """Somebody has subscribed."""
        _hold(self.was_subscribed, "expected a subscription, actual none")

    def assert_was_not_subscribed(self) -> None:
        """Nobody has subscribed."""
        _hold(not self.was_subscribed, f"expected no subscription, actual {self.subscribe_count}")

    def assert_was_cancelled(self) -> None:
        """Somebody has cancelled."""
        _hold(self.was_cancelled, "expected a cancelled subscription, actual none")

    def assert_was_not_cancelled(self) -> None:
        """Nobody has cancelled."""
        _hold(not self.was_cancelled, f"expected no cancelled subscription, actual {self.cancel_count}")

    def assert_was_requested(self) -> None:
        """Somebody has asked for an item."""
        _hold(self.was_requested, "expected a demand, actual none")

    def assert_was_not_requested(self) -> None:
        """Nobody has asked for an item."""
        _hold(not self.was_requested, "expected no demand, actual some")


__all__ = ("PublisherProbe", "Requests")
