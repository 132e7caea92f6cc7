"""`Base`: what Flux, Mono and ChatStream have in common; their operators come in mixins by meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from reactivex import Observable, abc

from semflux.flux.edge import attach, edge_of
from semflux.operators.assembly import assembled
from semflux.operators.hooks import Hooks
from semflux.operators.run import run_of

if TYPE_CHECKING:
    from semflux.flux.flux import Flux
    from semflux.flux.grouped import GroupedFlux
    from semflux.flux.mono import Mono

T = TypeVar("T")
U = TypeVar("U")


class Base(abc.ObservableBase[T], Generic[T]):
    """Holds the observable of a pipeline, subscribes to it, and makes the next one of it."""

    __slots__ = ("_observable",)

    flux_class: ClassVar[type[Flux[Any]]]
    """`Flux`, which is made of classes that are above it."""

    mono_class: ClassVar[type[Mono[Any]]]
    """`Mono`, in the same way."""
    grouped_class: ClassVar[type[GroupedFlux[Any, Any]]]
    """`GroupedFlux`, as well."""

    is_chat: ClassVar[bool] = False
    """True for a `ChatStream`: another stream can go on with it."""

    def __init__(self, observable: abc.ObservableBase[T]) -> None:
        watched = Hooks.wrap is not None or Hooks.debug
        self._observable = assembled(observable) if watched else observable

    @property
    def observable(self) -> abc.ObservableBase[T]:
        """What it is made of."""
        return self._observable

    def _apply(self, operator: Callable[[abc.ObservableBase[T]], Observable[U]]) -> Observable[U]:
        return operator(self._observable)

    def _same(self, operator: Callable[[abc.ObservableBase[T]], Observable[T]]) -> Self:
        """With an operator that keeps the items as they are: of the same type."""
        return self._again(operator(self._observable))

    def _again(self, observable: abc.ObservableBase[T]) -> Self:
        """The same over *observable*."""
        return type(self)(observable)

    def _flux(self, operator: Callable[[abc.ObservableBase[T]], Observable[U]]) -> Flux[U]:
        """With an operator that makes other items."""
        return self.flux_class(operator(self._observable))

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

    def to_observable(self) -> Observable[T]:
        """The same stream as a plain RxPY observable."""
        observable = self._observable
        if isinstance(observable, Observable):
            return observable
        return Observable(lambda observer, scheduler: self.subscribe(observer, scheduler=scheduler))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


__all__ = ("Base",)
