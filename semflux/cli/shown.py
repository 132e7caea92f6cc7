"""An answer as it is written: for eyes, or as JSON lines; and what it took, in one line."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from semflux.cli.printer import DIM, Printer, to_json
from semflux.events import (
    AnyChatEvent,
    ChatEventGroup,
    Citation,
    RefusalDelta,
    ResponseEnd,
    Status,
    TextDelta,
    ThinkingDelta,
)

_FINISH = {
    "length": "cut at the token limit",
    "content_filter": "stopped by the provider's filter",
    "refusal": "refused",
    "tool_calls": "asked for a tool",
}

_TOLD = frozenset({"queued", "retry", "fallback", "restart"})
"""The kinds of STATUS that explain a wait; others tell how the answer ended, as the figures do."""


class View(Protocol):
    """Shows the events of one answer."""

    def show(self, event: AnyChatEvent) -> None:
        """Show what of *event* is to be seen."""
        ...  # pragma: no cover  # protocol

    def end(self) -> None:
        """The answer is over, whichever way."""
        ...  # pragma: no cover  # protocol


class EventLines:
    """Each event as a line of JSON."""

    def __init__(self, out: Printer) -> None:
        self._out = out

    def show(self, event: AnyChatEvent) -> None:
        """Print it."""
        self._out.write(to_json(event.to_dict()) + "\n")

    def end(self) -> None:
        """Nothing is open."""


class Live:
    """The answer's text on *out*. A terminal also sees thinking and sources, dimmed; a pipe gets the text
    alone, and the words of a refusal go to *err*."""

    def __init__(self, out: Printer, err: Printer, waiting_for: str) -> None:
        self._out = out
        self._err = err
        self._waiting = out.is_terminal and err.color
        self._thinking = False
        self._sources: dict[str, str] = {}
        if self._waiting:
            err.write(f"waiting for {waiting_for} ...", DIM)

    def show(self, event: AnyChatEvent) -> None:
        """Print what it adds."""
        match event:
            case TextDelta(text=text):
                self._begin(thinking=False)
                self._out.write(text)
            case ThinkingDelta(text=text) if self._out.is_terminal:
                self._begin(thinking=True)
                self._out.write(text, DIM)
            case RefusalDelta(text=text):
                self._begin(thinking=False)
                (self._out if self._out.is_terminal else self._err).write(text)
            case Citation(citation=source) if source.url or source.title:
                self._sources.setdefault(source.url or source.title or "", source.title or "")
            case Status(sub_type=sub_type, text=text) if sub_type in _TOLD:
                self._begin(thinking=self._thinking)
                if self._out.is_terminal:
                    self._out.end_line()
                self._err.line(f"{sub_type}: {text}" if text else sub_type, DIM)
            case _:
                pass

    def _begin(self, *, thinking: bool) -> None:
        """The note that we wait goes; thinking is set off from what follows it."""
        self._stop_waiting()
        if thinking and not self._thinking and not self._out.color:
            self._out.write("(thinking) ")
        if self._thinking and not thinking:
            self._out.end_line()
            self._out.write("\n")
        self._thinking = thinking

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting = False
            self._err.erase_line()

    def end(self) -> None:
        """End the last line, and name the sources."""
        self._stop_waiting()
        if self._out.is_terminal or not self._out.at_line_start:
            self._out.end_line()
        if self._out.is_terminal:
            for number, (url, title) in enumerate(self._sources.items(), 1):
                self._out.line(f"[{number}] {title} {url if url != title else ''}", DIM)


class Meter:
    """Takes the time of one answer."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._started = now()
        self._first: float | None = None
        self._last = self._started
        self._thought = False

    def note(self, event: AnyChatEvent) -> None:
        """*event* has come."""
        if event.is_content and event.is_delta:
            self._last = self._now()
            if self._first is None:
                self._first = self._last
            self._thought = self._thought or event.group is ChatEventGroup.THINKING

    def summary(self, end: ResponseEnd) -> str:
        """What it took, in one line: tokens, seconds to the first one, tokens a second."""
        parts: list[str] = []
        usage = end.usage
        tokens = None if usage is None else usage.output_tokens
        if usage is not None:
            counts = [
                f"{count} {what}"
                for count, what in ((usage.input_tokens, "in"), (tokens, "out"))
                if count is not None
            ]
            if counts:
                parts.append(f"tokens: {', '.join(counts)}")
            if usage.reasoning_tokens:
                parts[-1:] = [f"{''.join(parts[-1:])} ({usage.reasoning_tokens} thinking)"]
        if self._first is not None:
            parts.append(f"first after {self._first - self._started:.2f} s")
            if tokens is not None and usage is not None:
                # Of the tokens that came in this time: not the first, and none that were thought unseen.
                unseen = 0 if self._thought else usage.reasoning_tokens or 0
                made, took = tokens - unseen - 1, self._last - self._first
                if made > 0 and took > 0:
                    parts.append(f"{made / took:.1f} tokens/s")
        if end.finish_reason in _FINISH:
            parts.append(_FINISH[end.finish_reason])
        return "; ".join(parts) or "no figures from the provider"


__all__ = ("EventLines", "Live", "Meter", "View")
