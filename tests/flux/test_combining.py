"""The combining factories of Flux, and to_iterable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import reactivex
from reactivex.subject import BehaviorSubject

import semflux
from semflux import Flux
from semflux.errors import BlockingInLoopError, EmptySequenceError
from tests.frames import DONE, cc
from tests.operators.watching import END, Probe, error, item, raising, signals, watch

FAILURE = ValueError("mine")
ANSWER = b"".join([cc({"content": piece}) for piece in "abc"]) + cc(finish="stop") + DONE


# Several


def test_concat_merge_defer() -> None:
    """Their order, and what is made for each subscription."""
    made: list[int] = []
    assert [item(1), item(2), END] == signals(Flux.concat(Flux.just(1), Flux.just(2)))
    assert [END] == signals(Flux.concat()) == signals(Flux.merge())
    deferred = Flux.defer(lambda: made.append(1) or Flux.just(len(made)))  # type: ignore[func-returns-value]  # None, so that `or` goes on
    assert [item(1), END] == signals(deferred)
    assert [item(2), END] == signals(deferred)
    assert [error(FAILURE)] == signals(Flux.defer(raising(FAILURE)))


def test_zip_ends_when_a_source_can_give_no_more() -> None:
    """At the last pair, and the other source is cancelled."""
    assert [item((1, "a")), item((2, "b")), END] == signals(
        Flux.zip(Flux.just(1, 2), Flux.just("a", "b", "c"))
    )
    one, two = reactivex.Subject[Any](), reactivex.Subject[Any]()
    watcher = watch(Flux.zip(one, two))
    one.on_next(1)
    one.on_completed()
    two.on_next(2)
    assert ([item((1, 2)), END], []) == (watcher.signals, two.observers)


def test_combine_latest_gives_the_newest_of_all() -> None:
    one, two = reactivex.Subject[Any](), reactivex.Subject[Any]()
    watcher = watch(Flux.combine_latest(one, two))
    one.on_next(1)
    two.on_next("a")
    one.on_next(2)
    for each in (one, two):
        each.on_completed()
    assert [item((1, "a")), item((2, "a")), END] == watcher.signals


def test_first_with_value_is_the_one_that_gives_an_item_first() -> None:
    """An empty or a failed one has none; the others are cancelled."""
    slow, fast = reactivex.Subject[Any](), reactivex.Subject[Any]()
    watcher = watch(Flux.first_with_value(Flux.empty(), Flux.error(FAILURE), slow, fast))
    fast.on_next(1)
    slow.on_next(2)
    fast.on_next(3)
    fast.on_completed()
    assert ([item(1), item(3), END], []) == (watcher.signals, slow.observers)
    winner = reactivex.Subject[Any]()
    watcher = watch(Flux.first_with_value(winner))
    winner.on_next(1)
    winner.on_error(FAILURE)
    assert [item(1), error(FAILURE)] == watcher.signals


def test_first_with_value_of_sources_without_an_item_is_an_error() -> None:
    """With what they failed with as its cause."""
    failure = watch(Flux.first_with_value(Flux.empty(), Flux.error(FAILURE))).error
    assert isinstance(failure, EmptySequenceError)
    assert (FAILURE,) == failure.__cause__.exceptions  # type: ignore[union-attr]  # a group, or the assertion fails
    assert isinstance(watch(Flux.first_with_value()).error, EmptySequenceError)
    assert watch(Flux.first_with_value(Flux.empty())).error.__cause__ is None


def test_first_with_value_lets_go_of_all_at_a_dispose() -> None:
    one, two = reactivex.Subject[Any](), reactivex.Subject[Any]()
    Flux.first_with_value(one, two).subscribe(None).dispose()
    assert ([], []) == (one.observers, two.observers)
    late = Probe(1)
    first = BehaviorSubject(0)
    assert [item(0), END] == signals(Flux.first_with_value(first, late.source).take(1))
    assert 0 == late.subscribed


def test_take_until_other_ends_at_its_first_item_or_its_end() -> None:
    """Its error is the error; the source is cancelled; nothing of it is left at an end of the source."""
    for end in (lambda s: s.on_next(1), lambda s: s.on_completed()):
        source, other = reactivex.Subject[Any](), reactivex.Subject[Any]()
        watcher = watch(Flux.from_(source).take_until_other(other))
        source.on_next(1)
        end(other)
        source.on_next(2)
        assert ([item(1), END], []) == (watcher.signals, source.observers)
    source, other = reactivex.Subject[Any](), reactivex.Subject[Any]()
    watcher = watch(Flux.from_(source).take_until_other(other))
    other.on_error(FAILURE)
    assert [error(FAILURE)] == watcher.signals
    for end in (lambda s: s.on_completed(), lambda s: s.on_error(FAILURE)):
        source, other = reactivex.Subject[Any](), reactivex.Subject[Any]()
        watch(Flux.from_(source).take_until_other(other))
        end(source)
        assert [] == other.observers


# to_iterable


def test_a_stream_in_a_plain_loop() -> None:
    """Item by item; an error is raised."""
    stream = semflux.parse(ANSWER, dialect="openai-chat")
    assert ["a", "b", "c"] == list(stream.text().to_iterable())
    assert [None] == list(Flux.just(None).to_iterable())
    with pytest.raises(ValueError, match="mine"):
        list(Flux.error(FAILURE).to_iterable())


def test_leaving_a_plain_loop_cancels() -> None:
    """By break, and by close; it is no more than 64 items ahead."""
    made: list[int] = []
    ends: list[Any] = []

    def endless(sink: Any) -> None:
        made.append(1)
        sink.next(len(made))

    for number in Flux.generate(endless).do_finally(ends.append).to_iterable():
        if number == 3:
            break
    assert (["CANCEL"], True) == (ends, len(made) <= 67)
    items: Iterator[Any] = Flux.generate(endless).do_finally(ends.append).to_iterable()
    next(items)
    items.close()  # type: ignore[attr-defined]  # it is a generator
    assert 2 == len(ends)


async def test_a_plain_loop_is_refused_where_a_loop_is_running() -> None:
    """It would wait for itself."""
    with pytest.raises(BlockingInLoopError, match="to_iterable"):
        next(iter(Flux.just(1).to_iterable()))
