"""Blocking calls: the same pipeline, on the loop of one private thread."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from semflux.errors import BlockingInLoopError, TotalTimeoutError

T = TypeVar("T")

THREAD_NAME = "semflux-blocking"

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def _private_loop() -> asyncio.AbstractEventLoop:
    """The loop that blocking calls share, so that their connections are used again."""
    global _loop, _thread
    with _lock:
        if _loop is None or _thread is None or not _thread.is_alive():
            loop = asyncio.new_event_loop()
            _loop = loop
            _thread = threading.Thread(target=_serve, args=(loop,), name=THREAD_NAME, daemon=True)
            _thread.start()
        return _loop


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


def shutdown() -> None:
    """End the private thread and its connections. A later blocking call starts another."""
    global _loop, _thread
    with _lock:
        loop, thread = _loop, _thread
        _loop = _thread = None
    if loop is not None and thread is not None and thread.is_alive():
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5.0)


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
    future = asyncio.run_coroutine_threadsafe(make, _private_loop())
    try:
        return future.result(timeout)
    except concurrent.futures.TimeoutError:
        if future.done():
            raise
        _cancel(future)
        raise TotalTimeoutError(
            f"{name}(timeout={timeout}) ran out after {timeout} s; the stream was cancelled", phase="sink"
        ) from None
    except BaseException:
        _cancel(future)
        raise


def _cancel(future: concurrent.futures.Future[Any]) -> None:
    """Cancel, and wait until the connection is closed."""
    future.cancel()
    loop = _loop
    if loop is not None and loop.is_running():
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(5.0)


__all__ = ("THREAD_NAME", "run_blocking", "shutdown")
