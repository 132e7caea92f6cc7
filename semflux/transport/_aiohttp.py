"""The part of the aiohttp transport that needs aiohttp: its session and its responses."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import ssl
import warnings
import weakref
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp.streams import EMPTY_PAYLOAD
from multidict import CIMultiDict

from semflux.errors import ConfigurationError, SemfluxError
from semflux.secret import Secret
from semflux.transport._aiohttp_errors import UpgradeError, closed_error, open_error, read_error, reset_error
from semflux.transport.base import READ_SIZE, Exchange, Phase
from semflux.transport.watchdog import timeout_error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from types import SimpleNamespace

    from aiohttp.abc import AbstractResolver

    from semflux.http import HttpRequest, Timeouts

_BUFFER = 64 * 1024
"""Bytes of a body that wait for their reader before the socket pauses, about."""

_LARGE_BODY = 1024 * 1024
"""Bytes of a request from which aiohttp warns of sending it in one piece."""


class _Response(aiohttp.ClientResponse):
    """Mends two ways in which aiohttp lets a peer hold on to us.

    Its `close` sends what is unsent before it closes the socket: a peer that does not read keeps
    it open. So `let_go` aborts as well. And a bad chunk size, or a connection that ends while its
    parser pauses, leaves a pending reader waiting for ever. So the loss of the connection wakes it.
    """

    socket: asyncio.Transport | None = None
    _lost: asyncio.Future[None] | None = None
    _wake: functools.partial[None] | None = None
    _until_close = False

    async def start(self, connection: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        self.socket = connection.transport
        protocol = connection.protocol
        assert protocol is not None  # the connection was just made or taken from the pool
        lost = protocol.closed
        if lost is not None:
            # Asked for, this future gets an exception, which asyncio wants to be looked at. It lives
            # as long as its connection, so that its callbacks must not add up.
            lost.remove_done_callback(_look_at)
            lost.add_done_callback(_look_at)
        try:
            await super().start(connection)
            if self.status < 200:
                raise UpgradeError
        except BaseException:
            if self.socket is not None:
                self.socket.abort()
            raise
        if lost is not None:
            self._lost = lost
            self._until_close = (
                self.content is not EMPTY_PAYLOAD
                and "Content-Length" not in self.headers
                and "Transfer-Encoding" not in self.headers
            )
            self._wake = functools.partial(_wake, self.content)
            lost.add_done_callback(self._wake)
        return self

    @property
    def broken(self) -> bool:
        """The connection ended by an error, such as a reset."""
        lost = self._lost
        return lost is not None and lost.done() and not lost.cancelled() and lost.exception() is not None

    @property
    def cut(self) -> bool:
        """The body lasted until its connection ended, by an error: for aiohttp a clean end."""
        return self._until_close and self.broken

    def at_end(self) -> None:
        """The body was read to its end: the connection is the pool's, or closed."""
        if self._lost is not None and self._wake is not None:
            self._lost.remove_done_callback(self._wake)

    def let_go(self) -> None:
        """Close the connection, unless it went back to the pool at the body's end."""
        if not self._loop.is_closed():
            self.at_end()
            self.close()
            if self.socket is not None and self.socket.is_closing():
                self.socket.abort()


def _look_at(lost: asyncio.Future[None]) -> None:
    if not lost.cancelled():
        lost.exception()


def _wake(content: aiohttp.StreamReader, _lost: asyncio.Future[None]) -> None:
    if not content.is_eof() and content.exception() is None:
        content.set_exception(aiohttp.ClientConnectionError())


