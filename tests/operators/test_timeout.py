"""`timeout`: three limits, one timer, and a consumer whose own time does not count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import reactivex
from reactivex.disposable import Disposable
from reactivex.subject import Subject

from semflux import ChatStream, Flux, Retry
from semflux import operators as ops
from semflux.clock import Timer, VirtualClock
from semflux.contract import violations_of
from semflux.errors import (
    ConfigurationError,
    ConnectTimeoutError,
    FirstEventTimeoutError,
    IdleTimeoutError,
    TotalTimeoutError,
)
from semflux.events import AnyChatEvent
from semflux.operators.run import Run
from semflux.transport import ReplayTransport
from tests.frames import cu
from tests.operators.watching import END, Watcher, failed, hooked, item
from tests.recovering import BEGUN, HEL, LO, OK, answer, model_of, settle, source, until_done


class Counting(VirtualClock):
    """A virtual clock that counts the timers that are made."""

    __slots__ = ("made",)

    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    def call_later(self, delay: float, fn: Callable[..., object], *args: Any) -> Timer:
        self.made += 1
        return super().call_later(delay, fn, *args)


class Timed:
    """A source whose items come by hand, in virtual time, with the subscriber's signals."""

    def __init__(self, operator: Any = None, **limits: Any) -> None:
        self.clock = Counting()
        self.subject: Subject[Any] = Subject()
        self.disposed: list[float] = []
        self.watcher = Watcher()

        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            inner = self.subject.subscribe(observer)

            def dispose() -> None:
                self.disposed.append(self.clock.monotonic())
                self.log.append("cancelled")
                inner.dispose()

            return Disposable(dispose)

        self.log: list[Any] = []
        stream: Any = Flux(reactivex.create(subscribe)).timeout(**limits, clock=self.clock)
        if operator is not None:
            stream = operator(stream)
        self.subscription = stream.do_on_error(lambda error: self.log.append("error")).subscribe(
            self.watcher.on_next, self.watcher.on_error, self.watcher.on_completed
        )

    def at(self, seconds: float, *items: Any) -> None:
        """At this time, these items."""
        self.clock.advance(seconds - self.clock.monotonic())
        for each in items:
            self.subject.on_next(each)

    @property
    def error(self) -> Any:
        return self.watcher.error


def test_first_counts_from_the_subscription() -> None:
    timed = Timed(first=3)
    timed.at(2.9)
    assert [] == timed.watcher.signals
    timed.at(3)
    assert isinstance(timed.error, FirstEventTimeoutError)
    assert "timeout(first=...)" in str(timed.error)
    assert "3 s" in str(timed.error)
    assert "sink" == timed.error.phase
    assert isinstance(timed.error, TimeoutError)


def test_first_is_over_with_the_first_item() -> None:
    timed = Timed(first=3)
    timed.at(2.9, 1)
    assert 0 == timed.clock.pending
    timed.at(1_000, 2)
    assert [1, 2] == timed.watcher.items


def test_item_counts_from_one_item_to_the_next() -> None:
    timed = Timed(item=3)
    timed.at(100, 1)
    for second in range(102, 120, 2):
        timed.at(second, second)
    timed.at(120.9)
    assert timed.error is None
    timed.at(121)
    assert isinstance(timed.error, IdleTimeoutError)
    assert 0 == timed.clock.pending


def test_total_counts_from_the_subscription_to_the_end() -> None:
    timed = Timed(total=10)
    for second in range(1, 10):
        timed.at(second, second)
    timed.at(9.9)
    assert timed.error is None
    timed.at(10)
    assert isinstance(timed.error, TotalTimeoutError)


@pytest.mark.parametrize(
    "times,error,when",
    [
        ([], FirstEventTimeoutError, 4),
        ([3], IdleTimeoutError, 9),
        ([3, 8], TotalTimeoutError, 13),
        ([3, 7, 12], TotalTimeoutError, 13),
    ],
)
def test_the_first_limit_that_passes_is_told(times: list[float], error: type[Exception], when: float) -> None:
    timed = Timed(first=4, item=6, total=13)
    for second in times:
        timed.at(second, second)
    timed.at(when - 0.1)
    assert timed.error is None
    timed.at(when)
    assert isinstance(timed.error, error)


def test_an_end_in_time_leaves_no_timer() -> None:
    for end in ("on_completed", "on_error"):
        timed = Timed(first=4, item=6, total=13)
        timed.at(1, 1)
        getattr(timed.subject, end)(*([ValueError()] if end == "on_error" else []))
        assert 0 == timed.clock.pending
        timed.at(100)
        assert 2 == len(timed.watcher.signals)


def test_a_dispose_leaves_no_timer() -> None:
    timed = Timed(first=4, total=13)
    timed.subscription.dispose()
    assert 0 == timed.clock.pending


