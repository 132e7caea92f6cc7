"""What may be done to an item that has to wait: how much it weighs, whether it may be dropped, what it may be joined to.

Lifecycle, step, tool and terminal events, and the starts and ends of blocks, are never dropped; deltas may be joined
to one another; HEARTBEAT and RAW go first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, Literal, TypeAlias

import attrs

from semflux.events import ChatEvent, ChatEventGroup, ChatEventPhase, ChatEventType, change_event

T, G, P = ChatEventType, ChatEventGroup, ChatEventPhase

ITEM_WEIGHT = 64
"""Bytes that any item counts for, its text aside."""


Policy: TypeAlias = Literal["block", "coalesce", "drop", "error", "drop_oldest", "drop_latest"]
"""What is done when a subscriber's buffer is full: the source waits ("block"); deltas are joined, then it waits
("coalesce"); HEARTBEAT and RAW go, then it waits ("drop"); this subscriber alone fails ("error"); or something of the
buffer goes ("drop_oldest"), or what comes does ("drop_latest"), but nothing that tells where the stream is."""

WAITING: frozenset[str] = frozenset({"block", "coalesce", "drop"})
"""The policies for which the source waits in the end."""


@attrs.frozen(kw_only=True)
class Room:
    """How much may wait for one subscriber."""

    items: int = 1024
    """Items."""
    weight: int = 8 * 1024 * 1024
    """Bytes of text, media and raw objects."""


class Delivery(IntEnum):
    """What may happen to an item for which there is no room."""

    FIRST_TO_GO = 0
    """HEARTBEAT and RAW."""
    MAY_GO = 1
    """Deltas and observations of a chat stream, and all items that are no chat events."""
    KEPT = 2
    """Whatever tells where the stream is, and whatever belongs to a tool."""


def _class_of(type_: ChatEventType) -> Delivery:
    if type_ in {T.HEARTBEAT, T.RAW}:
        return Delivery.FIRST_TO_GO
    if type_ is T.ERROR or type_.group in {G.LIFECYCLE, G.STEP, G.TOOL_CALL, G.SERVER_TOOL}:
        return Delivery.KEPT
    return Delivery.KEPT if type_.phase in {P.START, P.END} else Delivery.MAY_GO


DELIVERY: dict[ChatEventType, Delivery] = {type_: _class_of(type_) for type_ in T}
"""The class of each type."""


def delivery_of(item: object) -> Delivery:
    """The class of *item*."""
    return DELIVERY[item.type] if isinstance(item, ChatEvent) else Delivery.MAY_GO


def weight_of(item: Any) -> int:
    """What *item* counts for, in bytes: its text, its media and its raw object; about, not exactly."""
    if isinstance(item, ChatEvent):
        text = item.text
        weight = ITEM_WEIGHT if text is None else ITEM_WEIGHT + len(text)
        block, raw = item.block, item.raw
        if block is not None:
            weight += len(block.data or "") + len(block.url or "")
        return weight if raw is None else weight + _weigh(raw)
    return ITEM_WEIGHT + len(item) if isinstance(item, (str, bytes)) else ITEM_WEIGHT


def _weigh(raw: Any) -> int:
    weight = 0
    todo: list[Any] = [raw]
    while todo:
        value = todo.pop()
        weight += 16
        kind: type[Any] = _kind_of(value)
        if issubclass(kind, (str, bytes)):
            weight += len(value)
        elif issubclass(kind, dict):
            todo.extend(value)
            todo.extend(value.values())
        elif issubclass(kind, (list, tuple)):
            todo.extend(value)
    return weight


_kind_of: Callable[[Any], type[Any]] = type


_JOINED = frozenset(
    {T.TEXT_DELTA, T.THINKING_DELTA, T.TOOL_CALL_ARGS_DELTA, T.SERVER_TOOL_ARGS_DELTA, T.REFUSAL_DELTA}
)


def joins(first: object, second: object) -> bool:
    """True if *second* may be joined to *first*: both are pieces of the same thing and nothing else tells them apart."""
    return (
        isinstance(first, ChatEvent)
        and isinstance(second, ChatEvent)
        and first.type is second.type
        and first.type in _JOINED
        and first.index == second.index
        and first.item_id == second.item_id
        and first.tool_call_id == second.tool_call_id
        and first.step == second.step
        and first.attributes == second.attributes
    )


def joined(first: Any, texts: list[str]) -> Any:
    """*first* with these pieces as its text; it keeps its place in the order."""
    if len(texts) == 1:
        return first
    return change_event(first, text="".join(texts))


def coalesced(items: Iterable[Any]) -> list[Any]:
    """*items* without HEARTBEAT and RAW, neighbours that are pieces of the same thing joined. Lossless otherwise."""
    kept: list[Any] = []
    texts: list[str] = []
    for item in items:
        if delivery_of(item) is Delivery.FIRST_TO_GO:
            continue
        if texts and joins(kept[-1], item):
            texts.append(item.text)
            continue
        if texts:
            kept[-1] = joined(kept[-1], texts)
        kept.append(item)
        texts = [item.text or ""] if isinstance(item, ChatEvent) and item.type in _JOINED else []
    if texts:
        kept[-1] = joined(kept[-1], texts)
    return kept


__all__ = (
    "DELIVERY",
    "ITEM_WEIGHT",
    "WAITING",
    "Delivery",
    "Policy",
    "Room",
    "coalesced",
    "delivery_of",
    "joined",
    "joins",
    "weight_of",
)
