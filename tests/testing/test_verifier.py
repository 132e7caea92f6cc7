"""StepVerifier: what each step takes, and what is said when it does not get it."""

from __future__ import annotations

import asyncio
import pickle
import re
import threading
from typing import Any

import pytest
import reactivex
from reactivex import Observable

import semflux
from semflux import Flux
from semflux.errors import BlockingInLoopError, ConfigurationError
from semflux.operators.hooks import Hooks
from semflux.testing import Signal, SignalKind, StepFailedError, StepVerifier, TestPublisher, Violation
from semflux.testing.signals import called, shown
from tests.frames import DONE, cc

create = StepVerifier.create


def failure(verifier: StepVerifier[Any]) -> StepFailedError:
    with pytest.raises(StepFailedError) as caught:
        verifier.verify()
    return caught.value


def text_of(verifier: StepVerifier[Any]) -> str:
    """The first line of the failure."""
    return str(failure(verifier)).splitlines()[0]


AB = Flux.just("a", "b")


def test_items_and_the_end() -> None:
    create(AB).expect_subscription().expect_next("a").expect_next("b").expect_complete().verify()
    create(AB).expect_next("a", "b").verify_complete()
    create(AB).expect_next_sequence(iter("ab")).verify_complete()
    create(AB).expect_next_count(2).verify_complete()
    create(AB).expect_next_count(0).expect_next_sequence([]).expect_next_count(2).verify_complete()
    create(AB.collect_list()).expect_next(["a", "b"]).verify_complete()
    create(reactivex.of(None)).expect_next(None).verify_complete()


def test_a_failure_names_the_step_and_shows_what_had_come() -> None:
    error = failure(create(Flux.just("a")).expect_next("a", "b").expect_complete())

    assert """expectation "expect_next(b)" (step 2) failed: expected on_next('b'), actual on_complete()
what had come:
  on_next('a')
  on_complete()""" == str(error)
    assert isinstance(error, AssertionError)
    assert ("expect_next(b)", 2, "on_next('b')", "on_complete()") == (
        error.step,
        error.number,
        error.expected,
        error.actual,
    )
    assert (Signal(SignalKind.NEXT, "a"), Signal(SignalKind.COMPLETE)) == error.signals
    assert str(error) == str(pickle.loads(pickle.dumps(error)))


def many(items: list[str]) -> bool:
    return len(items) > 1


def long(item: str) -> bool:
    return len(item) > 1


@pytest.mark.parametrize(
    "verifier, text",
    [
        (create(AB).expect_next("b").expect_complete(), 'expect_next(b)" (step 1) failed: expected on_next(\'b\'), actual on_next(\'a\')'),
        (create(AB).expect_next_count(3).expect_complete(), "expected 3 items, of which 2 have come, actual on_complete()"),
        (create(AB).expect_next_sequence("ax").expect_complete(), "expected on_next('x'), item 1 of the sequence, actual on_next('b')"),
        (create(AB).expect_next_matches(long).expect_complete(), '"expect_next_matches(long)" (step 1) failed: expected on_next(an item for which long is true)'),
        (create(AB).expect_complete(), "expected on_complete(), actual on_next('a')"),
        (create(AB).expect_error(), "expected on_error(any error), actual on_next('a')"),
        (create(Flux.error(ValueError("x"))).expect_complete(), "expected on_complete(), actual on_error(ValueError('x'))"),
        (create(Flux.error(ValueError("x"))).expect_error(KeyError), "expected on_error(KeyError), actual on_error(ValueError('x'))"),
        (create(Flux.error(ValueError("x"))).expect_error((KeyError, OSError), "y"), '"expect_error(KeyError | OSError, message=\'y\')" (step 1) failed: expected on_error(KeyError or OSError, message \'y\')'),
        (create(Flux.error(ValueError("x"))).expect_error(message=re.compile("y+")), "on_error(any error, message like 'y+')"),
        (create(Flux.error(ValueError("x"))).expect_error(matches=long), '"expect_error(matches(long))" (step 1) failed: expected on_error(any error, long true of it), actual TypeError: '),
        (create(Flux.error(ValueError("x"))).expect_error(matches=lambda e: False), "on_error(any error, <lambda> true of it), actual on_error"),
        (create(AB).record_with().expect_next_count(2).expect_recorded_matches(many).expect_next("c").expect_complete(), 'expect_next(c)" (step 4)'),
        (create(AB).record_with().expect_next_count(1).expect_recorded_matches(many).expect_complete(), "expected the recorded items to match, actual ['a']"),
        (create(AB).expect_recorded_matches(many).expect_complete(), "nothing is recorded"),
        (create(AB).then_consume_while(lambda item: item == "a").expect_complete(), 'expect_complete()" (step 2) failed: expected on_complete(), actual on_next(\'b\')'),
        (create(AB).then(lambda: 1 / 0).expect_complete(), '"then(<lambda>)" (step 1) failed: expected no exception, actual ZeroDivisionError'),
        (create(AB, demand=1).expect_next("a", "b").expect_complete(), "no demand is left"),
        (create(AB, demand=1).expect_next("a").expect_complete(), "expected on_complete(), actual on_next('b')"),
    ],
)  # fmt: skip
def test_each_step_says_what_it_wants(verifier: StepVerifier[Any], text: str) -> None:
    assert text in text_of(verifier)


