"""The arguments of `semflux`, and `main`."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeAlias

from semflux.cli.chat import run_chat
from semflux.cli.listing import run_dialects
from semflux.cli.outcome import BROKEN_PIPE, FAILED, INTERRUPTED, WRONG_USAGE, status_of_error, tell_error
from semflux.cli.printer import Printer
from semflux.cli.replay import DEFAULT_CHUNK, run_replay
from semflux.dialects import DIALECTS
from semflux.dialects import dialect as find_dialect
from semflux.errors import ConfigurationError, SemfluxError

_AddParser: TypeAlias = Callable[..., argparse.ArgumentParser]

_STATUSES = """\
exit status:
  0  the stream ended well          3    it was aborted by the other side
  1  it failed                      130  Ctrl-C
  2  wrong usage: an argument, a file, a model, a missing key
"""

_CHAT_EXAMPLES = """\
examples:
  semflux chat "Why is the sky blue?"
  semflux chat                                   a conversation; Ctrl-D ends it
  git diff | semflux chat "Review this change:"
  semflux chat --events hello | jq -c '[.type, .text]'
  ANTHROPIC_API_KEY=... semflux chat --model anthropic:claude-sonnet-4-5 --system "Be brief." hello

Standard output has the answer, standard error all else. In a pipe the answer comes as it is, without
thinking; on a terminal control characters in it are shown as escapes.

"""

_REPLAY_EXAMPLES = """\
examples:
  semflux replay capture.sse --dialect openai-chat
  semflux replay capture.sse --dialect anthropic --format text
  semflux replay capture.sse --dialect anthropic --format response --strict | jq .usage
  curl -sN ... | semflux replay - --dialect openai-chat --format text

"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with *argv*, else with the arguments of the process; gives the exit status."""
    err = Printer(sys.stderr)
    try:
        arguments = _parse(argv)
        color = not getattr(arguments, "no_color", False)
        err = Printer(sys.stderr, color=color)
        run: Callable[[argparse.Namespace, Printer, Printer], int] = arguments.run
        return run(arguments, Printer(sys.stdout, color=color), err)
    except BrokenPipeError:
        _let_go()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        err.end_line()
        return INTERRUPTED
    except SemfluxError as error:
        tell_error(err, error)
        return status_of_error(error)
    except OSError as error:
        tell_error(err, error)
        return FAILED


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
        if arguments.command is None:
            parser.print_help(sys.stderr)
            parser.exit(WRONG_USAGE)
    except SystemExit:
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a broken pipe is expected
        raise
    return arguments


def _let_go() -> None:
    """Nobody reads our output any more: what is left of it must not fail at exit once more."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, without the whole usage before it."""
        self.exit(WRONG_USAGE, f"semflux: {message} (see `{self.prog} --help`)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="semflux",
        description="LLM streams as semantic events: look at recorded ones, or talk to a model.",
        epilog="`semflux COMMAND --help` tells more, with examples.\n\n" + _STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"semflux {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _add_chat(commands.add_parser)
    _add_replay(commands.add_parser)
    _add_dialects(commands.add_parser)
    return parser


def _add(add_parser: _AddParser, name: str, help: str, epilog: str) -> argparse.ArgumentParser:
    return add_parser(
        name,
        help=help,
        description=help[0].upper() + help[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _add_chat(add_parser: _AddParser) -> None:
    chat = _add(
        add_parser, "chat", "ask a model, and see the answer as it is written", _CHAT_EXAMPLES + _STATUSES
    )
    chat.add_argument("prompt", nargs="*", metavar="PROMPT", help="what to ask; piped text is put after it")
    chat.add_argument(
        "--model",
        "-m",
        default="local",
        metavar="MODEL",
        help="VENDOR:NAME, or local (the default), or local:FILE.gguf; `semflux dialects` lists the vendors "
        "and the variables that their keys are read from",
    )
    chat.add_argument("--system", "-s", metavar="TEXT", help="instructions to the model")
    chat.add_argument("--max-tokens", type=_positive, metavar="N", help="tokens the answer may have")
    chat.add_argument("--events", action="store_true", help="print every event as a line of JSON")
    chat.add_argument("--no-color", action="store_true", help="no colours (NO_COLOR=1 does the same)")
    chat.set_defaults(run=run_chat)


def _add_replay(add_parser: _AddParser) -> None:
    replay = _add(
        add_parser, "replay", "read the recorded bytes of a provider's answer", _REPLAY_EXAMPLES + _STATUSES
    )
    replay.add_argument("file", metavar="FILE", help="a file of the bytes as they came; - for standard input")
    replay.add_argument(
        "--dialect",
        "-d",
        required=True,
        type=_dialect,
        metavar="D",
        help=f"the format of the bytes: {', '.join(DIALECTS)}",
    )
    replay.add_argument(
        "--format",
        "-f",
        choices=("events", "text", "response"),
        default="events",
        help="every event as a line of JSON (the default), the text alone, or the whole response as JSON",
    )
    replay.add_argument(
        "--strict", action="store_true", help="fail at the first departure of the provider from its format"
    )
    replay.add_argument(
        "--chunk",
        type=_positive,
        default=DEFAULT_CHUNK,
        metavar="N",
        help="read N bytes at a time; the events are the same for any N (default: %(default)s)",
    )
    replay.set_defaults(run=run_replay)


def _add_dialects(add_parser: _AddParser) -> None:
    dialects = _add(add_parser, "dialects", "list the formats and the vendors that are known", "")
    dialects.add_argument("--json", action="store_true", help="the list as one JSON object")
    dialects.set_defaults(run=run_dialects)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _dialect(text: str) -> str:
    try:
        return find_dialect(text).name
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _version() -> str:
    try:
        return importlib.metadata.version("semflux")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed: run from its source)"


__all__ = ("main",)
