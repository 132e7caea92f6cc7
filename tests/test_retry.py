"""`Retry`: its arithmetic and its order of checks, as values; then at work, on plain streams and in virtual time."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from typing import Any

import pytest
import reactivex
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex.disposable import Disposable

from semflux import ChatStream, Flux, Retry, RetrySignal
from semflux import operators as ops
from semflux.clock import VirtualClock
from semflux.contract import violations_of
from semflux.errors import (
    AuthenticationError,
    ConfigurationError,
    OperatorError,
    OverloadedError,
    RateLimitError,
    RetryExhaustedError,
    SemfluxError,
    ServerError,
    TotalTimeoutError,
    TruncatedStreamError,
)
from semflux.events import AnyChatEvent
from semflux.operators.run import Run
from semflux.response import ChatResponse
from semflux.retry import RetryBudget, matches
from tests.frames import cc, cu, sse, tc
from tests.operators.watching import Watcher, hooked
from tests.recovering import BEGUN, CUT, OK, WAITING, WAYS, model_of, settle, source, status, walk

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


@pytest.mark.parametrize("done", [1_000, 1_100, 10_000, 10**9])
def test_the_power_may_overflow(done: int) -> None:
    """A wait without a bound is for ever then, and still a number; one with a bound is the bound."""
    wait = Retry.backoff(10**12, 1e-3).next_wait(signal(total=done))
    assert 1e200 < wait < math.inf
    bounded = Retry.backoff(10**12, 1.0).max_backoff(8.0).next_wait(signal(total=done), lambda: 0.0)
    assert 4.0 == bounded


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
    assert wait >= low * (1 - 1e-12)
    assert wait <= (low + extra if bounded else math.inf) * (1 + 1e-12)
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


# At work: plain streams


class Failing:
    """A cold source that fails so many times, after so many items; asynchronous where a clock is given."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.subscribed = 0
        self.disposed = 0
        self.times: list[float] = []

    def flux(self, clock: VirtualClock | None = None) -> Flux[Any]:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            self.subscribed += 1
            if clock is not None:
                self.times.append(clock.monotonic())
            outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
            *items, end = outcome if isinstance(outcome, tuple) else (outcome,)
            for item in items:
                observer.on_next(item)
            if isinstance(end, Exception):
                observer.on_error(end)
            elif end is not None:
                observer.on_next(end)
                observer.on_completed()
            return Disposable(self._dispose)

        return Flux(reactivex.create(subscribe))

    def _dispose(self) -> None:
        self.disposed += 1


def watch(stream: Any) -> Watcher:
    watcher = Watcher()
    stream.subscribe(watcher.on_next, watcher.on_error, watcher.on_completed)
    return watcher


def virtual(stream: Flux[Any], clock: VirtualClock) -> Watcher:
    """Subscribed to in time of *clock*, without an event loop."""
    watcher = Watcher()
    run = Run()
    run.clock = clock
    watcher.subscription = stream.to_observable().subscribe(  # type: ignore[attr-defined]
        watcher.on_next, watcher.on_error, watcher.on_completed, scheduler=run.scheduler
    )
    return watcher


def test_retry_counts_re_tries() -> None:
    """n of them are n + 1 attempts, and the last failure is the error as it is."""
    errors = [ValueError(str(n)) for n in range(9)]
    failing = Failing(*errors)
    watcher = watch(failing.flux().retry(3))
    assert 4 == failing.subscribed
    assert watcher.error is errors[3]
    assert errors[3].__cause__ is None
    assert errors[3].__context__ is None


def test_retry_stops_at_success() -> None:
    failing = Failing(ValueError(), ValueError(), (1, 2, 3))
    assert [1, 2, 3] == watch(failing.flux().retry(5)).items
    assert 3 == failing.subscribed


def test_retry_of_nothing_and_retry_for_ever() -> None:
    assert watch(Failing(ValueError("x"), 1).flux().retry(0)).error.args == ("x",)
    failing = Failing(*[ValueError()] * 5_000, 1)
    assert [1] == watch(failing.flux().retry()).items
    assert 5_001 == failing.subscribed


