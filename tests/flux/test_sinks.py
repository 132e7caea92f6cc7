"""Sinks: streams that are fed by hand."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from semflux.clock import VirtualClock
from semflux.errors import AlreadyConsumedError, BufferOverflowError, ConfigurationError, OperatorError
from semflux.flux import EmitResult, Sinks
from tests.operators.watching import END, error, hooked, item, raising, watch

R = EmitResult
OOPS = ValueError("oops")


def test_multicast_keeps_what_comes_before_the_first_subscriber() -> None:
    """As much as there is room for."""
    sink = Sinks.multicast(buffer=2)
    assert [R.OK, R.OK, R.FAIL_ZERO_SUBSCRIBER] == [sink.try_emit_next(i) for i in range(3)]
    first = watch(sink.as_flux())
    second = watch(sink.as_flux())
    assert R.OK.is_success
    assert R.OK is sink.try_emit_next(3)
    assert 2 == sink.current_subscriber_count
    assert R.OK is sink.try_emit_complete()
    assert [item(0), item(1), item(3), END] == first.signals
    assert [item(3), END] == second.signals
    assert R.FAIL_TERMINATED is sink.try_emit_next(4)
    assert R.FAIL_TERMINATED is sink.try_emit_error(OOPS)
    assert [END] == watch(sink.as_flux()).signals


def test_multicast_keeps_an_end_that_came_early_too() -> None:
    """The first subscriber gets what waits, then the error; the next one the error."""
    sink = Sinks.multicast()
    sink.emit_next(1)
    sink.emit_error(OOPS)
    assert [item(1), error(OOPS)] == watch(sink.as_flux()).signals
    assert [error(OOPS)] == watch(sink.as_flux()).signals


def test_multicast_is_over_when_its_last_subscriber_leaves() -> None:
    """Unless `auto_cancel` is false: then what comes waits for the next one."""
    sink = Sinks.multicast()
    sink.as_flux().subscribe().dispose()
    assert R.FAIL_CANCELLED is sink.try_emit_next(1)
    assert R.FAIL_CANCELLED is sink.try_emit_complete()
    assert [END] == watch(sink.as_flux()).signals
    lasting = Sinks.multicast(auto_cancel=False)
    lasting.as_flux().subscribe().dispose()
    assert R.OK is lasting.try_emit_next(1)
    assert [item(1)] == watch(lasting.as_flux()).signals


async def test_a_slow_reader_that_is_full_refuses_for_all() -> None:
    """All or nothing: nobody gets what one has no room for."""
    sink = Sinks.multicast(buffer=2)
    seen = watch(sink.as_flux())
    async with aiter(sink.as_flux()) as slow:
        first = asyncio.ensure_future(anext(slow))
        await asyncio.sleep(0)
        sink.emit_next(-1)
        assert -1 == await first
        results = [sink.try_emit_next(i) for i in range(70)]
        room = results.count(R.OK)
        assert 63 + 2 == room
        assert {R.FAIL_OVERFLOW} == set(results[room:])
        assert [-1, *range(room)] == seen.items
        assert list(range(room)) == [await anext(slow) for _ in range(room)]
        assert R.OK is sink.try_emit_next(99)
        with pytest.raises(BufferOverflowError, match="FAIL_OVERFLOW"):
            for i in range(100):
                sink.emit_next(i)


def test_unicast_has_one_subscriber() -> None:
    """Who gets all; a second one fails."""
    sink = Sinks.unicast(buffer=2)
    assert [R.OK, R.OK, R.FAIL_OVERFLOW] == [sink.try_emit_next(i) for i in range(3)]
    seen: list[Any] = []
    subscription = sink.as_flux().subscribe(seen.append)
    assert isinstance(watch(sink.as_flux()).error, AlreadyConsumedError)
    sink.emit_next(2)
    assert [0, 1, 2] == seen
    subscription.dispose()
    assert R.FAIL_CANCELLED is sink.try_emit_next(3)


def test_replay_tells_late_subscribers_what_was() -> None:
    """All, or the last ones, or those that are young enough; and the end."""
    clock = VirtualClock()
    whole, last, young = Sinks.replay(), Sinks.replay(2), Sinks.replay(ttl=10, clock=clock)
    for i in range(3):
        for sink in (whole, last, young):
            assert R.OK is sink.try_emit_next(i)
        clock.advance(5)
    assert [0, 1, 2] == watch(whole.as_flux()).items
    assert [1, 2] == watch(last.as_flux()).items
    assert [2] == watch(young.as_flux()).items
    whole.emit_complete()
    assert [item(0), item(1), item(2), END] == watch(whole.as_flux()).signals
    assert [] == watch(Sinks.replay(0).as_flux()).signals


def test_replay_of_all_says_when_it_has_lost_something() -> None:
    """Late subscribers fail: they would miss what they count on. With a number the oldest go."""
    sink, last = Sinks.replay(), Sinks.replay(20_000)
    for i in range(10_001):
        sink.emit_next(i)
        last.emit_next(i)
    assert isinstance(watch(sink.as_flux()).error, BufferOverflowError)
    assert list(range(1, 10_001)) == watch(last.as_flux()).items


def test_an_emission_from_another_thread_at_the_same_time_is_refused() -> None:
    """And from the same thread it comes after the one it is inside of."""
    sink = Sinks.multicast()
    results: list[EmitResult] = []
    second = threading.Thread(target=lambda: results.append(sink.try_emit_next("other")))

    def receive(value: Any) -> None:
        if value == 0:
            second.start()
            second.join()
            results.append(sink.try_emit_next(1))

    sink.as_flux().subscribe(receive)
    seen = watch(sink.as_flux())
    assert R.OK is sink.try_emit_next(0)
    assert [R.FAIL_NON_SERIALIZED, R.OK] == results
    assert [0, 1] == seen.items


def test_emit_raises_unless_its_handler_tries_again() -> None:
    """The result is the error's kind."""
    sink = Sinks.multicast(buffer=1)
    sink.emit_next(0)
    asked: list[EmitResult] = []

    def handler(result: EmitResult) -> bool:
        asked.append(result)
        watch(sink.as_flux())
        return True

    sink.emit_next(1, handler)
    assert [R.FAIL_ZERO_SUBSCRIBER] == asked
    sink.emit_complete()
    with pytest.raises(OperatorError, match="FAIL_TERMINATED") as caught:
        sink.emit_complete(lambda result: False)
    assert "fail_terminated" == caught.value.kind


