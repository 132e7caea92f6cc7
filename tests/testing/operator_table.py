"""Every operator of semflux, and in what it may differ from the contract of all operators.

A new operator gets one entry in `OPERATORS`, by its name in `semflux.operators.__all__`: a list of ways
to make it, each with the flags of `check_operator` that are true of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import reactivex

from semflux import ChatEventGroup, ChatEventType, TextDelta
from semflux import operators as ops
from semflux.clock import VirtualClock
from semflux.errors import ConnectionLostError
from semflux.retry import Retry
from tests.notation import draft
from tests.testing.plain_table import PLAIN

T = ChatEventType


@attrs.frozen
class Entry:
    make: Callable[[Any], Any]
    flags: dict[str, Any] = attrs.field(factory=dict)


def entry(make: Callable[[Any], Any], **flags: Any) -> Entry:
    return Entry(make, flags)


def drafts() -> list[Any]:
    """What comes from a dialect."""
    return [draft(token) for token in ("STEP+0", "TEXT~a", "TEXT~b", "RESP-")]


def failure() -> Exception:
    """The stages pass on errors of ours; others they wrap."""
    return ConnectionLostError("broken", kind="reset")


CHAT: dict[str, Any] = {
    "items": lambda: [TextDelta("a"), TextDelta("b"), TextDelta("c")],
    "takes_none": False,
}
STAGE: dict[str, Any] = {
    "items": drafts,
    "failure": failure,
    "takes_none": False,
    # They give more than they get, at the end too: ends, STEP_END, the terminal event.
    "holds_items": True,
    # They end with the terminal event.
    "ends_early": True,
}


def same(value: Any) -> Any:
    return value


NOT_OPERATORS = {"EventSubject", "Hooks", "Run", "Signal", "SignalListener", "SignalType"}
"""Names of `semflux.operators` that are something else."""

OPERATORS: dict[str, list[Entry]] = {
    "aggregate": [entry(ops.aggregate(), **STAGE)],
    "collect_list": [entry(ops.collect_list(), holds_items=True)],
    "do_finally": [entry(ops.do_finally(same))],
    "do_on_cancel": [entry(ops.do_on_cancel(lambda: None))],
    "do_on_complete": [entry(ops.do_on_complete(lambda: None))],
    "do_on_error": [entry(ops.do_on_error(same))],
    "do_on_next": [entry(ops.do_on_next(same))],
    "filter_": [entry(ops.filter_(lambda item: True)), entry(ops.filter_(lambda item: item != 1))],
    "filter_events": [entry(ops.filter_events(lambda event: True), **CHAT)],
    "in_group": [entry(ops.in_group(ChatEventGroup.TEXT), **CHAT)],
    "map_": [entry(ops.map_(same)), entry(lambda source: source.map(str))],
    "normalize": [entry(ops.normalize(), **STAGE)],
    "fallback_to": [entry(ops.fallback_to(reactivex.of(9)), recovers=True)],
    "on_error_complete": [entry(ops.on_error_complete(), recovers=True)],
    "on_error_map": [entry(ops.on_error_map(lambda error: RuntimeError("other")), maps_errors=True)],
    "on_error_resume": [entry(ops.on_error_resume(lambda error: reactivex.of(9)), recovers=True)],
    "on_error_return": [entry(ops.on_error_return(9), recovers=True)],
    "retry": [entry(ops.retry(2), recovers=True)],
    "retry_when": [entry(ops.retry_when(Retry.max(2)), recovers=True)],
    "timeout": [entry(ops.timeout(item=5.0, clock=VirtualClock()))],
    "only": [entry(ops.only(T.TEXT_DELTA), **CHAT), entry(lambda source: source.only(T.RAW), **CHAT)],
    "pipeline": [entry(ops.pipeline(), **STAGE)],
    "single": [entry(ops.single(), ends_early=True, holds_items=True)],
    "take": [
        entry(ops.take(0), ends_early=True),
        entry(ops.take(1), ends_early=True),
        entry(lambda source: source.take(2), ends_early=True),
        entry(ops.take(99)),
    ],
    "take_until": [entry(ops.take_until(lambda item: item == 2), ends_early=True)],
    "take_while": [entry(ops.take_while(lambda item: item == 1), ends_early=True)],
    "terminate": [entry(ops.terminate(), **STAGE)],
    "text": [entry(ops.text(), **CHAT)],
}

OPERATORS |= {name: [Entry(*each) for each in ways] for name, ways in PLAIN.items()}

CASES = [
    (f"{name}-{number}" if number else name, each)
    for name, entries in OPERATORS.items()
    for number, each in enumerate(entries)
]
"""All of them, each with a name."""

__all__ = ("CASES", "CHAT", "NOT_OPERATORS", "OPERATORS", "STAGE", "Entry", "drafts", "entry", "failure")