def test_a_plain_stream_is_tried_again_before_its_first_item_only() -> None:
    failing = Failing(ValueError("a"), (1, ValueError("b")), 2)
    watcher = watch(failing.flux().retry(5))
    assert ([1], ("b",)) == (watcher.items, watcher.error.args)
    assert 2 == failing.subscribed


def test_a_plain_stream_may_restart() -> None:
    failing = Failing((1, ValueError()), (1, 2, ValueError()), (1, 2, 3))
    assert [1, 1, 2, 1, 2, 3] == watch(failing.flux().retry_when(Retry.max(2).restart())).items


def test_exhausted() -> None:
    failing = Failing(ValueError("a"), ValueError("b"), ValueError("c"))
    watcher = watch(failing.flux().retry_when(Retry.max(2)))
    assert isinstance(watcher.error, RetryExhaustedError)
    assert ("c",) == watcher.error.__cause__.args  # type: ignore[union-attr]
    assert 3 == watcher.error.attempts


def test_in_a_row_begins_anew_with_each_item() -> None:
    fail = ValueError()
    failing = Failing(fail, (1, fail), fail, (2, fail), fail, fail, (3, 4))
    policy = Retry.max_in_a_row(2).restart()
    watcher = watch(failing.flux().retry_when(policy))
    assert [1, 2] == watcher.items
    assert isinstance(watcher.error, RetryExhaustedError)
    assert 6 == failing.subscribed


def test_waits_grow_in_virtual_time() -> None:
    clock = VirtualClock()
    failing = Failing(*[ValueError()] * 4, 1)
    watcher = virtual(failing.flux(clock).retry_when(Retry.backoff(9, 1.0).jitter(0).max_backoff(3)), clock)
    clock.advance(100)
    assert [0.0, 1.0, 3.0, 6.0, 9.0] == failing.times
    assert [1] == watcher.items
    assert 0 == clock.pending


def test_the_jitter_is_that_of_the_given_chance() -> None:
    clock = VirtualClock()
    failing = Failing(*[ValueError()] * 3, 1)
    stream: Any = failing.flux(clock)
    chances = iter([0.0, 0.5, 0.25])
    virtual(
        Flux(ops.retry_when(Retry.backoff(9, 1.0), random=lambda: next(chances))(stream.to_observable())),
        clock,
    )
    clock.advance(100)
    # From [1, 1.5), from [1, 3), from [2, 6).
    assert [0.0, 1.0, 3.0, 6.0] == failing.times


def test_a_cancel_while_it_waits_leaves_nothing() -> None:
    clock = VirtualClock()
    failing = Failing(ValueError(), 1)
    watcher: Any = virtual(failing.flux(clock).retry_when(Retry.fixed_delay(3, 5)), clock)
    clock.advance(2)
    assert 1 == clock.pending
    watcher.subscription.dispose()
    watcher.subscription.dispose()
    assert 0 == clock.pending
    clock.advance(100)
    assert 1 == failing.subscribed
    assert [] == watcher.signals


def test_a_wait_without_a_loop_is_a_wrong_call() -> None:
    watcher = watch(Failing(ValueError("x"), 1).flux().retry_when(Retry.fixed_delay(3, 5)))
    assert isinstance(watcher.error, ConfigurationError)
    assert "block()" in str(watcher.error)
    assert ("x",) == watcher.error.__context__.args  # type: ignore[union-attr]


def test_a_wait_without_a_loop_is_told_by_error_too() -> None:
    """And no STATUS says that there will be another attempt."""
    seen = walk("parse", source("parse", BEGUN, OK).retry_when(Retry.fixed_delay(3, 5))).check()
    assert ["RESPONSE_START", "STEP_START", "STEP_END", "ERROR"] == seen.types
    assert isinstance(seen.error, ConfigurationError)


def test_a_source_that_fails_and_raises_fails_once() -> None:
    """What it raises after its failure has no receiver."""
    subscribed: list[int] = []

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        subscribed.append(1)
        observer.on_error(ValueError("told"))
        raise KeyError("raised")

    with hooked() as dropped:
        watcher = watch(Flux(reactivex.create(subscribe)).retry(3))
    assert ("told",) == watcher.error.args
    assert 4 == len(subscribed)
    assert [KeyError] * 3 == [type(error) for error in dropped.errors]


