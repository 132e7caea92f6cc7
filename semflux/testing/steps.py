"""The steps of a `StepVerifier`: what each of them takes of what comes.

A step that expects something is a generator: it yields what it expects, in words, is sent the next
signal, and returns when it has what it wants, with the signals that it leaves to the next step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, TypeAlias

import attrs

from semflux.testing.signals import Signal, SignalKind, called, shown

Matcher: TypeAlias = Generator[str, Signal, Sequence[Signal]]
"""A step at work. What it returns goes back to the front of what has come."""


class Mismatch(Exception):  # noqa: N818  # not an error of anybody's: how a matcher says no
    """What came is not what the step expects."""

    def __init__(self, expected: str, actual: object) -> None:
        super().__init__(expected, actual)
        self.expected = expected
        """What the step wants, in words."""
        self.actual = actual
        """The signal that came, or what is wrong with it in words."""


@attrs.frozen(kw_only=True)
class Wait:
    """A step that lets time pass."""

    seconds: float
    """How long."""
    silent: bool = False
    """True if nothing may come meanwhile."""


@attrs.frozen(kw_only=True)
class Step:
    """One step of a script. Exactly one of *match*, *action* and *wait* is given."""

    name: str
    """How it was written, such as "expect_next(b)"."""
    match: Callable[[], Matcher] | None = None
    """Makes the generator that takes signals."""
    action: Callable[[Any], object] | None = None
    """Called with the script; what it returns is awaited if it can be."""
    wait: Wait | None = None
    """Lets time pass."""
    semantic: bool = False
    """True if it passes over the frame of a chat stream."""
    terminal: bool = False
    """True if it expects an end."""


def step_name(name: str, *values: Any) -> str:
    """How the call *name* with these arguments is written."""
    return f"{name}({', '.join([called(value) for value in values])})"


def item_of(signal: Signal, expected: str) -> Any:
    """The item of *signal*.

    Raises:
        Mismatch: if it is an end.
    """
    if signal.kind is not SignalKind.NEXT:
        raise Mismatch(expected, signal)
    return signal.value


def next_is(value: Any) -> Matcher:
    """One item, equal to *value*."""
    expected = f"on_next({shown(value)})"
    signal = yield expected
    if item_of(signal, expected) != value:
        raise Mismatch(expected, signal)
    return ()


def next_matches(predicate: Callable[[Any], object]) -> Matcher:
    """One item for which *predicate* is true."""
    expected = f"on_next(an item for which {called(predicate)} is true)"
    signal = yield expected
    if not predicate(item_of(signal, expected)):
        raise Mismatch(expected, signal)
    return ()


def next_satisfies(function: Callable[[Any], object]) -> Matcher:
    """One item at which *function* does not raise."""
    expected = "on_next(an item)"
    signal = yield expected
    function(item_of(signal, expected))
    return ()


def next_count(count: int) -> Matcher:
    """*count* items of any kind."""
    for had in range(count):
        expected = f"{count} items" if not had else f"{count} items, of which {had} have come"
        signal = yield expected
        item_of(signal, expected)
    return ()


def next_sequence(items: Iterable[Any]) -> Matcher:
    """These items, one after another."""
    for place, value in enumerate(items):
        expected = f"on_next({shown(value)}), item {place} of the sequence"
        signal = yield expected
        if item_of(signal, expected) != value:
            raise Mismatch(expected, signal)
    return ()


def consume_while(
    predicate: Callable[[Any], object], consumer: Callable[[Any], object] | None = None
) -> Matcher:
    """The items up to the first one for which *predicate* is false, or to the end."""
    while True:
        signal = yield f"items while {called(predicate)} is true, then another signal"
        if signal.kind is not SignalKind.NEXT or not predicate(signal.value):
            return (signal,)
        if consumer is not None:
            consumer(signal.value)


def _never(signal: Signal) -> bool:
    return False


def completes(passes_over: Callable[[Signal], bool] = _never) -> Matcher:
    """The end, without an error."""
    while True:
        signal = yield "on_complete()"
        if signal.kind is SignalKind.COMPLETE:
            return ()
        if not passes_over(signal):
            raise Mismatch("on_complete()", signal)


def fails(
    type: type[BaseException] | tuple[type[BaseException], ...] | None,
    message: str | re.Pattern[str] | None,
    matches: Callable[[Any], object] | None,
    passes_over: Callable[[Signal], bool] = _never,
) -> Matcher:
    """An error of this type, with this message, for which *matches* is true."""
    expected = f"on_error({_error_shown(type, message, matches)})"
    while True:
        signal = yield expected
        if signal.kind is SignalKind.ERROR:
            break
        if not passes_over(signal):
            raise Mismatch(expected, signal)
    error, text = signal.value, str(signal.value)
    if (
        (type is not None and not isinstance(error, type))
        or (isinstance(message, str) and text != message)
        or (isinstance(message, re.Pattern) and not message.search(text))
        or (matches is not None and not matches(error))
    ):
        raise Mismatch(expected, signal)
    return ()


def types_shown(types: type[BaseException] | tuple[type[BaseException], ...], between: str) -> str:
    """The names of these error classes."""
    return between.join([each.__name__ for each in (types if isinstance(types, tuple) else (types,))])


def _error_shown(type: Any, message: Any, matches: Any) -> str:
    parts = ["any error" if type is None else types_shown(type, " or ")]
    if message is not None:
        parts.append(
            f"message {message!r}" if isinstance(message, str) else f"message like {message.pattern!r}"
        )
    if matches is not None:
        parts.append(f"{called(matches)} true of it")
    return ", ".join(parts)


__all__ = (
    "Matcher",
    "Mismatch",
    "Step",
    "Wait",
    "completes",
    "consume_while",
    "fails",
    "item_of",
    "next_count",
    "next_is",
    "next_matches",
    "next_satisfies",
    "next_sequence",
    "step_name",
    "types_shown",
)
