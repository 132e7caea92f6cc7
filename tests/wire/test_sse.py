"""Server-sent events: what comes out of which bytes, however they are cut."""

from __future__ import annotations

import itertools
import re
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semflux.errors import FrameTooLargeError, ResponseTooLargeError, SemfluxError
from semflux.wire import Limits, RawFrame, SseFramer

Eof = Literal["strict", "vendor"]


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


def read(
    *chunks: bytes, eof: Eof = "strict", limits: Limits | None = None
) -> tuple[list[RawFrame], SseFramer, SemfluxError | None]:
    """All frames, the framer, and the error that ended it."""
    framer = SseFramer(limits or Limits(), eof)
    out: list[RawFrame] = []
    try:
        for chunk in chunks:
            framer.receive(chunk)
            out.extend(framer.frames())
        out.extend(framer.close())
    except SemfluxError as error:
        return out, framer, error
    return out, framer, None


def parts(*chunks: bytes, eof: Eof = "strict") -> list[RawFrame]:
    frames, _, error = read(*chunks, eof=eof)
    assert error is None
    return frames


def several_cuts(data: bytes) -> Iterator[list[bytes]]:
    yield [data]
    yield cut(data, 1)
    yield cut(data, 7)
    for k in range(1, len(data)):
        yield [data[:k], data[k:]]


def check(data: bytes, *expected: RawFrame, eof: Eof = "strict") -> None:
    for chunks in several_cuts(data):
        assert list(expected) == parts(*chunks, eof=eof), chunks


def test_an_event_is_its_data_and_no_name_by_default() -> None:
    """The name is None for the default, so that the hot path compares nothing."""
    check(b"data: hello\n\ndata: world\n\n", (None, b"hello", True), (None, b"world", True))


def test_a_name_belongs_to_one_event() -> None:
    """It does not stick, and the last of several wins."""
    check(
        b"event: a\ndata: 1\n\ndata: 2\n\nevent: b\nevent: c\ndata: 3\n\nevent: a\ndata: 4\n\n",
        ("a", b"1", True),
        (None, b"2", True),
        ("c", b"3", True),
        ("a", b"4", True),
    )


@pytest.mark.parametrize("line", [b"event", b"event:", b"event: ", b"event: message"])
def test_an_empty_name_and_message_are_the_default(line: bytes) -> None:
    """Also where the same line has been seen before."""
    check((b"event: x\n" + line + b"\ndata: 1\n\n") * 2, (None, b"1", True), (None, b"1", True))


def test_a_name_without_data_is_forgotten_at_the_blank_line() -> None:
    """No data field: nothing is handed out. A name line known from before is no exception."""
    check(
        b"event: x\ndata: 0\n\nevent: x\n\nevent: x\nevent: y\n\ndata: 1\n\n",
        ("x", b"0", True),
        (None, b"1", True),
    )


def test_a_known_name_may_be_followed_by_anything() -> None:
    """The shortcut for known names falls back for several data lines, comments, ids and bare fields."""
    check(
        b"event: x\ndata: 0\n\nevent: x\ndata: 1\ndata: 2\n\nevent: x\n: hi\ndata:3\n\nevent: x\nid: 7\ndata: 4\n\n",
        ("x", b"0", True),
        ("x", b"1\n2", True),
        ("x", b"3", True),
        ("x", b"4", True),
    )


def test_data_lines_are_joined_by_lf() -> None:
    """Empty ones count, wherever they stand."""
    check(b"data: a\ndata\ndata:\ndata: b\ndata: \n\n", (None, b"a\n\n\nb\n", True))


def test_one_space_after_the_colon_is_removed() -> None:
    """Not two, no tab, and there need be none."""
    check(
        b"data:  a\n\ndata:\tb\n\ndata:c\n\ndata: \n\n",
        (None, b" a", True),
        (None, b"\tb", True),
        (None, b"c", True),
        (None, b"", True),
    )


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_kind_of_line_end_gives_the_same_events(end: bytes) -> None:
    """LF, CRLF and CR alone."""
    lines = b"event: e|data: 1||: note|data: 2|data: 3|||id: 4|data: 5||"
    check(lines.replace(b"|", end), ("e", b"1", True), (None, b"2\n3", True), (None, b"5", True))