class AiohttpExchange(Exchange):
    """An answer being read from a socket."""

    def __init__(self, response: _Response, loop: asyncio.AbstractEventLoop, keeper: object) -> None:
        self.status = response.status
        self.headers = _lower(response)
        self._response = response
        self._content = response.content
        self._loop = loop
        # The pool lives while an answer of it does, even if the transport is forgotten.
        self._keeper = keeper
        self._closed: str | None = None
        self._ended = False

    async def read(self, max_bytes: int = READ_SIZE) -> bytes:
        if max_bytes < 1:
            raise ValueError(f"max_bytes={max_bytes}: at least 1")
        data = b""
        failure: SemfluxError | None = None
        if self._closed is None and not self._ended:
            try:
                data = await self._content.read(max_bytes)
            except Exception as exc:  # each becomes one of ours
                # What came before the fault comes first; aiohttp would drop it.
                data = self._content._read_nowait(max_bytes)  # pyright: ignore[reportPrivateUsage]
                failure = None if data else read_error(exc, broken=self._response.broken)
            else:
                if not data and self._response.cut:
                    failure = reset_error()
        # Closed before or meanwhile: that counts for more than what the socket had to say.
        if self._closed is not None:
            failure = closed_error(self._closed)
        if failure is not None:
            self.close()
            # Outside the except block, so that aiohttp's exception is not even the context.
            raise failure from None
        if not data and not self._ended:
            self._ended = True
            self._response.at_end()
        return data

    def close(self) -> None:
        self.shut("closed")

    def shut(self, kind: str) -> None:
        """Close, for the reason *kind*, which a read then raises."""
        if self._closed is None:
            self._closed = kind
            # Wakes a pending read. aiohttp would do it with one exception that all responses of
            # the process share, which then holds on to the last reader's frames and headers.
            self._content.set_exception(_ClosedHereError())
            self._response.let_go()

    def __del__(self) -> None:
        if self._closed is None and not self._ended:
            if self._response.connection is not None:
                warnings.warn(f"unclosed {self!r}", ResourceWarning, stacklevel=2, source=self)
            # In whichever thread and moment the collector runs; without a loop nothing is left to do.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._response.let_go)

    def __repr__(self) -> str:
        state = self._closed or ("ended" if self._ended else "open")
        return f"<AiohttpExchange status={self.status} {state}>"


class _Progress:
    """Where an opening stands; its limits, if nobody else keeps them."""

    def __init__(self, timeouts: Timeouts, on_phase: Callable[[Phase], None] | None) -> None:
        self._timeouts = timeouts
        self._on_phase = on_phase
        self._loop = asyncio.get_running_loop()
        self.phase: Phase = "pool"
        self.limit = asyncio.timeout(None)

    def begin(self, phase: Phase) -> None:
        self.phase = phase
        if self._on_phase is not None:
            self._on_phase(phase)
        else:
            seconds = self._seconds()
            self.limit.reschedule(None if seconds is None else self._loop.time() + seconds)

    def _seconds(self) -> float | None:
        return {"pool": self._timeouts.pool, "connect": self._timeouts.connect}.get(self.phase)

    def error(self) -> SemfluxError:
        """For the limit that passed."""
        seconds = self._seconds()
        assert self.phase != "request" and seconds is not None  # noqa: PT018  # one fact: it had a limit
        return timeout_error(self.phase, seconds)


