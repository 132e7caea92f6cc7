"""Marbles as pictures: small SVG files, the same bytes for the same marbles."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise

import attrs

from semflux.events import ChatEvent, ChatEventGroup
from semflux.testing.marble_labels import label_of
from semflux.testing.marbles import LIMIT, Marbles, Mark, lines_of, shortened
from semflux.testing.signals import SignalKind

G = ChatEventGroup

# Each has a contrast of more than 3.5 to white and to a dark page, and white text on it one of more than 4.5.
GROUP_COLOURS: dict[ChatEventGroup, str] = {
    G.LIFECYCLE: "#6b7280",
    G.STEP: "#7c6f64",
    G.TEXT: "#2f6fd0",
    G.THINKING: "#8957d6",
    G.TOOL_CALL: "#b3590f",
    G.SERVER_TOOL: "#0f7d7d",
    G.MEDIA: "#2c8039",
    G.SAFETY: "#cf3440",
    G.META: "#8d6a08",
}
"""The colour of each group of events."""

ITEM_COLOURS = ("#2f6fd0", "#b3590f", "#2c8039", "#8957d6", "#c03a8b", "#0f7d7d", "#8d6a08", "#cf3440")
"""The colours of other items, in the order in which they first come; the same item has the same one on each line."""

LINE = "#747c87"
"""The colour of lines, and of text that is not on a marble: readable on white and on a dark page."""

_RED = "#cf3440"
_CHAR = 7.8  # the width of a character
_SMALL = 6.6  # of small text
_HEIGHT = 26.0  # of a marble
_ROW = 54.0  # of a line
_BOX = 36.0  # of an operator
_MARGIN = 14.0
_BETWEEN = 8.0  # marbles at least
_UNIT = 34.0  # the shortest time between marks
_WIDEST = 150.0  # the longest


@attrs.frozen
class _Shape:
    """One mark, placed relative to the first one of its time."""

    mark: Mark | None
    label: str
    offset: float
    half: float
    """Half of its width."""


@attrs.frozen
class _Cluster:
    """The marks of one line at one time, side by side."""

    when: float
    shapes: tuple[_Shape, ...]

    @property
    def left(self) -> float:
        return self.shapes[0].half

    @property
    def right(self) -> float:
        return max([shape.offset + shape.half for shape in self.shapes])


def _columns(text: str) -> int:
    return sum([2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text])


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _escaped(text: str) -> str:
    """For XML, which has no way to write what is not printable."""
    printable = "".join([each if each.isprintable() or each == "\n" else "?" for each in text])
    return printable.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _shape(mark: Mark | None, token: str, before: _Shape | None) -> _Shape:
    label = label_of(token)
    if mark is None:
        half = _columns(label) * _SMALL / 2
    elif mark.signal is None:
        half = _SMALL * 3
    elif mark.signal.kind is SignalKind.COMPLETE:
        half = 2.0
    elif mark.signal.kind is SignalKind.ERROR:
        label = type(mark.signal.value).__name__
        half = max(_columns(label) * _SMALL / 2, 10.0)
    else:
        half = max(_columns(label) * _CHAR / 2 + 8, _HEIGHT / 2)
    # Marks at one time touch nearly; an end comes close after its item.
    gap = 5.0 if mark is not None and mark.is_end else 2.0
    if before is None:
        return _Shape(mark, label, 0.0, half)
    own = 8.0 if mark is not None and mark.is_end else half
    return _Shape(mark, label, before.offset + before.half + gap + own, half)


def _clusters(stream: Marbles, limit: int, *, timed: bool) -> list[_Cluster]:
    tokens = shortened(stream.marks, limit)
    last = len(stream.marks) - (len(tokens) - 1)  # what is left out stands for so many marks
    marks: list[Mark | None] = list(stream.marks)
    if len(tokens) < len(marks):
        first = next(place for place, (_, token) in enumerate(tokens) if token.startswith("...("))
        marks[first : first + last] = [None]
    found: dict[float, list[_Shape]] = {}
    for place, (mark, (time, token)) in enumerate(zip(marks, tokens, strict=True)):
        ends = not timed and mark is not None and mark.is_end and place > 0
        when = (time or 0.0) if timed else float(place - ends)
        shapes = found.setdefault(when, [])
        shapes.append(_shape(mark, token, shapes[-1] if shapes else None))
    return [_Cluster(when, tuple(shapes)) for when, shapes in found.items()]


class _Layout:
    """Where the times of several lines are: in proportion, as far as the marbles have room."""

    def __init__(self, lines: Sequence[Sequence[_Cluster]], begins: Iterable[float]) -> None:
        times = sorted({0.0, *begins, *[cluster.when for line in lines for cluster in line]})
        steps = [after - before for before, after in pairwise(times)]
        unit = min(steps, default=1.0)
        self.at: dict[float, float] = {}
        rights = [_MARGIN for _ in lines]
        x = _MARGIN
        for time, step in zip(times, [0.0, *steps], strict=True):
            x += min(step / unit * _UNIT, _WIDEST)
            here = [
                (place, cluster)
                for place, line in enumerate(lines)
                for cluster in line
                if cluster.when == time
            ]
            for place, cluster in here:
                x = max(x, rights[place] + _BETWEEN + cluster.left)
            self.at[time] = x
            for place, cluster in here:
                rights[place] = x + cluster.right
        self.width: float = max([*rights, x]) + 34.0


class _Picture:
    """The parts of an SVG, one below the other."""

    def __init__(self, streams: Sequence[Marbles], limit: int, call: str = "") -> None:
        times = [mark.time for stream in streams for mark in stream.marks]
        timed = any(times) and None not in times
        self._lines = [_clusters(stream, limit, timed=timed) for stream in streams]
        begins = [stream.begin for stream in streams if stream.begin is not None and timed]
        self._layout = _Layout(self._lines, begins)
        self._colours: dict[str, str] = {}
        self._parts: list[str] = []
        self._timed = timed
        self._y = 0.0
        self.width: float = max(self._layout.width, _columns(call) * _CHAR + 48)

    def line(self, place: int, stream: Marbles) -> None:
        """The next line, of the stream with this number."""
        y = self._y + _ROW / 2
        self._y += _ROW
        begin = self._layout.at[stream.begin] if self._timed and stream.begin else _MARGIN - 8
        end = self.width - 8
        dashes = ' stroke-dasharray="2 5"' if stream.begin is None else ""
        self._parts += [
            f'<path d="M{_number(begin)} {_number(y)}H{_number(end - 8)}" stroke="{LINE}" stroke-width="2"{dashes}/>',
            f'<path d="M{_number(end)} {_number(y)}l-10 -5v10z" fill="{LINE}"/>',
        ]
        for cluster in self._lines[place]:
            for shape in cluster.shapes:
                self._draw(shape, self._layout.at[cluster.when] + shape.offset, y)

    def box(self, call: str) -> None:
        """An operator, between the lines above and those below."""
        self._parts.append(
            f'<rect x="2" y="{_number(self._y + 2)}" width="{_number(self.width - 4)}" height="{_number(_BOX - 4)}"'
            f' rx="6" fill="none" stroke="{LINE}" stroke-width="1.5"/>'
        )
        self._text(call, self.width / 2, self._y + _BOX / 2 + 4.5, LINE)
        self._y += _BOX

    def _draw(self, shape: _Shape, x: float, y: float) -> None:
        mark = shape.mark
        if mark is None:
            self._text(shape.label, x, y - 8, LINE, small=True)
        elif mark.signal is None:
            self._parts.append(
                f'<path d="M{_number(x - 7)} {_number(y)}a7 7 0 1 0 14 0a7 7 0 1 0 -14 0m2 5l10 -10"'
                f' fill="none" stroke="{LINE}" stroke-width="2"/>'
            )
            self._text("cancel", x, y + 22, LINE, small=True)
        elif mark.signal.kind is SignalKind.COMPLETE:
            self._parts.append(
                f'<path d="M{_number(x)} {_number(y - 13)}v26" stroke="{LINE}" stroke-width="3"/>'
            )
        elif mark.signal.kind is SignalKind.ERROR:
            self._parts.append(
                f'<path d="M{_number(x - 8)} {_number(y - 8)}l16 16m0 -16l-16 16" stroke="{_RED}" stroke-width="3"/>'
            )
            self._text(shape.label, x, y + 22, _RED, small=True)
        else:
            self._parts.append(
                f'<rect x="{_number(x - shape.half)}" y="{_number(y - _HEIGHT / 2)}" width="{_number(shape.half * 2)}"'
                f' height="{_number(_HEIGHT)}" rx="{_number(_HEIGHT / 2)}" fill="{self._colour(mark, shape.label)}"/>'
            )
            self._text(shape.label, x, y + 4.5, "#fff")

    def _colour(self, mark: Mark, label: str) -> str:
        value = None if mark.signal is None else mark.signal.value
        if isinstance(value, ChatEvent):
            return GROUP_COLOURS[value.group]
        return self._colours.setdefault(label, ITEM_COLOURS[len(self._colours) % len(ITEM_COLOURS)])

    def _text(self, text: str, x: float, y: float, colour: str, *, small: bool = False) -> None:
        length = _columns(text) * (_SMALL if small else _CHAR)
        size = ' font-size="11"' if small else ""
        self._parts.append(
            f'<text x="{_number(x)}" y="{_number(y)}" fill="{colour}"{size} textLength="{_number(length)}"'
            f' lengthAdjust="spacingAndGlyphs">{_escaped(text)}</text>'
        )

    def whole(self, title: str, description: str) -> str:
        """The SVG."""
        width, height = _number(self.width), _number(self._y)
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
                f' viewBox="0 0 {width} {height}" role="img"'
                ' font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13" text-anchor="middle">',
                f"<title>{_escaped(title)}</title>",
                f"<desc>{_escaped(description)}</desc>",
                *self._parts,
                "</svg>\n",
            ]
        )


def marble_svg(items: Marbles | Iterable[object], *, title: str = "marbles", limit: int = LIMIT) -> str:
    """A picture of what came, as an SVG file that needs nothing else. *items* as for `marble_text`; *title* is read out
    in place of the picture; more than *limit* marks are shortened, with their number."""
    stream = Marbles.of(items)
    picture = _Picture([stream], limit)
    picture.line(0, stream)
    return picture.whole(title, stream.text(limit=limit))


def picture_of(
    call: str, inputs: Sequence[Marbles], results: Sequence[Marbles], *, title: str | None = None
) -> str:
    """A picture of an operator: what comes, a box with its *call*, what it makes of it."""
    streams = [*inputs, *results]
    picture = _Picture(streams, LIMIT, call)
    for place, stream in enumerate(inputs):
        picture.line(place, stream)
    picture.box(call)
    for place, stream in enumerate(results, len(inputs)):
        picture.line(place, stream)
    lines = lines_of(streams)
    description = "\n".join([*lines[: len(inputs)], call, *lines[len(inputs) :]])
    return picture.whole(call if title is None else title, description)


__all__ = ("GROUP_COLOURS", "ITEM_COLOURS", "LINE", "marble_svg", "picture_of")
