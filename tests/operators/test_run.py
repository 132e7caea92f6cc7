"""The Run: it travels in the scheduler, and a scheduler that a subscriber chose keeps the time."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from reactivex.scheduler import CurrentThreadScheduler, ImmediateScheduler, TimeoutScheduler
from reactivex.scheduler.eventloop import AsyncIOScheduler
from reactivex.testing import ReactiveTest, TestScheduler

from semflux.flux import Flux
from semflux.operators import Run, filter_, map_
from semflux.operators.lift import lift, subscribe_to
from semflux.operators.map import map_ as map_operator
from semflux.operators.run import UNBOUNDED, RunScheduler, run_of
from tests.operators.watching import END, Watcher, item, plain, rx, signals

on_next, on_completed = ReactiveTest.on_next, ReactiveTest.on_completed


def test_a_run_is_found_in_its_scheduler_and_nowhere_else() -> None:
    """Another scheduler, or none, gives a new run with unlimited demand."""
    run = Run(demand=3, pull=True)
    assert run_of(run.scheduler) is run
    for scheduler in (None, ImmediateScheduler.singleton()):
        other = run_of(scheduler)
        assert (other.demand, other.pull, other.driver) == (UNBOUNDED, False, None)


@pytest.mark.parametrize(
    "between",
    [
        rx.map(lambda x: x),
        rx.filter(lambda _: True),
        rx.merge(plain.empty()),
        rx.start_with(0),
        rx.share(),
        rx.flat_map(lambda x: plain.of(x)),
        rx.retry(2),
        rx.do_action(lambda _: None),
        rx.take(5),
        rx.timeout(5.0),
    ],
)
def test_operators_of_rxpy_pass_the_run_on(between: Any) -> None:
    """From the subscriber through them to the source; and it knows that it is not alone any more."""
    seen: list[Run] = []

    def keep(below: Any, run: Run) -> Any:
        seen.append(run)
        return map_operator(lambda x: x)(plain.empty())._make(below, run)  # type: ignore[attr-defined]

    run = Run()
    source = lift(keep)(plain.never()).pipe(between)
    subscribe_to(source, Watcher(), run).dispose()

    assert [run] == seen
    assert not run.alone


def test_a_scheduler_of_the_subscribers_keeps_the_time() -> None:
    """Through operators of ours, in a plain RxPY chain and in a Flux: virtual time works."""
    for build in (
        lambda s: s.pipe(map_(lambda x: x), filter_(lambda _: True)),
        lambda s: Flux(s).map(lambda x: x),
    ):
        scheduler = TestScheduler()
        source = plain.timer(10.0, 20.0).pipe(rx.take(3))
        observer = scheduler.create_observer()
        build(source).subscribe(observer, scheduler=scheduler)
        scheduler.start()
        assert [on_next(10, 0), on_next(30, 1), on_next(50, 2), on_completed(50)] == observer.messages


def test_a_periodic_source_works_under_a_run() -> None:
    """RxPY's interval asks for a periodic scheduler."""
    scheduler = TestScheduler()
    observer = scheduler.create_observer()
    Flux(plain.interval(10.0)).take(2).subscribe(observer, scheduler=scheduler)
    scheduler.start()

    assert [on_next(10, 0), on_next(20, 1), on_completed(20)] == observer.messages


async def test_timed_operators_use_the_running_loop() -> None:
    """Relative and absolute times, in the loop's own thread; no thread is made."""
    told: list[Any] = []
    ended = asyncio.Event()
    threads = set[int]()

    def note(value: int) -> None:
        told.append(value)
        threads.add(threading.get_ident())

    Flux(plain.timer(0.001, 0.002)).take(3).subscribe(note, None, ended.set)
    async with asyncio.timeout(5):
        await ended.wait()
    assert ([0, 1, 2], {threading.get_ident()}) == (told, threads)


async def test_timed_operators_of_rxpy_work_below_and_above_a_pulled_stream() -> None:
    """delay, timeout, interval: what a timer pushes wakes the consumer."""
    flux: Flux[int] = Flux(plain.interval(0.001))
    delayed = flux.take(3).pipe(rx.delay(0.002), rx.timeout(5.0))
    async with asyncio.timeout(5):
        assert [0, 1, 2] == [value async for value in delayed]


def test_without_a_loop_timed_operators_use_threads() -> None:
    """RxPY's timeout scheduler."""
    ended = threading.Event()
    told: list[Any] = []
    Flux(plain.timer(0.001)).subscribe(told.append, None, ended.set)
    assert ended.wait(5)
    assert [0] == told
    assert Run().scheduler._timed is TimeoutScheduler.singleton()


def test_at_once_means_the_trampoline() -> None:
    """So a subscriber has its disposable before the first item; two sources take turns."""
    run = Run()
    order: list[str] = []

    def outer(*_: Any) -> None:
        run.scheduler.schedule(lambda *_: order.append("inner"))
        order.append("outer")

    run.scheduler.schedule(outer)
    assert ["outer", "inner"] == order
    assert run.scheduler._now is CurrentThreadScheduler.singleton()


async def test_a_chosen_scheduler_is_passed_on_as_it_is() -> None:
    """A source above sees a run, whose times are the scheduler's own."""
    base = AsyncIOScheduler(asyncio.get_running_loop())
    scheduler = run_of(base).scheduler
    fired = asyncio.Event()
    scheduler.schedule_absolute(scheduler.now + timedelta(milliseconds=1), lambda *_: fired.set())
    async with asyncio.timeout(5):
        await fired.wait()
    assert isinstance(scheduler, RunScheduler)
    assert abs((scheduler.now - base.now).total_seconds()) < 1


def test_concat_map_of_values_keeps_its_order() -> None:
    """An asynchronous carrier would deliver inner values after later ones."""
    source = Flux.just(1, 2).pipe(rx.concat_map(lambda x: plain.of(x, x * 10)))
    assert [item(1), item(10), item(2), item(20), END] == signals(source)
