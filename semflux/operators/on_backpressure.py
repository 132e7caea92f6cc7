"""`on_backpressure_buffer`, `_drop`, `_latest`, `_error`: for a source that is not to wait for its subscriber."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.operators.delivery import Policy, Room
from semflux.operators.one_reader import Pushed

T = TypeVar("T")

Overflow: TypeAlias = Literal["error", "drop_oldest", "drop_latest"]
"""What happens when the buffer is full: BufferOverflowError after what is in it; or the oldest item of it, or the one
that comes, is dropped."""


def on_backpressure_buffer(
    max: int = 1024,
    overflow: Overflow = "error",
    on_overflow: Callable[[Any], object] | None = None,
    *,
    chat: bool = False,
) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    """The source goes at its own pace; up to *max* items, of 8 MiB, wait for a subscriber that pulls.

    *on_overflow* gets each item that is dropped. Of a chat stream only deltas and observations are dropped, HEARTBEAT
    and RAW first; what tells where the stream is comes through.

    ```
    --1--2--3--4|        on_backpressure_buffer(2, "drop_oldest"), nothing is asked for before 4
    -----------(34)|
    ```

    Raises:
        ConfigurationError: if *max* is below 1, or *overflow* is unknown.
    """
    if max < 1:
        raise ConfigurationError(f"on_backpressure_buffer({max}): there must be room for one item at least")
    if overflow not in {"error", "drop_oldest", "drop_latest"}:
        raise ConfigurationError(
            f"on_backpressure_buffer(overflow={overflow!r}): it is 'error', 'drop_oldest' or 'drop_latest'"
        )
    return _operator(Room(items=max), overflow, on_overflow, chat)


def on_backpressure_drop(
    handler: Callable[[Any], object] | None = None, *, chat: bool = False
) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    """The source goes at its own pace; what the subscriber has not asked for is dropped, and *handler* gets it.

    ```
    --1--2--3--4|        on_backpressure_drop(), one item is asked for
    --1---------|
    ```
    """
    return _operator(Room(items=0), "drop_latest", handler, chat)


def on_backpressure_latest(*, chat: bool = False) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    """The source goes at its own pace; the latest item that the subscriber has not asked for waits, others go.

    ```
    --1--2--3--4|        on_backpressure_latest(), one item is asked for, and after 3 another one
    --1------3--|
    ```
    """
    return _operator(Room(items=1), "drop_oldest", None, chat)


def on_backpressure_error(*, chat: bool = False) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    """The source goes at its own pace; the first item that the subscriber has not asked for is a BufferOverflowError.

    ```
    --1--2--3--4|        on_backpressure_error(), one item is asked for
    --1--X(BufferOverflowError)
    ```
    """
    return _operator(Room(items=0), "error", None, chat)


def _operator(
    room: Room, policy: Policy, dropped: Callable[[Any], object] | None, chat: bool
) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    return lambda source: Pushed(source, room=room, policy=policy, dropped=dropped, chat=chat)


__all__ = (
    "Overflow",
    "on_backpressure_buffer",
    "on_backpressure_drop",
    "on_backpressure_error",
    "on_backpressure_latest",
)
