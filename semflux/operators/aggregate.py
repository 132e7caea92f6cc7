"""`aggregate`: what the stream came to, put on the events that tell it."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc

from semflux.aggregate import Aggregator
from semflux.events import AnyChatEvent
from semflux.operators.lift import stage_operator


def aggregate() -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """The `Aggregator` as an operator; it comes after `normalize`.

    ```
    TEXT~a --- STEP- --|        aggregate()
    TEXT~a --- STEP-(response.text = "a") --|
    ```

    `drafts.pipe(normalize(), aggregate(), terminate())`
    """
    return stage_operator(lambda run: Aggregator(run.state))


__all__ = ("aggregate",)
