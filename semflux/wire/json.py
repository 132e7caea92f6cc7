"""The JSON codec: strict about what JSON is, lenient about what providers are known to send.

Refused: NaN and infinities, numbers too large for a float, control characters in strings, anything
after the value, whole numbers and nesting beyond their bounds. Taken: lone surrogates written as
escapes (the string then holds them, see `replace_surrogates`), bytes that are no UTF-8 (as U+FFFD),
names given twice (the last one counts).

msgspec does nearly all of the work; the standard library's slower parser mends what msgspec refuses.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, Generic, NoReturn, TypeGuard, TypeVar

import msgspec

from semflux.errors import BadFrameError, JsonTooDeepError
from semflux.wire.limits import DEFAULT_LIMITS, Limits

T = TypeVar("T")

_SAMPLES = 8
_SMALL = 4096
_WINDOW = 64 * 1024
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_OPEN_OR_CLOSE = bytes.maketrans(b"{}", b"[]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<more>(?:\.[0-9]+)?[eE][-+]?[0-9]+|\.[0-9]+)?").fullmatch
_STEP = {ord("["): 1, ord("]"): -1}.__getitem__


class _RefusedError(ValueError):
    """Raised inside the parser by our hooks; its text is ours and quotes nothing."""


def decode(data: bytes | str, limits: Limits = DEFAULT_LIMITS) -> Any:
    """The value of the JSON text *data*: dict, list, str, int, float, bool or None.

    Raises `JsonTooDeepError` before anything is parsed, and `BadFrameError` (kind "json") for all that
    is no JSON. Neither quotes *data*, which may hold a prompt, nor holds it in its traceback's context.
    """
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    if _too_deep(raw, limits.max_json_depth):
        raise JsonTooDeepError(f"JSON is nested deeper than max_json_depth ({limits.max_json_depth})")
    if not _may_hold_long_int(raw, limits.max_int_digits):
        try:
            return msgspec.json.decode(raw)
        except (ValueError, RecursionError):
            pass  # mended or told about below
    return _decode_leniently(data, limits)


def _decode_leniently(data: bytes | str, limits: Limits) -> Any:
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else join_surrogates(data)
    error: BadFrameError
    try:
        return json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=partial(_bounded_int, limits.max_int_digits),
        )
    except json.JSONDecodeError as exc:
        error = BadFrameError(f"invalid JSON: {exc.msg} at character {exc.pos}", kind="json")
    except _RefusedError as exc:
        error = BadFrameError(f"invalid JSON: {exc}", kind="json")
    except RecursionError:
        # Only where max_json_depth was set beyond what the interpreter can take.
        error = JsonTooDeepError("JSON is nested deeper than this interpreter can parse")
    # Raised here, outside of the handlers: a JSONDecodeError in its context would hold the whole text.
    raise error


def _refuse_constant(name: str) -> NoReturn:
    raise _RefusedError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _RefusedError("a number is too large for a float")
    return value


def _bounded_int(bound: int, digits: str) -> int:
    if len(digits) - digits.startswith("-") > bound:
        raise _RefusedError(f"a whole number has more than max_int_digits ({bound}) digits")
    try:
        return int(digits)
    except ValueError:
        raise _RefusedError("a whole number has more digits than this interpreter takes") from None


def parse_number(digits: str, limits: Limits = DEFAULT_LIMITS) -> int | float:
    """The number that *digits* write in JSON; ValueError, which quotes nothing, if they write none or pass a bound."""
    found = _NUMBER(digits)
    if found is None:
        raise _RefusedError("expected a number")
    return _bounded_int(limits.max_int_digits, digits) if found["more"] is None else _finite(digits)


class TypedDecoder(Generic[T]):
    """Decodes JSON into one msgspec type, several times faster than `decode`.

    `decode` gives None, instead of raising, for everything the type or msgspec does not take: the
    caller then goes on with the untyped `decode`, which mends the value or raises the right error.
    """

    __slots__ = ("_decode", "_max_depth", "_max_digits", "_type")

    def __init__(self, type_: type[T], limits: Limits = DEFAULT_LIMITS) -> None:
        self._type = type_
        self._decode: Callable[[bytes], T] = self._first
        self._max_depth = limits.max_json_depth
        self._max_digits = limits.max_int_digits

    def _first(self, data: bytes) -> T:
        """Make the decoder when it is first needed: importing the dialects takes half as long without."""
        self._decode = msgspec.json.Decoder(self._type).decode
        return self._decode(data)

    def decode(self, data: bytes) -> T | None:
        """*data* as the type; None when it is not, or too deep, or may hold a number too long."""
        size = len(data)
        bound = self._max_depth
        # A level takes 2 bytes as an array, 5 as an object (`{"":}`). So what has fewer bytes than 5 a level, with
        # 3 lent to each array, is shallow: nearly every frame needs but one look. (Measured: removing a byte is
        # searched for by memchr, three times as fast as counting it.)
        if (
            size > 2 * bound
            and size + 3 * (size - len(data.replace(b"[", b""))) > 5 * bound
            and _too_deep(data, bound)
        ):
            return None
        if size > self._max_digits and _may_hold_long_int(data, self._max_digits):
            return None
        try:
            return self._decode(data)
        except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
            return None


def _too_deep(data: bytes, bound: int) -> bool:
    """True if *data* nests arrays and objects deeper than *bound*."""
    size = len(data)
    if size <= bound:
        return False
    if size <= _SMALL:
        # Measured: removing a byte is searched for by memchr, three times as fast as counting it.
        openers = size - len(data.replace(b"{", b"").replace(b"[", b""))
    else:
        openers = data.count(b"{") + data.count(b"[")
    return openers > bound and _depth_passes(data, bound)


def _depth_passes(data: bytes, bound: int) -> bool:
    # Without its escapes a string ends at the next quote, so that every other piece between quotes is
    # outside of strings. In windows, since a hostile text is all quotes and gives as many pieces.
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    depth = inside = 0
    for start in range(0, len(unescaped), _WINDOW):
        pieces = unescaped[start : start + _WINDOW].split(b'"')
        brackets = b"".join(pieces[inside::2]).translate(_OPEN_OR_CLOSE, _NO_BRACKETS)
        inside = (inside + len(pieces) - 1) % 2
        openers = brackets.count(b"[")
        if depth + openers > bound and max(accumulate(map(_STEP, brackets), initial=depth)) > bound:
            return True
        depth += 2 * openers - len(brackets)
    return False


def _may_hold_long_int(data: bytes, bound: int) -> bool:
    """True if *data* may hold more than *bound* digits in a row; False for sure.

    A run that long shows as digits in several neighbouring samples; the rest need not be looked at.
    """
    if len(data) <= bound:
        return False
    stride, search = _sampling(bound)
    return search(data[::stride]) is not None


@lru_cache(maxsize=16)
def _sampling(bound: int) -> tuple[int, Callable[[bytes], object]]:
    stride = max(1, bound // _SAMPLES)
    return stride, re.compile(rb"[0-9]{%d}" % min(_SAMPLES, bound)).search


def encode(value: Any) -> bytes:
    """*value* as one line of JSON in UTF-8, without its LF.

    It may hold what msgspec encodes: builtins, frozen mappings, tuples, structs, attrs classes.
    Surrogates are joined where they are pairs, else become U+FFFD.

    Raises `ValueError` for NaN and infinities, which JSON has no words for, and for nesting that is
    too deep or goes in a circle; `TypeError` for other types.
    """
    try:
        try:
            line = msgspec.json.encode(value)
        except UnicodeEncodeError:
            line = msgspec.json.encode(_without_surrogates(msgspec.to_builtins(value)))
        if line.find(b"null") >= 0:
            # msgspec writes NaN and infinities as null: only where there is one need we look.
            _check_finite(msgspec.to_builtins(value), "$")
    except RecursionError:
        raise ValueError("cannot write JSON: the value is nested too deeply or holds itself") from None
    return line


def _is_object(value: Any) -> TypeGuard[dict[Any, Any]]:
    return isinstance(value, dict)


def _is_array(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, (list, tuple))


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if _is_object(value):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if _is_array(value):
        return [_without_surrogates(item) for item in value]
    return value


def _check_finite(value: Any, path: str) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"cannot write JSON: {value} at {path} has no JSON form")
    elif _is_object(value):
        for item in value.values():
            _check_finite(item, f"{path}.*")
    elif _is_array(value):
        for i, item in enumerate(value):
            _check_finite(item, f"{path}[{i}]")


def replace_surrogates(text: str) -> str:
    """*text* with pairs of surrogates joined and lone ones as U+FFFD, so that it encodes to UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def join_surrogates(text: str) -> str:
    """*text* with pairs of surrogates joined; lone ones stay, since their other half may come later."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


__all__ = ("TypedDecoder", "decode", "encode", "join_surrogates", "parse_number", "replace_surrogates")