def test_the_source_is_cancelled_before_the_error_is_told() -> None:
    timed = Timed(first=4)
    timed.at(4)
    assert ["cancelled", "error"] == timed.log


def test_what_comes_late_is_dropped() -> None:
    timed = Timed(first=4)
    timed.at(5, 1, 2)
    timed.subject.on_completed()
    assert 1 == len(timed.watcher.signals)


def test_no_limit_at_all() -> None:
    timed = Timed()
    timed.at(1_000, 1)
    timed.subject.on_completed()
    assert [item(1), END] == timed.watcher.signals
    assert 0 == timed.clock.made


def test_a_thousand_items_need_one_timer() -> None:
    """Items write a time; the timer that rings too early is set anew."""
    timed = Timed(first=5, item=5, total=1_000)
    for n in range(1_000):
        timed.at(n / 100, n)
    assert 1_000 == len(timed.watcher.items)
    assert timed.clock.made <= 5
    assert 1 == timed.clock.pending


def test_an_item_that_comes_while_it_is_subscribed_to_is_the_first() -> None:
    """Whatever the source is like."""

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        observer.on_next(1)
        return Disposable()

    clock = VirtualClock()
    watcher = Watcher()
    Flux(reactivex.create(subscribe)).timeout(first=2, item=4, clock=clock).subscribe(
        watcher.on_next, watcher.on_error
    )
    clock.advance(3.9)
    assert watcher.error is None
    clock.advance(0.1)
    assert isinstance(watcher.error, IdleTimeoutError)


def test_a_subscriber_that_takes_its_time_is_given_it() -> None:
    """The next limit counts from when the item has been delivered."""
    timed: Timed
    timed = Timed(lambda stream: stream.do_on_next(lambda _: timed.clock.advance(10)), item=3)
    timed.at(1, 1)
    timed.at(13.5)
    assert timed.error is None
    timed.at(14)
    assert isinstance(timed.error, IdleTimeoutError)


@pytest.mark.parametrize("limits", [{"total": 0}, {"first": -1}, {"item": float("nan")}])
def test_a_limit_is_above_zero(limits: Any) -> None:
    with pytest.raises(ConfigurationError):
        Flux.just(1).timeout(**limits)


def test_without_a_loop_or_a_clock_it_cannot_count() -> None:
    """On a stream of events by ERROR too."""
    watcher = Watcher()
    Flux.just(1).timeout(5).subscribe(watcher.on_next, watcher.on_error)
    assert isinstance(watcher.error, ConfigurationError)
    events: list[AnyChatEvent] = []
    errors: list[Exception] = []
    source("parse", OK).timeout(5).subscribe(events.append, errors.append)
    assert ["RESPONSE_START", "ERROR"] == [event.type.value for event in events]
    assert errors == [events[-1].error]
    assert () == violations_of(events)


def test_block_has_a_loop() -> None:
    assert 1 == Flux.just(1).timeout(5).block()
    response = source("parse", OK).timeout(5).response().block()
    assert response is not None


async def test_the_clock_is_the_runs_then_the_loops() -> None:
    assert 1 == await Flux.just(1).timeout(5).next()
    clock = VirtualClock()
    run = Run()
    run.clock = clock
    watcher = Watcher()
    Flux(reactivex.never()).timeout(5).to_observable().subscribe(
        watcher.on_next, watcher.on_error, scheduler=run.scheduler
    )
    clock.advance(5)
    assert isinstance(watcher.error, TotalTimeoutError)
    with pytest.raises(TotalTimeoutError):
        await Flux(reactivex.never()).timeout(0.01).collect_list()


# The fallback


def test_a_fallback_takes_the_place_of_the_error() -> None:
    timed = Timed(first=4, fallback=Flux.just(7, 8))
    timed.at(4)
    assert [item(7), item(8), END] == timed.watcher.signals
    assert ["cancelled"] == timed.log


def test_a_fallback_has_no_limit_and_its_error_is_final() -> None:
    error = TimeoutError("its own")
    timed = Timed(item=4, total=9, fallback=Flux(reactivex.concat(reactivex.of(7), reactivex.throw(error))))
    timed.at(1, 1)
    timed.at(5)
    assert [item(1), item(7), failed(error)] == timed.watcher.signals
    timed = Timed(first=4, total=9, fallback=Flux(reactivex.never()))
    timed.at(1_000)
    assert [] == timed.watcher.signals


def test_a_fallback_is_for_its_own_limits_alone() -> None:
    """Another timeout's error, and that of the source, pass."""
    error = ConnectTimeoutError("its own")
    timed = Timed(first=4, fallback=Flux.just(7))
    timed.subject.on_error(error)
    assert [failed(error)] == timed.watcher.signals
    clock = VirtualClock()
    watcher = Watcher()
    nested = (
        Flux(reactivex.never()).timeout(first=3, clock=clock).timeout(9, fallback=Flux.just(7), clock=clock)
    )
    nested.subscribe(watcher.on_next, watcher.on_error)
    clock.advance(100)
    assert isinstance(watcher.error, FirstEventTimeoutError)


