"""Cancel: at index k exactly k events, the source closed once, nothing after; whoever cancels, and how."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

from semflux.flux import ChatStream, Flux, SignalType
from semflux.operators import EventSubject
from tests.flux.answers import ASYNC_FORMS, DATA, FORMS, FRAMES, TYPES, Chunks, chat, settle
from tests.operators.watching import hooked, plain, watch

COUNT = len(TYPES)


class StopError(Exception):
    """What a subscriber raises."""


async def by_dispose(stream: ChatStream, k: int) -> list[Any]:
    """`dispose` inside `on_next`, re-entrantly; at 0 right after `subscribe`."""
    seen, later, ended = list[Any](), list[Any](), asyncio.Event()

    def take(event: Any) -> None:
        seen.append(event)
        if len(seen) == k:
            later[0].dispose()
            later[0].dispose()

    def start(_: int) -> None:
        stream_ = stream.do_finally(lambda _: ended.set())
        later.append(stream_.subscribe(take, seen.append, lambda: seen.append("end")))
        if k == 0:
            later[0].dispose()

    # From inside a callback: there the disposable comes first for synchronous sources too.
    plain.of(0).subscribe(start)
    await ended.wait()
    return seen


async def by_take(stream: ChatStream, k: int) -> list[Any]:
    """`take(k)`; its end is told."""
    seen, ended = list[Any](), asyncio.Event()
    stream.take(k).subscribe(seen.append, seen.append, ended.set)
    await ended.wait()
    return seen


async def by_break(stream: ChatStream, k: int) -> list[Any]:
    """`break` out of `async for` over a temporary."""
    seen: list[Any] = []
    async for event in stream:
        if len(seen) == k:
            break
        seen.append(event)
    return seen


async def by_pull_and_take(stream: ChatStream, k: int) -> list[Any]:
    """`take(k)`, pulled."""
    return [event async for event in stream.take(k)]


async def by_raising(stream: ChatStream, k: int) -> list[Any]:
    """A subscriber that raises at its k-th event; its own `on_error` gets the exception."""
    seen, ended = list[Any](), asyncio.Event()

    def take(event: Any) -> None:
        seen.append(event)
        if len(seen) == k:
            raise StopError

    def failed(error: Exception) -> None:
        assert isinstance(error, StopError) == (k > 0)
        ended.set()

    stream.subscribe(take, failed, ended.set)
    await ended.wait()
    return seen[:k]


async def by_task_cancel(stream: ChatStream, k: int) -> list[Any]:
    """The consumer's task is cancelled at its k-th event, and at once if there is none."""
    seen: list[Any] = []

    async def consume() -> None:
        task = asyncio.current_task()
        assert task is not None
        if k == 0:
            task.cancel()
            await asyncio.sleep(0)
        async for event in stream:
            seen.append(event)
            if len(seen) == k:
                task.cancel()
                await asyncio.sleep(0)

    task = asyncio.create_task(consume())
    await asyncio.wait({task})
    assert task.cancelled()
    return seen


async def by_aclose(stream: ChatStream, k: int) -> list[Any]:
    """`async with`, left early."""
    async with aiter(stream) as events:
        return [await anext(events) for _ in range(k)]


WAYS: list[Callable[[ChatStream, int], Any]] = [
    by_dispose,
    by_take,
    by_break,
    by_pull_and_take,
    by_raising,
    by_task_cancel,
    by_aclose,
]
PULLING = {by_break, by_task_cancel, by_aclose}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMS)
async def test_dispose_at_index_k_delivers_k_events(form: str, way: Callable[[ChatStream, int], Any]) -> None:
    """At every k; the source is closed once where it was opened, and nothing comes afterwards."""
    for k in range(COUNT + 1):
        if (k == 0 and way is by_raising) or (k == COUNT and way in {by_break, by_raising}):
            continue
        chunks, signals = Chunks(*FRAMES), list[SignalType]()
        async with asyncio.timeout(5):
            seen = await way(chat(FORMS[form](chunks)).do_finally(signals.append), k)
            await settle()
        assert TYPES[:k] == [event.type for event in seen]
        if k < COUNT and chunks.asked:
            # A consumer that pulls may find, where it leaves, that the end has come already.
            ended = way in PULLING and k >= COUNT - 3 and signals == [SignalType.ON_COMPLETE]
            assert ended or [SignalType.CANCEL] == signals
        assert chunks.closed == (1 if chunks.asked else 0), (k, chunks.asked)


@pytest.mark.parametrize("way", [by_take, by_break, by_pull_and_take, by_aclose])
async def test_bytes_are_cancelled_at_index_k_too(way: Callable[[ChatStream, int], Any]) -> None:
    """All of it is there at once: the events are not."""
    for k in range(COUNT):
        assert TYPES[:k] == [event.type for event in await way(chat(DATA), k)]


def test_dispose_in_on_next_of_a_synchronous_source_needs_no_loop() -> None:
    """`subscribe` inside a callback gives the disposable before the first event."""
    for k in range(1, COUNT):
        chunks, seen, later = Chunks(*FRAMES), list[Any](), list[Any]()

        def take(event: Any, k: int = k, seen: list[Any] = seen, later: list[Any] = later) -> None:
            seen.append(event.type)
            if len(seen) == k:
                later[0].dispose()

        def start(
            _: int, chunks: Chunks = chunks, take: Any = take, seen: Any = seen, later: Any = later
        ) -> None:
            later.append(chat(chunks.sync()).subscribe(take, seen.append, lambda: seen.append("end")))

        plain.of(0).subscribe(start)
        assert TYPES[:k] == seen
        assert chunks.closed == (1 if chunks.asked else 0)


