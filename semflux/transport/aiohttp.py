"""The network, by aiohttp, which is loaded with the first exchange and not before."""

from __future__ import annotations

import asyncio
import weakref
from ssl import SSLContext
from typing import TYPE_CHECKING, NoReturn

from semflux.errors import ConfigurationError
from semflux.transport.base import Exchange, Phase, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from aiohttp.abc import AbstractResolver

    from semflux.http import HttpRequest, Timeouts
    from semflux.transport._aiohttp import Pool


def _let_go(_pool: Pool) -> None:
    """The reference to the pool is what matters, and ends here."""


class AiohttpTransport(Transport):
    """Exchanges over HTTP/1.1 and TLS, with one pool of connections for each running event loop.

    Never follows a redirect, reads no environment (proxies, .netrc), keeps no cookies, asks for
    bodies without compression, and never does without a certificate check. Compressed bodies that
    come all the same are unpacked piece by piece. A header line is bounded to 8,190 bytes, headers
    to 128; a stream that is not read pauses its socket.

    The pool of a loop opens with its first exchange. `aclose` ends it; a transport never closed ends
    with the loop (`asyncio.run` sees to that), or when nobody refers to it any more.
    """

    def __init__(
        self, *, limit: int = 100, ssl: SSLContext | None = None, resolver: AbstractResolver | None = None
    ) -> None:
        """*limit*: connections in use at a time, on each loop; further openings wait for the pool.

        *ssl*: a context of your own, used as it is, for a private certificate authority or a client
        certificate; default: the system's authorities, host names checked, TLS 1.2 or later.
        *resolver*: how host names become addresses; default: the system's way. Not closed here.
        """
        if limit < 1:
            raise ConfigurationError(f"limit={limit!r}: allow at least 1 connection; there is no 'unlimited'")
        # aiohttp's own ssl=False would switch verification off, so nothing but a context may pass.
        if ssl is not None and not isinstance(ssl, SSLContext):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                "ssl= takes an ssl.SSLContext: certificates are always verified; "
                "for a private authority use ssl.create_default_context(cafile=...)"
            )
        self._limit = limit
        self._ssl = ssl
        self._resolver = resolver
        self._pools: dict[asyncio.AbstractEventLoop, tuple[Pool, AsyncGenerator[Pool, None]]] = {}

    async def open(
        self,
        request: HttpRequest,
        *,
        timeouts: Timeouts,
        on_phase: Callable[[Phase], None] | None = None,
    ) -> Exchange:
        pool, keeper = await self._of_loop()
        return await pool.open(request, timeouts, on_phase, keeper)

    async def aclose(self) -> None:
        """As in `Transport`. Pools of other running loops go on, and end with those loops."""
        entry = self._pools.pop(asyncio.get_running_loop(), None)
        if entry is not None:
            await entry[1].aclose()

    @property
    def acquired(self) -> int:
        return sum(pool.acquired for pool, _ in list(self._pools.values()))

    async def _of_loop(self) -> tuple[Pool, AsyncGenerator[Pool, None]]:
        loop = asyncio.get_running_loop()
        entry = self._pools.get(loop)
        if entry is None or entry[0].closed:
            # Loading aiohttp takes a third of a second: `import semflux` stays light without it.
            from semflux.transport._aiohttp import Pool, keep

            for other in list(self._pools):
                if other.is_closed():
                    self._pools.pop(other, None)
            pool = Pool(limit=self._limit, ssl_context=self._ssl, resolver=self._resolver)
            entry = self._pools[loop] = pool, keep(pool)
            # Where the collector finds transport and generator in a cycle, it would finalize the session with
            # them, as "unclosed". Held from here the pool is no garbage before the generator has ended it.
            weakref.finalize(entry[1], _let_go, pool).atexit = False
            # Never suspends. Started, the generator is known to the loop, which ends it at the latest.
            await anext(entry[1])
        return entry

    def __repr__(self) -> str:
        return f"<AiohttpTransport limit={self._limit} acquired={self.acquired}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a transport holds sockets and is not pickled: make one in the other process")


__all__ = ("AiohttpTransport",)
