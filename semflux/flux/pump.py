"""The pump: moves a stream on, from bytes to its Subject, as far as its subscriber wants.

One pump belongs to one subscription. It never runs by itself: an `async for` calls it from the
consumer's own task, a synchronous source is run inside `subscribe`, and a callback subscriber of a
source that waits has one task for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Iterator
from typing import Any

from reactivex import abc

from semflux.decoder import Decoder
from semflux.errors import SemfluxError
from semflux.events import Abort, ResponseEnd, ResponseStart, StepStart
from semflux.normalize import as_semflux_error
from semflux.operators.hooks import Hooks
from semflux.operators.run import UNBOUNDED, Run, running_loop
from semflux.operators.subject import EventSubject
from semflux.state import RunState

_TURN_BYTES = 64 * 1024
"""Bytes after which a task lets the loop do other things, even if more bytes are there already."""


class Pump(abc.DisposableBase):
    """What all sources of a chat stream have in common.

    A source says where bytes come from: `_more` at once, or `_read` by waiting. Guarantees: one
    terminal event; nothing is pushed after `dispose`; `dispose` is idempotent, never raises, may come
    from any thread and from inside the pump's own push, and releases the source before it returns
    (from another thread: in the loop's next turn).
    """

    waits = True
    """False for a source that has its bytes at once: it needs no event loop."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.state: RunState = run.state
        self.subject: EventSubject[Any] = EventSubject()
        self.over: bool = False
        """True once the stream has ended or its subscriber is gone."""
        self._begun = False
        self._drafts: Iterator[Any] | None = None
        self._decoder: Decoder | None = None
        self._task: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[Any] | None = None
        """The task that waits in `_read`, whoever's it is."""
        self._woken = False
        """True if that task is cancelled by us, so that it goes on here."""
        self._loop = running_loop()
        self._thread = threading.get_ident()
        self._running = False
        self._closed = False
        self._turn = 0

    # For a source to say

    def _begin(self) -> None:
        """Called once, after RESPONSE_START."""

    def _more(self) -> bytes | None:
        """The next bytes, at once; None at their end."""
        raise NotImplementedError  # pragma: no cover  # abstract

    async def _read(self) -> None:
        """Wait for more: ends by `_receive` or `_ended`, or raises."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def _release(self) -> None:
        """Let go of what is held open. Called once; never raises."""

    def _step_ended(self) -> None:
        """The step is over and its STEP_END is pushed."""
        self._end_response()

    # Driving

    def pump(self) -> bool:
        """Push what can be pushed now; True if anything was, or nothing is left to do."""
        if self.over:
            return True
        if not self._begun:
            if self._start():
                self._begin()
            return True
        drafts = self._drafts
        if drafts is None:
            return False
        run, push, before = self.run, self.subject.on_next, self.state.seq
        try:
            for draft in drafts:
                push(draft)
                if run.demand <= 0 or self.over:
                    return True
        except Exception as error:
            self.fail(as_semflux_error(error))
            return True
        self._drafts = None
        decoder = self._decoder
        if decoder is not None and decoder.done:
            self._decoder = None
            self._step_ended()
            return True
        return self.state.seq != before

    def fill(self) -> Awaitable[None] | None:
        """Get more to push: at once, or in what is to be awaited."""
        if self.waits:
            return self._fill()
        try:
            for _ in range(64):  # then the loop gets its turn, even if nothing is whole yet
                data = self._more()
                if data is None:
                    self._ended()
                    break
                if self._receive(data):
                    break
        except Exception as error:
            self.fail(as_semflux_error(error))
        return None

    async def _fill(self) -> None:
        task = asyncio.current_task()
        cancelling = 0 if task is None else task.cancelling()
        self._reader = task
        failure: Exception | None = None
        try:
            await self._read()
        except asyncio.CancelledError:
            # Ours, to wake it: it goes on. Or that of the task's owner, as `asyncio.timeout` tells them apart.
            if not self._woken or task is None or task.uncancel() > cancelling:
                raise
        except Exception as error:
            failure = error
        finally:
            self._reader = None
        # After a dispose the source is closed, and says so: that is no failure.
        if failure is not None and not self.over:
            self.fail(as_semflux_error(failure))

    async def released(self) -> None:
        """Wait until what was held open is closed, once it is over."""

    def run_now(self) -> None:
        """Push everything: for a source that has its bytes at once."""
        self._running = True
        try:
            while not self.over:
                if not self.pump():
                    self.fill()
        finally:
            # Another thread may have said that it is over; and KeyboardInterrupt leaves by here.
            self._running = False
            self._dispose()

    def start_task(self) -> None:
        """Drive it by a task of the running loop, as fast as the source is. Idempotent.

        Raises:
            RuntimeError: if no loop is running.
        """
        if self._task is None:
            self._loop = asyncio.get_running_loop()
            self.run.demand = UNBOUNDED
            self._task = self._loop.create_task(self._drive(), name="semflux-pump")

    async def _drive(self) -> None:
        try:
            while not self.over:
                if not self.pump():
                    waiting = self.fill()
                    if waiting is not None:
                        await waiting
                if self._turn >= _TURN_BYTES:
                    self._turn = 0
                    await asyncio.sleep(0)
        finally:
            self.dispose()

    # Pushing. Straight into the Subject: a traceback from here to the subscriber stays short.

    def _begin_step(self, decoder_of: Any, model: str | None = None) -> Decoder:
        """STEP_START, and the decoder of the step: *decoder_of* makes it, once the step is counted."""
        state = self.state
        state.step += 1
        decoder: Decoder = decoder_of(state)
        self._decoder = decoder
        if not self.over:
            self.subject.on_next(StepStart.draft_class(model, state.attempt, state.origin))
        return decoder

    def _receive(self, data: bytes) -> bool:
        """Take *data* in; False if nothing follows from it yet. What is just one frame is pushed at once."""
        decoder = self._decoder
        if decoder is None or self.over:
            return True
        self._turn += len(data)
        if self._drafts is None:
            if data[-2:] == b"\n\n" and (drafts := decoder.take(data)) is not None:
                if isinstance(drafts, tuple):
                    for draft in drafts:
                        self.subject.on_next(draft)
                else:
                    self._drafts = drafts
                return True
            if not decoder.receive(data):
                return False
            self._drafts = decoder.events()
        else:
            decoder.receive(data)
        return True

    def _ended(self) -> None:
        """The bytes have ended."""
        if self._decoder is not None:
            self._drafts = self._decoder.close()

    def _end_response(self) -> None:
        if not self.over:
            self.subject.on_next(ResponseEnd.draft_class(origin=self.state.origin))
        self.dispose()

    # Ending

    def fail(self, error: SemfluxError) -> None:
        """End the stream with *error*: what was held back, the ends, ERROR, `on_error`."""
        if self.over:
            Hooks.drop_error(error)
            return
        if not self._start():
            return
        self.over = True
        if error.provider is None and self._decoder is not None:
            error.provider = self._decoder.parser.options.provider or self._decoder.dialect.name
        # The connection is closed before anybody is told: a recovery may open another at once.
        self._close()
        self._flush()
        self.subject.on_error(error)

    def abort(self, reason: str) -> None:
        """End the stream with ABORT."""
        if not self.over and self._start():
            self.over = True
            self._flush()
            self.subject.on_next(Abort.draft_class(reason, origin=self.state.origin))
            self._close()

    def _start(self) -> bool:
        """RESPONSE_START, if it has not been; False if its subscriber is gone after that."""
        if not self._begun:
            self._begun = True
            if not self.state.started:
                # Else another attempt came before: its start was the stream's.
                self.state.started = True
                self.subject.on_next(ResponseStart.draft_class(origin=self.state.origin))
        return not self.over

    def _flush(self) -> None:
        """What the parser held back belongs to the partial text."""
        decoder, self._decoder, self._drafts = self._decoder, None, None
        if decoder is not None:
            try:
                for draft in decoder.flush():
                    self.subject.on_next(draft)
            except SemfluxError as error:
                # The stream fails already, and for a better reason.
                Hooks.drop_error(error)

    def dispose(self) -> None:
        if threading.get_ident() == self._thread:
            self._dispose()
            return
        self.over = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._dispose)
                return
        # No loop, or one that is closed: its own thread lets go of the source, if it is at work now.
        if not self._running:
            self._dispose()

    def _dispose(self) -> None:
        self.over = True
        self.subject.dispose()
        self._close()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._drafts = None
        self._release()
        task = self._task if self._reader is None else self._reader
        if task is not None and not task.done() and task is not _current_task():
            self._woken = self._reader is not None
            task.cancel()


def _current_task() -> asyncio.Task[Any] | None:
    return None if running_loop() is None else asyncio.current_task()


__all__ = ("Pump",)
