"""Ways to make a Flux."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import reactivex
from reactivex import abc

from semflux.flux.base import Base
from semflux.flux.creating import Created, FluxSink, generated, iterated, listed
from semflux.flux.mono import Mono
from semflux.operators.concat import concat
from semflux.operators.context import Context
from semflux.operators.deferred import deferred, deferred_contextual
from semflux.operators.flat_map import merge
from semflux.operators.handle import HandleSink
from semflux.operators.several import combine_latest, first_with_value, zip_

if TYPE_CHECKING:
    from semflux.flux.flux import Flux

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
S = TypeVar("S")


def _no_state() -> None:
    """The state of a generator that has none."""


class Making(Base[T], Generic[T]):
    """`Flux.just` and the like."""

    __slots__ = ()

    @classmethod
    def from_(cls, observable: abc.ObservableBase[U]) -> Flux[U]:
        """A Flux over any RxPY observable."""
        if isinstance(observable, cls.flux_class):
            given: Flux[U] = observable
            return given
        return cls.flux_class(observable.to_observable() if isinstance(observable, Mono) else observable)

    @classmethod
    def just(cls, *items: U) -> Flux[U]:
        """These items, then the end."""
        return cls.flux_class(listed(items))

    @classmethod
    def from_iterable(cls, items: Iterable[U]) -> Flux[U]:
        """The items of *items*, each subscription going over it anew."""
        return cls.flux_class(listed(items))

    @classmethod
    def empty(cls) -> Flux[Any]:
        """No item, then the end."""
        return cls.flux_class(reactivex.empty())

    @classmethod
    def error(cls, error: Exception) -> Flux[Any]:
        """No item, then *error*."""
        return cls.flux_class(reactivex.throw(error))

    @classmethod
    def concat(cls, *sources: abc.ObservableBase[U]) -> Flux[U]:
        """The items of *sources*, one source after another; an error ends it at once."""
        return cls.flux_class(concat(*sources))

    @classmethod
    def merge(cls, *sources: abc.ObservableBase[U]) -> Flux[U]:
        """The items of all *sources* as they come; an error of any cancels the rest."""
        return cls.flux_class(merge(*sources))

    @overload
    @classmethod
    def zip(cls, one: abc.ObservableBase[U], two: abc.ObservableBase[V], /) -> Flux[tuple[U, V]]: ...
    @overload
    @classmethod
    def zip(cls, *sources: abc.ObservableBase[Any]) -> Flux[tuple[Any, ...]]: ...
    @classmethod
    def zip(cls, *sources: abc.ObservableBase[Any]) -> Flux[Any]:
        """Tuples of the first items of all *sources*, of the second ones, and so on; the end when one has no more."""
        return cls.flux_class(zip_(*sources))

    @overload
    @classmethod
    def combine_latest(
        cls, one: abc.ObservableBase[U], two: abc.ObservableBase[V], /
    ) -> Flux[tuple[U, V]]: ...
    @overload
    @classmethod
    def combine_latest(cls, *sources: abc.ObservableBase[Any]) -> Flux[tuple[Any, ...]]: ...
    @classmethod
    def combine_latest(cls, *sources: abc.ObservableBase[Any]) -> Flux[Any]:
        """Tuples of the newest items of all *sources*, at each item, once each has had one."""
        return cls.flux_class(combine_latest(*sources))

    @classmethod
    def first_with_value(cls, *sources: abc.ObservableBase[U]) -> Flux[U]:
        """The one of *sources* that gives an item first; the others are cancelled."""
        return cls.flux_class(first_with_value(*sources))

    @classmethod
    def defer(cls, make: Callable[[], abc.ObservableBase[U]]) -> Flux[U]:
        """For each subscription the stream that *make* gives then."""
        return cls.flux_class(deferred(make))

    @classmethod
    def defer_contextual(cls, make: Callable[[Context], abc.ObservableBase[U]]) -> Flux[U]:
        """For each subscription the stream that *make* gives for its context; see `context_write`."""
        return cls.flux_class(deferred_contextual(make))

    @classmethod
    def create(cls, function: Callable[[FluxSink[U]], object]) -> Flux[U]:
        """What *function* tells its sink, for each subscription: from callbacks, from threads, now or later."""
        return cls.flux_class(Created(function))

    @overload
    @classmethod
    def generate(cls, function: Callable[[HandleSink[U]], object]) -> Flux[U]: ...
    @overload
    @classmethod
    def generate(
        cls,
        function: Callable[[S, HandleSink[U]], S],
        state: Callable[[], S],
        cleanup: Callable[[S], object] | None = None,
    ) -> Flux[U]: ...
    @classmethod
    def generate(
        cls,
        function: Callable[..., Any],
        state: Callable[[], Any] | None = None,
        cleanup: Callable[[Any], object] | None = None,
    ) -> Flux[Any]:
        """Calls *function* once for each item that is wanted, with a sink for one item or an end; with *state*: first
        with what the call before returned, beginning with `state()`, which *cleanup* gets in the end."""

        def stateless(_: Any, sink: HandleSink[Any]) -> None:
            function(sink)

        if state is None:
            return cls.flux_class(generated(stateless, _no_state, cleanup))
        return cls.flux_class(generated(function, state, cleanup))

    @classmethod
    def from_async_iterable(cls, items: AsyncIterable[U]) -> Flux[U]:
        """The items of *items*, as far as they are wanted; an iterator can be gone over once only."""
        return cls.flux_class(iterated(items))


__all__ = ("Making",)
