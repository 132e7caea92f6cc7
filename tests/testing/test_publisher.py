"""TestPublisher and PublisherProbe: sources in the test's hand, and what is done to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import semflux
from semflux import ChatStream, Flux
from semflux.errors import BufferOverflowError
from semflux.operators.run import Run
from semflux.testing import PublisherProbe, StepVerifier, TestPublisher, Violation
from tests.operators.watching import END, error, hooked, item, watch

Make = Callable[[], Any]


def test_pytest_does_not_collect_it() -> None:
    assert TestPublisher.__test__ is False


def test_a_hot_one_tells_who_listens() -> None:
    publisher = TestPublisher.create()
    publisher.next("nobody").assert_no_subscribers()
    first = watch(publisher.flux())
    publisher.next(1).assert_subscribers().assert_subscribers(1).assert_was_subscribed()
    second = watch(publisher.mono())
    publisher.emit(2)

    assert [item(1), item(2), END] == first.signals
    assert [item(2), END] == second.signals
    assert [END] == watch(publisher.flux()).signals
    publisher.assert_no_subscribers().assert_not_cancelled()
    assert 3 == publisher.subscribe_count


def test_a_cold_one_tells_everybody_everything() -> None:
    publisher = TestPublisher.create_cold().next(1, 2)
    first = watch(publisher.flux())
    failure = ValueError("x")
    publisher.error(failure)

    assert [item(1), item(2), error(failure)] == first.signals == watch(publisher.flux()).signals


def test_what_is_told_from_inside_a_signal_comes_after_it() -> None:
    publisher = TestPublisher.create()
    seen: list[tuple[str, int]] = []

    def first(value: int) -> None:
        seen.append(("first", value))
        if value == 1:
            publisher.next(2)

    publisher.flux().subscribe(first)
    publisher.flux().subscribe(lambda value: seen.append(("second", value)))
    publisher.next(1)

    assert [("first", 1), ("second", 1), ("first", 2), ("second", 2)] == seen


def test_what_comes_after_the_end_is_dropped() -> None:
    publisher = TestPublisher.create().complete()
    failure = ValueError("x")
    with hooked() as dropped:
        publisher.next(1).error(failure).complete()
    assert ([1], [failure]) == (dropped.items, dropped.errors)


def test_cancels_are_counted() -> None:
    publisher = TestPublisher.create()
    subscriptions = [publisher.flux().subscribe() for _ in range(3)]
    subscriptions[0].dispose()
    subscriptions[0].dispose()
    publisher.assert_cancelled().assert_cancelled(1).assert_subscribers(2)
    publisher.complete()
    subscriptions[1].dispose()
    publisher.assert_cancelled(1)


def test_a_cancel_inside_a_signal_stops_it() -> None:
    publisher = TestPublisher.create_cold().next(1, 2, 3)
    StepVerifier.create(publisher.flux().take(2)).expect_next(1, 2).verify_complete()
    publisher.assert_cancelled(1).assert_no_subscribers()


def test_items_beyond_the_demand_fail_the_subscriber() -> None:
    publisher = TestPublisher.create()
    verifier = StepVerifier.create(publisher.flux(), demand=1)
    verifier.then(lambda: publisher.next(1, 2)).expect_next(1).verify_error(BufferOverflowError)
    publisher.assert_request_overflow().assert_no_subscribers()


def test_one_that_breaks_the_rule_emits_them_all_the_same() -> None:
    publisher = TestPublisher.create_noncompliant(Violation.REQUEST_OVERFLOW)
    verifier = StepVerifier.create(publisher.flux(), demand=1).then(lambda: publisher.emit(1, 2))
    verifier.expect_next(1).then_request(1).expect_next(2).verify_complete()
    publisher.assert_request_overflow()


def test_one_that_ends_again_and_again() -> None:
    """An edge hides it, an observer without one does not."""
    publisher = TestPublisher.create_noncompliant(Violation.CLEANUP_ON_TERMINATE)
    watcher = watch(publisher.flux())
    publisher.complete().complete().next(1).assert_subscribers(1)
    assert [END] == watcher.signals
    assert [] == watch(publisher.flux()).signals


def test_one_that_does_not_see_a_cancel() -> None:
    publisher = TestPublisher.create_noncompliant(Violation.DEFER_CANCELLATION)
    watcher = watch(publisher.flux())
    subscription = publisher.flux().subscribe()
    subscription.dispose()
    publisher.next(1).assert_cancelled(1)
    assert [item(1)] == watcher.signals


def test_demand_is_added_up() -> None:
    publisher = TestPublisher.create()
    run = Run(demand=3, pull=True)
    watcher: list[Any] = []

    class Observer:
        def on_next(self, value: Any) -> None:
            run.demand -= 1
            watcher.append(value)

        on_error = on_completed = lambda self, *_: None

    publisher.connect(Observer(), run)  # type: ignore[arg-type]
    publisher.assert_min_requested(3).assert_max_requested(3)
    publisher.next(1, 2)
    run.demand += 4
    publisher.assert_min_requested(7).assert_max_requested(7).next(3, 4).assert_max_requested(7)
    publisher.flux().subscribe()
    publisher.assert_min_requested(10**9)


@pytest.mark.parametrize(
    "wrong, text",
    [
        (lambda p: p.assert_no_subscribers(), "expected 0 subscribers, actual 1"),
        (lambda p: p.assert_subscribers(2), "expected 2 subscribers, actual 1"),
        (lambda p: p.assert_cancelled(), "expected at least 1 cancelled subscriptions, actual 0"),
        (lambda p: p.assert_max_requested(5), "expected a demand of at most 5, actual an unbounded one"),
        (lambda p: p.assert_request_overflow(), "expected an item beyond the demand, actual none"),
        (lambda p: TestPublisher.create().assert_was_subscribed(), "expected a subscription, actual none"),
        (
            lambda p: TestPublisher.create().assert_min_requested(1),
            "expected a demand of at least 1, actual 0",
        ),
    ],
)
def test_each_assertion_says_what_it_found(wrong: Callable[[Any], Any], text: str) -> None:
    publisher = TestPublisher.create()
    publisher.flux().subscribe()
    with pytest.raises(AssertionError) as caught:
        wrong(publisher)
    assert text == str(caught.value)


# PublisherProbe.


def test_a_probe_counts_what_is_done_to_any_stream() -> None:
    probe = PublisherProbe(Flux.just(1, 2))
    probe.assert_was_not_subscribed()
    probe.assert_was_not_requested()
    assert [item(1), item(2), END] == watch(probe.flux()).signals
    probe.flux().take(1).block()

    assert 2 == probe.subscribe_count
    probe.assert_was_subscribed()
    probe.assert_was_requested()
    probe.assert_was_cancelled()
    assert 1 == probe.cancel_count


def test_an_end_is_no_cancel() -> None:
    probe = PublisherProbe.empty()
    probe.flux().subscribe().dispose()
    probe.assert_was_not_cancelled()
    failing = PublisherProbe(Flux.error(ValueError("x")))
    failing.flux().subscribe(on_error=lambda error: None).dispose()
    failing.assert_was_not_cancelled()


def test_a_probe_of_a_chat_stream_gives_one() -> None:
    stream = semflux.parse(b"", dialect="openai-chat")
    assert isinstance(PublisherProbe(stream).flux(), ChatStream)
    assert type(PublisherProbe(stream.text()).flux()) is Flux


def test_a_fallback_that_must_not_be_taken() -> None:
    backup = PublisherProbe(Flux.just("backup"))
    Flux.just("first").pipe(semflux.operators.on_error_resume(lambda error: backup.flux())).block()
    backup.assert_was_not_subscribed()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda p: p.assert_was_subscribed(),
        lambda p: p.assert_was_cancelled(),
        lambda p: p.assert_was_requested(),
    ],
)
def test_a_probe_says_what_was_not_done(wrong: Callable[[Any], Any]) -> None:
    with pytest.raises(AssertionError, match="expected"):
        wrong(PublisherProbe.empty())


def test_a_probe_says_what_was_done() -> None:
    probe = PublisherProbe(TestPublisher.create().flux())
    probe.flux().subscribe().dispose()
    for wrong in (
        probe.assert_was_not_subscribed,
        probe.assert_was_not_cancelled,
        probe.assert_was_not_requested,
    ):
        with pytest.raises(AssertionError, match="expected no"):
            wrong()
