"""`to_iterable`: a stream in a plain `for` loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, TypeVar

from reactivex import abc

from semflux.errors import BlockingInLoopError
from semflux.flux.blocking import run_blocking
from semflux.flux.iterate import EventIterator

T = TypeVar("T")
_END: Any = object()


async def _next_of(iterator: EventIterator[T]) -> T:
    return await anext(iterator, _END)


def iterate(source: abc.ObservableBase[T]) -> Iterator[T]:
    """The items of *source*, waited for in the calling thread while the stream runs on the private loop."""
    iterator = EventIterator(source)
    try:
        while (item := run_blocking(_next_of(iterator), None, "to_iterable")) is not _END:
            yield item
    finally:
        # First what may be done anywhere: the iteration may be freed in a thread whose loop is running.
        iterator.dispose()
        with contextlib.suppress(BlockingInLoopError):
            run_blocking(iterator.aclose(), None, "to_iterable")


__all__ = ("iterate",)