def test_the_subscription_of_the_latest_attempt_is_the_one_that_is_cancelled() -> None:
    """A source that failed at once must not be taken for the one that came after it."""
    closed: list[str] = []

    def failing(observer: Any, scheduler: Any = None) -> Any:
        observer.on_error(ValueError())
        return Disposable(lambda: closed.append("failing"))

    def silent(observer: Any, scheduler: Any = None) -> Any:
        return Disposable(lambda: closed.append("silent"))

    stream = Flux(reactivex.create(failing)).fallback_to(Flux(reactivex.create(silent)))
    subscription = stream.subscribe()
    closed.clear()
    subscription.dispose()
    assert ["silent"] == closed


# Callbacks


def recording(log: list[Any], name: str, result: Any = None) -> Callable[[RetrySignal], Any]:
    def callback(told: RetrySignal) -> Any:
        log.append((name, told.total_retries, type(told.failure).__name__))
        return result

    return callback


def test_callbacks_are_called_around_the_wait() -> None:
    clock = VirtualClock()
    log: list[Any] = []
    failing = Failing(ValueError(), KeyError(), 1)
    policy = (
        Retry.fixed_delay(3, 5)
        .do_before_retry(recording(log, "before"))
        .do_before_retry(recording(log, "before too"))
        .do_after_retry(recording(log, "after"))
    )
    virtual(failing.flux(clock).retry_when(policy), clock)
    clock.advance(4)
    assert [("before", 0, "ValueError"), ("before too", 0, "ValueError")] == log
    clock.advance(1)
    assert [("after", 0, "ValueError"), ("before", 1, "KeyError"), ("before too", 1, "KeyError")] == log[2:]
    clock.advance(5)
    assert [("after", 1, "KeyError")] == log[5:]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("when", ["do_before_retry", "do_after_retry"])
def test_a_callback_that_raises_is_the_end(way: str, when: str) -> None:
    """ERROR and `on_error`, as always."""

    def callback(told: RetrySignal) -> None:
        raise KeyError("mine")

    policy = getattr(Retry.max(3), when)(callback)
    seen = walk(way, source(way, BEGUN, OK).retry_when(policy)).check()
    assert ["RESPONSE_START", "STEP_START", "STEP_END", "STATUS", "ERROR"] == seen.types
    assert isinstance(seen.error, SemfluxError)
    assert isinstance(seen.error.__cause__, KeyError)
    watcher = watch(Failing(ValueError(), 1).flux().retry_when(policy))
    assert isinstance(watcher.error, KeyError)


@pytest.mark.parametrize("way", WAITING)
def test_awaitables_of_callbacks_are_awaited_one_after_another_before_the_attempt(way: str) -> None:
    log: list[str] = []

    def step(name: str) -> Callable[[RetrySignal], Any]:
        async def wait() -> None:
            log.append(f"{name} begins")
            await settle()
            log.append(f"{name} ends")

        return lambda told: wait()

    policy = (
        Retry.fixed_delay(3, 0.01)
        .do_before_retry(step("one"))
        .do_before_retry(lambda told: log.append("two"))
        .do_before_retry(step("three"))
        .do_after_retry(step("four"))
    )
    stream = source(way, BEGUN, OK).do_on_next(lambda e: log.append(e.type.value)).retry_when(policy)
    seen = walk(way, stream).check()
    assert "RESPONSE_END" == seen.types[-1]
    attempt = log.index("ERROR") + 1
    assert [
        "one begins", "one ends", "two", "three begins", "three ends", "four begins", "four ends", "STEP_START",
    ] == log[attempt : attempt + 8]  # fmt: skip


@pytest.mark.parametrize("way", WAITING)
def test_an_awaitable_that_raises_is_the_end(way: str) -> None:
    async def wait(told: RetrySignal) -> None:
        await asyncio.sleep(0)
        raise KeyError("mine")

    seen = walk(way, source(way, BEGUN, OK).retry_when(Retry.max(3).do_after_retry(wait))).check()
    assert ["STATUS", "ERROR"] == seen.types[-2:]
    assert isinstance(seen.error, SemfluxError)
    assert isinstance(seen.error.__cause__, KeyError)


