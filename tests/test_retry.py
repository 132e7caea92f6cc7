"""`Retry` as a value: its arithmetic, its order of checks, and what it says when it is exhausted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from semflux import Flux, Retry, RetrySignal
from semflux import operators as ops
from semflux.errors import (
    AuthenticationError,
    ConfigurationError,
    OverloadedError,
    RateLimitError,
    RetryExhaustedError,
    SemfluxError,
    ServerError,
    TruncatedStreamError,
)
from semflux.response import ChatResponse
from semflux.retry import RetryBudget, matches

ALMOST_ONE = math.nextafter(1.0, 0.0)
BUSY = ServerError("busy")


def signal(failure: BaseException = BUSY, total: int = 0, in_a_row: int | None = None) -> RetrySignal:
    return RetrySignal(
        failure=failure,
        total_retries=total,
        total_retries_in_a_row=total if in_a_row is None else in_a_row,
    )


def lowest(policy: Retry, count: int) -> list[float]:
    return [policy.next_wait(signal(total=n), lambda: 0.0) for n in range(count)]


def highest(policy: Retry, count: int) -> list[float]:
    return [round(policy.next_wait(signal(total=n), lambda: ALMOST_ONE), 9) for n in range(count)]


# The wait


def test_backoff_doubles_and_is_moved_by_up_to_half() -> None:
    """The first wait is never below the minimum."""
    policy = Retry.backoff(5, 1.0)
    assert [1.0, 1.0, 2.0, 4.0, 8.0] == lowest(policy, 5)
    assert [1.5, 3.0, 6.0, 12.0, 24.0] == highest(policy, 5)


def test_no_wait_is_above_the_maximum() -> None:
    policy = Retry.backoff(5, 1.0).max_backoff(5.0)
    assert [1.0, 1.0, 2.0, 2.5, 2.5] == lowest(policy, 5)
    assert [1.5, 3.0, 5.0, 5.0, 5.0] == highest(policy, 5)


def test_chance_is_spread_evenly_over_what_the_bounds_leave() -> None:
    """From 2 to 4 here: the half above the maximum is not heaped up on it."""
    policy = Retry.backoff(5, 1.0).max_backoff(4.0)
    chances = iter((0.25, 0.5, 0.75))
    assert [2.5, 3.0, 3.5] == [policy.next_wait(signal(total=2), lambda: next(chances)) for _ in range(3)]


def test_without_jitter_the_wait_is_exact() -> None:
    policy = Retry.backoff(4, 0.5).jitter(0).max_backoff(3)
    assert [0.5, 1.0, 2.0, 3.0] == lowest(policy, 4) == highest(policy, 4)


def test_full_jitter_goes_from_the_minimum_to_twice_the_base() -> None:
    policy = Retry.backoff(3, 1.0).jitter(1)
    assert [1.0, 1.0, 1.0] == lowest(policy, 3)
    assert [2.0, 4.0, 8.0] == highest(policy, 3)


@pytest.mark.parametrize(
    "jitter,spread", [(0.29, 0.29), (0.57, 0.57), (0.999, 0.99), (0.004, 0.0), (0.1, 0.1)]
)
def test_the_jitter_counts_to_two_digits(jitter: float, spread: float) -> None:
    policy = Retry.backoff(1, 100.0).jitter(jitter)
    assert [round(100 * (1 + spread), 9)] == highest(policy, 1)


def test_the_multiplier_is_the_base_of_the_power() -> None:
    assert [1.0, 3.0, 9.0] == lowest(Retry.backoff(3, 1.0).multiplier(3).jitter(0), 3)
    assert [1.0, 1.0, 1.0] == lowest(Retry.backoff(3, 1.0).multiplier(1).jitter(0), 3)


def test_a_wait_of_nothing_stays_nothing() -> None:
    for policy in (Retry.max(3), Retry.indefinitely(), Retry.max_in_a_row(3), Retry.backoff(3, 0)):
        assert [0.0, 0.0] == highest(policy, 2)


def test_a_fixed_delay_is_fixed() -> None:
    assert [2.5] * 4 == lowest(Retry.fixed_delay(9, 2.5), 4) == highest(Retry.fixed_delay(9, 2.5), 4)
    assert [2.5] * 2 == highest(Retry.fixed_delay(9, 2.5).jitter(0.5), 2)
    longer = Retry.fixed_delay(9, 1.0).max_backoff(4.0)
    assert [1.0, 2.0, 4.0] == lowest(longer, 3) == highest(longer, 3)


@pytest.mark.parametrize("done", [1_000, 1_100, 10_000, 10**9])
def test_the_power_may_overflow(done: int) -> None:
    """A wait without a bound is for ever then, and still a number; one with a bound is the bound."""
    wait = Retry.backoff(10**12, 1e-3).next_wait(signal(total=done))
    assert 1e200 < wait < math.inf
    bounded = Retry.backoff(10**12, 1.0).max_backoff(8.0).next_wait(signal(total=done), lambda: 0.0)
    assert 4.0 == bounded


@example(low=1.3738366750767455, extra=0, jitter=1, factor=1.75, done=30, chance=0, bounded=False)
@given(
    low=st.floats(0.001, 1e6),
    extra=st.floats(0, 1e6),
    jitter=st.floats(0, 1),
    factor=st.floats(1, 10),
    done=st.integers(0, 2_000),
    chance=st.floats(0, ALMOST_ONE),
    bounded=st.booleans(),
)
def test_a_wait_is_never_below_the_minimum_nor_above_the_maximum(
    low: float, extra: float, jitter: float, factor: float, done: int, chance: float, bounded: bool
) -> None:
    policy = Retry.backoff(10**6, low).jitter(jitter).multiplier(factor)
    if bounded:
        policy = policy.max_backoff(low + extra)
    wait = policy.next_wait(signal(total=done), lambda: chance)
    assert low <= wait <= (low + extra if bounded else math.inf)
    base = min(low * min(factor**done if done * math.log(factor) < 600 else 1e260, 1e290), 1e300)
    if not bounded and base < 1e250:
        assert base * (1 - jitter) * (1 - 1e-9) <= wait <= base * (1 + jitter) * (1 + 1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Retry.max(-1),
        lambda: Retry.max(1.5),  # type: ignore[arg-type]
        lambda: Retry.max(True),
        lambda: Retry.max_in_a_row("3"),  # type: ignore[arg-type]
        lambda: Retry.backoff(3, -1),
        lambda: Retry.backoff(3, math.inf),
        lambda: Retry.backoff(3, math.nan),
        lambda: Retry.backoff(3, "1"),  # type: ignore[arg-type]
        lambda: Retry.fixed_delay(-1, 1),
        lambda: Retry.backoff(3, 1).jitter(1.01),
        lambda: Retry.backoff(3, 1).jitter(-0.01),
        lambda: Retry.backoff(3, 1).jitter(math.nan),
        lambda: Retry.backoff(3, 1).multiplier(0.5),
        lambda: Retry.backoff(3, 1).multiplier(math.inf),
        lambda: Retry.backoff(3, 2).max_backoff(1),
        lambda: Retry.backoff(3, 2).max_backoff(math.nan),
        lambda: Retry.max(3).retry_after_limit(-1),
        lambda: Retry.max(3).retry_after_limit(math.nan),
        lambda: ops.retry_when(3),  # type: ignore[arg-type]
        lambda: Flux.just(1).retry(-1),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: Retry.max(-1), "a number of retries is a whole number from 0 up, not -1"),
        (lambda: Retry.backoff(3, -1), "the wait of a retry is a number of seconds from 0 up, not -1"),
        (lambda: Retry.max(3).jitter(2), "the jitter of a retry is a fraction from 0 to 1, not 2"),
        (lambda: Retry.max(3).multiplier(0), "the multiplier of a retry is a number from 1 up, not 0"),
        (
            lambda: Retry.backoff(3, 2).max_backoff(1),
            "the longest wait of a retry is a number of seconds not below its shortest, 2; not 1",
        ),
        (
            lambda: Retry.max(3).retry_after_limit(-1),
            "retry_after_limit is a number of seconds from 0 up, not -1",
        ),
    ],
)
def test_a_refusal_says_what_may_be_given_and_what_was(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        make()
    assert said == str(raised.value)


def test_a_maximum_may_be_infinite() -> None:
    assert [1.0, 2.0] == lowest(Retry.backoff(3, 1).max_backoff(math.inf).jitter(0), 2)
    assert 1e200 < Retry.backoff(10**9, 1).max_backoff(math.inf).next_wait(signal(total=10**6)) < math.inf


# Order of checks


def test_the_filter_comes_first_and_gives_the_failure_itself() -> None:
    """Even where the count is used up."""
    failure = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as raised:
        Retry.max(0).filter(OSError).next_wait(signal(failure, total=7))
    assert raised.value is failure
    assert failure.__cause__ is None


def test_then_the_count() -> None:
    """Even where the provider asks for more than may be waited for."""
    failure = RateLimitError("slow down", retry_after=1e9)
    with pytest.raises(RetryExhaustedError) as raised:
        Retry.max(2).next_wait(signal(failure, total=2))
    assert raised.value.__cause__ is failure


def test_then_the_wait() -> None:
    failure = RateLimitError("slow down", retry_after=60.001)
    with pytest.raises(RateLimitError) as raised:
        Retry.max(2).next_wait(signal(failure))
    assert raised.value is failure


@pytest.mark.parametrize(
    "asked,wait",
    [
        (None, 2.0),
        (0, 2.0),
        (-5, 2.0),
        (1, 2.0),
        (2.5, 2.5),
        (60, 60.0),
        (60.0, 60.0),
        (math.nan, 2.0),
        ("30", 2.0),
        (True, 2.0),
    ],
)
def test_a_provider_that_asks_for_a_longer_wait_gets_it(asked: Any, wait: float) -> None:
    failure = RateLimitError("slow down", retry_after=asked)
    assert wait == Retry.backoff(3, 2.0).jitter(0).max_backoff(3).next_wait(signal(failure))


def test_errors_of_others_may_ask_too() -> None:
    class TheirError(Exception):
        retry_after = 12.0

    assert 12.0 == Retry.max(1).next_wait(signal(TheirError()))


def test_how_long_a_provider_may_ask_for_can_be_set() -> None:
    failure = RateLimitError("slow down", retry_after=100)
    assert 100.0 == Retry.max(1).retry_after_limit(100).next_wait(signal(failure))
    with pytest.raises(RateLimitError):
        Retry.max(1).retry_after_limit(99).next_wait(signal(failure))
    with pytest.raises(RateLimitError):
        Retry.max(1).retry_after_limit(0).next_wait(signal(RateLimitError("", retry_after=0.1)))


def test_by_default_what_is_worth_it_is_tried_again() -> None:
    """Ours say so themselves; those of others are."""
    policy = Retry.max(1)
    for worth_it in (OverloadedError("x"), TruncatedStreamError("x"), ValueError("x"), OSError()):
        assert 0.0 == policy.next_wait(signal(worth_it))
    for failure in (AuthenticationError("x"), ConfigurationError("x"), ServerError("x", retryable=False)):
        with pytest.raises(SemfluxError) as raised:
            policy.next_wait(signal(failure))
        assert raised.value is failure


@pytest.mark.parametrize(
    "errors,yes,no",
    [
        (ValueError, ValueError(), KeyError()),
        ((ValueError, OSError), OSError(), KeyError()),
        (lambda error: "x" in str(error), ValueError("x"), ValueError("y")),
    ],
)
def test_a_filter_is_a_class_or_several_or_a_predicate(errors: Any, yes: Exception, no: Exception) -> None:
    assert 0.0 == Retry.max(1).filter(errors).next_wait(signal(yes))
    with pytest.raises(type(no)):
        Retry.max(1).filter(errors).next_wait(signal(no))
    assert matches(None)(no)


def test_a_filter_replaces_the_one_before_and_modify_filter_builds_on_it() -> None:
    narrow = Retry.max(1).filter(ValueError)
    assert 0.0 == narrow.filter(KeyError).next_wait(signal(KeyError()))
    both = narrow.modify_filter(lambda before: lambda error: before(error) and "x" in str(error))
    assert 0.0 == both.next_wait(signal(ValueError("x")))
    for failure in (ValueError("y"), KeyError("x")):
        with pytest.raises(type(failure)):
            both.next_wait(signal(failure))


def test_in_a_row_counts_and_waits_from_the_last_item() -> None:
    policy = Retry.backoff(3, 1.0).jitter(0)
    late = signal(total=50, in_a_row=1)
    assert 2.0 == policy.transient_errors().next_wait(late)
    assert 0.0 == Retry.max_in_a_row(3).next_wait(late)
    for refusing in (policy, policy.transient_errors().transient_errors(False), Retry.max(3)):
        with pytest.raises(RetryExhaustedError):
            refusing.next_wait(late)
    with pytest.raises(RetryExhaustedError, match="3/3"):
        Retry.max_in_a_row(3).next_wait(signal(total=50, in_a_row=3))


# Exhaustion


def test_the_exhausted_error_tells_of_the_last_failure() -> None:
    partial = ChatResponse(partial=True)
    failure = RateLimitError(
        "slow", provider="acme", status=429, code="slow", request_id="r", retry_after=3, attempts=1, partial=partial
    )  # fmt: skip
    with pytest.raises(
        RetryExhaustedError, match=r"^retries exhausted: 2/2; the last failure: slow$"
    ) as raised:
        Retry.max(2).next_wait(signal(failure, total=2))
    error = raised.value
    assert ("acme", 429, "slow", "r", 3, 3) == (
        error.provider,
        error.status,
        error.code,
        error.request_id,
        error.retry_after,
        error.attempts,
    )
    assert error.partial is partial
    assert error.__cause__ is failure
    assert not error.retryable


def test_attempts_that_were_more_than_those_of_the_policy_count() -> None:
    """The model sends a request again by itself, too."""
    with pytest.raises(RetryExhaustedError) as raised:
        Retry.max(2).next_wait(signal(ServerError("x", attempts=9), total=2))
    assert 9 == raised.value.attempts


def test_the_exhausted_error_of_an_error_of_others() -> None:
    with pytest.raises(RetryExhaustedError) as raised:
        Retry.max(0).next_wait(signal(ValueError("x")))
    assert (1, None) == (raised.value.attempts, raised.value.status)


def test_another_error_may_be_made_of_it() -> None:
    failure, made = ValueError("x"), KeyError("made")
    seen: list[Any] = []

    def make(policy: Retry, told: RetrySignal) -> BaseException:
        seen.append((policy, told))
        return made

    policy = Retry.max(0).on_retry_exhausted_throw(make)
    with pytest.raises(KeyError) as raised:
        policy.next_wait(signal(failure))
    assert raised.value is made
    assert made.__cause__ is failure
    assert [(policy, signal(failure))] == seen


def test_the_failure_itself_is_not_its_own_cause() -> None:
    """Whoever follows causes would never come to an end."""
    failure = ValueError("x")
    with pytest.raises(ValueError, match="x"):
        Retry.max(0).on_retry_exhausted_throw(lambda policy, told: told.failure).next_wait(signal(failure))
    assert failure.__cause__ is None


def test_a_cause_that_the_made_error_has_stays() -> None:
    made, cause = KeyError("made"), OSError()
    made.__cause__ = cause
    with pytest.raises(KeyError):
        Retry.max(0).on_retry_exhausted_throw(lambda *_: made).next_wait(signal(ValueError()))
    assert made.__cause__ is cause


def test_a_policy_is_a_value() -> None:
    """Each method gives a changed copy."""
    policy = Retry.backoff(3, 1.0)
    assert policy == Retry.backoff(3, 1.0)
    changed = policy.jitter(0).restart().transient_errors()
    assert policy == Retry.backoff(3, 1.0) != changed
    assert (True, False) == (policy.before_content, policy.restarts)
    assert (False, True) == (changed.before_content, changed.restarts)
    assert policy.restart().restart(False) == policy


def test_a_budget_pays_for_one_retry_with_ten_requests() -> None:
    budget = RetryBudget()
    assert [True] * 10 + [False] == [budget.take() for _ in range(11)]
    for _ in range(9):
        budget.request()
    assert not budget.take()
    budget.request()
    assert budget.take()
    assert not budget.take()
    for _ in range(1_000):
        budget.request()
    assert [True] * 10 + [False] == [budget.take() for _ in range(11)]