def test_line_ends_may_be_mixed() -> None:
    """LF CR are two ends, CRLF is one, and CR LF CR is two."""
    check(
        b"data: a\n\rdata: b\r\n\rdata: c\r\r\n\ndata: d\n\r\ndata: e\r\n\n",
        (None, b"a", True),
        (None, b"b", True),
        (None, b"c", True),
        (None, b"d", True),
        (None, b"e", True),
    )


def test_a_cr_ends_its_line_at_once() -> None:
    """The event is out before the next byte, whose LF then belongs to the CR."""
    framer = SseFramer()
    framer.receive(b"data: a\r\n\r")
    assert [(None, b"a", True)] == list(framer.frames())
    framer.receive(b"\n")
    assert [] == list(framer.frames())
    framer.receive(b"data: b\r")
    framer.receive(b"\r")
    assert [(None, b"b", True)] == list(framer.frames())
    framer.receive(b"data: c\r")
    assert [] == list(framer.frames())
    framer.receive(b"data: d\n\n")
    assert [(None, b"c\nd", True)] == list(framer.frames())


def test_other_separators_are_data() -> None:
    """VT, FF, the information separators, NEL and U+2028 end no line."""
    text = "a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i".encode()
    check(b"data: " + text + b"\n\n", (None, text, True))


def test_unknown_fields_are_ignored_and_remembered() -> None:
    """Names are exact: case, spaces and prefixes make another field; a line of one space is no blank line."""
    for line in (b"Data: x", b"data : x", b" data: x", b"datax: y", b"dat", b" ", b"<html>"):
        frames, framer, _ = read(line + b"\ndata: ok\n\n")
        assert [(None, b"ok", True)] == frames
        assert framer.saw_other_line


def test_known_lines_are_no_other_lines() -> None:
    """Comments, blank lines, and fields of the standard even where their value is ignored."""
    _, framer, _ = read(b": c\n\ndata\nevent\nid: \0\nretry: no\n\n<html")
    assert not framer.saw_other_line
    assert framer.unterminated
    assert 1 == framer.comments


def test_comments_are_counted_and_leave_the_event_alone() -> None:
    """They may stand inside an event."""
    frames, framer, _ = read(b":\n\n: a\n:data: no\ndata: 1\n: b\ndata: 2\n\n")
    assert [(None, b"1\n2", True)] == frames
    assert 4 == framer.comments


def test_an_id_is_committed_by_the_blank_line() -> None:
    """With or without data; it stays until the next; NUL in it makes the field void; empty resets."""
    framer = SseFramer()
    seen = []
    for chunk, want in (
        (b"id: 1\ndata: a\n", ""),
        (b"\n", "1"),
        (b"data: b\n\n", "1"),
        (b"id: 2\n\n", "2"),
        (b"id: x\0y\ndata: c\n\n", "2"),
        (b"id: \xe2\x98\x83\xff\ndata: d\n\n", "\u2603\ufffd"),
        (b"id\ndata: e\n\n", ""),
    ):
        framer.receive(chunk)
        for _, data, _ in framer.frames():
            assert framer.last_event_id == framer.frame_id
            seen.append((data, framer.frame_id))
        assert want == framer.last_event_id
    assert [(b"a", "1"), (b"b", "1"), (b"c", "2"), (b"d", "\u2603\ufffd"), (b"e", "")] == seen


def test_each_frame_has_its_own_id_within_one_chunk() -> None:
    """Laziness makes it so: the next id line is not read before the next frame is asked for."""
    framer = SseFramer()
    framer.receive(b"id: 1\ndata: a\n\nid: 2\ndata: b\n\ndata: c\n\n")
    assert ["1", "2", "2"] == [framer.frame_id for _ in framer.frames()]


def test_an_id_without_its_blank_line_is_not_committed() -> None:
    """It must not go into Last-Event-ID; a vendor's last event still carries it."""
    frames, framer, _ = read(b"id: 1\ndata: a\n\nid: 2\ndata: b\n", eof="vendor")
    assert [(None, b"a", True), (None, b"b", False)] == frames
    assert ("1", "2") == (framer.last_event_id, framer.frame_id)


