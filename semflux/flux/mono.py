"""`Mono`: a stream of at most one item, to be awaited."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from reactivex import abc

from semflux import operators as ops
from semflux.clock import Clock
from semflux.flux.blocking import run_blocking
from semflux.flux.iterate import last_of
from semflux.flux.recovering import Recovering
from semflux.flux.timed import Waiting
from semflux.flux.watching import Watching
from semflux.operators.context import Context
from semflux.operators.context_write import deferred

T = TypeVar("T")
U = TypeVar("U")


class Mono(Watching[T], Recovering[T], Waiting[T], Generic[T]):
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
        return Mono(deferred(make))

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

    def delay_element(self, seconds: float, *, clock: Clock | None = None) -> Mono[T]:
        """The item *seconds* later than it came; an error at once."""
        return Mono(ops.delay_elements(seconds, clock=clock)(self._observable))

    def elapsed(self, *, clock: Clock | None = None) -> Mono[tuple[float, T]]:
        """A tuple of the seconds since the subscription and the item."""
        return Mono(ops.elapsed(clock=clock)(self._observable))

    def timestamp(self, *, clock: Clock | None = None) -> Mono[tuple[float, T]]:
        """A tuple of the time at which the item came, in seconds since 1970, UTC, and the item."""
        return Mono(ops.timestamp(clock=clock)(self._observable))


__all__ = ("Mono",)