class Pool:
    """The connections of one loop: an aiohttp session, its openings and its exchanges."""

    def __init__(
        self, *, limit: int, ssl_context: ssl.SSLContext | None, resolver: AbstractResolver | None
    ) -> None:
        self.closed = False
        self._ssl = ssl_context
        self._openings: set[asyncio.Task[Any]] = set()
        self._exchanges: weakref.WeakSet[AiohttpExchange] = weakref.WeakSet()
        trace = aiohttp.TraceConfig()
        trace.on_connection_create_start.append(_on_connect)
        trace.on_connection_create_end.append(_on_request)
        trace.on_connection_reuseconn.append(_on_request)
        self._connector = aiohttp.TCPConnector(limit=limit, resolver=resolver)
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "semflux"},
            # The watchdog owns time.
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
            trust_env=False,
            raise_for_status=False,
            auto_decompress=True,
            read_bufsize=_BUFFER,
            response_class=_Response,
            trace_configs=[trace],
        )

    @property
    def acquired(self) -> int:
        # aiohttp has no public count; one of our own would not see what aiohttp itself leaks.
        return len(self._connector._acquired)  # pyright: ignore[reportPrivateUsage]

    async def open(
        self,
        request: HttpRequest,
        timeouts: Timeouts,
        on_phase: Callable[[Phase], None] | None,
        keeper: object,
    ) -> AiohttpExchange:
        secure, where = _check(request)
        progress = _Progress(timeouts, on_phase)
        task = asyncio.current_task()
        assert task is not None  # aiohttp needs one as well
        self._openings.add(task)
        failure: SemfluxError
        try:
            async with progress.limit:
                progress.begin("pool")
                # Revealed here and nowhere else: headers are no local variable of a frame of ours.
                response = await self._session.request(
                    request.method,
                    request.url,
                    headers=_headers(request),
                    data=_body(request),
                    ssl=(self._ssl or _default_ssl()) if secure else True,
                    allow_redirects=False,
                    trace_request_ctx=progress.begin,
                )
            assert isinstance(response, _Response)  # the session's response_class
            exchange = AiohttpExchange(response, task.get_loop(), keeper)
        except asyncio.CancelledError:
            # `end` cancels openings; that is a failure here, unless someone else cancelled as well.
            if not self.closed or task.uncancel() > 0:
                raise
            failure = closed_error("client_closed")
        except Exception as exc:  # each becomes one of ours
            if self.closed:
                failure = closed_error("client_closed")
            elif progress.limit.expired():
                failure = progress.error()
            else:
                failure = open_error(exc, where, secure=secure)
        else:
            self._exchanges.add(exchange)
            return exchange
        finally:
            self._openings.discard(task)
        # Outside the except block, so that aiohttp's exception is not even the context.
        raise failure from None

    async def end(self) -> None:
        """Fail what is open and close every connection."""
        self.closed = True
        for exchange in list(self._exchanges):
            exchange.shut("client_closed")
        for task in self._openings:
            task.cancel()
        await self._session.close()


async def keep(pool: Pool) -> AsyncGenerator[Pool, None]:
    """Holds *pool*: closing this generator, which the loop does at its end, closes the pool."""
    try:
        yield pool
    finally:
        await pool.end()


async def _on_connect(_session: object, context: SimpleNamespace, _params: object) -> None:
    context.trace_request_ctx("connect")


async def _on_request(_session: object, context: SimpleNamespace, _params: object) -> None:
    context.trace_request_ctx("request")


@functools.cache
def _default_ssl() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _check(request: HttpRequest) -> tuple[bool, str]:
    """Whether the request goes over TLS, and host and port for messages.

    Raises ConfigurationError, without showing the URL, for one that cannot or must not be asked.
    """
    problem = _url_problem(request.url)
    if problem is not None:
        raise ConfigurationError(problem)
    parts = urlsplit(request.url)
    secure = parts.scheme == "https"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return secure, f"{host}:{parts.port or (443 if secure else 80)}"


def _url_problem(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port != 0
    except ValueError:
        port_is_valid = False
        parts = urlsplit("")
    if not port_is_valid or parts.scheme not in ("http", "https") or not parts.hostname:
        return "the URL of the request is not valid: base_url must look like https://host[:port][/path]"
    if parts.username is not None or parts.password is not None:
        return "the URL of the request holds a user name or password: give the key as api_key="
    return None


def _headers(request: HttpRequest) -> CIMultiDict[str]:
    # Names and values were checked when the request was made.
    headers = CIMultiDict(
        (name, value.reveal() if isinstance(value, Secret) else value) for name, value in request.headers
    )
    # Compressed streams hide truncation: aiohttp ends a cut gzip body without an error.
    headers["Accept-Encoding"] = "identity"
    return headers


def _body(request: HttpRequest) -> bytes | io.BytesIO | None:
    if len(request.body) > _LARGE_BODY:
        return io.BytesIO(request.body)
    return request.body if request.body or request.method == "POST" else None


def _lower(response: aiohttp.ClientResponse) -> dict[str, str]:
    headers: dict[str, str] = {}
    for key, raw in response.headers.items():
        # aiohttp decodes UTF-8 and keeps other bytes as lone surrogates, which no log can encode.
        value = raw if raw.isascii() else raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        name = key.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


class _ClosedHereError(Exception):
    """Wakes a reader whose exchange was closed; never leaves this module."""


__all__ = ("AiohttpExchange", "Pool", "keep")
