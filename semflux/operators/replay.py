"""`replay` and `cache`: one subscription to a source for all, and late subscribers get what they missed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from reactivex import Observable, abc

from semflux.clock import Clock
from semflux.errors import ConfigurationError
from semflux.operators.auto_connect import AutoConnect
from semflux.operators.delivery import Policy, Room
from semflux.operators.fanout import History
from semflux.operators.publish import Publication


def replay(
    count: int | None = None,
    ttl: float | None = None,
    *,
    compact: bool = False,
    chat: bool = False,
    policy: Policy = "block",
    room: Room | None = None,
    clock: Clock | None = None,
) -> Callable[[abc.ObservableBase[Any]], Publication]:
    """A publication whose late subscribers get the last *count* items that are not older than *ttl* seconds first.

    Without either they get everything: of 10,000 items and 16 MiB at most. A chat stream that is longer comes as its
    snapshot then, with its pieces joined, and so it does from the start if *compact* is true; late subscribers of any
    other stream that is longer fail with BufferOverflowError.

    ```
    --1--2--3--|        replay(), a second subscriber after 2
    --1--2--3--|
          (12)3--|
    ```

    Raises:
        ConfigurationError: if *count* is negative or *ttl* is not above zero, or if *compact* is true and the items are
            no chat events.
    """
    if count is not None and count < 0:
        raise ConfigurationError(f"replay({count}): the count must not be negative")
    if ttl is not None and not ttl > 0:
        raise ConfigurationError(f"replay(ttl={ttl!r}): a time in seconds, above zero")
    if compact and not chat:
        raise ConfigurationError("replay(compact=True): only a chat stream can be told in fewer events")
    now = time.monotonic if clock is None else clock.monotonic
    return lambda source: Publication(
        source,
        chat=chat,
        policy=policy,
        room=room,
        history=lambda: History(count, ttl, now, compact=compact),
    )


def cache(
    count: int | None = None,
    ttl: float | None = None,
    *,
    chat: bool = False,
    clock: Clock | None = None,
) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    """`replay(count, ttl).auto_connect()`: the first subscriber starts the source, which then goes on to its end
    whoever leaves; everybody gets everything.

    ```
    --1--2--3--|        cache(), a second subscriber after the end
    --1--2--3--|
                (123)|
    ```
    """
    make = replay(count, ttl, chat=chat, clock=clock)
    return lambda source: AutoConnect(make(source))


__all__ = ("cache", "replay")
