"""Mono: at most one item, what it is made of, what follows it; every way of leaving reaches the source."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import reactivex

from semflux import Flux, Mono
from semflux.clock import VirtualClock
from semflux.errors import EmptySequenceError
from semflux.operators.after_item import after_item
from semflux.testing import check_operator
from tests.flux.answers import FRAMES, TYPES, Chunks, chat, settle
from tests.operators.watching import END, Probe, error, item, raising, signals, watch

FAILURE = ValueError("mine")


# Making one


async def test_a_mono_of_an_item_of_none_of_an_error() -> None:
    """None is an item, but not for `just_or_empty`."""
    assert [item(1), END] == signals(Mono.just(1))
    assert [item(None), END] == signals(Mono.just(None))
    assert [item(1), END] == signals(Mono.just_or_empty(1))
    assert [END] == signals(Mono.just_or_empty(None)) == signals(Mono.empty())
    assert [error(FAILURE)] == signals(Mono.error(FAILURE))
    assert [] == signals(Mono.never())
    assert (1, None) == (await Mono.just(1), await Mono.empty())
    with pytest.raises(ValueError, match="mine"):
        await Mono.error(FAILURE)


def test_a_deferred_mono_is_made_for_each_subscription() -> None:
    """As is what a callable gives; what either raises is the error."""
    count: list[int] = []

    def number() -> int:
        count.append(1)
        return len(count)

    called, deferred = Mono.from_callable(number), Mono.defer(lambda: Mono.just(number()))
    assert [] == count
    assert [item(1), END] == signals(called)
    assert [item(2), END] == signals(called)
    assert [item(3), END] == signals(deferred)
    assert [item(None), END] == signals(Mono.from_callable(lambda: None))
    assert [error(FAILURE)] == signals(Mono.defer(raising(FAILURE)))
    assert [error(FAILURE)] == signals(Mono.from_callable(raising(FAILURE)))


def test_a_mono_of_a_stream_is_its_first_item() -> None:
    """The stream is cancelled then."""
    probe = Probe(1, 2)
    assert [item(1), END] == signals(Mono.from_(probe.source))
    assert ([1], 1) == (probe.emitted, probe.disposed)
    assert [END] == signals(Mono.from_(Flux.empty()))
    given = Mono.just(1)
    assert Mono.from_(given) is given
    assert [item(1), END] == signals(Mono.from_(Flux.just(1, 2)))


async def test_a_mono_of_a_coroutine_is_cold() -> None:
    async def answer() -> int:
        return 1

    mono = Mono.from_awaitable(answer)
    assert (1, 1) == (await mono, await mono)


def test_a_zip_is_one_tuple() -> None:
    """Nothing as soon as one has nothing, and the error of any; the others are cancelled."""
    assert [item((1, "a", None)), END] == signals(Mono.zip(Mono.just(1), Mono.just("a"), Mono.just(None)))
    assert [item((1, 2)), END] == signals(Mono.just(1).zip_with(Mono.just(2)))
    for other, expected in ((Mono.empty(), END), (Mono.error(FAILURE), error(FAILURE))):
        for make in (Mono.zip, lambda one, two: one.zip_with(two)):
            waiting = Probe(ends=False)
            assert [expected] == signals(make(Mono(waiting.source), other))
            assert 1 == waiting.disposed


def test_when_waits_for_all() -> None:
    """And gives no item; the first error cancels the rest."""
    one, two = reactivex.Subject[Any](), reactivex.Subject[Any]()
    watcher = watch(Mono.when(one, two))
    one.on_next(1)
    one.on_completed()
    assert [] == watcher.signals
    two.on_completed()
    assert [END] == watcher.signals
    waiting = Probe(ends=False)
    assert [error(FAILURE)] == signals(Mono.when(waiting.source, Mono.error(FAILURE)))
    assert 1 == waiting.disposed
    assert [END] == signals(Mono.when())


def test_the_first_of_several_monos() -> None:
    """With a value, or with any signal."""
    assert [item(2), END] == signals(Mono.first_with_value(Mono.empty(), Mono.just(2)))
    assert EmptySequenceError is type(watch(Mono.first_with_value(Mono.empty())).error)
    assert [END] == signals(Mono.first_with_signal(Mono.never(), Mono.empty(), Mono.just(2)))


# What follows it


def test_the_source_of_an_item_keeps_the_contract() -> None:
    check_operator(after_item(lambda item: reactivex.of(item)), holds_items=True)


def test_an_item_becomes_another_mono_or_a_stream() -> None:
    """None too; without an item there is nothing to call."""
    assert [item(10), END] == signals(Mono.just(1).flat_map(lambda x: Mono.just(x * 10)))
    assert [item(None), END] == signals(Mono.just(None).flat_map(Mono.just))
    assert [item(1), item(1), END] == signals(Mono.just(1).flat_map_many(lambda x: Flux.just(x, x)))
    never: Any = raising(AssertionError())
    assert [END] == signals(Mono.empty().flat_map(never))
    assert [error(FAILURE)] == signals(Mono.error(FAILURE).flat_map_many(never))
    assert [error(FAILURE)] == signals(Mono.just(1).flat_map(raising(FAILURE)))
    assert [error(FAILURE)] == signals(Mono.just(1).flat_map(lambda _: Mono.error(FAILURE)))


def test_a_mono_that_is_followed_by_another_one_ends_well() -> None:
    """It is not cancelled."""
    ends: list[str] = []
    mono = Mono.just(1).do_finally(lambda signal: ends.append(str(signal)))
    assert [item(1), END] == signals(mono.flat_map(Mono.just))
    assert [item(2), END] == signals(mono.then(Mono.just(2)))
    assert ["ON_COMPLETE"] * 2 == ends


def test_a_value_in_place_of_none() -> None:
    assert [item(9), END] == signals(Mono.empty().default_if_empty(9))
    assert [item(1), END] == signals(Mono.just(1).default_if_empty(9))
    assert [item(9), END] == signals(Mono.empty().switch_if_empty(Mono.just(9)))
    assert Mono is type(Mono.just(1).switch_if_empty(Mono.just(9)))


def test_what_comes_after_the_end() -> None:
    """Another Mono, a stream, a value, or nothing; an error is the error at once."""
    probe = Probe(1)
    mono = Mono(probe.source)
    assert [END] == signals(mono.then())
    assert [item(2), END] == signals(mono.then(Mono.just(2)))
    assert [item(2), item(3), END] == signals(mono.then_many(Flux.just(2, 3)))
    assert [item(None), END] == signals(mono.then_return(None))
    assert 4 == probe.subscribed
    for make in (
        lambda m: m.then(Mono.just(2)),
        lambda m: m.then_many(Flux.just(2)),
        lambda m: m.then_return(2),
    ):
        assert [error(FAILURE)] == signals(make(Mono.error(FAILURE)))


def test_an_item_is_changed_or_left_out() -> None:
    assert [item("1"), END] == signals(Mono.just(1).map(str))
    assert [END] == signals(Mono.just(1).filter(lambda x: x > 1))
    assert [item("1"), END] == signals(Mono.just(1).map_not_none(str))
    assert [END] == signals(Mono.just(1).map_not_none(lambda _: None))
    assert [item(2), END] == signals(Mono.just(1).handle(lambda x, sink: sink.next(x + 1)))
    assert [END] == signals(Mono.just(1).handle(lambda x, sink: None))
    assert [item(True), END] == signals(Mono.just(None).has_element())
    assert [item(False), END] == signals(Mono.empty().has_element())


def test_a_mono_becomes_a_flux() -> None:
    """With more after it, or again."""
    assert Flux is type(Mono.just(1).flux())
    assert [item(1), END] == signals(Mono.just(1).flux())
    assert [item(1), item(2), END] == signals(Mono.just(1).concat_with(Mono.just(2)))
    assert [item(1), item(1), END] == signals(Mono.just(1).repeat(1))
    assert [item(1), item(1), END] == signals(Mono.just(1).repeat_when(lambda ends: ends.take(2)))


def test_a_cached_mono_is_subscribed_to_once() -> None:
    """For as long as it is fresh."""
    clock, probe = VirtualClock(), Probe(1)
    cached = Mono(probe.source).cache()
    assert [item(1), END] == signals(cached) == signals(cached)
    assert (1, Mono) == (probe.subscribed, type(cached))
    watcher = watch(Mono.just(1).cache(5.0, clock=clock))
    assert [item(1), END] == watcher.signals


def test_a_chain_of_a_mono_may_have_a_name() -> None:
    """Applied at once, or for each subscription."""
    applied: list[Any] = []

    def doubled(mono: Mono[int]) -> Mono[int]:
        applied.append(mono)
        return mono.map(lambda x: 2 * x)

    for make, times in ((lambda m: m.transform(doubled), 1), (lambda m: m.transform_deferred(doubled), 2)):
        applied.clear()
        made = make(Mono.just(1))
        assert [item(2), END] == signals(made) == signals(made)
        assert times == len(applied)


# Leaving

LEFT: dict[str, Callable[[Mono[Any]], Any]] = {
    "from_": Mono.from_,
    "defer": lambda mono: Mono.defer(lambda: mono),
    "using": lambda mono: Mono.using(lambda: 1, lambda _: mono, lambda _: None),
    "using_when": lambda mono: Mono.using_when(Mono.just(1), lambda _: mono, lambda _: None),
    "first_with_signal": lambda mono: Mono.first_with_signal(Mono.never(), mono),
    "first_with_value": lambda mono: Mono.first_with_value(Mono.never(), mono),
    "zip": lambda mono: Mono.zip(Mono.just(1), mono),
    "when": lambda mono: Mono.when(Mono.just(1), mono),
    "map_not_none": lambda mono: mono.map_not_none(str),
    "handle": lambda mono: mono.handle(lambda x, sink: None),
    "flat_map": lambda mono: mono.flat_map(Mono.just),
    "flat_map, inside": lambda mono: Mono.just(1).flat_map(lambda _: mono),
    "flat_map_many, inside": lambda mono: Mono.just(1).flat_map_many(lambda _: mono),
    "default_if_empty": lambda mono: mono.default_if_empty(1),
    "switch_if_empty": lambda mono: Mono.empty().switch_if_empty(mono),
    "zip_with": lambda mono: Mono.just(1).zip_with(mono),
    "then": lambda mono: mono.then(),
    "then, inside": lambda mono: Mono.just(1).then(mono),
    "then_many": lambda mono: Mono.just(1).then_many(mono),
    "then_return": lambda mono: mono.then_return(1),
    "has_element": lambda mono: mono.has_element(),
    "flux": lambda mono: mono.flux(),
    "concat_with": lambda mono: Mono.just(1).concat_with(mono),
    "repeat": lambda mono: mono.repeat(),
    "repeat_when": lambda mono: mono.repeat_when(lambda ends: ends),
    "transform_deferred": lambda mono: mono.transform_deferred(lambda same: same),
    "or_else": lambda mono: mono.or_else(Mono.never()),
    "do_on_request": lambda mono: mono.do_on_request(lambda more: None),
}


@pytest.mark.parametrize("make", LEFT.values(), ids=LEFT)
def test_leaving_reaches_the_source_at_once(make: Callable[[Mono[Any]], Any]) -> None:
    """Exactly once, and before `dispose` returns."""
    probe = Probe(ends=False)
    subscription = make(Mono(probe.source)).subscribe(None)
    assert (1, 0) == (probe.subscribed, probe.disposed)
    subscription.dispose()
    assert 1 == probe.disposed
    subscription.dispose()
    assert 1 == probe.disposed


@pytest.mark.parametrize("make", LEFT.values(), ids=LEFT)
async def test_a_cancelled_task_cancels_what_it_awaits(make: Callable[[Mono[Any]], Any]) -> None:
    """Before the cancel comes out of the await."""
    probe = Probe(ends=False)
    task = asyncio.ensure_future(last(make(Mono(probe.source))))
    await settle()
    assert 1 == probe.subscribed
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 1 == probe.disposed


async def last(source: Any) -> Any:
    return (
        [each async for each in source.flux()]
        if isinstance(source, Mono)
        else [each async for each in source]
    )


async def test_a_chat_stream_after_a_mono_is_pulled() -> None:
    """It is read no further than the consumer wants, and closed at a break."""
    chunks = Chunks(*FRAMES)
    async with aiter(Mono.just("prompt").flat_map_many(lambda _: chat(chunks.agen()))) as events:
        assert TYPES[:4] == [str((await anext(events)).type) for _ in range(4)]
        assert chunks.asked < len(FRAMES)
    assert 1 == chunks.closed


async def test_one_answer_follows_another() -> None:
    """Each is a stream of its own."""

    def answer() -> Mono[Any]:
        return chat(Chunks(*FRAMES).agen()).response()

    pair = await answer().flat_map(lambda one: answer().map(lambda two: (one.text, two.text)))
    assert ("0 1 2 ", "0 1 2 ") == pair
    one, two = await answer().zip_with(answer())
    assert one.text == two.text
