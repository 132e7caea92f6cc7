"""Flux.push, range, interval, never, from_awaitable, defer, and what a subscriber sees of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from semflux import Flux, Mono
from semflux.clock import VirtualClock
from semflux.errors import BufferOverflowError, ConfigurationError, OperatorError, TotalTimeoutError
from semflux.flux.creating import FluxSink
from tests.flux.answers import FRAMES, TYPES, Chunks, chat, settle
from tests.operators.watching import END, error, hooked, item, raising, signals, watch

FAILURE = ValueError("mine")


# push


def test_push_tells_what_one_producer_says() -> None:
    """Anew for each subscription; what it raises is the error; a signal inside another one comes after it."""

    def tell(sink: FluxSink[Any]) -> None:
        sink.next(1)
        sink.next(None)
        sink.complete()

    flux = Flux.push(tell)
    assert [item(1), item(None), END] == signals(flux) == signals(flux)
    assert [error(FAILURE)] == signals(Flux.push(raising(FAILURE)))

    kept: list[FluxSink[int]] = []
    told: list[str] = []

    def look(value: int) -> None:
        told.append(f"begin {value}")
        if value < 3:
            kept[0].next(value + 1)
        told.append(f"end {value}")

    Flux.push(kept.append).subscribe(look)
    kept[0].next(1)
    assert ["begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"] == told


def test_a_producer_that_pushes_sees_that_nobody_listens_any_more() -> None:
    """And is told, as that of `create` is."""
    log: list[Any] = []

    def endless(sink: FluxSink[int]) -> None:
        sink.on_cancel(lambda: log.append("cancel"))
        while not sink.is_cancelled:
            log.append(len(log))
            sink.next(len(log))

    assert [item(1), item(2), END] == signals(Flux.push(endless).take(2))
    assert [0, 1, "cancel"] == log


# range, never


def test_range_counts_from_its_start() -> None:
    """As many as are asked for."""
    assert [item(3), item(4), item(5), END] == signals(Flux.range(3, 3))
    assert [END] == signals(Flux.range(3, 0))
    assert [item(0), END] == signals(Flux.range(0, 10**12).take(1))
    assert 10_000 == len(watch(Flux.range(0, 10_000)).items)
    with pytest.raises(ConfigurationError, match="how many"):
        Flux.range(1, -1)


async def test_range_goes_at_the_pace_of_a_consumer_that_pulls() -> None:
    """64 ahead at most."""
    given: list[int] = []
    async with aiter(Flux.range(0, 1000).do_on_next(given.append)) as numbers:
        assert [0, 1] == [await anext(numbers) for _ in range(2)]
        assert 64 == len(given)
        assert list(range(2, 100)) == [await anext(numbers) for _ in range(98)]
        assert 128 == len(given)
    assert 1000 == len([each async for each in Flux.range(0, 1000)])


def test_never_gives_nothing() -> None:
    watcher = watch(Flux.never())
    assert [] == watcher.signals


# interval


def test_interval_counts_in_time() -> None:
    """The first number after as long; a dispose stops the clock, also from inside a number."""
    clock, told = VirtualClock(), list[int]()
    subscription = Flux.interval(2.0, clock=clock).subscribe(told.append)
    clock.advance(1.9)
    assert [] == told
    clock.advance(4.2)
    assert [0, 1, 2] == told
    subscription.dispose()
    assert 0 == clock.pending
    watcher = watch(Flux.interval(2.0, clock=clock).take(1))
    clock.advance(10.0)
    assert ([item(0), END], 0) == (watcher.signals, clock.pending)


def test_a_late_number_makes_no_other_one_late() -> None:
    """Each is due at its own time from the start."""
    clock, times = VirtualClock(), list[float]()

    def look(number: int) -> None:
        times.append(clock.monotonic())
        if not number:
            clock._now += 0.5  # the subscriber takes that long

    Flux.interval(1.0, clock=clock).take(3).subscribe(look)
    clock.advance(5.0)
    assert [1.0, 2.0, 3.0] == times


def test_a_number_of_a_timer_that_cannot_be_stopped_any_more_is_nobodys() -> None:
    """It was on its way when another thread disposed."""

    class Late(VirtualClock):
        def call_later(self, delay: float, fn: Any, *args: Any) -> Any:
            super().call_later(delay, fn, *args)
            return Uncancelled()

    class Uncancelled:
        def cancel(self) -> None:
            """Too late."""

    clock, told = Late(), list[int]()
    Flux.interval(1.0, clock=clock).subscribe(told.append).dispose()
    clock.advance(5.0)
    assert [] == told


async def test_a_number_that_nobody_has_asked_for_is_an_overflow() -> None:
    """Unless it may be dropped."""
    clock = VirtualClock()
    numbers = aiter(Flux.interval(1.0, clock=clock))
    first = asyncio.ensure_future(anext(numbers))
    await settle()
    clock.advance(64.0)
    assert 0 == await first
    assert list(range(1, 40)) == [await anext(numbers) for _ in range(39)]
    clock.advance(1.0)
    assert list(range(40, 64)) == [await anext(numbers) for _ in range(24)]
    with pytest.raises(BufferOverflowError, match="number 64"):
        await anext(numbers)

    async with aiter(Flux.interval(1.0, clock=clock).on_backpressure_drop()) as dropping:
        first = asyncio.ensure_future(anext(dropping))
        await settle()
        clock.advance(1000.0)
        assert 0 == await first
    assert 0 == clock.pending


async def test_interval_goes_by_the_loop_unless_it_is_told_a_clock() -> None:
    """Without either it says so."""
    assert [0, 1] == await Flux.interval(0.001).take(2).collect_list()

    def outside() -> Any:
        return watch(Flux.interval(1.0)).error

    assert isinstance(await asyncio.to_thread(outside), ConfigurationError)
    with pytest.raises(ConfigurationError, match="above zero"):
        Flux.interval(0)


# from_awaitable


async def test_an_awaitable_gives_one_item() -> None:
    """Made for each subscription; None is an item."""
    calls: list[int] = []

    async def answer() -> int:
        calls.append(1)
        await asyncio.sleep(0)
        return len(calls)

    async def none() -> None:
        return None

    flux = Flux.from_awaitable(answer)
    assert [[1], [2]] == [await flux.collect_list(), [each async for each in flux]]
    watcher = watch(flux)
    await settle()
    assert [item(3), END] == watcher.signals
    assert [None] == await Flux.from_awaitable(none).collect_list()
    assert 4 == await flux.next()


async def test_what_an_awaitable_raises_is_the_error() -> None:
    """As what the function raises, or gives that cannot be awaited."""

    async def fails() -> int:
        raise FAILURE

    async def cancelled() -> int:
        raise asyncio.CancelledError

    wrong: Any = lambda: 1  # noqa: E731  # no coroutine function
    for make, expected in (
        (fails, ValueError),
        (raising(FAILURE), ValueError),
        (cancelled, OperatorError),
        (wrong, ConfigurationError),
    ):
        with pytest.raises(expected):
            await Flux.from_awaitable(make).collect_list()
    assert isinstance(
        await asyncio.to_thread(lambda: watch(Flux.from_awaitable(fails)).error), ConfigurationError
    )


async def test_leaving_cancels_what_is_awaited() -> None:
    """An iterator's `aclose` waits until it is over, as does a cancelled task."""
    log: list[str] = []

    async def slow() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            log.append("over")
        return 1

    async with aiter(Flux.from_awaitable(slow)) as items:
        reading = asyncio.ensure_future(anext(items))
        await settle()
        items.dispose()
        with pytest.raises(StopAsyncIteration):
            await reading
    assert ["over"] == log
    task = asyncio.ensure_future(Mono.from_awaitable(slow).map(str).flux().collect_list())
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ["over", "over"] == log
    subscription = Flux.from_awaitable(slow).subscribe(None)
    await settle()
    subscription.dispose()
    await settle()
    assert 3 == len(log)


