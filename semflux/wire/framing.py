"""The public face of the framers: `frames` for whole streams, `Framer` for what a decoder drives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, Protocol, TypeAlias

import attrs

from semflux.errors import ConfigurationError
from semflux.frozen import EMPTY
from semflux.wire.intake import RawFrame
from semflux.wire.limits import DEFAULT_LIMITS, Limits
from semflux.wire.ndjson import NdjsonFramer
from semflux.wire.sse import Eof, SseFramer

Framing: TypeAlias = Literal["sse", "ndjson"]
"""The framings that exist."""

_CUT_BYTES = 64 * 1024


class Framer(Protocol):
    """Cuts the bytes of one response body into frames. No I/O, no clock, one instance a body.

    Guarantees:

    * Order and no loss: the frames come in the order of their bytes, each once.
    * Any cutting of the bytes gives the same frames and the same ending.
    * Lazy: a frame is made when it is asked for, so whatever is good before a fault comes out first.
    * At once: a frame comes out with the byte that completes it.
    * Linear in the bytes, whatever the chunks; held memory is at most about twice the largest frame.
    * An iterator may be dropped at any time; the next one goes on where it stopped, and the old one is
      not to be used again. `receive` may be called while one is alive.
    * After an error nothing more comes: each later call raises it again, `receive` drops its bytes.

    Raises: `FrameTooLargeError` and `ResponseTooLargeError`, from `frames` and `close` only.
    """

    @property
    def bytes_seen(self) -> int:
        """Bytes received so far."""
        ...

    @property
    def frames_seen(self) -> int:
        """Frames handed out so far; while one is being looked at, its own number, counted from 1."""
        ...

    @property
    def last_event_id(self) -> str:
        """What to send as Last-Event-ID to go on from here; "" when there is nothing."""
        ...

    @property
    def frame_id(self) -> str | None:
        """The id of the frame handed out last, "" when none is in force; None if frames have no ids."""
        ...

    @property
    def retry(self) -> int | None:
        """The reconnection time that the server named, in milliseconds; None when it named none."""
        ...

    @property
    def comments(self) -> int:
        """Comment lines so far."""
        ...

    @property
    def ready(self) -> bool:
        """True if `frames()` has something to do: a whole line came, or a bound was passed."""
        ...

    @property
    def saw_other_line(self) -> bool:
        """True once a whole line did not belong to the framing: the body may be something else."""
        ...

    @property
    def unterminated(self) -> bool:
        """True once `close()` has found that the body ended inside a line."""
        ...

    @property
    def head(self) -> bytes:
        """The first 8 KiB of a body that has given no frame yet; empty once one came."""
        ...

    def receive(self, chunk: bytes) -> bool:
        """Store *chunk*; nothing is parsed yet."""
        ...

    def single(self, chunk: bytes) -> RawFrame | None:
        """The frame of *chunk*, if it is exactly one whole frame of the usual form and nothing waits before it;
        else None, and the chunk is still to be received. A short way: servers send one frame at a time."""
        ...

    def frames(self) -> Iterator[RawFrame]:
        """What is complete so far."""
        ...

    def close(self) -> Iterator[RawFrame]:
        """What is left when the body has ended."""
        ...


@attrs.frozen(kw_only=True)
class Frame:
    """One frame of a stream."""

    event: str = "message"
    """The event's name; "message" where the stream gave none."""
    data: str | bytes
    """Text, with U+FFFD for what was no UTF-8; bytes for framings whose frames are binary."""
    id: str | None = None
    """The id in force at this frame (ids stay until the next), "" if the stream has set none; None for
    framings without ids."""
    retry: int | None = None
    """The reconnection time in force, in milliseconds; None until the server named one."""
    headers: Mapping[str, object] = EMPTY
    """The frame's own headers; empty for framings without."""
    complete: bool = True
    """False where the body ended before the frame did."""


class Frames(Iterator[Frame]):
    """The frames of a stream of bytes, one at a time; iterate it once.

    It takes the next chunk only when all frames of the last one have been asked for. What the chunks'
    own iterator raises passes through, and ends this one.
    """

    __slots__ = ("_framer", "_frames")

    def __init__(self, framer: Framer, chunks: Iterable[bytes]) -> None:
        self._framer = framer
        self._frames = _pull(framer, chunks)

    @property
    def last_event_id(self) -> str:
        """The last id that a blank line has committed; "" when there is none."""
        return self._framer.last_event_id

    @property
    def retry(self) -> int | None:
        """The reconnection time that the server named last, in milliseconds; None when it named none."""
        return self._framer.retry

    def __iter__(self) -> Frames:
        return self

    def __next__(self) -> Frame:
        event, data, complete = next(self._frames)
        framer = self._framer
        return Frame(
            event="message" if event is None else event,
            data=data.decode("utf-8", "replace"),
            id=framer.frame_id,
            retry=framer.retry,
            complete=complete,
        )


def _pull(framer: Framer, chunks: Iterable[bytes]) -> Iterator[RawFrame]:
    for chunk in chunks:
        if isinstance(chunk, str):
            raise ConfigurationError("frames are made of bytes, not text: open the file in binary mode")
        # In pieces, so that a whole file as one chunk is not copied as a whole several times.
        for start in range(0, len(chunk), _CUT_BYTES):
            framer.receive(bytes(chunk[start : start + _CUT_BYTES]))
            yield from framer.frames()
    yield from framer.close()


def framer(framing: Framing, *, eof: Eof = "strict", limits: Limits = DEFAULT_LIMITS) -> Framer:
    """A new framer for one body; *eof* as for `frames`.

    Raises `ConfigurationError` for a *framing* or *eof* that does not exist.
    """
    if eof not in {"strict", "vendor"}:
        raise ConfigurationError(f'unknown eof {eof!r}: write "strict" or "vendor"')
    if framing == "sse":
        return SseFramer(limits, eof)
    if framing == "ndjson":
        return NdjsonFramer(limits)
    raise ConfigurationError(f'unknown framing {framing!r}: there are "sse" and "ndjson"')


def frames(
    chunks: Iterable[bytes] | bytes,
    framing: Framing,
    *,
    eof: Eof = "strict",
    limits: Limits = DEFAULT_LIMITS,
) -> Frames:
    """The frames of *chunks*, which are the bytes of one body cut anywhere, or all of them at once.

    *eof* concerns an SSE event that no blank line has ended: "strict" drops it, "vendor" gives it with
    complete=False. A last NDJSON line without its LF always comes with complete=False.

    Raises `ConfigurationError` at once for a *framing* that does not exist or text for bytes; while
    iterated, `FrameTooLargeError` and `ResponseTooLargeError` after all that was good before.
    """
    made = framer(framing, eof=eof, limits=limits)
    if isinstance(chunks, (bytes, bytearray, memoryview)):
        return Frames(made, (bytes(chunks),))
    if isinstance(chunks, str):
        raise ConfigurationError("frames are made of bytes, not text: text.encode() makes them")
    return Frames(made, chunks)


__all__ = ("Frame", "Framer", "Frames", "Framing", "framer", "frames")
