"""`NdjsonFramer`: one JSON text a line, as Ollama streams.

Not handled, on purpose: JSON arrays streamed over lines and JSON texts without LFs between them;
their pieces come out as lines and fail as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import ClassVar

from semflux.wire.intake import LF, Intake, RawFrame
from semflux.wire.limits import DEFAULT_LIMITS, Limits

_NOTHING: Iterator[RawFrame] = iter(())
_WHITE = b" \t\r"


class NdjsonFramer(Intake):
    """Bytes in by `receive`, lines out by iterating `frames()`, then `close()` at the end of the body.

    Only LF ends a line, and a CR right before it goes with it; lines of JSON whitespace are skipped,
    as is a BOM at the very start. The guarantees are those of `semflux.wire.Framer`.
    """

    __slots__ = ("_plain", "lines_seen")

    _cr_ends_line: ClassVar[bool] = False

    lines_seen: int
    """Lines so far, skipped ones included: the number, from 1, of the line just handed out."""

    frames_seen: int

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(limits)
        self._max_line = min(limits.max_line_bytes, limits.max_event_bytes)
        self.lines_seen = 0
        self._plain = False  # nothing in them can pass a bound

    @property
    def frame_id(self) -> None:
        """Always None: lines have no ids."""
        return None

    def frames(self) -> Iterator[RawFrame]:
        """The lines that are complete so far, lazily; stop at any time and call again later to go on.

        Raises, after all that was good before it: `FrameTooLargeError` for a line over its bound,
        `ResponseTooLargeError` for too many bytes or frames.
        """
        return self._run() if self.ready else _NOTHING

    def close(self) -> Iterator[RawFrame]:
        """What is left when the body has ended; raises as `frames` does.

        A last line without its LF comes with complete=False: whole JSON in it is to be accepted.
        """
        yield from self._run()
        self._stop()
        line = self._take()
        if line:
            self.unterminated = True
            if line.strip(_WHITE):
                self._check_count()
                self.lines_seen += 1
                self.frames_seen += 1
                yield (None, line, False)

    def _run(self) -> Iterator[RawFrame]:
        while True:
            lines = self._lines
            if lines is None:
                if not self._fresh:
                    break
                lines = self._load()
            plain = self._plain
            for line in lines:
                if line[-1] != LF:
                    self._put_back(line)
                    break
                self.lines_seen += 1
                if line == b"\n":
                    continue
                if not plain and len(line) - 1 > self._max_line:
                    self._fail_line()
                line = line[:-2] if line[-2:] == b"\r\n" else line[:-1]  # noqa: PLW2901  # without its end
                # Nearly every line is an object; only others can be blank.
                if line[:1] != b"{" and not line.strip(_WHITE):
                    continue
                if not plain:
                    self._check_count()
                self.frames_seen += 1
                yield (None, line, True)
            self._lines = None
        self._settle()

    def _load(self) -> BytesIO:
        buffer = self._take()
        size = len(buffer)
        # No frame is shorter than a byte, so that fewer bytes than frames are left to give are safe.
        self._plain = size <= self._max_line and self.frames_seen + size < self.limits.max_events
        self._lines = lines = BytesIO(buffer)
        return lines


__all__ = ("NdjsonFramer",)
