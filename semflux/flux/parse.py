"""`parse`: bytes from anywhere become a `ChatStream`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Any, TypeAlias, cast, get_args

from reactivex import abc

from semflux.decoder import Decoder
from semflux.dialects import dialect as find_dialect
from semflux.dialects.base import ParserOptions
from semflux.errors import AlreadyConsumedError, ConfigurationError
from semflux.events import ChatEvent
from semflux.flux.chat import ChatStream
from semflux.flux.flux import Flux
from semflux.flux.iterate import EventIterator
from semflux.flux.pump import Pump
from semflux.flux.source import ChatSource
from semflux.operators.hooks import Hooks
from semflux.operators.run import Run
from semflux.operators.waking import until_done
from semflux.request import ThinkTags
from semflux.state import RepairLedger
from semflux.wire.limits import Limits

ByteSource: TypeAlias = (
    bytes
    | bytearray
    | memoryview
    | str
    | PathLike[str]
    | IO[bytes]
    | Iterable[bytes]
    | AsyncIterable[bytes]
    | abc.ObservableBase[bytes]
)
"""What `parse` reads: bytes; the path of a file, as a `str` or `Path`; an open binary file; a synchronous or
asynchronous iterable of bytes; an observable of bytes."""

_READ_BYTES = 16 * 1024

_END: Any = object()


class _NowPump(Pump):
    """Parses a source that has its bytes at once, inside `subscribe`."""

    waits = False

    def __init__(
        self, run: Run, decoder_of: Callable[[Any], Decoder], chunks: Callable[[], Iterator[bytes]]
    ) -> None:
        super().__init__(run)
        self._decoder_of = decoder_of
        self._open = chunks
        self._chunks: Iterator[Any] | None = None

    def _begin(self) -> None:
        self._begin_step(self._decoder_of)

    def _more(self) -> bytes | None:
        try:
            if self._chunks is None:
                self._chunks = self._open()
            data = next(self._chunks, _END)
        finally:
            if self.over:
                # The source itself, or another thread while it ran, has brought the end about.
                self._release()
        return None if data is _END else _checked(data)

    def _release(self) -> None:
        if getattr(self._chunks, "gi_running", False):
            # A generator can't be closed while it runs: `_more` does it.
            return
        close = getattr(self._chunks, "close", None)
        self._chunks = None
        if close is not None:
            try:
                close()
            except Exception as error:
                Hooks.drop_error(error)


class _AsyncPump(Pump):
    """Parses a source that is waited for."""

    def __init__(
        self, run: Run, decoder_of: Callable[[Any], Decoder], chunks: Callable[[], AsyncIterator[bytes]]
    ) -> None:
        super().__init__(run)
        self._decoder_of = decoder_of
        self._open = chunks
        self._chunks: AsyncIterator[bytes] | None = None
        self._closing: asyncio.Task[None] | None = None

    def _begin(self) -> None:
        self._begin_step(self._decoder_of)

    async def _read(self) -> None:
        if self._chunks is None:
            self._chunks = aiter(self._open())
        try:
            data = await anext(self._chunks)
        except StopAsyncIteration:
            self._ended()
        except asyncio.CancelledError:
            await self._end_chunks()
            raise
        else:
            self._receive(_checked(data))
        finally:
            if self.over:
                # It can't be closed while it runs, so whoever ended the stream meanwhile left it open.
                await self._end_chunks()

    async def _end_chunks(self) -> None:
        chunks, self._chunks = self._chunks, None
        close = getattr(chunks, "aclose", None)
        if close is not None:
            try:
                await close()
            except Exception as error:
                Hooks.drop_error(error)

    async def released(self) -> None:
        if self._closing is not None:
            await until_done(self._closing)

    def _release(self) -> None:
        chunks, loop = self._chunks, self._loop
        if isinstance(chunks, EventIterator):
            chunks.dispose()
        elif chunks is not None and self._reader is None and loop is not None and not loop.is_closed():
            self._closing = loop.create_task(self._end_chunks(), name="semflux-close")


_bytes: Callable[[Any], bytes] = bytes
_path: Callable[[Any], Path] = Path


def _checked(data: Any) -> bytes:
    if isinstance(data, bytes):
        return data
    if isinstance(data, (bytearray, memoryview)):
        return _bytes(data)
    raise ConfigurationError(
        f"parse() reads bytes, but its source gave {type(data).__name__}; open files with 'rb', encode text first"
    )


def parse(
    source: ByteSource,
    *,
    dialect: str,
    strict: bool = False,
    think_tags: ThinkTags = "auto",
    limits: Limits | None = None,
    event_filter: Callable[[ChatEvent], object] | None = None,
) -> ChatStream:
    """The semantic events of a provider's answer, streamed or whole.

    *source* is bytes, a path, an open binary file, or a synchronous iterable of bytes, each parsed inside
    `subscribe`, with no event loop; or an asynchronous iterable or an observable of bytes, for which one must
    be running. *dialect* is a name of `semflux dialects`. *strict* fails with RepairError at the first
    departure of the provider from its own format. Everything is delivered unless *event_filter* says
    otherwise. The stream is cold: bytes and paths can be read again, a file or iterator can not.

    Raises:
        ConfigurationError: if *dialect* is unknown or *source* is nothing that can be read.

    Errors of the stream: `ProviderError`, `FrameError`, `BodyError`, `TruncatedStreamError`, `RepairError`.
    """
    spoken = find_dialect(dialect)
    if limits is not None and not isinstance(limits, Limits):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are not all checked
        raise ConfigurationError(f"limits= takes Limits(...), not {type(limits).__name__}")
    if think_tags not in get_args(ThinkTags):
        raise ConfigurationError(f"think_tags= is one of {', '.join(get_args(ThinkTags))}")
    options = ParserOptions(think_tags=think_tags)

    def decoder_of(state: Any) -> Decoder:
        return Decoder(spoken, state, options)

    def prepare(run: Run) -> None:
        run.state.configure(ledger=RepairLedger(strict=strict), limits=limits)

    return ChatStream(ChatSource(_pump_of(source, decoder_of), event_filter, prepare))


def _pump_of(source: Any, decoder_of: Callable[[Any], Decoder]) -> Callable[[Run], Pump]:
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = _bytes(source)
        return lambda run: _NowPump(run, decoder_of, lambda: iter((data,)))
    if isinstance(source, (str, PathLike)):
        path = _path(source)
        return lambda run: _NowPump(run, decoder_of, lambda: _read_path(path))
    if isinstance(source, abc.ObservableBase):
        plain = Flux.from_(cast("abc.ObservableBase[bytes]", source)).to_observable()
        return lambda run: _AsyncPump(run, decoder_of, lambda: EventIterator(plain))
    if isinstance(source, AsyncIterable):
        once = _Once(source)
        return lambda run: _AsyncPump(run, decoder_of, once.aiter)
    if isinstance(source, Iterable):
        once = _Once(source)
        chunks = once.read if hasattr(cast("Any", source), "read") else once.iter
        return lambda run: _NowPump(run, decoder_of, chunks)
    raise ConfigurationError(
        f"parse() cannot read {type(source).__name__}: give bytes, a path, a binary file, or an iterable of bytes"
    )


def _read_path(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while data := file.read(_READ_BYTES):
                yield data
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot read {str(path)!r}: {getattr(error, 'strerror', None) or type(error).__name__}"
        ) from None


class _Once:
    """An iterable that may be an iterator, or an open file: read a second time it would silently be empty."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._single = isinstance(source, (Iterator, AsyncIterator)) or hasattr(source, "read")
        self._used = False

    def _take(self) -> Any:
        if self._single and self._used:
            raise AlreadyConsumedError(
                "this source can be read once and has been: give bytes, a list or a path to read it again"
            )
        self._used = True
        source = self._source
        if self._single:
            # Of no more use here: whoever reads it lets go of it at the end.
            self._source = None
        return source

    def iter(self) -> Iterator[bytes]:
        """A pass over it."""
        return iter(self._take())

    def aiter(self) -> AsyncIterator[bytes]:
        """A pass over it, asynchronous."""
        return aiter(self._take())

    def read(self) -> Iterator[bytes]:
        """A pass over an open file, in pieces that do not depend on its lines."""
        file = self._take()
        return iter(lambda: file.read(_READ_BYTES), b"")


__all__ = ("ByteSource", "parse")