async def test_an_awaitable_that_is_cancelled_is_the_end() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    watcher = watch(
        Failing(ValueError(), 1).flux().retry_when(Retry.max(3).do_before_retry(lambda _: future))
    )
    await settle()
    assert [] == watcher.signals
    future.cancel()
    await settle()
    assert isinstance(watcher.error, OperatorError)


def test_an_awaitable_without_a_loop_is_a_wrong_call() -> None:
    async def wait(told: RetrySignal) -> None:
        raise AssertionError

    watcher = watch(Failing(ValueError(), 1).flux().retry_when(Retry.max(3).do_before_retry(wait)))
    assert isinstance(watcher.error, ConfigurationError)


class Patient:
    """A callback that waits for ever, and takes some time to be cancelled."""

    def __init__(self) -> None:
        self.began = 0
        self.ended = 0
        self.raises = False

    async def __call__(self, told: RetrySignal) -> None:
        self.began += 1
        try:
            await asyncio.Event().wait()
        finally:
            await settle(3)
            self.ended += 1
            if self.raises:
                raise KeyError("while it was cancelled")


async def test_a_cancel_while_a_callback_is_awaited_cancels_it() -> None:
    """And who pulls goes on when it has ended."""
    patient = Patient()
    stream = model_of(BEGUN, OK).prompt("hi").stream().retry_when(Retry.max(3).do_before_retry(patient))

    task = asyncio.ensure_future(_collect(stream))
    await settle(60)
    assert (1, 0) == (patient.began, patient.ended)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (1, 1) == (patient.began, patient.ended)


async def _collect(stream: ChatStream) -> list[AnyChatEvent]:
    return [event async for event in stream]


async def test_leaving_an_iterator_waits_for_the_callback() -> None:
    patient = Patient()
    stream = model_of(BEGUN, OK).prompt("hi").stream().retry_when(Retry.max(3).do_before_retry(patient))
    iterator = aiter(stream)
    assert "STATUS" == [await anext(iterator) for _ in range(4)][-1].type.value
    await settle(60)
    assert 1 == patient.began
    await iterator.aclose()
    assert 1 == patient.ended


async def test_a_dispose_while_a_callback_is_awaited_cancels_it() -> None:
    """What it raises then has no receiver."""
    patient = Patient()
    patient.raises = True
    watcher = Watcher()
    stream = Failing(ValueError(), 1).flux().retry_when(Retry.max(3).do_before_retry(patient))
    subscription = stream.subscribe(watcher.on_next, watcher.on_error, watcher.on_completed)
    await settle()
    with hooked() as dropped:
        subscription.dispose()
        await settle()
    assert (1, 1) == (patient.began, patient.ended)
    assert [KeyError] == [type(error) for error in dropped.errors]
    assert [] == watcher.signals


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_callback_may_cancel_the_stream(asynchronous: bool) -> None:
    held: list[Any] = []
    failing = Failing(ValueError(), 1)

    async def nothing() -> None:
        """Never run."""

    def callback(told: RetrySignal) -> Any:
        held[0].dispose()
        return nothing() if asynchronous else None

    watcher = Watcher()
    stream = failing.flux().retry_when(Retry.fixed_delay(3, 0.001).do_after_retry(callback))
    held.append(stream.subscribe(watcher.on_next, watcher.on_error, watcher.on_completed))
    await asyncio.sleep(0.02)
    assert [] == watcher.signals
    assert 1 == failing.subscribed


# Streams of events


async def test_a_wait_is_woken_by_a_dispose_of_another_thread() -> None:
    """Whoever waits for the next event sees the end at once."""
    stream = model_of(BEGUN, OK).prompt("hi").stream().retry_when(Retry.fixed_delay(3, 600))
    iterator = aiter(stream)
    seen: list[str] = []

    async def read() -> None:
        seen.extend([event.type.value async for event in iterator])

    task = asyncio.ensure_future(read())
    await settle(60)
    thread = threading.Thread(target=iterator.dispose)
    thread.start()
    async with asyncio.timeout(5):
        await task
    thread.join()
    await iterator.aclose()


