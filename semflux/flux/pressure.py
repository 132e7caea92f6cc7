"""Operators for a subscriber that pulls, and a source that is not to go at its pace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Self, TypeVar

from semflux.flux.base import Base
from semflux.operators.limit_rate import limit_rate
from semflux.operators.on_backpressure import (
    Overflow,
    on_backpressure_buffer,
    on_backpressure_drop,
    on_backpressure_error,
    on_backpressure_latest,
)

T = TypeVar("T")


class Pressure(Base[T], Generic[T]):
    """The `on_backpressure_*` and `limit_rate`; for Flux and ChatStream.

    Without them a stream of ours goes at the pace of whoever pulls it: an unread one pauses its socket. Callback
    subscribers ask for everything, and see no difference. Lifecycle, step, tool and terminal events of a chat stream,
    and the starts and ends of its blocks, are never dropped.
    """

    __slots__ = ()

    def on_backpressure_buffer(
        self,
        max: int = 1024,
        overflow: Overflow = "error",
        *,
        on_overflow: Callable[[T], object] | None = None,
    ) -> Self:
        """The source goes at its own pace; up to *max* items wait. Then: BufferOverflowError, or the oldest or the
        latest goes, and *on_overflow* gets it."""
        return self._same(on_backpressure_buffer(max, overflow, on_overflow, chat=self.is_chat))

    def on_backpressure_drop(self, handler: Callable[[T], object] | None = None) -> Self:
        """The source goes at its own pace; what nobody has asked for is dropped, and *handler* gets it."""
        return self._same(on_backpressure_drop(handler, chat=self.is_chat))

    def on_backpressure_latest(self) -> Self:
        """The source goes at its own pace; of what nobody has asked for the latest item waits."""
        return self._same(on_backpressure_latest(chat=self.is_chat))

    def on_backpressure_error(self) -> Self:
        """The source goes at its own pace; an item that nobody has asked for is a BufferOverflowError."""
        return self._same(on_backpressure_error(chat=self.is_chat))

    def limit_rate(self, high: int, low: int | None = None) -> Self:
        """The source is asked for *high* items, and for more each time that *low* of them are consumed; default:
        three quarters."""
        return self._same(limit_rate(high, low, chat=self.is_chat))


__all__ = ("Pressure",)
