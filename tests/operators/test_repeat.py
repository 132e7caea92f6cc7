"""repeat, repeat_when: a source again, after its end; first_with_signal and or_else; do_on_request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import reactivex

from semflux import Flux, Mono
from semflux.clock import VirtualClock
from semflux.errors import ConfigurationError, TotalTimeoutError
from semflux.operators.lift import NOTHING, Direct
from semflux.operators.run import UNBOUNDED
from semflux.operators.subject import EventSubject
from tests.flux.answers import FRAMES, TYPES, Chunks, chat, settle
from tests.operators.watching import END, Probe, error, item, raising, signals, watch

FAILURE = ValueError("mine")


def take_first(sources: list[Any]) -> Callable[[], Any]:
    return lambda: sources.pop(0)


# repeat


def test_repeat_counts_what_comes_after_the_first_time() -> None:
    """As Reactor's; RxPY's counts the first one too."""
    assert [item(1), item(2), END] == signals(Flux.just(1, 2).repeat(0))
    assert [item(1), item(2)] * 3 + [END] == signals(Flux.just(1, 2).repeat(2))
    with pytest.raises(ConfigurationError, match="repeat\\(-1\\)"):
        Flux.just(1).repeat(-1)


def test_repeat_goes_on_for_ever() -> None:
    """Until its subscriber leaves, from inside an item; five thousand times are not five thousand frames deep."""
    assert [item(1), item(2), item(1), END] == signals(Flux.just(1, 2).repeat().take(3))
    assert 5000 == len(watch(Flux.just(1).repeat(4999)).items)


def test_an_error_ends_a_repeat() -> None:
    probe = Probe(1, fails=FAILURE)
    assert [item(1), error(FAILURE)] == signals(Flux.from_(probe.source).repeat())
    assert 1 == probe.subscribed


def test_leaving_a_repeat_reaches_the_source_at_work() -> None:
    """The second one here."""
    sources = [Probe(1), Probe(2, ends=False)]
    left = list(sources)
    subscription = Flux.defer(lambda: left.pop(0).source).repeat(5).subscribe(None)
    assert [1, 0] == [probe.disposed for probe in sources]  # one that has ended is let go of
    subscription.dispose()
    assert [1, 1] == [probe.disposed for probe in sources]


async def test_a_repeat_is_no_faster_than_it_is_read() -> None:
    """A source that has all at once is subscribed to again when more is wanted."""
    probe = Probe(1, 2)
    async with aiter(Flux.from_(probe.source).repeat()) as items:
        assert [1, 2] * 32 == [await anext(items) for _ in range(64)]
        assert 32 == probe.subscribed
        assert 1 == await anext(items)
        assert 64 == probe.subscribed


async def test_an_empty_source_that_is_repeated_lets_the_loop_go_on() -> None:
    """So that it can be left."""
    waiting = asyncio.ensure_future(Flux.empty().repeat().collect_list())
    await settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert [] == await Flux.empty().repeat(3).collect_list()


async def test_a_repeat_can_be_ended_from_below_while_it_waits() -> None:
    """By a limit for the whole of it; and it goes on by itself if it is told to."""
    clock = VirtualClock()
    run: Any = aiter(Flux.from_(reactivex.of(1)).repeat().timeout(1.0, clock=clock))
    assert 1 == await anext(run)
    driver = run._run.driver
    assert await driver.released() is None
    clock.advance(2.0)
    assert [1] * 63 == [await anext(run) for _ in range(63)]
    with pytest.raises(TotalTimeoutError):
        while True:
            await anext(run)

    items: Any = aiter(Flux.from_(reactivex.of(1)).repeat(99))
    assert 1 == await anext(items)
    items._run.driver.start_task()
    assert 99 == len([each async for each in items])

    items = aiter(Flux.from_(reactivex.of(1)).repeat())
    assert 1 == await anext(items)
    items._run.abort("enough")
    assert 63 == len([each async for each in items])


def test_a_subscriber_may_leave_while_the_source_is_subscribed_to() -> None:
    """It is not subscribed to once more, even if it has completed at once."""
    kept: list[Any] = []
    left: list[int] = []

    class Leaving(Direct[Any]):
        def _subscribe_core(self, observer: Any, scheduler: Any = None) -> Any:
            left.append(1)
            observer.on_completed()
            kept[-1].dispose()
            return NOTHING

    for make in (lambda flux: flux.repeat(9), lambda flux: flux.repeat_when(lambda ends: ends)):
        subject = reactivex.Subject[Any]()
        sources: list[Any] = [subject, Leaving()]
        kept.append(make(Flux.defer(take_first(sources))).subscribe(None))
        subject.on_completed()
    assert [1, 1] == left


async def test_a_chat_stream_is_repeated_as_a_whole() -> None:
    """Each time with an id of its own; a break closes the one at work."""
    made: list[Chunks] = []

    def make() -> Any:
        made.append(Chunks(*FRAMES))
        return chat(made[-1].agen())

    events = [event async for event in Flux.defer(make).repeat(1)]
    assert TYPES * 2 == [str(event.type) for event in events]
    assert 2 == len({event.response_id for event in events})
    async with aiter(Flux.defer(make).repeat()) as iterator:
        assert TYPES + TYPES[:4] == [str((await anext(iterator)).type) for _ in range(len(TYPES) + 4)]
    assert [1] * 4 == [chunks.closed for chunks in made]


async def test_a_repeat_after_another_source_has_a_run_of_its_own() -> None:
    """Of a merge, whose first source drives the run."""
    both = Flux.merge(chat(Chunks(*FRAMES).agen()), Flux.just(1).repeat(1))
    assert 2 + len(TYPES) == len([each async for each in both])


# repeat_when


def test_each_item_of_the_companion_is_one_more_time() -> None:
    """Its function gets how many items the source had; without an item the source is not subscribed to again."""
    counts: list[int] = []
    source = Flux.just(1, 2)
    control = reactivex.Subject[Any]()

    def companion(ends: Flux[int]) -> Any:
        ends.subscribe(counts.append)
        return control

    watcher = watch(source.repeat_when(companion))
    assert ([2], 2) == (counts, len(watcher.items))
    control.on_next("again")
    assert ([2, 2], 4) == (counts, len(watcher.items))
    control.on_completed()
    assert END == watcher.signals[-1]
    assert [] == control.observers


def test_the_end_of_the_companion_is_the_end() -> None:
    """As in Reactor ten items, and the end with the tenth, are ten times in all."""
    assert 10 == len(watch(Flux.just(1).repeat_when(lambda _: Flux.range(1, 10))).items)
    assert [item(1)] * 3 + [END] == signals(Flux.just(1).repeat_when(lambda ends: ends.take(3)))
    assert [END] == signals(Flux.just(1).repeat_when(lambda _: Flux.empty()))
    control, source = reactivex.Subject[Any](), Probe(1, ends=False)
    watcher = watch(Flux.from_(source.source).repeat_when(lambda _: control))
    control.on_completed()
    assert ([item(1), END], 1) == (watcher.signals, source.disposed)


def test_a_companion_that_is_over_lets_nothing_begin() -> None:
    """Nor does it later, when somebody still drives what has been left."""
    over, probe = EventSubject[Any](), Probe(1)
    over.on_completed()
    assert [END] == signals(Flux.from_(probe.source).repeat_when(lambda _: over))
    assert 0 == probe.subscribed


async def test_a_repeat_that_was_left_is_not_driven_on() -> None:
    probe = Probe(1)
    items: Any = aiter(Flux.from_(probe.source).repeat())
    assert 1 == await anext(items)
    driver = items._run.driver
    items.dispose()
    assert (True, 64) == (driver.pump(), probe.subscribed)


def test_an_item_that_comes_early_waits_for_the_end_of_the_source() -> None:
    control, source = reactivex.Subject[Any](), reactivex.Subject[Any]()
    watcher = watch(Flux.from_(source).repeat_when(lambda _: control))
    control.on_next(1)
    source.on_next(1)
    assert 1 == len(source.observers)
    source.on_completed()
    assert [item(1)] == watcher.signals


def test_an_error_of_either_is_the_error() -> None:
    """The other one is cancelled."""
    control, source = reactivex.Subject[Any](), Probe(1, ends=False)
    watcher = watch(Flux.from_(source.source).repeat_when(lambda _: control))
    control.on_error(FAILURE)
    assert ([item(1), error(FAILURE)], 1) == (watcher.signals, source.disposed)
    control = reactivex.Subject[Any]()
    assert [error(FAILURE)] == signals(Flux.error(FAILURE).repeat_when(lambda _: control))
    assert [] == control.observers
    source = Probe(1)
    assert [error(FAILURE)] == signals(Flux.from_(source.source).repeat_when(raising(FAILURE)))
    assert 0 == source.subscribed


def test_leaving_cancels_source_and_companion() -> None:
    control, source = reactivex.Subject[Any](), Probe(1, ends=False)
    Flux.from_(source.source).repeat_when(lambda _: control).subscribe(None).dispose()
    assert (1, []) == (source.disposed, control.observers)


async def test_a_companion_that_waits_repeats_a_chat_stream_later() -> None:
    """The consumer that pulls waits meanwhile."""
    clock = VirtualClock()

    def make() -> Any:
        return chat(Chunks(*FRAMES).agen())

    def companion(ends: Flux[int]) -> Any:
        return ends.flat_map(lambda _: Flux.interval(5.0, clock=clock).take(1)).take(2)

    reading = asyncio.ensure_future(Flux.defer(make).repeat_when(companion).collect_list())
    for _ in range(2):
        for _ in range(10):
            await settle()
        assert not reading.done()
        clock.advance(5.0)
    assert TYPES * 2 == [str(event.type) for event in await reading]


# first_with_signal, or_else


def test_the_first_source_that_does_anything_stays() -> None:
    """An item, the end, or an error; the others are cancelled."""
    for end, expected in (
        (lambda s: s.on_next(1), [item(1)]),
        (lambda s: s.on_completed(), [END]),
        (lambda s: s.on_error(FAILURE), [error(FAILURE)]),
    ):
        one, two = reactivex.Subject[Any](), reactivex.Subject[Any]()
        watcher = watch(Flux.first_with_signal(one, two))
        end(two)
        assert (expected, []) == (watcher.signals, one.observers)
        one.on_next(9)
        assert expected == watcher.signals


def test_a_source_that_wins_while_it_is_subscribed_to_leaves_the_rest_alone() -> None:
    late = Probe(2)
    assert [item(1), END] == signals(Flux.just(1).or_else(Flux.from_(late.source).merge_with(Flux.never())))
    assert [END] == signals(Flux.first_with_signal())
    assert 0 == late.disposed


async def test_the_faster_of_two_chat_streams_is_read() -> None:
    """The other one is closed."""
    slow, fast = Chunks(endless=True), Chunks(*FRAMES)
    stream = (
        chat(slow.agen())
        .filter(lambda event: event.is_content)
        .or_else(chat(fast.agen()).filter(lambda event: event.is_content))
    )
    assert {"TEXT_DELTA"} == {str(event.type) async for event in stream if event.text}
    await settle()
    assert 1 == fast.closed
    assert "fast" == await Mono.never().or_else(Mono.just("fast"))


# do_on_request


def test_a_callback_subscriber_asks_for_all_once() -> None:
    """Before the source is subscribed to; several from the bottom up."""
    log: list[Any] = []
    probe = Probe(1, 2)
    flux = Flux.from_(probe.source).do_first(lambda: log.append("source")).do_on_request(log.append)
    assert 2 == len(watch(flux.do_on_request(lambda more: log.append(-more))).items)
    assert [-UNBOUNDED, UNBOUNDED, "source"] == log


async def test_a_consumer_that_pulls_asks_for_what_it_has_taken() -> None:
    """64 at first."""
    asked: list[int] = []
    async with aiter(Flux.range(0, 200).do_on_request(asked.append)) as items:
        for _ in range(64):
            await anext(items)
        assert [64] == asked
        await anext(items)
        assert [64, 64] == asked
    assert 200 == len([each async for each in Flux.range(0, 200)])
    asked.clear()
    assert 200 == await Flux.range(0, 200).do_on_request(asked.append).count()
    assert [UNBOUNDED] == asked


async def test_operators_that_ask_by_themselves_are_seen_above_them() -> None:
    """`limit_rate` asks for its batches."""
    asked: list[int] = []
    flux = Flux.range(0, 20).do_on_request(asked.append).limit_rate(8)
    assert 20 == len([each async for each in flux])
    assert 8 == asked[0]
    assert max(asked) <= 8


async def test_who_wants_all_asks_once() -> None:
    """However it reads. Where nothing is wanted now, nothing is asked."""
    asked: list[Any] = []
    assert 199 == await asyncio.to_thread(Flux.range(0, 200).do_on_request(asked.append).block_last)
    assert [UNBOUNDED] == asked

    async def slowly() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    assert 2 == await asyncio.to_thread(
        Flux.from_async_iterable(slowly()).do_on_request(asked.append).block_last
    )
    assert [UNBOUNDED] * 2 == asked
    asked.clear()
    both = Flux.range(0, 64).concat_with(Flux.range(0, 2).do_on_request(asked.append))
    assert 66 == len([each async for each in both])
    assert [64] == asked


def test_a_request_that_is_refused_is_the_error() -> None:
    """The source is not subscribed to."""
    probe = Probe(1)
    assert [error(FAILURE)] == signals(Flux.from_(probe.source).do_on_request(raising(FAILURE)))
    assert 0 == probe.subscribed


async def test_a_later_request_that_is_refused_cancels_the_source() -> None:
    asked: list[int] = []

    def refuse(more: int) -> None:
        asked.append(more)
        if len(asked) > 1:
            raise FAILURE

    items = aiter(Flux.range(0, 200).do_on_request(refuse))
    with pytest.raises(ValueError, match="mine"):
        while True:
            await anext(items)
    assert [64, 64] == asked


async def test_a_source_that_is_over_is_not_asked_any_more() -> None:
    """The next one of a concat is."""
    asked: list[str] = []

    def source(name: str) -> Flux[int]:
        return Flux.range(0, 70).do_on_request(lambda more: asked.append(f"{name}{more}"))

    assert 140 == len([each async for each in source("a").concat_with(source("b"))])
    assert ["a64", "a64", "b58", "b6", "b64"] == asked
