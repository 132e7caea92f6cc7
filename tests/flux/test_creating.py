"""Flux.create, generate and from_async_iterable."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from reactivex.scheduler import CurrentThreadScheduler

from semflux import Flux
from semflux.errors import ConfigurationError
from semflux.flux.creating import FluxSink
from semflux.operators.handle import HandleSink
from semflux.operators.run import Run
from tests.operators.watching import END, Watcher, error, hooked, item, raising, signals, watch

FAILURE = ValueError("mine")


async def listed(function: Any) -> list[Any]:
    return [each async for each in Flux.create(function)]


# create


def test_a_function_tells_its_sink_items_and_an_end() -> None:
    """Anew for each subscription; None is an item."""

    def tell(sink: FluxSink[Any]) -> None:
        sink.next(1)
        sink.next(None)
        sink.complete()

    flux = Flux.create(tell)
    assert [item(1), item(None), END] == signals(flux) == signals(flux)


def test_what_the_function_raises_is_the_error() -> None:
    """As what it tells as one."""
    assert [error(FAILURE)] == signals(Flux.create(raising(FAILURE)))
    assert [error(FAILURE)] == signals(Flux.create(lambda sink: sink.error(FAILURE)))


def test_a_loop_sees_that_nobody_listens_any_more() -> None:
    """At once: `take` cancels from inside `next`."""
    told: list[int] = []

    def endless(sink: FluxSink[int]) -> None:
        while not sink.is_cancelled:
            told.append(len(told))
            sink.next(len(told))

    assert [item(1), item(2), END] == signals(Flux.create(endless).take(2))
    assert 2 == len(told)


def test_late_signals_go_to_the_hooks() -> None:
    """After an end; after a cancel they are nobody's fault."""
    kept: list[FluxSink[Any]] = []

    def ends(sink: FluxSink[Any]) -> None:
        kept.append(sink)
        sink.complete()

    with hooked() as dropped:
        assert [END] == signals(Flux.create(ends))
        kept[0].next(1)
        kept[0].error(FAILURE)
        kept[0].complete()
    assert ([1], [FAILURE]) == (dropped.items, dropped.errors)
    with hooked() as dropped:
        Flux.create(kept.append).subscribe(None).dispose()
        kept[1].next(1)
        kept[1].error(FAILURE)
    assert ([], []) == (dropped.items, dropped.errors)


def test_callbacks_of_a_sink_come_at_their_time() -> None:
    """on_cancel at a cancel, on_dispose after any end; registered late, at once."""
    log: list[str] = []

    def watched(sink: FluxSink[Any]) -> None:
        kept.append(sink)
        sink.on_cancel(lambda: log.append("cancel"))
        sink.on_dispose(lambda: log.append("dispose"))

    kept: list[FluxSink[Any]] = []
    subscription = Flux.create(watched).subscribe(None)
    subscription.dispose()
    subscription.dispose()
    assert ["cancel", "dispose"] == log
    kept[0].on_cancel(lambda: log.append("late cancel"))
    kept[0].on_dispose(lambda: log.append("late dispose"))
    assert ["late cancel", "late dispose"] == log[2:]

    log.clear()
    Flux.create(watched).subscribe(None, None, lambda: log.append("end"))
    kept[1].complete()
    kept[1].on_cancel(lambda: log.append("never"))
    assert ["end", "dispose"] == log


def test_a_callback_of_a_sink_that_raises_goes_to_the_hook() -> None:
    """The others are called."""
    log: list[str] = []

    def watched(sink: FluxSink[Any]) -> None:
        sink.on_dispose(raising(FAILURE))
        sink.on_dispose(lambda: log.append("dispose"))
        sink.complete()

    with hooked() as dropped:
        assert [END] == signals(Flux.create(watched))
    assert ([FAILURE], ["dispose"]) == (dropped.errors, log)