@pytest.mark.parametrize(
    "value, expected",
    [
        (b"1500", 1500),
        (b"0", 0),
        (b"000", 0),
        (b"007", 7),
        (b"3600000", 3_600_000),
        (b"3600001", 3_600_000),
        (b"9" * 6000, 3_600_000),
        (b"0" * 6000 + b"12", 12),
        (b"", None),
        (b"+5", None),
        (b"-5", None),
        (b" 5", None),
        (b"5 ", None),
        (b"1_0", None),
        (b"1e3", None),
        ("\u0661".encode(), None),
    ],
)
def test_retry_takes_ascii_digits_only_and_at_most_an_hour(value: bytes, expected: int | None) -> None:
    """It takes effect at its line, without an event."""
    framer = SseFramer()
    framer.receive(b"retry: " + value + b"\n")
    assert [] == list(framer.frames())
    assert expected == framer.retry


def test_one_bom_at_the_start_is_removed() -> None:
    """A second one, or one later on, belongs to the field's name."""
    bom = b"\xef\xbb\xbf"
    check(bom + b"data: a\n\n", (None, b"a", True))
    check(bom + b"\ndata: a\n\n", (None, b"a", True))
    check(bom + bom + b"data: a\n\ndata: b\n\n", (None, b"b", True))
    check(b"data: a\n\n" + bom + b"data: b\n\n", (None, b"a", True))
    assert not read(bom)[1].unterminated


def test_data_stays_bytes() -> None:
    """What is no UTF-8 is the business of whoever decodes it, and cannot swallow a line end."""
    check(b"data: \xe2\x82\n\ndata: \xff\0\n\n", (None, b"\xe2\x82", True), (None, b"\xff\0", True))


def test_strict_drops_what_no_blank_line_has_ended() -> None:
    """As the standard says; `unterminated` tells whether the last line was whole."""
    for tail, unterminated in ((b"data: b", True), (b"data: b\n", False), (b"data: b\r", False)):
        for chunks in several_cuts(b"data: a\n\n" + tail):
            frames, framer, _ = read(*chunks)
            assert [(None, b"a", True)] == frames
            assert unterminated == framer.unterminated


def test_vendor_hands_out_the_last_event_as_incomplete() -> None:
    """With its unfinished line, if there is data; a cut retry is ignored, since half a number is a wrong one."""
    check(b"data: [DONE]", (None, b"[DONE]", False), eof="vendor")
    check(b"event: e\ndata: a\ndata: b", ("e", b"a\nb", False), eof="vendor")
    check(b"data: a\nevent: e", ("e", b"a", False), eof="vendor")
    check(b"data: a\n: bye", (None, b"a", False), eof="vendor")
    check(b"data: a\nda", (None, b"a", False), eof="vendor")
    check(b"data", (None, b"", False), eof="vendor")
    check(b"event: x", eof="vendor")
    check(b"data: a\n\nid: 3", (None, b"a", True), eof="vendor")
    frames, framer, _ = read(b"retry: 1\ndata: a\nretry: 23", eof="vendor")
    assert [(None, b"a", False)] == frames
    assert 1 == framer.retry


def test_close_gives_what_was_not_asked_for_before() -> None:
    """And nothing the second time; bytes after it are dropped."""
    framer = SseFramer(eof="vendor")
    framer.receive(b"data: a\n\ndata: b\n\ndata: c")
    assert (None, b"a", True) == next(framer.frames())
    assert [(None, b"b", True), (None, b"c", False)] == list(framer.close())
    framer.receive(b"\n\ndata: d\n\n")
    assert [] == list(framer.close())
    assert [] == list(framer.frames())
    assert 25 == framer.bytes_seen
    assert 3 == framer.frames_seen


