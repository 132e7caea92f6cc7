"""The same bytes in other chunks; and bytes that something happened to."""

from __future__ import annotations

import itertools

import attrs
from hypothesis import strategies as st


@st.composite
def cuttings(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """Ways to cut *data* into chunks: anywhere, inside a letter or between CR and LF too, some of them empty; whole; in
    equal chunks; byte by byte where it is short. Joined they are *data*."""
    size = len(data)
    way = draw(st.sampled_from(["whole", "anywhere", "equal"]))
    if way == "whole":
        return [data]
    if way == "equal":
        step = draw(st.integers(1, 64) if size < 4096 else st.integers(16, 1024))
        return [data[at : at + step] for at in range(0, size, step)]
    places = sorted(draw(st.lists(st.integers(0, size), max_size=20)))
    return [data[a:b] for a, b in itertools.pairwise([0, *places, size])]


@attrs.frozen
class Fault:
    """Bytes that something happened to."""

    data: bytes = attrs.field(repr=False)
    """What arrives."""
    what: str
    """What was done to it, for the reader of a failing test."""


_HTML = b"<html><head><title>502 Bad Gateway</title></head></html>"
_GARBAGE = (
    b"\x00\xff\xfe",
    _HTML,
    b"data: {\n\n",
    b"data: null\n\n",
    b"\xef\xbb\xbf",
    b"event: x\n",
    b"data: [1]\n\n",
)
_ERRORS = (
    b'data: {"error": {"message": "overloaded", "code": 529}}\n\n',
    b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}}\n\n',
)


@st.composite
def faults(draw: st.DrawFn, data: bytes) -> Fault:
    """*data* cut off, with bytes flipped, with frames dropped, repeated or in another order, with garbage, a page of HTML or
    an error frame put in. A frame is what ends with an empty line."""
    size = len(data)
    kind = draw(st.sampled_from(["cut", "flip", "drop", "repeat", "swap", "garbage", "error"]))
    if kind == "cut":
        at = draw(st.integers(0, size))
        return Fault(data[:at], f"cut off after byte {at} of {size}")
    if kind == "flip" and size:
        at, value = draw(st.integers(0, size - 1)), draw(st.integers(0, 255))
        return Fault(data[:at] + bytes([value]) + data[at + 1 :], f"byte {at} is {value:#04x}")
    frames = [frame + b"\n\n" for frame in data.replace(b"\r\n", b"\n").split(b"\n\n")]
    one, other = (draw(st.integers(0, len(frames) - 1)) for _ in range(2))
    if kind == "drop":
        return Fault(b"".join(frames[:one] + frames[one + 1 :]), f"frame {one} is missing")
    if kind == "repeat":
        return Fault(b"".join([*frames[: one + 1], *frames[one:]]), f"frame {one} comes twice")
    if kind == "swap":
        frames[one], frames[other] = frames[other], frames[one]
        return Fault(b"".join(frames), f"frames {one} and {other} have changed places")
    put = draw(st.sampled_from(_ERRORS if kind == "error" else _GARBAGE))
    return Fault(b"".join([*frames[:one], put, *frames[one:]]), f"before frame {one} comes {put[:40]!r}")


__all__ = ("Fault", "cuttings", "faults")