def test_a_function_fails_its_step_by_raising() -> None:
    def is_b(item: str) -> None:
        assert item == "b", "not b"

    for verifier in (create(AB).assert_next(is_b), create(AB).consume_next_with(is_b)):
        error = failure(verifier.expect_next("b").expect_complete())
        assert "AssertionError: not b" in error.actual
        assert isinstance(error.__cause__, AssertionError)
    create(AB).expect_next("a").assert_next(is_b).verify_complete()


def test_an_error_that_nobody_expected_is_the_cause() -> None:
    raised = ValueError("x")

    assert failure(create(Flux.error(raised)).expect_next("a").expect_complete()).__cause__ is raised


def test_only_the_last_signals_are_shown() -> None:
    error = failure(
        create(Flux.from_iterable(range(100))).expect_next_count(100).expect_next(1).expect_complete()
    )

    assert "  ... 71 signals\n  on_next(71)" in str(error)


def test_nothing_had_come() -> None:
    error = failure(create(reactivex.never(), timeout=0.02).expect_next(1).expect_complete())

    assert str(error).endswith("expected on_next(1), actual nothing for 0.02 s\nnothing had come")


def test_the_timeout_of_a_verification_may_be_given_late() -> None:
    with pytest.raises(StepFailedError, match=r"nothing for 0\.01 s"):
        create(reactivex.never()).expect_complete().verify(0.01)


def test_errors_by_type_message_and_predicate() -> None:
    source = create(Flux.error(ValueError("an x")))
    source.verify_error()
    source.verify_error(ValueError)
    source.verify_error((KeyError, ValueError), "an x")
    source.verify_error(message=re.compile("x$"))
    source.verify_error(matches=lambda error: error.args == ("an x",))


def test_items_are_consumed_while_a_predicate_holds() -> None:
    seen: list[int] = []
    numbers = create(Flux.just(1, 2, 3, 9))
    numbers.then_consume_while(lambda item: item < 5, seen.append).expect_next(9).verify_complete()
    numbers.then_consume_while(lambda item: True).verify_complete()

    assert [1, 2, 3] == seen


def test_what_is_recorded_is_what_the_steps_took() -> None:
    numbers = create(Flux.just(1, 2, 3, 9)).expect_next(1).record_with()
    (
        numbers.then_consume_while(lambda item: item < 5)
        .expect_recorded_matches(lambda items: items == [2, 3])
        .expect_next(9)
        .verify_complete()
    )


def test_a_verifier_is_immutable_and_can_be_verified_again() -> None:
    begun = create(AB).expect_next("a")
    whole = begun.expect_next("b").expect_complete()
    for _ in range(2):
        whole.verify()
        assert "expect_next(c)" in text_of(begun.expect_next("c").expect_complete())
    assert "<StepVerifier expect_next(a) expect_next(b) expect_complete()>" == repr(whole)