def test_an_iterator_may_be_dropped_anywhere() -> None:
    """The next one goes on after the last frame that was taken."""
    data = b"event: e\ndata: 1\n\ndata: 2\ndata: 3\n\nid: 9\ndata: 4\n\ndata: 5\n\nevent: e\ndata: 6\n\n"
    for chunks in several_cuts(data):
        framer = SseFramer()
        out: list[RawFrame] = []
        for chunk in chunks:
            framer.receive(chunk)
            while (frame := next(framer.frames(), None)) is not None:
                out.append(frame)
                assert len(out) == framer.frames_seen
        assert parts(data) == out


def test_bytes_may_come_while_frames_are_read() -> None:
    """They are behind those that were there before, an unfinished line included."""
    framer = SseFramer()
    framer.receive(b"data: a\n\ndata: b\n\nda")
    frames = framer.frames()
    assert (None, b"a", True) == next(frames)
    framer.receive(b"ta: c\n\n")
    assert [(None, b"b", True), (None, b"c", True)] == list(frames)


def test_nothing_is_parsed_before_it_is_asked_for() -> None:
    """What is bad behind a good frame does not cost that frame."""
    framer = SseFramer(Limits(max_line_bytes=10))
    framer.receive(b"data: a\n\ndata: too long\n\ndata: b\n\n")
    frames = framer.frames()
    assert (None, b"a", True) == next(frames)
    with pytest.raises(FrameTooLargeError):
        next(frames)


@pytest.mark.parametrize("line", [b"data: 7890", b"data:67890", b": 34567890", b"id: 567890", b"zz: 567890"])
def test_a_line_may_be_as_long_as_its_bound_and_no_longer(line: bytes) -> None:
    """The same however it is cut, with and without a BOM, which does not count; whole or unfinished."""
    for bom in (b"", b"\xef\xbb\xbf"):
        for chunks in several_cuts(bom + line + b"\n\ndata: z\n\n"):
            frames, _, error = read(*chunks, limits=Limits(max_line_bytes=10))
            assert error is None
            assert (None, b"z", True) == frames[-1]
        for tail in (b"", b"\n", b"\n\n"):
            for chunks in several_cuts(bom + line + b"!" + tail):
                frames, _, error = read(*chunks, limits=Limits(max_line_bytes=10))
                assert isinstance(error, FrameTooLargeError)
                assert [] == frames


def test_an_endless_line_fails_at_its_bound_not_at_the_end() -> None:
    """And what came before it is out; later bytes are dropped, and the error stays."""
    framer = SseFramer(Limits(max_line_bytes=100))
    framer.receive(b"data: ok\n\n")
    for _ in range(50):
        framer.receive(b"1234567")
    assert 360 == framer.bytes_seen
    frames = framer.frames()
    assert (None, b"ok", True) == next(frames)
    with pytest.raises(FrameTooLargeError) as first:
        next(frames)
    framer.receive(b"\n\ndata: late\n\n")
    for late in (framer.frames(), framer.close()):
        with pytest.raises(FrameTooLargeError) as second:
            next(late)
        assert first.value is second.value
    assert 360 == framer.bytes_seen


def test_the_data_of_an_event_is_bounded() -> None:
    """LFs between its lines count; comments do not."""
    limits = Limits(max_event_bytes=5)
    good, bad = b"data: 12\n: long comment\ndata: 45\n\n", b"data: 12\ndata: 456\n\n"
    for chunks in several_cuts(good):
        assert [(None, b"12\n45", True)] == read(*chunks, limits=limits)[0]
    for data in (bad, b"data: 123456\n\n"):
        for chunks in several_cuts(good + data):
            frames, _, error = read(*chunks, limits=limits)
            assert isinstance(error, FrameTooLargeError)
            assert [(None, b"12\n45", True)] == frames


def test_the_data_lines_of_an_event_are_bounded() -> None:
    """One event's lines do not count for the next."""
    limits = Limits(max_data_lines=3)
    good = b"data\ndata: 1\ndata\n\n" * 2
    for chunks in several_cuts(good + b"data\n" * 4):
        frames, _, error = read(*chunks, limits=limits)
        assert isinstance(error, FrameTooLargeError)
        assert [(None, b"\n1\n", True)] * 2 == frames


