"""Recovery: what keeps a chat stream one sane stream over several attempts.

Rule 1. ERROR alone is held back until it is decided. The ends of blocks and the partial STEP_END before it
        stay: they are true whatever comes next. Where a user's function above raised, so that there is no ERROR
        and nothing is ended, they are made when the stream goes on.
Rule 2. Recovered: ERROR is dropped, STATUS (retry, restart or fallback) comes, and the next attempt goes on
        in the same `Run`: one response id, one order, one count of steps, one fold, one usage.
Rule 3. Not recovered: ERROR, then `on_error` with the same exception.
Rule 4. Whether content came is read from the Run, never from what a filter let through.
Rule 5. A source that is not a cold chat stream of ours is copied event by event into the Run.
Rule 6. A failure that an operator below brought about (a limit for the whole) is none of an attempt: it passes.

On a plain Flux there is no ERROR and no STATUS: the next attempt's items follow.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import attrs
from reactivex import Observable, abc

from semflux.clock import Clock
from semflux.errors import ConfigurationError, SemfluxError
from semflux.events import (
    Abort,
    AnyChatEvent,
    ChatEventGroup,
    ChatEventPhase,
    Error,
    RefusalDelta,
    Status,
    StepEnd,
    change_event,
    freeze_event,
)
from semflux.normalize import as_semflux_error
from semflux.operators.between import Between, Steps
from semflux.operators.copying import CopyLink
from semflux.operators.hooks import Hooks
from semflux.operators.lift import Direct, Lifted, Link, subscribe_to
from semflux.operators.pipeline import PipelineLink
from semflux.operators.run import Run, run_of, running_clock
from semflux.refold import changed, shown_steps
from semflux.state import RunState

_START, _DELTA, _END = ChatEventPhase.START, ChatEventPhase.DELTA, ChatEventPhase.END


@attrs.frozen(kw_only=True)
class Attempt:
    """What to do about a failure."""

    source: abc.ObservableBase[Any]
    """Where to go on."""
    status: str
    """retry, restart or fallback: the `sub_type` of the STATUS that tells it."""
    text: str | None = None
    """Its text."""
    foreign: bool = False
    """True if it cannot go on in a given `Run`: its events are copied."""
    before: Callable[[], Iterable[object]] | None = None
    """Called before the wait; each awaitable that it gives is awaited before the next one is asked for."""
    wait: float = 0.0
    """Seconds to wait."""
    after: Callable[[], Iterable[object]] | None = None
    """As *before*, after the wait."""

    def steps(self) -> Steps:
        """What has to be waited for before it begins."""
        for each in self.before() if self.before is not None else ():
            if inspect.isawaitable(each):
                yield each
        if self.wait > 0:
            yield self.wait
        for each in self.after() if self.after is not None else ():
            if inspect.isawaitable(each):
                yield each


class Recovery(Protocol):
    """Decides about failures; one for each subscription."""

    def next(self, error: Exception, *, content: bool, progress: bool) -> Attempt | None:
        """The next attempt; None if *error* is final. What it raises takes the place of *error*.

        *content*: something has been shown already, in any attempt: on a chat stream a content event, else
        an item. *progress*: in this attempt.
        """
        ...


def is_chat_source(source: object) -> bool:
    """True for a cold source of chat events, with operators of ours on it: it can go on in a given Run."""
    below: Any = source
    while isinstance(below, Lifted):
        below = below.source
    return isinstance(below, Direct) and bool(getattr(below, "is_chat", False))  # pyright: ignore[reportUnknownArgumentType]


_Key = tuple[ChatEventGroup, str | None, int | None, str | None]


def _key(event: Any) -> _Key:
    return (event.group, event.item_id, event.index, event.tool_call_id)


class RecoverLink(Link[Any, Any]):
    """Recovery at work in one subscription."""

    __slots__ = (
        "_between",
        "_chat",
        "_first",
        "_following",
        "_held",
        "_items",
        "_mark",
        "_open",
        "_recovery",
        "_subscribing",
    )

    run: Run
    upstream: abc.DisposableBase | None

    def __init__(self, below: abc.ObserverBase[Any], run: Run, recovery: Recovery, *, chat: bool) -> None:
        super().__init__(below, run)
        self._recovery = recovery
        self._chat = chat
        self._held: Error | None = None
        self._items = 0
        self._first = self._mark = self._count()
        """What `_count` was when the first attempt, and this one, began: what came before, of a stream that this one is
        the fallback of, is none of ours."""
        self._open: set[_Key] = set()
        """What has started below, and not ended."""
        self._between: Between | None = None
        self._subscribing = False
        self._following: tuple[abc.ObservableBase[Any], bool] | None = None
        """The source to subscribe to next, and whether it is foreign, where the one before failed at once."""

    # What comes from above

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        if not self._chat:
            self._items += 1
        elif value.phase is not _DELTA:
            if isinstance(value, Error):
                self._held = value
                return
            if value.phase is _START:
                self._open.add(_key(value))
            elif value.phase is _END:
                self._open.discard(_key(value))
        self.below.on_next(value)

    def on_completed(self) -> None:
        held, self._held = self._held, None
        if held is not None and not self.stopped:
            # An operator above has ended the stream with its ERROR: take(n), say.
            self.below.on_next(held)
        super().on_completed()

    def on_error(self, error: Exception) -> None:
        if self.stopped:
            return
        if self._following is not None or self._between is not None:
            # A source that failed while it was subscribed to, and then raised.
            Hooks.drop_error(error)
            return
        trace = error.__traceback__
        try:
            attempt = None if self._is_from_below() else self._decide(error)
            clock = self._clock() if attempt is not None and attempt.wait > 0 else None
        except Exception as raised:
            if raised is error:
                # Its frames are of no use, and hold what they are about.
                raised.__traceback__ = trace
            elif raised.__cause__ is None and raised.__context__ is None:
                raised.__context__ = error
            self._give_up(raised)
            return
        if attempt is None:
            self._give_up(error)
            return
        self._go_on(attempt, error, clock)

    def _is_from_below(self) -> bool:
        """True if an operator below has failed the stream."""
        by = self.run.failed_by
        link: Any = None if by is None else self.below
        while link is not None and link is not by:
            link = getattr(link, "below", None)
        return link is not None

    def _decide(self, error: Exception) -> Attempt | None:
        count = self._count()
        return self._recovery.next(error, content=count > self._first, progress=count > self._mark)

    def _count(self) -> int:
        return self.run.state.fold.contents if self._chat else self._items

    def _clock(self) -> Clock:
        clock = self.run.clock or running_clock()
        if clock is None:
            raise ConfigurationError(
                "a retry after some time needs a running event loop to wait in: use block(), or subscribe "
                "inside asyncio.run(...)"
            )
        return clock

    # Going on

    def _go_on(self, attempt: Attempt, error: Exception, clock: Clock | None) -> None:
        driver = self.run.driver
        if driver is not None and not driver.over:
            # That of another source, of a merge: only a plain stream meets it here.
            self.run = self.run.another()
        if self._chat:
            self._tell(attempt, error)
            if self.stopped:
                return
        between = self._between = Between(
            attempt.steps(), clock, lambda: self._begin(attempt), self._fail_between, self._abort_between
        )
        self.run.drive(between)
        between.go_on()

    def _tell(self, attempt: Attempt, error: Exception) -> None:
        """STATUS, in the place of the ERROR that nobody has seen."""
        state, head = self.run.state, self.run.head
        if self._held is None and isinstance(head, PipelineLink):
            for event in _closing(head, state, error):
                # What an operator above has hidden the start of has no end either.
                if event.phase is _START or event.type in _ALWAYS or _key(event) in self._open:
                    self.on_next(event)
        if self._held is not None:
            state.seq = self._held.seq
            self._held = None
        draft: Any = Status.draft_class(attempt.status, attempt.text, state.origin)
        draft.seq = state.seq
        draft.time = state.time()
        state.seq += 1
        self.below.on_next(freeze_event(draft))

    def _begin(self, attempt: Attempt) -> None:
        self._between = None
        self._mark = self._count()
        self.run.renew(keep_state=self._chat)
        if self._chat:
            state = self.run.state
            state.attempt = 1 if attempt.status == "fallback" else state.attempt + 1
        self._subscribe(attempt.source, foreign=attempt.foreign)

    def start(self, source: abc.ObservableBase[Any]) -> None:
        """Begin with *source*."""
        self._subscribe(source, foreign=not is_chat_source(source))

    def _subscribe(self, source: abc.ObservableBase[Any], *, foreign: bool) -> None:
        """In a loop, not by recursion: any number of sources may fail while they are subscribed to."""
        self._following = (source, foreign and self._chat)
        if self._subscribing:
            return
        self._subscribing = True
        try:
            while self._following is not None and not self.stopped:
                source, foreign = self._following
                self._following = None
                upstream = self._connected(source, foreign)
                if self._following is None:
                    self.connect(upstream)
                else:
                    upstream.dispose()
        finally:
            self._subscribing = False
            self._following = None

    def _connected(self, source: abc.ObservableBase[Any], foreign: bool) -> abc.DisposableBase:
        if not foreign:
            return subscribe_to(source, self, self.run)
        copied = CopyLink(PipelineLink(self, self.run, None), self.run)
        copied.connect(subscribe_to(source, copied, self.run.another()))
        return copied

    # Ending

    def finish(self, error: Exception) -> None:
        """The end, after its ERROR."""
        super().on_error(error)

    def _give_up(self, error: Exception) -> None:
        """The failure is final."""
        held, self._held = self._held, None
        if held is not None:
            error = as_semflux_error(error)
            self._show(held, error)
        self.upstream = None
        super().on_error(error)

    def _show(self, held: Error, error: SemfluxError) -> None:
        """ERROR, with what became of its exception meanwhile."""
        if held.error is not error:
            if error.partial is None:
                error.partial = held.response
            held = change_event(held, error=error)
        self.below.on_next(held)

    def _fail_between(self, error: Exception) -> None:
        """A failure that is not about an attempt: there is no ERROR yet."""
        self._between = None
        if self._chat:
            PipelineLink(_Final(self), self.run, None).on_error(error)
        else:
            super().on_error(error)

    def _abort_between(self, reason: str) -> None:
        self._between = None
        pipe = PipelineLink(self, self.run, None)
        pipe.on_next(Abort.draft_class(reason, origin=self.run.state.origin))

    def dispose(self) -> None:
        super().dispose()
        self._held = None
        if self._between is not None:
            self._between.end()


def _closing(head: PipelineLink, state: RunState, error: Exception) -> Iterable[AnyChatEvent]:
    """The ends of what is open, with what was to be seen of it."""
    events = head.closing(error)
    if not state.folds:
        return events
    # Operators above have changed what was said; the one that began last is the lowest of them.
    state.fold.steps[:] = shown_steps(state.fold.steps, [*state.folds.values()][-1])
    return [changed(e, response=state.fold.steps[-1]) if isinstance(e, StepEnd) else e for e in events]


_ALWAYS = frozenset({Error.type, RefusalDelta.type})
"""What is not the end, or a part, of something that has started."""


class _Final(abc.ObserverBase[Any]):
    """Takes an ERROR that is final past its recovery."""

    __slots__ = ("_link",)

    def __init__(self, link: RecoverLink) -> None:
        self._link = link

    def on_next(self, value: Any) -> None:
        self._link.below.on_next(value)

    def on_error(self, error: Exception) -> None:
        self._link.finish(error)

    def on_completed(self) -> None:
        """A failure does not complete."""


class Recovered(Lifted[Any]):
    """A source with a recovery on it: as `Owned`, it has a run to itself."""

    def __init__(
        self,
        source: abc.ObservableBase[Any],
        recovery: Callable[[abc.ObservableBase[Any]], Recovery],
        *,
        chat: bool,
    ) -> None:
        super().__init__(source, lambda below, run: RecoverLink(below, run, recovery(source), chat=chat))
        self._recovery = recovery
        self._chat = chat

    def _subscribe_core(
        self, observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler).undriven()
        link = RecoverLink(observer, run, self._recovery(self.source), chat=self._chat)
        link.start(self.source)
        return link


def recover(
    make: Callable[[abc.ObservableBase[Any]], Recovery], *, chat: bool
) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    """The operator of a recovery; *make* gives one for each subscription, for the source it is put on.
    *chat*: the items are the events of a chat stream, which stays one."""
    return lambda source: Recovered(source, make, chat=chat)


__all__ = ("Attempt", "CopyLink", "RecoverLink", "Recovered", "Recovery", "is_chat_source", "recover")
