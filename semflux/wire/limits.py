"""`Limits`: how much of a stream is taken before it counts as an attack or a mistake."""

from __future__ import annotations

import sys

import attrs

_MIB = 1024 * 1024

_positive = attrs.validators.and_(attrs.validators.instance_of(int), attrs.validators.gt(0))


def _bound(default: int) -> int:
    # attrs' own field() has no return type that fits a class body; the value is an int once built.
    return attrs.field(default=default, validator=_positive)


@attrs.frozen(kw_only=True)
class Limits:
    """The bounds on one stream, each of them at least 1; none can be switched off.

    Raises `ValueError` or `TypeError` for a bound that is no positive whole number.
    """

    max_line_bytes: int = _bound(16 * _MIB)
    """Bytes of one line without its end: an SSE line (`FrameTooLargeError`) or, with a CR before its
    LF counted, an NDJSON line."""
    max_event_bytes: int = _bound(16 * _MIB)
    """Bytes of one frame's data, the LFs between its lines counted (`FrameTooLargeError`)."""
    max_data_lines: int = _bound(131_072)
    """`data` lines of one SSE event (`FrameTooLargeError`)."""
    max_response_bytes: int = _bound(256 * _MIB)
    """Bytes of one response after decompression (`ResponseTooLargeError`)."""
    max_events: int = _bound(10_000_000)
    """Frames of one response (`ResponseTooLargeError`)."""
    max_json_depth: int = _bound(128)
    """Arrays and objects inside each other in one JSON value (`JsonTooDeepError`)."""
    max_int_digits: int = _bound(400)
    """Decimal digits of a whole number in JSON, without its sign (`BadFrameError`)."""
    max_text_chars: int = _bound(32 * _MIB)
    """Characters of text that one message may gather."""
    max_thinking_chars: int = _bound(32 * _MIB)
    """Characters of thinking that one message may gather."""
    max_tool_args_chars: int = _bound(1 * _MIB)
    """Characters of one tool call's arguments."""
    max_tool_calls: int = _bound(128)
    """Tool calls of one message."""
    max_block_index: int = _bound(4096)
    """The highest index that a block or tool call may name."""


DEFAULT_LIMITS = Limits()
"""What holds where nothing else is said."""

BOUNDED_BEFORE = Limits(
    max_text_chars=sys.maxsize,
    max_thinking_chars=sys.maxsize,
    max_tool_args_chars=sys.maxsize,
    max_tool_calls=sys.maxsize,
)
"""For who folds events a second time: whether they are too many was decided when they came."""

__all__ = ("BOUNDED_BEFORE", "DEFAULT_LIMITS", "Limits")
