"""flat_map_sequential: many at once, in order; and errors that wait until all have ended."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
import reactivex

import semflux
from semflux import Flux
from semflux.errors import CompositeError, ConfigurationError, ConnectionLostError
from semflux.operators import flat_map_sequential
from tests.frames import DONE, cc, cuts
from tests.operators.watching import END, Probe, error, item, raising, signals, watch

FAILURE, OTHER = ValueError("mine"), KeyError("other")
ANSWER = b"".join([cc({"content": f"{n} "}) for n in range(5)]) + cc(finish="stop") + DONE


def subjects(count: int) -> list[reactivex.Subject[Any]]:
    return [reactivex.Subject() for _ in range(count)]


def test_all_are_subscribed_to_and_come_in_order() -> None:
    """What comes before its turn waits; a source that has ended does, too."""
    one, two, three = subjects(3)
    watcher = watch(Flux.just(one, two, three).flat_map_sequential(lambda inner: inner))
    three.on_next("c")
    three.on_completed()
    two.on_next("b")
    one.on_next("a")
    assert [item("a")] == watcher.signals
    one.on_completed()
    assert [item("a"), item("b")] == watcher.signals
    two.on_next(None)
    two.on_completed()
    assert [item("a"), item("b"), item(None), item("c"), END] == watcher.signals
    assert [END] == signals(Flux.empty().flat_map_sequential(lambda inner: inner))


def test_one_that_waits_for_its_turn_counts_as_one_at_once() -> None:
    """Else all would wait in memory."""
    one, two = subjects(2)
    probe = Probe(3)
    watcher = watch(Flux.just(one, two, probe.source).flat_map_sequential(lambda inner: inner, 2))
    two.on_completed()
    assert 0 == probe.subscribed
    one.on_completed()
    assert [item(3), END] == watcher.signals
    with pytest.raises(ConfigurationError, match="flat_map_sequential"):
        flat_map_sequential(lambda inner: inner, 0)


def test_an_error_cuts_at_once() -> None:
    """Of one before its turn, too; what waited comes no more, and the others are cancelled."""
    one, two = subjects(2)
    watcher = watch(Flux.just(one, two).flat_map_sequential(lambda inner: inner))
    two.on_next(2)
    two.on_error(FAILURE)
    assert ([error(FAILURE)], []) == (watcher.signals, one.observers)
    probe = Probe(1, 2)
    assert [error(FAILURE)] == signals(Flux.from_(probe.source).flat_map_sequential(raising(FAILURE)))
    assert 1 == probe.disposed


def test_leaving_among_items_that_waited_cancels_all() -> None:
    one, two, three = subjects(3)
    watcher = watch(Flux.just(one, two, three).flat_map_sequential(lambda inner: inner).take(1))
    two.on_next(1)
    two.on_next(2)
    one.on_completed()
    three.on_next(3)
    assert ([item(1), END], [], []) == (watcher.signals, two.observers, three.observers)


async def test_chat_streams_run_at_once_and_come_in_order() -> None:
    """Three answers: each is begun before the first one has ended."""
    order: list[str] = []

    def text(name: str) -> Flux[str]:
        async def chunks() -> Any:
            order.append(f"begin {name}")
            for piece in cuts(ANSWER, 90):
                await asyncio.sleep(0)
                yield piece
            order.append(f"end {name}")

        return semflux.parse(chunks(), dialect="openai-chat").text().map(lambda piece: name + piece)

    made = Flux.just("a", "b", "c").flat_map_sequential(text)
    assert [f"{name}{n} " for name in "abc" for n in range(5)] == [piece async for piece in made]
    assert ["begin a", "begin b", "begin c"] == order[:3]


# Errors that wait


def failing(value: Any) -> Flux[Any]:
    """The value, then an error, where it is one."""
    return Flux.just(value) if isinstance(value, int) else Flux.error(value)


def test_errors_may_wait_until_all_have_ended() -> None:
    """One is told as it is."""
    for many in (
        Flux.just(1, FAILURE, 2).concat_map(failing, delay_errors=True),
        Flux.just(1, FAILURE, 2).flat_map(failing, delay_errors=True),
        Flux.just(1, FAILURE, 2).flat_map_sequential(failing, delay_errors=True),
        Flux.just(1, 2).concat_with(Flux.error(FAILURE)).flat_map(failing, delay_errors=True),
    ):
        assert [item(1), item(2), error(FAILURE)] == signals(many)
    assert [item(1), error(FAILURE)] == signals(Flux.just(1, FAILURE, 2).concat_map(failing))


def test_the_error_of_the_source_waits_for_those_that_are_at_work() -> None:
    source, inner = subjects(2)
    watcher = watch(Flux.from_(source).flat_map(lambda _: inner, delay_errors=True))
    source.on_next(1)
    source.on_error(FAILURE)
    inner.on_next(1)
    assert [item(1)] == watcher.signals
    inner.on_completed()
    assert [item(1), error(FAILURE)] == watcher.signals


def test_several_errors_come_as_one() -> None:
    """It has them in their order, and shows them all in a traceback."""
    told = watch(Flux.just(FAILURE, 1, OTHER).concat_map(failing, delay_errors=True))
    both = told.error
    assert [item(1), error(both)] == told.signals
    assert isinstance(both, CompositeError)
    assert (FAILURE, OTHER) == both.errors
    assert isinstance(both.__cause__, ExceptionGroup)
    assert (FAILURE, OTHER) == both.__cause__.exceptions
    assert ("composite", "2 sources failed (ValueError, KeyError): see its `errors`") == (
        both.kind,
        str(both),
    )


def test_a_function_that_raises_cuts_at_once_all_the_same() -> None:
    probe = Probe(1, 2)
    made = Flux.from_(probe.source).concat_map(raising(FAILURE), delay_errors=True)
    assert ([error(FAILURE)], 1) == (signals(made), probe.disposed)


def test_several_errors_survive_pickling() -> None:
    both: Any = CompositeError.of([ConnectionLostError("a"), ConnectionLostError("b")])
    again = pickle.loads(pickle.dumps(both))
    assert (str(both), ["a", "b"]) == (str(again), [str(each) for each in again.errors])