def test_the_frames_of_a_response_are_bounded() -> None:
    """Exactly, also for the one that comes at the end of the body."""
    limits = Limits(max_events=3)
    for chunks in several_cuts(b"data: 1\n\n" * 4):
        frames, framer, error = read(*chunks, limits=limits)
        assert isinstance(error, ResponseTooLargeError)
        assert [(None, b"1", True)] * 3 == frames
        assert 3 == framer.frames_seen
    frames, _, error = read(b"data: 1\n\n" * 3 + b"data: 2", limits=limits, eof="vendor")
    assert isinstance(error, ResponseTooLargeError)
    assert 3 == len(frames)


def test_the_bytes_of_a_response_are_bounded() -> None:
    """The frames within the bound come out, however the bytes are cut; then it fails."""
    limits = Limits(max_response_bytes=20)
    whole = b"data: 1\n\n" * 2
    for chunks in several_cuts(whole + b"da"):
        assert read(*chunks, limits=limits)[2] is None
    for chunks in several_cuts(whole + b"data: 3\n\n"):
        frames, framer, error = read(*chunks, limits=limits)
        assert isinstance(error, ResponseTooLargeError)
        assert [(None, b"1", True)] * 2 == frames
        assert b"" == framer.head


def test_the_head_of_a_body_without_frames_is_kept() -> None:
    """At most 8 KiB of it, until a frame comes."""
    for chunks in several_cuts(b'{"error": "x"}'):
        assert b'{"error": "x"}' == read(*chunks)[1].head
    framer = SseFramer()
    framer.receive(b"<p>" + b"x" * 10_000)
    framer.receive(b"more")
    assert b"<p>" + b"x" * 8189 == framer.head
    framer = SseFramer()
    framer.receive(b"data: a\n\n")
    assert b"data: a\n\n" == framer.head
    list(framer.frames())
    assert b"" == framer.head
    framer.receive(b"data: b\n\n")
    assert [(None, b"b", True)] == list(framer.frames())


def test_a_framer_that_is_over_keeps_nothing() -> None:
    """Empty pieces included, of which there may be any number."""
    framer = SseFramer()
    list(framer.close())
    for _ in range(3):
        framer.receive(b"")
        framer.receive(b"abc")
    assert 0 == framer.bytes_seen
    assert [] == list(framer.frames())


def test_hostile_names_are_not_all_remembered() -> None:
    """The memory of name lines has a bound in number and length; what comes out is the same."""
    names = [f"n{i}" for i in range(200)] + ["x" * 500]
    data = b"".join(b"event: %s\ndata: 1\n\n" % name.encode() for name in names)
    frames, framer, _ = read(data)
    assert names == [name for name, _, _ in frames]
    assert 64 == len(framer._names)


def test_a_long_line_is_copied_once() -> None:
    """Peak memory stays at about twice the event, plus a chunk."""
    size = 3_000_000
    chunks = [*cut(b"data: " + b"y" * size + b"\n\n<tail>", 16384), b"\n\ndata: z\n\n"]
    tracemalloc.start()
    try:
        frames, framer, _ = read(*chunks)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [(None, size), (None, 1)] == [(name, len(data)) for name, data, _ in frames]
    assert framer.saw_other_line
    assert peak < 2.2 * size


def test_long_lines_of_every_kind_are_read() -> None:
    """Those that are worked on where they lie follow the same rules."""
    long = b"q" * 300_000
    frames, framer, _ = read(
        b"data: a\n" + long + b"\n: " + long + b"\ndata:" + long + b"\n\n",
        long + b"\ndata: b\n\n",
        b"event: e\ndata:" + long,
    )
    assert [(None, b"a\n" + long, True), (None, b"b", True)] == frames
    assert framer.saw_other_line
    assert 1 == framer.comments


def test_work_does_not_grow_with_the_number_of_cuts() -> None:
    """Fragments are joined once a line, not once a chunk: counted, not timed."""
    joined = 0

    class Counting(SseFramer):
        __slots__ = ()

        def _take(self) -> bytes:
            nonlocal joined
            taken = super()._take()
            joined += len(taken)
            return taken

    data = b"data: " + b"x" * 5000 + b"\ndata: y\n\n"
    framer = Counting()
    out: list[RawFrame] = []
    for chunk in cut(data * 3, 1):
        framer.receive(chunk)
        out += framer.frames()
    assert [(None, b"x" * 5000 + b"\ny", True)] * 3 == out
    assert joined == 3 * len(data)