@pytest.mark.parametrize("form", ASYNC_FORMS)
async def test_a_source_that_waits_is_closed_by_a_dispose_from_elsewhere(form: str) -> None:
    """Nobody has to read for that."""
    chunks, told = Chunks(*FRAMES[:2], endless=True), list[Any]()
    subscription = chat(ASYNC_FORMS[form](chunks)).do_finally(told.append).subscribe(lambda _: None)
    async with asyncio.timeout(5):
        await chunks.waiting.wait()
    subscription.dispose()
    subscription.dispose()
    await settle()
    assert (1, [SignalType.CANCEL]) == (chunks.closed, told)


@pytest.mark.parametrize("form", ASYNC_FORMS)
async def test_a_subscription_may_be_disposed_of_before_anything_came(form: str) -> None:
    """The source is never opened, or closed at once."""
    chunks, seen = Chunks(*FRAMES), list[Any]()
    chat(ASYNC_FORMS[form](chunks)).subscribe(seen.append).dispose()
    await settle()
    assert ([], 0) == (seen, chunks.asked)


@pytest.mark.parametrize("form", ASYNC_FORMS)
async def test_dispose_from_another_thread(form: str) -> None:
    """The source is closed in the loop's next turn; nothing is delivered after `dispose` has returned."""
    chunks, told = Chunks(*FRAMES[:2], endless=True), list[Any]()
    subscription = chat(ASYNC_FORMS[form](chunks)).subscribe(told.append, told.append)
    async with asyncio.timeout(5):
        await chunks.waiting.wait()
    count = len(told)
    await asyncio.to_thread(subscription.dispose)
    await settle()
    assert (1, count) == (chunks.closed, len(told))


def test_a_synchronous_stream_may_be_disposed_of_by_another_thread() -> None:
    """While its thread is inside the source: that thread closes it."""
    chunks, seen, later = Chunks(*FRAMES), list[Any](), list[Any]()
    inside, go_on = threading.Event(), threading.Event()

    def source() -> Any:
        for i, chunk in enumerate(chunks.sync()):
            yield chunk
            if i == 1:
                inside.set()
                assert go_on.wait(5)

    def run() -> None:
        stream = chat(source())
        plain.of(0).subscribe(lambda _: later.append(stream.subscribe(lambda e: seen.append(e.type))))

    thread = threading.Thread(target=run)
    thread.start()
    assert inside.wait(5)
    count = len(seen)
    later[0].dispose()
    go_on.set()
    thread.join(5)
    gc.collect()
    assert (count, 1) == (len(seen), chunks.closed)


def test_dispose_by_another_thread_while_no_thread_is_at_work() -> None:
    """Before it began: there is nothing to close, and it never begins."""
    seen: list[Any] = []

    def start(_: int) -> None:
        subscription = chat(DATA).subscribe(seen.append)
        thread = threading.Thread(target=subscription.dispose)
        thread.start()
        thread.join(5)

    plain.of(0).subscribe(start)
    assert [] == seen


def test_a_source_that_disposes_of_its_own_stream_is_closed() -> None:
    """A generator can't be closed while it runs: it is afterwards."""
    chunks, later, seen = Chunks(*FRAMES), list[Any](), list[Any]()

    class Source:
        def __init__(self) -> None:
            self.inner = chunks.sync()

        def __iter__(self) -> Any:
            return self.generator()

        def generator(self) -> Any:
            try:
                yield next(self.inner)
                later[0].dispose()
                yield next(self.inner)
            finally:
                self.inner.close()  # type: ignore[attr-defined]  # it is a generator

    plain.of(0).subscribe(lambda _: later.append(chat(Source()).subscribe(lambda e: seen.append(e.type))))
    assert (TYPES[:2], 1) == (seen, chunks.closed)


async def test_an_asynchronous_source_that_disposes_of_its_own_stream_is_closed() -> None:
    """The same, where it is waited for."""
    chunks, later, seen = Chunks(*FRAMES), list[Any](), list[Any]()

    async def source() -> Any:
        async for chunk in chunks.agen():
            yield chunk
            later[0].dispose()

    later.append(chat(source()).subscribe(lambda e: seen.append(e.type)))
    await settle()
    gc.collect()
    await settle()
    assert (TYPES[:2], 1) == (seen, chunks.closed)


async def test_what_closing_a_source_raises_goes_to_the_hook() -> None:
    """`dispose` never raises."""

    class Source:
        def __init__(self) -> None:
            self.chunks = iter(FRAMES)

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> bytes:
            return next(self.chunks)

        def close(self) -> None:
            raise StopError

        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> bytes:
            return next(self.chunks)

        async def aclose(self) -> None:
            raise StopError

    class Sync(Source):
        __aiter__ = None  # type: ignore[assignment]  # no asynchronous one

    for source in (Source(), Sync()):
        with hooked() as dropped:
            async with aiter(chat(source)) as events:
                for _ in range(4):
                    await anext(events)
            await settle()
        assert [StopError] == [type(error) for error in dropped.errors]


async def test_a_raising_subscriber_does_not_change_what_the_others_see() -> None:
    """All on one Subject; each hears of its own failure alone."""
    subject: EventSubject[Any] = EventSubject()
    for k in range(1, COUNT + 1):
        others = [watch(Flux(subject)), watch(Flux(subject))]
        told: list[Exception] = []
        count = [0]

        def failing(_: Any, k: int = k, count: list[int] = count) -> None:
            count[0] += 1
            if count[0] == k:
                raise StopError

        Flux(subject).subscribe(failing, told.append)
        events = [event async for event in chat(DATA)]
        for event in events:
            subject.on_next(event)
        assert [events, events] == [other.items for other in others]
        assert ([StopError], k) == ([type(error) for error in told], count[0])
