"""`in_group`: exactly the events of some groups."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc

from semflux.events import AnyChatEvent, ChatEventGroup
from semflux.filters import group_of
from semflux.operators.filter import FilterLink
from semflux.operators.lift import lift


def in_group(
    *groups: ChatEventGroup,
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """Events of these groups and nothing else; the end of the stream comes all the same.

    ```
    RESP+ THINK~t TEXT~a RESP-|        in_group(G.TEXT)
    ------------- TEXT~a -----|
    ```

    Raises:
        ConfigurationError: if one of *groups* is none.
    """
    wanted = frozenset([group_of(group) for group in groups])
    return lift(lambda below, run: FilterLink(below, run, lambda event: event.group in wanted))


__all__ = ("in_group",)
