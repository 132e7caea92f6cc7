"""The pull side: demand, leaving early, cancelling, two loops; and what else waits."""

from __future__ import annotations

import asyncio
import gc
import warnings
import weakref
from typing import Any

import pytest

from semflux.errors import ConfigurationError, TruncatedStreamError
from semflux.events import ChatEventType
from semflux.flux import SignalType
from semflux.flux.iterate import PULL_DEMAND
from tests.flux.answers import ASYNC_FORMS, DATA, FRAMES, TYPES, Chunks, Reads, chat, chat_frames, settle

T = ChatEventType
MANY = chat_frames(2000)


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
