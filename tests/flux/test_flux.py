"""Flux, Mono and ChatStream: what users hold, and the border to RxPY."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import reactivex
from reactivex import Observable, abc

from semflux.errors import (
    BlockingInLoopError,
    EmptySequenceError,
    StreamAbortedError,
    TooManyItemsError,
    TruncatedStreamError,
)
from semflux.events import Abort, ChatEventGroup, ChatEventType, ResponseEnd, TextDelta
from semflux.flux import ChatStream, Flux, Mono, SignalType
from semflux.operators import EventSubject, pipeline
from tests.flux.answers import DATA, TYPES, chat
from tests.notation import draft
from tests.operators.watching import (
    END,
    Probe,
    Watcher,
    error,
    hooked,
    item,
    plain,
    raising,
    rx,
    signals,
    watch,
)

T, G = ChatEventType, ChatEventGroup
FAILURE = ValueError("mine")


def types(source: Any) -> list[str]:
    return [event.type for event in watch(source).items]


def test_factories() -> None:
    """Items, an iterable, nothing, an error."""
    assert [item(1), item(2), END] == signals(Flux.just(1, 2))
    assert (
        [item(1), item(2), END] == signals(Flux.from_iterable([1, 2])) == signals(Flux.from_(plain.of(1, 2)))
    )
    assert [END] == signals(Flux.empty()) == signals(Flux.just())
    assert [error(FAILURE)] == signals(Flux.error(FAILURE))


def test_from_takes_a_flux_as_it_is_and_a_mono_for_its_source() -> None:
    """So what is made of them can be piped."""
    flux = Flux.just(1)
    assert Flux.from_(flux) is flux
    of_mono = Flux.from_(flux.next())
    assert [item(2), END] == signals(of_mono.pipe(rx.map(lambda x: x + 1)))
    assert [item(1), END] == signals(of_mono.to_observable())


def test_fluent_operators_give_what_the_plain_ones_give() -> None:
    """The same links; each method is one line."""
    told: list[Any] = []
    flux = (
        Flux.from_iterable(range(10))
        .filter(lambda x: x % 2)
        .map(lambda x: x * 10)
        .take_while(lambda x: x < 90)
        .take_until(lambda x: x == 50)
        .take(5)
        .do_on_next(told.append)
        .do_on_complete(lambda: told.append("complete"))
        .do_on_error(told.append)
        .do_on_cancel(lambda: told.append("cancel"))
        .do_finally(told.append)
    )
    assert [item(10), item(30), item(50), END] == signals(flux)
    assert [10, 30, 50, "complete", SignalType.ON_COMPLETE] == told
    assert type(flux) is Flux
    assert "<Flux>" == repr(flux)


def test_to_one_value() -> None:
    """`next`, `single`, `collect_list` are Monos."""
    flux = Flux.just(1, 2)
    assert [item(1), END] == signals(flux.next())
    assert [item([1, 2]), END] == signals(flux.collect_list())
    assert isinstance(watch(flux.single()).error, TooManyItemsError)
    assert isinstance(watch(Flux.empty().single()).error, EmptySequenceError)
    assert [END] == signals(Flux.empty().next())
    assert all(type(mono) is Mono for mono in (flux.next(), flux.single(), flux.collect_list()))


def test_operators_of_rxpy_work_through_pipe() -> None:
    """From left to right; the result is a Flux."""
    flux = Flux.just(1, 2, 3).pipe(rx.map(lambda x: x + 1), rx.filter(lambda x: x != 3), rx.to_list())
    assert [item([2, 4]), END] == signals(flux)
    assert type(flux) is Flux
    assert flux.pipe() is flux


def test_a_flux_works_wherever_rxpy_takes_an_observable() -> None:
    """flat_map, merge, concat, zip, switch, catch: as a source and as an inner one."""
    one, two = Flux.just(1), Flux.just(2)
    mono = Flux.just(3).next()
    assert isinstance(one, Observable)
    assert isinstance(mono, Observable)
    sources: list[tuple[Any, list[Any]]] = [
        (plain.of(0).pipe(rx.flat_map(lambda _: two)), [2]),
        (plain.of(0).pipe(rx.flat_map(lambda _: mono)), [3]),
        (plain.merge(one, two, mono), [1, 2, 3]),
        (plain.concat(one, two), [1, 2]),
        (plain.zip(one, mono), [(1, 3)]),
        (plain.of(0).pipe(rx.switch_map(lambda _: one)), [1]),
        (plain.throw(FAILURE).pipe(rx.catch(two)), [2]),
        (one.pipe(rx.merge(two), rx.concat(mono)), [1, 2, 3]),
        (Flux.just(one, two).pipe(rx.merge_all()), [1, 2]),
        (plain.defer(lambda _: one), [1]),
    ]
    for source, expected in sources:
        assert [*map(item, expected), END] == signals(source)


def test_a_foreign_observable_becomes_a_plain_one() -> None:
    """Something that only keeps to the interface."""

    class Foreign(abc.ObservableBase[int]):
        def subscribe(
            self,
            on_next: Any = None,
            on_error: Any = None,
            on_completed: Any = None,
            *,
            scheduler: Any = None,
        ) -> Any:
            return plain.of(7).subscribe(on_next, on_error, on_completed, scheduler=scheduler)

    for wrapped in (Flux(Foreign()), Mono(Foreign())):
        assert [item(7), END] == signals(wrapped)
        assert [item(8), END] == signals(wrapped.to_observable().pipe(rx.map(lambda x: x + 1)))
    assert [item(8), END] == signals(Flux(Foreign()).pipe(rx.map(lambda x: x + 1)))


def test_subscribe_takes_functions_or_an_observer_or_nothing() -> None:
    """As RxPY's does."""
    watcher = Watcher()
    Flux.just(1).subscribe(watcher)
    assert [item(1), END] == watcher.signals
    observed = Watcher()

    class Observer(abc.ObserverBase[int]):
        def on_next(self, value: int) -> None:
            observed.on_next(value)

        def on_error(self, error: Exception) -> None:
            observed.on_error(error)

        def on_completed(self) -> None:
            observed.on_completed()

    Flux.just(1).subscribe(Observer())
    Flux.just(2).next().subscribe(Observer())
    assert [item(1), END, item(2), END] == observed.signals
    Flux.just(1).subscribe()


