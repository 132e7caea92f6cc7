"""`semflux replay` and `semflux dialects`, in this process and in one of their own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from semflux.cli import main
from semflux.contract import violations_of
from semflux.dialects import DIALECTS
from semflux.dialects.vendors import VENDORS
from semflux.events import ChatEvent, ChatEventType
from tests.cli.running import COMMAND, ROOT, TIMEOUT, environ, run, terminal
from tests.frames import DONE, cc, cu, sse

T = ChatEventType
GOOD = (
    cc({"role": "assistant", "content": "Hello"})
    + cc({"content": ", wörld 😀"})
    + cc(finish="stop")
    + cu(3, 2)
    + DONE
)
NO_DONE = cc({"content": "Hello"}, "stop")
CUT = cc({"content": "Hello"})


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "capture.sse"
    path.write_bytes(GOOD)
    return path


def replay(capfdbinary: Any, *arguments: Any) -> tuple[int, bytes, str]:
    """Exit status, standard output, standard error."""
    status = main(["replay", *[str(argument) for argument in arguments]])
    done = capfdbinary.readouterr()
    return status, done.out, done.err.decode()


def events_of(output: bytes) -> list[ChatEvent]:
    return [ChatEvent.from_dict(json.loads(line)) for line in output.splitlines()]


def test_events_are_json_lines_that_read_back(capture: Path, capfdbinary: Any) -> None:
    """All of them, in an order that keeps the contract."""
    status, out, err = replay(capfdbinary, capture, "--dialect", "openai-chat")
    events = events_of(out)
    assert (status, err) == (0, "")
    assert violations_of(events) == ()
    assert "".join([event.text or "" for event in events if event.is_(T.TEXT_DELTA)]) == "Hello, wörld 😀"
    assert events[-1].is_(T.RESPONSE_END)


def test_text_is_the_text_alone_without_a_line_end(capture: Path, capfdbinary: Any) -> None:
    out = replay(capfdbinary, capture, "-d", "openai-chat", "-f", "text")
    assert out == (0, "Hello, wörld 😀".encode(), "")


def test_response_is_one_json_object(capture: Path, capfdbinary: Any) -> None:
    status, out, err = replay(capfdbinary, capture, "--dialect", "openai-chat", "--format", "response")
    response = json.loads(out)
    assert (status, err, out.count(b"\n")) == (0, "", 1)
    assert (response["text"], response["finish_reason"]) == ("Hello, wörld 😀", "stop")
    assert response["usage"]["total_tokens"] == 5


@pytest.mark.parametrize("chunk", [1, 2, 7, 100, 10**9])
def test_any_chunk_gives_the_same(capture: Path, capfdbinary: Any, chunk: int) -> None:
    """But for the clock and the id."""

    def meaning(output: bytes) -> list[ChatEvent]:
        return events_of(output)[:-1]

    _, whole, _ = replay(capfdbinary, capture, "-d", "openai-chat")
    _, cut, _ = replay(capfdbinary, capture, "-d", "openai-chat", "--chunk", chunk)
    assert meaning(cut)[:-1] == meaning(whole)[:-1]


def test_an_error_is_status_1_with_what_had_come(tmp_path: Path, capfdbinary: Any) -> None:
    """The partial response on standard output, one line on standard error."""
    path = tmp_path / "cut.sse"
    path.write_bytes(CUT)
    status, out, err = replay(capfdbinary, path, "-d", "openai-chat", "-f", "response")
    response = json.loads(out)
    assert (status, response["text"], response["partial"]) == (1, "Hello", True)
    assert err.startswith("semflux: TruncatedStreamError: ")
    assert err.count("\n") == 1


def test_a_repair_is_told_and_in_strict_mode_fatal(tmp_path: Path, capfdbinary: Any) -> None:
    path = tmp_path / "no-done.sse"
    path.write_bytes(NO_DONE)
    loose = replay(capfdbinary, path, "-d", "openai-chat", "-f", "text")
    strict = replay(capfdbinary, path, "-d", "openai-chat", "-f", "text", "--strict")
    assert loose == (0, b"Hello", "semflux: mended what the provider got wrong: missing_done 1\n")
    assert strict[0] == 1
    assert "semflux: RepairError: " in strict[2]


def test_an_abort_is_status_3(capture: Path, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No dialect of today ends in one, so a stream is put in the place of the parser's."""
    import semflux
    from semflux.cli import replay as module

    abort = semflux.Abort("server shutting down")
    monkeypatch.setattr(module, "parse", lambda *_, **__: semflux.Flux.just(semflux.ResponseStart(), abort))
    status, _, err = replay(capfdbinary, capture, "-d", "openai-chat")
    assert (status, err) == (3, "semflux: the stream was aborted: server shutting down\n")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["replay", "nowhere.sse", "-d", "openai-chat"], "cannot read 'nowhere.sse': No such file"),
        (["replay", ".", "-d", "openai-chat"], "cannot read '.': Is a directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_wrong_usage(capfdbinary: Any, arguments: list[str], said: str) -> None:
    assert main(arguments) == 2
    assert said in capfdbinary.readouterr().err.decode()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["replay", "f", "-d", "openai_chat"], "did you mean 'openai-chat'?"),
        (["replay", "f", "-d", "klingon"], "unknown dialect 'klingon'"),
        (["replay", "f"], "--dialect"),
        (["replay", "-d", "openai-chat"], "FILE"),
        (["replay", "f", "-d", "openai-chat", "-f", "yaml"], "invalid choice: 'yaml'"),
        (["replay", "f", "-d", "openai-chat", "--chunk", "0"], "at least 1"),
        (["replay", "f", "-d", "openai-chat", "--chunk", "x"], "at least 1"),
        (["reply"], "invalid choice: 'reply'"),
        ([], "usage: semflux"),
    ],
)
def test_wrong_usage_is_status_2_and_says_why(capfdbinary: Any, arguments: list[str], said: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    done = capfdbinary.readouterr()
    assert (stopped.value.code, done.out) == (2, b"")
    assert said in done.err.decode()


def test_an_input_that_breaks_off_is_an_error_that_names_the_cause(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: Any
) -> None:
    class Broken(io.RawIOBase):
        def read1(self, size: int) -> bytes:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": Broken()}))
    status, _, err = replay(capfdbinary, "-", "-d", "openai-chat", "-f", "text")
    assert (status, err) == (1, "semflux: SemfluxError: the input could not be read: Input/output error\n")


def test_a_closed_standard_input_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    status, _, err = replay(capfdbinary, "-", "-d", "openai-chat")
    assert (status, err) == (2, "semflux: standard input is closed: name a file, or pipe one in\n")


def test_a_live_pipe_is_shown_as_it_comes() -> None:
    """Each piece of text is there before the next bytes are sent."""
    child = subprocess.Popen(
        [*COMMAND, "replay", "-", "--dialect", "openai-chat", "--format", "text"],
        cwd=ROOT,
        env=environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        child.stdin.write(cc({"content": "Hello"}))
        child.stdin.flush()
        assert child.stdout.read(5) == b"Hello"
        child.stdin.write(cc({"content": "!"}, "stop") + DONE)
        child.stdin.close()
        assert child.stdout.read() == b"!"
        assert child.wait(TIMEOUT) == 0


def test_a_reader_that_goes_ends_it_quietly(tmp_path: Path) -> None:
    """As `| head -1` does."""
    path = tmp_path / "long.sse"
    path.write_bytes(cc({"content": "word "}) * 20_000 + cc(finish="stop") + DONE)
    child = subprocess.Popen(
        [*COMMAND, "replay", str(path), "--dialect", "openai-chat"],
        cwd=ROOT,
        env=environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    with child:
        assert b"RESPONSE_START" in child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(TIMEOUT) == 141


def test_an_output_that_is_full_is_told() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "replay", "-", "-d", "openai-chat"],
            cwd=ROOT,
            env=environ(),
            input=GOOD,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, b"semflux: No space left on device\n")


def test_ctrl_c_ends_it_without_a_traceback() -> None:
    """While it waits for more: RESPONSE_START has shown that it reads."""
    with terminal("replay", "-", "-d", "openai-chat") as screen:
        screen.wait_for("STEP_START")
        screen.keys("\x03")
        assert screen.wait() == 130
        assert "Traceback" not in screen.shown


def test_a_terminal_gets_the_text_escaped_and_its_line_ended(tmp_path: Path) -> None:
    path = tmp_path / "hostile.sse"
    path.write_bytes(cc({"content": "a\x1b[31mb\u202ec"}, "stop") + DONE)
    with terminal("replay", str(path), "-d", "openai-chat", "-f", "text") as screen:
        assert screen.wait() == 0
        assert screen.shown == "a\\x1b[31mb\\u202ec\n"


def test_dialects_lists_every_dialect_and_vendor(capfdbinary: Any) -> None:
    assert main(["dialects"]) == 0
    shown = capfdbinary.readouterr().out.decode()
    for name in (*DIALECTS, *VENDORS):
        assert name in shown
    assert "ANTHROPIC_API_KEY" in shown


def test_dialects_as_json(capfdbinary: Any) -> None:
    assert main(["dialects", "--json"]) == 0
    listing = json.loads(capfdbinary.readouterr().out)
    assert [dialect["name"] for dialect in listing["dialects"]] == list(DIALECTS)
    assert {vendor["prefix"]: vendor["env_keys"] for vendor in listing["vendors"]}["groq"] == ["GROQ_API_KEY"]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["chat", "--help"], ["replay", "--help"], ["dialects", "--help"]]
)
def test_help_is_there_with_examples(capfdbinary: Any, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 0
    shown = capfdbinary.readouterr().out.decode()
    assert "usage: semflux" in shown
    assert ("examples:" in shown) == (arguments[0] in ("chat", "replay"))


def test_the_version_is_told() -> None:
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.startswith(b"semflux 0.")


def test_the_version_of_an_uninstalled_tree(monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> None:
    import importlib.metadata

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(SystemExit):
        main(["--version"])
    assert b"not installed" in capfdbinary.readouterr().out


def test_sse_comments_and_pings_are_no_news(capfdbinary: Any, tmp_path: Path) -> None:
    """Notes are no repairs: nothing is said of them."""
    path = tmp_path / "ping.sse"
    path.write_bytes(b": ping\n\n" + GOOD + sse("late"))
    assert replay(capfdbinary, path, "-d", "openai-chat", "-f", "text")[2] == ""
