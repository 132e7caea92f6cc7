"""`SseFramer`: server-sent events, as WHATWG HTML 9.2.5 and 9.2.6 define them.

https://html.spec.whatwg.org/multipage/server-sent-events.html

Not handled, on purpose: reconnection (a POST is never repeated by itself), and any charset but UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import ClassVar, Literal, NoReturn, TypeAlias

from semflux.errors import FrameTooLargeError
from semflux.wire.intake import COLON, CR, LF, Intake, RawFrame
from semflux.wire.limits import DEFAULT_LIMITS, Limits

Eof: TypeAlias = Literal["strict", "vendor"]
"""What becomes of an event that no blank line has ended when the body ends."""

MAX_RETRY_MS = 3_600_000
"""The longest reconnection time that is believed, in milliseconds: an hour."""

_MAX_NAMES = 64
_MAX_NAME_LINE = 128
_LONG_BYTES = 256 * 1024
_FIELD_STARTS = b"\ndeir"  # of a blank line and of the names data, event, id and retry
_NOTHING: Iterator[RawFrame] = iter(())


class SseFramer(Intake):
    """Bytes in by `receive`, frames out by iterating `frames()`, then `close()` at the end of the body.

    *eof* says what happens to an event without its blank line at the end: "strict" drops it, as the
    standard says; "vendor" hands it out with complete=False, since servers are known to forget that
    line after their last event. The guarantees are those of `semflux.wire.Framer`.
    """

    __slots__ = (
        "_data",
        "_data_bytes",
        "_dirty",
        "_eof",
        "_event",
        "_id",
        "_max_events",
        "_names",
        "_plain",
        "_safe_bytes",
        "_skip_lf",
    )

    _cr_ends_line: ClassVar[bool] = True

    frames_seen: int
    saw_other_line: bool
    comments: int
    retry: int | None
    last_event_id: str

    def __init__(self, limits: Limits = DEFAULT_LIMITS, eof: Eof = "strict") -> None:
        super().__init__(limits)
        self._eof = eof
        self._plain = False  # nothing in them can pass a bound
        self._safe_bytes = min(limits.max_line_bytes, limits.max_event_bytes)
        self._max_events = limits.max_events
        self._skip_lf = False  # the last byte looked at was a CR: an LF right after it belongs to it
        self._names: dict[bytes, str | None] = {}  # event lines seen before
        self._event: str | None = None
        self._data: list[bytes] = []
        self._data_bytes = 0  # with the LF that joins each value to the next
        self._dirty = False  # data or an id waits for the blank line
        self._id = ""

    @property
    def frame_id(self) -> str | None:
        """The id of the frame handed out last, "" when none is in force.

        It differs from *last_event_id* only for a frame that is not complete: its id was read, but
        never committed.
        """
        return self._id

    def frames(self) -> Iterator[RawFrame]:
        """What is complete so far, lazily; stop at any time and call again later to go on.

        Raises, after all that was good before it: `FrameTooLargeError` for a line, an event or a
        number of data lines over its bound, `ResponseTooLargeError` for too many bytes or frames.
        """
        return self._run() if self.ready else _NOTHING

    def close(self) -> Iterator[RawFrame]:
        """What is left when the body has ended; raises as `frames` does.

        An event without its blank line is dropped ("strict") or comes with complete=False ("vendor",
        if it has data). In a last line without its end, *retry* is ignored: half a number is a wrong one.
        """
        yield from self._run()
        self._stop()
        line = self._take()
        if line:
            self.unterminated = True
            if self._eof == "vendor" and not line.startswith(b"retry"):
                self._field(line, len(line))
        if self._data and self._eof == "vendor":
            self._check_count()
            frame = (self._event, b"\n".join(self._data), False)
            self._reset()
            self.frames_seen += 1
            yield frame
        self._reset()

    def single(self, chunk: bytes) -> RawFrame | None:
        size = len(chunk)
        seen = self.bytes_seen + size
        if (
            self._parts
            or seen > self._alarm
            or self._lines is not None
            or self._dirty
            or self._skip_lf
            or self._start
            or self._event is not None
            or size > self._safe_bytes
            or self.frames_seen >= self._max_events
        ):
            return None
        event: str | None = None
        at, end = 0, chunk.find(b"\n")
        if end != size - 2:
            at = end + 1
            name = chunk[:at]
            if name not in self._names or chunk.find(b"\n", at) != size - 2:
                return None
            event = self._names[name]
        if chunk[at : at + 6] != b"data: " or chunk[-1] != LF or CR in chunk:
            return None
        self.bytes_seen = seen
        self.frames_seen += 1
        return event, chunk[at + 6 : -2], True

    def _run(self) -> Iterator[RawFrame]:
        while True:
            lines = self._lines
            if lines is None:
                if not self._fresh:
                    break
                lines = self._load()
            # All that a stopped caller needs to find again is in self; these are its copies.
            readline = lines.readline
            plain = self._plain
            names = self._names
            event = self._event
            quick = plain and not self._dirty
            for line in lines:
                if quick:
                    # Nearly every event is `data: ...`, with or without an `event: ...` line seen before.
                    if line[:6] == b"data: ":
                        after = readline()
                        if after == b"\n":
                            frame = (event, line[6:-1], True)
                            if event is not None:
                                event = self._event = None
                            self.frames_seen += 1
                            yield frame
                            continue
                        self._feed(line)
                        quick = False
                        if not after:
                            break
                        line = after  # noqa: PLW2901  # the line to go on with
                    elif line == b"\n":
                        if event is not None:
                            event = self._event = None
                        continue
                    elif line in names:
                        event = self._event = names[line]
                        continue
                if plain and line[-1] == LF:
                    # Floods of lines that say nothing must cost next to nothing.
                    first = line[0]
                    if first == COLON:
                        self.comments += 1
                        continue
                    if first not in _FIELD_STARTS:
                        self.saw_other_line = True
                        continue
                made = self._feed(line)
                event = self._event
                quick = plain and not self._dirty
                if made is not None:
                    self.frames_seen += 1
                    yield made
            self._lines = None
        self._settle()

    def _load(self) -> BytesIO:
        """Open what waits as lines that all end in LF, but for the last."""
        buffer = self._take()
        if self._skip_lf:
            self._skip_lf = False
            if buffer.startswith(b"\n"):
                buffer = buffer[1:]
        if CR in buffer:
            buffer = self._with_lf(buffer)
        size = len(buffer)
        if size > _LONG_BYTES:
            # A line of megabytes is worked on where it lies: a copy of it as a line, beside the buffer
            # and its data, would make three. What is behind it came with the last chunk.
            end = buffer.find(b"\n")
            if end > _LONG_BYTES:
                if not self._field(buffer, end):
                    self.saw_other_line = True
                buffer = buffer[end + 1 :]
                size = len(buffer)
        # No frame is shorter than a byte, so that fewer bytes than frames are left to give are safe.
        self._plain = size <= self._safe_bytes and self.frames_seen + size < self._max_events
        self._lines = lines = BytesIO(buffer)
        return lines

    def _with_lf(self, buffer: bytes) -> bytes:
        """*buffer* with LF for each of its line ends."""
        ends_in_cr = buffer.endswith(b"\r")
        if ends_in_cr:
            # A CR ends its line at once: waiting for the LF would hold back events that end in CR.
            self._skip_lf = True
            buffer = buffer[:-1] + b"\r\n"
        # Measured: replacing a single byte, twice, and comparing is four times as fast as replacing a pair.
        bare = buffer.replace(b"\r", b"")
        if bare.replace(b"\n", b"\r\n") == buffer:
            return bare
        return buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _feed(self, line: bytes) -> RawFrame | None:
        """Work on one line with its LF; the frame it completes, or None."""
        if line == b"\n":
            return self._dispatch()
        if line[-1] != LF:
            self._put_back(line)
        elif not self._field(line, len(line) - 1):
            self.saw_other_line = True
        return None

    def _field(self, block: bytes, end: int) -> bool:
        """Take in the line *block*[:*end*], which is not blank; False if it is nothing the standard knows."""
        if end > self._max_line:
            self._fail_line()
        if block.startswith(b"data:"):
            self._add_data(block[6:end] if block.startswith(b" ", 5) else block[5:end])
            return True
        if block.startswith(b":"):
            self.comments += 1
            return True
        line = block[:end]
        name, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"event":
            text = value.decode("utf-8", "replace")
            self._event = None if text in {"", "message"} else text
            if len(self._names) < _MAX_NAMES and end <= _MAX_NAME_LINE:
                self._names[line + b"\n"] = self._event
        elif name == b"id":
            if 0 not in value:
                self._dirty = True
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry":
            # bytes.isdigit() knows ASCII digits only; int() would take signs, spaces and underscores,
            # and raise beyond 4,300 digits.
            if value.isdigit():
                digits = value.lstrip(b"0") or b"0"
                self.retry = MAX_RETRY_MS if len(digits) > 7 else min(int(digits), MAX_RETRY_MS)
        elif line == b"data":
            self._add_data(b"")
        else:
            return False
        return True

    def _add_data(self, value: bytes) -> None:
        self._dirty = True
        self._data.append(value)
        self._data_bytes += len(value) + 1
        limits = self.limits
        if self._data_bytes - 1 > limits.max_event_bytes:
            bound = limits.max_event_bytes
            self._refuse(f"the data of an event is larger than max_event_bytes ({bound} bytes)")
        if len(self._data) > limits.max_data_lines:
            bound = limits.max_data_lines
            self._refuse(f"an event has more than max_data_lines ({bound}) data lines")

    def _dispatch(self) -> RawFrame | None:
        """The blank line: commit the id and hand out the event, if it has data."""
        self.last_event_id = self._id
        data = self._data
        if not data:
            self._reset()
            return None
        self._check_count()
        frame = (self._event, data[0] if len(data) == 1 else b"\n".join(data), True)
        self._reset()
        return frame

    def _reset(self) -> None:
        self._event = None
        self._dirty = False
        if self._data:
            self._data = []
            self._data_bytes = 0

    def _refuse(self, reason: str) -> NoReturn:
        self._data = []
        self._fail(FrameTooLargeError(reason))


__all__ = ("MAX_RETRY_MS", "Eof", "SseFramer")
