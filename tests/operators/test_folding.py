"""collect, reduce, scan, count, last, single_or_empty, index, then: what items come to."""

from __future__ import annotations

from typing import Any

from semflux import Flux, Mono
from semflux.errors import EmptySequenceError, TooManyItemsError
from tests.operators.watching import END, Probe, error, item, raising, signals, watch

FAILURE = ValueError("mine")


def flux(*items: Any) -> Flux[Any]:
    return Flux.just(*items)


def empty_list() -> list[Any]:
    return []


def appended(so_far: list[Any], value: Any) -> list[Any]:
    so_far.append(value)
    return so_far


def add(left: int, right: int) -> int:
    return left + right


def test_reduce_begins_with_the_first_item_and_leaves_an_empty_stream_empty() -> None:
    """One item needs no function."""
    assert [item(6), END] == signals(flux(1, 2, 3).reduce(add))
    assert [item(7), END] == signals(flux(7).reduce(raising(FAILURE)))
    assert [END] == signals(Flux.empty().reduce(add))


def test_reduce_with_makes_a_seed_for_each_subscription() -> None:
    """So a list that grows is not shared; an empty stream gives the seed."""
    made = flux(1, 2).reduce_with(empty_list, appended)
    assert [item([1, 2]), END] == signals(made) == signals(made)
    assert [item(5), END] == signals(Flux.empty().reduce_with(lambda: 5, add))
    assert [error(FAILURE)] == signals(Flux.empty().reduce_with(raising(FAILURE), add))


def test_collect_fills_a_container_of_its_own() -> None:
    """Into anything that can be added to."""
    made = flux(1, 2, 1).collect(set, set.add)
    assert [item({1, 2}), END] == signals(made) == signals(made)


def test_collect_map_keeps_the_later_of_two_with_one_key() -> None:
    """The item itself, or what is made of it."""
    assert [item({1: "b", 2: "cc"}), END] == signals(flux("a", "b", "cc").collect_map(len))
    assert [item({1: "A"}), END] == signals(flux("a").collect_map(len, str.upper))
    assert [item({}), END] == signals(Flux.empty().collect_map(len))


def test_scan_gives_each_step_and_scan_with_the_seed_too() -> None:
    """Before anything else, and for an empty stream."""
    assert [item(1), item(3), item(6), END] == signals(flux(1, 2, 3).scan(add))
    made = flux(1, 2).scan_with(lambda: 10, add)
    assert [item(10), item(11), item(13), END] == signals(made) == signals(made)
    assert [item(10), END] == signals(Flux.empty().scan_with(lambda: 10, add))
    assert [error(FAILURE)] == signals(flux(1).scan_with(raising(FAILURE), add))


def test_index_counts_from_0() -> None:
    """Anew for each subscription."""
    made = flux("a", "b").index()
    assert [item((0, "a")), item((1, "b")), END] == signals(made) == signals(made)


def test_count_and_last() -> None:
    """last() of nothing is an error, unless a default is given, which may be None."""
    assert [item(2), END] == signals(flux(None, None).count())
    assert [item(2), END] == signals(flux(1, 2).last()) == signals(flux(1, 2).last(None))
    assert [item(None), END] == signals(Flux.empty().last(None)) == signals(flux(None).last())
    assert isinstance(watch(Flux.empty().last()).error, EmptySequenceError)
    assert [error(FAILURE)] == signals(Flux.error(FAILURE).last())


def test_single_or_empty_takes_one_item_or_none() -> None:
    """The source is cancelled at the second."""
    assert [item(1), END] == signals(flux(1).single_or_empty())
    assert [END] == signals(Flux.empty().single_or_empty())
    probe = Probe(1, 2, 3)
    assert isinstance(watch(Flux.from_(probe.source).single_or_empty()).error, TooManyItemsError)
    assert ([1, 2], 1) == (probe.emitted, probe.disposed)


async def test_first_or_none_is_awaited_for_none_where_there_is_nothing() -> None:
    assert 1 == await flux(1, 2).first_or_none()
    assert await Flux.empty().first_or_none() is None


def test_then_waits_for_the_end_and_goes_on() -> None:
    """An error is an end too, and nothing comes after it."""
    other: Mono[int] = flux(9).next()
    assert [END] == signals(flux(1, 2).then()) == signals(flux(1, 2).ignore_elements())
    assert [item(9), END] == signals(flux(1, 2).then(other))
    assert [error(FAILURE)] == signals(Flux.error(FAILURE).then(other))


def test_sources_come_one_after_another() -> None:
    """concat_with, start_with; an error ends it, and later sources are not asked."""
    late = Probe(9)
    assert [item(0), item(1), item(2), item(3), END] == signals(
        flux(1).start_with(0).concat_with(flux(2), flux(3))
    )
    assert [error(FAILURE)] == signals(Flux.error(FAILURE).concat_with(late.source))
    assert [item(1), END] == signals(flux(1).concat_with(late.source).take(1))
    assert 0 == late.subscribed


def test_a_thousand_sources_are_no_thousand_frames_deep() -> None:
    """Even those that end inside subscribe."""
    assert [END] == signals(Flux.empty().concat_with(*[Flux.empty()] * 5000))


def test_an_empty_stream_can_have_a_default_or_another_stream() -> None:
    """None is an item; an error is none."""
    assert [item(0), END] == signals(Flux.empty().default_if_empty(0))
    assert [item(None), END] == signals(flux(None).default_if_empty(0))
    assert [item(8), item(9), END] == signals(Flux.empty().switch_if_empty(flux(8, 9)))
    assert [item(1), END] == signals(flux(1).switch_if_empty(flux(8)))
    assert [error(FAILURE)] == signals(Flux.error(FAILURE).default_if_empty(0))