async def test_a_limit_ends_what_is_awaited() -> None:
    clock = VirtualClock()
    watcher = watch(Flux.from_awaitable(asyncio.Event().wait).timeout(1.0, clock=clock))
    await settle()
    clock.advance(1.0)
    await settle()
    assert isinstance(watcher.error, TotalTimeoutError)


async def test_what_is_awaited_can_be_aborted_from_below() -> None:
    """It ends without an item."""
    items: Any = aiter(Flux.from_awaitable(asyncio.Event().wait))
    reading = asyncio.ensure_future(anext(items))
    await settle()
    items._run.abort("enough")
    with pytest.raises(StopAsyncIteration):
        await reading


async def test_several_awaitables_run_at_the_same_time() -> None:
    """In one subscription, whoever reads it."""
    gate = asyncio.Event()

    async def opens() -> int:
        gate.set()
        return 1

    async def waits() -> int:
        await gate.wait()
        return 2

    flux = Flux.merge(Flux.from_awaitable(waits), Flux.from_awaitable(opens))
    assert {1, 2} == {each async for each in flux}
    assert (2, 1) == await Mono.zip(Mono.from_awaitable(waits), Mono.from_awaitable(opens))
    assert [2, 1] == [
        each async for each in Flux.from_awaitable(waits).concat_with(Flux.from_awaitable(opens))
    ]


