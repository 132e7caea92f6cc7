"""TEXT and THINKING blocks of the normalizer: what is open, and what follows from a delta or an end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from semflux.events import (
    ChatEventGroup,
    Origin,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
)
from semflux.frozen import FrozenDict
from semflux.state import RunState
from semflux.wire.json import replace_surrogates

IMPLIED_MARK: FrozenDict[str, Any] = FrozenDict(implied=True)
"""On a boundary that the wire format does not have."""
REPAIRED_MARK: FrozenDict[str, Any] = FrozenDict(repaired=True)
"""On an event that the provider should have sent."""
CLOSING_MARK: FrozenDict[str, Any] = FrozenDict(partial=True)
"""On an end that is made because the stream fails or is aborted."""

REPLACEMENT = "\ufffd"
"""What takes the place of half a surrogate pair."""


def is_whole(text: str) -> bool:
    """True if *text* holds no half of a surrogate pair, so that it can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def hold_surrogate(held: str, text: str) -> tuple[str, str]:
    """What can be shown of *held* + *text*, and the high surrogate at its end that must wait.

    Providers cut JSON escapes between two deltas; half a pair cannot be encoded.
    """
    if held:
        text = held + text
    elif text.isascii():
        return text, ""
    last = text[-1:]
    if "\ud800" <= last <= "\udbff":
        return replace_surrogates(text[:-1]), last
    return replace_surrogates(text), ""


class Block:
    """A block that is open."""

    __slots__ = ("group", "held", "index", "item_id", "origin", "raw_type")

    def __init__(self, group: ChatEventGroup, event: Any) -> None:
        self.group: ChatEventGroup = group
        self.item_id: str | None = event.item_id
        self.index: int | None = event.index
        self.origin: Origin = event.origin
        self.raw_type: str | None = event.raw_type
        self.held: str = ""


_TEXT, _THINKING = ChatEventGroup.TEXT, ChatEventGroup.THINKING
_START = {_TEXT: TextStart.draft_class, _THINKING: ThinkingStart.draft_class}
_DELTA = {_TEXT: TextDelta.draft_class, _THINKING: ThinkingDelta.draft_class}
_END = {_TEXT: TextEnd.draft_class, _THINKING: ThinkingEnd.draft_class}


