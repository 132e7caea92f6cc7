"""Every operator keeps the contract of operators, and the contract finds those that don't."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import reactivex
from reactivex import Observable, abc
from reactivex import operators as rx
from reactivex.disposable import Disposable

from semflux import operators as ops
from semflux.errors import ConfigurationError
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.testing import ContractError, check_operator
from semflux.testing.operator_rules import RULES
from tests.testing.operator_table import CASES, NOT_OPERATORS, OPERATORS, Entry


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_every_operator_keeps_the_contract(case: Entry) -> None:
    check_operator(case.make, **case.flags)


def test_every_operator_is_in_the_table() -> None:
    """A new one needs an entry in tests/testing/operator_table.py."""
    assert set(ops.__all__) - NOT_OPERATORS - set(OPERATORS) == set()
    assert set(OPERATORS) - set(ops.__all__) == set()


@pytest.mark.parametrize(
    "make, flags",
    [
        (rx.map(str), {}),
        (rx.skip(1), {}),
        (rx.take(2), {"ends_early": True, "skip": ["cancels_its_source_before_it_ends"]}),
        (lambda source: source.pipe(rx.scan(lambda a, b: b), ops.map_(str)), {}),
        (lambda source: source.collect_list(), {"holds_items": True}),
        (rx.catch(reactivex.of(9)), {"recovers": True}),
    ],
    ids=["map", "skip", "take", "mixed", "mono", "catch"],
)
def test_operators_of_rxpy_can_be_checked(make: Any, flags: Any) -> None:
    check_operator(make, **flags)


# Operators with one fault each.


class Faulty(Link[Any, Any]):
    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self.below.on_next(value)


class EndsTwice(Faulty):
    def on_completed(self) -> None:
        self.below.on_completed()
        self.below.on_completed()


class Deaf(Faulty):
    """Minds no end."""

    def on_next(self, value: Any) -> None:
        self.below.on_next(value)

    def on_error(self, error: Exception) -> None:
        self.below.on_error(error)

    def on_completed(self) -> None:
        self.below.on_completed()


class Wraps(Faulty):
    def on_error(self, error: Exception) -> None:
        super().on_error(RuntimeError(str(error)))


class Swallows(Faulty):
    def on_error(self, error: Exception) -> None:
        super().on_completed()


class Leaks(Faulty):
    def dispose(self) -> None:
        self.stopped = True


class Insists(Faulty):
    def dispose(self) -> None:
        self.stopped = True
        if self.upstream is not None:
            self.upstream.dispose()


class Ends(Faulty):
    """It forgets its source when it ends early."""

    def on_next(self, value: Any) -> None:
        super().on_next(value)
        self.on_completed()


class Keeps(Faulty):
    kept: list[Any] = []  # noqa: RUF012  # the fault

    def __init__(self, below: Any, run: Run) -> None:
        super().__init__(below, run)
        self.kept.append(below)


class KeepsSource(Faulty):
    def connect(self, upstream: abc.DisposableBase) -> None:
        super().connect(upstream)
        self.also = upstream


class Recurses(Faulty):
    depth = 0

    def on_next(self, value: Any) -> None:
        self.depth += 1
        self._deeper(self.depth, value)

    def _deeper(self, levels: int, value: Any) -> None:
        if levels:
            self._deeper(levels - 1, value)
        elif not self.stopped:
            self.below.on_next(value)


class RefusesNone(Faulty):
    def on_next(self, value: Any) -> None:
        if value is None:
            self.fail(ValueError("None"))
        else:
            super().on_next(value)


class Empty(Faulty):
    def on_next(self, value: Any) -> None:
        pass


def once() -> Callable[[Any], Observable[Any]]:
    """State that belongs to the operator instead of the subscription: every other one gets nothing."""
    made: list[Any] = []

    def make(below: Any, run: Run) -> Link[Any, Any]:
        made.append(1)
        return Faulty(below, run) if len(made) % 2 else Empty(below, run)

    return lift(make)


def own_run(source: Any) -> Observable[Any]:
    def subscribe(observer: Any, scheduler: Any = None) -> abc.DisposableBase:
        disposable: abc.DisposableBase = source.subscribe(observer)
        return disposable

    return Observable(subscribe)


def never_disposable(source: Any) -> Observable[Any]:
    def subscribe(observer: Any, scheduler: Any = None) -> abc.DisposableBase:
        source.subscribe(observer, scheduler=scheduler)
        return Disposable()

    return Observable(subscribe)


def of(link: type[Link[Any, Any]]) -> Callable[[Any], Observable[Any]]:
    return lift(lambda below, run: link(below, run))


def raises(source: Any) -> Any:
    raise KeyError("no such thing")


@pytest.mark.parametrize(
    "make, rules",
    [
        (of(EndsTwice), {"ends_once", "nothing_after_the_end"}),
        (of(Deaf), {"nothing_after_the_end", "nothing_after_dispose", "dispose_inside_on_next"}),
        (of(Wraps), {"passes_errors_on"}),
        (of(Swallows), {"passes_errors_on"}),
        (of(Leaks), {"dispose_reaches_the_source", "dispose_inside_on_next", "lets_go_of_its_source"}),
        (of(Insists), {"dispose_reaches_the_source", "lets_go_of_its_source"}),
        (of(Ends), {"cancels_its_source_before_it_ends"}),
        (of(Keeps), {"lets_go_of_its_subscriber"}),
        (of(KeepsSource), {"lets_go_of_its_source"}),
        (of(Recurses), {"takes_many_items"}),
        (of(RefusesNone), {"takes_none"}),
        (once(), {"works_twice"}),
        (own_run, {"hands_the_run_on"}),
        (never_disposable, {"dispose_reaches_the_source"}),
        (raises, {rule.__name__ for rule in RULES}),
    ],
)
def test_a_broken_rule_is_found_and_named(make: Any, rules: set[str]) -> None:
    """By name, in one error."""
    with pytest.raises(ContractError) as caught:
        check_operator(make)

    assert rules - set(caught.value.broken) == set()
    for rule in rules:
        assert f"  {rule}: " in str(caught.value)


def test_an_error_of_a_contract_survives_pickling() -> None:
    error = ContractError("this operator", {"ends_once": "it does not"})

    assert str(error) == str(pickle.loads(pickle.dumps(error)))
    assert str(error) == "this operator breaks 1 rule of its contract:\n  ends_once: it does not"


def test_flags_say_in_what_an_operator_differs() -> None:
    check_operator(of(Wraps), maps_errors=True)
    check_operator(of(Swallows), recovers=True)
    check_operator(of(RefusesNone), takes_none=False)
    check_operator(own_run, own_run=True)
    check_operator(once(), skip=["works_twice", "isolates_a_raising_subscriber"])


def test_a_rule_that_is_skipped_must_exist() -> None:
    with pytest.raises(ConfigurationError, match="no rule is called ends_twice"):
        check_operator(ops.take(1), skip=["ends_twice"])


def test_signals_inside_signals_are_found() -> None:
    """A Subject of RxPY's does not queue what is told from inside."""

    def again(source: Any) -> Observable[Any]:
        def subscribe(observer: Any, scheduler: Any = None) -> abc.DisposableBase:
            subject: reactivex.Subject[Any] = reactivex.Subject()
            given: abc.DisposableBase = subject.subscribe(observer)
            source.subscribe(
                subject.on_next,
                subject.on_error,
                subject.on_completed,
                scheduler=scheduler,
            )
            return given

        return Observable(subscribe)

    with pytest.raises(ContractError) as caught:
        check_operator(again)

    assert "dispose_reaches_the_source" in caught.value.broken
