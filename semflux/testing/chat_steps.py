"""The semantic steps: what a chat stream says, however its bytes and deltas are cut.

They pass over its frame: lifecycle, steps, starts and ends of blocks and calls, usage, citations,
signatures, and what nobody modelled; never over content of another kind, nor over a terminal event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from semflux.events import ChatEvent, ChatEventPhase, ChatEventType
from semflux.filters import type_of
from semflux.frozen import thaw
from semflux.testing.signals import Signal, SignalKind, called, next_signal, shown
from semflux.testing.steps import Matcher, Mismatch, item_of

T = ChatEventType

_ANNOTATIONS = frozenset({T.THINKING_SIGNATURE, T.THINKING_REDACTED, T.CITATION})
_NEVER_FRAME = frozenset({T.TOOL_CALL_END, T.SERVER_TOOL_RESULT, T.MEDIA_DONE})
FRAME: frozenset[ChatEventType] = (
    frozenset(
        [
            type_
            for type_ in T
            if not (type_.is_content or type_ in {T.RESPONSE_END, T.ABORT, T.ERROR})
            or type_ in _ANNOTATIONS
            or (type_.phase in {ChatEventPhase.START, ChatEventPhase.END} and type_.is_content)
        ]
    )
    - _NEVER_FRAME
)
"""The types that semantic steps pass over."""


def event_of(signal: Signal) -> ChatEvent | None:
    """The event of *signal*; None if it is an end, or another item."""
    return signal.value if isinstance(signal.value, ChatEvent) and not signal.is_terminal else None


def is_frame(signal: Signal) -> bool:
    """True for an event that semantic steps pass over."""
    event = event_of(signal)
    return event is not None and event.type in FRAME


def before_completion(signal: Signal) -> bool:
    """True for what may stand between the last content and the end of a stream that went well."""
    event = event_of(signal)
    return event is not None and (event.type in FRAME or event.type is T.RESPONSE_END)


def before_error(signal: Signal) -> bool:
    """True for what may stand between the last content and the error of a stream."""
    event = event_of(signal)
    return event is not None and (event.type in FRAME or event.type is T.ERROR)


def next_type(wanted: ChatEventType | type[ChatEvent]) -> Matcher:
    """One event of this type, nothing passed over."""
    type_ = type_of(wanted)
    expected = f"on_next(an event of type {type_.value})"
    signal = yield expected
    value = item_of(signal, expected)
    if not isinstance(value, ChatEvent) or value.type is not type_:
        raise Mismatch(expected, signal)
    return ()


def _piece_of(signal: Signal, type_: ChatEventType) -> str | None:
    value = signal.value
    if signal.kind is not SignalKind.NEXT:
        return None
    if isinstance(value, str):
        return value if type_ is T.TEXT_DELTA else None
    return value.text or "" if isinstance(value, ChatEvent) and value.type is type_ else None


def _left(value: Any, rest: str) -> Signal:
    """What is left of a delta, as a delta."""
    return next_signal(rest if isinstance(value, str) else attrs.evolve(value, text=rest))


def joined(text: str, type_: ChatEventType) -> Matcher:
    """Consecutive deltas of this type that come to *text*. What a delta has beyond it is the next step's."""
    word = "text" if type_ is T.TEXT_DELTA else "thinking"
    rest = text
    while rest:
        had = text[: len(text) - len(rest)]
        expected = f"{word} {shown(rest)}" + (f" after {shown(had)}" if had else "")
        signal = yield expected
        piece = _piece_of(signal, type_)
        if piece is None:
            if not is_frame(signal):
                raise Mismatch(expected, signal)
        elif rest.startswith(piece):
            rest = rest[len(piece) :]
        elif piece.startswith(rest):
            return (_left(signal.value, piece[len(rest) :]),)
        else:
            raise Mismatch(expected, signal)
    return ()


def tool(name: str, arguments: Any) -> Matcher:
    """The next complete call: of *name*, with these *arguments* unless they are None."""
    expected = f"a call {name}({'' if arguments is None else shown(arguments)})"
    while True:
        signal = yield expected
        event = event_of(signal)
        if event is not None and event.type is T.TOOL_CALL_END:
            break
        if not is_frame(signal) and (event is None or event.type is not T.TOOL_CALL_ARGS_DELTA):
            raise Mismatch(expected, signal)
    call = event.tool_call
    given = None if call is None else thaw(call.arguments)
    if call is None or call.name != name or (arguments is not None and given != arguments):
        raise Mismatch(expected, f"a call {event.name if call is None else call.name}({shown(given)})")
    return ()


def usage(wanted: dict[str, int]) -> Matcher:
    """An event whose usage has these numbers; earlier usage is passed over."""
    expected = f"usage {_numbers(wanted)}"
    actual: str | None = None
    while True:
        signal = yield expected
        event = event_of(signal)
        if event is not None and event.usage is not None:
            had = {name: getattr(event.usage, name) for name in wanted}
            if had == wanted:
                # A terminal event is for the next step too.
                return (signal,) if event.is_terminal else ()
            actual = f"usage {_numbers(had)}"
        if not is_frame(signal):
            raise Mismatch(expected, actual or signal)


def _numbers(fields: dict[str, Any]) -> str:
    return ", ".join([f"{name}={value}" for name, value in fields.items()])


def response(predicate: Callable[[Any], object] | None) -> Matcher:
    """RESPONSE_END, with a response for which *predicate* is true; all before it is passed over."""
    expected = "RESPONSE_END" + (
        "" if predicate is None else f" with a response for which {called(predicate)} is true"
    )
    while True:
        signal = yield expected
        event = event_of(signal)
        if event is None or event.type is T.ABORT or event.type is T.ERROR:
            raise Mismatch(expected, signal)
        if event.type is T.RESPONSE_END:
            break
    if predicate is not None and not predicate(event.response):
        raise Mismatch(expected, f"on_next({event.type.value}) with {shown(event.response)}")
    return ()


__all__ = (
    "FRAME",
    "before_completion",
    "before_error",
    "event_of",
    "is_frame",
    "joined",
    "next_type",
    "response",
    "tool",
    "usage",
)
