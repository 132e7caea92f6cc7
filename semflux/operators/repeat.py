"""`repeat`, `repeat_when`: the source again, after its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.operators.inner import Inner, Sequel, unwrapped
from semflux.operators.lift import Direct
from semflux.operators.run import UNBOUNDED, Run, run_of
from semflux.operators.subject import EventSubject

T = TypeVar("T")


class _AgainLink(Sequel):
    """Subscribes to its source again and again, each time with the Run that it has.

    Between two subscriptions it is the driver of a run that is pulled and wants nothing: a source that gives all that
    it has at once is not repeated faster than it is read.
    """

    __slots__ = ("_rested", "_source", "over")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, source: abc.ObservableBase[Any]) -> None:
        super().__init__(below, run)
        self._source: abc.ObservableBase[Any] | None = unwrapped(source)
        self._rested = False
        self.over: bool = True
        """False while the source waits to be subscribed to again."""

    def start(self) -> None:
        """The first time."""
        self._gate.enter(self.begin)

    def begin(self) -> None:
        """Subscribe to the source, from inside the gate."""
        if self.stopped or self._source is None:
            return
        self._seen = self._rested = False
        self.follow(self._source)

    def again(self) -> None:
        """The same, when more is wanted."""
        self.upstream = None
        run = self.run
        if run.pull and (run.demand <= 0 or not self._seen):
            self.over = False
            run.drive(self)
        else:
            self.begin()

    def dispose(self) -> None:
        self.over = True
        self._source = None
        super().dispose()

    # The driver between two subscriptions

    def pump(self) -> bool:
        """Subscribe. After a source without an item the loop gets its turn first: it may never have one."""
        if not self.over:
            if not self._seen and not self._rested:
                return False
            self.over = True
            self._gate.enter(self.begin)
        return True

    def fill(self) -> Awaitable[None] | None:
        """A turn of the loop."""
        self._rested = True
        return asyncio.sleep(0)

    def start_task(self) -> None:
        """Everything is wanted from now on."""
        self.run.pull = False
        self.run.demand = UNBOUNDED
        self._rested = True
        self.pump()

    async def released(self) -> None:
        """Nothing is held open."""

    def abort(self, reason: str) -> None:
        """There is no stream now that could have an ABORT: it ends."""
        self.complete()


class _RepeatLink(_AgainLink):
    __slots__ = ("_left",)

    def __init__(
        self, below: abc.ObserverBase[Any], run: Run, source: abc.ObservableBase[Any], times: int
    ) -> None:
        super().__init__(below, run, source)
        self._left = times

    def _ended(self) -> None:
        if self.stopped:
            return
        if self._left > 0:
            self._left -= 1
            self.again()
        else:
            self.complete()


class _RepeatWhenLink(_AgainLink):
    """Signals of the source and of the companion come through one gate."""

    __slots__ = ("_companion", "_count", "_given", "_last", "_notices", "_taken", "_waits")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, source: abc.ObservableBase[Any]) -> None:
        super().__init__(below, run, source)
        self._companion = Inner(self._companion_next, self._companion_error, self._companion_completed)
        self._notices: EventSubject[int] = EventSubject()
        self._count = 0
        self._given = 0
        """Items of the companion."""
        self._taken = 0
        """Those that the source was subscribed to again for."""
        self._last = False
        """True once the companion has completed."""
        self._waits = False

    def accompany(self, function: Callable[[Any], abc.ObservableBase[Any]]) -> None:
        """Subscribe to the companion, then to the source."""
        try:
            companion = function(self._notices)
        except Exception as error:
            self.fail(error)
            return
        self._companion.begin(companion, self.run)
        self.start()

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self._gate.enter(self._pass, value)

    def _pass(self, value: Any) -> None:
        self._count += 1
        super().on_next(value)

    def on_error(self, error: Exception) -> None:
        self._gate.enter(self.cut, error)

    def _ended(self) -> None:
        count, self._count = self._count, 0
        self._waits = True
        self.upstream = None
        self._notices.on_next(count)
        self._look()

    def _companion_next(self, inner: Inner, value: Any) -> None:
        # Counted now: an item and the end right after it are looked at together.
        self._given += 1
        self._gate.enter(self._look)

    def _companion_error(self, inner: Inner, error: Exception) -> None:
        self._gate.enter(self.cut, error)

    def _companion_completed(self, inner: Inner) -> None:
        self._last = True
        self._gate.enter(self._look)

    def _look(self) -> None:
        if self.stopped:
            return
        wants = self._waits and self._given > self._taken
        self._taken += wants
        if self._last and self._given == self._taken:
            self.complete()
        elif wants:
            self._waits = False
            self.again()

    def dispose(self) -> None:
        super().dispose()
        self._companion.dispose()
        self._notices.dispose()


class _Repeat(Direct[T]):
    def __init__(self, source: abc.ObservableBase[T], times: int) -> None:
        super().__init__()
        self._source = source
        self._times = times

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        link = _RepeatLink(observer, run_of(scheduler).undriven(), self._source, self._times)
        link.start()
        return link


class _RepeatWhen(Direct[T]):
    def __init__(
        self, source: abc.ObservableBase[T], function: Callable[[Any], abc.ObservableBase[Any]]
    ) -> None:
        super().__init__()
        self._source = source
        self._function = function

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        link = _RepeatWhenLink(observer, run_of(scheduler).undriven(), self._source)
        link.accompany(self._function)
        return link


def repeat(times: int | None = None) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The source again, each time it completes: *times* times after the first one; None: for ever. An error ends it.

    Of a chat stream this gives whole streams, one after another, each with a request and an id of its own. A subscriber
    that pulls has the source subscribed to again when it wants more. (RxPY's operator of this name counts the first
    time too.)

    ```
    --1--2|        repeat(1)
    --1--2--1--2|
    ```

    Raises:
        ConfigurationError: if *times* is negative.
    """
    if times is not None and times < 0:
        raise ConfigurationError(
            f"repeat({times}): the number of repeats must not be negative; None: for ever"
        )
    left = UNBOUNDED if times is None else times
    return lambda source: _Repeat(source, left)


def repeat_when(
    function: Callable[[Observable[int]], abc.ObservableBase[Any]],
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The source again when what *function* gives says so. *function* is called for each subscription, with a stream
    that has an item each time the source completes: how many items it had.

    Each item of what it gives lets the source be subscribed to once more, when it has completed. Its end is the end, once
    those items are used up, and cancels a source that is at work: `take(n)` of the notices gives n runs in all. An
    error of either is the error.

    ```
    --1--2|                        repeat_when(lambda ends: ends.pipe(delay_elements(3)))
    --1--2---(3 s)--1--2---(3 s)--1--2 ...
    ```
    """
    return lambda source: _RepeatWhen(source, function)


__all__ = ("repeat", "repeat_when")
