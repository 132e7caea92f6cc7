"""What a subscriber is told, as values: items, an error, the end; and how they are shown in failures."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import attrs

_MAX_SHOWN = 160  # characters of one value in a failure's text


class SignalKind(StrEnum):
    """The kinds of signals."""

    NEXT = "on_next"
    ERROR = "on_error"
    COMPLETE = "on_complete"


@attrs.frozen
class Signal:
    """One signal."""

    kind: SignalKind
    """Item, error or end."""
    value: Any = None
    """The item or the error; None for the end."""

    @property
    def is_terminal(self) -> bool:
        """True for an error and for the end."""
        return self.kind is not SignalKind.NEXT

    def __str__(self) -> str:
        return f"{self.kind}()" if self.kind is SignalKind.COMPLETE else f"{self.kind}({shown(self.value)})"


def next_signal(value: Any) -> Signal:
    """The signal of an item."""
    return Signal(SignalKind.NEXT, value)


def shown(value: Any) -> str:
    """*value* as failures show it: its `repr`, cut to a line."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  # a failure is told even of what cannot be shown
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def called(value: Any) -> str:
    """*value* as the argument of a step's name: strings bare, functions by their names."""
    if isinstance(value, str):
        text = repr(value)[1:-1]
        return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
    if callable(value):
        function: Callable[..., Any] = value
        return getattr(function, "__name__", shown(value))
    return shown(value)


__all__ = ("Signal", "SignalKind", "called", "next_signal", "shown")