# defer, transform_deferred


def test_a_deferred_stream_is_made_for_each_subscriber() -> None:
    """What making it raises is the error."""
    made: list[int] = []

    def make() -> Flux[int]:
        made.append(len(made))
        return Flux.just(*made)

    flux = Flux.defer(make)
    assert [] == made
    assert [item(0), END] == signals(flux)
    assert [item(0), item(1), END] == signals(flux)
    assert [error(FAILURE)] == signals(Flux.defer(raising(FAILURE)))


async def test_a_deferred_chat_stream_is_pulled() -> None:
    """It is read no further than the consumer wants, and left at once."""
    chunks = Chunks(*FRAMES)
    async with aiter(Flux.defer(lambda: chat(chunks.agen()))) as events:
        assert TYPES[:4] == [str((await anext(events)).type) for _ in range(4)]
        assert chunks.asked < len(FRAMES)
    assert 1 == chunks.closed


def test_a_deferred_chain_has_a_state_of_its_own_for_each_subscriber() -> None:
    """Where `transform` has one for all."""

    def numbered(flux: Flux[str]) -> Flux[str]:
        count = [0]

        def number(text: str) -> str:
            count[0] += 1
            return f"{count[0]}{text}"

        return flux.map(number)

    words = Flux.just("a", "b")
    deferred = words.transform_deferred(numbered)
    assert [item("1a"), item("2b"), END] == signals(deferred) == signals(deferred)
    at_once = words.transform(numbered)
    assert signals(at_once) != signals(at_once)
    assert [error(FAILURE)] == signals(words.transform_deferred(raising(FAILURE)))


def test_nothing_of_a_source_that_was_left_is_dropped() -> None:
    """It is nobody's fault that it came late."""
    with hooked() as dropped:
        kept: list[FluxSink[int]] = []
        Flux.push(kept.append).subscribe(None).dispose()
        kept[0].next(1)
    assert [] == dropped.items


def test_numbers_in_time_can_be_shared() -> None:
    """Subscribers that take all are not too slow, however many numbers there are."""
    clock = VirtualClock()
    shared = Flux.interval(1.0, clock=clock).share()
    watchers = [watch(shared.take(3000)) for _ in range(2)]
    clock.advance(3000.0)
    assert [3000, 3000] == [len(watcher.items) for watcher in watchers]
    assert 0 == clock.pending
