"""Signals and subscriptions on other threads, and disposing of them from anywhere."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
import reactivex
from reactivex import abc
from reactivex.disposable import Disposable
from reactivex.scheduler import EventLoopScheduler, ThreadPoolScheduler
from reactivex.scheduler.eventloop import AsyncIOThreadSafeScheduler
from reactivex.scheduler.scheduler import Scheduler

from semflux import Flux
from semflux.errors import ConfigurationError
from semflux.operators import publish_on
from semflux.operators.waking import until_done
from tests.flux.answers import Chunks, chat, chat_frames
from tests.operators.watching import END, Probe, Watcher, error, item, signals, watch

FAILURE = ValueError("mine")
SECONDS = 10


class ByHand(Scheduler):
    """A scheduler whose jobs run when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: deque[Any] = deque()
        self.ran = 0

    def schedule(self, action: Any, state: Any = None) -> abc.DisposableBase:
        self.jobs.append(action)
        return Disposable()

    def schedule_relative(self, duetime: Any, action: Any, state: Any = None) -> abc.DisposableBase:
        raise NotImplementedError

    def schedule_absolute(self, duetime: Any, action: Any, state: Any = None) -> abc.DisposableBase:
        raise NotImplementedError

    def run(self) -> None:
        """All jobs that there are, and those that they make."""
        while self.jobs:
            self.ran += 1
            self.jobs.popleft()(self, None)


@pytest.fixture
def thread() -> Iterator[EventLoopScheduler]:
    """A thread that delivers."""
    scheduler = EventLoopScheduler()
    try:
        yield scheduler
    finally:
        scheduler.dispose()
        # RxPY's thread does not see a dispose that comes just before it waits.
        worker: Any = scheduler._thread
        while worker is not None and worker.is_alive():
            with scheduler._condition:
                scheduler._condition.notify_all()
            worker.join(0.01)


