"""The decoder: bytes of one step in, drafts out. Framer and dialect together, without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from semflux.dialects.base import Dialect, Out, Parser, ParserOptions
from semflux.errors import (
    BadFrameError,
    EmptyResponseError,
    FrameTooLargeError,
    JsonTooDeepError,
    NotAStreamError,
    ResponseTooLargeError,
    TruncatedStreamError,
)
from semflux.state import RunState
from semflux.wire.framing import framer
from semflux.wire.json import decode as decode_json

_NOTHING: Iterator[Any] = iter(())
_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_HEAD = 4096  # bytes in which the first one that is not blank is looked for


class Decoder:
    """Turns the bytes of one step into drafts, lazily: what is good before a fault comes out first.

    `receive` stores bytes and `events` pulls drafts out of them, one at a time; an iterator may be
    left at any draft, and a new one goes on from there. `close` says that the bytes have ended and
    gives the rest; `flush` gives only what was held back, for a stream that fails.

    A body that is one JSON object instead of a stream (a whole answer, or an error) is recognized by
    its first byte and gives the same events.

    Raises (from `events` and `close`): `ProviderError`, `FrameError`, `BodyError`,
    `TruncatedStreamError`, and `RepairError` in strict mode.
    """

    __slots__ = ("_framer", "_head", "_json", "_json_size", "_pending", "_state", "dialect", "done", "parser")

    def __init__(self, dialect: Dialect, state: RunState, options: ParserOptions | None = None) -> None:
        state.boundaries = dialect.boundaries
        self.dialect: Dialect = dialect
        self.parser: Parser = dialect.parser(Out(state, dialect.name), options or ParserOptions())
        self.done: bool = False
        """True once the step is over: what comes after its end marker is not looked at."""
        self._state = state
        self._framer = framer(dialect.framing, eof="vendor", limits=state.limits)
        self._head: bytes | None = b"" if dialect.framing == "sse" else None
        self._json: list[bytes] | None = None
        self._json_size = 0
        self._pending: Iterator[Any] | None = None

    @property
    def finished(self) -> bool:
        """True once the provider's finish signal has come."""
        return self.parser.finished

    @property
    def bytes_seen(self) -> int:
        """Bytes of this step so far."""
        return self._framer.bytes_seen if self._json is None else self._json_size

    def expect_json(self) -> None:
        """The answer's content type says that it is one JSON value, not a stream."""
        if self._json is None:
            self._json = [self._head or b""]
            self._json_size = len(self._json[0])
            self._head = None

    def receive(self, data: bytes) -> bool:
        """Store *data*; nothing is looked at before `events` is. False if that has nothing to look at yet."""
        if self.done:
            if data:
                self._state.ledger.note("bytes_after_end", len(data))
            return True
        if self._head is not None:
            # An object where a stream should be: no line of an event stream starts like this.
            head = self._head + data
            start = head[:_HEAD].removeprefix(_BOM).lstrip(_BLANK)[:1] if not _BOM.startswith(head) else b""
            if not start and len(head) < _HEAD:
                self._head = head
                return False
            self._head = None
            if start in (b"{", b"["):
                self._json = []
            data = head
        if self._json is None:
            return self._framer.receive(data)
        self._json.append(data)
        self._json_size += len(data)
        return True

    def take(self, data: bytes) -> tuple[Any, ...] | Iterator[Any] | None:
        """The short way of a chunk that is exactly one frame: its drafts. None if it must be received.

        A tuple is all that follows from it; an iterator is what `events` would give.
        """
        if self._head is not None or self._json is not None or self._pending is not None or self.done:
            return None
        frame = self._framer.single(data)
        if frame is None:
            return None
        parser = self.parser
        try:
            drafts: Any = parser.decode(frame[0], frame[1])
        except BadFrameError as error:
            self._bad_frame(error)
            return ()
        if drafts.__class__ is tuple and not parser.ended:
            return drafts
        self._pending = self._run(drafts)
        return self._pending

    def events(self) -> Iterator[Any]:
        """The drafts that the bytes so far give, each made when it is asked for."""
        if self._pending is None:
            if self._json is None and not self._framer.ready:
                # Small chunks: most of them complete nothing.
                return _NOTHING
            self._pending = self._run()
        return self._pending

    def _run(self, first: Iterable[Any] | None = None) -> Iterator[Any]:
        """*first*: what a frame gives that was taken out of the framer already."""
        if first is not None:
            try:
                try:
                    yield from first
                except BadFrameError as error:
                    self._bad_frame(error)
                if self.parser.ended:
                    yield from self._end()
                    return
            finally:
                self._pending = None
        if self._json is not None:
            if self._json_size > self._state.limits.max_event_bytes:
                raise ResponseTooLargeError(
                    f"the answer passed the bound of {self._state.limits.max_event_bytes} bytes", kind="bytes"
                )
            self._pending = None
            return
        parser = self.parser
        decode = parser.decode
        try:
            for event, data, _ in () if self.done else self._framer.frames():
                try:
                    yield from decode(event, data)
                except BadFrameError as error:
                    self._bad_frame(error)
                if parser.ended:
                    yield from self._end()
                    return
        except FrameTooLargeError:
            if not parser.finished:
                raise
            self._state.ledger.note("bad_frame_after_finish")
            yield from self._end()
        finally:
            self._pending = None

    def _bad_frame(self, error: BadFrameError) -> None:
        if not self.parser.finished:
            number = self._framer.frames_seen
            raise type(error)(
                f"frame {number} of the {self.dialect.name} stream is bad: {error}",
                kind=error.kind,
                provider=error.provider or self.dialect.name,
            ) from None
        self._state.ledger.note("bad_frame_after_finish")

    def close(self) -> Iterator[Any]:
        """The bytes have ended: the drafts of what was still open."""
        if self._head is not None:
            self._framer.receive(self._head)
            self._head = None
        yield from self.events()
        if self.done:
            return
        if self._json is not None:
            yield from self._whole(b"".join(self._json))
            return
        try:
            for event, data, _ in self._framer.close():
                if self._acceptable(data):
                    try:
                        yield from self.parser.decode(event, data)
                    except BadFrameError as error:
                        self._bad_frame(error)
        except FrameTooLargeError:
            if not self.finished:
                raise
            self._state.ledger.note("bad_frame_after_finish")
        if not self.finished:
            yield from self.flush()
            raise self._truncated()
        if not self.parser.ended:
            self.parser.missing_end()
        yield from self._end()

    def flush(self) -> Iterator[Any]:
        """What the parser held back; for a stream that fails before its end."""
        if not self.done:
            yield from self.parser.finish()

    def _acceptable(self, data: bytes) -> bool:
        """True if a frame that the end of the bytes cut short is whole all the same."""
        if data.strip() == self.dialect.end_marker:
            return True
        try:
            decode_json(data, self._state.limits)
        except BadFrameError:
            self._state.ledger.note("cut_frame")
            return False
        return True

    def _end(self) -> Iterator[Any]:
        yield from self.parser.finish()
        if self._framer.comments:
            self._state.ledger.note("comment", self._framer.comments)
        self.done = True
        yield self.parser.out.end

    def _whole(self, data: bytes) -> Iterator[Any]:
        try:
            yield from self.parser.decode_whole(data.removeprefix(_BOM))
        except BadFrameError as error:
            if error.kind != "json" or isinstance(error, JsonTooDeepError):
                raise
            if data.rstrip()[-1:] in (b"}", b"]"):
                raise NotAStreamError(
                    "the answer is neither a stream nor JSON", provider=self.dialect.name
                ) from None
            raise TruncatedStreamError(
                "the answer ended inside its JSON", provider=self.dialect.name
            ) from None
        yield from self._end()

    def _truncated(self) -> Exception:
        name = self.dialect.name
        seen = self._framer
        if not seen.bytes_seen:
            return EmptyResponseError("the answer has no body", provider=name, phase="eof")
        if seen.saw_other_line and not seen.frames_seen:
            return NotAStreamError(
                f"the body holds no frame of a {self.dialect.framing} stream: a proxy's page, or the wrong dialect",
                provider=name,
            )
        return TruncatedStreamError(
            f"the stream ended after {seen.bytes_seen} bytes without the finish signal of {name}",
            provider=name,
        )


__all__ = ("Decoder",)
