"""`Mono`: a stream of at most one item, to be awaited."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

import reactivex
from reactivex import abc

from semflux import operators as ops
from semflux.clock import Clock
from semflux.flux.base import Base
from semflux.flux.blocking import run_blocking
from semflux.flux.combining import Combining
from semflux.flux.iterate import last_of
from semflux.flux.mono_making import MonoMaking
from semflux.flux.recovering import Recovering
from semflux.flux.repeating import Repeating
from semflux.flux.timed import Waiting
from semflux.flux.watching import Watching
from semflux.operators.after_item import after_item
from semflux.operators.concat import concat
from semflux.operators.context import Context
from semflux.operators.deferred import deferred, deferred_contextual
from semflux.operators.handle import HandleSink
from semflux.operators.replay import cache
from semflux.operators.several import zip_

if TYPE_CHECKING:
    from semflux.flux.flux import Flux

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")


class Mono(MonoMaking[T], Combining[T], Watching[T], Recovering[T], Repeating[T], Waiting[T], Generic[T]):
    """At most one item. Cold: each `await` or `subscribe` starts it anew.

    `await mono` gives the item, None where there is none, and raises the error of the stream.
    Cancelling the awaiting task cancels the stream.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, T]:
        # An empty Mono gives None, which its type leaves out, as Reactor's does: asking for a value that
        # nobody promised is rare, and checking for None at each `await model.prompt(...).call()` is not.
        item: Generator[Any, None, Any] = last_of(self._observable).__await__()
        return item

    @classmethod
    def defer_contextual(cls, make: Callable[[Context], abc.ObservableBase[U]]) -> Mono[U]:
        """For each subscription the stream that *make* gives for its context; see `context_write`."""
        return Mono(deferred_contextual(make))

    def block(self, timeout: float | None = None) -> T:
        """Wait for the item in plain code; None where there is none.

        Raises:
            BlockingInLoopError: in a thread whose event loop is running: `await` it there.
            TotalTimeoutError: after *timeout* seconds; the stream is cancelled.
            SemfluxError: the error of the stream.
        """
        item: Any = run_blocking(last_of(self._observable), timeout, "block")
        result: T = item
        return result

    def map(self, function: Callable[[T], U]) -> Mono[U]:
        """*function* of the item."""
        return Mono(ops.map_(function)(self._observable))

    def filter(self, predicate: Callable[[T], object]) -> Mono[T]:
        """The item if *predicate* is true of it."""
        return Mono(ops.filter_(predicate)(self._observable))

    def map_not_none(self, function: Callable[[T], U | None]) -> Mono[U]:
        """*function* of the item, where it is not None."""
        return Mono(ops.map_not_none(function)(self._observable))

    def handle(self, function: Callable[[T, HandleSink[U]], object]) -> Mono[U]:
        """Calls *function* with the item and a sink: `next` gives an item, `error` fails; neither gives nothing."""
        return Mono(ops.handle(function)(self._observable))

    def flat_map(self, function: Callable[[T], Mono[U]]) -> Mono[U]:
        """The Mono that *function* gives for the item; nothing where there is none."""
        return Mono(after_item(function)(self._observable))

    def flat_map_many(self, function: Callable[[T], abc.ObservableBase[U]]) -> Flux[U]:
        """The stream that *function* gives for the item; an empty one where there is none."""
        return self.flux_class(after_item(function)(self._observable))

    def zip_with(self, other: abc.ObservableBase[U]) -> Mono[tuple[T, U]]:
        """The item and that of *other*, which run at the same time; nothing as soon as one has none."""
        return Mono(ops.take(1)(zip_(self._observable, other)))

    def has_element(self) -> Mono[bool]:
        """True if there is an item."""
        return Mono(ops.has_elements()(self._observable))

    @overload
    def then(self) -> Mono[Any]: ...
    @overload
    def then(self, other: Mono[U]) -> Mono[U]: ...
    def then(self, other: Mono[Any] | None = None) -> Mono[Any]:
        """Only the end; with *other*: after it that one's item."""
        ended = ops.ignore_elements()(self._observable)
        return Mono(ended if other is None else concat(ended, other))

    def then_many(self, other: abc.ObservableBase[U]) -> Flux[U]:
        """After the end the items of *other*."""
        ended: Any = ops.ignore_elements()(self._observable)
        return self.flux_class(concat(ended, other))

    def then_return(self, value: U) -> Mono[U]:
        """After the end *value*."""
        ended: Any = ops.ignore_elements()(self._observable)
        return Mono(concat(ended, reactivex.of(value)))

    def cache(self, ttl: float | None = None, *, clock: Clock | None = None) -> Mono[T]:
        """Starts with the first subscriber and goes on to its end, whoever leaves; everybody gets what it came to, for
        *ttl* seconds if given."""
        return Mono(cache(None, ttl, clock=clock)(self._observable))

    def flux(self) -> Flux[T]:
        """The same as a Flux."""
        return self.flux_class(self._observable)

    def transform(self, function: Callable[[Self], R]) -> R:
        """What *function* makes of it: a chain of operators that has a name."""
        return function(self)

    def transform_deferred(self, function: Callable[[Self], Mono[U]]) -> Mono[U]:
        """For each subscription what *function* makes of it then."""
        return Mono(deferred(lambda: function(self)))

    def delay_element(self, seconds: float, *, clock: Clock | None = None) -> Mono[T]:
        """The item *seconds* later than it came; an error at once."""
        return Mono(ops.delay_elements(seconds, clock=clock)(self._observable))

    def elapsed(self, *, clock: Clock | None = None) -> Mono[tuple[float, T]]:
        """A tuple of the seconds since the subscription and the item."""
        return Mono(ops.elapsed(clock=clock)(self._observable))

    def timestamp(self, *, clock: Clock | None = None) -> Mono[tuple[float, T]]:
        """A tuple of the time at which the item came, in seconds since 1970, UTC, and the item."""
        return Mono(ops.timestamp(clock=clock)(self._observable))


# What the mixins make.
Base.mono_class = Mono


__all__ = ("Mono",)