def test_a_script_says_how_it_ends_and_nothing_follows() -> None:
    with pytest.raises(ConfigurationError, match="does not say how the stream ends"):
        create(AB).expect_next("a").verify()
    with pytest.raises(ConfigurationError, match=r"no step can follow expect_complete\(\)"):
        create(AB).expect_complete().expect_next("a")


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="demand=-1"):
        create(AB, demand=-1)
    with pytest.raises(ConfigurationError, match="give one to create"):
        create(AB).then_request(1)
    with pytest.raises(ConfigurationError, match="at least 1"):
        create(AB, demand=0).then_request(0)


def test_a_cancel_happens_inside_on_next() -> None:
    """A synchronous source without an end returns."""
    given: list[int] = []

    def endless(observer: Any, scheduler: Any) -> Any:
        state = reactivex.disposable.BooleanDisposable()

        def emit(*_: Any) -> None:
            while not state.is_disposed:
                given.append(len(given))
                observer.on_next(given[-1])

        scheduler.schedule(emit)
        return state

    source: Observable[int] = reactivex.create(endless)
    create(Flux.from_(source)).expect_next(0, 1).then_cancel().verify()

    assert [0, 1] == given


def test_a_failed_step_cancels_too() -> None:
    publisher = TestPublisher.create()
    failure(create(publisher.flux()).then(lambda: publisher.next(1)).expect_next(2).expect_complete())

    publisher.assert_cancelled(1).assert_no_subscribers()


def test_functions_may_bring_about_what_comes_next() -> None:
    publisher = TestPublisher.create()
    (
        create(publisher.flux())
        .then(lambda: publisher.next(1))
        .expect_next(1)
        .then(lambda: publisher.next(2, 3))
        .expect_next(2, 3)
        .then(publisher.complete)
        .verify_complete()
    )


def test_a_demand_pulls() -> None:
    publisher = TestPublisher.create()
    (
        create(publisher.flux(), demand=0)
        .then(lambda: publisher.assert_max_requested(0))
        .then_request(2)
        .then(lambda: publisher.next(1, 2))
        .expect_next(1, 2)
        .then(lambda: publisher.assert_min_requested(2).assert_max_requested(2))
        .then_request(1)
        .then(lambda: publisher.assert_min_requested(3).emit(3))
        .expect_next(3)
        .verify_complete()
    )
    publisher.assert_no_request_overflow()


def test_what_comes_beyond_the_demand_waits() -> None:
    create(AB, demand=1).expect_next("a").expect_no_event(0.01).then_request(1).expect_next(
        "b"
    ).verify_complete()
    create(AB, demand=0).expect_no_event(0.01).then_request(9).expect_next("a", "b").verify_complete()


def test_a_pulled_error_needs_no_demand() -> None:
    create(Flux.error(ValueError("x")), demand=0).verify_error(ValueError)


def test_a_pulled_stream_of_bytes() -> None:
    data = cc({"content": "Hel"}) + cc({"content": "lo"}, "stop") + DONE

    async def slowly() -> Any:
        for i in range(0, len(data), 20):
            await asyncio.sleep(0)
            yield data[i : i + 20]

    for source in (data, [data], slowly()):
        verifier = create(semflux.parse(source, dialect="openai-chat"), demand=3)
        verifier.expect_next_count(3).expect_no_event(0.01).then_request(99).expect_text(
            "Hello"
        ).verify_complete()


def test_no_event_while_time_passes() -> None:
    never = create(reactivex.never())
    assert never.expect_no_event(0.01).then_cancel().verify() >= 0.01
    assert never.expect_timeout(0.01).verify() >= 0.01
    publisher = TestPublisher.create()
    error = failure(
        create(publisher.flux()).then(lambda: publisher.next(1)).expect_no_event(0.1).then_cancel()
    )
    assert ("no event for 0.1 s", "on_next(1)") == (error.expected, error.actual)
    error = failure(create(Flux.from_(reactivex.timer(0.01))).expect_timeout(5))
    assert "on_next(0)" == error.actual


def test_what_comes_during_a_wait_is_for_the_next_steps() -> None:
    """Real time."""
    create(Flux.from_(reactivex.timer(0.01))).then_await(0.05).expect_next(0).verify_complete()


