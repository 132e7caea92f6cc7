"""`dedupe_snapshots`: real deltas, where a provider resends all that it has said so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from reactivex import Observable, abc

from semflux.events import AnyChatEvent, ChatEventGroup, ChatEventPhase, ToolCallArgsDelta
from semflux.operators.lift import Link, Owned
from semflux.operators.run import Run
from semflux.operators.screening import refold_of
from semflux.refold import Refold, changed

G = ChatEventGroup

_Key: TypeAlias = tuple[ChatEventGroup, str | None, int | None, str | None]

_TEXTS = frozenset({G.TEXT, G.THINKING, G.TOOL_CALL, G.SERVER_TOOL, G.SAFETY})


class _DedupeLink(Link[AnyChatEvent, AnyChatEvent]):
    __slots__ = ("_key", "_refold", "_seen")

    def __init__(self, below: abc.ObserverBase[AnyChatEvent], run: Run, key: object) -> None:
        super().__init__(below, run)
        self._key = key
        self._refold: Refold | None = None
        self._seen: dict[_Key, str] = {}
        """The last snapshot of what is open."""

    def on_next(self, value: AnyChatEvent) -> None:
        if self.stopped:
            return
        refold = self._refold
        if refold is None:
            refold = self._refold = refold_of(self.run, self._key)
        group = value.group
        event: Any = value
        if group in _TEXTS:
            key = (group, value.item_id, value.index, value.tool_call_id)
            if value.is_delta:
                if isinstance(value, ToolCallArgsDelta):
                    refold.pieces.add(value.tool_call_id)
                event = self._new_of(value, key)
                if event is None:
                    return
            elif value.phase is ChatEventPhase.END:
                self._seen.pop(key, None)
        elif group is G.STEP:
            self._seen.clear()
        self.below.on_next(refold.passed(event))

    def _new_of(self, value: AnyChatEvent, key: _Key) -> AnyChatEvent | None:
        """What a piece has of new; None for nothing."""
        text, seen = value.text or "", self._seen.get(key, "")
        if not text.startswith(seen):
            # No snapshot: it goes on from the last one.
            self._seen[key] = seen + text
            return value
        self._seen[key] = text
        new = text[len(seen) :]
        event: AnyChatEvent | None = changed(value, text=new) if new else None
        return event

    def on_error(self, error: Exception) -> None:
        if self._refold is not None and not self.stopped:
            self._refold.amend(self.run.state.fold)
            error = self._refold.failure(error)
        super().on_error(error)

    def dispose(self) -> None:
        self._seen.clear()
        self._refold = None
        super().dispose()


def dedupe_snapshots() -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """For a provider whose deltas are snapshots, each with all of its block so far: the stream with what each of them
    has of new, and responses that tell the text once. A repeat of the same snapshot is left out.

    That deltas are snapshots cannot be told from them ("a", "aa"): so this is never done unasked, and is wrong for
    real deltas.

    ```
    TEXT+ TEXT~a TEXT~ab TEXT~abc TEXT-|        dedupe_snapshots()
    TEXT+ TEXT~a TEXT~b  TEXT~c   TEXT-|
    ```
    """

    def deduped(source: abc.ObservableBase[AnyChatEvent]) -> Observable[AnyChatEvent]:
        key = object()
        return Owned(source, lambda below, run: _DedupeLink(below, run, key))

    return deduped


__all__ = ("dedupe_snapshots",)
