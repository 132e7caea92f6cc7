"""Ways to make a Flux that hold something, wait or count."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import reactivex
from reactivex import abc

from semflux.clock import Clock
from semflux.errors import ConfigurationError
from semflux.flux.base import Base
from semflux.flux.creating import Created, FluxSink, listed
from semflux.operators.awaited import awaited
from semflux.operators.inner import OneThread
from semflux.operators.interval import interval
from semflux.operators.several import first_with_signal
from semflux.operators.using import using
from semflux.operators.using_when import using_when

if TYPE_CHECKING:
    from semflux.flux.flux import Flux

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")


class Sources(Base[T], Generic[T]):
    """`Flux.using`, `Flux.interval` and the like."""

    __slots__ = ()

    @classmethod
    def using(
        cls,
        resource: Callable[[], R],
        make: Callable[[R], abc.ObservableBase[U]],
        cleanup: Callable[[R], object],
        *,
        eager: bool = True,
    ) -> Flux[U]:
        """For each subscription the stream that *make* gives for what *resource* gives; *cleanup* gets the resource once,
        before an end goes down, or after it if not *eager*, and after a cancel."""
        return cls.flux_class(using(resource, make, cleanup, eager=eager))

    @overload
    @classmethod
    def using_when(
        cls,
        resource: Callable[[], AbstractAsyncContextManager[R]],
        make: Callable[[R], abc.ObservableBase[U]],
    ) -> Flux[U]: ...
    @overload
    @classmethod
    def using_when(
        cls,
        resource: Callable[[], Awaitable[R]] | abc.ObservableBase[R],
        make: Callable[[R], abc.ObservableBase[U]],
        complete: Callable[[R], object],
        error: Callable[[R, Exception], object] | None = None,
        cancel: Callable[[R], object] | None = None,
    ) -> Flux[U]: ...
    @classmethod
    def using_when(
        cls,
        resource: Any,
        make: Callable[[Any], abc.ObservableBase[U]],
        complete: Any = None,
        error: Any = None,
        cancel: Any = None,
    ) -> Flux[U]:
        """For each subscription the stream that *make* gives for what the async function *resource* gives. One of three
        clean-ups, which may be async, gets it: *complete*, *error* or *cancel*; an end goes down when that has ended.
        Or *resource* gives an async context manager, and there is no clean-up to tell."""
        return cls.flux_class(using_when(resource, make, complete, error, cancel))

    @classmethod
    def first_with_signal(cls, *sources: abc.ObservableBase[U]) -> Flux[U]:
        """The one of *sources* that gives an item, completes or fails first; the others are cancelled."""
        return cls.flux_class(first_with_signal(*sources))

    @classmethod
    def push(cls, function: Callable[[FluxSink[U]], object]) -> Flux[U]:
        """As `create`, for signals that come from one thread at a time: without its lock."""
        return cls.flux_class(Created(function, OneThread))

    @classmethod
    def never(cls) -> Flux[Any]:
        """No item, and no end."""
        return cls.flux_class(reactivex.never())

    @classmethod
    def range(cls, start: int, count: int) -> Flux[int]:
        """*count* numbers from *start*, as far as they are wanted; then the end."""
        if count < 0:
            raise ConfigurationError(
                f"Flux.range({start}, {count}): the second number says how many; it is not negative"
            )
        return cls.flux_class(listed(builtins.range(start, start + count)))

    @classmethod
    def interval(cls, seconds: float, *, clock: Clock | None = None) -> Flux[int]:
        """0, 1, 2 and so on, one each *seconds* seconds; BufferOverflowError at one that nobody has asked for."""
        return cls.flux_class(interval(seconds, clock=clock))

    @classmethod
    def from_awaitable(cls, make: Callable[[], Awaitable[U]]) -> Flux[U]:
        """The one item that the awaitable comes to which *make*, such as an async function, gives for each
        subscription."""
        return cls.flux_class(awaited(make))


__all__ = ("Sources",)