# An oracle of a few lines: the whole body at once, a regular expression for lines, no state machine.
def oracle(data: bytes) -> tuple[list[RawFrame], str]:
    lines = re.split(rb"\r\n|\r|\n", data.removeprefix(b"\xef\xbb\xbf"))[:-1]
    out: list[RawFrame] = []
    name, pending, last, values = b"", "", "", list[bytes]()
    for line in lines:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            last = pending
            if values:
                out.append(
                    (
                        None if name in {b"", b"message"} else name.decode("utf-8", "replace"),
                        b"\n".join(values),
                        True,
                    )
                )
            name, values = b"", []
        elif field == b"data":
            values.append(value)
        elif field == b"event":
            name = value
        elif field == b"id" and b"\0" not in value:
            pending = value.decode("utf-8", "replace")
    return out, last


tokens = st.sampled_from(
    [
        *(
            b"data: ",
            b"data:",
            b"data",
            b"event: a",
            b"event: message",
            b"event",
            b"id: 1",
            b"id: \0",
            b"retry: 2",
        ),
        *(b":", b": c", b"\n", b"\n", b"\n\n", b"\r", b"\r\n", b"x", b" ", b"\xef\xbb\xbf", b"\xc3", b"d"),
    ]
)
bodies = st.lists(tokens, max_size=40).map(b"".join)


def cut_at(data: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(bodies, st.lists(st.integers(0, 10_000), max_size=8))
def test_any_cutting_gives_what_the_oracle_gives(data: bytes, places: list[int]) -> None:
    """Frames and last id, for bodies made of all the tokens of the format."""
    expected, last = oracle(data)
    for chunks in (cut_at(data, places), cut(data, 1)):
        frames, framer, error = read(*chunks)
        assert error is None
        assert expected == frames
        assert last == framer.last_event_id
        assert len(data) == framer.bytes_seen


@given(
    bodies,
    st.lists(st.integers(0, 10_000), max_size=8),
    st.builds(
        Limits,
        max_line_bytes=st.integers(1, 30),
        max_event_bytes=st.integers(1, 30),
        max_data_lines=st.integers(1, 4),
        max_events=st.integers(1, 4),
        max_response_bytes=st.integers(1, 120),
    ),
)
def test_any_cutting_gives_the_same_ending(data: bytes, places: list[int], limits: Limits) -> None:
    """Also where a bound is passed: the same frames, then the same error."""
    whole, _, expected = read(data, limits=limits, eof="vendor")
    for chunks in (cut_at(data, places), cut(data, 1)):
        frames, _, error = read(*chunks, limits=limits, eof="vendor")
        assert whole == frames
        assert (type(expected), str(expected)) == (type(error), str(error))


@given(bodies, st.lists(st.integers(0, 10_000), max_size=8), st.lists(st.integers(0, 3), max_size=9))
def test_it_does_not_matter_when_frames_are_asked_for(
    data: bytes, places: list[int], takes: list[int]
) -> None:
    """After each chunk none, some or all of them: nothing is lost, doubled or out of order."""
    framer = SseFramer()
    out: list[RawFrame] = []
    for chunk, take in zip(cut_at(data, places), itertools.chain(takes, itertools.repeat(0)), strict=False):
        framer.receive(chunk)
        out += itertools.islice(framer.frames(), take)
    out += framer.close()
    assert oracle(data)[0] == out


@given(bodies)
def test_every_frame_is_out_with_its_last_byte(data: bytes) -> None:
    """Byte by byte, after k bytes all frames are out that the first k bytes complete."""
    framer = SseFramer()
    out: list[RawFrame] = []
    for k in range(1, len(data) + 1):
        framer.receive(data[k - 1 : k])
        out += framer.frames()
        assert oracle(data[:k])[0] == out
