"""`semflux chat` with the real local model."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from semflux import local
from tests.cli.running import COMMAND, ROOT, TIMEOUT, environ, run, terminal

pytestmark = pytest.mark.xdist_group("local")


def test_the_local_model_answers_into_a_pipe(local_server: local.LocalServer) -> None:
    """The default model: no key, no network."""
    done = run("chat", "--max-tokens", "20", "--", "Why is the sky blue?")
    assert done.returncode == 0
    assert len(done.stdout) > 10
    assert done.stderr.startswith(b"tokens: ")


def test_the_local_model_answers_on_a_terminal(local_server: local.LocalServer) -> None:
    """In two turns; the second knows of the first by its longer prompt."""
    with terminal("chat", "--max-tokens", "8", "--no-color") as screen:
        at = screen.wait_for("> ")
        for said in ("Hello", "Once more"):
            screen.keys(said + "\n")
            at = screen.wait_for("> ", screen.wait_for("tokens: ", at))
        screen.keys("\x04")
        assert screen.wait() == 0


def test_the_local_models_events(local_server: local.LocalServer) -> None:
    done = run("chat", "--events", "--max-tokens", "4", "Hello")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["type"] == "RESPONSE_END"
    assert events[-1]["usage"]["output_tokens"] <= 4


def test_ctrl_c_leaves_no_server_behind(local_server: local.LocalServer) -> None:
    """Status 130, and the child's own llama.cpp process ends with it."""
    with terminal("chat", "--max-tokens", "2000", "--no-color", "Tell a long story about a dog.") as screen:
        screen.wait_for(" ")
        children = _children(screen.process.pid)
        screen.keys("\x03")
        assert screen.wait() == 130
        assert "Traceback" not in screen.shown
    assert not any(_alive(child) for child in children)


def test_a_closed_reader_ends_it(local_server: local.LocalServer) -> None:
    child = subprocess.Popen(
        [*COMMAND, "chat", "--max-tokens", "500", "Count to one hundred."],
        cwd=ROOT,
        env=environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    with child:
        child.stdout.read(1)
        child.stdout.close()
        assert (child.wait(TIMEOUT), child.stderr.read()) == (141, b"")


def _children(pid: int) -> list[int]:
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
