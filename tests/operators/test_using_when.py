"""using_when: a resource that is opened and closed by waiting; an end waits for the clean-up, a cancel loses none."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import reactivex
from reactivex.disposable import Disposable

from semflux import Flux, Mono
from semflux.clock import VirtualClock
from semflux.errors import ConfigurationError, OperatorError, TotalTimeoutError
from semflux.operators.using_when import using_when
from semflux.testing import check_operator
from tests.flux.answers import FRAMES, TYPES, Chunks, chat, settle
from tests.operators.watching import END, Probe, error, hooked, item, raising, signals, watch

FAILURE, CLEANUP = ValueError("mine"), KeyError("of the clean-up")


class Session:
    """A resource with an asynchronous life, in a log."""

    def __init__(self, *, raises: Exception | None = None, waits: bool = False) -> None:
        self.log: list[Any] = []
        self.raises = raises
        self.may_close = asyncio.Event()
        if not waits:
            self.may_close.set()

    async def open(self) -> Session:
        self.log.append("opening")
        await asyncio.sleep(0)
        self.log.append("open")
        return self

    async def _close(self, how: str) -> None:
        self.log.append(f"{how}...")
        await self.may_close.wait()
        self.log.append(how)
        if self.raises is not None:
            raise self.raises

    async def complete(self) -> None:
        await self._close("complete")

    async def fail(self, failure: Exception) -> None:
        await self._close(f"error {failure}")

    async def cancel(self) -> None:
        await self._close("cancel")

    def around(self, source: Any) -> Flux[Any]:
        return Flux.using_when(self.open, lambda _: source, Session.complete, Session.fail, Session.cancel)


OPENED = ["opening", "open"]


def test_a_source_with_an_asynchronous_resource_keeps_the_contract() -> None:
    """Where nothing has to be waited for."""
    check_operator(lambda source: using_when(Flux.just(1), lambda _: source, lambda _: None))


async def test_an_end_goes_down_when_its_clean_up_has_ended() -> None:
    """The end, or the error; one clean-up of three."""
    for source, cleaned, end in (
        (Flux.just(1), "complete", END),
        (Flux.error(FAILURE), "error mine", error(FAILURE)),
    ):
        session = Session(waits=True)
        watcher = watch(session.around(source))
        await settle()
        assert [*OPENED, f"{cleaned}..."] == session.log
        assert end not in watcher.signals
        session.may_close.set()
        await settle()
        assert ([*OPENED, f"{cleaned}...", cleaned], end) == (session.log, watcher.signals[-1])


async def test_a_consumer_that_pulls_waits_for_the_clean_up() -> None:
    session = Session()
    assert [1, 2] == [each async for each in session.around(Flux.just(1, 2))]
    assert "complete" == session.log[-1]
    session = Session()
    with pytest.raises(ValueError, match="mine"):
        await session.around(Flux.error(FAILURE)).collect_list()
    assert "error mine" == session.log[-1]


async def test_a_clean_up_that_raises_is_the_error() -> None:
    """With the error of the stream as its context."""
    with pytest.raises(KeyError):
        await Session(raises=KeyError("first")).around(Flux.just(1)).collect_list()
    with pytest.raises(KeyError) as caught:
        await Session(raises=KeyError("second")).around(Flux.error(FAILURE)).collect_list()
    assert FAILURE is caught.value.__context__


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


async def test_a_clean_up_that_is_cancelled_is_an_error() -> None:
    """From outside of the stream."""

    async def cancelled(_: int) -> None:
        raise asyncio.CancelledError

    with pytest.raises(OperatorError, match="clean-up was cancelled"):
        await Flux.using_when(Flux.just(1), lambda _: Flux.just(2), cancelled).collect_list()


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


async def test_what_opening_raises_is_the_error() -> None:
    """As is what making the stream raises, after the clean-up."""
    closed: list[Any] = []

    async def refuses() -> int:
        raise FAILURE

    with pytest.raises(ValueError, match="mine"):
        await Flux.using_when(refuses, lambda _: Flux.just(1), closed.append).collect_list()
    assert [] == closed
    with pytest.raises(ValueError, match="mine"):
        await Flux.using_when(Session().open, raising(FAILURE), closed.append).collect_list()
    assert 1 == len(closed)


def test_the_resource_may_be_the_first_item_of_a_stream() -> None:
    """Which is cancelled then; without one there is only the end, and an error is the error."""
    log: list[Any] = []

    def flux(resource: Any) -> Flux[int]:
        return Flux.using_when(resource, lambda given: Flux.just(given * 10), log.append)

    probe = Probe(1, 2)
    assert [item(10), END] == signals(flux(probe.source))
    assert (1, [1]) == (probe.disposed, log)
    assert [item(30), END] == signals(flux(Mono.just(3)))
    assert [END] == signals(flux(Flux.empty()))
    assert [error(FAILURE)] == signals(flux(Flux.error(FAILURE)))
    waiting = Probe(ends=False)
    flux(waiting.source).subscribe(None).dispose()
    assert (1, [1, 3]) == (waiting.disposed, log)


def test_one_clean_up_does_for_all_ends() -> None:
    log: list[Any] = []

    def flux(source: Any) -> Flux[int]:
        return Flux.using_when(Flux.just(1), lambda _: source, log.append)

    assert [END] == signals(flux(Flux.empty()))
    assert [error(FAILURE)] == signals(flux(Flux.error(FAILURE)))
    flux(Flux.never()).subscribe(None).dispose()
    assert [1, 1, 1] == log


def test_a_clean_up_without_a_loop_to_wait_in_is_told() -> None:
    """It is the error; after a cancel it is dropped."""

    async def close(_: int) -> None:
        raise AssertionError

    def flux(source: Any) -> Flux[int]:
        return Flux.using_when(Flux.just(1), lambda _: source, close)

    watcher = watch(flux(Flux.just(2)))
    assert isinstance(watcher.error, ConfigurationError)
    assert "block()" in str(watcher.error)
    with hooked() as dropped:
        flux(Flux.never()).subscribe(None).dispose()
    assert [ConfigurationError] == [type(each) for each in dropped.errors]


class Pool:
    """Async context managers, in a log."""

    def __init__(self, suppresses: bool = False) -> None:
        self.log: list[Any] = []
        self.suppresses = suppresses

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[int]:
        self.log.append("open")
        try:
            yield 1
        except BaseException as failure:
            self.log.append(type(failure).__name__)
            if not self.suppresses:
                raise
        finally:
            await asyncio.sleep(0)
            self.log.append("closed")

    def around(self, source: Any) -> Flux[Any]:
        return Flux.using_when(self.connect, lambda _: source)


async def test_a_context_manager_is_entered_and_left() -> None:
    """With the error of the stream; a cancel is a CancelledError for it. It may make an end of an error."""
    pool = Pool()
    assert [5] == await pool.around(Flux.just(5)).collect_list()
    assert ["open", "closed"] == pool.log
    pool = Pool()
    with pytest.raises(ValueError, match="mine"):
        await pool.around(Flux.error(FAILURE)).collect_list()
    assert ["open", "ValueError", "closed"] == pool.log
    for pool in (Pool(), Pool(suppresses=True)):
        with hooked() as dropped:
            assert 5 == await pool.around(Flux.just(5, 6)).next()
        assert (["open", "CancelledError", "closed"], []) == (pool.log, dropped.errors)
    assert [] == await Pool(suppresses=True).around(Flux.error(FAILURE)).collect_list()


async def test_a_context_manager_that_is_really_cancelled_says_so() -> None:
    """Not by the cancel of its stream."""

    class Manager:
        async def __aenter__(self) -> int:
            return 1

        async def __aexit__(self, *_: object) -> None:
            raise asyncio.CancelledError

    with hooked() as dropped:
        assert 5 == await Flux.using_when(Manager, lambda _: Flux.just(5, 6)).next()
    assert [OperatorError] == [type(each) for each in dropped.errors]


async def test_wrong_resources_are_told() -> None:
    """With what to write instead."""
    wrong: Any = Flux.using_when
    with pytest.raises(ConfigurationError, match="complete"):
        wrong(Pool().connect, lambda _: Flux.just(1), error=lambda *_: None)
    with pytest.raises(ConfigurationError, match="using\\(\\)"):
        await wrong(lambda: 1, lambda _: Flux.just(1), lambda _: None).collect_list()
    with pytest.raises(ConfigurationError, match="context manager"):
        await wrong(lambda: 1, lambda _: Flux.just(1)).collect_list()


async def test_a_chat_stream_is_closed_before_its_resource() -> None:
    """When it was read to its end, when it fails, at a break."""

    async def read(chunks: Chunks, stop: bool = False) -> tuple[list[str], list[Any]]:
        session = Session()
        seen: list[Any] = []

        async def close(given: Session) -> None:
            seen.append(f"source closed {chunks.closed}")
            await given.complete()

        types: list[str] = []
        try:
            async with aiter(Flux.using_when(session.open, lambda _: chat(chunks.agen()), close)) as events:
                async for event in events:
                    types.append(str(event.type))
                    if stop and len(types) == 4:
                        break
        except Exception as failure:
            types.append(type(failure).__name__)
        assert "complete" == session.log[-1]
        return types, seen

    assert (TYPES, ["source closed 1"]) == await read(Chunks(*FRAMES))
    assert (TYPES[:4], ["source closed 1"]) == await read(Chunks(*FRAMES), stop=True)
    types, seen = await read(Chunks(*FRAMES[:3], fails=OSError("gone")))
    assert ("ERROR", ["source closed 1"]) == (types[-2], seen)


async def test_a_chat_stream_with_a_resource_is_pulled() -> None:
    """It is read no further than the consumer wants; its subscribers that do not pull get all."""
    chunks = Chunks(*FRAMES)
    async with aiter(Session().around(chat(chunks.agen()))) as events:
        assert TYPES[:4] == [str((await anext(events)).type) for _ in range(4)]
        assert chunks.asked < len(FRAMES)
    watcher = watch(Session().around(chat(Chunks(*FRAMES).agen())))
    for _ in range(10):
        await settle()
    assert (TYPES, END) == ([str(event.type) for event in watcher.items], watcher.signals[-1])


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


async def test_block_waits_for_the_clean_up() -> None:
    """In plain code, on the private thread."""
    log: list[str] = []

    async def opened() -> int:
        return 1

    async def close(_: int) -> None:
        await asyncio.sleep(0)
        log.append("closed")

    flux = Flux.using_when(opened, lambda given: Flux.just(given, 2), close)
    assert 1 == await asyncio.to_thread(flux.block_first)
    assert 2 == await asyncio.to_thread(flux.block_last)
    assert ["closed", "closed"] == log


async def test_a_mono_has_an_asynchronous_resource_too() -> None:
    session = Session()
    assert session is await Mono.using_when(session.open, Mono.just, Session.complete)
    assert "complete" == session.log[-1]


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


def test_a_clean_up_that_raises_at_once_is_the_error() -> None:
    """Where no loop runs, and where one does."""
    flux = Flux.using_when(Flux.just(1), lambda _: Flux.just(2), raising(CLEANUP))
    assert [item(2), error(CLEANUP)] == signals(flux)
    closing = Flux.using_when(Flux.just(1), lambda _: Flux.just(2), Mono.just)
    assert isinstance(watch(closing).error, ConfigurationError)


async def test_a_clean_up_may_be_a_mono() -> None:
    """It is awaited, as whatever can be."""
    closed: list[Any] = []
    flux = Flux.using_when(
        Flux.just(1), lambda _: Flux.just(2), lambda given: Mono.just(given).do_on_next(closed.append)
    )
    assert ([2], [1]) == (await flux.collect_list(), closed)
    failing = Flux.using_when(Flux.just(1), lambda _: Flux.just(2), raising(CLEANUP))
    with pytest.raises(KeyError):
        await failing.collect_list()


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


async def test_a_context_manager_may_raise_the_cancel_again() -> None:
    """That is no error."""

    class Manager:
        async def __aenter__(self) -> int:
            return 1

        async def __aexit__(self, *failure: object) -> None:
            error: Any = failure[1]
            if error is not None:
                raise error

    with hooked() as dropped:
        assert 5 == await Flux.using_when(Manager, lambda _: Flux.just(5, 6)).next()
    assert [] == dropped.errors
