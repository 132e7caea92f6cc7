"""`terminate`: one terminal event, then the end."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc

from semflux.events import AnyChatEvent
from semflux.operators.lift import stage_operator
from semflux.terminate import Terminator


def terminate() -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """The `Terminator` as an operator; it comes after `aggregate`.

    ```
    TEXT~a --- X(error)         terminate()
    TEXT~a --- ERROR(error) X(error)
    ```

    `drafts.pipe(normalize(), aggregate(), terminate())`
    """
    return stage_operator(lambda run: Terminator(run.state))


__all__ = ("terminate",)
