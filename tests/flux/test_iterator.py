"""The pull side: demand, leaving early, cancelling, two loops; and what else waits."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
import warnings
import weakref
from collections.abc import AsyncIterator
from typing import Any

import pytest
import reactivex

from semflux.errors import AlreadyConsumedError, ConfigurationError, SemfluxError, TruncatedStreamError
from semflux.events import ChatEventType
from semflux.flux import EventIterator, Flux, SignalType
from semflux.flux.iterate import PULL_DEMAND
from semflux.operators import EventSubject
from tests.flux.answers import ASYNC_FORMS, DATA, FRAMES, TYPES, Chunks, chat, chat_frames, settle
from tests.frames import cc
from tests.operators.watching import Probe, rx

T = ChatEventType
MANY = chat_frames(2000)


class Reads:
    """A source that may or may not wait, and how far it was read."""

    def __init__(self, chunks: list[bytes], *, waits: bool = True) -> None:
        self.chunks = chunks
        self.waits = waits
        self.asked = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            self.asked += 1
            if self.waits:
                await asyncio.sleep(0)
            yield chunk


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("taken", [1, 2, 3, 4, 100, 500])
async def test_a_source_is_read_as_far_as_it_is_wanted(taken: int, waits: bool) -> None:
    """One chunk an event here: it is never ahead of its consumer, whether it waits or not."""
    reads = Reads(MANY, waits=waits)
    async with aiter(chat(reads)) as events:
        for _ in range(taken):
            await anext(events)
        await settle()
        assert reads.asked <= taken
        assert reads.asked >= taken - 3


async def test_64_means_64() -> None:
    """Of a chunk with hundreds of events, 64 wait at most; the next chunk is asked for when all are taken."""
    reads = Reads([b"".join(MANY[:500]), b"".join(MANY[500:])])
    async with aiter(chat(reads)) as events:
        for taken in range(1, 460):
            await anext(events)
            assert len(events._edge.items) < PULL_DEMAND == 64
            assert reads.asked == (taken > 2)
        assert 1 == reads.asked


async def test_a_filter_does_not_use_up_demand() -> None:
    """What is not delivered is not counted: 64 of those that are wanted."""
    reads = Reads([b"".join(MANY)])
    async with aiter(chat(reads).filter(lambda e: (e.text or "").endswith("00 "))) as events:
        assert ["0 ", "100 "] != [(await anext(events)).text for _ in range(2)]
        assert "300 " == (await anext(events)).text


async def test_break_out_of_a_temporary_frees_it_at_once() -> None:
    """Before the next line runs, without a collection."""
    told: list[Any] = []
    gc.disable()
    try:
        async for event in chat(Chunks(*FRAMES, endless=True).agen()).do_finally(told.append):
            if event.type is T.TEXT_DELTA:
                break
        assert [SignalType.CANCEL] == told
    finally:
        gc.enable()


async def test_an_iterator_is_freed_with_its_last_user() -> None:
    """The chain refers to its edge alone."""
    told: list[Any] = []
    events = aiter(chat(Reads(FRAMES)).do_finally(told.append))
    await anext(events)
    gone = weakref.ref(events)
    del events
    assert (None, [SignalType.CANCEL]) == (gone(), told)


async def test_aclose_and_async_with_close_the_source_before_they_return() -> None:
    """Idempotent; what comes after is the end."""
    for how in ("aclose", "with", "unstarted"):
        chunks = Chunks(*FRAMES, endless=True)
        events = aiter(chat(chunks.agen()))
        if how == "with":
            async with events as same:
                assert same is events
                for _ in range(4):
                    await anext(events)
        elif how == "aclose":
            for _ in range(4):
                await anext(events)
        await events.aclose()
        await events.aclose()
        assert [] == [event async for event in events]
        assert chunks.closed == (how != "unstarted")


async def test_the_source_is_closed_before_the_end_is_told() -> None:
    """Also where it would have gone on after the end marker."""
    chunks = Chunks(*FRAMES, b"more", endless=True)
    assert TYPES == [event.type async for event in chat(chunks.agen())]
    assert 1 == chunks.closed


@pytest.mark.parametrize("form", ASYNC_FORMS)
async def test_a_cancelled_wait_closes_the_source_first(form: str) -> None:
    """CancelledError goes on, as it was thrown; the task counts as cancelled."""
    chunks, told = Chunks(*FRAMES[:2], endless=True), list[Any]()

    async def consume() -> None:
        try:
            async for event in chat(ASYNC_FORMS[form](chunks)):
                told.append(event.type)
        except asyncio.CancelledError:
            told.append(chunks.closed)
            raise

    task = asyncio.create_task(consume())
    async with asyncio.timeout(5):
        await chunks.waiting.wait()
    await asyncio.sleep(0)
    task.cancel("why")
    with pytest.raises(asyncio.CancelledError, match="why"):
        await task
    assert (True, 1) == (task.cancelled(), told[-1])


@pytest.mark.parametrize("form", ASYNC_FORMS)
@pytest.mark.parametrize("how", ["dispose", "aclose", "thread"])
async def test_a_dispose_from_elsewhere_ends_a_wait(form: str, how: str) -> None:
    """With StopAsyncIteration, and the task that waited goes on as if nothing was."""
    chunks, told = Chunks(*FRAMES[:2], endless=True), list[Any]()
    events = aiter(chat(ASYNC_FORMS[form](chunks)))

    async def consume() -> int:
        async for event in events:
            told.append(event.type)
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    task = asyncio.create_task(consume())
    async with asyncio.timeout(5):
        await chunks.waiting.wait()
        await asyncio.sleep(0)
        if how == "thread":
            await asyncio.to_thread(events.dispose)
        elif how == "dispose":
            events.dispose()
        else:
            await events.aclose()
        assert 0 == await task
    await settle()
    assert (TYPES[:2], 1) == (told[:2], chunks.closed)


async def test_a_cancel_and_a_dispose_at_once_is_a_cancel() -> None:
    """What the owner of the task wants is not swallowed."""
    chunks = Chunks(*FRAMES[:2], endless=True)
    events = aiter(chat(chunks.agen()))

    async def consume() -> None:
        async for _ in events:
            pass
        raise AssertionError("the cancel was swallowed")

    task = asyncio.create_task(consume())
    async with asyncio.timeout(5):
        await chunks.waiting.wait()
        await asyncio.sleep(0)
        task.cancel()
        events.dispose()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert 1 == chunks.closed


async def test_a_timeout_around_the_loop_closes_the_source() -> None:
    """asyncio.timeout tells its own cancel from others, and so do we."""
    chunks = Chunks(*FRAMES[:2], endless=True)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            async for _ in chat(chunks.agen()):
                pass
    assert 1 == chunks.closed


def test_a_stream_left_past_its_loop_is_told_of() -> None:
    """A ResourceWarning that says what to write."""
    kept: list[Any] = []

    async def leave() -> None:
        events = aiter(chat(Chunks(*FRAMES, endless=True).sync()))
        kept.append(events)
        await anext(events)

    asyncio.run(leave())
    with pytest.warns(ResourceWarning, match="async with"):
        kept.clear()


def test_a_stream_closed_in_its_loop_is_not_told_of() -> None:
    """Nor is one that was never begun, or has ended."""
    kept: list[Any] = []

    async def leave() -> None:
        for how in ("unstarted", "closed", "ended"):
            events = aiter(chat(DATA))
            kept.append(events)
            if how == "closed":
                await anext(events)
                await events.aclose()
            elif how == "ended":
                async for _ in events:
                    pass

    asyncio.run(leave())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept.clear()
        gc.collect()


def test_two_loops_in_one_process() -> None:
    """One stream, read in each."""
    stream = chat(Reads(FRAMES))

    async def read() -> list[str]:
        return [event.type async for event in stream]

    assert TYPES == asyncio.run(read()) == asyncio.run(read())


async def test_a_stream_is_cold() -> None:
    """Each iteration reads anew, with its own response id and *seq* from 0."""
    stream = chat(DATA)
    first, second = [e async for e in stream], [e async for e in stream]
    assert TYPES == [e.type for e in first] == [e.type for e in second]
    assert [*range(9)] == [e.seq for e in first] == [e.seq for e in second]
    assert first[0].response_id != second[0].response_id


async def test_an_iterator_belongs_to_one_task() -> None:
    """A second one that asks while the first waits is told so; the first is not disturbed."""
    chunks = Chunks(*FRAMES[:1], endless=True)
    events = aiter(chat(chunks.agen()).only(T.TEXT_DELTA))
    task = asyncio.ensure_future(anext(events))
    async with asyncio.timeout(5):
        await chunks.waiting.wait()
        with pytest.raises(ConfigurationError, match="belongs to one task"):
            await anext(events)
        await events.aclose()
        with pytest.raises(StopAsyncIteration):
            await task


async def test_items_before_an_error_are_delivered_first() -> None:
    """Then the error, once; then the end."""
    events = aiter(chat(DATA[:300]))
    seen: list[str] = []
    with pytest.raises(TruncatedStreamError) as caught:
        async for event in events:
            seen += [event.type]
    assert "ERROR" == seen[-1]
    assert caught.value.partial is not None
    with pytest.raises(StopAsyncIteration):
        await anext(events)


async def test_a_long_stream_lets_the_loop_do_other_things() -> None:
    """Though its source never waits."""
    turns = [0]

    async def count() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(count())
    async for _ in chat(b"".join(chat_frames(20_000))):
        pass
    task.cancel()
    assert turns[0] >= 3


async def test_a_hot_source_wakes_its_consumer_from_any_thread() -> None:
    """A Subject has no driver: what is pushed is waited for."""
    subject: EventSubject[int] = EventSubject()
    asyncio.get_running_loop().call_soon(lambda: threading.Thread(target=push, args=(subject,)).start())
    async with asyncio.timeout(5):
        assert [0, 1, 2] == [value async for value in Flux(subject)]


def push(subject: EventSubject[int]) -> None:
    for each in range(3):
        subject.on_next(each)
    subject.on_completed()


def test_a_push_after_the_loop_is_gone_does_no_harm() -> None:
    """Nobody waits any more."""
    subject: EventSubject[int] = EventSubject()
    kept: list[Any] = []

    async def leave() -> None:
        events = aiter(Flux(subject))
        kept.append(events)
        kept.append(asyncio.ensure_future(anext(events)))
        await asyncio.sleep(0)
        kept[0]._edge.connect(reactivex.disposable.Disposable())

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    loop.close()
    subject.on_next(1)
    subject.on_completed()
    kept[1]._coro.close()
    kept[1]._log_destroy_pending = False


async def test_items_that_came_while_nobody_waited_are_there() -> None:
    """And an end that came."""
    subject: EventSubject[int] = EventSubject()
    events: EventIterator[int] = EventIterator(subject)
    task = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    for each in range(3):
        subject.on_next(each)
    subject.on_completed()
    assert [0, 1, 2] == [await task, *[value async for value in events]]


async def test_a_sync_source_that_ends_while_it_is_subscribed_to() -> None:
    """All is there before the first wait."""
    assert [0, 1] == [value async for value in Flux(Probe(0, 1).source)]
    assert [] == [value async for value in Flux(Probe().source).pipe(rx.map(lambda x: x))]


async def test_an_endless_iterable_can_be_taken_from() -> None:
    """`take` ends it."""
    assert [0, 1] == [value async for value in Flux.from_iterable(itertools.count()).take(2)]


async def test_a_chain_with_operators_of_rxpy_keeps_its_demand() -> None:
    """Another source may push there, so the read goes on in a task: one chunk ahead at most."""
    reads = Reads(MANY)
    async with aiter(chat(reads).pipe(rx.map(lambda e: e.seq))) as events:
        for _ in range(100):
            await anext(events)
        await settle()
        assert reads.asked <= 101


async def test_a_chain_with_operators_of_rxpy_can_be_cancelled() -> None:
    """While it waits: the read that goes on in its task ends too."""
    chunks = Chunks(*FRAMES[:2], endless=True)

    async def consume() -> None:
        async for _ in chat(chunks.agen()).pipe(rx.map(lambda e: e)):
            pass

    task = asyncio.create_task(consume())
    async with asyncio.timeout(5):
        await chunks.waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await settle()
    assert 1 == chunks.closed


@pytest.mark.parametrize("form", ["sync", "agen"])
async def test_an_iterator_as_a_source_is_read_once(form: str) -> None:
    """A second time it would silently be empty."""
    stream = chat(getattr(Chunks(*FRAMES), form)())
    assert TYPES == [event.type async for event in stream]
    seen: list[str] = []
    with pytest.raises(AlreadyConsumedError, match="give bytes, a list or a path"):
        async for event in stream:
            seen += [event.type]
    assert "ERROR" == seen[-1]


async def test_what_a_source_raises_is_wrapped_and_what_came_is_delivered() -> None:
    """Its own exception is the cause; errors of ours go through as they are."""
    for form in ("sync", "agen", "observable"):
        for failure in (ZeroDivisionError("secret"), TruncatedStreamError("ours")):
            chunks = Chunks(FRAMES[0], cc({"content": "half"}), fails=failure)
            seen: list[Any] = []
            with pytest.raises(SemfluxError) as caught:
                async for event in chat(getattr(chunks, form)()):
                    seen += [event]
            assert ["TEXT_DELTA", "TEXT_END", "STEP_END", "ERROR"] == [event.type for event in seen[-4:]]
            assert seen[-1].error is caught.value
            assert caught.value is failure or caught.value.__cause__ is failure
            assert caught.value.partial is not None
            assert "half" == caught.value.partial.steps[0].text
            assert "secret" not in str(caught.value)
            assert 1 == chunks.closed
