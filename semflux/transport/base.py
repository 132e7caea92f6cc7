"""What a transport is: `Transport` opens an `Exchange`, which gives the answer's bytes.

No meaning here: a status of 500 or a redirect is an answer like any other. No time either, but for
`drain`: limits belong to the watchdog of the stream.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, TypeAlias

from semflux.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from semflux.http import HttpRequest, Timeouts

Phase: TypeAlias = Literal["pool", "connect", "request"]
"""What an opening does now: wait for a free connection; connect (DNS, TCP, TLS); send the request
and wait for the answer's headers."""

READ_SIZE = 16 * 1024
"""Bytes that one read gives at most, unless told otherwise."""


class Exchange(ABC):
    """One answer on its way: status and headers are there, the body is being read.

    Belongs to one event loop and its thread, and to one reader at a time. Whoever opened it closes
    it, on every path: until its end was read or it was closed it holds a connection.
    """

    status: int
    """The HTTP status, 200 or more; redirects and errors too."""
    headers: Mapping[str, str]
    """The answer's headers, names in lower case; values of a repeated name joined by ", ". Always
    encodable as UTF-8."""

    @abstractmethod
    async def read(self, max_bytes: int = READ_SIZE) -> bytes:
        """The next bytes of the body: at least one, at most *max_bytes* (which is at least 1).

        Returns as soon as any bytes are there. `b""` is the clean end of the body, again and again;
        the connection is then back in the pool. Whether the *stream* was whole is another question
        (a body that ends with its connection looks clean when cut): only its finish signal tells.

        Not reading pauses the peer once the buffers are full. A cancelled read loses no bytes and
        leaves the exchange open. A read that raises has closed it.

        Raises `ConnectionLostError`: *kind* "closed" after or during `close`, "client_closed" when
        the transport was closed, "disconnected", "reset", "payload" (a body that breaks HTTP's
        rules or its own length) or "decode" (a compressed body that cannot be unpacked) otherwise.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the answer at once: if its end was not read, its connection is closed.

        Synchronous, idempotent, never raises. The peer sees the end as soon as the loop runs on,
        even with request bytes still unsent. A pending read raises `ConnectionLostError(kind=
        "closed")`; no read returns bytes after this call, not even one that had them in hand.
        """

    async def drain(self, max_bytes: int = 64 * 1024, seconds: float = 0.1) -> bool:
        """Read on to the end, so that the connection can be used again, then close in any case.

        For an answer whose meaning is complete and whose last bytes don't matter. Gives up, closing
        the connection, after *max_bytes* or *seconds* (of the loop's time) or a failure, none of
        which is raised. True if the end came.
        """
        try:
            async with asyncio.timeout(seconds):
                while max_bytes > 0:
                    data = await self.read(min(max_bytes, READ_SIZE))
                    if not data:
                        return True
                    max_bytes -= len(data)
        except (TimeoutError, TransportError):
            pass
        finally:
            self.close()
        return False


class Transport(ABC):
    """Opens exchanges. May be shared by any number of streams, and by several event loops."""

    @abstractmethod
    async def open(
        self,
        request: HttpRequest,
        *,
        timeouts: Timeouts,
        on_phase: Callable[[Phase], None] | None = None,
    ) -> Exchange:
        """Send *request*; return when status and headers of the answer are there.

        *on_phase* is told each phase as it begins, in order, "pool" first; "connect" is left out
        when a pooled connection is used again. It must not raise. With it the caller keeps the
        time and cancels this call when a limit passes; without it *pool* and *connect* of
        *timeouts* hold, on the loop's time. *first*, *idle* and *total* are never the transport's.

        Cancelling this call closes what it had begun and leaves nothing behind. No POST is sent
        twice and no redirect is followed. Keys are revealed to the network alone.

        Raises `ConnectError` (*kind* "refused", "dns", "unreachable"), `TlsError`,
        `ConnectTimeoutError`, `PoolTimeoutError`, `ConnectionLostError` (*phase* "headers"; *kind*
        "disconnected", "reset", "client_closed"), `BadResponseError` (*kind* "not_http",
        "header_too_large", "cut", "encoding") and `ConfigurationError` for a request that cannot be sent.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """End what this transport holds on the running loop, pool included.

        Open exchanges and openings fail with `ConnectionLostError(kind="client_closed")`.
        Idempotent. A later `open` starts afresh.
        """

    @property
    @abstractmethod
    def acquired(self) -> int:
        """Connections in use now, those being made included: 0 when nothing leaks."""


__all__ = ("READ_SIZE", "Exchange", "Phase", "Transport")
