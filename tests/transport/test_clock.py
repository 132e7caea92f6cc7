from __future__ import annotations

import asyncio
import time

import pytest

from semflux.clock import Clock, LoopClock, VirtualClock


def test_a_virtual_clock_stands_still_until_it_is_advanced() -> None:
    clock = VirtualClock(start=1000.0)
    assert (clock.time(), clock.monotonic()) == (1000.0, 0.0)
    clock.advance(2.5)
    assert (clock.time(), clock.monotonic()) == (1002.5, 2.5)


def test_due_timers_are_called_in_order_each_at_its_own_time() -> None:
    clock = VirtualClock()
    called: list[tuple[str, float]] = []

    def note(name: str) -> None:
        called.append((name, clock.monotonic()))

    clock.call_later(3, note, "third")
    clock.call_later(1, note, "first")
    clock.call_later(1, note, "second")
    clock.call_later(9, note, "later")
    clock.call_later(-1, note, "now")
    assert called == []
    clock.advance(3)
    assert called == [("now", 0.0), ("first", 1.0), ("second", 1.0), ("third", 3.0)]
    assert (clock.monotonic(), clock.pending) == (3.0, 1)


def test_timers_made_by_timers_take_part() -> None:
    clock = VirtualClock()
    called: list[float] = []

    def tick() -> None:
        called.append(clock.monotonic())
        clock.call_later(2, tick)

    tick()
    clock.advance(5)
    assert called == [0.0, 2.0, 4.0]


def test_a_cancelled_timer_is_not_called() -> None:
    clock = VirtualClock()
    called: list[str] = []
    timer = clock.call_later(1, called.append, "cancelled")
    clock.call_later(1, called.append, "kept")
    timer.cancel()
    timer.cancel()
    assert clock.pending == 1
    clock.advance(2)
    assert (called, clock.pending) == (["kept"], 0)


def test_what_a_timer_raises_stops_the_clock_there() -> None:
    clock = VirtualClock()

    def fail() -> None:
        raise ValueError("no")

    clock.call_later(1, fail)
    with pytest.raises(ValueError, match="no"):
        clock.advance(5)
    assert clock.monotonic() == 1.0


async def test_a_loop_clock_is_the_clock_of_its_loop() -> None:
    loop = asyncio.get_running_loop()
    clock: Clock = LoopClock(loop)
    assert abs(clock.monotonic() - loop.time()) < 1
    assert abs(clock.time() - time.time()) < 1
    called = asyncio.Event()
    clock.call_later(60, called.clear).cancel()
    clock.call_later(0, called.set)
    assert not called.is_set()
    await called.wait()
