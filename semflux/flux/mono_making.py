"""Ways to make a Mono."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import reactivex
from reactivex import abc

from semflux import operators as ops
from semflux.flux.base import Base
from semflux.operators.awaited import awaited
from semflux.operators.deferred import deferred
from semflux.operators.flat_map import merge
from semflux.operators.several import first_with_signal, first_with_value, zip_
from semflux.operators.using import using
from semflux.operators.using_when import using_when

if TYPE_CHECKING:
    from semflux.flux.mono import Mono

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
W = TypeVar("W")
X = TypeVar("X")
R = TypeVar("R")


class MonoMaking(Base[T], Generic[T]):
    """`Mono.just` and the like."""

    __slots__ = ()

    @classmethod
    def just(cls, item: U) -> Mono[U]:
        """This item."""
        return cls.mono_class(reactivex.of(item))

    @classmethod
    def just_or_empty(cls, item: U | None) -> Mono[U]:
        """This item, or nothing where it is None."""
        return cls.mono_class(reactivex.empty() if item is None else reactivex.of(item))

    @classmethod
    def empty(cls) -> Mono[Any]:
        """No item."""
        return cls.mono_class(reactivex.empty())

    @classmethod
    def error(cls, error: Exception) -> Mono[Any]:
        """No item, but *error*."""
        return cls.mono_class(reactivex.throw(error))

    @classmethod
    def never(cls) -> Mono[Any]:
        """No item, and no end."""
        return cls.mono_class(reactivex.never())

    @classmethod
    def defer(cls, make: Callable[[], Mono[U]]) -> Mono[U]:
        """For each subscription the Mono that *make* gives then."""
        return cls.mono_class(deferred(make))

    @classmethod
    def from_(cls, observable: abc.ObservableBase[U]) -> Mono[U]:
        """The first item of any observable, which is cancelled then; nothing where it has none."""
        if isinstance(observable, cls.mono_class):
            given: Mono[U] = observable
            return given
        return cls.mono_class(ops.take(1)(getattr(observable, "observable", observable)))

    @classmethod
    def from_callable(cls, function: Callable[[], U]) -> Mono[U]:
        """What *function* gives, called for each subscription; what it raises is the error."""
        return cls.mono_class(deferred(lambda: reactivex.of(function())))

    @classmethod
    def from_awaitable(cls, make: Callable[[], Awaitable[U]]) -> Mono[U]:
        """What the awaitable comes to which *make*, such as an async function, gives for each subscription; a cancel
        cancels it."""
        return cls.mono_class(awaited(make))

    @overload
    @classmethod
    def zip(cls, one: abc.ObservableBase[U], two: abc.ObservableBase[V], /) -> Mono[tuple[U, V]]: ...
    @overload
    @classmethod
    def zip(
        cls, one: abc.ObservableBase[U], two: abc.ObservableBase[V], three: abc.ObservableBase[W], /
    ) -> Mono[tuple[U, V, W]]: ...
    @overload
    @classmethod
    def zip(
        cls,
        one: abc.ObservableBase[U],
        two: abc.ObservableBase[V],
        three: abc.ObservableBase[W],
        four: abc.ObservableBase[X],
        /,
    ) -> Mono[tuple[U, V, W, X]]: ...
    @overload
    @classmethod
    def zip(cls, *sources: abc.ObservableBase[U]) -> Mono[tuple[U, ...]]: ...
    @classmethod
    def zip(cls, *sources: abc.ObservableBase[Any]) -> Mono[Any]:
        """The items of all *sources*, which run at the same time, as one tuple; nothing as soon as one has none, and the
        others are cancelled, as they are at an error of any."""
        return cls.mono_class(ops.take(1)(zip_(*sources)))

    @classmethod
    def when(cls, *sources: abc.ObservableBase[Any]) -> Mono[Any]:
        """Only the end, when all *sources*, which run at the same time, have completed; an error of any cancels the
        rest."""
        return cls.mono_class(ops.ignore_elements()(merge(*sources)))

    @classmethod
    def first_with_value(cls, *sources: abc.ObservableBase[U]) -> Mono[U]:
        """The item of the one of *sources* that gives one first; the others are cancelled."""
        return cls.mono_class(ops.take(1)(first_with_value(*sources)))

    @classmethod
    def first_with_signal(cls, *sources: abc.ObservableBase[U]) -> Mono[U]:
        """What the one of *sources* comes to that gives an item, completes or fails first; the others are cancelled."""
        return cls.mono_class(ops.take(1)(first_with_signal(*sources)))

    @classmethod
    def using(
        cls,
        resource: Callable[[], R],
        make: Callable[[R], Mono[U]],
        cleanup: Callable[[R], object],
        *,
        eager: bool = True,
    ) -> Mono[U]:
        """For each subscription the Mono that *make* gives for what *resource* gives; *cleanup* gets the resource once,
        before the end goes down, or after it if not *eager*, and after a cancel."""
        return cls.mono_class(using(resource, make, cleanup, eager=eager))

    @overload
    @classmethod
    def using_when(
        cls, resource: Callable[[], AbstractAsyncContextManager[R]], make: Callable[[R], Mono[U]]
    ) -> Mono[U]: ...
    @overload
    @classmethod
    def using_when(
        cls,
        resource: Callable[[], Awaitable[R]] | abc.ObservableBase[R],
        make: Callable[[R], Mono[U]],
        complete: Callable[[R], object],
        error: Callable[[R, Exception], object] | None = None,
        cancel: Callable[[R], object] | None = None,
    ) -> Mono[U]: ...
    @classmethod
    def using_when(
        cls,
        resource: Any,
        make: Callable[[Any], Mono[U]],
        complete: Any = None,
        error: Any = None,
        cancel: Any = None,
    ) -> Mono[U]:
        """For each subscription the Mono that *make* gives for what the async function *resource* gives. One of three
        clean-ups, which may be async, gets it: *complete*, *error* or *cancel*; the end goes down when that has ended.
        Or *resource* gives an async context manager, and there is no clean-up to tell."""
        return cls.mono_class(using_when(resource, make, complete, error, cancel))


__all__ = ("MonoMaking",)
