"""What the framers share: bytes come in here and wait until a line is whole."""

from __future__ import annotations

from io import BytesIO
from typing import ClassVar, NoReturn, TypeAlias

from semflux.errors import FrameTooLargeError, ResponseTooLargeError, SemfluxError
from semflux.wire.limits import DEFAULT_LIMITS, Limits

RawFrame: TypeAlias = "tuple[str | None, bytes, bool]"
"""One frame as the hot path passes it: the event's name (None for the default, "message"), its data,
and False where the body ended before the frame did. A plain tuple, since it is made once a frame."""

# As numbers: `10 in chunk` is ten times as fast as `b"\n" in chunk`, which tries its left side as one first.
LF = 10
"""The byte LF."""
CR = 13
"""The byte CR."""
COLON = 58
"""The byte of a colon."""

MAX_HEAD_BYTES = 8192
"""Bytes that `Framer.head` keeps."""

_BOM = b"\xef\xbb\xbf"


class Intake:
    """Takes bytes, counts them, and joins fragments only once one of them holds a line end.

    Joining any earlier would make tiny chunks quadratic; looking any later would hold a frame back.
    """

    __slots__ = (
        "_alarm",
        "_failure",
        "_fresh",
        "_head",
        "_held",
        "_lines",
        "_max_line",
        "_over",
        "_parts",
        "_shut",
        "_start",
        "bytes_seen",
        "comments",
        "frames_seen",
        "last_event_id",
        "limits",
        "ready",
        "retry",
        "saw_other_line",
        "unterminated",
    )

    _cr_ends_line: ClassVar[bool]

    limits: Limits
    """The bounds that this framer keeps."""
    bytes_seen: int
    """Bytes received so far, those beyond *max_response_bytes* included up to the chunk that crossed it."""
    frames_seen: int
    """Frames handed out so far; while one is being looked at, its own number, counted from 1."""
    last_event_id: str
    """The id that the last blank line has committed, for a Last-Event-ID header; "" when there is none."""
    retry: int | None
    """The reconnection time in milliseconds, at most an hour; None until the server named one."""
    comments: int
    """Comment lines so far."""
    saw_other_line: bool
    """True once a whole line was neither blank nor a comment nor a field of the standard: a hint that
    the body is no event stream. Always False for NDJSON, where that is found out as bad JSON."""
    ready: bool
    """True if `frames()` has something to do; asking it for nothing costs as much as a frame."""
    unterminated: bool
    """True once `close()` has found that the body ended inside a line."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.bytes_seen = 0
        self.frames_seen = 0
        self.last_event_id = ""
        self.retry: int | None = None
        self.comments = 0
        self.saw_other_line = False
        self.unterminated = False
        self._parts: list[bytes] = []  # fragments not looked at yet
        self._held = 0  # bytes in them
        self._lines: BytesIO | None = None  # whole lines being worked on; it remembers how far we are
        self._fresh = False  # one of them holds a line end
        self.ready = False
        self._start = True  # no byte was looked at: a BOM may still come
        self._head = bytearray()
        self._alarm = -1  # receive() takes the slow way once bytes_seen is above; at first for the head
        self._shut = False  # closed, failed or over: nothing more comes in
        self._over = False  # max_response_bytes was passed
        self._failure: SemfluxError | None = None
        self._max_line = limits.max_line_bytes

    @property
    def head(self) -> bytes:
        """The first 8 KiB of a body that has given no frame yet, to find out what it is instead.

        Empty once a frame came.
        """
        return b"" if self.frames_seen else bytes(self._head)

    def receive(self, chunk: bytes) -> bool:
        """Store *chunk*, which may be cut anywhere; nothing is parsed yet. True if `frames` has work to do.

        What comes after `close()`, after a failure or beyond *max_response_bytes* is dropped.
        """
        self.bytes_seen = seen = self.bytes_seen + len(chunk)
        if seen > self._alarm:
            chunk = self._look_at(chunk)
            if not chunk:
                return self.ready
        self._parts.append(chunk)
        self._held += len(chunk)
        if not self._fresh:
            if LF in chunk or (self._cr_ends_line and CR in chunk):
                self._fresh = self.ready = True
            elif self._held > self._max_line:
                self.ready = True
        return self.ready

    def single(self, chunk: bytes) -> RawFrame | None:
        """The frame of *chunk*, if it is exactly one whole frame of the usual form and nothing waits before it.

        Else None, and the chunk is still to be received.
        """
        return None

    def _look_at(self, chunk: bytes) -> bytes:
        """The part of *chunk* that is taken; what every chunk need not be asked is asked here."""
        if self._shut:
            self.bytes_seen -= len(chunk)
            return b""
        bound = self.limits.max_response_bytes
        if self.bytes_seen > bound:
            # Cut at the bound itself, so that the frames before it are the same however the bytes come.
            chunk = chunk[: bound - self.bytes_seen]
            self._over = True
            self._stop()
        if self.frames_seen:
            self._head = bytearray()
        else:
            self._head += chunk[: MAX_HEAD_BYTES - len(self._head)]
        if not self._shut and (self.frames_seen or len(self._head) == MAX_HEAD_BYTES):
            self._alarm = bound
        return chunk

    def _stop(self) -> None:
        """Take nothing more in."""
        self._shut = self.ready = True
        self._alarm = -1

    def _take(self) -> bytes:
        """All bytes that wait, joined, the BOM of the body's start removed."""
        parts = self._parts
        joined = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self._held = 0
        self._fresh = False
        if self._start:
            self._start = False
            if joined.startswith(_BOM):
                joined = joined[3:]
        return joined

    def _put_back(self, rest: bytes) -> None:
        """Let the unfinished line *rest* wait for its end, before what came in meanwhile."""
        self._parts.insert(0, rest)
        self._held += len(rest)

    def _settle(self) -> None:
        """All lines are done: raise if the unfinished one, or the response, is over its bound."""
        self.ready = self._shut
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        if (
            self._start
            and not self._over
            and self._held < len(_BOM)
            and _BOM.startswith(b"".join(self._parts))
        ):
            return  # perhaps a BOM, which is no part of the line, in pieces
        if self._held > self._max_line and self._start:
            self._put_back(self._take())  # a BOM is no part of the line
        if self._held > self._max_line:
            self._fail_line()
        if self._over:
            bound = self.limits.max_response_bytes
            self._fail(
                ResponseTooLargeError(f"the response is larger than max_response_bytes ({bound} bytes)")
            )

    def _check_count(self) -> None:
        """Raise if the frame about to be handed out is one too many."""
        if self.frames_seen >= self.limits.max_events:
            bound = self.limits.max_events
            self._fail(ResponseTooLargeError(f"the response has more than max_events ({bound}) frames"))

    def _fail_line(self) -> NoReturn:
        self._fail(FrameTooLargeError(f"a line is longer than its bound of {self._max_line} bytes"))

    def _fail(self, error: SemfluxError) -> NoReturn:
        """End this framer with *error*, which every later call raises again."""
        self._failure = error
        self._lines = None
        self._parts.clear()
        self._held = 0
        self._fresh = False
        self._stop()
        raise error


__all__ = ("COLON", "CR", "LF", "MAX_HEAD_BYTES", "Intake", "RawFrame")
