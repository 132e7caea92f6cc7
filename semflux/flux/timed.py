"""Operators that go by the time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from reactivex import abc

from semflux import operators as ops
from semflux.clock import Clock
from semflux.flux.base import Base
from semflux.operators.context import Context
from semflux.operators.deferred import deferred_contextual
from semflux.operators.publish_on import PREFETCH

if TYPE_CHECKING:
    from semflux.flux.flux import Flux

T = TypeVar("T")
U = TypeVar("U")


class Waiting(Base[T], Generic[T]):
    """Operators that start later, or elsewhere, and change no item; for Flux, Mono and ChatStream."""

    __slots__ = ()

    def delay_subscription(
        self, until: float | abc.ObservableBase[Any], *, clock: Clock | None = None
    ) -> Self:
        """Subscribes to the source after *until* seconds; or when *until*, a stream, has an item or completes."""
        return self._same(ops.delay_subscription(until, clock=clock))

    def delay_until(self, function: Callable[[T], abc.ObservableBase[Any]]) -> Self:
        """Each item waits, in order, until the stream that *function* gives for it has an item, or completes."""
        return self._same(ops.delay_until(function))

    def publish_on(self, scheduler: abc.SchedulerBase, prefetch: int = PREFETCH) -> Self:
        """What is below gets its signals from *scheduler*, for consumers that compute or block; at most *prefetch*
        items wait."""
        return self._same(ops.publish_on(scheduler, prefetch))

    def subscribe_on(self, scheduler: abc.SchedulerBase) -> Self:
        """The source is subscribed to on *scheduler*; one that waits for bytes needs a loop there."""
        return self._same(ops.subscribe_on(scheduler))

    def context_write(self, change: Mapping[Any, Any] | Callable[[Context], Context]) -> Self:
        """What is above sees *change* in its `Context`: a mapping that is added, or a function of the context. Keys that
        are context variables are set while code above runs."""
        return self._same(ops.context_write(change))

    def transform_deferred_contextual(
        self, function: Callable[[Self, Context], abc.ObservableBase[U]]
    ) -> Flux[U]:
        """For each subscription what *function* makes of the stream and the context of that one."""
        return self.flux_class(deferred_contextual(lambda context: function(self, context)))


class Timed(Waiting[T], Generic[T]):
    """Delays, samples, and the time of each item; for Flux and ChatStream.

    What delays, takes or skips keeps the type; what leaves out some items by the time gives a plain Flux.
    """

    __slots__ = ()

    def delay_elements(self, seconds: float, *, clock: Clock | None = None) -> Self:
        """Each item *seconds* later than it came; the end after the last one, an error at once."""
        return self._same(ops.delay_elements(seconds, clock=clock))

    def take_for(self, seconds: float, *, clock: Clock | None = None) -> Self:
        """The items of the first *seconds*; the source is cancelled before the end is told."""
        return self._same(ops.take_for(seconds, clock=clock))

    def skip_for(self, seconds: float, *, clock: Clock | None = None) -> Self:
        """Without the items of the first *seconds*."""
        return self._same(ops.skip_for(seconds, clock=clock))

    def sample(self, seconds: float, *, clock: Clock | None = None) -> Flux[T]:
        """The newest item of each period of *seconds*, where there is one; what waits at the end too."""
        return self._flux(ops.sample(seconds, clock=clock))

    def throttle_first(self, seconds: float, *, clock: Clock | None = None) -> Flux[T]:
        """An item at once, then none for *seconds*: those are dropped."""
        return self._flux(ops.throttle_first(seconds, clock=clock))

    def debounce(self, seconds: float, *, clock: Clock | None = None) -> Flux[T]:
        """The items that no other followed within *seconds*; what waits at the end too."""
        return self._flux(ops.debounce(seconds, clock=clock))

    def elapsed(self, *, clock: Clock | None = None) -> Flux[tuple[float, T]]:
        """Tuples of the seconds since the item before, or since the subscription, and the item."""
        return self._flux(ops.elapsed(clock=clock))

    def timestamp(self, *, clock: Clock | None = None) -> Flux[tuple[float, T]]:
        """Tuples of the time at which an item came, in seconds since 1970, UTC, and the item."""
        return self._flux(ops.timestamp(clock=clock))


__all__ = ("Timed", "Waiting")
