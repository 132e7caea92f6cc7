"""`publish_on`, `subscribe_on`: signals, or the subscription, on a scheduler's threads."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from reactivex import Observable, abc
from reactivex.scheduler import CurrentThreadScheduler

from semflux.errors import ConfigurationError, SemfluxError
from semflux.operators.connection import Connection
from semflux.operators.lift import Attached, Lifted, PassLink, subscribe_to
from semflux.operators.limit_rate import Batches
from semflux.operators.one_reader import no_link
from semflux.operators.run import UNBOUNDED, Run, run_of
from semflux.operators.waking import wake

T = TypeVar("T")

PREFETCH = 256
"""Items that wait for the scheduler at most, if the source can pause."""

_TURN = 256
"""Items after which the scheduler may do other things."""


class _Hop(Attached):
    """A queue between a connection, which fills it, and one job of the scheduler at a time, which empties it.

    For a subscriber that pulls it is the `Driver` of its run: the job goes as far as its demand does.
    """

    def __init__(
        self,
        below: abc.ObserverBase[Any],
        run: Run,
        source: abc.ObservableBase[Any],
        scheduler: abc.SchedulerBase,
        prefetch: int,
    ) -> None:
        super().__init__()
        self.run = run
        self._below = below
        self._scheduler = scheduler
        self._prefetch = prefetch
        self._low = max(1, prefetch - (prefetch >> 2))
        self._consumed = 0
        self._queue: deque[Any] = deque()
        self._ended: tuple[Exception | None] | None = None
        self._lock = threading.Lock()
        self._scheduled = False
        self._rounds = 0
        self._seen = 0
        self._waiter: asyncio.Future[None] | None = None
        self._pulled = run.pull and run.driver is None
        self._above = above = Run(pull=True, state=run.state).within(run)
        above.clock = run.clock
        self._connection: Connection | None = Connection(source, self, above)
        if self._pulled:
            run.alone = False
            run.drive(self)

    def start(self) -> None:
        """Subscribe to the source."""
        connection = self._connection
        if connection is not None:
            self.connect(connection)
            connection.start()

    # What the connection tells

    def room(self) -> int:
        """How many more may come."""
        return max(0, self._prefetch - len(self._queue))

    def emit(self, item: Any) -> None:
        """The next item."""
        if not self.stopped:
            self._queue.append(item)
            self._go()

    def end(self, error: Exception | None) -> None:
        """The end."""
        self._ended = (error,)
        self._go()

    # The job

    @property
    def _has_work(self) -> bool:
        if self.stopped:
            return False
        return self._wants if self._queue else self._ended is not None

    @property
    def _wants(self) -> bool:
        return not self._pulled or self.run.demand > 0

    def _go(self) -> None:
        with self._lock:
            if self._scheduled or self.stopped or not self._has_work:
                return
            self._scheduled = True
        try:
            self._scheduler.schedule(self._work)
        except Exception as error:
            # A scheduler that is closed.
            self._tell(error)

    def _work(self, scheduler: abc.SchedulerBase, state: object = None) -> None:
        try:
            self._drain()
        except BaseException:
            self.dispose()
            raise
        finally:
            with self._lock:
                self._scheduled = False
            self._wake()
        self._go()

    def _drain(self) -> None:
        queue, below = self._queue, self._below
        for _ in range(_TURN):
            # The end is looked at first: no item comes after it.
            ended = self._ended
            if self.stopped or (queue and not self._wants):
                return
            try:
                item = queue.popleft()
            except IndexError:
                if ended is not None:
                    self._tell(ended[0])
                return
            below.on_next(item)
            self._consumed += 1
            if (self._consumed >= self._low or not queue) and ended is None and self._connection is not None:
                self._consumed = 0
                self._connection.drained()

    def _tell(self, error: Exception | None) -> None:
        if self.stopped:
            return
        upstream = self._let_go()
        self._queue.clear()
        if upstream is not None:
            upstream.dispose()
        if error is None:
            self._below.on_completed()
        else:
            self._below.on_error(error)
        self._wake()

    def dispose(self) -> None:
        self._stop()
        self._queue.clear()
        super().dispose()
        self._wake()

    # The source's side of the run of a subscriber that pulls

    waits = True

    @property
    def over(self) -> bool:
        """True once the stream has ended or its subscriber is gone."""
        return self.stopped

    def pump(self) -> bool:
        """Let the scheduler go on; True if nothing is left."""
        self._seen = self._rounds
        self._go()
        return self.stopped

    def fill(self) -> Awaitable[None] | None:
        """Until the scheduler has told something."""
        with self._lock:
            if self.stopped or self._seen != self._rounds:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            return self._waiter

    def start_task(self) -> None:
        """Everything is wanted from now on."""
        self.run.demand = UNBOUNDED
        self._go()

    async def released(self) -> None:
        """Wait until what the source holds open is closed."""
        if self._connection is not None:
            await self._connection.released()

    def fail(self, error: SemfluxError) -> None:
        """End the stream with *error*: at its first stage, if it has one."""
        self._on_loop(lambda: self._fail(error))

    def abort(self, reason: str) -> None:
        """End the stream with ABORT."""
        self._on_loop(lambda: self._above.abort(reason))

    def _on_loop(self, function: Callable[[], object]) -> None:
        if self._connection is not None:
            self._connection.on_loop(function)

    def _fail(self, error: SemfluxError) -> None:
        if not self._above.fail(error):
            if self._connection is not None:
                self._connection.dispose()
            self.end(error)

    def _wake(self) -> None:
        with self._lock:
            self._rounds += 1
            waiter, self._waiter = self._waiter, None
        if waiter is not None:
            wake(waiter)


class _PublishOn(Lifted[T]):
    def __init__(self, source: abc.ObservableBase[Any], scheduler: abc.SchedulerBase, prefetch: int) -> None:
        super().__init__(source, no_link)
        self._scheduler = scheduler
        self._prefetch = prefetch

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        hop = _Hop(observer, run_of(scheduler), self.source, self._scheduler, self._prefetch)
        hop.start()
        return hop


class _Elsewhere(Batches):
    """Asks the source for more where it was subscribed to, by one job at a time."""

    def __init__(
        self, below: abc.ObserverBase[Any], run: Run, above: Run, scheduler: abc.SchedulerBase
    ) -> None:
        super().__init__(below, run, above, PREFETCH, PREFETCH - (PREFETCH >> 2), chat=False)
        self._scheduler = scheduler
        self._asks = False

    def drained(self) -> None:
        if self._asks or self.consumed < self._low:
            return
        self._asks = True
        try:
            self._scheduler.schedule(self._ask)
        except Exception:
            # A scheduler that was closed meanwhile: who reads makes what is left.
            self._asks = False
            super().drained()

    def _ask(self, scheduler: abc.SchedulerBase, state: object = None) -> None:
        self._asks = False
        super().drained()


class _SubscribeOn(Lifted[T]):
    """A source that a subscriber pulls from elsewhere is driven where it was subscribed to, ahead of that one."""

    def __init__(self, source: abc.ObservableBase[Any], scheduler: abc.SchedulerBase) -> None:
        super().__init__(source, no_link)
        self._scheduler = scheduler

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        if run.pull and run.driver is None:
            run.alone = False
            above = Run(pull=True, state=run.state).within(run)
            batches = _Elsewhere(observer, run, above, self._scheduler)
            self._schedule(lambda: None if batches.over else batches.begin(self.source), batches.end)
            return batches
        link = PassLink(observer, run)

        def begin() -> None:
            if not link.stopped:
                link.connect(subscribe_to(self.source, link, run))

        self._schedule(begin, link.on_error)
        return link

    def _schedule(self, begin: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        def now(scheduler: abc.SchedulerBase, state: object = None) -> None:
            begin()

        def act(scheduler: abc.SchedulerBase, state: object = None) -> None:
            # From that thread's trampoline, so that a disposable exists before the first item.
            CurrentThreadScheduler.singleton().schedule(now)

        try:
            self._scheduler.schedule(act)
        except Exception as error:
            # A scheduler that is closed.
            fail(error)


def publish_on(
    scheduler: abc.SchedulerBase, prefetch: int = PREFETCH
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """What is below gets its signals from *scheduler*, in order, the end and an error after the items before them. For
    consumers that compute or block, so that the source's loop is not held up: a `ThreadPoolScheduler` or an
    `EventLoopScheduler` of RxPY. One job empties the queue, not one an item.

    At most *prefetch* items wait: a stream of ours pauses then, what pushes by itself does not. A dispose, from any
    thread, is seen before the next item.

    ```
    --1-2-3--|        publish_on(ThreadPoolScheduler(1))
    ---1-2-3--|       on its thread
    ```

    Raises:
        ConfigurationError: if *prefetch* is below 1.
    """
    if prefetch < 1:
        raise ConfigurationError(f"publish_on(prefetch={prefetch}): a queue has room for one item at least")
    return lambda source: _PublishOn(source, scheduler, prefetch)


def subscribe_on(scheduler: abc.SchedulerBase) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The source is subscribed to on *scheduler*, wherever in the chain this stands; the nearest to the source decides.
    For sources that block when they are subscribed to. A dispose before that cancels it.

    A source that waits for bytes needs a loop that runs on that thread: `AsyncIOThreadSafeScheduler(loop)`.

    ```
       --1--2--|        subscribe_on(ThreadPoolScheduler(1))
    -----1--2--|
    ```
    """
    return lambda source: _SubscribeOn(source, scheduler)


__all__ = ("PREFETCH", "publish_on", "subscribe_on")
