"""`Flux`: a stream of items with Reactor's operators, under Reactor's names, with Reactor's meaning.

A Flux is an Rx observable by interface, not by inheritance: many names mean different things in RxPY
and in Reactor, so a real subclass would break every function that takes an `Observable`. It works
wherever RxPY takes one, and every RxPY operator works through `pipe`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar, overload

import reactivex
from reactivex import Observable, abc

from semflux import operators as ops
from semflux.clock import Clock
from semflux.flux.blocking import run_blocking
from semflux.flux.edge import attach, edge_of
from semflux.flux.iterate import EventIterator, last_of
from semflux.flux.mono import Mono
from semflux.operators.do_finally import SignalType
from semflux.operators.run import run_of
from semflux.retry import ErrorFilter, Retry

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
W = TypeVar("W")


class Flux(abc.ObservableBase[T], Generic[T]):
    """A cold stream: each subscription starts it anew, with a request of its own.

    Read it with `async for`, which goes at the consumer's pace; or `subscribe` callbacks to it; or
    take one value of it with `next()`, `single()`, `collect_list()`, each a `Mono` to await.
    """

    __slots__ = ("_observable",)

    def __init__(self, observable: abc.ObservableBase[T]) -> None:
        self._observable = observable

    is_chat: ClassVar[bool] = False
    """True for a `ChatStream`: another stream can go on with it."""

    @property
    def observable(self) -> abc.ObservableBase[T]:
        """What it is made of."""
        return self._observable

    # Making one

    @classmethod
    def from_(cls, observable: abc.ObservableBase[U]) -> Flux[U]:
        """A Flux over any RxPY observable."""
        if isinstance(observable, Flux):
            return observable
        return Flux(observable.to_observable() if isinstance(observable, Mono) else observable)

    @staticmethod
    def just(*items: U) -> Flux[U]:
        """These items, then the end."""
        return Flux(reactivex.of(*items))

    @staticmethod
    def from_iterable(items: Iterable[U]) -> Flux[U]:
        """The items of *items*, each subscription going over it anew."""
        return Flux(reactivex.from_iterable(items))

    @staticmethod
    def empty() -> Flux[Any]:
        """No item, then the end."""
        return Flux(reactivex.empty())

    @staticmethod
    def error(error: Exception) -> Flux[Any]:
        """No item, then *error*."""
        return Flux(reactivex.throw(error))

    # Reading it

    def subscribe(
        self,
        on_next: Callable[[T], object] | abc.ObserverBase[T] | None = None,
        on_error: Callable[[Exception], object] | None = None,
        on_completed: Callable[[], object] | None = None,
        *,
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        """Start it and call these functions, or the methods of an RxPY observer; `dispose()` cancels.

        A source that waits needs a running event loop, in which it is driven by one task. If *on_next*
        raises, this subscription alone ends: the source is cancelled and *on_error* gets the exception;
        without one `Hooks.on_error_dropped` does. An error without *on_error*, and what *on_error* or
        *on_completed* raise, go there too. RxPY's timed operators use *scheduler*; default: the running
        loop, or threads where none runs.
        """
        edge = edge_of(on_next, on_error, on_completed)
        attach(self._observable, edge, run_of(scheduler))
        return edge

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

    # Crossing to RxPY

    def to_observable(self) -> Observable[T]:
        """The same stream as a plain RxPY observable."""
        if isinstance(self._observable, Observable):
            return self._observable
        return reactivex.create(lambda observer, scheduler: self.subscribe(observer, scheduler=scheduler))

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

    def _apply(self, operator: Callable[[abc.ObservableBase[T]], Observable[U]]) -> Observable[U]:
        return operator(self._observable)

    # Operators

    def map(self, function: Callable[[T], U]) -> Flux[U]:
        """*function* of each item. If it raises, the source is cancelled and its exception is the error."""
        return Flux(self._apply(ops.map_(function)))

    def filter(self, predicate: Callable[[T], object]) -> Flux[T]:
        """The items for which *predicate* is true."""
        return Flux(self._apply(ops.filter_(predicate)))

    def take(self, count: int) -> Flux[T]:
        """The first *count* items; the source is cancelled before the end is told."""
        return Flux(self._apply(ops.take(count)))

    def take_while(self, predicate: Callable[[T], object]) -> Flux[T]:
        """The items up to, and without, the first one for which *predicate* is false."""
        return Flux(self._apply(ops.take_while(predicate)))

    def take_until(self, predicate: Callable[[T], object]) -> Flux[T]:
        """The items up to, and with, the first one for which *predicate* is true."""
        return Flux(self._apply(ops.take_until(predicate)))

    def do_on_next(self, callback: Callable[[T], object]) -> Flux[T]:
        """Calls *callback* with each item before it goes on."""
        return Flux(self._apply(ops.do_on_next(callback)))

    def do_on_error(self, callback: Callable[[Exception], object]) -> Flux[T]:
        """Calls *callback* with the error before it goes on."""
        return Flux(self._apply(ops.do_on_error(callback)))

    def do_on_complete(self, callback: Callable[[], object]) -> Flux[T]:
        """Calls *callback* before the end goes on; not at an error, not at a cancel."""
        return Flux(self._apply(ops.do_on_complete(callback)))

    def do_on_cancel(self, callback: Callable[[], object]) -> Flux[T]:
        """Calls *callback* when the subscriber cancels, before the source is told."""
        return Flux(self._apply(ops.do_on_cancel(callback)))

    def do_finally(self, callback: Callable[[SignalType], object]) -> Flux[T]:
        """Calls *callback* exactly once with how it ended, after everything else."""
        return Flux(self._apply(ops.do_finally(callback)))

    # Recovery

    def retry(self, retries: int | None = None) -> Flux[T]:
        """Subscribe again, at once, when it fails: at most *retries* times; None: for ever. Only before the first
        item; the last failure is the error, as it is."""
        return Flux(self._apply(ops.retry(retries)))

    def retry_when(self, policy: Retry) -> Flux[T]:
        """Subscribe again when it fails, as *policy* says: `Retry.backoff(3, min_backoff=0.5)`. Only before the
        first item, unless the policy restarts."""
        return Flux(self._apply(ops.retry_when(policy)))

    def on_error_resume(
        self, fallback: Callable[[Exception], abc.ObservableBase[T]], errors: ErrorFilter | None = None
    ) -> Flux[T]:
        """Go on with the stream that *fallback* gives for the error, or for those of *errors* alone."""
        return Flux(self._apply(ops.on_error_resume(fallback, errors)))

    def on_error_return(self, value: T, errors: ErrorFilter | None = None) -> Flux[T]:
        """End with *value* in place of the error."""
        return Flux(self._apply(ops.on_error_return(value, errors)))

    def on_error_map(
        self, change: Callable[[Exception], Exception], errors: ErrorFilter | None = None
    ) -> Flux[T]:
        """Put the error that *change* gives in the place of the error."""
        return Flux(self._apply(ops.on_error_map(change, errors)))

    def fallback_to(self, *sources: abc.ObservableBase[T], errors: ErrorFilter | None = None) -> Flux[T]:
        """Go on with the next of *sources* at each failure; the last one's error is final."""
        return Flux(self._apply(ops.fallback_to(*sources, errors=errors)))

    def timeout(
        self,
        total: float | None = None,
        *,
        first: float | None = None,
        item: float | None = None,
        fallback: abc.ObservableBase[T] | None = None,
        clock: Clock | None = None,
    ) -> Flux[T]:
        """Fail when a limit, in seconds, passes: *first* until the first item, *item* from one to the next,
        *total* for the whole; the source is cancelled first. *fallback*: go on with that stream instead."""
        limited = Flux(self._apply(ops.timeout(total, first=first, item=item, clock=clock)))
        return limited if fallback is None else limited.on_error_resume(lambda error: fallback, TimeoutError)

    def on_error_complete(self, errors: ErrorFilter | None = None) -> Flux[T]:
        """End well in place of an error, or of those of *errors* alone."""
        return Flux(self._apply(ops.on_error_complete(errors)))

    # To one value

    def next(self) -> Mono[T]:
        """The first item, then the source is cancelled; nothing if there is none."""
        return Mono(self._apply(ops.take(1)))

    def single(self) -> Mono[T]:
        """The one item; EmptySequenceError without one, TooManyItemsError with two."""
        return Mono(self._apply(ops.single()))

    def collect_list(self) -> Mono[list[T]]:
        """All items as one list."""
        return Mono(self._apply(ops.collect_list()))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


# flat_map and others of RxPY ask `isinstance(x, Observable)`, and keep to the interface.
Observable.register(Flux)
Observable.register(Mono)

__all__ = ("Flux",)