async def test_cancelling_the_task_that_waits_for_a_retry_leaves_nothing() -> None:
    clock = VirtualClock()
    model = model_of(BEGUN, OK, clock=clock)
    task = asyncio.ensure_future(_collect(model.prompt("hi").stream().retry_when(Retry.fixed_delay(3, 600))))
    await settle(60)
    assert 1 == clock.pending
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 0 == clock.pending
    assert 0 == model._transport.acquired


@pytest.mark.parametrize("pulled", [True, False])
async def test_a_limit_for_the_whole_holds_while_a_retry_waits(pulled: bool) -> None:
    """It is none of an attempt: no recovery takes it up."""
    clock = VirtualClock()
    model = model_of(BEGUN, OK, clock=clock)
    stream = model.prompt("hi").stream().retry_when(Retry.fixed_delay(3, 600)).timeout(5)
    seen = walk_in(stream, clock, pulled)
    events, error = await seen
    assert ["STEP_END", "STATUS", "ERROR"] == [event.type.value for event in events[-3:]]
    assert isinstance(error, TotalTimeoutError)
    assert error is events[-1].error
    assert () == violations_of(events)
    assert 0 == clock.pending


async def walk_in(
    stream: ChatStream, clock: VirtualClock, pulled: bool
) -> tuple[list[AnyChatEvent], Exception | None]:
    from tests.recovering import _pull, _push, until_done

    events: list[AnyChatEvent] = []
    task = asyncio.ensure_future((_pull if pulled else _push)(stream, events))
    await until_done(task, clock)
    return events, await task


def test_block_waits_for_a_retry() -> None:
    model = model_of(BEGUN, status(503), OK)
    policy = Retry.backoff(3, 0.001)
    response = model.prompt("hi").stream().retry_when(policy).response().block(timeout=5)
    assert response is not None
    assert "Hello" == response.text


def test_in_a_row_counts_from_the_last_content_on_a_chat_stream() -> None:
    """A step without content is no success: an answer that dies at once is not tried for ever."""
    seen = walk("parse", source("parse", *[BEGUN] * 9).retry_when(Retry.max_in_a_row(2))).check()
    assert isinstance(seen.error, RetryExhaustedError)
    assert 3 == len(seen.response.steps)
    turns = [CUT, BEGUN, CUT, BEGUN, BEGUN, OK, OK]
    seen = walk("parse", source("parse", *turns).retry_when(Retry.max_in_a_row(3).restart())).check()
    assert "Hello" == seen.response.text
    turns = [CUT, BEGUN, BEGUN, BEGUN, OK]
    seen = walk("parse", source("parse", *turns).retry_when(Retry.max_in_a_row(3).restart())).check()
    assert isinstance(seen.error, RetryExhaustedError)


def test_a_filter_that_raises_is_the_end() -> None:
    def raising(error: BaseException) -> object:
        raise KeyError("mine")

    seen = walk("parse", source("parse", BEGUN, OK).retry_when(Retry.max(3).filter(raising))).check()
    assert ["STEP_END", "ERROR"] == seen.types[-2:]
    assert isinstance(seen.error, SemfluxError)
    assert isinstance(seen.error.__cause__, KeyError)
    assert isinstance(seen.error.__cause__.__context__, TruncatedStreamError)


def test_a_final_failure_has_no_frames_of_the_recovery() -> None:
    """Its traceback would hold what the frames do."""
    seen = walk("parse", source("parse", BEGUN).retry(0)).check()
    assert seen.error is not None
    trace, names = seen.error.__traceback__, []
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    assert [] == [name for name in names if "retry" in name or "recover" in name]


FAILURES = {
    "cut": CUT,
    "begun": BEGUN,
    "busy": (sse({"error": {"message": "busy", "code": 503}}),),
    "call": (cc(tc(0, "c1", "f", '{"a":')), cu(4, 1)),
    "thinking": (cc({"reasoning_content": "hm"}), cu(2, 2)),
    "broken": (cc({"content": "x"}) + sse("{"),),
    "empty": (),
    "raises": (cc({"content": "x"}), OSError("disk")),
}
FINAL = {"ok": OK, "cut": CUT, "no": (sse({"error": {"message": "no", "code": 404}}),)}


