"""All on a virtual clock: `expired` has what came out, with the second in which it did."""

from __future__ import annotations

import pytest

from semflux.clock import VirtualClock
from semflux.errors import (
    ConnectTimeoutError,
    FirstEventTimeoutError,
    IdleTimeoutError,
    PoolTimeoutError,
    TotalTimeoutError,
    TransportError,
)
from semflux.http import Timeouts
from semflux.transport import Watchdog, timeout_error

LIMITS = Timeouts(pool=30, connect=10, first=600, idle=300, total=None)


class Guarded:
    """A watchdog, its clock and what it said."""

    def __init__(self, timeouts: Timeouts = LIMITS) -> None:
        self.clock = VirtualClock()
        self.expired: list[tuple[type[TransportError], float]] = []
        self.errors: list[TransportError] = []
        self.dog = Watchdog(self.clock, timeouts, self._expire)

    def _expire(self, error: TransportError) -> None:
        self.errors.append(error)
        self.expired.append((type(error), self.clock.monotonic()))


def streaming(timeouts: Timeouts = LIMITS) -> Guarded:
    """With the request sent at second 0 and the first content at second 0 as well."""
    guarded = Guarded(timeouts)
    guarded.dog.arm("request")
    guarded.dog.content()
    return guarded


def test_waiting_for_the_pool_ends_with_its_limit() -> None:
    guarded = Guarded()
    guarded.dog.arm("pool")
    guarded.clock.advance(29.9)
    assert guarded.expired == []
    guarded.clock.advance(1000)
    assert guarded.expired == [(PoolTimeoutError, 30.0)]
    assert guarded.errors[0].phase == "connect"


def test_connecting_has_its_own_limit_and_a_nearer_one_replaces_the_timer() -> None:
    guarded = Guarded()
    guarded.dog.arm("pool")
    guarded.clock.advance(5)
    guarded.dog.arm("connect")
    assert guarded.clock.pending == 1
    guarded.clock.advance(1000)
    assert guarded.expired == [(ConnectTimeoutError, 15.0)]


def test_a_connection_in_time_is_no_timeout() -> None:
    guarded = Guarded()
    guarded.dog.arm("pool")
    guarded.dog.arm("connect")
    guarded.clock.advance(9)
    guarded.dog.arm("request")
    guarded.clock.advance(599)
    assert guarded.expired == []


def test_first_runs_from_the_request_to_the_first_content_whatever_bytes_come() -> None:
    """Pings and comments are life, but no content."""
    guarded = Guarded()
    guarded.dog.arm("request")
    for _ in range(700):
        guarded.clock.advance(1)
        guarded.dog.life()
    assert guarded.expired == [(FirstEventTimeoutError, 600.0)]
    assert guarded.errors[0].phase == "first_event"


def test_idle_replaces_first_at_the_first_content() -> None:
    guarded = Guarded()
    guarded.dog.arm("request")
    guarded.clock.advance(500)
    guarded.dog.content()
    guarded.clock.advance(200)
    guarded.dog.content()  # only the first counts
    guarded.clock.advance(1000)
    assert guarded.expired == [(IdleTimeoutError, 800.0)]
    assert guarded.errors[0].phase == "stream"


def test_any_byte_puts_off_the_idle_limit() -> None:
    guarded = streaming()
    for _ in range(10):
        guarded.clock.advance(299)
        guarded.dog.life()
    guarded.clock.advance(299)
    assert guarded.expired == []
    guarded.clock.advance(1)
    assert guarded.expired == [(IdleTimeoutError, 3290.0)]


def test_life_moves_no_timer() -> None:
    guarded = streaming()
    made = guarded.clock._made
    for _ in range(100):
        guarded.dog.life()
        guarded.dog.pause()
        guarded.dog.resume()
    assert (guarded.clock._made, guarded.clock.pending) == (made, 1)


def test_idle_stands_still_while_nobody_asks_for_bytes() -> None:
    guarded = streaming()
    guarded.clock.advance(200)
    guarded.dog.pause()
    guarded.dog.pause()
    guarded.clock.advance(10_000)
    assert guarded.expired == []
    guarded.dog.resume()
    guarded.dog.resume()
    guarded.clock.advance(99)
    assert guarded.expired == []
    guarded.clock.advance(1)
    assert guarded.expired == [(IdleTimeoutError, 10_300.0)]


