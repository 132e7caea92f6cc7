"""`semflux chat`: one answer, or a conversation, as it is written."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Generator, Sequence

from semflux.cli.outcome import INTERRUPTED, OK, WRONG_USAGE, status_of, tell_outcome
from semflux.cli.printer import BOLD, DIM, Printer
from semflux.cli.shown import EventLines, Live, Meter, View
from semflux.dialects.vendors import resolve
from semflux.errors import ConfigurationError, SemfluxError
from semflux.events import AnyChatEvent, Error, ResponseEnd
from semflux.messages import Message
from semflux.model import ChatModel, Prompt

STDIN_HINT_SECONDS = 2.0
"""Seconds that standard input may stay open before we say that we wait for its end."""


def run_chat(arguments: argparse.Namespace, out: Printer, err: Printer) -> int:
    """`semflux chat [PROMPT...]`; gives the exit status."""
    chat = _Chat(arguments, out, err)
    prompt = _prompt(arguments.prompt, err)
    with asyncio.Runner() as runner:
        try:
            if prompt is None:
                return _converse(chat, runner)
            _, last = runner.run(chat.ask([Message.user(prompt)]))
            return status_of(last)
        finally:
            runner.run(chat.model.aclose())


def _model(name: str) -> ChatModel:
    """The model, its key and address from the environment; what is missing there is named."""
    vendor = resolve(name).vendor
    for variables, what, needed in (
        (vendor.env_keys, "an API key", vendor.key_required),
        (vendor.env_base_urls, "an address", vendor.base_url is None),
    ):
        if needed and variables and not any(os.environ.get(variable) for variable in variables):
            raise ConfigurationError(f"{vendor.name} needs {what}: set {' or '.join(variables)}")
    return ChatModel.from_env(name)


def _prompt(words: Sequence[str], err: Printer) -> str | None:
    """What to ask: the arguments, then what was piped in; None for a conversation."""
    said = "" if list(words) == ["-"] else " ".join(words)
    if sys.stdin is None or sys.stdin.isatty():
        piped = ""
    else:
        with _hint(err):
            piped = sys.stdin.buffer.read().decode("utf-8", "replace").strip("\r\n")
    text = "\n\n".join([part for part in (said, piped) if part.strip()])
    if text:
        return text
    if sys.stdin is not None and sys.stdin.isatty():
        return None
    raise ConfigurationError('nothing to ask: write `semflux chat "your question"`, or pipe it in')


@contextlib.contextmanager
def _hint(err: Printer) -> Generator[None]:
    """A pipe that nobody closes would look like a model that says nothing."""

    def tell() -> None:
        # Whoever reads our standard error may be gone.
        with contextlib.suppress(OSError):
            err.line("semflux: reading standard input to its end (`< /dev/null` where there is none)", DIM)

    timer = threading.Timer(STDIN_HINT_SECONDS, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


class _Chat:
    """What all turns have in common."""

    def __init__(self, arguments: argparse.Namespace, out: Printer, err: Printer) -> None:
        self.name: str = arguments.model
        self.model = _model(self.name)
        self.out = out
        self.err = err
        self._system: str | None = arguments.system
        self._max_tokens: int | None = arguments.max_tokens
        self._events: bool = arguments.events

    def _request(self, messages: Sequence[Message]) -> Prompt:
        prompt = self.model.prompt(messages)
        if self._system is not None:
            prompt = prompt.system(self._system)
        if self._max_tokens is not None:
            prompt = prompt.options(max_tokens=self._max_tokens)
        return prompt.event_filter(None) if self._events else prompt

    async def ask(self, messages: Sequence[Message]) -> tuple[Message | None, AnyChatEvent | None]:
        """Ask and show; gives the answer, None unless it ended well, and the last event."""
        stream = self._request(messages).stream()
        view: View = EventLines(self.out) if self._events else Live(self.out, self.err, self.name)
        meter = Meter()
        last: AnyChatEvent | None = None
        try:
            # `async with`: on Ctrl-C the connection is closed here, not when somebody collects the iterator.
            async with aiter(stream) as events:
                async for event in events:
                    last = event
                    meter.note(event)
                    view.show(event)
        except SemfluxError:
            # A failure has been seen as the last event already.
            if not isinstance(last, Error):
                raise
        finally:
            view.end()
        if not isinstance(last, ResponseEnd):
            tell_outcome(self.err, last)
            return None, last
        self.err.line(meter.summary(last), DIM)
        return None if last.response is None else last.response.message, last


def _converse(chat: _Chat, runner: asyncio.Runner) -> int:
    """Ask in turns until Ctrl-D."""
    with contextlib.suppress(ImportError):
        importlib.import_module("readline")  # importing it gives `input` line editing and a history
    chat.err.line(f"{chat.name}: Ctrl-C stops an answer, Ctrl-D ends the conversation", DIM)
    messages: list[Message] = []
    interrupted = False
    while True:
        try:
            said = _read_line(chat)
        except EOFError:
            chat.err.write("\n")
            return OK
        except UnicodeDecodeError:
            chat.err.line("semflux: that line is not in the terminal's encoding")
            continue
        except KeyboardInterrupt:
            chat.err.write("\n")
            if interrupted:
                return INTERRUPTED
            interrupted = True
            chat.err.line("Ctrl-D, or Ctrl-C once more, ends the conversation", DIM)
            continue
        interrupted = False
        if not said.strip():
            continue
        asked = Message.user(said)
        try:
            answer, last = runner.run(chat.ask([*messages, asked]))
        except KeyboardInterrupt:
            chat.err.line("stopped; this turn is forgotten", DIM)
            continue
        if answer is not None:
            messages += [asked, answer]
        elif status_of(last) == WRONG_USAGE:
            return WRONG_USAGE


def _read_line(chat: _Chat) -> str:
    """A line of the user's. The marker goes where the user looks, which may not be standard output."""
    if chat.out.is_terminal:
        return input("> ")
    chat.err.write("> ", BOLD)
    return input()


__all__ = ("STDIN_HINT_SECONDS", "run_chat")