def raising_turns(turns: list[Any]) -> list[Any]:
    """Turns in which an exception is raised where it stands."""

    def chunks(turn: Any) -> Any:
        for chunk in turn:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    return [chunks(turn) for turn in turns]


@settings(deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(FAILURES)), max_size=6),
    last=st.sampled_from(sorted(FINAL)),
    layers=st.lists(st.sampled_from(["retry", "restart", "fallback", "return", "map", "raise"]), max_size=4),
    pulled=st.booleans(),
)
def test_whatever_fails_and_recovers_stays_one_sane_stream(
    names: list[str], last: str, layers: list[str], pulled: bool
) -> None:
    """The rules of order hold, seq has no gap, and usage is that of all steps."""
    turns = raising_turns([*[FAILURES[name] for name in names], FINAL[last], *[OK] * 20])
    stream = source("parse", *turns)
    raised = False
    for layer in layers:
        if layer == "retry":
            stream = stream.retry(2)
        elif layer == "restart":
            stream = stream.retry_when(Retry.max(2).restart().filter(Exception))
        elif layer == "fallback":
            stream = stream.fallback_to(source("parse", CUT), source("parse", BEGUN, OK).retry(1))
        elif layer == "return":
            stream = stream.on_error_return("sorry")
        elif layer == "map":
            stream = stream.on_error_map(lambda error: ServerError(f"mapped: {error}"))
        elif not raised:
            raised = True
            stream = stream.take_while(raise_once())
    seen = walk("pull" if pulled else "parse", stream)
    if raised:
        # The event at which the function raised is missing; and its exception alone may be the end.
        broken = violations_of(seen.events, seq="rising") if seen.events[-1].is_terminal else ()
        assert [violation for violation in broken if violation.rule != 7] == []
    else:
        seen.check()
        told = [event.usage for event in seen.events if event.type.value == "STEP_END" and event.usage]
        usage = seen.events[-1].usage
        assert sum(each.input_tokens or 0 for each in told) == (0 if usage is None else usage.input_tokens)
        assert len(seen.response.steps) == seen.types.count("STEP_START")


def raise_once() -> Callable[[AnyChatEvent], bool]:
    """A predicate that raises at the second delta of a stream, once."""
    seen = [0]

    def keep(event: AnyChatEvent) -> bool:
        seen[0] += event.is_delta
        if event.is_delta and seen[0] == 2:
            raise KeyError("mine")
        return True

    return keep


RECOVERING: dict[str, Callable[[str], ChatStream]] = {
    "retry": lambda way: source(way, BEGUN, BEGUN, OK).retry(3),
    "restart": lambda way: source(way, CUT, CUT, OK).retry_when(Retry.max(3).restart()),
    "fallback": lambda way: source(way, CUT).fallback_to(source(way, OK)),
    "return": lambda way: source(way, CUT).on_error_return("sorry"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RECOVERING)
def test_a_recovering_stream_may_be_left_at_every_event(name: str, way: str) -> None:
    """Nothing comes after that, and nothing is left open."""
    whole = walk(way, RECOVERING[name](way)).types
    for count in range(1, len(whole)):
        seen = walk(way, RECOVERING[name](way).take(count))
        assert whole[:count] == seen.types
        assert seen.error is None


@pytest.mark.parametrize("name", RECOVERING)
async def test_a_recovering_stream_may_be_disposed_of_at_every_event(name: str) -> None:
    whole = [event.type.value async for event in RECOVERING[name]("push")]
    for count in range(1, len(whole) + 1):
        got: list[str] = []
        held: list[Any] = []

        def on_next(event: AnyChatEvent, got: list[str] = got, held: Any = held, count: int = count) -> None:
            got.append(event.type.value)
            if len(got) == count:
                held[0].dispose()

        held.append(RECOVERING[name]("push").subscribe(on_next))
        await settle(150)
        assert whole[:count] == got


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
