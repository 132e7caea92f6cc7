"""Flux, Mono and ChatStream: what users hold, and the border to RxPY."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import reactivex
from reactivex import Observable, abc

from semflux.errors import (
    BlockingInLoopError,
    EmptySequenceError,
    TooManyItemsError,
)
from semflux.events import ChatEventGroup, ChatEventType
from semflux.flux import Flux, Mono, SignalType
from semflux.operators import EventSubject
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
