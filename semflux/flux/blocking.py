"""Blocking calls: the same pipeline, on the loop of one private thread."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

from semflux.errors import BlockingInLoopError, TotalTimeoutError

T = TypeVar("T")

THREAD_NAME = "semflux-blocking"
"""The name of the thread in which blocking calls run."""

CANCEL_SECONDS = 5.0
"""Seconds that a cancelled call waits for its connection to be closed."""


class _Private:
    """The loop that blocking calls share, so that their connections are used again, and its thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop; made if there is none. A forked process has the object, but not the thread."""
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(loop,), name=THREAD_NAME, daemon=True)
                self._thread.start()
            return self._loop

    def shutdown(self) -> None:
        """See the function `shutdown`."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None and thread.is_alive():
            loop.call_soon_threadsafe(loop.stop)
            thread.join(CANCEL_SECONDS)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


_private = _Private()


def shutdown() -> None:
    """End the private thread and its connections. A later blocking call starts another."""
    _private.shutdown()


atexit.register(shutdown)


def run_blocking(make: Coroutine[Any, Any, T], timeout: float | None, name: str) -> T:
    """Wait for *make*, in plain code.

    Raises:
        BlockingInLoopError: if an event loop is running in this thread; it would wait for itself.
        TotalTimeoutError: after *timeout* seconds; the stream is cancelled first.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        make.close()
        raise BlockingInLoopError(
            f"{name}() waits, and an event loop is running in this thread: use `await` or `async for` here"
        )
    job = _Job(make)
    try:
        if not job.ended.wait(timeout):
            job.cancel()
            raise TotalTimeoutError(
                f"{name}(timeout={timeout}) ran out after {timeout} s; the stream was cancelled", phase="sink"
            )
    except KeyboardInterrupt:
        job.cancel()
        raise
    return job.result()


class _Job(Generic[T]):
    """A coroutine at work in the private loop, seen from another thread."""

    def __init__(self, make: Coroutine[Any, Any, T]) -> None:
        self.ended = threading.Event()
        self._task: asyncio.Task[T] | None = None
        self._make = make
        self._loop = _private.loop()
        self._loop.call_soon_threadsafe(self._start)

    def _start(self) -> None:
        self._task = task = self._loop.create_task(self._make, name="semflux-block")
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled():
            task.exception()  # seen now: after a timeout nobody else asks for it
        self.ended.set()

    def cancel(self) -> None:
        """Cancel it, and wait until its connection is closed."""
        self._loop.call_soon_threadsafe(self._cancel)
        self.ended.wait(CANCEL_SECONDS)

    def _cancel(self) -> None:
        assert self._task is not None  # `_start` was scheduled before
        self._task.cancel()

    def result(self) -> T:
        """What it came to, once it has ended."""
        assert self._task is not None
        return self._task.result()


__all__ = ("CANCEL_SECONDS", "THREAD_NAME", "run_blocking", "shutdown")
