"""Operators that look at signals as they pass, and change none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, Self, TypeVar

from semflux import operators as ops
from semflux.flux.base import Base
from semflux.operators.do_finally import SignalType
from semflux.operators.materialize import Signal
from semflux.operators.noting import LogLevel, SignalListener

T = TypeVar("T")


class Watching(Base[T], Generic[T]):
    """`do_on_*` and the like; for Flux, Mono and ChatStream."""

    __slots__ = ()

    def do_on_next(self, callback: Callable[[T], object]) -> Self:
        """Calls *callback* with each item before it goes on."""
        return self._same(ops.do_on_next(callback))

    def do_on_error(self, callback: Callable[[Exception], object]) -> Self:
        """Calls *callback* with the error before it goes on."""
        return self._same(ops.do_on_error(callback))

    def do_on_complete(self, callback: Callable[[], object]) -> Self:
        """Calls *callback* before the end goes on; not at an error, not at a cancel."""
        return self._same(ops.do_on_complete(callback))

    def do_on_cancel(self, callback: Callable[[], object]) -> Self:
        """Calls *callback* when the subscriber cancels, before the source is told."""
        return self._same(ops.do_on_cancel(callback))

    def do_finally(self, callback: Callable[[SignalType], object]) -> Self:
        """Calls *callback* exactly once with how it ended, after everything else."""
        return self._same(ops.do_finally(callback))

    def do_first(self, callback: Callable[[], object]) -> Self:
        """Calls *callback* before the source is subscribed to; several of them from the bottom up."""
        return self._same(ops.do_first(callback))

    def do_on_subscribe(self, callback: Callable[[], object]) -> Self:
        """Calls *callback* when the source has been subscribed to, before anything of it goes down."""
        return self._same(ops.do_on_subscribe(callback))

    def do_on_request(self, callback: Callable[[int], object]) -> Self:
        """Calls *callback* with how many more items the subscriber wants: all at once for callbacks, with `sys.maxsize`;
        64 at first for `async for`, then as many again as it has taken."""
        return self._same(ops.do_on_request(callback))

    def do_on_terminate(self, callback: Callable[[], object]) -> Self:
        """Calls *callback* before the end or the error goes on; not at a cancel."""
        return self._same(ops.do_on_terminate(callback))

    def do_after_terminate(self, callback: Callable[[], object]) -> Self:
        """Calls *callback* after the end or the error went down; not at a cancel."""
        return self._same(ops.do_after_terminate(callback))

    def do_on_each(self, callback: Callable[[Signal[T]], object]) -> Self:
        """Calls *callback* with each item, the error or the end, as a `Signal`, before it goes on."""
        return self._same(ops.do_on_each(callback))

    def tap(self, make: Callable[[], SignalListener[T]]) -> Self:
        """Tells each signal to the listener that *make* gives for each subscription: a class of listeners will do."""
        return self._same(ops.tap(make))

    def log(
        self, name: str = "stream", level: LogLevel = "meta", *, logger: logging.Logger | None = None
    ) -> Self:
        """Logs each signal to *logger*, "semflux.stream" by default. "meta" tells classes and types, "full" all."""
        return self._same(ops.log(name, level, logger=logger))

    def name(self, text: str) -> Self:
        """Gives what is above a name, which an error that passes says in a note."""
        return self._same(ops.name(text))

    def checkpoint(self, description: str) -> Self:
        """Adds a note to an error that passes: which part of the chain it came through."""
        return self._same(ops.checkpoint(description))


__all__ = ("Watching",)
