"""`only`: exactly the events of some types, or of some classes."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc

from semflux.events import AnyChatEvent, ChatEvent, ChatEventType
from semflux.filters import type_of
from semflux.operators.filter import FilterLink
from semflux.operators.lift import lift


def only(
    *types: ChatEventType | type[ChatEvent],
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """Events of these types, given as types or as classes, and nothing else: no terminal event either,
    unless it is named. The end of the stream comes all the same, with its error.

    ```
    RESP+ TEXT~a TEXT~b RESP-|        only(T.TEXT_DELTA)
    ----- TEXT~a TEXT~b -----|
    ```

    Raises:
        ConfigurationError: if one of *types* is neither.
    """
    wanted = frozenset([type_of(item) for item in types])
    return lift(lambda below, run: FilterLink(below, run, lambda event: event.type in wanted))


__all__ = ("only",)
