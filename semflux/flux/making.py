"""Ways to make a Flux."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import reactivex
from reactivex import abc

from semflux.flux.base import Base
from semflux.flux.mono import Mono

if TYPE_CHECKING:
    from semflux.flux.flux import Flux

T = TypeVar("T")
U = TypeVar("U")


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
        return cls.flux_class(reactivex.of(*items))

    @classmethod
    def from_iterable(cls, items: Iterable[U]) -> Flux[U]:
        """The items of *items*, each subscription going over it anew."""
        return cls.flux_class(reactivex.from_iterable(items))

    @classmethod
    def empty(cls) -> Flux[Any]:
        """No item, then the end."""
        return cls.flux_class(reactivex.empty())

    @classmethod
    def error(cls, error: Exception) -> Flux[Any]:
        """No item, then *error*."""
        return cls.flux_class(reactivex.throw(error))


__all__ = ("Making",)
