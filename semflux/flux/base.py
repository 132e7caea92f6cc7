"""`Base`: what Flux, Mono and ChatStream have in common; their operators come in mixins by meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from reactivex import Observable, abc

if TYPE_CHECKING:
    from semflux.flux.flux import Flux

T = TypeVar("T")
U = TypeVar("U")


class Base(abc.ObservableBase[T], Generic[T]):
    """Holds the observable of a pipeline, and makes the next one of it."""

    __slots__ = ("_observable",)

    flux_class: ClassVar[type[Flux[Any]]]
    """`Flux`, which is made of classes that are above it."""

    is_chat: ClassVar[bool] = False
    """True for a `ChatStream`: another stream can go on with it."""

    def __init__(self, observable: abc.ObservableBase[T]) -> None:
        self._observable = observable

    @property
    def observable(self) -> abc.ObservableBase[T]:
        """What it is made of."""
        return self._observable

    def _apply(self, operator: Callable[[abc.ObservableBase[T]], Observable[U]]) -> Observable[U]:
        return operator(self._observable)

    def _same(self, operator: Callable[[abc.ObservableBase[T]], Observable[T]]) -> Self:
        """With an operator that keeps the items as they are: of the same type."""
        return type(self)(operator(self._observable))

    def _flux(self, operator: Callable[[abc.ObservableBase[T]], Observable[U]]) -> Flux[U]:
        """With an operator that makes other items."""
        return self.flux_class(operator(self._observable))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


__all__ = ("Base",)
