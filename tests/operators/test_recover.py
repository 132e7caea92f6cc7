"""What recovery does in company: with other recoveries, in a merge, with limits below it, with other streams."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
import reactivex
from reactivex import operators as rx
from reactivex.disposable import Disposable

from semflux import ChatStream, Flux, Retry
from semflux import operators as ops
from semflux.clock import VirtualClock
from semflux.contract import violations_of
from semflux.errors import (
    ConfigurationError,
    FirstEventTimeoutError,
    OverloadedError,
    ServerError,
    TotalTimeoutError,
    TruncatedStreamError,
)
from semflux.events import AnyChatEvent, ResponseEnd, ResponseStart, StepEnd, StepStart, TextDelta, UsageEvent
from semflux.operators.between import Between
from semflux.operators.lift import Direct
from semflux.operators.recover import is_chat_source
from semflux.usage import Usage
from tests.operators.watching import Watcher
from tests.recovering import (
    BEGUN,
    CUT,
    HEL,
    OK,
    Walk,
    answer,
    model_of,
    settle,
    source,
    status,
    until_done,
    walk,
)


async def take_all(stream: Any, clock: VirtualClock | None = None) -> Walk:
    """By `async for`, in virtual time."""
    events: list[Any] = []

    async def read() -> Exception | None:
        try:
            async for event in stream:
                events.append(event)  # noqa: PERF401
        except Exception as error:
            return error
        return None

    task = asyncio.ensure_future(read())
    if clock is not None:
        await until_done(task, clock)
    async with asyncio.timeout(5):
        return Walk(events, await task)


# Limits below a recovery


async def test_a_limit_below_a_recovery_is_not_recovered_from() -> None:
    """The limit is for all attempts together, as it stands."""
    clock = VirtualClock()
    for recover in (
        lambda s: s.fallback_to(model_of(OK, clock=clock).prompt("x").stream()),
        lambda s: s.on_error_resume(lambda error: model_of(OK, clock=clock).prompt("x").stream()),
        lambda s: s.on_error_return("sorry"),
        lambda s: s.retry_when(Retry.max(3).restart().filter(Exception)),
        lambda s: s.on_error_map(lambda error: OverloadedError("mapped")),
    ):
        model = model_of(answer(HEL, 600.0), clock=clock)
        seen = (await take_all(recover(model.prompt("hi").stream()).timeout(5), clock)).check()
        assert ["TEXT_DELTA", "TEXT_END", "STEP_END", "ERROR"] == seen.types[-4:]
        assert isinstance(seen.error, TotalTimeoutError)
        assert 0 == clock.pending
        assert 0 == model._transport.acquired


async def test_a_limit_above_a_recovery_is_recovered_from() -> None:
    clock = VirtualClock()
    stream = model_of(answer(600.0), clock=clock).prompt("hi").stream().timeout(5)
    seen = (await take_all(stream.fallback_to(model_of(OK, clock=clock).prompt("x").stream()), clock)).check()
    assert "Hello" == seen.response.text


async def test_a_recovery_below_a_limit_below_a_recovery() -> None:
    """The upper one leaves it alone, the lower one takes it up."""
    clock = VirtualClock()
    first = model_of(answer(600.0), clock=clock).prompt("hi").stream()
    second = model_of(OK, clock=clock).prompt("hi").stream()
    third = model_of(OK, clock=clock).prompt("hi").stream()
    opened: list[str] = []
    stream = (
        first.fallback_to(second.do_on_next(lambda e: opened.append("second")))
        .timeout(5)
        .fallback_to(third.do_on_next(lambda e: opened.append("third")))
    )
    seen = (await take_all(stream, clock)).check()
    assert {"third"} == set(opened)
    assert "Hello" == seen.response.text
    assert ["STATUS"] == [name for name in seen.types if name == "STATUS"]


async def test_a_limit_between_two_recoveries_passes_over_a_wait() -> None:
    clock = VirtualClock()
    first = model_of(BEGUN, clock=clock).prompt("hi").stream().retry_when(Retry.fixed_delay(3, 600))
    second = model_of(OK, clock=clock).prompt("hi").stream()
    seen = (await take_all(first.timeout(5).fallback_to(second), clock)).check()
    assert [("retry", 0.0), ("fallback", 5.0)] == [
        (event.sub_type, event.time - 1_700_000_000) for event in seen.events if event.type.value == "STATUS"
    ]
    assert "Hello" == seen.response.text
    first = model_of(BEGUN, clock=clock).prompt("hi").stream().retry_when(Retry.fixed_delay(3, 600))
    seen = (await take_all(first.fallback_to(second).timeout(5), clock)).check()
    assert isinstance(seen.error, TotalTimeoutError)
    assert 0 == clock.pending


async def test_a_limit_holds_while_copied_events_come() -> None:
    clock = VirtualClock()
    endless = Flux.from_(reactivex.concat(reactivex.of(StepStart(), TextDelta("a")), reactivex.never()))
    stream = model_of(BEGUN, clock=clock).prompt("hi").stream().fallback_to(endless).timeout(5)
    seen = (await take_all(stream, clock)).check()
    assert ["TEXT_DELTA", "TEXT_END", "STEP_END", "ERROR"] == seen.types[-4:]
    assert isinstance(seen.error, TotalTimeoutError)


# Several streams of one subscription


async def test_streams_that_recover_side_by_side_keep_apart() -> None:
    """Merged, each has its own id, order and steps; none takes the place of the other."""
    for _ in range(2):
        one = model_of(BEGUN, status(503), OK).prompt("hi").stream().retry_when(Retry.backoff(3, 0.001))
        two = model_of(CUT, OK).prompt("hi").stream().retry_when(Retry.max(3).restart())
        merged: Flux[AnyChatEvent] = one.pipe(rx.merge(two.to_observable()))
        seen = await take_all(merged)
        assert seen.error is None
        streams: dict[str, list[AnyChatEvent]] = {}
        for event in seen.events:
            streams.setdefault(event.response_id, []).append(event)
        assert 2 == len(streams)
        for events in streams.values():
            assert () == violations_of(events)
            assert events[-1].type.value == "RESPONSE_END"


async def test_a_limit_of_one_of_two_merged_streams_fails_that_one() -> None:
    clock = VirtualClock()
    one = model_of(answer(HEL, 10.0, *OK), clock=clock).prompt("hi").stream()
    two = model_of(answer(HEL, 600.0), clock=clock).prompt("hi").stream().timeout(5).on_error_complete()
    seen = await take_all(one.pipe(rx.merge(two.to_observable())), clock)
    assert seen.error is None
    assert {"RESPONSE_END", "ERROR"} == {e.type.value for e in seen.events if e.is_terminal}


async def test_a_plain_stream_that_recovers_leaves_the_others_driver_alone() -> None:
    failing: list[Any] = [ValueError()]

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        if failing:
            asyncio.get_running_loop().call_later(0.005, observer.on_error, failing.pop())
        else:
            observer.on_next("tick")
            observer.on_completed()

    plain: Flux[Any] = Flux(reactivex.create(subscribe)).retry(3)
    chat = model_of(answer(HEL, 0.02, *OK)).prompt("hi").stream()
    seen = await take_all(plain.pipe(rx.merge(chat.to_observable())))
    assert seen.error is None
    assert "tick" in seen.events
    assert isinstance(seen.events[-1], ResponseEnd)


async def test_streams_that_recover_one_after_another() -> None:
    one = model_of(BEGUN, OK).prompt("hi").stream().retry(1)
    two = model_of(BEGUN, OK).prompt("hi").stream().retry(1)
    seen = await take_all(one.pipe(rx.concat(two.to_observable())))
    assert 2 == len({event.response_id for event in seen.events})
    assert ["RESPONSE_END"] * 2 == [e.type.value for e in seen.events if e.is_terminal]


# Other sources


def test_what_goes_on_in_a_given_run() -> None:
    stream = source("parse", OK)
    assert is_chat_source(stream.observable)
    assert is_chat_source(stream.retry(3).timeout(5).do_on_next(print).observable)
    assert not is_chat_source(Flux.just(1).observable)
    assert not is_chat_source(None)


def test_a_cold_stream_without_its_class_is_copied() -> None:
    seen = walk("parse", source("parse", CUT).fallback_to(source("parse", OK).to_observable())).check()
    assert "Hello" == seen.response.text


def test_a_source_of_other_items_is_a_wrong_call() -> None:
    """And it is cancelled."""
    left: list[bool] = []
    texts: Any = Flux.from_(reactivex.concat(reactivex.of("a"), reactivex.never())).do_on_cancel(
        lambda: left.append(True)
    )
    seen = walk("parse", source("parse", CUT).fallback_to(texts)).check()
    assert isinstance(seen.error, ConfigurationError)
    assert "str" in str(seen.error)
    assert [True] == left


def test_a_copied_stream_may_leave_its_start_and_its_steps_out() -> None:
    """As the first source too."""
    usage = UsageEvent(Usage(input_tokens=1))
    streams: tuple[list[AnyChatEvent], ...] = (
        [TextDelta("a"), usage, ResponseEnd()],
        [ResponseStart(), usage, TextDelta("a"), ResponseEnd()],
        [StepStart(), usage, TextDelta("a"), StepEnd(finish_reason="stop"), ResponseEnd()],
    )
    for events in streams:
        stream = ChatStream(reactivex.from_iterable(events)).retry(1)
        seen = walk("parse", stream).check()
        assert ("a", "stop", 1) == (
            seen.response.text,
            seen.response.finish_reason,
            seen.response.usage.input_tokens,
        )
        assert {} == seen.response.repairs.repairs


def test_a_copied_stream_that_ends_without_a_word() -> None:
    for observable, error in (
        (reactivex.empty(), TruncatedStreamError),
        (reactivex.throw(ServerError("x")), ServerError),
    ):
        seen = walk("parse", ChatStream(observable).retry(0)).check()
        assert ["RESPONSE_START", "ERROR"] == seen.types
        assert isinstance(seen.error, error)


def test_a_fallback_copies_several_steps() -> None:
    events: list[AnyChatEvent] = [
        ResponseStart(), StepStart(), TextDelta("a"), StepEnd(finish_reason="tool_calls"),
        StepStart(), TextDelta("b"), StepEnd(finish_reason="stop"), ResponseEnd(),
    ]  # fmt: skip
    seen = walk("parse", source("parse", CUT).fallback_to(Flux.from_iterable(events))).check()
    assert [0, 1, 2] == [step.step for step in seen.response.steps]
    assert ("b", "ab") == (seen.response.text, seen.response.full_text)
    assert [0, 1, 1, 2, 2] == [e.step for e in seen.events if e.type.value in {"TEXT_DELTA", "STEP_END"}][1:]


def test_a_copied_abort_is_an_abort() -> None:
    from semflux.events import Abort

    events: list[AnyChatEvent] = [StepStart(), TextDelta("a"), Abort("enough")]
    seen = walk("parse", source("parse", CUT).fallback_to(Flux.from_iterable(events))).check()
    assert ["TEXT_END", "STEP_END", "ABORT"] == seen.types[-3:]
    assert seen.error is None


# Nothing is left


async def test_a_recovered_stream_lets_go_of_its_attempts() -> None:
    """What is over is held by nothing."""
    model = model_of(BEGUN, BEGUN, answer(HEL, 600.0))
    refs: list[weakref.ref[Any]] = []

    stream = model.prompt("hi").stream()

    class Probe:
        def __call__(self, event: AnyChatEvent) -> None:
            """Nothing."""

    def attempt() -> Any:
        probe = Probe()
        refs.append(weakref.ref(probe))
        return stream.do_on_next(probe).to_observable()

    recovered = ChatStream(reactivex.defer(lambda _: attempt())).retry(5)
    iterator = aiter(recovered)
    for _ in range(9):
        await anext(iterator)
    gc.collect()
    assert [None, None] == [ref() for ref in refs[:2]]
    assert refs[2]() is not None
    await iterator.aclose()
    del iterator
    await settle()  # the task of the copied stream has been cancelled
    gc.collect()
    assert refs[2]() is None
    assert 0 == model._transport.acquired


async def test_no_connection_is_open_while_a_retry_waits() -> None:
    clock = VirtualClock()
    model = model_of(answer(HEL[:5]), OK, clock=clock)
    task = asyncio.ensure_future(
        take_all(model.prompt("hi").stream().retry_when(Retry.fixed_delay(3, 9).restart()))
    )
    await settle(60)
    assert 1 == clock.pending
    assert 0 == model._transport.acquired
    await until_done(task, clock)


class Loose(Direct[Any]):
    """A source of ours whose observer is in the hand of the test."""

    def __init__(self) -> None:
        super().__init__()
        self.observers: list[Any] = []

    def _subscribe_core(self, observer: Any, scheduler: Any = None) -> Any:
        self.observers.append(observer)
        return Disposable()


@pytest.mark.parametrize(
    "operator",
    [
        ops.retry(1),
        ops.on_error_resume(lambda error: Flux.empty()),
        ops.on_error_complete(),
        ops.timeout(5, clock=VirtualClock()),
        ops.retry(0, chat=True),
    ],
)
@pytest.mark.parametrize("end", ["dispose", "complete"])
def test_signals_after_the_end_are_nobodys(operator: Any, end: str) -> None:
    """A source that does not mind its own end is not heard any more."""
    source, watcher = Loose(), Watcher()
    subscription = operator(source).subscribe(watcher.on_next, watcher.on_error, watcher.on_completed)
    (observer,) = source.observers
    observer.on_next(StepStart())
    if end == "dispose":
        subscription.dispose()
    else:
        observer.on_completed()
    before = list(watcher.signals)
    observer.on_next(StepStart())
    observer.on_error(ValueError("x"))
    observer.on_completed()
    assert before == watcher.signals
    assert 1 == len(source.observers)


def test_a_driver_between_two_attempts_that_is_over_stays_over() -> None:
    """A timer on its way, a second end, a read that begins late: nothing comes of them."""
    calls: list[Any] = []

    def steps() -> Any:
        yield 5.0

    clock = VirtualClock()
    between = Between(steps(), clock, lambda: calls.append("done"), calls.append, calls.append)
    between.go_on()
    assert not between.pump()
    between.start_task()
    between.end()
    between.end()
    between.go_on()
    between.fail(ValueError())
    between.abort("x")
    asyncio.run(between.released())

    async def read() -> None:
        reading = between.fill()
        assert reading is not None
        await reading

    asyncio.run(read())
    assert between.pump()
    assert [] == calls
    assert 0 == clock.pending


@pytest.mark.parametrize("pulled", [True, False])
async def test_first_counts_over_all_attempts_below_and_for_each_above(pulled: bool) -> None:
    clock = VirtualClock()
    turns = [answer(4.0), answer(4.0), answer(4.0, *OK)]
    policy = Retry.max(5).filter(Exception)
    below = model_of(*turns, clock=clock).prompt("hi").stream().retry_when(policy).timeout(first=10)
    seen = (await take_all(below, clock)).check()
    assert isinstance(seen.error, FirstEventTimeoutError)
    above = model_of(*turns, clock=clock).prompt("hi").stream().timeout(first=10).retry_when(policy)
    seen = (await take_all(above, clock)).check()
    assert "Hello" == seen.response.text