class Threaded(Watcher):
    """Notes on which thread it is called, and tells when it has come to an end."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[threading.Thread] = set()
        self.ended = threading.Event()

    def on_next(self, value: Any) -> None:
        self.threads.add(threading.current_thread())
        super().on_next(value)

    def on_error(self, error: Exception) -> None:
        super().on_error(error)
        self.ended.set()

    def on_completed(self) -> None:
        super().on_completed()
        self.ended.set()

    def read(self, source: Any) -> abc.DisposableBase:
        subscription: abc.DisposableBase = source.subscribe(self.on_next, self.on_error, self.on_completed)
        return subscription


def counting(asked: list[int]) -> Flux[int]:
    """1, 2, 3 ... without an end; *asked* gets each number that was made."""

    def step(state: int, sink: Any) -> int:
        asked.append(state)
        sink.next(state)
        return state + 1

    return Flux.generate(step, lambda: 1)


def test_one_job_delivers_what_waits() -> None:
    """In order, the end and the error after the items; nothing before the scheduler has its turn."""
    scheduler = ByHand()
    watcher = watch(Flux.from_iterable(range(100)).publish_on(scheduler))
    assert (1, []) == (len(scheduler.jobs), watcher.signals)
    scheduler.run()
    assert ([item(value) for value in range(100)] + [END], 1) == (watcher.signals, scheduler.ran)

    failing = watch(Flux.from_(Probe(1, 2, fails=FAILURE).source).publish_on(scheduler))
    scheduler.run()
    assert [item(1), item(2), error(FAILURE)] == failing.signals


def test_many_items_take_several_jobs() -> None:
    """So that others have their turn on that thread."""
    scheduler = ByHand()
    watcher = watch(Flux.from_iterable(range(1000)).publish_on(scheduler))
    scheduler.run()
    assert ([*range(1000)], 4) == (watcher.items, scheduler.ran)


def test_a_source_that_can_pause_does_when_the_queue_is_full() -> None:
    """It is asked again when three quarters are consumed."""
    scheduler, asked = ByHand(), list[int]()
    watcher = Watcher()
    subscription = counting(asked).publish_on(scheduler, 8).take(8).subscribe(watcher)
    assert [*range(1, 9)] == asked
    scheduler.run()
    assert [item(value) for value in range(1, 9)] + [END] == watcher.signals
    assert len(asked) <= 16
    subscription.dispose()


def test_a_dispose_is_seen_before_the_next_item() -> None:
    """Whatever waits; the source is cancelled when dispose returns."""
    scheduler, probe, told = ByHand(), Probe(1, 2, 3, ends=False), list[Any]()

    def leave(value: Any) -> None:
        told.append(value)
        subscription.dispose()

    subscription = Flux.from_(probe.source).publish_on(scheduler).subscribe(leave)
    scheduler.run()
    assert ([1], 1) == (told, probe.disposed)

    waiting = Flux.from_(probe.source).publish_on(scheduler).subscribe(told.append)
    waiting.dispose()
    scheduler.run()
    assert ([1], 2) == (told, probe.disposed)


def test_signals_come_on_the_threads_of_the_scheduler(thread: EventLoopScheduler) -> None:
    watcher = Threaded()
    watcher.read(Flux.from_iterable(range(2000)).publish_on(thread, 16))
    assert watcher.ended.wait(SECONDS)
    assert [*range(2000)] == watcher.items
    assert threading.current_thread() not in watcher.threads
    assert 1 == len(watcher.threads)


def test_a_pool_delivers_one_at_a_time() -> None:
    """And in order, whichever of its threads has the job."""
    with_pool = ThreadPoolScheduler(4)
    watcher = Threaded()
    watcher.read(counting([]).publish_on(with_pool, 4).take(2000))
    assert watcher.ended.wait(SECONDS)
    with_pool.executor.shutdown()
    assert [*range(1, 2001)] == watcher.items


def test_dispose_from_another_thread_without_asyncio(thread: EventLoopScheduler) -> None:
    """A consumer that is at work on its thread gets nothing more when dispose has returned."""
    inside, left, told = threading.Event(), threading.Event(), list[int]()

    def slow(value: int) -> None:
        told.append(value)
        inside.set()
        assert left.wait(SECONDS)

    asked: list[int] = []
    subscription = counting(asked).publish_on(thread, 4).subscribe(slow)
    assert inside.wait(SECONDS)
    subscription.dispose()
    left.set()
    done = threading.Event()
    thread.schedule(lambda *_: done.set())
    assert done.wait(SECONDS)
    assert ([1], [1, 2, 3, 4]) == (told, asked)


async def test_dispose_from_another_thread_under_asyncio(thread: EventLoopScheduler) -> None:
    """The source, which lives on the loop, is cancelled there."""
    closed, inside = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def endless() -> Any:
        try:
            while True:
                yield 1
                await asyncio.sleep(0)
        finally:
            closed.set()

    subscription = (
        Flux.from_async_iterable(endless())
        .publish_on(thread)
        .subscribe(lambda value: loop.call_soon_threadsafe(inside.set))
    )
    await asyncio.wait_for(inside.wait(), SECONDS)
    await asyncio.to_thread(subscription.dispose)
    await asyncio.wait_for(closed.wait(), SECONDS)


async def test_a_subscriber_that_pulls_is_served_by_the_scheduler(thread: EventLoopScheduler) -> None:
    """At its own pace: no more is delivered than it wants, and the source pauses."""
    mapped: set[threading.Thread] = set()
    asked: list[int] = []

    def note(value: int) -> int:
        mapped.add(threading.current_thread())
        return value

    got: list[int] = []
    async for value in counting(asked).publish_on(thread, 8).map(note):
        got.append(value)
        if value == 500:
            break
    assert [*range(1, 501)] == got
    assert threading.current_thread() not in mapped
    assert len(asked) <= 500 + 64 + 16


async def test_a_subscriber_that_pulls_sees_end_and_error(thread: EventLoopScheduler) -> None:
    assert [1, 2] == await Flux.just(1, 2).publish_on(thread).collect_list()
    assert [] == await Flux.empty().publish_on(thread).collect_list()
    with pytest.raises(ValueError, match="mine"):
        await Flux.error(FAILURE).publish_on(thread).collect_list()


def test_block_works_over_threads(thread: EventLoopScheduler) -> None:
    assert 3 == Flux.just(1, 2, 3).publish_on(thread).block(SECONDS)
    assert 3 == Flux.just(1, 2, 3).subscribe_on(thread).publish_on(thread).block(SECONDS)
    assert 1 == counting([]).publish_on(thread).block_first(SECONDS)


def test_subscribe_on_subscribes_there(thread: EventLoopScheduler) -> None:
    """Wherever in the chain it stands."""
    subscribed: list[threading.Thread] = []

    def make() -> Flux[int]:
        subscribed.append(threading.current_thread())
        return Flux.just(1, 2)

    watcher = Threaded()
    watcher.read(Flux.defer(make).map(lambda value: value + 1).subscribe_on(thread).map(str))
    assert watcher.ended.wait(SECONDS)
    assert [item("2"), item("3"), END] == watcher.signals
    assert threading.current_thread() not in {*subscribed, *watcher.threads}


def test_a_dispose_cancels_a_subscription_that_has_not_happened() -> None:
    scheduler, probe = ByHand(), Probe(1)
    subscription = Flux.from_(probe.source).subscribe_on(scheduler).subscribe()
    subscription.dispose()
    scheduler.run()
    assert 0 == probe.subscribed


async def test_subscribe_on_a_loop_serves_one_who_pulls() -> None:
    """The source is driven by that loop, ahead of its consumer."""
    scheduler = AsyncIOThreadSafeScheduler(asyncio.get_running_loop())

    async def numbers() -> Any:
        for value in range(300):
            yield value

    assert [*range(300)] == await Flux.from_async_iterable(numbers()).subscribe_on(scheduler).collect_list()
    left = Flux.from_async_iterable(numbers()).subscribe_on(scheduler)
    async for value in left:
        assert 0 == value
        break
    await asyncio.sleep(0)


def test_a_closed_scheduler_is_an_error() -> None:
    """Of the stream, not of the caller."""
    closed = EventLoopScheduler()
    closed.dispose()
    for made in (Flux.just(1).publish_on(closed), Flux.just(1).subscribe_on(closed)):
        assert ["error"] == [kind for kind, *_ in signals(made)]


def test_a_queue_has_room_for_one_at_least() -> None:
    with pytest.raises(ConfigurationError, match=r"publish_on\(prefetch=0\)"):
        publish_on(ByHand(), 0)


def test_a_subject_just_queues() -> None:
    """It cannot pause."""
    scheduler, subject = ByHand(), reactivex.Subject[Any]()
    watcher = watch(Flux.from_(subject).publish_on(scheduler, 1))
    for value in range(5):
        subject.on_next(value)
    scheduler.run()
    assert [*range(5)] == watcher.items


# Several loops and threads in one chain


@pytest.fixture
def elsewhere() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in another thread."""
    loop = asyncio.new_event_loop()
    runs = threading.Thread(target=loop.run_forever)
    runs.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        runs.join()
        loop.close()