def test_a_pause_longer_than_the_limit_leaves_no_timer_behind_it() -> None:
    guarded = streaming()
    guarded.dog.pause()
    guarded.clock.advance(301)
    assert guarded.clock.pending == 0
    guarded.dog.resume()
    assert guarded.clock.pending == 1


def test_bytes_and_content_during_a_pause_start_the_idle_limit_at_its_end() -> None:
    guarded = Guarded()
    guarded.dog.arm("request")
    guarded.dog.pause()
    guarded.clock.advance(50)
    guarded.dog.life()
    guarded.dog.content()
    guarded.clock.advance(50)
    guarded.dog.resume()
    guarded.clock.advance(1000)
    assert guarded.expired == [(IdleTimeoutError, 400.0)]


def test_first_stands_still_as_well() -> None:
    guarded = Guarded()
    guarded.dog.arm("request")
    guarded.clock.advance(100)
    guarded.dog.pause()
    guarded.clock.advance(1000)
    guarded.dog.resume()
    guarded.clock.advance(1000)
    assert guarded.expired == [(FirstEventTimeoutError, 1600.0)]


def test_a_new_step_brings_first_back() -> None:
    guarded = streaming()
    guarded.dog.pause()  # tools run
    guarded.clock.advance(50)
    guarded.dog.step()
    guarded.clock.advance(1000)
    assert guarded.expired == [(FirstEventTimeoutError, 650.0)]


def test_total_runs_from_the_making_through_everything() -> None:
    guarded = Guarded(Timeouts(total=1000))
    guarded.dog.arm("request")
    guarded.clock.advance(500)
    guarded.dog.content()
    guarded.dog.pause()
    guarded.clock.advance(10_000)
    assert guarded.expired == [(TotalTimeoutError, 1000.0)]
    assert guarded.errors[0].phase == "stream"


def test_total_runs_before_anything_else_does() -> None:
    guarded = Guarded(Timeouts(total=5))
    guarded.clock.advance(10)
    assert guarded.expired == [(TotalTimeoutError, 5.0)]
    assert guarded.errors[0].phase == "connect"


def test_the_nearest_limit_counts() -> None:
    guarded = streaming(Timeouts(idle=300, total=1000))
    guarded.clock.advance(800)
    assert guarded.expired == [(IdleTimeoutError, 300.0)]
    guarded = streaming(Timeouts(idle=300, total=1000))
    for _ in range(4):
        guarded.clock.advance(250)
        guarded.dog.life()
    assert guarded.expired == [(TotalTimeoutError, 1000.0)]


@pytest.mark.parametrize("phase", ["pool", "connect", "request"])
def test_a_limit_of_none_never_passes(phase: str) -> None:
    guarded = Guarded(Timeouts(pool=None, connect=None, first=None, idle=300, total=None))
    guarded.dog.arm(phase)  # type: ignore[arg-type]
    guarded.clock.advance(1e9)
    assert (guarded.expired, guarded.clock.pending) == ([], 0)


def test_it_speaks_once_and_then_is_closed() -> None:
    guarded = streaming()
    guarded.clock.advance(1000)
    assert len(guarded.expired) == 1
    guarded.dog.arm("pool")
    guarded.dog.step()
    guarded.dog.content()
    guarded.dog.pause()
    guarded.dog.resume()
    guarded.clock.advance(10_000)
    assert (len(guarded.expired), guarded.clock.pending) == (1, 0)


def test_closing_leaves_no_timer() -> None:
    guarded = streaming()
    guarded.dog.close()
    guarded.dog.close()
    guarded.clock.advance(10_000)
    assert (guarded.expired, guarded.clock.pending) == ([], 0)


@pytest.mark.parametrize("limit", ["pool", "connect", "first", "idle", "total"])
def test_the_message_names_the_limit_its_value_and_what_to_change(limit: str) -> None:
    error = timeout_error(limit, 12.5)  # type: ignore[arg-type]
    assert isinstance(error, TimeoutError)
    assert f"within 12.5 s (the {limit} limit)" in str(error)
    assert f"timeouts=Timeouts({limit}=...)" in str(error)
