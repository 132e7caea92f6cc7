"""Sources made of functions: `Flux.create`, `Flux.push`, `Flux.generate`, `Flux.range`, `Flux.from_async_iterable`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler

from semflux.errors import ConfigurationError
from semflux.operators.context import Context
from semflux.operators.handle import HandleSink
from semflux.operators.hooks import Hooks
from semflux.operators.inner import Gate, OneThread
from semflux.operators.lift import Direct, Link
from semflux.operators.run import UNBOUNDED, Run, run_of
from semflux.operators.waking import resolve, wake

T = TypeVar("T")


class FluxSink(Link[Any, T], Generic[T]):
    """What the function of `Flux.create` tells its signals to: from any thread, one at a time. That of `Flux.push`
    takes them from one thread at a time.

    Items are kept until they are taken. After an end `next` and `error` go to `Hooks`; after a cancel they do nothing.
    """

    __slots__ = (
        "_asked",
        "_ended",
        "_gate",
        "_on_cancel",
        "_on_dispose",
        "_on_request",
        "_seen",
        "_told",
        "_waiting",
        "over",
        "waits",
    )

    stopped: bool
    over: bool

    pushes = True
    """It has been asked, and tells by itself what comes of it: where no loop runs, nothing is to be waited for."""

    def __init__(self, below: abc.ObserverBase[T], run: Run, gate: Gate, waits: bool = True) -> None:
        super().__init__(below, run)
        self.waits: bool = waits
        """False for a source that gives at once what it is asked for: nothing has to be waited for."""
        self.over = False
        """True once it has ended, or was cancelled."""
        self._gate = gate
        self._ended = False
        self._on_cancel: list[Callable[[], object]] = []
        self._on_dispose: list[Callable[[], object]] = []
        self._on_request: Callable[[int], object] | None = None
        self._asked = 0
        self._told = 0
        self._seen = 0
        """How many had been told when it was last pumped."""
        self._waiting: asyncio.Future[None] | None = None

    # For the function

    def next(self, value: T) -> None:
        """Give an item."""
        self._gate.enter(self._emit, value)

    def complete(self) -> None:
        """End the stream."""
        self._gate.enter(self._finish, None)

    def error(self, error: Exception) -> None:
        """Fail the stream."""
        self._gate.enter(self._finish, error)

    @property
    def context(self) -> Context:
        """What the subscriber says; see `Flux.context_write`."""
        return self.run.context

    @property
    def is_cancelled(self) -> bool:
        """True once nobody listens any more, or it has ended."""
        return self.stopped

    @property
    def requested(self) -> int:
        """Items that the subscriber still wants; very many for one that takes all."""
        return max(self.run.demand, 0)

    def on_request(self, callback: Callable[[int], object]) -> None:
        """Call *callback* with how many more items are wanted, whenever more are; at once, if some are now. What it
        raises is the error of the stream."""
        self._on_request = callback
        if self.run.pull and self.run.driver is None and not self.stopped:
            self.run.drive(self)
        else:
            self._ask()

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call *callback* when the subscriber cancels; at once, if it has."""
        if self.stopped and not self._ended:
            self._call([callback])
        elif not self.stopped:
            self._on_cancel.append(callback)

    def on_dispose(self, callback: Callable[[], object]) -> None:
        """Call *callback* after any end, and after a cancel; at once, if it is over."""
        if self.stopped:
            self._call([callback])
        else:
            self._on_dispose.append(callback)

    # How it works

    def _emit(self, value: T) -> None:
        if not self.stopped:
            self._told += 1
            # Not below zero: who tells more than was asked for is not asked for more because of it.
            self._asked = max(self._asked - 1, 0)
            self.below.on_next(value)
            self._wake()
        elif self._ended:
            Hooks.drop_next(value)

    def _finish(self, error: Exception | None) -> None:
        if self.stopped:
            if error is not None and self._ended:
                Hooks.drop_error(error)
            return
        self.stopped = self.over = self._ended = True
        if error is None:
            self.below.on_completed()
        else:
            self.below.on_error(error)
        self._close([])

    def _close(self, first: list[Callable[[], object]]) -> None:
        callbacks = [*first, *self._on_dispose]
        self._on_cancel, self._on_dispose, self._on_request = [], [], None
        self._call(callbacks)
        self._wake()

    @staticmethod
    def _call(callbacks: list[Callable[[], object]]) -> None:
        for callback in callbacks:
            try:
                callback()
            except Exception as error:
                Hooks.drop_error(error)

    def dispose(self) -> None:
        if not self.stopped:
            self.stopped = self.over = True
            self._close(self._on_cancel)

    def _ask(self) -> None:
        more = self.requested - self._asked
        if self._on_request is not None and more > 0:
            self._asked += more
            try:
                self._on_request(more)
            except Exception as error:
                self.error(error)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            wake(waiting)

    # The source's side of a run, for one that asks for more

    def pump(self) -> bool:
        """Ask for what is wanted; True if something came of it."""
        self._ask()
        before, self._seen = self._seen, self._told
        return self.stopped or self._seen != before

    def fill(self) -> Awaitable[None] | None:
        """Until something comes."""
        self._waiting = waiting = asyncio.get_running_loop().create_future()
        if self.stopped or self._told != self._seen:
            # Another thread has told something since the pump looked.
            self._waiting = None
            resolve(waiting)
        return waiting

    def start_task(self) -> None:
        """Everything is wanted from now on."""
        self.run.demand = UNBOUNDED
        self._ask()

    async def released(self) -> None:
        """Nothing is to be waited for."""

    def fail(self, error: Exception) -> None:
        """The stream fails from below, by a limit for the whole of it."""
        self.error(error)

    def abort(self, reason: str) -> None:
        """Only a chat stream has an ABORT; this one ends."""
        self.complete()