def test_a_subscriber_that_takes_all_asks_for_all_once() -> None:
    """What the callback raises is the error."""
    asked: list[int] = []
    watch(Flux.create(lambda sink: sink.on_request(asked.append)))
    assert 1 == len(asked)
    assert asked[0] > 10**9
    assert [error(FAILURE)] == signals(Flux.create(lambda sink: sink.on_request(raising(FAILURE))))


async def test_a_sink_is_asked_for_what_a_consumer_that_pulls_wants() -> None:
    """64 at first, and as many again as were taken."""
    asked: list[int] = []
    kept: list[FluxSink[int]] = []

    def watched(sink: FluxSink[int]) -> None:
        kept.append(sink)
        sink.on_request(asked.append)

    async with aiter(Flux.create(watched)) as items:
        waiting = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0)
        assert ([64], 64) == (asked, kept[0].requested)
        threading.Thread(target=kept[0].next, args=(1,)).start()
        assert 1 == await waiting
        waiting = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0)
        assert [64, 1] == asked
        kept[0].complete()
        with pytest.raises(StopAsyncIteration):
            await waiting


async def test_a_sink_can_be_ended_from_below() -> None:
    """As the source of any run: it fails, ends, or is told to give everything."""
    kept: list[FluxSink[int]] = []
    asked: list[int] = []

    def watched(sink: FluxSink[int]) -> None:
        kept.append(sink)
        sink.on_request(asked.append)

    for number, end in enumerate([lambda s: s.fail(FAILURE), lambda s: s.abort("enough")]):
        waiting = asyncio.ensure_future(listed(watched))
        await asyncio.sleep(0)
        kept[number].start_task()
        kept[number].start_task()
        kept[number].next(1)
        end(kept[number])
        if number:
            assert [1] == await waiting
        else:
            with pytest.raises(ValueError, match="mine"):
                await waiting
    assert max(asked) > 10**9


def test_a_sink_that_is_over_before_its_function_is_called_is_left_alone() -> None:
    """A dispose from the trampoline that comes first."""
    told: list[Any] = []
    CurrentThreadScheduler.singleton().schedule(lambda *_: Flux.create(told.append).subscribe(None).dispose())
    assert [] == told