def test_an_error_without_a_receiver_goes_to_the_hook() -> None:
    """It does not vanish, and it is not raised where `subscribe` was called."""
    with hooked() as dropped:
        Flux.error(FAILURE).subscribe(lambda _: None)
    assert [FAILURE] == dropped.errors


def test_a_subscriber_that_raises_ends_its_own_subscription() -> None:
    """The source is cancelled, then its own `on_error` gets the exception; without one the hook does."""
    probe = Probe(1, 2, 3)
    told = probe.log = []
    Flux(probe.source).subscribe(raising(FAILURE, at=2), told.append, lambda: told.append("end"))
    assert (["source disposed", FAILURE], [1, 2]) == (told, probe.emitted)

    with hooked() as dropped:
        Flux(Probe(1, 2).source).subscribe(raising(FAILURE))
    assert [FAILURE] == dropped.errors


def test_a_subscriber_that_raises_in_its_last_words_goes_to_the_hook() -> None:
    """A second terminal signal would break the grammar."""
    other = TypeError("other")
    told: list[Any] = []
    with hooked() as dropped:
        Flux.just(1).subscribe(None, told.append, raising(FAILURE))
        Flux.error(FAILURE).subscribe(None, raising(other))
        Flux.just(1).subscribe(raising(FAILURE), raising(other))
    assert ([FAILURE, other, other], []) == (dropped.errors, told)


def test_a_subscriber_that_left_and_then_raises_goes_to_the_hook() -> None:
    """It said that it wants nothing more: not even its own error."""
    subject: EventSubject[int] = EventSubject()
    told: list[Any] = []
    later: list[Any] = []

    def leave(_: int) -> None:
        later[0].dispose()
        raise FAILURE

    later.append(Flux(subject).subscribe(leave, told.append))
    with hooked() as dropped:
        subject.on_next(1)
    assert ([FAILURE], []) == (dropped.errors, told)


def test_late_signals_reach_no_subscriber() -> None:
    """From a source that minds no disposal and ends twice."""
    kept: list[Any] = []

    class Deaf(abc.ObservableBase[int]):
        def subscribe(
            self,
            on_next: Any = None,
            on_error: Any = None,
            on_completed: Any = None,
            *,
            scheduler: Any = None,
        ) -> Any:
            kept.append(on_next)
            return reactivex.disposable.Disposable()

    for end in ("dispose", "complete"):
        watcher = Watcher()
        subscription = Flux(Deaf()).subscribe(watcher.on_next, watcher.on_error, watcher.on_completed)
        edge = kept.pop()
        if end == "dispose":
            subscription.dispose()
        else:
            edge.on_completed()
        edge.on_next(1)
        edge.on_error(FAILURE)
        edge.on_completed()
        assert ([] if end == "dispose" else [END]) == watcher.signals


