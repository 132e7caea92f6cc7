"""`ChatEventFilter`: which events a subscriber is shown. Delivery only: no total, log or session changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, ClassVar

from semflux.errors import ConfigurationError
from semflux.events import EVENT_CLASSES, TERMINAL_TYPES, ChatEvent, ChatEventGroup, ChatEventType

ALWAYS_DELIVERED = TERMINAL_TYPES | {
    ChatEventType.RESPONSE_START,
    ChatEventType.STATUS,
    ChatEventType.STEP_START,
    ChatEventType.STEP_END,
}
"""What the filter of a stream cannot hide: its frame. An exact filter (`.only`) can."""


class ChatEventFilter:
    """A predicate over events: `f(event)`; `|`, `&` and `~` combine (also `or_`, `and_`, `negate`)."""

    __slots__ = ("_predicate", "types")

    DEFAULT: ClassVar[ChatEventFilter]
    """All but HEARTBEAT and RAW: what `stream()` of a model applies."""

    types: frozenset[ChatEventType] | None
    """The types that it lets through, where it decides by type alone; else None."""

    def __init__(
        self, predicate: Callable[[ChatEvent], object], *, types: Iterable[ChatEventType] | None = None
    ) -> None:
        self._predicate = predicate
        self.types = None if types is None else frozenset(types)

    def __call__(self, event: ChatEvent) -> bool:
        return bool(self._predicate(event))

    @classmethod
    def of(cls, *types: ChatEventType) -> ChatEventFilter:
        """Events of these types.

        Raises:
            ConfigurationError: if one of *types* is none.
        """
        wanted = frozenset([type_of(item) for item in types])
        return cls(lambda event: event.type in wanted, types=wanted)

    @classmethod
    def of_group(cls, *groups: ChatEventGroup) -> ChatEventFilter:
        """Events of these groups.

        Raises:
            ConfigurationError: if one of *groups* is none.
        """
        wanted = frozenset([group_of(item) for item in groups])
        return cls.of(*[event_type for event_type in ChatEventType if event_type.group in wanted])

    @classmethod
    def all(cls) -> ChatEventFilter:
        """Every event."""
        return cls.of(*ChatEventType)

    def or_(self, other: Callable[[ChatEvent], object]) -> ChatEventFilter:
        """Events that this or *other* lets through."""
        mine, theirs = self.types, getattr(other, "types", None)
        if mine is not None and theirs is not None:
            return ChatEventFilter.of(*(mine | theirs))
        return ChatEventFilter(lambda event: self(event) or other(event))

    def and_(self, other: Callable[[ChatEvent], object]) -> ChatEventFilter:
        """Events that both let through."""
        mine, theirs = self.types, getattr(other, "types", None)
        if mine is not None and theirs is not None:
            return ChatEventFilter.of(*(mine & theirs))
        return ChatEventFilter(lambda event: self(event) and other(event))

    def negate(self) -> ChatEventFilter:
        """Events that this one does not let through."""
        if self.types is not None:
            return ChatEventFilter.of(*(frozenset(ChatEventType) - self.types))
        return ChatEventFilter(lambda event: not self(event))

    def __or__(self, other: Callable[[ChatEvent], object]) -> ChatEventFilter:
        return self.or_(other)

    def __and__(self, other: Callable[[ChatEvent], object]) -> ChatEventFilter:
        return self.and_(other)

    def __invert__(self) -> ChatEventFilter:
        return self.negate()

    def __repr__(self) -> str:
        if self.types is None:
            return "ChatEventFilter(...)"
        return f"ChatEventFilter.of({', '.join(sorted(self.types))})"


def type_of(item: Any) -> ChatEventType:
    """The event type that *item*, a type, its name or an event class, stands for.

    Raises:
        ConfigurationError: if it is neither.
    """
    if isinstance(item, type) and issubclass(item, ChatEvent) and item is not ChatEvent:
        return item.type
    try:
        return ChatEventType(item)
    except ValueError:
        raise ConfigurationError(
            f"{item!r} is no event type: write ChatEventType.TEXT_DELTA or TextDelta, for example"
        ) from None


def group_of(item: Any) -> ChatEventGroup:
    """The group that *item*, a group or its name, stands for.

    Raises:
        ConfigurationError: if it is neither.
    """
    try:
        return ChatEventGroup(item)
    except ValueError:
        raise ConfigurationError(
            f"{item!r} is no group of events: write ChatEventGroup.TEXT, for example"
        ) from None


def delivers(keep: Callable[[ChatEvent], object]) -> Callable[[ChatEvent], object]:
    """*keep*, but with the frame of the stream always let through."""
    types = getattr(keep, "types", None)
    if types is not None:
        shown = frozenset([EVENT_CLASSES[event_type] for event_type in types | ALWAYS_DELIVERED])
        return lambda event: event.frozen_class in shown
    frame = frozenset([EVENT_CLASSES[event_type] for event_type in ALWAYS_DELIVERED])
    return lambda event: event.frozen_class in frame or keep(event)


def shown_classes(keep: Callable[[ChatEvent], object] | None) -> frozenset[type[ChatEvent]] | None:
    """The event classes that a filter by type delivers; None if it has to look at each event."""
    types = frozenset(ChatEventType) if keep is None else getattr(keep, "types", None)
    return None if types is None else _classes(types)


@lru_cache(maxsize=64)
def _classes(types: frozenset[ChatEventType]) -> frozenset[type[ChatEvent]]:
    """One set for all streams with the same filter: a set for each would be a tenth of a stream's memory."""
    return frozenset([EVENT_CLASSES[event_type] for event_type in types | ALWAYS_DELIVERED])


ChatEventFilter.DEFAULT = ChatEventFilter.of(ChatEventType.HEARTBEAT, ChatEventType.RAW).negate()

__all__ = ("ALWAYS_DELIVERED", "ChatEventFilter", "delivers", "group_of", "shown_classes", "type_of")
