"""Answers to parse, sources to parse them from, and what they come to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import reactivex
from reactivex import Observable, abc
from reactivex.disposable import Disposable

import semflux
from semflux.flux import ChatStream
from tests.frames import DONE, STOP, cc, md, start, text_block


def chat_frames(pieces: int) -> list[bytes]:
    """An answer of OpenAI chat, frame by frame."""
    deltas = [cc({"content": f"{i} "}) for i in range(pieces)]
    return [cc({"role": "assistant", "content": ""}), *deltas, cc(finish="stop"), DONE]


def claude_frames(pieces: int) -> list[bytes]:
    """An answer of Anthropic."""
    return [start(), text_block(0, *[f"{i} " for i in range(pieces)]), md("end_turn"), STOP]


FRAMES = chat_frames(3)
DATA = b"".join(FRAMES)
TYPES = [
    "RESPONSE_START",
    "STEP_START",
    "TEXT_START",
    "TEXT_DELTA",
    "TEXT_DELTA",
    "TEXT_DELTA",
    "TEXT_END",
    "STEP_END",
    "RESPONSE_END",
]
"""The events of DATA."""


def chat(source: Any, **options: Any) -> ChatStream:
    return semflux.parse(source, dialect="openai-chat", **options)


class Chunks:
    """A source of bytes in each of its forms, and how often it was asked, and closed."""

    def __init__(self, *chunks: Any, endless: bool = False, fails: Exception | None = None) -> None:
        self.chunks = chunks
        self.endless = endless
        self.fails = fails
        self.asked = 0
        self.closed = 0
        self.waiting = asyncio.Event()
        """Set while an endless source is waited for."""

    def sync(self) -> Iterator[Any]:
        """A generator."""
        try:
            for chunk in self.chunks:
                self.asked += 1
                yield chunk
            if self.fails is not None:
                raise self.fails
        finally:
            self.closed += 1

    async def agen(self) -> AsyncIterator[Any]:
        """An asynchronous generator that waits before each chunk."""
        try:
            for chunk in self.chunks:
                self.asked += 1
                await asyncio.sleep(0)
                yield chunk
            if self.fails is not None:
                raise self.fails
            if self.endless:
                self.waiting.set()
                await asyncio.Event().wait()
        finally:
            self.closed += 1

    def observable(self) -> Observable[Any]:
        """A synchronous RxPY observable that minds its disposal."""

        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            open_ = [True]

            def close() -> None:
                if open_[0]:
                    open_[0] = False
                    self.closed += 1

            for chunk in self.chunks:
                self.asked += 1
                observer.on_next(chunk)
            if self.fails is not None:
                observer.on_error(self.fails)
            elif self.endless:
                self.waiting.set()
            else:
                observer.on_completed()
            return Disposable(close)

        return reactivex.create(subscribe)


class Reads:
    """A source that may or may not wait, and how far it was read."""

    def __init__(self, chunks: list[bytes], *, waits: bool = True) -> None:
        self.chunks = chunks
        self.waits = waits
        self.asked = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            self.asked += 1
            if self.waits:
                await asyncio.sleep(0)
            yield chunk


ASYNC_FORMS: dict[str, Callable[[Chunks], Any]] = {"agen": Chunks.agen, "observable": Chunks.observable}
FORMS: dict[str, Callable[[Chunks], Any]] = {"sync": Chunks.sync, **ASYNC_FORMS}


async def settle() -> None:
    """Let the loop do what it has to."""
    for _ in range(5):
        await asyncio.sleep(0)
