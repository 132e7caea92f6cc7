"""`normalize`: drafts or events in any order become a legal order."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc

from semflux.events import AnyChatEvent
from semflux.normalize import Normalizer
from semflux.operators.lift import stage_operator


def normalize() -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """The `Normalizer` as an operator.

    ```
    TEXT~a --- TOOL+ --|        normalize()
    TEXT+ TEXT~a TEXT- TOOL+ TOOL- --|
    ```

    `reactivex.of(TextDelta("a")).pipe(normalize(), aggregate(), terminate())`
    """
    return stage_operator(lambda run: Normalizer(run.state))


__all__ = ("normalize",)
