"""A raw TCP server on loopback that misbehaves as told: one script a connection.

```python
async with FaultServer([REQUEST, head(), b"data: 1\\n\\n", 0.01, RESET]) as server:
    ...                                  # server.url; server.seen[0].eof_at; server.seen[0].requests
```

A script is a sequence of steps, run in order; after the last one the connection is closed. A step is

* bytes: sent as they are (with TLS: inside it);
* a number: a pause in seconds;
* a coroutine function that takes the `Seen` connection: `REQUEST` (read one whole request), `RESET`
  (RST instead of FIN), `HALF_CLOSE` (FIN, and go on), `EOF` (wait until the peer closes, and note the
  time), `HANG` (never go on), `pour(...)` (send without end), or one of your own.

The first connection gets the first script and so on; the last script serves all later ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Self, TypeAlias

import attrs

if TYPE_CHECKING:
    import ssl


@attrs.define(eq=False)
class Seen:
    """A connection, as the server sees it."""

    reader: asyncio.StreamReader = attrs.field(repr=False)
    writer: asyncio.StreamWriter = attrs.field(repr=False)
    requests: list[bytes] = attrs.field(factory=list, repr=False)
    """Whole requests that were read, head and body."""
    accepted: int = 0
    """Bytes that `pour` got rid of: taken by the kernel, not only queued here."""
    eof_at: float | None = None
    """When the peer's end was seen, by `time.perf_counter()`; None while it was not."""
    eof: asyncio.Event = attrs.field(factory=asyncio.Event, repr=False)
    """Set when it was."""

    @property
    def socket(self) -> socket.socket:
        sock: socket.socket = self.writer.get_extra_info("socket")
        return sock

    def saw_eof(self) -> None:
        if self.eof_at is None:
            self.eof_at = time.perf_counter()
            self.eof.set()


Step: TypeAlias = bytes | float | Callable[[Seen], Awaitable[None]]
Script: TypeAlias = Sequence[Step]


async def REQUEST(seen: Seen) -> None:
    """Read one request: its head, and as much body as its Content-Length says."""
    head = await seen.reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    seen.requests.append(head + await seen.reader.readexactly(length))


async def RESET(seen: Seen) -> None:
    """Close with RST: what the peer has not read yet is lost to it."""
    seen.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    seen.writer.transport.abort()


async def HALF_CLOSE(seen: Seen) -> None:
    """Send FIN and keep reading."""
    seen.writer.write_eof()


async def EOF(seen: Seen) -> None:
    """Wait until the peer closes, gracefully or not; what it sends until then is dropped."""
    with contextlib.suppress(ConnectionError):
        while await seen.reader.read(65536):
            pass
    seen.saw_eof()


async def HANG(seen: Seen) -> None:
    """Never go on, and read nothing."""
    await asyncio.Event().wait()


def pour(block: bytes = b"x" * 16384, total: int = 1 << 30) -> Callable[[Seen], Awaitable[None]]:
    """Send *block* again and again, *total* bytes at most; `Seen.accepted` counts as they leave."""

    async def step(seen: Seen) -> None:
        # Nothing queued here: a drain returns when the kernel has taken all of it.
        seen.writer.transport.set_write_buffer_limits(0)
        while seen.accepted < total:
            seen.writer.write(block)
            await seen.writer.drain()
            seen.accepted += len(block)

    return step


def head(status: str = "200 OK", *headers: str, length: int | None = None, chunked: bool = False) -> bytes:
    """The head of an answer; neither *length* nor *chunked*: its body ends with the connection."""
    lines = [f"HTTP/1.1 {status}", *headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    if chunked:
        lines.append("Transfer-Encoding: chunked")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """A whole answer with its length."""
    return head(status, *headers, length=len(body)) + body


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; of no bytes: its end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class FaultServer:
    """Serves scripts on a loopback port of its own; leaving the `async with` closes everything."""

    def __init__(self, *scripts: Script, tls: ssl.SSLContext | None = None) -> None:
        self._scripts = scripts
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self.seen: list[Seen] = []
        """The connections, in the order they were accepted (with TLS: shaken hands)."""
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}/v1/chat"

    @property
    def requests(self) -> list[bytes]:
        return [request for seen in self.seen for request in seen.requests]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._closing = True
        self._server.close()
        for seen in self.seen:
            seen.writer.transport.abort()
        # Who is writing sees that first: a failure that meets a cancel is one that nobody has retrieved.
        for _ in range(5):
            await asyncio.sleep(0)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        # What was accepted, but not handed to us yet, is turned away; sockets close one turn later.
        for _ in range(5):
            await asyncio.sleep(0)

    async def connection(self, n: int = 0) -> Seen:
        """Connection *n*, as soon as it is there."""
        while len(self.seen) <= n:
            await asyncio.sleep(0.001)
        return self.seen[n]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closing:
            writer.transport.abort()
            return
        seen = Seen(reader, writer)
        script = self._scripts[min(len(self.seen), len(self._scripts) - 1)]
        self.seen.append(seen)
        task = asyncio.create_task(self._serve(seen, script))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, seen: Seen, script: Script) -> None:
        writer = seen.writer
        try:
            for step in script:
                if isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()
                elif callable(step):
                    await step(seen)
                else:
                    await asyncio.sleep(step)
        except (ConnectionError, asyncio.IncompleteReadError):
            seen.saw_eof()
        finally:
            writer.close()
            # Whoever else waits for its end, or nobody: what it ended with is asked for.
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


__all__ = (
    "EOF",
    "HALF_CLOSE",
    "HANG",
    "REQUEST",
    "RESET",
    "FaultServer",
    "Script",
    "Seen",
    "Step",
    "answer",
    "chunk",
    "head",
    "pour",
)
