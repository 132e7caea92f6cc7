"""Pulling from sources that push, end early, fail, or stand behind operators of RxPY."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest
import reactivex

from semflux.errors import AlreadyConsumedError, SemfluxError, TruncatedStreamError
from semflux.events import ChatEventType
from semflux.flux import EventIterator, Flux
from semflux.operators import EventSubject
from tests.flux.answers import FRAMES, TYPES, Chunks, Reads, chat, chat_frames, settle
from tests.frames import cc
from tests.operators.watching import Probe, rx

T = ChatEventType
MANY = chat_frames(2000)


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
