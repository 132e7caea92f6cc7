"""`Flux`: a stream of items with Reactor's operators, under Reactor's names, with Reactor's meaning.

A Flux is an Rx observable by interface, not by inheritance: many names mean different things in RxPY
and in Reactor, so a real subclass would break every function that takes an `Observable`. It works
wherever RxPY takes one, and every RxPY operator works through `pipe`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, overload

from reactivex import Observable, abc

from semflux import operators as ops
from semflux.flux.base import Base
from semflux.flux.blocking import run_blocking
from semflux.flux.collecting import Collecting
from semflux.flux.combining import Combining
from semflux.flux.filtering import Filtering
from semflux.flux.iterable import iterate
from semflux.flux.iterate import EventIterator, last_of
from semflux.flux.making import Making
from semflux.flux.mono import Mono
from semflux.flux.pressure import Pressure
from semflux.flux.recovering import Recovering
from semflux.flux.repeating import Repeating
from semflux.flux.sharing import Sharing
from semflux.flux.sources import Sources
from semflux.flux.timed import Timed
from semflux.flux.transforming import Transforming
from semflux.flux.watching import Watching
from semflux.flux.windowing import Windowing

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
W = TypeVar("W")


class Flux(
    Making[T],
    Sources[T],
    Transforming[T],
    Filtering[T],
    Combining[T],
    Watching[T],
    Recovering[T],
    Repeating[T],
    Collecting[T],
    Sharing[T],
    Pressure[T],
    Windowing[T],
    Timed[T],
    Generic[T],
):
    """A cold stream: each subscription starts it anew, with a request of its own.

    Read it with `async for`, which goes at the consumer's pace; or `subscribe` callbacks to it; or
    take one value of it with `next()`, `single()`, `collect_list()`, each a `Mono` to await.
    """

    __slots__ = ()

    # Reading it

    def __aiter__(self) -> EventIterator[T]:
        """Pull it, in the consumer's own task, with at most 64 items waiting.

        `break` cancels it at once. Where the iterator is kept in a name, close it:
        `async with aiter(stream) as items: ...`
        """
        return EventIterator(self._observable)

    def block(self, timeout: float | None = None) -> T | None:
        """`block_last`: wait for the end; the last item, None if there is none."""
        return run_blocking(last_of(self._observable), timeout, "block")

    def block_first(self, timeout: float | None = None) -> T | None:
        """Wait for the first item, then cancel; None if there is none.

        Raises:
            BlockingInLoopError: in a thread whose event loop is running.
            TotalTimeoutError: after *timeout* seconds; the stream is cancelled.
            SemfluxError: the error of the stream.
        """
        return run_blocking(last_of(self._apply(ops.take(1))), timeout, "block_first")

    def block_last(self, timeout: float | None = None) -> T | None:
        """Wait for the end; the last item, None if there is none. Raises as `block_first` does."""
        return run_blocking(last_of(self._observable), timeout, "block_last")

    def to_iterable(self) -> Iterator[T]:
        """The items in a plain `for` loop: the stream runs on a private thread, at most 64 items ahead. Leaving the
        loop, or closing the iterator, cancels it. Raises as `block_first` does."""
        return iterate(self._observable)

    # Crossing to RxPY

    @overload
    def pipe(self) -> Flux[T]: ...
    @overload
    def pipe(self, op1: Callable[[Observable[T]], abc.ObservableBase[U]], /) -> Flux[U]: ...
    @overload
    def pipe(
        self,
        op1: Callable[[Observable[T]], Observable[U]],
        op2: Callable[[Observable[U]], abc.ObservableBase[V]],
        /,
    ) -> Flux[V]: ...
    @overload
    def pipe(
        self,
        op1: Callable[[Observable[T]], Observable[U]],
        op2: Callable[[Observable[U]], Observable[V]],
        op3: Callable[[Observable[V]], abc.ObservableBase[W]],
        /,
    ) -> Flux[W]: ...
    @overload
    def pipe(self, *operators: Callable[[Any], Any]) -> Flux[Any]: ...
    def pipe(self, *operators: Callable[[Any], Any]) -> Flux[Any]:
        """RxPY operators on it, from left to right."""
        return Flux(self.to_observable().pipe(*operators)) if operators else self


# What the mixins make.
Base.flux_class = Flux

# flat_map and others of RxPY ask `isinstance(x, Observable)`, and keep to the interface.
Observable.register(Flux)
Observable.register(Mono)

__all__ = ("Flux",)
