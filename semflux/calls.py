"""Tool calls of the normalizer: which call a fragment belongs to, and when a call starts and ends.

Identity, in order: the call's id, else the item's id, else the index, else the only open call. An
empty id or name is an absent one. A new id under a used index is a new call; a name or id that is
sent again is the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from semflux.blocks import (
    CLOSING_MARK,
    IMPLIED_MARK,
    REPAIRED_MARK,
    REPLACEMENT,
    Blocks,
    hold_surrogate,
)
from semflux.errors import BadFrameError, ToolArgumentsError
from semflux.events import Origin, ToolCallArgsDelta, ToolCallEnd, ToolCallStart
from semflux.frozen import FrozenDict
from semflux.state import RunState
from semflux.wire.json import decode as decode_json

_START = ToolCallStart.draft_class
_ARGS = ToolCallArgsDelta.draft_class
_END = ToolCallEnd.draft_class

_MAX_CHECKS = 16


class Call:
    """A call that is open."""

    __slots__ = (
        "attributes",
        "checks",
        "fragments",
        "held",
        "id",
        "index",
        "item_id",
        "kept",
        "made_up",
        "name",
        "ordinal",
        "origin",
        "raw_type",
        "sent_id",
        "size",
        "started",
    )

    def __init__(self, event: Any, sent_id: str | None, name: str | None, ordinal: int) -> None:
        self.ordinal: int = ordinal
        """Its place among the calls of its step, from 0."""
        self.sent_id: str | None = sent_id
        """The id that the provider sent; None until it does."""
        self.id: str = sent_id or ""
        """The id that subscribers see."""
        self.made_up: bool = False
        self.name: str | None = name
        self.index: int | None = event.index
        self.item_id: str | None = event.item_id
        self.origin: Origin = event.origin
        self.raw_type: str | None = event.raw_type
        self.attributes: FrozenDict[str, Any] = event.attributes
        self.started: bool = False
        self.kept: list[str] = []
        """Fragments that wait for the start."""
        self.fragments: list[str] = []
        """All fragments so far, to tell a repeat of the whole from a piece."""
        self.size: int = 0
        """Characters of them."""
        self.checks: int = _MAX_CHECKS
        self.held: str = ""

    @property
    def whole(self) -> bool:
        """True if what came so far is one complete JSON object.

        Each look parses everything so far, so a call gets a few looks and no more: time stays linear.
        """
        if not self.checks or not self.fragments or not self.fragments[-1].rstrip().endswith("}"):
            return False
        self.checks -= 1
        try:
            return isinstance(decode_json("".join(self.fragments)), dict)
        except BadFrameError:
            return False


class Calls:
    """The open calls of a stream, oldest first. What follows comes lazily, as in `Blocks`."""

    __slots__ = ("_blocks", "_by_index", "_count", "_ended", "_open", "_state", "_step")

    def __init__(self, state: RunState, blocks: Blocks) -> None:
        self._state = state
        self._blocks = blocks
        self._open: list[Call] = []
        self._by_index: dict[int | None, Call] = {}
        """The latest open call of each index that has one."""
        self._ended: set[str] = set()
        """Ids the provider sent for calls that are over."""
        self._step = 0
        self._count = 0

    def begin_step(self, step: int) -> None:
        """Count calls anew: a made-up id holds the step and the call's place in it."""
        self._step = step
        self._count = 0

    @property
    def any_open(self) -> bool:
        """True if a call is open."""
        return bool(self._open)

    # What comes in

    def start(self, event: Any) -> Iterator[Any]:
        """A call starts, by the provider's own word."""
        sent, name = event.tool_call_id or None, event.name or None
        known = any(call.sent_id == sent for call in self._open)
        if sent is not None and known and self._find_by_id(event, sent, name) is not None:
            self._state.ledger.repair("duplicate_start", "a second start of an open tool call")
            return
        yield from self._begin(self._new(event, sent, name), event)

    def fragment(self, event: Any) -> Iterable[Any]:
        """A fragment comes: of the arguments, of the identity, or of both."""
        call = self._by_index.get(event.index)
        text = event.text
        if (
            call is not None
            and call.started
            and not event.name
            and (not event.tool_call_id or event.tool_call_id == call.sent_id)
            and event.item_id == call.item_id
            and text.isascii()
            and not call.held
            and len(text) != call.size
        ):
            # Nearly every fragment: more of a call that is known by its index alone.
            call.fragments.append(text)
            call.size += len(text)
            event.tool_call_id = call.id
            event.name = call.name
            return (event,) if text else ()
        sent, name = event.tool_call_id or None, event.name or None
        call = self._find(event, sent, name)
        if call is None:
            # A fragment that says nothing at all makes no call.
            return self._open_by(event, sent, name) if sent or name or text else ()
        if call.sent_id is None and sent is not None:
            call.sent_id = sent
            if not call.started:
                call.id = sent
        if call.name is None:
            call.name = name
        if len(text) == call.size and text and self._repeats(call, text):
            self._state.ledger.repair("repeated_arguments", "the whole arguments of a call sent once more")
            text = ""
        if not call.started and call.name is not None:
            return self._begin_with(call, event, text)
        return self._deliver(call, event, text)

    def plain(self, event: Any) -> Call | None:
        """The call of *event*, if more fragments like it would take the short way of `fragment`."""
        call = self._by_index.get(event.index)
        if call is None or not call.started or call.held or event.item_id != call.item_id:
            return None
        return call

    def _open_by(self, event: Any, sent: str | None, name: str | None) -> Iterator[Any]:
        if self._state.boundaries.tool_start:
            self._state.ledger.repair(
                "missing_start", "a fragment of arguments without the start of its call"
            )
        call = self._new(event, sent, name)
        if name is None:
            yield from self._deliver(call, event, event.text)
        else:
            yield from self._begin_with(call, event, event.text)

    def _begin_with(self, call: Call, event: Any, text: str) -> Iterator[Any]:
        yield from self._begin(call, None)
        yield from self._deliver(call, event, text)

    def end(self, event: Any) -> Iterator[Any]:
        """A call ends, by the provider's own word."""
        sent = event.tool_call_id or None
        identified = self._identified(event)
        call = self._find(event, sent, None) if identified else None
        unknown = not identified or (sent is not None and sent not in self._ended)
        if call is None and unknown and self._open:
            self._state.ledger.repair("relabelled", "the end of an unknown tool call")
            call = self._open[0]
        if call is None and sent is not None and sent not in self._ended:
            self._state.ledger.repair("missing_start", "the end of a tool call that never started")
            call = self._new(event, sent, event.name or None)
        if call is None:
            self._state.ledger.repair("stray_end", "the end of a tool call that is not open")
            return
        yield from self._finish(call, event.attributes, event.raw_type)

    def close(self, *, failing: bool) -> Iterator[Any]:
        """The ends of all open calls."""
        for call in list(self._open):
            mark = CLOSING_MARK if failing else IMPLIED_MARK
            if not failing and self._state.boundaries.tool_end:
                self._state.ledger.repair("missing_end", "a tool call without an end")
                mark = REPAIRED_MARK
            yield from self._finish(call, mark, call.raw_type, failing=failing)

    # Identity

    @staticmethod
    def _identified(event: Any) -> bool:
        return bool(event.tool_call_id) or event.item_id is not None or event.index is not None

    def _find(self, event: Any, sent: str | None, name: str | None) -> Call | None:
        """The open call that *event* belongs to; None if it is a call of its own."""
        if sent is not None:
            return self._find_by_id(event, sent, name)
        item_id, index = event.item_id, event.index
        if item_id is not None:
            for call in self._open:
                if call.item_id == item_id:
                    return call
        if index is not None:
            for call in reversed(self._open):
                if call.index == index:
                    return None if self._is_next(call, event, name) else call
        if name is not None or not self._open:
            return None
        unplaced = [
            call
            for call in self._open
            if (index is None or call.index is None) and (item_id is None or call.item_id is None)
        ]
        if not unplaced:
            return None
        if item_id is None and index is None:
            self._state.ledger.repair("relabelled", "a fragment that does not say which call it belongs to")
        return unplaced[0]

    def _find_by_id(self, event: Any, sent: str, name: str | None) -> Call | None:
        index = event.index
        same = [call for call in self._open if call.sent_id == sent]
        for call in same:
            if index is None or call.index is None or call.index == index:
                return call
        if same:
            # Another index: with a name it is a call of its own under an id that is taken.
            return None if name is not None else same[0]
        if sent in self._ended:
            return None
        for call in reversed(self._open):
            if call.sent_id is None and self._may_be(call, event):
                return call
        return None

    @staticmethod
    def _may_be(call: Call, event: Any) -> bool:
        """True if an id that comes late is the id of *call*."""
        if event.item_id is not None and call.item_id is not None:
            return bool(call.item_id == event.item_id)
        return event.index is not None and call.index == event.index

    @staticmethod
    def _is_next(call: Call, event: Any, name: str | None) -> bool:
        """True if a fragment with a name, but no id, under a used index is a call of its own."""
        if name is None or call.name is None:
            return False
        if name != call.name:
            return True
        return bool(event.text) and len(event.text) != call.size and call.whole

    @staticmethod
    def _repeats(call: Call, text: str) -> bool:
        return text == "".join(call.fragments) and call.whole

    # What goes out

    def _new(self, event: Any, sent: str | None, name: str | None) -> Call:
        bound = self._state.limits.max_tool_calls
        if self._count >= bound:
            # Refused before anything shows it, so that nothing of it needs an end.
            raise ToolArgumentsError(
                f"the answer has more than {bound} tool calls", kind="count", phase="stream"
            )
        call = Call(event, sent, name, self._count)
        self._count += 1
        if sent is not None and (sent in self._ended or any(c.sent_id == sent for c in self._open)):
            self._state.ledger.repair("repeated_id", "the id of another tool call")
            self._make_up(call)
        elif sent in self._state.tool_ids:
            # Of an attempt before, or of one that we made up: the provider knows nothing of these.
            self._state.ledger.note("repeated_id")
            self._make_up(call)
        self._open.append(call)
        if call.index is not None:
            self._by_index[call.index] = call
        return call

    def _make_up(self, call: Call) -> None:
        call.id = f"call_{self._step}_{call.ordinal}"
        while call.id in self._state.tool_ids:
            call.id += "_"
        call.made_up = True

    def _begin(self, call: Call, event: Any | None, *, failing: bool = False) -> Iterator[Any]:
        """The start of *call*, by its own event or a made one; and what waited for it."""
        if not call.id:
            if self._state.boundaries.tool_ids and not failing and not call.attributes.get("implied"):
                self._state.ledger.repair("made_up_id", "a tool call without an id")
            self._make_up(call)
        yield from self._blocks.yield_to_tool()
        call.started = True
        self._state.tool_ids.add(call.id)
        draft: Any = event
        if draft is None:
            mark = REPAIRED_MARK if self._state.boundaries.tool_start else IMPLIED_MARK
            draft = _START(None, None, call.origin, call.item_id, call.index, call.raw_type, call.attributes)
            draft.attributes = FrozenDict({**draft.attributes, **mark})
        draft.tool_call_id, draft.name = call.id, call.name
        if call.made_up:
            draft.attributes = FrozenDict({**draft.attributes, "made_up_id": True})
        yield draft
        if call.kept:
            text = "".join(call.kept)
            call.kept = []
            yield _ARGS(text, call.id, call.name, call.origin, call.item_id, call.index, call.raw_type)

    def _deliver(self, call: Call, event: Any, text: str) -> Iterable[Any]:
        if not text:
            return ()
        text, call.held = hold_surrogate(call.held, text)
        if not text:
            return ()
        call.fragments.append(text)
        call.size += len(text)
        if not call.started:
            call.kept.append(text)
            return ()
        event.text = text
        event.tool_call_id, event.name = call.id, call.name
        event.item_id, event.index = call.item_id, call.index
        return (event,)

    def _finish(
        self, call: Call, attributes: FrozenDict[str, Any], raw_type: str | None, *, failing: bool = False
    ) -> Iterator[Any]:
        if not call.started:
            yield from self._begin(call, None, failing=failing)
        if call.held:
            call.held = ""
            yield _ARGS(REPLACEMENT, call.id, call.name, call.origin, call.item_id, call.index, call.raw_type)
        self._open.remove(call)
        if self._by_index.get(call.index) is call:
            del self._by_index[call.index]
        if call.sent_id is not None:
            self._ended.add(call.sent_id)
        yield _END(call.id, call.name, None, call.origin, call.item_id, call.index, raw_type, attributes)


__all__ = ("Call", "Calls")
