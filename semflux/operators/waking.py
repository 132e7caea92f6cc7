"""Waiting for what another thread, or another event loop, does."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any


def resolve(waiter: asyncio.Future[None]) -> None:
    """End the wait, on the thread of its loop. Idempotent."""
    if not waiter.done():
        waiter.set_result(None)


def wake(waiter: asyncio.Future[None]) -> None:
    """End the wait, from any thread. Never raises."""
    with contextlib.suppress(RuntimeError):  # the loop, and with it who waited, is gone
        waiter.get_loop().call_soon_threadsafe(resolve, waiter)


async def until_done(task: asyncio.Future[Any]) -> None:
    """Wait until *task* is done, whichever loop it belongs to; what it came to is not asked. A task of a loop that does
    not run is not waited for."""
    loop = task.get_loop()
    if loop is asyncio.get_running_loop():
        await asyncio.wait({task})
        return
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(done: asyncio.Future[Any]) -> None:
        wake(waiter)

    with contextlib.suppress(RuntimeError):  # the loop is closed, and the task with it
        if loop.is_running():
            loop.call_soon_threadsafe(task.add_done_callback, tell)
            await waiter


__all__ = ("resolve", "until_done", "wake")
