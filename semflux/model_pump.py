"""The pump of a model's stream: one HTTP request, under one watchdog, into the Subject."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import attrs

from semflux.clock import Clock, LoopClock, Timer
from semflux.decoder import Decoder
from semflux.dialects.base import Dialect, ParserOptions
from semflux.errors import (
    ConfigurationError,
    ConnectionLostError,
    ProviderError,
    SemfluxError,
    TransportError,
    UnexpectedContentTypeError,
)
from semflux.events import Status
from semflux.flux.pump import Pump
from semflux.http import HttpRequest, Timeouts
from semflux.http_errors import error_for_status, request_id_of
from semflux.operators.run import Run
from semflux.redaction import mask_secrets, redact
from semflux.secret import Secret
from semflux.state import RunState
from semflux.transport.base import READ_SIZE, Exchange, Transport
from semflux.transport.watchdog import Watchdog

_ERROR_BODY_BYTES = 64 * 1024
"""Bytes of an error's body that are read."""

_HEAD_CHARS = 200
"""Characters of a page, sent in place of a stream, that an error shows."""

_DRAIN_BYTES = 64 * 1024
"""Bytes after the end marker that are read for the sake of the connection."""

_STREAM_TYPES = frozenset(
    {
        "",
        "text/event-stream",
        "application/x-ndjson",
        "application/jsonl",
        "application/octet-stream",
        "binary/octet-stream",
        "text/plain",
    }
)
"""Content types under which real servers send streams; others than the proper one are counted."""

_PROPER_TYPES = {"sse": "text/event-stream", "ndjson": "application/x-ndjson"}


@attrs.frozen(kw_only=True)
class Call:
    """What one call of a model needs."""

    transport: Transport
    request: Callable[[], Awaitable[HttpRequest]]
    """Makes the HTTP request; waited for, since a local server may have to start first."""
    dialect: Dialect
    provider: str
    """The vendor's name, for errors."""
    model: str
    timeouts: Timeouts
    options: ParserOptions
    clock: Clock | None = None
    """The time; None: the running loop's."""
    finish_grace: float = 2.0
    """Seconds that the provider has, after its finish signal, to send usage and its end marker."""
    drain_seconds: float = 0.02
    """Seconds that the answer has, after its end marker, to end, so that its connection is used again."""
    resend: bool = False
    """Send the request again, once and at once, when its connection closes before an answer."""
    error_body_seconds: float = 5.0
    """Seconds that the body of a refusal has to come: what is there by then is what the error tells."""


