"""Where in a JSON document a value stands: paths to look for, and what was found there."""

from __future__ import annotations

import re
from typing import TypeAlias, final

import attrs

from semflux.errors import ConfigurationError
from semflux.frozen import Json, clip

Key: TypeAlias = "str | int"
"""A member's name, or an element's index from 0."""

Segment: TypeAlias = "str | int | None"
"""One step of a path that is looked for: a name, an index, or None for any."""

_SEGMENT = re.compile(
    r"""\.(?P<name>(?!\d)\w+)|\.\*|\[\*\]|\[(?P<index>0|[1-9][0-9]{0,8})\]"""
    r"""|\['(?P<single>(?:[^'\\]|\\['\\])*)'\]|\["(?P<double>(?:[^"\\]|\\["\\])*)"\]"""
)
_ESCAPED = re.compile(r"\\(.)")
_PLAIN_NAME = re.compile(r"(?!\d)\w+")


def parse_path(path: str) -> tuple[Segment, ...]:
    """The steps of *path*.

    Raises:
        ConfigurationError: if it is none, or uses more of JSONPath than is supported.
    """
    if not isinstance(path, str) or not path.startswith("$"):
        raise _refused(path, "it begins with $, the whole document")
    segments: list[Segment] = []
    at = 1
    while at < len(path):
        found = _SEGMENT.match(path, at)
        if found is None:
            raise _refused(path, f"what begins at character {at} is none of these")
        name = found["name"]
        quoted = found["single"] if found["single"] is not None else found["double"]
        if name is not None:
            segments.append(name)
        elif quoted is not None:
            segments.append(_ESCAPED.sub(r"\1", quoted))
        else:
            segments.append(None if found["index"] is None else int(found["index"]))
        at = found.end()
    return tuple(segments)


def _refused(path: object, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the path {clip(path)} cannot be used: {why}. Supported are $, .name, ['any name'], [0], and .* or [*] for "
        "any member or element; neither '..', nor filters, slices, lists or negative indexes"
    )


def write_path(keys: tuple[Key, ...]) -> str:
    """*keys* as a path: `$.items[2].name`."""
    parts = ["$"]
    for key in keys:
        if isinstance(key, int):
            parts.append(f"[{key}]")
        elif _PLAIN_NAME.fullmatch(key):
            parts.append(f".{key}")
        else:
            escaped = key.replace("\\", "\\\\").replace("'", "\\'")
            parts.append(f"['{escaped}']")
    return "".join(parts)


@final
class Growth:
    """The first *count* of pieces that others share: the text of a string as it was when they were so many."""

    __slots__ = ("_count", "_pieces")

    def __init__(self, pieces: list[str], count: int) -> None:
        self._pieces = pieces
        self._count = count

    def __str__(self) -> str:
        return "".join(self._pieces[: self._count])

    def __repr__(self) -> str:
        return clip(str(self))

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, (str, Growth)) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[type[Growth], tuple[list[str], int]]:
        return Growth, ([str(self)], 1)


@attrs.frozen
class JsonMatch:
    """A value of a JSON document, and where it stands."""

    keys: tuple[Key, ...] = attrs.field(repr=clip)
    """The names and indexes that lead to it; empty for the whole document."""
    _value: Json | Growth = attrs.field(repr=clip)
    complete: bool = True
    """Whether it is all there; False for a string that still grows."""
    delta: str | None = attrs.field(default=None, repr=clip)
    """What a string has of new since the match before it; None where growth is not asked for, and for other values."""
    tool_call_id: str | None = None
    """The call whose arguments it is of; None for the answer's text."""

    @property
    def value(self) -> Json:
        """The value, immutable; what there is of it. A growing string is put together here, when it is asked for."""
        return str(self._value) if isinstance(self._value, Growth) else self._value

    @property
    def path(self) -> str:
        """Where it stands, as one writes it: `$.items[2].name`."""
        return write_path(self.keys)


__all__ = ("Growth", "JsonMatch", "Key", "Segment", "parse_path", "write_path")
