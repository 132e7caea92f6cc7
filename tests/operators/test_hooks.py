"""The hooks that look at every operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from reactivex import abc

from semflux import Flux, Hooks
from semflux.errors import OperatorError
from semflux.operators.lift import Lifted
from tests.operators.watching import END, error, item, raising, signals, watch

FAILURE, OTHER = ValueError("mine"), KeyError("other")


@pytest.fixture(autouse=True)
def _reset() -> Iterator[None]:
    yield
    Hooks.reset()


def test_on_operator_error_gets_what_a_function_raised() -> None:
    """And may give another in its place."""
    told: list[Exception] = []
    Hooks.on_operator_error(told.append)
    assert [error(FAILURE)] == signals(Flux.just(1).map(raising(FAILURE)))
    assert [FAILURE] == told
    Hooks.on_operator_error(lambda raised: OTHER)
    assert [error(OTHER)] == signals(Flux.just(1).filter(raising(FAILURE)))
    assert [error(OTHER)] == signals(Flux.just(1).do_on_next(raising(FAILURE)))
    Hooks.on_operator_error(None)
    assert [error(FAILURE)] == signals(Flux.just(1).map(raising(FAILURE)))


@pytest.mark.parametrize(
    "operator",
    [
        lambda flux: flux.window_until(raising(FAILURE)),
        lambda flux: flux.group_by(raising(FAILURE)),
        lambda flux: flux.switch_map(raising(FAILURE)),
        lambda flux: flux.delay_until(raising(FAILURE)),
        lambda flux: flux.buffer_until(raising(FAILURE)),
    ],
    ids=["window_until", "group_by", "switch_map", "delay_until", "buffer_until"],
)
def test_on_operator_error_is_told_by_operators_that_end_in_a_way_of_their_own(operator: Any) -> None:
    """What they have open ends with the exception that the hook gave."""
    Hooks.on_operator_error(lambda raised: OTHER)
    assert [error(OTHER)] == signals(operator(Flux.just(1)))


def test_on_operator_error_is_not_told_other_errors() -> None:
    """Those of sources, and those of this library."""
    told: list[Exception] = []
    Hooks.on_operator_error(told.append)
    assert [error(FAILURE)] == signals(Flux.just(1).flat_map(lambda _: Flux.error(FAILURE)))
    assert [error(FAILURE)] == signals(Flux.error(FAILURE).map(str))
    typed = OperatorError("typed")
    assert [error(typed)] == signals(Flux.just(1).map(raising(typed)))
    assert [] == told


def test_a_hook_that_raises_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged by its class."""
    Hooks.on_operator_error(raising(OTHER))
    assert [error(FAILURE)] == signals(Flux.just(1).map(raising(FAILURE)))
    assert ["a hook for operators' errors raised KeyError"] == caplog.messages


def test_on_each_operator_may_take_its_place() -> None:
    """At assembly: a stream that is made already is not touched."""
    made: list[Any] = []

    def wrap(observable: abc.ObservableBase[Any]) -> abc.ObservableBase[Any]:
        made.append(observable)
        return observable

    before = Flux.just(1).map(str)
    Hooks.on_each_operator(wrap)
    assert [item("1"), END] == signals(before)
    assert [] == made
    assert [item("2"), END] == signals(Flux.just(1).map(lambda value: value + 1).map(str))
    assert [True, True] == [isinstance(each, Lifted) for each in made]
    Hooks.reset()
    Flux.just(1).map(str)
    assert 2 == len(made)


def test_on_operator_debug_tells_the_lines_of_the_chain() -> None:
    """From the one that failed to the subscriber."""
    Hooks.on_operator_debug()
    failed = watch(
        Flux.just(1)
        .map(raising(ValueError("mine")))
        .filter(lambda value: True)
    ).error  # fmt: skip
    notes = failed.__notes__
    assert 2 == len(notes)
    for note in notes:
        assert "assembled in test_on_operator_debug_tells_the_lines_of_the_chain" in note
        assert "test_hooks.py:" in note
    Hooks.reset()
    plain = watch(Flux.just(1).map(raising(ValueError("mine")))).error
    assert not hasattr(plain, "__notes__")
