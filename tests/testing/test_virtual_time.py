"""StepVerifier with virtual time: nothing waits, and everything happens at its time."""

from __future__ import annotations

import asyncio
import math
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import reactivex
from reactivex import operators as rx

from semflux import Flux
from semflux.clock import VirtualClock
from semflux.errors import IdleTimeoutError
from semflux.operators import timeout
from semflux.testing import StepFailedError, StepVerifier, TestPublisher
from semflux.testing.clocks import ClockScheduler, SteppedClock
from tests.frames import DONE, cc
from tests.model.asking import replayed

virtual = StepVerifier.with_virtual_time


def test_operators_of_rxpy_follow_the_clock() -> None:
    began = time.perf_counter()
    took = (
        virtual(lambda clock: reactivex.interval(3600.0))
        .expect_no_event(3599)
        .then_await(1)
        .expect_next(0)
        .then_await(7200)
        .expect_next(1, 2)
        .then_cancel()
        .verify()
    )

    assert 10_800 == took
    assert time.perf_counter() - began < 5


def test_a_model_over_recorded_pauses_follows_it_too() -> None:
    """Pauses one after another: each begins when the one before it is over."""
    body = (cc({"content": "Hel"}), 10.0, cc({"content": "lo"}), 10.0, cc({}, "stop") + DONE)
    for demand in (None, 99):
        (
            virtual(lambda clock: replayed(*body, clock=clock).prompt("hi").stream(), demand=demand)
            .expect_text("Hel")
            .expect_no_event(9.9)
            .then_await(0.1)
            .expect_text("lo")
            .then_await(30)
            .verify_complete()
        )


def test_coroutines_woken_by_one_timer_run_before_the_next() -> None:
    """Two pauses of a minute fit into one wait of two."""
    body = (60.0, cc({"content": "a"}), 60.0, cc({"content": "b"}, "stop") + DONE)
    script = virtual(lambda clock: replayed(*body, clock=clock).prompt("hi").stream())

    assert 120 == script.then_await(120).expect_text("ab").verify_complete()


def test_limits_are_virtual() -> None:
    def source(clock: VirtualClock) -> Flux[Any]:
        return Flux.from_(timeout(first=5.0)(publisher.flux()))

    publisher = TestPublisher.create()
    virtual(source).expect_no_event(4.9).then_await(0.2).verify_error()
    publisher.assert_cancelled()
    publisher = TestPublisher.create()
    script: StepVerifier[Any] = virtual(
        lambda clock: Flux.from_(timeout(first=9.0, item=5.0)(publisher.flux()))
    )
    script.then(lambda: publisher.next(1)).expect_next(1).then_await(5).verify_error(IdleTimeoutError)


def test_a_signal_in_the_silence_fails_at_its_time() -> None:
    with pytest.raises(StepFailedError, match=r"expected no event for 20 s, actual on_next\(0\)"):
        virtual(lambda clock: reactivex.timer(5.0)).expect_timeout(20).verify()
    with pytest.raises(StepFailedError, match=r"actual on_next\(0\)"):
        virtual(lambda clock: reactivex.timer(20.0)).expect_no_event(20).then_cancel().verify()


def test_a_step_that_waits_says_that_time_stands_still() -> None:
    with pytest.raises(StepFailedError, match=r"nothing for 0.01 s \(virtual time is 1 s: then_await"):
        virtual(lambda clock: reactivex.timer(5.0), timeout=0.01).then_await(1).expect_next(
            0
        ).verify_complete()


async def test_each_verification_has_a_clock_of_its_own() -> None:
    clocks: list[VirtualClock] = []

    def source(clock: VirtualClock) -> Flux[int]:
        clocks.append(clock)
        return Flux.just(1)

    script = virtual(source).expect_next(1).then_await(2).expect_complete()
    assert [2, 2] == [await script.verify_async(), await script.verify_async()]
    assert 2 == len({id(clock) for clock in clocks})


def test_the_clock_tells_what_falls_due_next() -> None:
    clock = SteppedClock()
    calls: list[float] = []
    assert clock.next_due is None
    clock.call_later(0.1, lambda: calls.append(clock.monotonic()))
    clock.call_later(0.05, print).cancel()
    assert 0.1 == clock.next_due
    clock.advance_to(0.1)
    assert [0.1] == calls
    for _ in range(100):
        clock.call_later(0.1 / 3, lambda: calls.append(clock.monotonic()))
        due = clock.next_due
        assert due is not None
        clock.advance_to(due)
        assert clock.next_due is None
    assert 101 == len(calls)
    assert math.isclose(clock.monotonic(), 0.1 + 100 * 0.1 / 3)


def test_the_scheduler_of_a_clock() -> None:
    clock = VirtualClock()
    scheduler = ClockScheduler(clock)
    assert datetime.fromtimestamp(clock.time(), UTC) == scheduler.now
    calls: list[str] = []

    def call(name: str) -> Any:
        return lambda scheduler, state: calls.append(name)

    scheduler.schedule(call("now"))
    scheduler.schedule_absolute(scheduler.now + timedelta(seconds=2), call("absolute"))
    scheduler.schedule_relative(timedelta(seconds=1), call("relative"))
    scheduler.schedule_relative(3.0, call("never")).dispose()
    clock.advance(5)
    assert ["now", "relative", "absolute"] == calls
    seen: list[int] = []
    subscription = reactivex.interval(1.0).pipe(rx.take(3)).subscribe(seen.append, scheduler=scheduler)
    clock.advance(10)
    subscription.dispose()
    assert [0, 1, 2] == seen


async def test_virtual_time_needs_turns_of_the_loop() -> None:
    """So `verify` cannot be used inside of one."""
    from semflux.errors import BlockingInLoopError

    with pytest.raises(BlockingInLoopError):
        virtual(lambda clock: Flux.just(1)).then_await(1).expect_next(1).verify_complete()
    await asyncio.sleep(0)
