"""map_not_none, handle, concat_map_iterable, the skips, any/all/has/element_at: items picked out one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from semflux import Flux
from semflux.errors import ConfigurationError, EmptySequenceError
from semflux.operators import concat_map_iterable, element_at, handle, skip
from tests.operators.watching import END, Probe, error, item, numbers, raising, signals, watch

FAILURE = ValueError("mine")


def flux(*items: Any) -> Flux[Any]:
    return Flux.just(*items)


def test_map_not_none_leaves_out_what_the_function_gives_none_for() -> None:
    """Zero and the empty text are items."""
    assert [item(0), item(""), END] == signals(flux(1, 2, 3).map_not_none({1: 0, 3: ""}.get))


def test_handle_gives_at_most_one_item_for_each() -> None:
    """One, none, or an end with or without a last item; None is an item."""

    def choose(value: int, sink: Any) -> None:
        if value == 1:
            sink.next(None)
        if value == 3:
            sink.next("last")
            sink.complete()

    probe = Probe(1, 2, 3, 4)
    assert [item(None), item("last"), END] == signals(Flux.from_(probe.source).handle(choose))
    assert (1, [1, 2, 3]) == (probe.disposed, probe.emitted)


def test_handle_can_fail_the_stream() -> None:
    """The source is cancelled, then the error is told."""
    probe = Probe(1, 2)
    assert [error(FAILURE)] == signals(probe.source.pipe(handle(lambda _, sink: sink.error(FAILURE))))
    assert 1 == probe.disposed


@pytest.mark.parametrize("calls", [["next", "next"], ["complete", "complete"], ["complete", "next"]])
def test_handle_refuses_a_second_answer_for_one_item(calls: list[str]) -> None:
    """As an error of the stream."""

    def twice(value: int, sink: Any) -> None:
        for call in calls:
            getattr(sink, call)(*([value] if call == "next" else []))

    (told,) = signals(flux(1).handle(twice))
    assert isinstance(told[1], ConfigurationError)


def test_concat_map_iterable_gives_all_items_in_order() -> None:
    """An empty iterable gives none."""
    assert [item("a"), item("b"), item("c"), END] == signals(flux("ab", "", "c").concat_map_iterable(list))


def test_concat_map_iterable_stops_at_a_dispose_and_closes_the_generator() -> None:
    """Between two items of one iterable."""
    log: list[Any] = []

    def endless(value: int) -> Iterator[int]:
        try:
            while True:
                log.append(value)
                yield value
        finally:
            log.append("closed")

    assert [item(1), item(1), END] == signals(flux(1).concat_map_iterable(endless).take(2))
    assert [1, 1, "closed"] == log


def test_concat_map_iterable_fails_with_what_the_iterable_raises() -> None:
    """After the items that came before; the source is cancelled."""

    def failing(value: int) -> Iterator[int]:
        yield value
        raise FAILURE

    probe = Probe(1, 2)
    assert [item(1), error(FAILURE)] == signals(probe.source.pipe(concat_map_iterable(failing)))
    assert 1 == probe.disposed


def test_skips_leave_out_the_first_items() -> None:
    """By number, by a condition that holds, by one that does not; later items are not asked about."""
    assert [item(3), item(1), END] == signals(flux(1, 2, 3, 1).skip(2))
    assert [item(3), item(1), END] == signals(flux(1, 2, 3, 1).skip_while(lambda x: x < 3))
    assert [item(3), item(1), END] == signals(flux(1, 2, 3, 1).skip_until(lambda x: x == 3))
    assert [END] == signals(flux(1).skip(5))
    with pytest.raises(ConfigurationError, match=r"skip\(-1\)"):
        skip(-1)


@pytest.mark.parametrize(
    "make, expected, emitted",
    [
        (lambda f: f.any(lambda x: x == 2), True, [1, 2]),
        (lambda f: f.any(lambda x: x == 9), False, [1, 2, 3]),
        (lambda f: f.all(lambda x: x == 1), False, [1, 2]),
        (lambda f: f.all(lambda x: x), True, [1, 2, 3]),
        (lambda f: f.has_elements(), True, [1]),
        (lambda f: f.has_element(2), True, [1, 2]),
        (lambda f: f.has_element(9), False, [1, 2, 3]),
        (lambda f: f.element_at(1), 2, [1, 2]),
        (lambda f: f.element_at(7, None), None, [1, 2, 3]),
    ],
)
def test_an_answer_comes_as_soon_as_it_is_known(make: Any, expected: Any, emitted: list[int]) -> None:
    """Then the source is cancelled, before the answer is told."""
    probe = Probe(1, 2, 3)
    log = probe.log = []
    make(Flux.from_(probe.source)).subscribe(log.append, None, lambda: log.append("end"))

    if len(emitted) < 3:
        assert "source disposed" == log.pop(0)
    assert [expected, "end"] == log[:2]
    assert emitted == probe.emitted


def test_an_answer_of_an_empty_stream() -> None:
    """No item is like the one asked for, and all are."""
    assert [item(False), END] == signals(Flux.empty().has_elements())
    assert [item(True), END] == signals(Flux.empty().all(bool))


def test_element_at_fails_where_the_stream_is_shorter() -> None:
    """Unless a default is given."""
    assert isinstance(watch(flux(1).element_at(1)).error, EmptySequenceError)
    with pytest.raises(ConfigurationError, match=r"element_at\(-1\)"):
        element_at(-1)


def failing_functions() -> Iterator[Any]:
    fails = raising(FAILURE)
    yield lambda f: f.map_not_none(fails)
    yield lambda f: f.handle(fails)
    yield lambda f: f.concat_map_iterable(fails)
    yield lambda f: f.skip_while(fails)
    yield lambda f: f.skip_until(fails)
    yield lambda f: f.any(fails)
    yield lambda f: f.all(fails)
    yield lambda f: f.collect_map(fails)
    yield lambda f: f.collect(list, fails)
    yield lambda f: f.collect(fails, list.append)
    yield lambda f: f.reduce_with(fails, fails)
    yield lambda f: f.skip(1).reduce(fails)
    yield lambda f: f.skip(1).scan(fails)


@pytest.mark.parametrize("make", list(failing_functions()))
def test_a_function_that_raises_cancels_the_source_and_is_the_error(make: Any) -> None:
    probe = Probe(*numbers(4))
    assert [error(FAILURE)] == [
        each for each in signals(make(Flux.from_(probe.source))) if each[0] == "error"
    ]
    assert 1 == probe.disposed
