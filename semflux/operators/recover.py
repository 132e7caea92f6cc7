"""Recovery: what keeps a chat stream one sane stream over several attempts.

Rule 1. ERROR alone is held back until it is decided. The ends of blocks and the partial STEP_END before it
        stay: they are true whatever comes next.
Rule 2. Recovered: ERROR is dropped, STATUS (retry, restart or fallback) comes, and the next attempt goes on
        in the same `Run`: one response id, one order, one count of steps, one fold, one usage.
Rule 3. Not recovered: ERROR, then `on_error` with the same exception.
Rule 4. Whether content came is read from the Run, never from what a filter let through.
Rule 5. A source that is not a cold chat stream of ours is copied event by event into the Run.

On a plain Flux there is no ERROR and no STATUS: the next attempt's items follow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import attrs
from reactivex import Observable, abc

from semflux.clock import Clock, LoopClock, Timer
from semflux.errors import ConfigurationError, SemfluxError
from semflux.events import (
    Abort,
    AnyChatEvent,
    Error,
    ResponseStart,
    Status,
    StepStart,
    freeze_event,
    thaw_event,
)
from semflux.normalize import as_semflux_error
from semflux.operators.lift import Direct, Lifted, Link, subscribe_to
from semflux.operators.pipeline import PipelineLink
from semflux.operators.run import Run


@attrs.frozen(kw_only=True)
class Attempt:
    """What to do about a failure."""

    source: abc.ObservableBase[Any]
    """Where to go on."""
    status: str
    """retry, restart or fallback: the `sub_type` of the STATUS that tells it."""
    text: str | None = None
    """Its text."""
    wait: float = 0.0
    """Seconds to wait first."""
    foreign: bool = False
    """True if it cannot go on in a given `Run`: its events are copied."""
    begun: Callable[[], object] | None = None
    """Called after the wait, before the attempt."""


class Recovery(Protocol):
    """Decides about failures; one for each subscription."""

    def item(self) -> None:
        """An item went down."""
        ...

    def next(self, error: Exception, *, content: bool) -> Attempt | None:
        """The next attempt; None if *error* is final. *content*: whether something has been shown already.
        What it raises takes the place of *error*."""
        ...


def is_chat_source(source: object) -> bool:
    """True for a cold source of chat events, with operators of ours on it: it can go on in a given Run."""
    while isinstance(source, Lifted):
        source = source.source
    return isinstance(source, Direct) and getattr(source, "is_chat", False)


class RecoverLink(Link[Any, Any]):
    """Recovery at work in one subscription."""

    __slots__ = ("_chat", "_held", "_items", "_recovery", "_waiting")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, recovery: Recovery, *, chat: bool) -> None:
        super().__init__(below, run)
        self._recovery = recovery
        self._chat = chat
        self._held: Error | None = None
        self._items = False
        self._waiting: _Waiting | None = None

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        if self._chat and isinstance(value, Error):
            self._held = value
            return
        self._items = True
        self._recovery.item()
        self.below.on_next(value)

    def on_error(self, error: Exception) -> None:
        if self.stopped:
            return
        content = self.run.state.fold.content_ever if self._chat else self._items
        try:
            attempt = self._recovery.next(error, content=content)
        except Exception as raised:
            self.give_up(raised)
            return
        if attempt is None:
            self.give_up(error)
            return
        if self._chat:
            self._tell(attempt)
        if self.stopped:
            return
        if attempt.wait > 0:
            self._wait(attempt)
        else:
            self._begin(attempt)

    def give_up(self, error: Exception) -> None:
        """The failure is final."""
        if self.stopped:
            return
        held, self._held = self._held, None
        if self._chat:
            error = as_semflux_error(error)
            if held is not None:
                self._show(held, error)
        self.upstream = None
        super().on_error(error)

    def _show(self, held: Error, error: SemfluxError) -> None:
        """ERROR, with what became of its exception meanwhile."""
        if held.error is not error:
            if error.partial is None:
                error.partial = held.response
            draft: Any = thaw_event(held)
            draft.error = error
            held = freeze_event(draft)
        self.below.on_next(held)

    def _tell(self, attempt: Attempt) -> None:
        """STATUS, in the place of the ERROR that nobody has seen."""
        state = self.run.state
        if self._held is not None:
            state.seq = self._held.seq
            self._held = None
        draft: Any = Status.draft_class(attempt.status, attempt.text, state.origin)
        draft.seq = state.seq
        draft.time = state.time()
        state.seq += 1
        self.below.on_next(freeze_event(draft))

    def _wait(self, attempt: Attempt) -> None:
        try:
            clock = self.run.clock or LoopClock(asyncio.get_running_loop())
        except RuntimeError:
            self.give_up(
                ConfigurationError(
                    f"a retry after {attempt.wait:g} s needs a running event loop to wait in: use block(), or "
                    "subscribe inside asyncio.run(...)"
                )
            )
            return
        self._waiting = _Waiting(self, attempt, clock)
        self.run.drive(self._waiting)

    def resume(self, attempt: Attempt) -> None:
        """The wait is over."""
        self._waiting = None
        if not self.stopped:
            self._begin(attempt)

    def _begin(self, attempt: Attempt) -> None:
        try:
            if attempt.begun is not None:
                attempt.begun()
        except Exception as error:
            self.give_up(error)
            return
        self.run.renew(keep_state=self._chat)
        if self._chat:
            state = self.run.state
            state.attempt = 1 if attempt.status == "fallback" else state.attempt + 1
        if self._chat and attempt.foreign:
            copied = CopyLink(PipelineLink(self, self.run, None), self.run)
            self.connect(copied)
            copied.connect(subscribe_to(attempt.source, copied, Run()))
        else:
            self.connect(subscribe_to(attempt.source, self, self.run))

    def dispose(self) -> None:
        super().dispose()
        if self._waiting is not None:
            self._waiting.end()

    def abort(self, reason: str) -> None:
        """Abort while no attempt is running."""
        if not self.stopped:
            pipe = PipelineLink(self, self.run, None)
            pipe.on_next(Abort.draft_class(reason, origin=self.run.state.origin))


class _Waiting:
    """The driver of a run while it waits for its next attempt: there is nothing to pump, but it can be
    failed, aborted and cancelled."""

    def __init__(self, link: RecoverLink, attempt: Attempt, clock: Clock) -> None:
        self.over = False
        self._link = link
        self._attempt = attempt
        self._ended: asyncio.Future[None] | None = None
        self._timer: Timer = clock.call_later(attempt.wait, self._ring)

    def _ring(self) -> None:
        self.end()
        self._link.resume(self._attempt)

    def pump(self) -> bool:
        """Nothing to push."""
        return self.over

    def fill(self) -> Awaitable[None] | None:
        """Until the wait is over."""
        self._ended = asyncio.get_running_loop().create_future()
        return self._ended

    def start_task(self) -> None:
        """The timer is enough."""

    async def released(self) -> None:
        """Nothing is held open."""

    def end(self) -> None:
        """Wait no longer."""
        self.over = True
        self._timer.cancel()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def fail(self, error: SemfluxError) -> None:
        """The stream fails meanwhile, by a limit for the whole of it."""
        if not self.over:
            self.end()
            pipe = PipelineLink(_Final(self._link), self._link.run, None)
            pipe.on_error(error)

    def abort(self, reason: str) -> None:
        """The stream is aborted meanwhile."""
        if not self.over:
            self.end()
            self._link.abort(reason)


class _Final(abc.ObserverBase[Any]):
    """Takes a failure past the recovery that waits: it is not about an attempt."""

    __slots__ = ("_link",)

    def __init__(self, link: RecoverLink) -> None:
        self._link = link

    def on_next(self, value: Any) -> None:
        self._link.below.on_next(value)

    def on_error(self, error: Exception) -> None:
        self._link.give_up(error)

    def on_completed(self) -> None:
        """A failure does not complete."""


class CopyLink(Link[AnyChatEvent, Any]):
    """Puts the events of a foreign stream into the Run: its start is swallowed, its steps are counted on."""

    __slots__ = ("_pipe",)

    def __init__(self, pipe: PipelineLink, run: Run) -> None:
        super().__init__(pipe, run)
        self._pipe = pipe
        pipe.connect(self)

    def on_next(self, value: Any) -> None:
        if self.stopped or isinstance(value, (ResponseStart, Error)):
            return
        state = self.run.state
        draft: Any = thaw_event(value)
        if isinstance(value, StepStart):
            state.step += 1
        draft.origin = attrs.evolve(value.origin, response_id=state.response_id, step=max(state.step, 0))
        self._pipe.on_next(draft)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self._pipe.on_error(as_semflux_error(error))

    def on_completed(self) -> None:
        if not self.stopped:
            self._pipe.on_completed()


def recover(
    make: Callable[[abc.ObservableBase[Any]], Recovery], *, chat: bool
) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    """The operator of a recovery; *make* gives one for each subscription, for the source it is put on.
    *chat*: the items are the events of a chat stream, which stays one."""

    def operator(source: abc.ObservableBase[Any]) -> Observable[Any]:
        return Lifted(source, lambda below, run: RecoverLink(below, run, make(source), chat=chat))

    return operator


__all__ = ("Attempt", "CopyLink", "RecoverLink", "Recovery", "is_chat_source", "recover")
