"""`frames`, the public door: any chunks in, `Frame` values out."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

import semflux.wire
from semflux.errors import ConfigurationError, FrameTooLargeError
from semflux.frozen import EMPTY
from semflux.wire import Frame, Framing, Limits, NdjsonFramer, SseFramer, framer, frames

SSE = b"event: e\nid: 1\nretry: 20\ndata: a\n\ndata: \xff\n\ndata: tail"


def test_frames_of_an_event_stream_carry_what_is_in_force() -> None:
    """The id and the retry stay; the event's name does not; text is decoded, bad UTF-8 replaced."""
    expected = [
        Frame(event="e", data="a", id="1", retry=20),
        Frame(data="\ufffd", id="1", retry=20),
    ]
    assert expected == list(frames(SSE, "sse"))
    assert [*expected, Frame(data="tail", id="1", retry=20, complete=False)] == list(
        frames([SSE], "sse", eof="vendor")
    )


def test_a_frame_says_what_it_lacks() -> None:
    """The defaults of `Frame`, and those of a stream that names nothing."""
    (frame,) = frames(b"data: a\n\n", "sse")
    assert (frame.event, frame.id, frame.retry, frame.headers, frame.complete) == (
        "message",
        "",
        None,
        EMPTY,
        True,
    )
    (frame,) = frames(b"{}", "ndjson")
    assert frame == Frame(event="message", data="{}", id=None, retry=None, headers=EMPTY, complete=False)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        frame.data = "x"  # type: ignore[misc]  # the point of the test


@pytest.mark.parametrize(
    "chunks",
    [
        SSE,
        bytearray(SSE),
        memoryview(SSE),
        [SSE],
        [bytearray(SSE)],
        [SSE[:5], memoryview(SSE)[5:], b""],
        io.BytesIO(SSE),
        (SSE[i : i + 1] for i in range(len(SSE))),
    ],
)
def test_bytes_may_come_in_any_form(chunks: Any) -> None:
    """All at once, in any cut, from a file opened in binary mode."""
    assert [frame.data for frame in frames(chunks, "sse")] == ["a", "\ufffd"]


def test_the_stream_tells_its_last_id_and_retry() -> None:
    """As they are at the frame just given."""
    stream = frames(b"id: 1\ndata: a\n\nid: 2\nretry: 5\ndata: b\n\n", "sse")
    assert iter(stream) is stream
    assert (stream.last_event_id, stream.retry) == ("", None)
    seen = [(frame.data, stream.last_event_id, stream.retry) for frame in stream]
    assert seen == [("a", "1", None), ("b", "2", 5)]


def test_a_chunk_is_taken_only_when_it_is_needed() -> None:
    """What is good is out before the next chunk, and the failure it may bring, is asked for."""
    taken = 0

    def chunks() -> Iterator[bytes]:
        nonlocal taken
        for chunk in (b"data: 1\n\ndata: 2\n\n", b"data: 3\n\n"):
            taken += 1
            yield chunk
        raise ConnectionResetError("the source failed")

    stream = frames(chunks(), "sse")
    assert taken == 0
    assert [(next(stream).data, taken) for _ in range(3)] == [("1", 1), ("2", 1), ("3", 2)]
    with pytest.raises(ConnectionResetError):
        next(stream)
    assert list(stream) == []


def test_one_large_chunk_is_worked_on_in_pieces() -> None:
    """The same frames, and a bound passed late costs nothing that came before."""
    data = b"data: x\n\n" * 20_000 + b"data: " + b"y" * 100
    stream = frames(data, "sse", limits=Limits(max_line_bytes=50))
    assert sum(1 for _ in zip(range(20_000), stream, strict=False)) == 20_000
    with pytest.raises(FrameTooLargeError):
        next(stream)


def test_each_framing_has_its_framer() -> None:
    """With the limits it was given."""
    limits = Limits(max_events=7)
    sse, ndjson = framer("sse", eof="vendor", limits=limits), framer("ndjson", limits=limits)
    assert isinstance(sse, SseFramer)
    assert isinstance(ndjson, NdjsonFramer)
    assert sse.limits is ndjson.limits is limits


def test_a_wrong_call_is_told_what_to_write() -> None:
    """At once, not at the first frame, where that can be."""
    anything: Any = frames
    with pytest.raises(ConfigurationError, match='there are "sse" and "ndjson"'):
        anything(b"", "eventstream")
    with pytest.raises(ConfigurationError, match='"strict" or "vendor"'):
        anything(b"", "sse", eof="lenient")
    with pytest.raises(ConfigurationError, match="encode"):
        anything("data: x\n\n", "sse")
    with pytest.raises(ConfigurationError, match="binary mode"):
        next(anything(["data: x\n\n"], "sse"))


def test_limits_are_positive_whole_numbers() -> None:
    """None of them can be switched off."""
    wrong: Any = Limits
    for field in attrs.fields(Limits):
        with pytest.raises(ValueError, match=field.name):
            wrong(**{field.name: 0})
        with pytest.raises(TypeError, match=field.name):
            wrong(**{field.name: 1.5})


def test_all_names_are_there() -> None:
    """The room's own list."""
    assert [name for name in semflux.wire.__all__ if not hasattr(semflux.wire, name)] == []


@pytest.mark.parametrize("framing", ["sse", "ndjson"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_bom_in_pieces_is_no_line_that_is_too_long(framing: Framing, size: int) -> None:
    """It is no part of the first line, however small the bound of lines and however it is cut."""
    data = b"\xef\xbb\xbf"
    made = framer(framing, limits=Limits(max_line_bytes=1))
    for start in range(0, len(data), size):
        made.receive(data[start : start + size])
        assert list(made.frames()) == []
    assert list(made.close()) == []
