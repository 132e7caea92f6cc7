"""`Marbles`: what a subscriber was told, and when; written as a line of text, and read back."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from semflux.errors import ConfigurationError
from semflux.events import ChatEvent, Error
from semflux.testing.marble_labels import Reader, error_named, token_of
from semflux.testing.signals import Signal, SignalKind, next_signal

LIMIT = 40
"""Marks that are shown of a line; of a longer one the first and the last."""

_LAST = 8  # marks that are shown after those that are left out
_TICK = 1_000_000  # times are told apart by the microsecond


@attrs.frozen
class Mark:
    """One mark on the line of a stream."""

    signal: Signal | None
    """What the subscriber was told; None: it cancelled."""
    time: float | None = None
    """When, in seconds; None where that is not known."""

    @property
    def token(self) -> str:
        """How a text shows it."""
        if self.signal is None:
            return "!"
        if self.signal.kind is SignalKind.COMPLETE:
            return "|"
        if self.signal.kind is SignalKind.ERROR:
            return f"X({type(self.signal.value).__name__})"
        return token_of(self.signal.value)

    @property
    def is_end(self) -> bool:
        """True for the end, an error and a cancel."""
        return self.signal is None or self.signal.is_terminal


@attrs.frozen
class Marbles:
    """What a subscriber was told, and when: `record` makes it of a stream, `Marbles.parse` of a text.

    ```
    --a--b--|                           an item at 2 s and at 5 s, the end at 8 s
    --a--(b |)                          several signals at one time
    --a--X(IdleTimeoutError)            an error; `#` is read as any error
    --a--!                              the subscriber cancelled
    RESP+ STEP+ TEXT+ TEXT~a TEXT-      blanks: one after the other, in no time
    a -0.6s- b -3600s-|                 and such pauses
    ```
    """

    marks: tuple[Mark, ...] = ()
    """In order."""
    begin: float | None = 0.0
    """When it subscribed, in seconds; None: it did not."""

    @staticmethod
    def of(items: Marbles | Iterable[object]) -> Marbles:
        """Items, or `Signal`s, of which no times are known. A terminal chat event is followed by the end, or the error,
        that belongs to it."""
        if isinstance(items, Marbles):
            return items
        marks = [Mark(item if isinstance(item, Signal) else next_signal(item)) for item in items]
        last = marks[-1].signal.value if marks and marks[-1].signal is not None else None
        if isinstance(last, ChatEvent) and last.is_terminal:
            end = (
                Signal(SignalKind.ERROR, last.error)
                if isinstance(last, Error)
                else Signal(SignalKind.COMPLETE)
            )
            marks.append(Mark(end))
        return Marbles(tuple(marks))

    @staticmethod
    def parse(
        text: str,
        values: Mapping[str, Any] | None = None,
        *,
        error: Exception | None = None,
        step: float = 1.0,
    ) -> Marbles:
        """The marbles that *text* shows. A character is *step* seconds; where there are blanks between the marks no time
        passes but in `-2.5s-`. *values*: what stands for what; else words are strings, `TEXT~a` and the like
        are events. *error*: for `X` and `#`.

        Raises:
            ConfigurationError: if it cannot be read, or was shortened.
        """
        return _Parser(text, values or {}, error, step).parse()

    def text(self, *, step: float | None = None, width: int = 100, limit: int = LIMIT) -> str:
        """The line. *step*: seconds for a column; None: one second, or what fits into *width* columns; where nothing
        fits, the times stand between the marks. More than *limit* marks are shortened, with their number."""
        return lines_of([self], step=step, width=width, limit=limit)[0]

    def __str__(self) -> str:
        return self.text()


def marble_text(
    items: Marbles | Iterable[object], *, step: float | None = None, width: int = 100, limit: int = LIMIT
) -> str:
    """One line for what came: `RESP+ STEP+ TEXT+ TEXT~a TEXT- STEP- RESP-|`. *items*: events, or any items, or what
    `record` gives, which has times; the rest as in `Marbles.text`. At most 20 characters of any text are shown."""
    return Marbles.of(items).text(step=step, width=width, limit=limit)


def shortened(marks: Sequence[Mark], limit: int) -> list[tuple[float | None, str]]:
    """Times and tokens of *marks*; of more than *limit* the first and the last, and how many are left out."""
    if len(marks) <= limit:
        return [(mark.time, mark.token) for mark in marks]
    last = min(_LAST, limit // 2)
    first = max(limit - last - 1, 0)
    left_out = len(marks) - first - last
    tail = marks[len(marks) - last :]
    return [
        *[(mark.time, mark.token) for mark in marks[:first]],
        (marks[first].time, f"...({left_out} more)..."),
        *[(mark.time, mark.token) for mark in tail],
    ]


# Writing


def lines_of(
    streams: Sequence[Marbles], *, step: float | None = None, width: int = 100, limit: int = LIMIT
) -> list[str]:
    """The line of each of *streams*, all in one scale, where there is one; the rest as in `Marbles.text`."""
    times = [mark.time for stream in streams for mark in stream.marks]
    untimed = any(time is None for time in times) or not any(times)
    # Without times all is at one.
    ticks = [
        [(0 if untimed else _ticks(time or 0.0), token) for time, token in shortened(stream.marks, limit)]
        for stream in streams
    ]
    groups = [_grouped(each) for each in ticks]
    if not untimed and all(len(stream.marks) <= limit for stream in streams):
        for column in [_ticks(step)] if step is not None else _scales(groups, width):
            drawn = [_drawn(each, column, width) for each in groups]
            lines = [
                line if stream.marks and stream.marks[-1].is_end else f"{line}-"
                for line, stream in zip(drawn, streams, strict=True)
                if line is not None
            ]
            if len(lines) == len(streams):
                return lines
    return [_joined(each) for each in ticks]


def _ticks(seconds: float) -> int:
    return round(seconds * _TICK)


def _seconds(ticks: int) -> str:
    return f"{ticks / _TICK:.6f}".rstrip("0").rstrip(".")


def _joined(ticks: Iterable[tuple[int, str]]) -> str:
    """With blanks, and times between what is not at one time."""
    line, now, glued = "", 0, True
    for when, token in ticks:
        if when > now:
            line += f"{'' if glued else ' '}-{_seconds(when - now)}s-"
            now, glued = when, token in {"|", "!"}
            line += "" if glued else " "
            glued = True
        line += token if glued or token in {"|", "!"} else f" {token}"
        glued = False
    return line


def _grouped(ticks: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """One token for each time: `(a b |)` for several."""
    groups: dict[int, list[str]] = {}
    for when, token in ticks:
        groups.setdefault(when, []).append(token)
    return [
        (when, tokens[0] if len(tokens) == 1 else f"({' '.join(tokens)})") for when, tokens in groups.items()
    ]


def _scales(streams: Sequence[Sequence[tuple[int, str]]], width: int) -> Iterable[int]:
    """Ticks for a column: a second, then all that hits each time, as long as it is no wider than *width*."""
    yield _TICK
    times = [when for groups in streams for when, _ in groups]
    unit, last = math.gcd(*times), max(times)
    for columns in range(1, width + 1):
        if last * columns > width * unit:
            return
        if unit % columns == 0:
            yield unit // columns


def _drawn(groups: Sequence[tuple[int, str]], ticks_a_column: int, width: int) -> str | None:
    """Each token at its time, which is exact; None if it does not fit."""
    line = ""
    for when, token in groups:
        column, rest = divmod(when, ticks_a_column) if ticks_a_column > 0 else (0, 1)
        # Two words that touch would be read as one.
        touching = bool(line) and token not in {"|", "!"}
        if rest or column > width or len(line) + touching > column:
            return None
        line += "-" * (column - len(line)) + token
    return line


# Reading

_GAP = re.compile(r"-(\d+(?:\.\d+)?)s-")
_ERROR = re.compile(r"#|X(?:\((\w+)\))?(?!\w)")


class _Parser:
    def __init__(self, text: str, values: Mapping[str, Any], error: Exception | None, step: float) -> None:
        if not step > 0:
            raise ConfigurationError(f"marbles: a step of {step!r} s: it is above zero")
        self._reader = Reader(text.strip(), values)
        self._error = error
        self._step = step
        self._passed = 0.0
        self._is_spaced = False
        self._read: list[tuple[int, float, Mark]] = []

    def parse(self) -> Marbles:
        reader = self._reader
        while reader.at < len(reader.text):
            if self._read and self._read[-1][2].is_end:
                raise reader.wrong("nothing comes after an end")
            start = reader.at
            gap = reader.match(_GAP)
            if gap is not None:
                self._passed += float(gap[1])
                self._is_spaced = True
            elif reader.sees("-") or reader.sees(" "):
                self._is_spaced = self._is_spaced or reader.sees(" ")
                reader.at += 1
            elif reader.sees("("):
                self._group()
            else:
                self._mark(start)
        times = [passed if self._is_spaced else column * self._step for column, passed, _ in self._read]
        marks = [mark for _, _, mark in self._read]
        return Marbles(
            tuple([Mark(mark.signal, round(time, 6)) for mark, time in zip(marks, times, strict=True)])
        )

    def _group(self) -> None:
        reader = self._reader
        start = reader.at
        reader.at += 1
        while not reader.sees(")"):
            if reader.at >= len(reader.text):
                raise reader.wrong("a ) is missing")
            if reader.sees(" ") or reader.sees(","):
                reader.at += 1
            else:
                self._mark(start)
        reader.at += 1

    def _mark(self, start: int) -> None:
        """One mark, at the time of the column *start*."""
        reader = self._reader
        signal: Signal | None
        if reader.sees("|"):
            reader.at += 1
            signal = Signal(SignalKind.COMPLETE)
        elif reader.sees("!"):
            reader.at += 1
            signal = None
        elif (found := reader.match(_ERROR)) is not None:
            error = self._error if self._error is not None else error_named(found[1] or "Exception")
            signal = Signal(SignalKind.ERROR, error)
        elif reader.sees("..."):
            raise reader.wrong("this text was shortened")
        else:
            signal = next_signal(reader.item())
        self._read.append((start, self._passed, Mark(signal)))


def marks_at(marks: Iterable[Mark]) -> list[tuple[float, list[Signal]]]:
    """The signals of each time, in order; what has no time is at 0. The cancel is left out."""
    found: dict[float, list[Signal]] = {}
    for mark in marks:
        if mark.signal is not None:
            found.setdefault(mark.time or 0.0, []).append(mark.signal)
    return sorted(found.items(), key=lambda each: each[0])


__all__ = ("LIMIT", "Marbles", "Mark", "lines_of", "marble_text", "marks_at", "shortened")
