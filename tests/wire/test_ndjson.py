"""Newline-delimited JSON: which bytes are a line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semflux.errors import FrameTooLargeError, ResponseTooLargeError, SemfluxError
from semflux.wire import Limits, NdjsonFramer, RawFrame


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


def read(
    *chunks: bytes, limits: Limits | None = None
) -> tuple[list[RawFrame], NdjsonFramer, SemfluxError | None]:
    """All lines, the framer, and the error that ended it."""
    framer = NdjsonFramer(limits or Limits())
    out: list[RawFrame] = []
    try:
        for chunk in chunks:
            framer.receive(chunk)
            out.extend(framer.frames())
        out.extend(framer.close())
    except SemfluxError as error:
        return out, framer, error
    return out, framer, None


def cuts(data: bytes) -> list[list[bytes]]:
    return [[data], cut(data, 1), *([data[:k], data[k:]] for k in range(1, len(data)))]


def check(data: bytes, *expected: bytes, last: bytes | None = None) -> None:
    frames = [(None, line, True) for line in expected]
    if last is not None:
        frames.append((None, last, False))
    for chunks in cuts(data):
        assert (frames, None) == read(*chunks)[::2], chunks


def test_each_line_is_a_frame() -> None:
    """Without a name, an id or anything else but its data."""
    check(b'{"a":1}\n[2]\n"x"\n', b'{"a":1}', b"[2]", b'"x"')
    framer = read(b"{}\n")[1]
    assert (framer.last_event_id, framer.frame_id, framer.retry) == ("", None, None)
    assert (framer.comments, framer.saw_other_line, framer.unterminated) == (0, False, False)


def test_only_lf_ends_a_line() -> None:
    """A CR right before it goes along, one of them; other separators stay where they are."""
    check(b'{"a":\r1}\r\n{}\r\r\n', b'{"a":\r1}', b"{}\r")
    odd = "{}\x0b\x0c\x1e\x85\u2028".encode()
    check(odd + b"\n", odd)


def test_lines_of_json_whitespace_are_skipped_but_counted() -> None:
    """Spaces, tabs and CRs; VT is no JSON whitespace, and so an error for whoever decodes it."""
    check(b"\n \n\t\r\n\r\r\n{}\n\x0b\n \n", b"{}", b"\x0b")
    framer = NdjsonFramer()
    framer.receive(b"\n\n{}\n\n1\n")
    assert [framer.lines_seen for _ in framer.frames()] == [3, 5]
    assert framer.frames_seen == 2


def test_leading_space_is_kept() -> None:
    """It is part of the JSON text."""
    check(b' {"a":1} \n', b' {"a":1} ')


def test_the_last_line_may_lack_its_lf() -> None:
    """It comes with complete=False; whole JSON in it is to be accepted. White space is nothing."""
    check(b"{}\n{", b"{}", last=b"{")
    check(b"{}\n{}\r", b"{}", last=b"{}\r")
    check(b"{}\n  ", b"{}")
    framer = read(b"\n{}")[1]
    assert (framer.unterminated, framer.lines_seen) == (True, 2)


def test_one_bom_at_the_start_is_removed() -> None:
    """A later one is left in its line, where it is an error."""
    bom = b"\xef\xbb\xbf"
    check(bom + b"{}\n" + bom + b"{}\n", b"{}", bom + b"{}")
    check(bom + b"{}", last=b"{}")
    check(bom)


def test_an_iterator_may_be_dropped_anywhere() -> None:
    """The next one goes on after the last line that was taken, with what came in meanwhile behind it."""
    framer = NdjsonFramer()
    framer.receive(b"1\n2\n3")
    assert next(framer.frames()) == (None, b"1", True)
    framer.receive(b"4\n5\n")
    assert [line for _, line, _ in framer.frames()] == [b"2", b"34", b"5"]
    assert list(framer.frames()) == []


def test_a_line_may_be_as_long_as_its_bound_and_no_longer() -> None:
    """However it is cut; a CR before the LF counts, a BOM does not; the smaller of two bounds holds."""
    for limits in (Limits(max_line_bytes=5), Limits(max_event_bytes=5)):
        for bom in (b"", b"\xef\xbb\xbf"):
            for line in (b"12345", b"1234\r"):
                for chunks in cuts(bom + line + b"\n" + line + b"\n7"):
                    frames, _, error = read(*chunks, limits=limits)
                    assert error is None
                    assert len(frames) == 3
            for line in (b"123456", b"12345\r"):
                for tail in (b"", b"\n", b"\n7\n"):
                    for chunks in cuts(bom + b"8\n" + line + tail):
                        frames, framer, error = read(*chunks, limits=limits)
                        assert isinstance(error, FrameTooLargeError)
                        assert frames == [(None, b"8", True)]
                        assert list(framer._lines or ()) == []


def test_the_frames_of_a_response_are_bounded() -> None:
    """Exactly; blank lines are none."""
    limits = Limits(max_events=2)
    for data in (b"1\n\n2\n\n3\n", b"1\n2\n3"):
        for chunks in cuts(data):
            frames, framer, error = read(*chunks, limits=limits)
            assert isinstance(error, ResponseTooLargeError)
            assert frames == [(None, b"1", True), (None, b"2", True)]
            with pytest.raises(ResponseTooLargeError):
                next(framer.frames())
    assert read(b"1\n\n2\n\n", limits=limits)[2] is None


def test_the_bytes_of_a_response_are_bounded() -> None:
    """The lines within the bound come out first."""
    for chunks in cuts(b"1\n2\n3\n"):
        frames, _, error = read(*chunks, limits=Limits(max_response_bytes=5))
        assert isinstance(error, ResponseTooLargeError)
        assert frames == [(None, b"1", True), (None, b"2", True)]


def oracle(data: bytes) -> list[RawFrame]:
    *lines, rest = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    out: list[RawFrame] = [(None, line.removesuffix(b"\r"), True) for line in lines if line.strip(b" \t\r")]
    return [*out, (None, rest, False)] if rest.strip(b" \t\r") else out


bodies = st.lists(
    st.sampled_from([b"{}", b"1", b"\n", b"\n\n", b"\r", b"\r\n", b" ", b"\t", b"\x0b", b"\xef\xbb\xbf"]),
    max_size=30,
).map(b"".join)


@given(bodies, st.integers(0, 200), st.integers(1, 9))
def test_any_cutting_gives_what_the_oracle_gives(data: bytes, place: int, size: int) -> None:
    """Cut in two, and in pieces of one size."""
    for chunks in ([data[:place], data[place:]], cut(data, size)):
        assert (oracle(data), None) == read(*chunks)[::2]


@given(
    bodies,
    st.integers(1, 9),
    st.builds(
        Limits,
        max_line_bytes=st.integers(1, 9),
        max_events=st.integers(1, 5),
        max_response_bytes=st.integers(1, 40),
    ),
)
def test_any_cutting_gives_the_same_ending(data: bytes, size: int, limits: Limits) -> None:
    """Also where a bound is passed: the same lines, then the same error."""
    whole, _, expected = read(data, limits=limits)
    frames, _, error = read(*cut(data, size), limits=limits)
    assert whole == frames
    assert (type(expected), str(expected)) == (type(error), str(error))
