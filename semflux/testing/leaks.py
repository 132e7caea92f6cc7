"""What a test leaves behind: tasks, subscriptions, sessions, sockets, loops, threads, and exceptions nobody saw.

A task that is still pending when its loop ends is cancelled without a word, and the exception of a
task that nobody awaits is a log line at best. `watch()` turns both into findings. For any test framework; the pytest
plugin of semflux, and its own tests, are made of it.
"""

# pyright: reportPrivateUsage=false
# What asyncio and threads keep for themselves is what a leak shows in.

from __future__ import annotations

import asyncio
import asyncio.runners
import gc
import os
import stat
import threading
import time
import weakref
from typing import Any

import aiohttp

from semflux.flux.pump import Pump

LASTING_THREADS = ("semflux-blocking",)
"""Threads that are made once and stay: the private loop behind `block()`."""

RUNNER_THREADS = ("execnet", "xdist")
"""Threads of what runs the tests, by the beginning of their names."""

_DESCRIPTORS = "/dev/fd"


class LeakWatch:
    """What has been opened in this process since `install`, by weak references, and what went wrong unseen.

    One for a process: `watch()` gives it.
    """

    def __init__(self) -> None:
        self.opened: int = 0
        """Loops, sessions and subscriptions made so far; it tells whether a test made any."""
        self.loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, int] = weakref.WeakKeyDictionary()
        """Each loop with its number."""
        self.sessions: weakref.WeakKeyDictionary[aiohttp.ClientSession, int] = weakref.WeakKeyDictionary()
        """Each client session with its number."""
        self.pumps: weakref.WeakKeyDictionary[Pump, int] = weakref.WeakKeyDictionary()
        """What drives each subscription to a stream of ours, with its number."""
        self.abandoned: list[str] = []
        """Tasks that `asyncio.run` or the like had to cancel."""
        self.unhandled: list[str] = []
        """What reached the default exception handler of a loop. A test that means it clears the list."""

    def install(self) -> None:
        """Patch asyncio, aiohttp and the source of streams; for the life of the process."""
        handle = asyncio.BaseEventLoop.default_exception_handler
        runners: Any = asyncio.runners
        cancel_all: Any = runners._cancel_all_tasks
        self._count_made(asyncio.BaseEventLoop, self.loops)
        self._count_made(aiohttp.ClientSession, self.sessions)
        self._count_made(Pump, self.pumps)

        def default_exception_handler(loop: asyncio.BaseEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            self.unhandled.append(f"{context.get('message')} {error!r} {context.get('task', '')}".strip())
            handle(loop, context)

        def cancel_all_tasks(loop: asyncio.AbstractEventLoop) -> None:
            if pending(loop):
                # What was told to end, or has its end waiting in the loop, is given the turns to do so.
                loop.run_until_complete(_turns(10))
                self.abandoned += [repr(task) for task in pending(loop) if not task.cancelling()]
            cancel_all(loop)

        loop_class: Any = asyncio.BaseEventLoop
        loop_class.default_exception_handler = default_exception_handler
        runners._cancel_all_tasks = cancel_all_tasks

    def _count_made(self, cls: Any, made: weakref.WeakKeyDictionary[Any, int]) -> None:
        make = cls.__init__

        def init(instance: Any, *args: Any, **kwargs: Any) -> None:
            make(instance, *args, **kwargs)
            self.opened += 1
            made[instance] = self.opened

        cls.__init__ = init

    def begin(self) -> LeakCheck:
        """Everything that is open now was there before."""
        return LeakCheck(self)

    def lasting_loops(self) -> list[asyncio.AbstractEventLoop]:
        """The loops that run in a thread which may stay."""
        idents = {thread.ident for thread in threading.enumerate() if thread.name in LASTING_THREADS}
        return [loop for loop in list(self.loops) if getattr(loop, "_thread_id", None) in idents]

    def open_sockets(self) -> set[int]:
        """The inodes of this process's sockets, without the self-pipes of loops that may stay; none where the system
        does not list descriptors."""
        sockets: set[int] = set()
        if not os.path.isdir(_DESCRIPTORS):  # noqa: PTH112  # a list of numbers, not a path
            return sockets
        for fd in os.listdir(_DESCRIPTORS):  # noqa: PTH208  # numbers are wanted, not paths
            try:
                status = os.fstat(int(fd))
            except OSError:  # the descriptor of the listing itself
                continue
            if stat.S_ISSOCK(status.st_mode):
                sockets.add(status.st_ino)
        for loop in self.lasting_loops():
            for end in (getattr(loop, "_ssock", None), getattr(loop, "_csock", None)):
                if end is not None and end.fileno() >= 0:
                    sockets.discard(os.fstat(end.fileno()).st_ino)
        return sockets

    def open_threads(self) -> set[threading.Thread]:
        """The living threads, without those that may stay and those of what runs the tests."""
        threads = {
            thread
            for thread in threading.enumerate()
            if not (
                thread.name in LASTING_THREADS
                or thread.name.startswith(RUNNER_THREADS)
                or isinstance(thread, threading._DummyThread)  # not ours: a foreign thread that looked in
            )
        }
        for loop in self.lasting_loops():
            executor: Any = getattr(loop, "_default_executor", None)
            workers: set[threading.Thread] = getattr(executor, "_threads", set())
            threads -= workers
        return threads


class LeakCheck:
    """One test: from `LeakWatch.begin()` to `found()`."""

    def __init__(self, leaks: LeakWatch) -> None:
        self._leaks = leaks
        leaks.abandoned.clear()
        leaks.unhandled.clear()
        self._mark = leaks.opened
        self._sockets = leaks.open_sockets()
        self._threads = leaks.open_threads()
        self._tasks = {id(task) for loop in leaks.lasting_loops() for task in pending(loop)}

    def found(self, grace: float = 2.0) -> list[str]:
        """What is left, in words; empty if nothing is. *grace*: seconds that a peer's thread or the far end of a
        socket may take to notice that all is over."""
        leaks = self._leaks
        left = self._left()
        if left or leaks.opened > self._mark or leaks.abandoned or leaks.unhandled:
            # Whatever is only kept by a cycle goes now, so that its finalizer speaks up in the right test.
            gc.collect()
            left = self._left()
        deadline = time.monotonic() + grace
        while left and time.monotonic() < deadline:
            time.sleep(0.005)
            gc.collect()
            left = self._left()
        left += [f"task that had to be cancelled: {task}" for task in leaks.abandoned]
        left += [f"unhandled in a loop: {message}" for message in leaks.unhandled]
        return left

    def _left(self) -> list[str]:
        leaks, mark = self._leaks, self._mark
        lasting = leaks.lasting_loops()
        left: list[str] = []
        for loop, number in list(leaks.loops.items()):
            if loop in lasting:
                left += [f"task: {task!r}" for task in pending(loop) if id(task) not in self._tasks]
            elif number > mark:
                if not loop.is_closed():
                    left.append(f"event loop left open: {loop!r}")
                left += [f"task: {task!r}" for task in pending(loop) if not task.cancelling()]
        left += [
            f"subscription that was neither read to its end nor cancelled: {pump!r}"
            for pump, number in list(leaks.pumps.items())
            if number > mark and not pump.over
        ]
        left += [
            f"client session: {session!r}"
            for session, number in list(leaks.sessions.items())
            if number > mark and not session.closed
        ]
        left += [f"socket: inode {inode}" for inode in leaks.open_sockets() - self._sockets]
        left += [f"thread: {thread!r}" for thread in leaks.open_threads() - self._threads]
        return left


def pending(loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[Any]]:
    """The tasks of *loop* that are not done."""
    return [task for task in asyncio.all_tasks(loop) if not task.done()]


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


_installed: list[LeakWatch] = []


def watch() -> LeakWatch:
    """The watch of this process; the first call installs it, and it stays."""
    if not _installed:
        leaks = LeakWatch()
        leaks.install()
        _installed.append(leaks)
    return _installed[0]


__all__ = ("LASTING_THREADS", "RUNNER_THREADS", "LeakCheck", "LeakWatch", "pending", "watch")
