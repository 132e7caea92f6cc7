"""The delays, the samples, and the times of items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import reactivex

from semflux import Flux, Mono, TextDelta, parse
from semflux import operators as ops
from semflux.clock import VirtualClock
from semflux.errors import ConfigurationError
from semflux.flux import ChatStream
from tests.operators.watching import END, Probe, Watcher, error, item, raising, signals, watch

FAILURE = ValueError("mine")


class Timeline:
    """A source that is told by hand, a clock that is moved by hand, and what came when."""

    def __init__(self, make: Callable[[Flux[Any], VirtualClock], Any]) -> None:
        self.clock = VirtualClock()
        self.subject: reactivex.Subject[Any] = reactivex.Subject()
        self.came: list[tuple[float, Any]] = []
        self.subscription = make(Flux.from_(self.subject), self.clock).subscribe(
            lambda value: self.came.append((self.clock.monotonic(), value)),
            lambda raised: self.came.append((self.clock.monotonic(), raised)),
            lambda: self.came.append((self.clock.monotonic(), END)),
        )

    def play(self, *told: tuple[float, Any]) -> list[tuple[float, Any]]:
        """Tell each at its time: an item, an error, or END."""
        for when, what in told:
            self.clock.advance(when - self.clock.monotonic())
            if what is END:
                self.subject.on_completed()
            elif isinstance(what, Exception):
                self.subject.on_error(what)
            elif what is not Ellipsis:
                self.subject.on_next(what)
        self.clock.advance(100)
        assert 0 == self.clock.pending
        return self.came


def played(make: Callable[[Flux[Any], VirtualClock], Any], *told: tuple[float, Any]) -> list[Any]:
    return Timeline(make).play(*told)


def test_delay_elements_shifts_each_item_and_the_end() -> None:
    """The end comes after the last item, at once where there is none."""
    assert [(4.0, 1), (5.0, None), (12.0, 3), (12.0, END)] == played(
        lambda flux, clock: flux.delay_elements(3, clock=clock), (1, 1), (2, None), (9, 3), (9, END)
    )
    assert [(2.0, END)] == played(lambda flux, clock: flux.delay_elements(3, clock=clock), (2, END))


def test_delay_elements_does_not_delay_an_error() -> None:
    """What waits is discarded."""
    assert [(4.0, 1), (5.0, FAILURE)] == played(
        lambda flux, clock: flux.delay_elements(3, clock=clock), (1, 1), (3, 2), (5, FAILURE)
    )


def test_delay_elements_has_one_timer() -> None:
    """Whatever waits; none after a dispose, and none after a subscriber that left inside an item."""
    line = Timeline(lambda flux, clock: flux.delay_elements(3, clock=clock))
    for value in range(100):
        line.subject.on_next(value)
    assert 1 == line.clock.pending
    line.subscription.dispose()
    assert 0 == line.clock.pending
    assert [(3.0, 1), (3.0, END)] == played(
        lambda flux, clock: flux.delay_elements(3, clock=clock).take(1), (0, 1), (0, 2)
    )


def test_delay_subscription_subscribes_later() -> None:
    """A dispose before that subscribes to nothing."""
    clock, probe = VirtualClock(), Probe(1, 2)
    watcher = watch(Flux.from_(probe.source).delay_subscription(3, clock=clock))
    left = Flux.from_(probe.source).delay_subscription(3, clock=clock).subscribe()
    left.dispose()
    clock.advance(2)
    assert (0, []) == (probe.subscribed, watcher.signals)
    clock.advance(1)
    assert (1, [item(1), item(2), END], 0) == (probe.subscribed, watcher.signals, clock.pending)


def test_delay_subscription_waits_for_another_stream() -> None:
    """For its first item, or its completion; its error is the error."""
    for end in (lambda other: other.on_next(1), lambda other: other.on_completed()):
        other, probe = reactivex.Subject[Any](), Probe(1)
        watcher = watch(Flux.from_(probe.source).delay_subscription(other))
        assert 0 == probe.subscribed
        end(other)
        assert (1, [item(1), END], []) == (probe.subscribed, watcher.signals, other.observers)
    assert [error(FAILURE)] == signals(Flux.just(1).delay_subscription(reactivex.throw(FAILURE)))


def test_delay_until_lets_items_wait_in_order() -> None:
    """The function is called for one item at a time."""
    others: list[reactivex.Subject[Any]] = []

    def other(value: Any) -> reactivex.Subject[Any]:
        others.append(reactivex.Subject())
        return others[-1]

    watcher = watch(Flux.just(1, 2, 3).delay_until(other))
    assert (1, []) == (len(others), watcher.signals)
    others[0].on_next("go")
    assert (2, [item(1)], []) == (len(others), watcher.signals, others[0].observers)
    others[1].on_completed()
    others[2].on_next("go")
    assert [item(1), item(2), item(3), END] == watcher.signals


def test_delay_until_fails_with_the_other_or_the_function() -> None:
    """The source is cancelled, and what waits is discarded; an error of the source comes at once."""
    probe = Probe(1, 2, ends=False)
    assert [error(FAILURE)] == signals(
        Flux.from_(probe.source).delay_until(lambda value: reactivex.throw(FAILURE))
    )
    assert 1 == probe.disposed
    assert [error(FAILURE)] == signals(Flux.just(1).delay_until(raising(FAILURE)))
    failing = Flux.from_(Probe(1, 2, fails=FAILURE).source)
    assert [error(FAILURE)] == signals(failing.delay_until(lambda value: reactivex.never()))


def test_a_dispose_reaches_what_an_item_waits_for() -> None:
    other, subject = reactivex.Subject[Any](), reactivex.Subject[Any]()
    subscription = Flux.from_(subject).delay_until(lambda value: other).subscribe()
    subject.on_next(1)
    assert 1 == len(other.observers)
    subscription.dispose()
    assert [] == other.observers == subject.observers


def test_sample_gives_the_newest_of_each_period() -> None:
    """Periods begin at the subscription; an idle one gives nothing, and has no timer; the rest comes at the end."""
    assert [(5.0, 2), (10.0, 3), (25.0, 4), (27.0, None), (27.0, END)] == played(
        lambda flux, clock: flux.sample(5, clock=clock),
        (1, 1), (4, 2), (5, 3), (22, 4), (26, None), (27, END),
    )  # fmt: skip
    assert 0 == Timeline(lambda flux, clock: flux.sample(5, clock=clock)).clock.pending


def test_debounce_waits_for_silence() -> None:
    """Each item starts the time anew, with the same timer; the rest comes at the end."""
    make = lambda flux, clock: flux.debounce(3, clock=clock)  # noqa: E731  # shorter than its types
    assert [(6.0, 2), (13.0, 4), (13.0, END)] == played(make, (1, 1), (3, 2), (11, 3), (12, 4), (13, END))
    line = Timeline(make)
    for value in range(100):
        line.subject.on_next(value)
    assert 1 == line.clock.pending


def test_what_waits_is_discarded_at_an_error() -> None:
    for make in (
        lambda flux, clock: flux.sample(5, clock=clock),
        lambda flux, clock: flux.debounce(5, clock=clock),
    ):
        assert [(2.0, FAILURE)] == played(make, (1, 1), (2, FAILURE))


def test_a_subscriber_may_leave_at_the_last_item() -> None:
    """It is told its end by the operator that left, and none by the sample."""
    for make in (
        lambda flux, clock: flux.sample(5, clock=clock).take(1),
        lambda flux, clock: flux.debounce(5, clock=clock).take(1),
    ):
        assert [(2.0, 1), (2.0, END)] == played(make, (1, 1), (2, END))


def test_throttle_first_drops_what_follows_too_soon() -> None:
    """It needs no timer, and no loop."""
    assert [(1.0, 1), (6.0, 3), (9.0, END)] == played(
        lambda flux, clock: flux.throttle_first(5, clock=clock), (1, 1), (2, 2), (6, 3), (8, 4), (9, END)
    )
    assert [item(1), END] == signals(Flux.just(1, 2).throttle_first(60))


def test_elapsed_tells_the_seconds_between_items() -> None:
    assert [(2.0, (2.0, "a")), (7.0, (5.0, "b")), (8.0, END)] == played(
        lambda flux, clock: flux.elapsed(clock=clock), (2, "a"), (7, "b"), (8, END)
    )
    assert [1, 2] == [value for _, value in watch(Flux.just(1, 2).elapsed()).items]


def test_timestamp_tells_the_time_of_an_item() -> None:
    """In seconds since 1970."""
    assert [(2.0, (1_700_000_002.0, "a")), (3.0, END)] == played(
        lambda flux, clock: flux.timestamp(clock=clock), (2, "a"), (3, END)
    )
    ((seconds, _),) = watch(Flux.just(1).timestamp()).items
    assert 1_700_000_000 < seconds


def test_take_for_and_skip_for_part_the_stream_by_time() -> None:
    """The source is cancelled before the end is told."""
    told = ((1, 1), (4, 2), (5, 3), (6, END))
    assert [(1.0, 1), (4.0, 2), (5.0, END)] == played(
        lambda flux, clock: flux.take_for(5, clock=clock), *told
    )
    assert [(5.0, 3), (6.0, END)] == played(lambda flux, clock: flux.skip_for(5, clock=clock), *told)
    line = Timeline(lambda flux, clock: flux.take_for(5, clock=clock))
    line.clock.advance(5)
    assert ([(5.0, END)], []) == (line.came, line.subject.observers)


def test_a_mono_waits_too() -> None:
    clock = VirtualClock()
    made = Mono(reactivex.of(1)).delay_element(3, clock=clock)
    watcher = watch(made)
    clock.advance(3)
    assert [item(1), END] == watcher.signals
    assert [item((0.0, 1)), END] == signals(Mono(reactivex.of(1)).elapsed(clock=clock))
    assert [item((1_700_000_003.0, 1)), END] == signals(Mono(reactivex.of(1)).timestamp(clock=clock))


@pytest.mark.parametrize(
    "name", ["delay_elements", "delay_subscription", "sample", "debounce", "throttle_first", "take_for", "skip_for"]
)  # fmt: skip
def test_seconds_are_above_zero(name: str) -> None:
    for wrong in (0, -1.0, float("nan")):
        with pytest.raises(ConfigurationError, match=rf"{name}\({wrong!r}\): .* above zero"):
            getattr(ops, name)(wrong)


@pytest.mark.parametrize("name", ["delay_elements", "delay_subscription", "sample", "debounce", "take_for"])
def test_a_timer_needs_a_loop_or_a_clock(name: str) -> None:
    """It says so where there is neither, and the source is cancelled."""
    probe = Probe(1, ends=False)
    failed = watch(getattr(Flux.from_(probe.source), name)(1))
    assert isinstance(failed.error, ConfigurationError)
    assert f"{name}() needs a running event loop" in str(failed.error)
    assert probe.subscribed == probe.disposed


async def test_timed_operators_count_by_the_running_loop() -> None:
    flux = Flux.just(1, 2)
    assert [1, 2] == await flux.delay_elements(0.001).collect_list()
    assert [1, 2] == await flux.delay_subscription(0.001).collect_list()
    assert [2] == await flux.sample(60).collect_list()
    assert [2] == await flux.debounce(60).collect_list()
    assert [1, 2] == await flux.take_for(60).collect_list()
    assert [] == await Flux.from_(reactivex.never()).take_for(0.001).collect_list()


def test_a_delayed_chat_stream_is_one_still() -> None:
    """What leaves events out by the time is none."""
    stream = parse(b"", dialect="openai-chat")
    for made in (
        stream.delay_elements(1),
        stream.delay_subscription(1),
        stream.take_for(1),
        stream.skip_for(1),
    ):
        assert isinstance(made, ChatStream)
    for other in (stream.sample(1), stream.debounce(1), stream.throttle_first(1)):
        assert Flux is type(other)


def test_items_of_several_threads_come_one_at_a_time() -> None:
    """An item that comes while the timer rings waits until that is through."""
    clock, subject, watcher = VirtualClock(), reactivex.Subject[Any](), Watcher()

    def again(value: Any) -> None:
        watcher.on_next(value)
        if value == 1:
            subject.on_next(2)
            watcher.on_next("out")

    Flux.from_(subject).debounce(1, clock=clock).subscribe(again)
    subject.on_next(1)
    clock.advance(1)
    clock.advance(10)
    assert [1, "out", 2] == watcher.items


def test_events_are_shifted_as_they_are() -> None:
    event = TextDelta("a")
    clock = VirtualClock()
    watcher = watch(Flux.just(event).delay_elements(1, clock=clock))
    clock.advance(1)
    assert watcher.items[0] is event
