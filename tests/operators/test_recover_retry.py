"""`retry` and `retry_when` at work: on plain streams in virtual time, and what their callbacks may do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import reactivex
from reactivex.disposable import Disposable

from semflux import Flux, Retry, RetrySignal
from semflux import operators as ops
from semflux.clock import VirtualClock
from semflux.errors import (
    ConfigurationError,
    OperatorError,
    RetryExhaustedError,
    SemfluxError,
)
from tests.operators.watching import Watcher, hooked
from tests.recovering import (
    BEGUN,
    OK,
    WAITING,
    WAYS,
    Failing,
    collected,
    model_of,
    settle,
    source,
    virtual,
    walk,
    watch,
)

# Plain streams


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

    task = asyncio.ensure_future(collected(stream))
    await settle(60)
    assert (1, 0) == (patient.began, patient.ended)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (1, 1) == (patient.began, patient.ended)


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
