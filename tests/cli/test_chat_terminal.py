"""`semflux chat` on a pseudo-terminal: colours, escapes, conversations, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cli.answers import ENDLESS, HELLO, MODEL, answers, asked
from tests.cli.running import serving, terminal
from tests.faultserver import REQUEST, answer
from tests.frames import DONE, cc, cu


def test_a_terminal_sees_thinking_dimmed_and_control_characters_escaped() -> None:
    script = answers(
        cc({"reasoning_content": "hmm\x1b"}),
        cc({"reasoning_content": " yes"}),
        cc({"content": "a\x1b[2Jb\u202e"}),
        cc(finish="stop"),
        cu(7, 5),
        DONE,
    )
    with serving(script) as server, terminal("chat", *MODEL, "Hi", **server.environ) as screen:
        assert screen.wait() == 0
    _, _, shown = screen.shown.partition("\r\x1b[2K")
    assert screen.shown.startswith("\x1b[2mwaiting for vllm:m ...\x1b[0m")
    assert shown.startswith("\x1b[2mhmm\\x1b\x1b[0m\x1b[2m yes\x1b[0m\n\na\\x1b[2Jb\\u202e\n\x1b[2mtokens: ")


def test_no_color_leaves_no_escape_sequence() -> None:
    """Thinking is then set off by a word."""
    script = answers(cc({"reasoning_content": "hmm"}), cc({"content": "yes"}), cc(finish="stop"), DONE)
    for options, variables in (((), {"NO_COLOR": "1"}), (("--no-color",), {})):
        with (
            serving(script) as server,
            terminal("chat", *MODEL, *options, "Hi", **variables, **server.environ) as screen,
        ):
            assert screen.wait() == 0
        assert screen.shown.startswith("(thinking) hmm\n\nyes\nfirst after ")
        assert "\x1b" not in screen.shown


def test_sources_are_named_after_the_answer() -> None:
    """Once each, on a terminal."""
    cited = [
        {"type": "url_citation", "url_citation": {"url": "https://a.example/", "title": "A"}},
        {"type": "url_citation", "url_citation": {"url": "https://b.example/", "title": ""}},
    ]
    script = answers(cc({"content": "So."}), cc({"annotations": cited}), cc(finish="stop"), DONE)
    with serving(script) as server, terminal("chat", *MODEL, "--no-color", "Hi", **server.environ) as screen:
        assert screen.wait() == 0
    assert screen.shown.startswith("So.\n[1] A https://a.example/\n[2] https://b.example/\n")


def test_a_conversation_keeps_what_was_said() -> None:
    """Ctrl-D ends it, with status 0."""
    second = answers(cc({"content": "Again"}), cc(finish="stop"), DONE)
    with serving((*HELLO, *second)) as server, terminal("chat", *MODEL, **server.environ) as screen:
        at = screen.wait_for("> ")
        screen.keys("Hi\n")
        at = screen.wait_for("tokens: ", at)
        at = screen.wait_for("> ", at)
        screen.keys("\n")  # an empty line asks nothing
        at = screen.wait_for("> ", at)
        screen.keys("More\n")
        screen.wait_for("> ", screen.wait_for("Again", at))
        screen.keys("\x04")
        assert screen.wait() == 0
        assert asked(server, 1) == [("user", "Hi"), ("assistant", "Hello there"), ("user", "More")]


def test_ctrl_c_stops_an_answer_and_the_conversation_goes_on() -> None:
    """What was stopped is forgotten. At the prompt, Ctrl-C twice in a row ends the conversation."""
    with serving(ENDLESS, HELLO) as server, terminal("chat", *MODEL, **server.environ) as screen:
        at = screen.wait_for("> ")
        screen.keys("Hi\n")
        at = screen.wait_for("one ", at)
        screen.keys("\x03")
        server.saw_eof()
        at = screen.wait_for("this turn is forgotten", at)
        at = screen.wait_for("> ", at)
        screen.keys("Hello?\n")
        at = screen.wait_for("> ", screen.wait_for("Hello there", at))
        assert asked(server, 1) == [("user", "Hello?")]
        screen.keys("\x03")
        at = screen.wait_for("> ", screen.wait_for("once more", at))
        screen.keys("\x03")
        assert screen.wait() == 130
        assert "Traceback" not in screen.shown


def test_a_failed_turn_does_not_end_the_conversation() -> None:
    failing = (REQUEST, answer(b"{}", status="500 X"))
    with serving(failing, HELLO) as server, terminal("chat", *MODEL, **server.environ) as screen:
        at = screen.wait_for("> ")
        screen.keys("Hi\n")
        at = screen.wait_for("> ", screen.wait_for("ServerError", at))
        screen.keys("\x04")
        assert screen.wait() == 0


def test_a_conversation_with_a_wrong_model_ends_at_once() -> None:
    with terminal("chat", "--model", "local:nowhere.gguf") as screen:
        screen.wait_for("> ")
        screen.keys("Hi\n")
        assert screen.wait() == 2
        assert "there is no model file" in screen.shown


def test_a_conversation_may_go_into_a_file(tmp_path: Path) -> None:
    """The marker is where the user looks; the file has the answers alone."""
    path = tmp_path / "answers.txt"
    with (
        path.open("wb") as file,
        serving(HELLO) as server,
        terminal("chat", *MODEL, stdout=file.fileno(), **server.environ) as screen,
    ):
        at = screen.wait_for("> ")
        screen.keys("Hi\n")
        screen.wait_for("> ", screen.wait_for("tokens: ", at))
        screen.keys("\x04")
        assert screen.wait() == 0
    assert path.read_text() == "Hello there\n"


def test_a_line_in_another_encoding_is_refused_and_the_conversation_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "answers.txt"
    with (
        path.open("wb") as file,
        terminal(
            "chat", *MODEL, stdout=file.fileno(), PYTHONUTF8="0", PYTHONIOENCODING="utf-8:strict"
        ) as screen,
    ):
        at = screen.wait_for("> ")
        os.write(screen._master, b"\xff\xfe\n")
        at = screen.wait_for("> ", screen.wait_for("not in the terminal's encoding", at))
        screen.keys("\x04")
        assert screen.wait() == 0