def test_signals_from_another_thread_wake_it() -> None:
    publisher = TestPublisher.create()
    thread = threading.Thread(target=lambda: publisher.emit(1))
    create(publisher.flux()).then(thread.start).expect_next(1).verify_complete()
    thread.join()
    again = TestPublisher.create()
    thread = threading.Thread(target=lambda: again.emit(1))
    create(again.flux(), demand=2).then(thread.start).expect_next(1).verify_complete()
    thread.join()


async def test_inside_a_running_loop_it_is_awaited() -> None:
    created = create(Flux.from_(reactivex.timer(0.01)))
    assert await created.expect_next(0).expect_complete().verify_async() > 0
    with pytest.raises(BlockingInLoopError, match="await verify_async"):
        created.expect_next(0).verify_complete()


async def test_inside_a_running_loop_what_need_not_wait_is_verified_at_once() -> None:
    create(AB).expect_next("a", "b").verify_complete()
    create(AB, demand=1).expect_next("a").then_request(1).expect_next("b").verify_complete()


async def test_functions_may_be_coroutines() -> None:
    called_: list[int] = []

    async def call() -> None:
        await asyncio.sleep(0)
        called_.append(1)

    await create(AB).expect_next("a").then(call).expect_next("b").expect_complete().verify_async()
    assert [1] == called_

    async def fail() -> None:
        raise ValueError("x")

    with pytest.raises(StepFailedError, match="ValueError: x"):
        await create(AB).then(fail).expect_complete().verify_async()


def test_what_comes_after_the_end_is_a_failure() -> None:
    """A user's edge would hide it: here the source is looked at without one."""
    publisher = TestPublisher.create_noncompliant(Violation.CLEANUP_ON_TERMINATE)
    script = (
        create(publisher.flux()).then(publisher.complete).then(lambda: publisher.next(1)).expect_complete()
    )

    assert "actual on_next(1) came after the end" in text_of(script)


def test_what_comes_after_a_cancel_is_not() -> None:
    publisher = TestPublisher.create_noncompliant(Violation.DEFER_CANCELLATION)
    create(publisher.flux()).then(lambda: publisher.next(1)).expect_next(1).then_cancel().verify()
    publisher.next(2)


# What was dropped.


def test_what_was_dropped_can_be_asked_afterwards() -> None:
    publisher = TestPublisher.create()
    raised = ValueError("late")

    def late() -> None:
        publisher.next(1, 2)
        publisher.error(raised)

    script = create(publisher.flux()).then(publisher.complete).then(late).expect_complete()
    aftermath = script.verify_then_assert_that()

    aftermath.has_dropped(1, 2).has_dropped().has_dropped_errors().has_dropped_errors(1)
    aftermath.has_dropped_error(ValueError).has_dropped_error(lambda error: error is raised)
    aftermath.took_less_than(5).took_more_than(0)
    for wrong in (
        lambda: aftermath.has_dropped(1),
        lambda: aftermath.has_not_dropped_items(),
        lambda: aftermath.has_not_dropped_errors(),
        lambda: aftermath.has_dropped_errors(2),
        lambda: aftermath.has_dropped_error(KeyError),
        lambda: aftermath.took_less_than(0),
        lambda: aftermath.took_more_than(5),
    ):
        with pytest.raises(AssertionError, match="expected"):
            wrong()


async def test_nothing_was_dropped() -> None:
    aftermath = await create(AB).expect_next("a", "b").expect_complete().verify_then_assert_that_async()

    aftermath.has_not_dropped_items().has_not_dropped_errors()
    for wrong in (aftermath.has_dropped, aftermath.has_dropped_errors):
        with pytest.raises(AssertionError, match="expected"):
            wrong()


def test_the_hooks_get_their_receivers_back() -> None:
    mine: list[Any] = []
    Hooks.on_next_dropped(mine.append)
    try:
        create(AB).then_cancel().verify_then_assert_that()
        Hooks.drop_next(1)
    finally:
        Hooks.on_next_dropped(None)
    assert [1] == mine


def test_values_are_shown_in_one_line() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise ValueError

    assert "<Silent, whose repr raised ValueError>" == shown(Silent())
    assert 163 == len(shown("x" * 999)) == len(called("x" * 999))
    assert "a\\nb" == called("a\nb")
