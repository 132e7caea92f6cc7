"""`filter_events`: what a subscriber is shown, with the frame of the stream always let through."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc

from semflux.events import AnyChatEvent, ChatEvent
from semflux.filters import delivers
from semflux.operators.filter import FilterLink
from semflux.operators.lift import lift


def filter_events(
    keep: Callable[[ChatEvent], object],
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """Events for which *keep* is true; STEP events, LIFECYCLE events other than HEARTBEAT and terminal
    events come whatever it says.

    ```
    RESP+ TEXT~a RAW RESP-     filter_events(ChatEventFilter.of(T.TEXT_DELTA))
    RESP+ TEXT~a RESP-
    ```
    """
    deliver = delivers(keep)
    return lift(lambda below, run: FilterLink(below, run, deliver))


__all__ = ("filter_events",)
