"""Usage: merging within a step and adding over steps are two operations."""

from __future__ import annotations

from functools import reduce

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semflux.frozen import FrozenDict
from semflux.usage import Usage, total
from tests.events.strategies import usages

TOKENS = [field.name for field in attrs.fields(Usage) if field.name.endswith("_tokens")]


PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""To draw a usage takes longer than to add it, on a busy machine too long for Hypothesis."""


def step(input_tokens: int, reasoning: int, output: int, whole: int) -> Usage:
    return Usage(
        input_tokens=input_tokens, reasoning_tokens=reasoning, output_tokens=output, total_tokens=whole
    )


def count(name: str, value: int) -> Usage:
    return Usage.from_dict({name: value})


STEPS = [step(10, 2, 5, 15), step(20, 3, 7, 27), step(30, 0, 9, 39)]


def test_steps_are_added() -> None:
    """The contract's example."""
    assert total(STEPS) == step(60, 5, 21, 81)


def test_frames_of_one_step_replace_each_other() -> None:
    """Field by field: a provider that repeats its counts is not counted twice."""
    first = Usage(input_tokens=10, output_tokens=1, service_tier="standard", details={"a": 1})
    last = Usage(output_tokens=7, reasoning_tokens=2, details={"b": 2})
    assert first.merge(last) == Usage(
        input_tokens=10, output_tokens=7, reasoning_tokens=2, service_tier="standard", details={"b": 2}
    )


def test_an_explicit_zero_replaces_and_an_absence_does_not() -> None:
    """None is "not said"; 0 is said."""
    before = Usage(input_tokens=10, output_tokens=5)
    assert before.merge(Usage(output_tokens=0)) == Usage(input_tokens=10, output_tokens=0)
    assert before.merge(Usage()) is before


def test_requests_of_server_tools_are_merged_by_kind() -> None:
    """A later frame that names one kind leaves the others."""
    merged = Usage(requests={"web_search": 1, "fetch": 2}).merge(Usage(requests={"web_search": 3}))
    assert merged.requests == {"web_search": 3, "fetch": 2}


def test_requests_of_server_tools_are_added_by_kind() -> None:
    """Over steps."""
    added = Usage(requests={"web_search": 1}).add(Usage(requests={"web_search": 3, "fetch": 1}))
    assert added.requests == {"web_search": 4, "fetch": 1}
    assert type(added.requests) is FrozenDict


def test_labels_keep_the_first_and_vendor_objects_stay_with_their_steps() -> None:
    """A sum has the tier and region of its first step that had one, and nobody's details."""
    one = Usage(region="eu", details={"a": 1})
    two = Usage(service_tier="batch", region="us", details={"b": 1})
    assert one.add(two) == Usage(service_tier="batch", region="eu")


@pytest.mark.parametrize("name", TOKENS)
def test_what_no_step_said_is_none_in_the_sum(name: str) -> None:
    """And what one of them said is there, zeros too."""
    assert getattr(Usage().add(Usage()), name) is None
    assert getattr(count(name, 0).add(Usage()), name) == 0
    assert getattr(Usage().add(count(name, 4)), name) == 4
    assert getattr(count(name, 3).add(count(name, 4)), name) == 7


def test_costs_are_added() -> None:
    """Where a price table gave them."""
    assert Usage(cost=0.25).add(Usage(cost=0.5)).cost == 0.75
    assert Usage().add(Usage()).cost is None


def test_a_total_of_nothing_is_none() -> None:
    """Where the provider gave no usage there is none, not one full of zeros."""
    assert total([]) is None
    assert total([None, None]) is None


def test_a_total_of_one_step_is_that_steps_usage() -> None:
    """With its details: nothing was added."""
    only = Usage(input_tokens=1, details={"a": 1})
    assert total([None, only, None]) is only


def test_uncached_tokens_are_those_that_no_cache_spared() -> None:
    """Prompt tokens include cached ones, whatever the vendor's own way of counting."""
    assert Usage(input_tokens=100, cache_read_tokens=70, cache_write_tokens=20).uncached_tokens == 10
    assert Usage(input_tokens=100).uncached_tokens == 100
    assert Usage(cache_read_tokens=70).uncached_tokens is None


def test_to_dict_holds_what_is_present() -> None:
    """Zeros and empty vendor objects are present, None and no requests are not."""
    usage = Usage(input_tokens=0, requests={"web_search": 1}, details={"a": [1]}, cost=0.0)
    assert usage.to_dict() == {
        "input_tokens": 0,
        "requests": {"web_search": 1},
        "details": {"a": [1]},
        "cost": 0.0,
    }
    assert Usage().to_dict() == {}
    assert Usage(details={}).to_dict() == {"details": {}}


@given(usages)
@PATIENT
def test_to_dict_and_from_dict_are_inverse(usage: Usage) -> None:
    """For every usage."""
    assert Usage.from_dict(usage.to_dict()) == usage


@given(usages, usages)
@PATIENT
def test_merging_is_idempotent(one: Usage, two: Usage) -> None:
    """The same frame twice counts once."""
    merged = one.merge(two)
    assert merged.merge(two) == merged


@given(st.lists(usages.map(lambda usage: attrs.evolve(usage, cost=None)), max_size=4))
@PATIENT
def test_counts_are_added_in_any_order(parts: list[Usage]) -> None:
    """Labels aside, which keep the first."""

    def plain(usage: Usage) -> Usage:
        return attrs.evolve(usage, service_tier=None, region=None, details=None)

    start = Usage()
    forward = reduce(Usage.add, parts, start)
    backward = reduce(Usage.add, reversed(parts), start)
    assert plain(forward) == plain(backward)