class Blocks:
    """The open TEXT or THINKING blocks of a stream. Blocks of both groups are never open together.

    What follows comes lazily, and what it changes here is changed with the event that tells it: a stream
    that fails between two of them (strict mode, a bound, an operator downstream) is closed rightly.
    """

    __slots__ = ("_open", "_state", "likely")

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._open: dict[tuple[bool, str | None, int | None], Block] = {}
        """The open blocks, oldest first, by what tells one from another."""
        self.likely: Block | None = None
        """An open block, where there is one: that to which the next delta most likely belongs."""

    @property
    def any_open(self) -> bool:
        """True if a block is open."""
        return bool(self._open)

    def start(self, event: Any, group: ChatEventGroup) -> Iterator[Any]:
        """A block starts, by the provider's own word."""
        block = self._exact(event, group)
        if block is not None:
            self._state.ledger.repair("duplicate_start", f"a second start of an open {group.lower()} block")
            return
        yield from self.leave(group)
        self._add(Block(group, event))
        yield event

    def delta(self, event: Any, group: ChatEventGroup) -> Iterable[Any]:
        """A delta comes; it may open its block, and end those of the other group."""
        block = self._match(event, group)
        return self._open_by(event, group) if block is None else self._take(block, event)

    def _open_by(self, event: Any, group: ChatEventGroup) -> Iterator[Any]:
        has_start = self._has_start(group)
        if has_start:
            self._state.ledger.repair(
                "missing_start", f"a {group.lower()} delta without the start of its block"
            )
        yield from self.leave(group)
        block = Block(group, event)
        self._add(block)
        mark = REPAIRED_MARK if has_start else IMPLIED_MARK
        yield _START[group](event.origin, event.item_id, event.index, event.raw_type, mark)
        yield from self._take(block, event)

    def _take(self, block: Block, event: Any) -> Iterable[Any]:
        event.item_id, event.index = block.item_id, block.index
        text, block.held = hold_surrogate(block.held, event.text)
        if not text:
            return ()
        event.text = text
        return (event,)

    def end(self, event: Any, group: ChatEventGroup) -> Iterator[Any]:
        """A block ends, by the provider's own word."""
        block = self._match(event, group)
        if block is None and event.item_id is None and event.index is None:
            # An end without identity among several open blocks can only mean the oldest one.
            block = next((b for b in self._open.values() if b.group is group), None)
        if block is None:
            self._state.ledger.repair("stray_end", f"the end of a {group.lower()} block that is not open")
            return
        event.item_id, event.index = block.item_id, block.index
        yield from self._remove(block)
        yield event

    def leave(self, group: ChatEventGroup | None, *, failing: bool = False) -> Iterator[Any]:
        """The ends of all open blocks outside *group*; of all when it is None."""
        for block in [b for b in self._open.values() if b.group is not group]:
            mark = CLOSING_MARK if failing else IMPLIED_MARK
            if not failing and self._has_end(block.group):
                self._state.ledger.repair("missing_end", f"a {block.group.lower()} block without an end")
                mark = REPAIRED_MARK
            yield from self._remove(block)
            yield _END[block.group](block.origin, block.item_id, block.index, block.raw_type, mark)

    def yield_to_tool(self) -> Iterable[Any]:
        """The ends that a starting call implies: in a format whose blocks have no ends of their own."""
        oldest = self._oldest
        if oldest is not None and not self._has_end(oldest.group):
            return self.leave(None)
        return ()

    def _has_start(self, group: ChatEventGroup) -> bool:
        boundaries = self._state.boundaries
        return boundaries.text_start if group is _TEXT else boundaries.thinking_start

    def _has_end(self, group: ChatEventGroup) -> bool:
        boundaries = self._state.boundaries
        return boundaries.text_end if group is _TEXT else boundaries.thinking_end

    def _exact(self, event: Any, group: ChatEventGroup) -> Block | None:
        return self._open.get((group is _TEXT, event.item_id, event.index))

    def _match(self, event: Any, group: ChatEventGroup) -> Block | None:
        block = self._exact(event, group)
        if block is not None:
            return block
        item_id, index = event.item_id, event.index
        candidates = [b for b in self._open.values() if b.group is group]
        if item_id is None and index is None:
            pass
        elif index is None:
            candidates = [b for b in candidates if b.item_id == item_id]
        elif item_id is None:
            candidates = [b for b in candidates if b.index == index]
        else:
            # Half an identity agrees where the other half was never given.
            candidates = [
                b
                for b in candidates
                if (b.item_id == item_id and b.index is None) or (b.index == index and b.item_id is None)
            ]
        return candidates[0] if len(candidates) == 1 else None

    def _add(self, block: Block) -> None:
        self._open[block.group is _TEXT, block.item_id, block.index] = block
        self.likely = block

    def _remove(self, block: Block) -> Iterator[Any]:
        """Forget *block*; gives the delta for half a pair that never got its other half."""
        if block.held:
            block.held = ""
            yield _DELTA[block.group](REPLACEMENT, block.origin, block.item_id, block.index, block.raw_type)
        del self._open[block.group is _TEXT, block.item_id, block.index]
        self.likely = self._oldest

    @property
    def _oldest(self) -> Block | None:
        return next(iter(self._open.values()), None)


__all__ = (
    "CLOSING_MARK",
    "IMPLIED_MARK",
    "REPAIRED_MARK",
    "REPLACEMENT",
    "Block",
    "Blocks",
    "hold_surrogate",
    "is_whole",
)