# A pulling consumer


async def consume(
    stream: Any, clock: VirtualClock, pauses: list[float], until: float = 200.0
) -> tuple[list[Any], Exception | None]:
    """By `async for`, which takes so many seconds over each item; then none."""
    taken: list[Any] = []
    rest = list(pauses)

    async def read() -> Exception | None:
        try:
            async for event in stream:
                taken.append(event)
                if rest:
                    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    clock.call_later(rest.pop(0), over.set_result, None)
                    await over
        except Exception as error:
            return error
        return None

    task = asyncio.ensure_future(read())
    await until_done(task, clock)
    return taken, await task


def timed_answer(*body: Any) -> tuple[VirtualClock, ChatStream]:
    clock = VirtualClock()
    return clock, model_of(answer(*body), clock=clock).prompt("hi").stream()


async def test_the_time_of_a_slow_consumer_does_not_count_for_the_next_item() -> None:
    clock, stream = timed_answer(HEL, LO, *OK)
    taken, error = await consume(stream.timeout(item=3), clock, [10.0] * 20)
    assert error is None
    assert "RESPONSE_END" == taken[-1].type.value


async def test_what_it_waits_for_counts() -> None:
    clock, stream = timed_answer(HEL, 4.0, *OK)
    _, error = await consume(stream.timeout(item=3), clock, [10.0] * 20)
    assert isinstance(error, IdleTimeoutError)


async def test_the_time_of_a_slow_consumer_does_not_count_for_the_first_item() -> None:
    """It stands still meanwhile; what was waited before counts on."""
    clock, stream = timed_answer(2.0, *BEGUN, 2.0, *OK)
    taken, error = await consume(stream.timeout(first=5), clock, [50.0] * 3)
    assert error is None
    clock, stream = timed_answer(2.0, *BEGUN, 3.5, *OK)
    taken, error = await consume(stream.timeout(first=5), clock, [50.0] * 2)
    assert isinstance(error, FirstEventTimeoutError)
    assert "STEP_END" == taken[-2].type.value


async def test_events_without_content_do_not_put_the_first_limit_off() -> None:
    body = [piece for n in range(10) for piece in (1.0, cu(1, n))]
    clock, stream = timed_answer(*body, 60.0)
    taken, error = await consume(stream.timeout(first=5), clock, [])
    assert isinstance(error, FirstEventTimeoutError)
    assert 5.0 == taken[-1].time - 1_700_000_000
    assert 4 <= [event.type.value for event in taken].count("USAGE")


async def test_the_whole_counts_whoever_waits() -> None:
    clock, stream = timed_answer(HEL, 1.0, *OK)
    taken, error = await consume(stream.timeout(12, item=5), clock, [50.0])
    assert isinstance(error, TotalTimeoutError)
    assert 12.0 == taken[-1].time - 1_700_000_000


async def test_two_limits_of_one_stream_both_see_the_consumer() -> None:
    """Also where one is above a recovery, and was there in an attempt before."""
    clock = VirtualClock()
    model = model_of(BEGUN, BEGUN, answer(HEL, 1.0, LO, *OK), clock=clock)
    stream = model.prompt("hi").stream().timeout(item=3).retry(5).timeout(item=4).timeout(1_000)
    taken, error = await consume(stream, clock, [10.0] * 30)
    assert error is None
    assert "RESPONSE_END" == taken[-1].type.value
    assert 0 == clock.pending


async def test_a_consumer_that_never_asks_again_needs_no_timer() -> None:
    clock = Counting()
    model = model_of(answer(HEL, LO), clock=clock)
    iterator = aiter(model.prompt("hi").stream().timeout(first=3, item=3))
    for _ in range(4):
        await anext(iterator)
    before = clock.made
    clock.advance(1_000)
    assert clock.made <= before + 1
    await iterator.aclose()
    assert 0 == clock.pending


# A stream of events


class Closing(ReplayTransport):
    """Says when an exchange is closed."""

    def __init__(self, *recordings: Any, clock: VirtualClock, log: list[Any]) -> None:
        super().__init__(*recordings, clock=clock)
        self._log = log

    async def open(self, *args: Any, **options: Any) -> Any:
        self._log.append("open")
        exchange: Any = await super().open(*args, **options)
        close = exchange.close

        def logged() -> None:
            self._log.append("closed")
            close()

        exchange.close = logged
        return exchange


