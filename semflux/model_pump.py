"""The pump of a model's stream: one HTTP request, under one watchdog, into the Subject."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from semflux.clock import Clock, LoopClock, Timer
from semflux.decoder import Decoder
from semflux.dialects.base import Dialect, ParserOptions
from semflux.errors import SemfluxError, TransportError, UnexpectedContentTypeError
from semflux.flux.pump import Pump
from semflux.http import HttpRequest, Timeouts
from semflux.http_errors import error_for_status
from semflux.operators.run import Run
from semflux.redaction import redact
from semflux.secret import Secret
from semflux.transport.base import Exchange, Transport
from semflux.transport.watchdog import Watchdog

_ERROR_BODY_BYTES = 64 * 1024
"""Bytes of an error's body that are read."""

_HEAD_CHARS = 200
"""Characters of a page, sent in place of a stream, that an error shows."""

_REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "cf-ray")

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


class ModelPump(Pump):
    """Opens the call when the first event after RESPONSE_START is wanted, and reads it as it is wanted."""

    def __init__(self, run: Run, call: Call) -> None:
        super().__init__(run)
        self._call = call
        self._clock: Clock | None = call.clock
        self._watchdog: Watchdog | None = None
        self._opening: asyncio.Task[Exchange] | None = None
        self._exchange: Exchange | None = None
        self._secrets: tuple[Secret, ...] = ()
        self._request_id: str | None = None
        self._content = False
        self._grace: Timer | None = None
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
            await exchange.drain(seconds=self._call.drain_seconds)
            self._end_response()
        else:
            await self._read_body(exchange)

    async def _read_body(self, exchange: Exchange) -> None:
        decoder, watchdog = self._decoder, self._watchdog
        finished = decoder is not None and decoder.finished
        if finished and self._grace is None and self._clock is not None:
            self._grace = self._clock.call_later(self._call.finish_grace, self._end_grace)
        if watchdog is not None:
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
            if watchdog is not None:
                watchdog.pause()
        if data:
            if watchdog is not None:
                watchdog.life()
            self._receive(data)
        else:
            self._ended()

    def _end_grace(self) -> None:
        """The provider did not end its answer in time: what is there is the answer."""
        self._grace_over = True
        if self._exchange is not None:
            self._exchange.close()

    # Opening

    async def _open(self) -> None:
        call = self._call
        self._loop = loop = asyncio.get_running_loop()
        if self._clock is None:
            self._clock = LoopClock(loop)
        self._watchdog = watchdog = Watchdog(self._clock, call.timeouts, self._expire)
        request = await call.request()
        if self.over:
            return
        self._secrets = tuple(value for _, value in request.headers if isinstance(value, Secret))
        self._opening = opening = loop.create_task(
            call.transport.open(request, timeouts=call.timeouts, on_phase=watchdog.arm), name="semflux-open"
        )
        # A task of its own, so that a dispose or a limit can end it whoever is waiting here.
        opening.add_done_callback(self._opened)
        try:
            await asyncio.wait({opening})
        except asyncio.CancelledError:
            self._dispose()
            await asyncio.wait({opening})
            raise
        if self.over:
            return
        exchange = self._exchange = opening.result()
        self._request_id = next(
            (exchange.headers[name] for name in _REQUEST_IDS if name in exchange.headers), None
        )
        await self._accept(exchange)
        watchdog.pause()

    def _opened(self, opening: asyncio.Task[Exchange]) -> None:
        """Nobody may be there any more to take what was opened."""
        if not opening.cancelled() and opening.exception() is None and self.over:
            opening.result().close()

    async def _accept(self, exchange: Exchange) -> None:
        """STEP_START, if the answer is one; else the error that it is."""
        call = self._call
        if exchange.status >= 300:
            body = await self._head(exchange, _ERROR_BODY_BYTES)
            raise error_for_status(
                exchange.status,
                exchange.headers,
                body,
                provider=call.provider,
                attempts=1,
                secrets=self._secrets,
                now=None if self._clock is None else self._clock.time(),
            )
        kind = exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_json = kind == "application/json" or (kind.endswith("+json") and kind.startswith("application/"))
        if kind not in _STREAM_TYPES and not is_json:
            raise await self._unexpected(exchange, kind)
        decoder = self._begin_step(self._decoder_of, call.model or None)
        if self.over:
            return
        if is_json:
            decoder.expect_json()
        elif kind != _PROPER_TYPES[call.dialect.framing]:
            self.state.ledger.note("content_type")

    def _decoder_of(self, state: Any) -> Decoder:
        return Decoder(self._call.dialect, state, self._call.options)

    async def _unexpected(self, exchange: Exchange, kind: str) -> UnexpectedContentTypeError:
        text = (await self._head(exchange, 4 * _HEAD_CHARS)).decode("utf-8", "replace")
        shown = " ".join("".join([c if c.isprintable() else " " for c in text]).split())
        head = redact(shown, self._secrets)[:_HEAD_CHARS]
        return UnexpectedContentTypeError(
            f"the answer is {redact(kind, self._secrets)[:80]!r} and not a stream: a proxy's page, or a wrong "
            f"base_url? It begins: {head}",
            provider=self._call.provider,
            status=exchange.status,
            attempts=1,
        )

    @staticmethod
    async def _head(exchange: Exchange, size: int) -> bytes:
        """At most *size* bytes of a body; what there is of it if it breaks off."""
        pieces: list[bytes] = []
        try:
            while size > 0 and (data := await exchange.read(min(size, 16 * 1024))):
                pieces.append(data)
                size -= len(data)
        except TransportError:
            pass
        return b"".join(pieces)

    # Ending

    def _step_ended(self) -> None:
        self._draining = True

    def _expire(self, error: TransportError) -> None:
        error.attempts = 1
        self.fail(error)

    def fail(self, error: SemfluxError) -> None:
        """As `Pump.fail`; the error also learns which request it is about."""
        if error.provider is None:
            error.provider = self._call.provider
        if error.request_id is None:
            error.request_id = self._request_id
        if error.attempts == 0 and self._opening is not None:
            error.attempts = 1
        super().fail(error)

    def _release(self) -> None:
        if self._watchdog is not None:
            self._watchdog.close()
        if self._grace is not None:
            self._grace.cancel()
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
        if self._exchange is not None:
            self._exchange.close()


__all__ = ("Call", "ModelPump")
