"""The rules of order: which stream of events is legal. They are written here and nowhere else.

Rule 1  RESPONSE_START is first, once; exactly one of RESPONSE_END, ABORT, ERROR comes, last.
Rule 2  All events have one response_id, and their step never falls. STEP_STARTs are numbered 0, 1,
        2 ..., do not nest, and each has its STEP_END before the next one and before the terminal event.
Rule 3  Content and USAGE come inside a step: the provider has accepted the call.
Rule 4  TEXT and THINKING blocks never overlap; blocks of one group may, by (item_id, index). Each
        delta lies inside a block of its group, and each block ends inside the step it began in.
Rule 5  A tool call is one START, then ARGS_DELTAs, then one END, by tool_call_id, inside one step;
        no id comes twice in a stream. END has the whole call. A TOOL_RESULT, at most one, follows
        its END inside the same step.
Rule 6  A server tool is one START, then ARGS_DELTAs, then one RESULT, by item_id.
Rule 7  The deltas of a step, joined, are its STEP_END's response: text, thinking, refusal and each
        call's arguments; and the steps are the terminal event's response.
Rule 8  *seq* is 0, 1, 2 ...: no gap and no repeat.

Rules 1 to 7 are sections 2.1 to 2.7 of the contract, rule 8 is in its section 1. What a subscriber
sees after it cancelled (2.8), and what a filter may do (2.9), do not show in the events themselves.

Four small machines say what may follow what: one for the stream, one for each block, call and server
tool. `STREAM`, `BLOCK`, `CALL` and `SERVER_TOOL` are their tables: state, type of event, and either
the next state or a `Breach` of a rule. A checker goes on after a breach, from the state that says
least about what follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import attrs

from semflux.events import ChatEvent, ChatEventGroup, ChatEventPhase, ChatEventType

T, G, P = ChatEventType, ChatEventGroup, ChatEventPhase


class State(StrEnum):
    """Where a stream, block, call or server tool is."""

    NEW = "NEW"
    """Nothing of it has been seen."""
    RUNNING = "RUNNING"
    """Stream: begun, between steps."""
    IN_STEP = "IN_STEP"
    """Stream: inside a step."""
    OPEN = "OPEN"
    """Block, call, server tool: begun."""
    ENDED = "ENDED"
    """Stream, call: over."""
    ANSWERED = "ANSWERED"
    """Call: its result is there."""


@attrs.frozen
class Breach:
    """A cell of a table: what comes here is illegal."""

    rule: int
    """The number of the rule it breaks."""
    why: str
    """What is wrong, as the rest of a sentence about the event."""
    then: State
    """Where to go on from."""


Table: TypeAlias = Mapping[State, Mapping[ChatEventType, State | Breach]]
"""For each state, what each type of event leads to; a type that is not there does not concern it."""

_S = State
_TERMINAL = (T.RESPONSE_END, T.ABORT, T.ERROR)
_ANYWHERE = (T.STATUS, T.HEARTBEAT, T.RAW, T.CUSTOM)
_IN_STEP = (*[type_ for type_ in T if type_.is_content], T.USAGE)


def _row(*parts: tuple[Iterable[ChatEventType], State | Breach]) -> dict[ChatEventType, State | Breach]:
    return {type_: cell for types, cell in parts for type_ in types}


STREAM: Table = {
    _S.NEW: _row(
        (T, Breach(1, "comes before RESPONSE_START", _S.RUNNING)),
        ([T.RESPONSE_START], _S.RUNNING),
        ([T.STEP_START], Breach(1, "comes before RESPONSE_START", _S.IN_STEP)),
        (_TERMINAL, Breach(1, "comes before RESPONSE_START", _S.ENDED)),
    ),
    _S.RUNNING: _row(
        ([T.RESPONSE_START], Breach(1, "comes a second time", _S.RUNNING)),
        ([T.STEP_START], _S.IN_STEP),
        (_IN_STEP, Breach(3, "comes outside a step", _S.RUNNING)),
        ([T.STEP_END], Breach(2, "ends a step that is not open", _S.RUNNING)),
        (_ANYWHERE, _S.RUNNING),
        (_TERMINAL, _S.ENDED),
    ),
    _S.IN_STEP: _row(
        ([T.RESPONSE_START], Breach(1, "comes a second time", _S.IN_STEP)),
        ([T.STEP_START], Breach(2, "begins a step inside another", _S.IN_STEP)),
        (_IN_STEP, _S.IN_STEP),
        ([T.STEP_END], _S.RUNNING),
        (_ANYWHERE, _S.IN_STEP),
        (_TERMINAL, Breach(2, "comes inside a step", _S.ENDED)),
    ),
    _S.ENDED: _row((T, Breach(1, "comes after the terminal event", _S.ENDED))),
}
"""The stream: rules 1 to 3."""

_STARTS = (T.TEXT_START, T.THINKING_START)
_DELTAS = (T.TEXT_DELTA, T.THINKING_DELTA)
_ENDS = (T.TEXT_END, T.THINKING_END)

BLOCK: Table = {
    _S.NEW: _row(
        (_STARTS, _S.OPEN),
        (_DELTAS, Breach(4, "lies outside a block of its group", _S.NEW)),
        (_ENDS, Breach(4, "ends a block that is not open", _S.NEW)),
    ),
    _S.OPEN: _row(
        (_STARTS, Breach(4, "begins a block that is open", _S.OPEN)),
        (_DELTAS, _S.OPEN),
        (_ENDS, _S.NEW),
    ),
}
"""A block of TEXT or THINKING, by group, item_id and index: rule 4."""

CALL: Table = {
    _S.NEW: {
        T.TOOL_CALL_START: _S.OPEN,
        T.TOOL_CALL_ARGS_DELTA: Breach(5, "belongs to a call without START", _S.OPEN),
        T.TOOL_CALL_END: Breach(5, "ends a call without START", _S.ENDED),
        T.TOOL_RESULT: Breach(5, "answers a call that never was", _S.NEW),
    },
    _S.OPEN: {
        T.TOOL_CALL_START: Breach(5, "begins a call that is open", _S.OPEN),
        T.TOOL_CALL_ARGS_DELTA: _S.OPEN,
        T.TOOL_CALL_END: _S.ENDED,
        T.TOOL_RESULT: Breach(5, "answers a call before its END", _S.OPEN),
    },
    _S.ENDED: {
        T.TOOL_CALL_START: Breach(5, "has the id of an earlier call", _S.ENDED),
        T.TOOL_CALL_ARGS_DELTA: Breach(5, "comes after its call's END", _S.ENDED),
        T.TOOL_CALL_END: Breach(5, "ends a call a second time", _S.ENDED),
        T.TOOL_RESULT: _S.ANSWERED,
    },
    _S.ANSWERED: {
        T.TOOL_CALL_START: Breach(5, "has the id of an earlier call", _S.ANSWERED),
        T.TOOL_CALL_ARGS_DELTA: Breach(5, "comes after its call's END", _S.ANSWERED),
        T.TOOL_CALL_END: Breach(5, "ends a call a second time", _S.ANSWERED),
        T.TOOL_RESULT: Breach(5, "answers a call a second time", _S.ANSWERED),
    },
}
"""A tool call, by tool_call_id: rule 5."""

SERVER_TOOL: Table = {
    _S.NEW: {
        T.SERVER_TOOL_START: _S.OPEN,
        T.SERVER_TOOL_ARGS_DELTA: Breach(6, "has no START with its item_id", _S.NEW),
        T.SERVER_TOOL_RESULT: Breach(6, "has no START with its item_id", _S.NEW),
    },
    _S.OPEN: {
        T.SERVER_TOOL_START: Breach(6, "has the item_id of one that is open", _S.OPEN),
        T.SERVER_TOOL_ARGS_DELTA: _S.OPEN,
        T.SERVER_TOOL_RESULT: _S.NEW,
    },
}
"""A server tool, by item_id: rule 6."""

_SUMS = {T.TEXT_DELTA: "text", T.THINKING_DELTA: "thinking", T.REFUSAL_DELTA: "refusal"}

_Key: TypeAlias = tuple[ChatEventGroup, str | None, int | None]


@attrs.frozen
class Violation:
    """A rule that a stream broke."""

    rule: int
    """Its number, as in this module's docstring."""
    message: str
    """What is wrong, in a sentence."""
    seq: int
    """The *seq* of the event that broke it; of the last event where the end of the stream did; -1 without any."""
    type: ChatEventType | None = None
    """The type of that event; None where the end of the stream broke it."""

    def __str__(self) -> str:
        return f"rule {self.rule}: {self.message} (seq {self.seq})"


