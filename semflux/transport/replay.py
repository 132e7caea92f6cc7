"""Recorded answers from memory: a transport without a network."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from semflux.clock import Clock, LoopClock, Timer
from semflux.errors import ConfigurationError, ConnectionLostError, TransportError
from semflux.transport.base import READ_SIZE, Exchange, Phase, Transport

if TYPE_CHECKING:
    from collections.abc import Callable

    from semflux.http import HttpRequest, Timeouts


def _stream_headers() -> Mapping[str, str]:
    return {"content-type": "text/event-stream"}


@attrs.frozen(kw_only=True)
class Recording:
    """One answer to give."""

    status: int = 200
    """The HTTP status."""
    headers: Mapping[str, str] = attrs.field(factory=_stream_headers, repr=False)
    """The headers, names in lower case. Default: those of an SSE stream."""
    body: tuple[bytes | float | TransportError, ...] = ()
    """What happens, in order: bytes arrive, in reads of at most that piece; a number is a pause in
    seconds (`math.inf`: for ever); an error is what the next read raises. Then the clean end."""


class ReplayTransport(Transport):
    r"""Gives one recording for each opening, in their order, and remembers the requests.

    ```python
    transport = ReplayTransport(
        ConnectError("refused", kind="refused"),        # the first opening fails with this,
        Recording(body=(b"data: one\n\n", 0.5, b"data: [DONE]\n\n")),   # the second gets that
    )
    ```
    """

    def __init__(
        self, *recordings: Recording | TransportError, clock: Clock | None = None, repeat: bool = False
    ) -> None:
        """*clock*: for the pauses; default: the running loop's. *repeat*: the last one goes on and on.

        An opening for which nothing is left raises ConfigurationError.
        """
        self._recordings = recordings
        self._clock = clock
        self._repeat = repeat
        self._open: set[ReplayExchange] = set()
        self.requests: list[HttpRequest] = []
        """The requests, in the order of their openings."""

    async def open(
        self,
        request: HttpRequest,
        *,
        timeouts: Timeouts,
        on_phase: Callable[[Phase], None] | None = None,
    ) -> Exchange:
        count = len(self._recordings)
        n = len(self.requests)
        self.requests.append(request)
        if on_phase is not None:
            on_phase("pool")
            on_phase("connect")
            on_phase("request")
        if n >= count and not (self._repeat and count):
            raise ConfigurationError(f"{type(self).__name__} has {count} recordings: this is opening {n + 1}")
        recording = self._recordings[min(n, count - 1)]
        if isinstance(recording, TransportError):
            raise recording
        clock = LoopClock(asyncio.get_running_loop()) if self._clock is None else self._clock
        exchange = ReplayExchange(recording, clock, self._open.discard)
        self._open.add(exchange)
        return exchange

    async def aclose(self) -> None:
        for exchange in list(self._open):
            exchange.shut("client_closed")

    @property
    def acquired(self) -> int:
        return len(self._open)


class ReplayExchange(Exchange):
    """A recording being read."""

    status: int
    headers: Mapping[str, str]

    def __init__(
        self, recording: Recording, clock: Clock, on_release: Callable[[ReplayExchange], None]
    ) -> None:
        self.status = recording.status
        self.headers = recording.headers
        self._clock = clock
        self._on_release = on_release
        # Reversed: the next item is the last.
        self._rest = list(reversed(recording.body))
        self._closed: str | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: Timer | None = None

    async def read(self, max_bytes: int = READ_SIZE) -> bytes:
        if max_bytes < 1:
            raise ValueError(f"max_bytes={max_bytes}: at least 1")
        while self._closed is None:
            if not self._rest:
                self._on_release(self)
                return b""
            item = self._rest[-1]
            if isinstance(item, TransportError):
                self.close()
                raise item
            if isinstance(item, bytes):
                self._rest.pop()
                if len(item) > max_bytes:
                    self._rest.append(item[max_bytes:])
                if item:
                    return item[:max_bytes]
            else:
                await self._pause(item)
        raise ConnectionLostError("the exchange was closed on this side", kind=self._closed, retryable=False)

    async def _pause(self, seconds: float) -> None:
        """Until the pause is over, counted from its first read, or the exchange is closed."""
        self._waiter = asyncio.get_running_loop().create_future()
        if self._timer is None and not math.isinf(seconds):
            self._timer = self._clock.call_later(seconds, self._go_on)
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _go_on(self) -> None:
        self._timer = None
        self._rest.pop()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        self.shut("closed")

    def shut(self, kind: str) -> None:
        """Close, for the reason *kind*, which a read then raises."""
        if self._closed is None:
            self._closed = kind
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._wake()
            self._on_release(self)


__all__ = ("Recording", "ReplayExchange", "ReplayTransport")
