"""A stream that is cut at any byte: a prefix of its events, then exactly one terminal event."""

from __future__ import annotations

import pytest

from semflux.errors import EmptyResponseError, TruncatedStreamError
from semflux.events import ChatEventType
from tests.frames import cuts, meaning, read
from tests.golden import GOLDEN, IDS, finish_at

T = ChatEventType
MADE = {
    T.TEXT_END,
    T.THINKING_END,
    T.TOOL_CALL_END,
    T.SERVER_TOOL_RESULT,
    T.STEP_END,
    T.RESPONSE_END,
    T.ERROR,
}
"""What may be made to close a stream."""


@pytest.mark.parametrize("dialect, name, frames", GOLDEN, ids=IDS)
def test_cut_at_every_byte_a_stream_gives_a_prefix_and_one_end(
    dialect: str, name: str, frames: list[bytes]
) -> None:
    """TruncatedStreamError unless the finish signal was there. Of what was held back (half a tag, half a pair, held
    input) what came is told before the ends."""
    data = b"".join(frames)
    whole = [(event.type, event.text, event.tool_call_id) for event in read(data, dialect).events]
    finish = finish_at(dialect, frames)
    for size in range(len(data) + 1):
        seen = read(data[:size], dialect)
        got = [(event.type, event.text, event.tool_call_id) for event in seen.events]
        if size >= finish:
            assert seen.error is None, size
        else:
            assert type(seen.error) is (TruncatedStreamError if size else EmptyResponseError), size
            same = next(
                (i for i, pair in enumerate(zip(got, whole, strict=False)) if pair[0] != pair[1]), len(got)
            )
            held = {
                T.TEXT_START,
                T.TEXT_DELTA,
                T.THINKING_START,
                T.THINKING_DELTA,
                T.TOOL_CALL_ARGS_DELTA,
                T.SERVER_TOOL_ARGS_DELTA,
            }
            assert {event[0] for event in got[same:]} <= MADE | held, size
            assert seen.response.partial
            assert (
                seen.response.full_text
                in "".join(text or "" for kind, text, _ in whole if kind is T.TEXT_DELTA) + "<think>"
            )


@pytest.mark.parametrize("dialect, name, frames", GOLDEN, ids=IDS)
def test_bytes_cut_in_pieces_of_any_size_give_the_same(dialect: str, name: str, frames: list[bytes]) -> None:
    """One byte at a time, three, seven, a hundred; frame by frame; with a different line end."""
    data = b"".join(frames)
    whole = meaning(read(data, dialect))

    for size in (1, 3, 7, 100):
        assert meaning(read(cuts(data, size), dialect)) == whole
    assert meaning(read(frames, dialect)) == whole
    for line_end in (b"\r\n", b"\r"):
        assert meaning(read(cuts(data.replace(b"\n", line_end), 5), dialect)) == whole