class ModelPump(Pump):
    """Opens the call when the first event after RESPONSE_START is wanted, and reads it as it is wanted."""

    def __init__(self, run: Run, call: Call) -> None:
        super().__init__(run)
        self._call = call
        self._clock: Clock | None = call.clock
        self._watchdog: Watchdog | None = None
        self._opening: asyncio.Task[Exchange] | None = None
        self._exchange: Exchange | None = None
        self._sent = False
        self._secrets: tuple[Secret, ...] = ()
        self._request_id: str | None = None
        self._content = False
        self._claims_json = False
        self._grace: Timer | None = None
        self._grace_left = call.finish_grace
        self._grace_over = False
        self._draining = False

    def pump(self) -> bool:
        pushed = super().pump()
        watchdog = self._watchdog
        if not self._content and watchdog is not None and self.state.fold.content_seen:
            self._content = True
            watchdog.content()
        return pushed

    async def _read(self) -> None:
        exchange = self._exchange
        if exchange is None:
            await self._open()
        elif self._draining:
            await self._drain(exchange)
            self._end_response()
        else:
            await self._read_body(exchange)

    async def _read_body(self, exchange: Exchange) -> None:
        decoder, watchdog, clock = self._decoder, self._watchdog, self._clock
        assert watchdog is not None and clock is not None  # noqa: PT018  # made with the exchange
        finished = decoder is not None and decoder.finished
        began = clock.monotonic()
        if finished:
            # Like the limits, it runs only while bytes are waited for: a slow consumer loses none.
            self._grace = clock.call_later(self._grace_left, self._end_grace, exchange)
        watchdog.resume()
        try:
            data = await exchange.read()
        except TransportError as error:
            if not finished or self.over:
                raise
            # The answer is whole: how its bytes end does not matter any more.
            self.state.ledger.note("late_end" if self._grace_over else f"broken_end_{error.kind}")
            data = b""
        finally:
            watchdog.pause()
            if self._grace is not None:
                self._grace.cancel()
                self._grace_left -= clock.monotonic() - began
        if not data:
            self._ended()
            return
        watchdog.life()
        if self._claims_json:
            self._claims_json = False
            if data.lstrip()[:1] not in (b"{", b"["):
                self.state.ledger.note("content_type")
        self._receive(data)

    def _end_grace(self, exchange: Exchange) -> None:
        """The provider did not end its answer in time: what is there is the answer."""
        self._grace_over = True
        exchange.close()

    async def _drain(self, exchange: Exchange) -> None:
        """Read on to the end of the answer, so that its connection is used again; then close in any case."""
        left = _DRAIN_BYTES
        try:
            async with asyncio.timeout(self._call.drain_seconds):
                while left > 0 and (data := await exchange.read(min(left, READ_SIZE))):
                    self.state.ledger.note("bytes_after_end", len(data))
                    left -= len(data)
        except (TimeoutError, TransportError):
            pass
        finally:
            exchange.close()

    # Opening

    async def _open(self) -> None:
        self._loop = loop = asyncio.get_running_loop()
        if self._clock is None:
            self._clock = LoopClock(loop)
        self._watchdog = watchdog = Watchdog(self._clock, self._call.timeouts, self.fail)
        # A task of its own, so that a dispose or a limit can end it whoever is waiting here.
        opening = self._opening = loop.create_task(self._send(watchdog), name="semflux-open")
        opening.add_done_callback(self._opened)
        if self.over:
            # Disposed of by another thread, just now.
            opening.cancel()
        try:
            await asyncio.wait({opening})
        except asyncio.CancelledError:
            self._dispose()
            await asyncio.wait({opening})
            raise
        if self.over:
            return
        if opening.cancelled():
            raise ConnectionLostError(
                "the task that opens the request was cancelled from elsewhere",
                kind="closed",
                phase="headers",
                retryable=False,
            )
        if self._is_stale(opening):
            # A kept connection that the server has closed meanwhile (faults: C6): sent again at once, and told.
            self._call_again()
            return
        exchange = opening.result()
        self._request_id = request_id_of(exchange.headers, self._secrets)
        await self._accept(exchange)
        watchdog.pause()

    def _is_stale(self, opening: asyncio.Task[Exchange]) -> bool:
        error = opening.exception()
        return (
            self._call.resend
            and self.state.attempt == 1
            and isinstance(error, ConnectionLostError)
            and error.phase == "headers"
            and error.kind in ("disconnected", "reset")
        )

    def _call_again(self) -> None:
        self.state.attempt += 1
        if self._watchdog is not None:
            self._watchdog.close()
        text = "sent again: the connection was closed before an answer came"
        self.subject.on_next(Status.draft_class("retry", text, self.state.origin))

    async def _send(self, watchdog: Watchdog) -> Exchange:
        request = await self._call.request()
        self._secrets = tuple([value for _, value in request.headers if isinstance(value, Secret)])
        self._sent = True
        return await self._call.transport.open(request, timeouts=self._call.timeouts, on_phase=watchdog.arm)

    def _opened(self, opening: asyncio.Task[Exchange]) -> None:
        """Take what was opened at once: whoever waits for it may be told to stop before that goes on."""
        self._opening = None
        if not opening.cancelled() and opening.exception() is None:
            self._exchange = exchange = opening.result()
            if self.over:
                exchange.close()

    async def _accept(self, exchange: Exchange) -> None:
        """STEP_START, if the answer is one; else the error that it is."""
        call = self._call
        if exchange.status >= 300:
            body = await self._head_of(exchange, _ERROR_BODY_BYTES)
            raise error_for_status(
                exchange.status,
                exchange.headers,
                body,
                provider=call.provider,
                attempts=self.state.attempt,
                secrets=self._secrets,
                now=None if self._clock is None else self._clock.time(),
            )
        kind = exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_json = kind == "application/json" or (kind.endswith("+json") and kind.startswith("application/"))
        if kind not in _STREAM_TYPES and not is_json:
            raise await self._unexpected(exchange, kind)
        decoder = self._begin_step(self._decoder_of, call.model or None)
        if is_json:
            if call.dialect.framing == "sse":
                # The decoder sees for itself whether it is: some servers say JSON and send a stream.
                self._claims_json = True
            else:
                decoder.expect_json()
        elif kind != _PROPER_TYPES[call.dialect.framing]:
            self.state.ledger.note("content_type")

    def _decoder_of(self, state: RunState) -> Decoder:
        return Decoder(self._call.dialect, state, self._call.options)

    async def _unexpected(self, exchange: Exchange, kind: str) -> UnexpectedContentTypeError:
        text = (await self._head_of(exchange, 4 * _HEAD_CHARS)).decode("utf-8", "replace")
        shown = " ".join("".join([c if c.isprintable() else " " for c in text]).split())
        head = redact(shown, self._secrets)[:_HEAD_CHARS]
        return UnexpectedContentTypeError(
            f"the answer is {redact(kind, self._secrets)[:80]!r} and not a stream: a proxy's page, or a wrong "
            f"base_url? It begins: {head}",
            provider=self._call.provider,
            status=exchange.status,
            attempts=self.state.attempt,
        )

    async def _head_of(self, exchange: Exchange, size: int) -> bytes:
        """At most *size* bytes of a body; what there is of it if it breaks off, or does not end in time."""
        clock = self._clock
        assert clock is not None  # made with the exchange
        limit = clock.call_later(self._call.error_body_seconds, exchange.close)
        pieces: list[bytes] = []
        try:
            while size > 0 and (data := await exchange.read(min(size, READ_SIZE))):
                pieces.append(data)
                size -= len(data)
        except TransportError:
            pass
        finally:
            limit.cancel()
        return b"".join(pieces)

    # Ending

    def _step_ended(self) -> None:
        assert self._watchdog is not None  # made with the exchange
        # Whole: no limit can turn it into a failure any more.
        self._watchdog.close()
        self._draining = True

    def fail(self, error: SemfluxError) -> None:
        """As `Pump.fail`; the error also learns which request it is about, and forgets what it must not show."""
        if not self.over:
            self._complete(error)
        super().fail(error)

    def _complete(self, error: SemfluxError) -> None:
        if error.provider in (None, self._call.dialect.name):
            # Decoder and parser only know what is spoken, not with whom.
            error.provider = self._call.provider
        if error.request_id is None:
            error.request_id = self._request_id
        if error.attempts == 0 and self._sent and not isinstance(error, ConfigurationError):
            error.attempts = self.state.attempt
        if isinstance(error, ProviderError) and self._secrets:
            # Told inside the stream, where the parser does not know the key that it may echo.
            error.args = tuple([mask_secrets(str(arg), self._secrets) for arg in error.args])
            if error.code is not None:
                error.code = mask_secrets(error.code, self._secrets)
            if error.request_id is not None:
                error.request_id = mask_secrets(error.request_id, self._secrets)
        if error.__cause__ is None:
            # The frames of decoder and parser hold the provider's bytes, which may echo prompt and key.
            error.__traceback__ = None
            error.__context__ = None

    def _release(self) -> None:
        if self._watchdog is not None:
            self._watchdog.close()
        if self._grace is not None:
            self._grace.cancel()
        if self._opening is not None:
            self._opening.cancel()
        if self._exchange is not None:
            self._exchange.close()


__all__ = ("Call", "ModelPump")