def test_a_subscriber_that_raises_leaves_alone() -> None:
    """The others see nothing of it, nor does who emits."""
    sink = Sinks.multicast()
    with hooked() as dropped:
        sink.as_flux().subscribe(raising(OOPS))
        seen = watch(sink.as_flux())
        assert R.OK is sink.try_emit_next(1)
        assert R.OK is sink.try_emit_next(2)
    assert [1, 2] == seen.items
    assert [OOPS] == dropped.errors
    assert 1 == sink.current_subscriber_count


async def test_a_thread_can_feed_a_loop() -> None:
    """In order, whoever is faster."""
    sink = Sinks.multicast(auto_cancel=False, buffer=100_000)

    def feed() -> None:
        for i in range(2000):
            sink.emit_next(i)
        sink.emit_complete()

    thread = threading.Thread(target=feed)
    async with asyncio.timeout(20):
        async with aiter(sink.as_flux()) as items:
            thread.start()
            assert list(range(2000)) == [each async for each in items]
    thread.join()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Sinks.unicast(buffer=0),
        lambda: Sinks.multicast(buffer=0),
        lambda: Sinks.replay(-1),
        lambda: Sinks.replay(ttl=0),
    ],
)
def test_wrong_numbers_are_refused(make: Any) -> None:
    """When the sink is made."""
    with pytest.raises(ConfigurationError):
        make()
