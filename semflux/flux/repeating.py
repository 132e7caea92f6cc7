"""Operators that subscribe to the source again after its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactivex import Observable, abc

from semflux import operators as ops
from semflux.flux.base import Base

if TYPE_CHECKING:
    from semflux.flux.flux import Flux

T = TypeVar("T")


class Repeating(Base[T], Generic[T]):
    """`repeat` and `repeat_when`; for Flux, Mono and ChatStream, all give a Flux."""

    __slots__ = ()

    def repeat(self, times: int | None = None) -> Flux[T]:
        """The source again each time it completes: *times* times after the first one; None: for ever. Of a chat stream
        whole streams, one after another, each with a request of its own."""
        return self._flux(ops.repeat(times))

    def repeat_when(self, function: Callable[[Flux[int]], abc.ObservableBase[Any]]) -> Flux[T]:
        """The source again for each item of the stream that *function* gives; its end is the end. *function* gets a Flux
        with an item each time the source completes: how many items it had."""

        def companion(notices: Observable[int]) -> abc.ObservableBase[Any]:
            return function(self.flux_class(notices))

        return self._flux(ops.repeat_when(companion))


__all__ = ("Repeating",)