@pytest.mark.parametrize("pulled", [True, False])
async def test_the_connection_is_closed_before_the_end_is_told(pulled: bool) -> None:
    """And before the fallback opens another one."""
    from semflux import ChatModel

    clock = VirtualClock()
    log: list[Any] = []
    transport = Closing(answer(HEL, 60.0), answer(*OK), clock=clock, log=log)
    model = ChatModel("openai-chat:m", api_key="k", transport=transport, clock=clock, max_retries=0)
    stream = model.prompt("hi").stream()
    limited = stream.timeout(item=3, fallback=stream).do_on_next(lambda e: log.append(e.type.value))
    if pulled:
        taken, error = await consume(limited, clock, [])
    else:
        taken = []
        ends: list[Exception | None] = []
        limited.subscribe(taken.append, ends.append, lambda: ends.append(None))
        for _ in range(40):
            await settle()
            clock.advance(0.25)
        error = ends[0]
    assert error is None
    assert () == violations_of(taken)
    at = log.index("closed")
    assert [
        "open",
        "STEP_START",
        "TEXT_START",
        "TEXT_DELTA",
        "closed",
        "TEXT_END",
        "STEP_END",
        "STATUS",
        "open",
    ] == log[log.index("open") : at + 5]
    assert 0 == transport.acquired


async def test_late_events_of_a_timed_out_stream_are_nobodys() -> None:
    clock = VirtualClock()
    stream = model_of(answer(HEL, 3.0, LO, *OK), clock=clock).prompt("hi").stream().timeout(item=3)
    with hooked() as dropped:
        taken, error = await consume(stream, clock, [])
    assert isinstance(error, IdleTimeoutError) or "RESPONSE_END" == taken[-1].type.value
    assert [] == dropped.errors
    assert 1 == sum(event.is_terminal for event in taken)


async def test_a_limit_and_a_retry_for_it() -> None:
    """A timeout is not worth it by itself: it costs twice. A filter says otherwise."""
    clock = VirtualClock()
    model = model_of(answer(60.0), answer(60.0), OK, clock=clock)
    stream = model.prompt("hi").stream().timeout(first=3)
    taken, error = await consume(stream.retry(3), clock, [])
    assert isinstance(error, FirstEventTimeoutError)
    taken, error = await consume(stream.retry_when(Retry.max(3).filter(TimeoutError)), clock, [])
    assert error is None
    assert "RESPONSE_END" == taken[-1].type.value
    assert 0 == clock.pending


async def test_a_chat_stream_whose_source_is_over_fails_all_the_same() -> None:
    """Its events are still on their way, in an operator that holds them; or it never was one of ours."""
    clock = VirtualClock()
    held: Any = Flux.from_(reactivex.never())
    watcher = Watcher()
    operator: Any = ops.timeout(3, clock=clock, chat=True)
    operator(held.to_observable()).subscribe(watcher.on_next, watcher.on_error)
    clock.advance(3)
    assert isinstance(watcher.error, TotalTimeoutError)


def test_a_clock_that_rings_too_early_or_too_late() -> None:
    """A timer that was on its way when the stream ended has no effect; one that is early is set again."""
    rings: list[Any] = []

    class Early(VirtualClock):
        def call_later(self, delay: float, fn: Any, *args: Any) -> Timer:
            rings.append(fn)
            return super().call_later(delay, fn, *args)

    clock, watcher = Early(), Watcher()
    subject: Subject[Any] = Subject()
    Flux(subject).timeout(5, clock=clock).subscribe(watcher.on_next, watcher.on_error, watcher.on_completed)
    rings[0]()
    assert [] == watcher.signals
    subject.on_completed()
    rings[0]()
    clock.advance(10)
    assert [END] == watcher.signals


async def test_an_end_before_its_clock_starts_leaves_no_timer() -> None:
    """A source may be over when it has been subscribed to."""
    clock = Counting()
    watcher = Watcher()

    def ended(observer: Any, scheduler: Any = None) -> Any:
        observer.on_completed()

    Flux(reactivex.create(ended)).timeout(5, clock=clock).subscribe(on_completed=watcher.on_completed)
    assert [END] == watcher.signals
    assert 0 == clock.made


async def test_demand_that_comes_late_starts_the_clock_late() -> None:
    """A subscriber that asks for nothing yet is not timed."""
    clock = VirtualClock()
    run = Run(pull=True)
    run.clock = clock
    watcher = Watcher()
    stream: Any = Flux(reactivex.never()).timeout(first=3).to_observable()
    stream.subscribe(watcher.on_next, watcher.on_error, scheduler=run.scheduler)
    clock.advance(50)
    assert [] == watcher.signals
    assert run.timed is not None
    run.is_waiting = True
    run.timed()
    run.timed()
    clock.advance(2.9)
    run.timed()
    assert [] == watcher.signals
    clock.advance(0.1)
    assert isinstance(watcher.error, FirstEventTimeoutError)