# Mono


async def test_a_mono_is_awaited() -> None:
    """Its item, None where there is none, its error; anew each time."""
    mono = Flux.just(1, 2).next()
    assert (1, 1) == (await mono, await mono)
    assert await Flux.empty().next() is None
    assert 2 == await mono.map(lambda x: x + 1)
    assert await mono.filter(lambda x: x > 1) is None
    with pytest.raises(ValueError, match="mine"):
        await Flux.error(FAILURE).next()
    assert "<Mono>" == repr(mono)


def test_a_mono_has_its_operators() -> None:
    """As a Flux has them."""
    told: list[Any] = []
    mono = Flux.just(1).single().do_on_next(told.append).do_finally(told.append)
    assert [item(1), END] == signals(mono)
    assert [1, SignalType.ON_COMPLETE] == told
    assert [item(1), END] == signals(mono.to_observable())


async def test_cancelling_the_awaiting_task_cancels_the_stream() -> None:
    """The source is disposed of before the cancellation goes on."""
    probe = Probe(ends=False)
    told: list[SignalType] = []
    task = asyncio.create_task(wait(Flux(probe.source).do_finally(told.append).next()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (1, [SignalType.CANCEL]) == (probe.disposed, told)


async def wait(mono: Mono[Any]) -> Any:
    return await mono


# ChatStream


def test_operators_that_keep_events_keep_the_type() -> None:
    """`map`, `text`, `pipe` give a Flux."""
    stream = chat(DATA)
    keeping: list[Any] = [
        stream.filter(lambda _: True),
        stream.filter_events(lambda _: True),
        stream.only(TextDelta),
        stream.in_group(G.TEXT),
        stream.take(1),
        stream.take_while(lambda _: True),
        stream.take_until(lambda _: False),
        stream.do_on_next(lambda _: None),
        stream.do_on_error(lambda _: None),
        stream.do_on_complete(lambda: None),
        stream.do_on_cancel(lambda: None),
        stream.do_finally(lambda _: None),
        Flux.from_(stream),
    ]
    assert {ChatStream} == {type(each) for each in keeping}
    assert {Flux} == {
        type(each) for each in (stream.map(lambda e: e.text), stream.text(), stream.pipe(rx.take(1)))
    }
    assert {Mono} == {type(each) for each in (stream.next(), stream.response(), stream.collect_list())}
    assert "<ChatStream>" == repr(stream)


def test_the_operators_of_a_chat_stream() -> None:
    """What each lets through."""
    stream = chat(DATA)
    assert TYPES == types(stream) == types(stream.filter_events(lambda _: True).do_on_next(lambda _: None))
    assert (
        ["TEXT_DELTA"] * 3
        == types(stream.only(T.TEXT_DELTA))
        == types(stream.filter(lambda e: e.is_(T.TEXT_DELTA)))
    )
    assert TYPES[2:7] == types(stream.in_group(G.TEXT))
    assert ["0 ", "1 ", "2 "] == watch(stream.text()).items
    assert (
        TYPES[:3] == types(stream.take(3)) == types(stream.take_while(lambda e: e.type is not T.TEXT_DELTA))
    )
    assert TYPES[:4] == types(stream.take_until(lambda e: e.type is T.TEXT_DELTA))
    assert [T.RESPONSE_START, T.STEP_START, T.STEP_END, T.RESPONSE_END] == types(
        stream.filter_events(lambda _: False)
    )
    told: list[Any] = []
    full = (
        stream.do_on_complete(lambda: told.append("c"))
        .do_on_cancel(lambda: told.append("x"))
        .do_finally(told.append)
    )
    assert TYPES == types(full)
    assert ["c", SignalType.ON_COMPLETE] == told
    broken = chat(DATA[:200]).do_on_error(told.append)
    assert isinstance(watch(broken).error, TruncatedStreamError)
    assert isinstance(told[-1], TruncatedStreamError)


async def test_response_is_what_the_stream_comes_to() -> None:
    """The response of RESPONSE_END; the error of the stream otherwise."""
    response = await chat(DATA).response()
    assert "0 1 2 " == response.text
    with pytest.raises(TruncatedStreamError) as caught:
        await chat(DATA[:300]).response()
    assert caught.value.partial is not None


@pytest.mark.parametrize(
    "abort, words", [("ABORT", "aborted from the other side"), ("why", "the stream was aborted: why")]
)
async def test_response_of_an_aborted_stream_raises(abort: str, words: str) -> None:
    """With what had arrived."""
    last = draft("ABORT") if abort == "ABORT" else Abort(abort)
    drafts = plain.of(draft("STEP+0"), draft("TEXT~half"), last)
    with pytest.raises(StreamAbortedError, match=words) as caught:
        await ChatStream(drafts.pipe(pipeline())).response()
    assert caught.value.partial is not None
    assert "half" == caught.value.partial.full_text or caught.value.partial.text

    with pytest.raises(StreamAbortedError):
        await ChatStream(plain.of(Abort())).response()


async def test_the_response_of_a_stream_without_its_end_is_none() -> None:
    """An exact filter took it away: the Mono is empty."""
    assert await chat(DATA).only(TextDelta).response() is None
    assert [item(3), END] == signals(chat(DATA).only(TextDelta).collect_list().map(len))


async def test_streams_merge_and_concat_with_async_for() -> None:
    """Each with its own response id and its own *seq*; a second source is not held up by the first."""

    async def slow() -> AsyncIterator[bytes]:
        yield DATA[:250]
        await asyncio.Event().wait()

    merged = chat(slow()).pipe(rx.merge(chat(DATA)))
    ends = 0
    async with asyncio.timeout(5), aiter(merged) as events:
        async for event in events:
            ends += event.type is T.RESPONSE_END
            if ends:
                break
    assert 1 == ends

    both = [event async for event in chat(DATA).pipe(rx.concat(chat(DATA)))]
    assert TYPES * 2 == [event.type for event in both]
    assert [*range(9), *range(9)] == [event.seq for event in both]
    assert 2 == len({event.response_id for event in both})


async def test_a_stream_that_comes_late_wakes_its_consumer() -> None:
    """flat_map opens it when a timer fires: until then there was nothing to drive."""
    late = Flux(plain.timer(0.001)).pipe(rx.flat_map(lambda _: chat(DATA)))
    async with asyncio.timeout(5):
        assert TYPES == [event.type async for event in late]


async def test_a_shared_stream_goes_on_when_the_one_who_pulled_leaves() -> None:
    """The others get the rest."""

    async def source() -> AsyncIterator[bytes]:
        for start in range(0, len(DATA), 50):
            await asyncio.sleep(0)
            yield DATA[start : start + 50]

    shared = chat(source()).pipe(rx.share())
    seen, ended = list[str](), asyncio.Event()
    first = aiter(shared)
    assert T.RESPONSE_START == (await anext(first)).type
    shared.subscribe(lambda e: seen.append(e.type), None, ended.set)
    await first.aclose()
    async with asyncio.timeout(5):
        await ended.wait()
    assert TYPES[-5:] == seen[-5:]


async def test_a_stop_button_ends_a_stream_that_waits() -> None:
    """RxPY's take_until takes an observable; the source is closed."""
    stop: EventSubject[int] = EventSubject()
    closed: list[str] = []

    async def endless() -> AsyncIterator[bytes]:
        try:
            yield DATA[:250]
            await asyncio.Event().wait()
        finally:
            closed.append("closed")

    asyncio.get_running_loop().call_later(0.005, stop.on_next, 1)
    async with asyncio.timeout(5):
        events = [event async for event in chat(endless()).pipe(rx.take_until(stop))]
    assert ("RESPONSE_START", ["closed"]) == (events[0].type, closed)


async def test_blocking_calls_refuse_a_running_loop() -> None:
    """With a word on what to write; no coroutine is left behind."""
    for call in (
        Flux.just(1).block,
        Flux.just(1).block_first,
        Flux.just(1).block_last,
        Flux.just(1).next().block,
    ):
        with pytest.raises(BlockingInLoopError, match="use `await` or `async for` here"):
            call()


def test_an_end_without_a_response_is_no_response() -> None:
    """Events made by hand may lack it."""
    assert isinstance(watch(ChatStream(plain.of(ResponseEnd())).response()).error, StreamAbortedError)