async def test_a_source_that_waits_may_follow_one_that_does_not(thread: EventLoopScheduler) -> None:
    """The one is driven by whoever has room, the other in its loop."""
    at_once, waits = chat(chat_frames(3)), chat(Chunks(*chat_frames(3)).agen())
    expected = [*await at_once.text().collect_list()] * 2
    async with asyncio.timeout(SECONDS):
        assert expected == await at_once.text().concat_with(waits.text()).publish_on(thread, 4).collect_list()


async def test_a_reader_here_of_a_source_in_another_loop(elsewhere: asyncio.AbstractEventLoop) -> None:
    """It gets all, and its end waits until the source is closed there; so does leaving."""
    scheduler = AsyncIOThreadSafeScheduler(elsewhere)
    chunks = Chunks(*chat_frames(300))
    async with asyncio.timeout(SECONDS):
        events = [event async for event in chat(chunks.agen()).subscribe_on(scheduler)]
    assert (list(range(len(events))), 1) == ([event.seq for event in events], chunks.closed)

    chunks = Chunks(*chat_frames(300), endless=True)
    async with asyncio.timeout(SECONDS):
        async for event in chat(chunks.agen()).subscribe_on(scheduler):
            if event.has_text:
                break
        while not chunks.closed:
            await asyncio.sleep(0)


async def test_a_task_of_another_loop_is_waited_for(elsewhere: asyncio.AbstractEventLoop) -> None:
    """Unless that loop does not run any more."""

    async def work() -> asyncio.Task[None]:
        return asyncio.create_task(asyncio.sleep(0.01))

    task = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), elsewhere))
    async with asyncio.timeout(SECONDS):
        await until_done(task)
    assert task.done()
    stopped = asyncio.new_event_loop()
    never = stopped.create_task(asyncio.sleep(0))
    await until_done(never)
    assert not never.done()
    never.cancel()
    await asyncio.to_thread(stopped.run_until_complete, asyncio.sleep(0))
    stopped.close()
    await until_done(never)


async def test_all_that_is_pulled_is_made_where_it_was_subscribed_to(thread: EventLoopScheduler) -> None:
    """What is asked for later, too; and not far ahead of who reads."""
    made: list[int] = []
    makers: set[int] = set()

    def note(value: int) -> int:
        makers.add(threading.get_ident())
        return value

    got: list[int] = []
    async for number in counting(made).map(note).subscribe_on(thread):
        got.append(number)
        assert len(made) - number < 256 + 64 + 2
        if len(got) == 2000:
            break
    assert threading.get_ident() not in makers
    assert got == made[:2000]


async def test_who_reads_makes_the_rest_where_the_scheduler_was_closed() -> None:
    class Closing(ByHand):
        def schedule(self, action: Any, state: Any = None) -> abc.DisposableBase:
            if self.ran:
                raise RuntimeError("closed")
            return super().schedule(action, state)

    scheduler = Closing()
    events = aiter(counting([]).subscribe_on(scheduler))
    first = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    scheduler.run()
    async with asyncio.timeout(SECONDS):
        assert 1 == await first
        assert list(range(2, 1000)) == [await anext(events) for _ in range(998)]
    await events.aclose()