class Checker:
    """Looks at the events of one stream, one by one, and collects what breaks the rules; raises nothing.

    *seq* says how rule 8 is held: "exact"; "rising" for a subscriber whose filter makes holes, such as
    the default one, which hides HEARTBEAT and RAW; "ignored" for events that are not stamped yet. A
    filter that hides more breaks the other rules.

    ```
    checker = Checker()
    for event in events:
        checker.check(event)
    checker.finish()
    assert not checker.violations
    ```
    """

    def __init__(self, *, seq: Literal["exact", "rising", "ignored"] = "exact") -> None:
        self._seq_rule = seq
        self._violations: list[Violation] = []
        self._state = State.NEW
        self._last_seq = -1
        self._response_id: str | None = None
        self._step = 0
        self._steps = 0
        self._responses: list[Any] = []
        self._call_states: dict[str, State] = {}
        self._servers: set[str] = set()
        # Of the current step: open blocks, joined deltas by type, argument fragments by call.
        self._blocks: set[_Key] = set()
        self._texts: dict[ChatEventType, list[str]] = {}
        self._fragments: dict[str, list[str]] = {}

    @property
    def violations(self) -> tuple[Violation, ...]:
        """What was found so far, in the order of the events."""
        return tuple(self._violations)

    def check(self, event: ChatEvent) -> None:
        """Look at the next event of the stream."""
        self._check_seq(event)
        self._check_identity(event)
        before = self._state
        self._state = self._next(STREAM, before, event)
        if event.type is T.STEP_START:
            self._begin_step(event)
        elif event.group in {G.TEXT, G.THINKING}:
            self._check_block(event)
        elif event.type is T.REFUSAL_DELTA:
            self._note(event)
        elif event.group is G.TOOL_CALL:
            self._check_call(event)
        elif event.group is G.SERVER_TOOL:
            self._check_server(event)
        elif event.type is T.STEP_END:
            self._end_step(event)
        elif event.is_terminal and before is not State.ENDED:
            self._end(event)

    def finish(self) -> tuple[Violation, ...]:
        """The stream is over: all that was found."""
        if self._state is not State.ENDED:
            self._violations.append(Violation(1, "the stream has no terminal event", self._last_seq))
        return self.violations

    def _add(self, rule: int, event: ChatEvent, why: str) -> None:
        self._violations.append(Violation(rule, f"{event.type} {why}", event.seq, event.type))

    def _next(self, table: Table, state: State, event: ChatEvent) -> State:
        cell = table[state].get(event.type, state)
        if isinstance(cell, Breach):
            self._add(cell.rule, event, cell.why)
            return cell.then
        return cell

    def _check_seq(self, event: ChatEvent) -> None:
        if self._seq_rule == "ignored":
            return
        if event.seq <= self._last_seq:
            self._add(8, event, f"has seq {event.seq} after {self._last_seq}")
        elif self._seq_rule == "exact" and event.seq != self._last_seq + 1:
            self._add(8, event, f"has seq {event.seq}, not {self._last_seq + 1}")
        self._last_seq = max(event.seq, self._last_seq)

    def _check_identity(self, event: ChatEvent) -> None:
        if self._response_id is None:
            self._response_id = event.response_id
        if event.response_id != self._response_id:
            self._add(2, event, "has another response_id than the stream")
        if event.step < self._step:
            self._add(2, event, f"falls back to step {event.step} from {self._step}")
        elif self._state is State.IN_STEP and event.type in _IN_STEP and event.step != self._steps - 1:
            self._add(2, event, f"says step {event.step} in step {self._steps - 1}")
        self._step = max(event.step, self._step)

    # Steps, and what they owe at their ends.

    def _begin_step(self, event: ChatEvent) -> None:
        if event.step != self._steps:
            self._add(2, event, f"has number {event.step}, not {self._steps}")
        self._steps += 1
        self._forget()

    def _end_step(self, event: ChatEvent) -> None:
        if event.step != self._steps - 1:
            self._add(2, event, f"has number {event.step} in step {self._steps - 1}")
        for group in sorted({group for group, _, _ in self._blocks}):
            self._add(4, event, f"leaves a block of {group} open")
        for call_id in self._fragments:
            if self._call_states[call_id] is State.OPEN:
                self._add(5, event, f"leaves call {call_id!r} open")
        self._check_sums(event)
        self._forget()

    def _forget(self) -> None:
        self._blocks.clear()
        self._texts.clear()
        self._fragments.clear()

    def _check_sums(self, event: ChatEvent) -> None:
        response: Any = event.response
        self._responses.append(response)
        if response is None:
            self._add(7, event, "has no response")
            return
        for type_, name in _SUMS.items():
            if "".join(self._texts.get(type_, ())) != getattr(response, name):
                self._add(7, event, f"has a response whose {name} is not the deltas joined")
        heard = [(call_id, "".join(fragments)) for call_id, fragments in self._fragments.items()]
        if heard != [(call.id, call.arguments_json) for call in response.tool_calls]:
            self._add(7, event, "has a response whose tool calls are not those of the step")

    def _end(self, event: ChatEvent) -> None:
        for item_id in sorted(self._servers):
            self._add(6, event, f"leaves server tool {item_id!r} without a result")
        response: Any = event.response
        if response is None:
            self._add(7, event, "has no response")
        elif list(response.steps) != self._responses:
            self._add(7, event, "has a response whose steps are not those of the stream")

    # What is inside a step.

    def _note(self, event: ChatEvent) -> None:
        self._texts.setdefault(event.type, []).append(event.text or "")

    def _check_block(self, event: ChatEvent) -> None:
        key: _Key = (event.group, event.item_id, event.index)
        if event.is_delta:
            self._note(event)
            if event.item_id is None and event.index is None:
                # A delta without identity belongs to the only open block of its group.
                mine = [other for other in self._blocks if other[0] is event.group]
                key = mine[0] if len(mine) == 1 else key
        elif event.phase is P.START and any(group is not event.group for group, _, _ in self._blocks):
            self._add(4, event, "begins inside a block of the other group")
        state = self._next(BLOCK, State.OPEN if key in self._blocks else State.NEW, event)
        (self._blocks.add if state is State.OPEN else self._blocks.discard)(key)

    def _check_call(self, event: ChatEvent) -> None:
        call_id = event.tool_call_id
        if not call_id:
            self._add(5, event, "has no tool_call_id")
            return
        before = self._call_states.get(call_id, State.NEW)
        after = self._call_states[call_id] = self._next(CALL, before, event)
        if before is State.NEW and after is not State.NEW:
            self._fragments[call_id] = []
        fragments = self._fragments.get(call_id)
        if fragments is None:
            if before is not after or before is State.OPEN:
                self._add(5, event, "belongs to a call of an earlier step")
        elif event.type is T.TOOL_CALL_ARGS_DELTA:
            fragments.append(event.text or "")
        elif event.type is T.TOOL_CALL_END:
            call = event.tool_call
            if call is None or call.id != call_id:
                self._add(5, event, "has not the call that it ends")
            elif call.arguments_json != "".join(fragments):
                self._add(7, event, "has a call whose arguments_json is not the deltas joined")

    def _check_server(self, event: ChatEvent) -> None:
        item_id = event.item_id
        if not item_id:
            self._add(6, event, "has no item_id")
            return
        state = self._next(SERVER_TOOL, State.OPEN if item_id in self._servers else State.NEW, event)
        (self._servers.add if state is State.OPEN else self._servers.discard)(item_id)


def violations_of(
    events: Iterable[ChatEvent], *, seq: Literal["exact", "rising", "ignored"] = "exact"
) -> tuple[Violation, ...]:
    """What breaks the rules in a whole stream, as `Checker` finds it; empty if it is legal."""
    checker = Checker(seq=seq)
    for event in events:
        checker.check(event)
    return checker.finish()


__all__ = (
    "BLOCK",
    "CALL",
    "SERVER_TOOL",
    "STREAM",
    "Breach",
    "Checker",
    "State",
    "Table",
    "Violation",
    "violations_of",
)
