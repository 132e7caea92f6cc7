"""`ChatEventFilter`: which events a subscriber is shown. Delivery only: no total, log or session changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from semflux.events import TERMINAL_TYPES, ChatEvent, ChatEventGroup, ChatEventType

ALWAYS_DELIVERED = TERMINAL_TYPES | {
    ChatEventType.RESPONSE_START,
    ChatEventType.STATUS,
    ChatEventType.STEP_START,
    ChatEventType.STEP_END,
}
"""What the filter of a stream cannot hide: its frame. An exact filter (`.only`) can."""


class ChatEventFilter:
    """A predicate over events: `f(event)`; `|`, `&` and `~` combine (also `or_`, `and_`, `negate`)."""

    __slots__ = ("_predicate",)

    DEFAULT: ClassVar[ChatEventFilter]
    """All but HEARTBEAT and RAW: what `stream()` of a model applies."""

    def __init__(self, predicate: Callable[[ChatEvent], bool]) -> None:
        self._predicate = predicate

    def __call__(self, event: ChatEvent) -> bool:
        return self._predicate(event)

    @classmethod
    def of(cls, *types: ChatEventType) -> ChatEventFilter:
        """Events of these types."""
        wanted = frozenset(types)
        return cls(lambda event: event.type in wanted)

    @classmethod
    def of_group(cls, *groups: ChatEventGroup) -> ChatEventFilter:
        """Events of these groups."""
        wanted = frozenset(groups)
        return cls(lambda event: event.group in wanted)

    @classmethod
    def all(cls) -> ChatEventFilter:
        """Every event."""
        return cls(lambda event: True)

    def or_(self, other: Callable[[ChatEvent], bool]) -> ChatEventFilter:
        """Events that this or *other* lets through."""
        return ChatEventFilter(lambda event: self(event) or other(event))

    def and_(self, other: Callable[[ChatEvent], bool]) -> ChatEventFilter:
        """Events that both let through."""
        return ChatEventFilter(lambda event: self(event) and other(event))

    def negate(self) -> ChatEventFilter:
        """Events that this one does not let through."""
        return ChatEventFilter(lambda event: not self(event))

    def __or__(self, other: Callable[[ChatEvent], bool]) -> ChatEventFilter:
        return self.or_(other)

    def __and__(self, other: Callable[[ChatEvent], bool]) -> ChatEventFilter:
        return self.and_(other)

    def __invert__(self) -> ChatEventFilter:
        return self.negate()

    def __repr__(self) -> str:
        return "ChatEventFilter(...)"


ChatEventFilter.DEFAULT = ChatEventFilter.of(ChatEventType.HEARTBEAT, ChatEventType.RAW).negate()


def delivers(keep: Callable[[ChatEvent], bool]) -> Callable[[ChatEvent], bool]:
    """*keep*, but with the frame of the stream always let through. The answer for a type that *keep*
    decides by type alone is not remembered: a predicate may look at anything."""
    classes = ALWAYS_DELIVERED

    def deliver(event: ChatEvent) -> bool:
        return keep(event) or event.type in classes

    return deliver


__all__ = ("ALWAYS_DELIVERED", "ChatEventFilter", "delivers")