async def test_a_sink_told_from_threads_tells_one_signal_at_a_time() -> None:
    """All items come; none inside another."""
    inside: list[int] = []
    overlaps: list[int] = []

    def look(_: int) -> None:
        inside.append(1)
        overlaps.extend([1] * (len(inside) > 1))
        time.sleep(0)
        inside.pop()

    def tell(sink: FluxSink[int]) -> None:
        for number in range(200):
            sink.next(number)

    def run(sink: FluxSink[int]) -> None:
        threads = [threading.Thread(target=tell, args=(sink,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sink.complete()

    found: list[int] = []
    Flux.create(run).do_on_next(look).subscribe(found.append)
    assert (800, []) == (len(found), overlaps)


# generate


def ones(sink: HandleSink[int]) -> None:
    sink.next(1)


@pytest.mark.parametrize("shared", [False, True])
async def test_what_another_thread_tells_while_nobody_looks_is_not_slept_past(shared: bool) -> None:
    """Between the look of who pulls and its wait; of a sink and of a stream that several share."""
    kept: list[FluxSink[str]] = []

    def keep(sink: FluxSink[str]) -> None:
        kept.append(sink)
        sink.on_request(lambda more: None)

    stream = Flux.create(keep)
    run = Run(demand=9, pull=True)
    edge = Watcher()
    subscription = (stream.share() if shared else stream).observable.subscribe(edge, scheduler=run.scheduler)
    for _ in range(3):
        await asyncio.sleep(0)
    driver: Any = run.driver
    assert not driver.pump()
    kept[0].next("now")
    waiting = driver.fill()
    assert waiting is None or waiting.done()
    driver.pump()
    assert not driver.pump()
    waiting = driver.fill()
    assert not waiting.done()
    kept[0].complete()
    async with asyncio.timeout(5):
        await waiting
    assert [item("now"), END] == edge.signals
    subscription.dispose()


def test_generate_gives_one_item_a_call() -> None:
    """With a state of its own for each subscription, and a clean-up."""
    cleaned: list[Any] = []

    def step(state: int, sink: Any) -> int:
        sink.next(state * 10)
        if state == 2:
            sink.complete()
        return state + 1

    flux = Flux.generate(step, lambda: 0, cleaned.append)
    assert [item(0), item(10), item(20), END] == signals(flux) == signals(flux)
    assert [3, 3] == cleaned
    assert [item(1), item(1), END] == signals(Flux.generate(ones).take(2))


@pytest.mark.parametrize(
    "function", [raising(FAILURE), lambda sink: sink.error(FAILURE)], ids=["raises", "tells"]
)
def test_generate_fails_with_what_its_function_raises_or_tells(function: Any) -> None:
    assert [error(FAILURE)] == signals(Flux.generate(function))
    assert [error(FAILURE)] == signals(Flux.generate(lambda state, sink: state, raising(FAILURE)))


@pytest.mark.parametrize("function", [lambda sink: None, lambda sink: (sink.next(1), sink.next(2))])
def test_generate_refuses_a_call_without_an_answer_or_with_two(function: Any) -> None:
    assert isinstance(watch(Flux.generate(function)).error, ConfigurationError)


async def test_generate_is_called_as_far_as_its_consumer_wants() -> None:
    """64 ahead at most; an endless one does not hang a consumer."""
    made: list[int] = []

    def endless(sink: Any) -> None:
        made.append(1)
        sink.next(len(made))

    taken: list[int] = []
    async for number in Flux.generate(endless):
        taken.append(number)
        if number == 100:
            break
    assert list(range(1, 101)) == taken
    assert len(made) <= 100 + 64


async def test_items_that_an_operator_leaves_out_are_asked_for_again() -> None:
    """Demand is the consumer's."""

    def count(state: int, sink: Any) -> int:
        sink.next(state)
        return state + 1

    flux = Flux.generate(count, lambda: 0).filter(lambda x: x % 100 == 0).take(3)
    assert [0, 100, 200] == [number async for number in flux]


# from_async_iterable


async def numbers(log: list[Any], count: int = 3) -> AsyncIterator[int]:
    try:
        for number in range(count):
            log.append(number)
            await asyncio.sleep(0)
            yield number
    finally:
        log.append("closed")


async def test_an_async_iterable_is_gone_over_and_closed() -> None:
    """By a consumer that pulls, and by callbacks."""
    log: list[Any] = []
    assert [0, 1, 2] == [number async for number in Flux.from_async_iterable(numbers(log))]
    assert "closed" == log[-1]
    ended = asyncio.Event()
    told: list[int] = []
    Flux.from_async_iterable(numbers([])).subscribe(told.append, None, ended.set)
    await ended.wait()
    assert [0, 1, 2] == told


async def test_an_async_iterable_is_read_no_further_than_wanted() -> None:
    """A consumer that sleeps stops it; leaving closes it."""
    log: list[Any] = []
    async with aiter(Flux.from_async_iterable(numbers(log, 1000))) as items:
        assert 0 == await anext(items)
        for _ in range(300):
            await asyncio.sleep(0)
        assert len(log) <= 66
    for _ in range(5):
        await asyncio.sleep(0)
    assert "closed" == log[-1]


async def test_what_an_async_iterable_raises_is_the_error() -> None:
    async def failing() -> AsyncIterator[int]:
        yield 1
        raise FAILURE

    with pytest.raises(ValueError, match="mine"):
        await Flux.from_async_iterable(failing()).collect_list()


async def test_an_iterator_without_aclose_will_do() -> None:
    class Once:
        left = 2

        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> int:
            self.left -= 1
            if self.left < 0:
                raise StopAsyncIteration
            return self.left

    assert [1, 0] == await Flux.from_async_iterable(Once()).collect_list()


def test_an_async_iterable_needs_a_loop() -> None:
    """`block` has one."""
    assert isinstance(watch(Flux.from_async_iterable(numbers([]))).error, ConfigurationError)
    assert 2 == Flux.from_async_iterable(numbers([])).block()
