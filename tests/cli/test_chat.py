"""`semflux chat` against a server that answers by script: pipes, terminals, signals."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from semflux.cli import chat as chat_module
from semflux.cli import main
from semflux.cli.printer import Printer
from semflux.errors import ConfigurationError
from tests.cli.answers import ENDLESS, HELLO, MODEL, SSE, answers, asked, body
from tests.cli.running import COMMAND, ROOT, TIMEOUT, Server, environ, run, serving
from tests.faultserver import EOF, REQUEST, RESET, Script, answer, chunk, head
from tests.frames import DONE, cc

# In a pipe


def test_the_answer_goes_out_and_the_figures_go_to_standard_error() -> None:
    """Text as it is, its last line ended; tokens, time to the first one, tokens a second."""
    with serving(HELLO) as server:
        done = run("chat", *MODEL, "Hi", **server.environ)
        assert asked(server) == [("user", "Hi")]
    assert (done.returncode, done.stdout) == (0, b"Hello there\n")
    assert done.stderr.startswith(b"tokens: 7 in, 2 out; first after ")
    assert b"tokens/s" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_words_after_two_dashes_are_the_prompt_whatever_they_look_like() -> None:
    """As `make chat` passes them."""
    with serving(HELLO) as server:
        done = run("chat", *MODEL, "--max-tokens", "9", "--", "--model is", "what?", **server.environ)
        assert asked(server) == [("user", "--model is what?")]
        assert body(server)["max_tokens"] == 9
    assert done.returncode == 0


def test_piped_text_comes_after_the_prompt() -> None:
    with serving(HELLO) as server:
        run("chat", *MODEL, "Translate:", stdin="Grüße\n".encode(), **server.environ)
        assert asked(server) == [("user", "Translate:\n\nGrüße")]


@pytest.mark.parametrize("arguments", [[], ["-"], ["--", ""]])
def test_piped_text_alone_is_the_prompt(arguments: list[str]) -> None:
    with serving(HELLO) as server:
        run("chat", *MODEL, *arguments, stdin=b"line 1\n  line 2\n", **server.environ)
        assert asked(server) == [("user", "line 1\n  line 2")]


def test_nothing_to_ask_is_wrong_usage() -> None:
    done = run("chat", *MODEL, stdin=b" \n")
    assert done.returncode == 2
    assert done.stderr.startswith(b"semflux: nothing to ask")


def test_instructions_come_first() -> None:
    with serving(HELLO) as server:
        run("chat", *MODEL, "--system", "Be brief.", "Hi", **server.environ)
        assert asked(server) == [("system", "Be brief."), ("user", "Hi")]


def test_a_pipe_gets_control_characters_as_they_are_and_no_thinking() -> None:
    script = answers(
        cc({"reasoning_content": "hmm"}), cc({"content": "\x1b[31mred\u202e"}), cc(finish="stop"), DONE
    )
    with serving(script) as server:
        done = run("chat", *MODEL, "Hi", **server.environ)
    assert done.stdout == "\x1b[31mred\u202e\n".encode()
    assert b"\x1b" not in done.stderr


def test_a_refusal_is_no_answer() -> None:
    """It goes to standard error, and the last line says it."""
    with serving(answers(cc({"refusal": "I cannot."}), cc(finish="content_filter"), DONE)) as server:
        done = run("chat", *MODEL, "Hi", **server.environ)
    assert done.stdout == b""
    assert done.stderr.startswith(b"I cannot.\n")
    assert b"stopped by the provider's filter" in done.stderr


def test_events_are_json_lines_heartbeats_and_all() -> None:
    with serving(HELLO) as server:
        done = run("chat", *MODEL, "--events", "Hi", **server.environ)
    types = [json.loads(line)["type"] for line in done.stdout.splitlines()]
    assert types[0] == "RESPONSE_START"
    assert types[-1] == "RESPONSE_END"
    assert types.count("TEXT_DELTA") == 2
    assert done.stderr.startswith(b"tokens: ")


# What goes wrong


def test_an_error_is_one_line_and_status_1() -> None:
    script = (
        REQUEST,
        answer(b'{"error": {"message": "No such\\nmodel \\u001b[2J"}}', status="404 Not Found"),
    )
    with serving(script) as server:
        done = run("chat", *MODEL, "Hi", **server.environ)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"semflux: NotFoundError: ")
    assert b"\x1b" not in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_an_answer_that_breaks_off_is_shown_as_far_as_it_came() -> None:
    script = (REQUEST, head("200 OK", SSE), cc({"content": "Hel"}), 0.05, RESET)
    with serving(script) as server:
        done = run("chat", *MODEL, "Hi", **server.environ)
    assert (done.returncode, done.stdout) == (1, b"Hel\n")
    assert b"ConnectionLostError" in done.stderr


def test_what_support_asks_for_is_told() -> None:
    """Status, request id, when to come back."""
    script: Script = (
        REQUEST,
        answer(
            b'{"error": {"message": "slow down"}}', "x-request-id: req_7", "retry-after: 3", status="429 X"
        ),
    )
    with serving(script) as server:
        done = run("chat", *MODEL, "Hi", **server.environ)
    assert b"RateLimitError" in done.stderr
    assert b"request id req_7, try again in 3 s" in done.stderr


@pytest.mark.parametrize(
    "model, variables, said",
    [
        ("openai-chat:m", {"OPENAI_API_KEY": ""}, "openai needs an API key: set OPENAI_API_KEY"),
        ("azure:m", {"AZURE_OPENAI_API_KEY": "k"}, "azure needs an address: set AZURE_OPENAI_ENDPOINT"),
        ("gpt-4o", {}, 'did you mean "openai-chat:gpt-4o"?'),
        ("local:nowhere.gguf", {}, "there is no model file"),
    ],
)
def test_a_wrong_model_is_status_2_and_says_what_to_do(
    model: str, variables: dict[str, str], said: str
) -> None:
    done = run("chat", "--model", model, "Hi", **variables)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith("semflux: ")
    assert said in done.stderr.decode()


def test_a_reader_that_goes_ends_it_quietly_and_closes_the_connection() -> None:
    frames = [chunk(cc({"content": "word " * 2000}))] * 50
    script: Script = (REQUEST, head("200 OK", SSE, chunked=True), *frames, EOF)
    with serving(script) as server:
        child = subprocess.Popen(
            [*COMMAND, "chat", *MODEL, "Hi"],
            cwd=ROOT,
            env=environ(**server.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdout is not None
        assert child.stderr is not None
        with child:
            child.stdout.read(5)
            child.stdout.close()
            assert (child.wait(TIMEOUT), child.stderr.read()) == (141, b"")


def test_ctrl_c_closes_the_connection_and_leaves_no_traceback() -> None:
    """Status 130; what had come stays."""
    with serving(ENDLESS) as server:
        child = subprocess.Popen(
            [*COMMAND, "chat", *MODEL, "Hi"],
            cwd=ROOT,
            env=environ(**server.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdout is not None
        assert child.stderr is not None
        with child:
            assert child.stdout.read(4) == b"one "
            child.send_signal(signal.SIGINT)
            server.saw_eof()
            assert (child.wait(TIMEOUT), child.stdout.read(), child.stderr.read()) == (130, b"\n", b"")


def test_ctrl_c_before_the_first_byte() -> None:
    with serving((REQUEST, EOF)) as server:
        child = subprocess.Popen(
            [*COMMAND, "chat", *MODEL, "Hi"],
            env=environ(**server.environ),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert child.stderr is not None
        with child:
            server.call(_requested(server))
            child.send_signal(signal.SIGINT)
            server.saw_eof()
            assert (child.wait(TIMEOUT), child.stderr.read()) == (130, b"")


async def _requested(server: Server) -> None:
    import asyncio

    while not server.faults.requests:
        await asyncio.sleep(0.01)


def test_a_pipe_that_nobody_closes_is_explained(monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> None:
    """After two seconds; here at once."""
    monkeypatch.setattr(chat_module, "STDIN_HINT_SECONDS", 0.0)
    read, write = os.pipe()

    class Err(Printer):
        def line(self, text: str, style: str | None = None) -> None:
            super().line(text, style)
            os.close(write)  # now it ends

    with os.fdopen(read, "rb") as pipe:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
        with pytest.raises(ConfigurationError, match="nothing to ask"):
            chat_module._prompt([], Err(sys.stderr))
    assert b"reading standard input to its end" in capfdbinary.readouterr().err


@pytest.mark.parametrize("closed, status", [("0", 0), ("1", 0)])
def test_a_closed_standard_stream_is_no_failure(closed: str, status: int) -> None:
    with serving(HELLO) as server:
        done = subprocess.run(
            ["/bin/sh", "-c", f'"$0" -m semflux chat --model vllm:m Hi {closed}>&-', sys.executable],
            cwd=ROOT,
            env=environ(**server.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    assert done.returncode == status
    assert b"Traceback" not in done.stderr


# In this process: for errors that no server makes


def test_a_status_of_the_stream_is_told(capfdbinary: Any) -> None:
    """Such as a retry."""
    import semflux
    from semflux.cli.shown import Live

    out, err = Printer(sys.stdout), Printer(sys.stderr)
    view = Live(out, err, "m")
    view.show(semflux.Status("retry", "in 0.5 s"))
    view.show(semflux.Status("queued"))
    view.show(semflux.Status("stop_sequence"))  # the figures say how it ended
    view.end()
    done = capfdbinary.readouterr()
    assert (done.out, done.err) == (b"", b"retry: in 0.5 s\nqueued\n")


def test_the_rate_leaves_out_what_was_thought_unseen() -> None:
    """Tokens that came in no piece took no part of the time between first and last."""
    import semflux
    from semflux.cli.shown import Meter

    times = iter([0.0, 2.0, 3.0])
    meter = Meter(lambda: next(times))
    meter.note(semflux.TextDelta("a"))
    meter.note(semflux.TextDelta("b"))
    usage = semflux.Usage(output_tokens=111, reasoning_tokens=100)
    assert meter.summary(semflux.ResponseEnd(usage=usage, finish_reason="length")) == (
        "tokens: 111 out (100 thinking); first after 2.00 s; 10.0 tokens/s; cut at the token limit"
    )


def test_a_stream_without_figures() -> None:
    import semflux
    from semflux.cli.shown import Meter

    assert Meter().summary(semflux.ResponseEnd()) == "no figures from the provider"


def test_main_in_this_process(monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with serving(HELLO) as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        assert main(["chat", *MODEL, "Hi"]) == 0
    assert capfdbinary.readouterr().out == b"Hello there\n"
