"""The notation of contract section 4, read and written: `TEXT~a TOOL+[c1] $` as drafts, and back.

`GROUP+`, `GROUP~text`, `GROUP-` are START, DELTA and END; `[id:name]` is a call, `{item,index}` the vendor's
identity, `STEP+0` step 0, `SEAL` the finish signal, `$` the end of the stream, `!!` a failure. Written events also
show what is in their attributes: `*` implied, `!` repaired, `?` partial, `^` a made-up id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from semflux.errors import ConnectionLostError
from semflux.events import EVENT_CLASSES, ChatEvent, ChatEventType, Origin
from semflux.events.base import NO_ORIGIN
from semflux.messages import ToolCall
from semflux.normalize import SEAL, Normalizer
from semflux.response import CitedSource
from semflux.state import IMPLIED, Boundaries, RunState
from semflux.testing.marble_labels import NOTATION
from semflux.usage import Usage

T = ChatEventType

FULL = Boundaries(
    text_start=True,
    text_end=True,
    thinking_start=True,
    thinking_end=True,
    tool_start=True,
    tool_end=True,
    tool_ids=True,
    server_pairs=True,
)
"""A format with every boundary."""

FAILURE = ConnectionLostError("the connection broke")

_TYPES = {name: event_type for event_type, name in NOTATION.items()}
_TOKEN = re.compile(
    r"(?P<type>[A-Z]+[+~-]?)"
    r"(?:\[(?P<id>[^\]:]*)(?::(?P<name>[^\]]*))?\])?"
    r"(?P<text>[^{]*)"
    r"(?:\{(?P<item>[^,}]*)(?:,(?P<index>-?\d+))?\})?"
)
_MARKS = {"made_up_id": "^", "implied": "*", "repaired": "!", "partial": "?"}
_VALUES: dict[ChatEventType, tuple[Any, ...]] = {
    T.USAGE: (Usage(input_tokens=1),),
    T.RAW: ({"x": 1},),
    T.CITATION: (CitedSource(url="https://a.example/"),),
    T.ERROR: (FAILURE,),
}


def draft(token: str, origin: Origin = NO_ORIGIN) -> Any:
    """The draft that *token* stands for."""
    match = _TOKEN.fullmatch(token)
    assert match is not None, token
    event_type = _TYPES[match["type"]]
    text = match["text"]
    values: tuple[Any, ...] = _VALUES.get(event_type, ())
    if event_type in {T.STEP_START, T.STEP_END}:
        origin = Origin(response_id=origin.response_id, step=int(text or 0))
    elif event_type is T.TOOL_CALL_ARGS_DELTA:
        values = (text, match["id"], match["name"])
    elif event_type in {T.TOOL_CALL_START, T.TOOL_CALL_END}:
        values = (match["id"], match["name"])
    elif event_type is T.TOOL_RESULT:
        values = (ToolCall(id=match["id"]), "")
    elif event_type in {T.TEXT_DELTA, T.THINKING_DELTA, T.REFUSAL_DELTA, T.SERVER_TOOL_ARGS_DELTA}:
        values = (text,)
    elif event_type in {T.THINKING_SIGNATURE, T.THINKING_REDACTED}:
        values = (text or "s",)
    index = None if match["index"] is None else int(match["index"])
    cls: Any = EVENT_CLASSES[event_type].draft_class
    return cls(*values, origin=origin, item_id=match["item"] or None, index=index)


def show(events: Iterable[ChatEvent]) -> str:
    """*events* in the notation."""
    return " ".join([_show(event) for event in events])


def _show(event: ChatEvent) -> str:
    name = NOTATION[event.type]
    if event.tool_call_id is not None:
        shown_name = event.name if event.type is T.TOOL_CALL_START else None
        name += f"[{event.tool_call_id}:{shown_name}]" if shown_name else f"[{event.tool_call_id}]"
    if event.type in {T.STEP_START, T.STEP_END}:
        name += str(event.step)
    elif event.is_delta:
        name += event.text or ""
    if event.item_id is not None or event.index is not None:
        index = "" if event.index is None else f",{event.index}"
        name += f"{{{event.item_id or ''}{index}}}"
    return name + "".join([mark for key, mark in _MARKS.items() if event.attributes.get(key)])


class Machine:
    """A normalizer that is driven in the notation."""

    def __init__(self, boundaries: Boundaries = IMPLIED, *, strict: bool = False) -> None:
        self.state = RunState(response_id="r", boundaries=boundaries, strict=strict)
        self.normalizer = Normalizer(self.state)
        self.out: list[ChatEvent] = []

    def feed(self, tokens: str) -> Machine:
        """Push what *tokens* stand for."""
        for token in tokens.split():
            if token == "$":
                self.out += self.normalizer.finish()
            elif token == "!!":
                self.out += self.normalizer.finish(FAILURE)
            elif token == "SEAL":
                self.out += self.normalizer.push(SEAL)
            else:
                self.out += self.normalizer.push(draft(token))
        return self

    def push(self, *items: Any) -> Machine:
        """Push drafts that the notation has no words for."""
        for item in items:
            self.out += self.normalizer.push(item)
        return self

    @property
    def shown(self) -> str:
        """All that came out."""
        return show(self.out)

    @property
    def repairs(self) -> dict[str, int]:
        """The repairs counted so far, by kind."""
        return dict(self.state.ledger.repairs)
