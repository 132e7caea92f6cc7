"""The command in a process of its own, and a loopback server that answers it."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faultserver import FaultServer, Script

COMMAND = (sys.executable, "-m", "semflux")
ROOT = Path(__file__).parents[2]
TIMEOUT = 60.0

# Makes its standard error the controlling terminal, so that Ctrl-C becomes a signal; then it is the command.
_TAKE_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(2, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


class Server:
    """A `FaultServer` on a loop of its own thread, for children to talk to."""

    def __init__(self, *scripts: Script) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.faults = FaultServer(*scripts)
        self.call(self.faults.__aenter__())

    def call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(TIMEOUT)

    @property
    def environ(self) -> dict[str, str]:
        """What makes `--model vllm:m` lead here."""
        return {"VLLM_BASE_URL": f"http://127.0.0.1:{self.faults.port}/v1"}

    def saw_eof(self, n: int = 0) -> None:
        """Wait until the client of connection *n* has closed it."""

        async def wait() -> None:
            seen = await self.faults.connection(n)
            await asyncio.wait_for(seen.eof.wait(), TIMEOUT)

        self.call(wait())

    def close(self) -> None:
        self.call(self.faults.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def serving(*scripts: Script) -> Iterator[Server]:
    server = Server(*scripts)
    try:
        yield server
    finally:
        server.close()


def environ(**changes: str) -> dict[str, str]:
    """This process's environment without what changes the looks of the output."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "PYTHONIOENCODING")}
    return {**kept, "TERM": "xterm", "PYTHONUTF8": "1", **changes}


def run(*arguments: str, stdin: Any = None, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """The command with everything in pipes; no *stdin*: /dev/null."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=environ(**variables),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )


class Terminal:
    """The command on a pseudo-terminal: what it shows, and keys for it."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        stdout: int | None = None,
        stdin: int | None = None,
        **variables: str,
    ) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, *COMMAND, *arguments],
            cwd=ROOT,
            env=environ(**variables),
            stdin=slave if stdin is None else stdin,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 4096)
            except OSError:  # the other end is closed: that is how Linux says it
                return
            if not data:
                return
            self.shown += data.decode("utf-8", "replace").replace("\r\n", "\n")

    def keys(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str, after: int = 0) -> int:
        """Wait until *text* is shown, from position *after* on; gives the position behind it."""
        deadline = time.monotonic() + TIMEOUT
        while (at := self.shown.find(text, after)) < 0:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.shown!r}"
            time.sleep(0.01)
        return at + len(text)

    def wait(self) -> int:
        """Wait for the end; gives the exit status."""
        status = self.process.wait(TIMEOUT)
        self._reader.join(TIMEOUT)
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        os.close(self._master)


@contextmanager
def terminal(*arguments: str, **options: Any) -> Iterator[Terminal]:
    shown = Terminal(arguments, **options)
    try:
        yield shown
    finally:
        shown.close()
