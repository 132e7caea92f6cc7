"""using_when: whoever leaves, and whenever, the resource is closed, once, and nothing is lost."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
import reactivex
from reactivex.disposable import Disposable

from semflux import Flux
from semflux.clock import VirtualClock
from semflux.errors import ConfigurationError, TotalTimeoutError
from tests.flux.answers import settle
from tests.operators.resources import OPENED, Session
from tests.operators.watching import END, Probe, hooked, raising, watch

FAILURE, CLEANUP = ValueError("mine"), KeyError("of the clean-up")


async def test_a_subscriber_that_leaves_cancels_the_source_and_the_clean_up_is_not_lost() -> None:
    """Even if nothing of the stream is referred to any more."""
    session, probe = Session(waits=True), Probe(1, ends=False)
    probe.log = session.log
    subscription = session.around(probe.source).subscribe(None)
    await settle()
    subscription.dispose()
    assert [*OPENED, "source disposed"] == session.log
    del subscription
    await settle()
    gc.collect()
    session.may_close.set()
    await settle()
    assert ["cancel...", "cancel"] == session.log[3:]


async def test_closing_an_iterator_waits_for_the_clean_up() -> None:
    """`aclose`, `async with`, and an awaiting Mono that has what it wants; `break` does not wait."""
    session = Session()
    async with aiter(session.around(Flux.just(1).concat_with(Flux.never()))) as items:
        assert 1 == await anext(items)
    assert "cancel" == session.log[-1]

    session = Session()
    assert 1 == await session.around(Flux.just(1, 2)).next()
    assert "cancel" == session.log[-1]

    session = Session()
    async for _ in session.around(Flux.just(1, 2).concat_with(Flux.never())):
        break
    await settle()
    assert "cancel" == session.log[-1]


async def test_a_limit_that_passes_after_a_cancel_is_nobodys() -> None:
    """The clean-up goes on."""
    session = Session(waits=True)
    items: Any = aiter(session.around(Flux.never()))
    reading = asyncio.ensure_future(anext(items))
    await settle()
    items.dispose()
    with hooked() as dropped:
        items._run.fail(FAILURE)
    session.may_close.set()
    await items.aclose()
    assert ([], "cancel") == (dropped.errors, session.log[-1])
    with pytest.raises(StopAsyncIteration):
        await reading


async def test_what_a_clean_up_raises_after_a_cancel_is_dropped() -> None:
    with hooked() as dropped:
        assert 1 == await Session(raises=CLEANUP).around(Flux.just(1, 2)).next()
    assert [CLEANUP] == dropped.errors


async def test_a_cancel_while_the_clean_up_works_leaves_it_alone() -> None:
    """It is the one of the end, and nobody is told about it; what it raises is dropped."""
    session = Session(waits=True, raises=CLEANUP)
    watcher: list[Any] = []
    subscription = session.around(Flux.just(1)).subscribe(watcher.append, watcher.append)
    await settle()
    subscription.dispose()
    with hooked() as dropped:
        session.may_close.set()
        await settle()
    assert ([*OPENED, "complete...", "complete"], [1], [CLEANUP]) == (session.log, watcher, dropped.errors)


async def test_a_task_that_is_cancelled_while_it_waits_for_the_clean_up_leaves_it_alone() -> None:
    session = Session(waits=True)
    task = asyncio.ensure_future(session.around(Flux.just(1)).collect_list())
    await settle()
    task.cancel()
    await settle()
    assert not task.done()
    session.may_close.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "complete" == session.log[-1]


async def test_leaving_while_it_opens_cancels_that() -> None:
    """There is nothing to clean up; `aclose` waits until it is over."""
    log: list[str] = []

    async def slow() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            log.append("not open")
        return 1

    flux = Flux.using_when(slow, lambda _: Flux.just(1), lambda _: log.append("close"))
    async with aiter(flux) as items:
        reading = asyncio.ensure_future(anext(items))
        await settle()
        items.dispose()
        with pytest.raises(StopAsyncIteration):
            await reading
    assert ["not open"] == log


async def test_a_resource_that_comes_when_its_subscriber_has_left_is_closed() -> None:
    """It would not be cancelled, or had just come."""
    log: list[str] = []

    async def stubborn() -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            log.append("open all the same")
        return 1

    def flux(opens: Any) -> Flux[int]:
        return Flux.using_when(opens, lambda _: Flux.just(1), lambda _: log.append("close"))

    subscription = flux(stubborn).subscribe(None)
    await settle()
    subscription.dispose()
    await settle()
    assert ["open all the same", "close"] == log

    log.clear()
    async with aiter(flux(stubborn)) as items:
        reading = asyncio.ensure_future(anext(items))
        await settle()
        items.dispose()
        with pytest.raises(StopAsyncIteration):
            await reading
    assert ["open all the same", "close"] == log

    kept: list[Any] = []

    async def leaves() -> int:
        asyncio.get_running_loop().call_soon(kept[0].dispose)
        return 1

    kept.append(flux(leaves).subscribe(None))
    await settle()
    assert ["close"] == log[2:]


async def test_a_dispose_from_another_thread_cleans_up_in_the_loop() -> None:
    where: list[int] = []

    async def close(_: Session) -> None:
        where.append(threading.get_ident())

    subscription = Flux.using_when(Session().open, lambda _: Flux.never(), close).subscribe(None)
    await settle()
    thread = threading.Thread(target=subscription.dispose)
    thread.start()
    thread.join()
    await settle()
    assert [threading.get_ident()] == where


def test_a_dispose_between_two_runs_of_the_loop_cleans_up_in_the_next_one() -> None:
    """It is not lost."""
    session: list[Session] = []

    async def begin() -> Any:
        session.append(Session())
        subscription = session[0].around(Flux.never()).subscribe(None)
        await settle()
        return subscription

    with asyncio.Runner() as runner:
        runner.run(begin()).dispose()
        assert OPENED == session[0].log
        runner.run(settle())
        assert "cancel" == session[0].log[-1]


async def test_a_dispose_when_the_loop_is_closed_tells_what_was_not_closed() -> None:
    """What needs no loop is done."""
    kept: list[Any] = []

    async def main(close: Any) -> None:
        kept.append(Flux.using_when(Session().open, lambda _: Flux.never(), close).subscribe(None))
        await settle()

    async def close(_: Session) -> None:
        raise AssertionError

    closed: list[Any] = []
    for each in (close, closed.append):
        await asyncio.to_thread(asyncio.run, main(each))

    def leave() -> None:
        for each in kept:
            each.dispose()

    with hooked() as dropped:
        await asyncio.to_thread(leave)
    assert ([ConfigurationError], 1) == ([type(each) for each in dropped.errors], len(closed))


async def test_a_limit_that_passes_while_it_opens_or_closes_ends_the_stream() -> None:
    """The clean-up goes on."""
    for turns in (0, 1):
        clock, session = VirtualClock(), Session(waits=True)
        watcher = watch(session.around(Flux.empty()).timeout(1.0, clock=clock))
        for _ in range(turns):
            await settle()
        clock.advance(1.0)
        assert isinstance(watcher.error, TotalTimeoutError)
        session.may_close.set()
        await settle()
        assert not turns or session.log[-1] in {"complete", "cancel"}


async def test_a_source_that_ends_in_another_thread_is_cleaned_up_after_in_the_loop() -> None:
    """And the end comes there too."""
    where: list[int] = []

    async def close(_: Session) -> None:
        where.append(threading.get_ident())

    source = reactivex.Subject[Any]()
    watcher = watch(Flux.using_when(Session().open, lambda _: source, close))
    await settle()
    thread = threading.Thread(target=source.on_completed)
    thread.start()
    thread.join()
    await settle()
    assert ([threading.get_ident()], [END]) == (where, watcher.signals)


async def test_a_stream_with_a_resource_can_be_ended_from_below() -> None:
    """While it opens and while it closes, which goes on, by a failure and by an abort."""
    for turns, cleaned in ((1, False), (5, True)):
        for end in (lambda run: run.fail(FAILURE), lambda run: run.abort("enough")):
            session = Session(waits=True)
            items: Any = aiter(session.around(Flux.empty()))
            reading = asyncio.ensure_future(anext(items))
            for _ in range(turns):
                await asyncio.sleep(0)
            end(items._run)
            driver = items._run.driver
            driver.start_task()
            assert (True, driver.over, None) == (driver.pump(), True, driver.fill() if cleaned else None)
            session.may_close.set()
            with pytest.raises((ValueError, StopAsyncIteration)):
                await reading
            assert cleaned == ("complete" in session.log)


def test_a_subscriber_may_leave_while_the_stream_of_the_resource_is_cancelled() -> None:
    """The resource is cleaned up, and nothing is made of it."""
    kept: list[Any] = []
    log: list[Any] = []

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        subject.subscribe(observer)
        return Disposable(lambda: kept[0].dispose())

    subject = reactivex.Subject[Any]()
    kept.append(Flux.using_when(reactivex.create(subscribe), raising(FAILURE), log.append).subscribe(None))
    subject.on_next(1)
    assert [1] == log