class Created(Direct[T]):
    """A source of what a function tells its sink. *gate*: how the sink sees to it that it tells one signal at a time.
    *waits*: False if it gives at once what it is asked for."""

    def __init__(
        self,
        function: Callable[[FluxSink[T]], object],
        gate: Callable[[], Gate] = Gate,
        *,
        waits: bool = True,
    ) -> None:
        super().__init__()
        self._function = function
        self._gate = gate
        self._waits = waits

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        sink: FluxSink[T] = FluxSink(observer, run_of(scheduler), self._gate(), self._waits)

        def begin(scheduler: abc.SchedulerBase, state: object = None) -> None:
            if not sink.stopped:
                try:
                    sink.run.inside(self._function, sink)
                except Exception as error:
                    sink.error(error)

        # From the trampoline, so that a disposable exists before the first item.
        CurrentThreadScheduler.singleton().schedule(begin)
        return sink


def generated(
    function: Callable[[Any, HandleSink[T]], Any],
    state: Callable[[], Any],
    cleanup: Callable[[Any], object] | None,
) -> Created[T]:
    """A source that calls *function* once for each item that is wanted."""

    def begin(sink: FluxSink[T]) -> None:
        now = state()
        if cleanup is not None:
            clean = cleanup
            sink.on_dispose(lambda: clean(now))

        def give() -> None:
            nonlocal now
            answer: HandleSink[T] = HandleSink()
            now = function(now, answer)
            _pass_on(answer, sink)

        _on_demand(sink, give)

    return Created(begin, waits=False)


_END: Any = object()


def listed(items: Iterable[T]) -> Created[T]:
    """A source of *items*, as far as they are wanted. The end comes with the last of a sequence; of another iterable when
    one more is wanted. What iterating raises is the error; a dispose closes a generator."""

    def begin(sink: FluxSink[T]) -> None:
        iterator = iter(items)
        close = getattr(iterator, "close", None)
        if close is not None:
            sink.on_dispose(close)
        left = len(items) if isinstance(items, Sequence) else -1

        def give() -> None:
            nonlocal left
            left -= 1
            item = next(iterator, _END)
            if item is _END:
                sink.complete()
                return
            sink.next(item)
            if not left:
                sink.complete()

        if left:
            _on_demand(sink, give)
        else:
            sink.complete()

    return Created(begin, OneThread, waits=False)


def _on_demand(sink: FluxSink[Any], give: Callable[[], None]) -> None:
    """Call *give* once for each item that is wanted, never from inside itself."""
    working = False
    left = 0

    def go(more: int) -> None:
        nonlocal working, left
        left += more
        if working:
            return
        working = True
        try:
            while left > 0 and not sink.is_cancelled:
                left -= 1
                give()
        finally:
            working = False

    sink.on_request(go)


def _pass_on(answer: HandleSink[Any], sink: FluxSink[Any]) -> None:
    if answer.has_value:
        sink.next(answer.value)
    if answer.failure is not None:
        sink.error(answer.failure)
    elif answer.ended:
        sink.complete()
    elif not answer.has_value:
        raise ConfigurationError("generate(): each call gives one item, or an end")


def iterated(items: AsyncIterable[T]) -> Created[T]:
    """A source that goes over *items* in a task of its own, as far as its subscriber wants."""

    def begin(sink: FluxSink[T]) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            sink.error(
                ConfigurationError(
                    "an asynchronous iterable needs a running event loop: subscribe inside asyncio.run(...), or "
                    "use block(), block_first() or block_last()"
                )
            )
            return
        wanted = asyncio.Event()

        async def go() -> None:
            iterator = aiter(items)
            try:
                while True:
                    while sink.requested <= 0:
                        wanted.clear()
                        await wanted.wait()
                    try:
                        item = await anext(iterator)
                    except StopAsyncIteration:
                        break
                    sink.next(item)
                sink.complete()
            except Exception as error:
                sink.error(error)
            finally:
                close: Any = getattr(iterator, "aclose", None)
                if close is not None:
                    await close()

        task = loop.create_task(go(), name="semflux-iterable")

        def cancel() -> None:
            with contextlib.suppress(RuntimeError):  # its loop is closed, and it with it
                loop.call_soon_threadsafe(task.cancel)

        sink.on_cancel(cancel)
        sink.on_request(lambda more: wanted.set())

    return Created(begin)


__all__ = ("Created", "FluxSink", "generated", "iterated", "listed")
