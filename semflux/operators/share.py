"""`share`: one subscription to a source for all who are subscribed at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactivex import Observable, abc

from semflux.clock import Clock
from semflux.operators.delivery import Policy, Room
from semflux.operators.publish import publish
from semflux.operators.ref_count import RefCount


def share(
    *,
    grace: float = 0.0,
    chat: bool = False,
    policy: Policy = "block",
    room: Room | None = None,
    clock: Clock | None = None,
) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    """`publish().ref_count()`: the first subscriber starts the source, the last one that leaves cancels it, *grace*
    seconds later. Who comes late misses what was.

    ```
    --1--2--3--|        share(), a second subscriber after 1
    --1--2--3--|
        --2--3--|
    ```
    """
    make = publish(chat=chat, policy=policy, room=room)
    return lambda source: RefCount(make(source), 1, grace, clock)


__all__ = ("share",)
