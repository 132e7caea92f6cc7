"""Deeply immutable JSON values: objects as `FrozenDict`, arrays as tuples; and how values are shown."""

# JSON of any kind passes through here.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")

Json: TypeAlias = "str | int | float | bool | FrozenDict[str, Any] | tuple[Any, ...] | None"
"""A frozen JSON value."""


class FrozenDict(dict[K, V]):
    """A `dict` that cannot be changed; it compares, dumps, pickles and copies as one.

    It is hashable where its values are. Every mutating method raises `TypeError`.
    """

    __slots__ = ()

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("this mapping is immutable; make a dict of it first: dict(mapping)")

    if not TYPE_CHECKING:  # pragma: no branch
        # A type checker is told by `dict` itself how these are called; here all of them are refused.
        __setitem__ = __delitem__ = __ior__ = _refuse
        clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # dict is unhashable because it mutates
        return hash(frozenset(self.items()))

    def __copy__(self) -> FrozenDict[K, V]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenDict[K, V]:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenDict, (dict(self),))


EMPTY: FrozenDict[str, Any] = FrozenDict()
"""The one empty mapping, shared."""


def freeze(value: object) -> Any:
    """*value* with every dict in it a `FrozenDict` and every list a tuple; scalars as they are.

    The depth of *value* must be bounded (the JSON codec sees to that), since this recurses.
    """
    kind: object = type(value)
    if kind is str or kind is int or kind is float or kind is bool or value is None:
        return value
    if kind is FrozenDict:
        return value
    if isinstance(value, dict):
        return FrozenDict({key: freeze(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple([freeze(item) for item in cast("Iterable[Any]", value)])
    return value


def thaw(value: object) -> Any:
    """*value* with plain dicts and lists again: what `json.dumps` and users who want to edit take."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in cast("Iterable[Any]", value)]
    return value


_CLIP = 80


def clip(value: object) -> str:
    """`repr`, with at most 80 characters of each text in it."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _CLIP else f"{value[:_CLIP]!r}... ({len(value)} characters)"
    if isinstance(value, BaseException):
        return f"{type(value).__name__}({clip(str(value))})"
    if type(value) is FrozenDict or type(value) is dict:
        items = cast("dict[object, object]", value).items()
        return f"{{{', '.join([f'{clip(key)}: {clip(item)}' for key, item in items])}}}"
    if type(value) is tuple:
        parts = [clip(item) for item in cast("tuple[object, ...]", value)]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return repr(value)


def clip_url(url: str | None) -> str:
    """`repr` of an address without its query, which may sign it; a data URL is content, and not shown."""
    if url is None:
        return "None"
    return "'data:...'" if url.startswith("data:") else clip(url.split("?")[0])


__all__ = ("EMPTY", "FrozenDict", "Json", "clip", "clip_url", "freeze", "thaw")
