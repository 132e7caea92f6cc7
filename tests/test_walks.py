"""Walks: what happens when something goes wrong, event by event, whichever way the stream is taken in.

A line of a table is: seq, step, type, what it says, the error, whether its response is partial or whole, and
usage as input + output tokens. `walk` holds all events of a walk to one response id.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import reactivex

from semflux import ChatEventFilter, ChatEventGroup, ChatEventType, ChatStream, Flux, Hooks
from semflux.clock import VirtualClock
from semflux.errors import (
    BadFrameError,
    FirstEventTimeoutError,
    IdleTimeoutError,
    NotFoundError,
    RepairError,
    RetryExhaustedError,
    ServerError,
    TotalTimeoutError,
    TruncatedStreamError,
)
from semflux.events import Abort, AnyChatEvent, StepEnd, StepStart, TextDelta
from semflux.retry import Retry
from tests.frames import DONE, cc, cu, sse, tc
from tests.recovering import (
    BEGUN,
    BUSY,
    CUT,
    HEL,
    LO,
    OK,
    RESTARTED,
    TOOL,
    WAITING,
    WAYS,
    Walk,
    answer,
    hello,
    model_of,
    raise_at,
    rows,
    settle,
    source,
    status,
    walk,
)

T = ChatEventType
every_way = pytest.mark.parametrize("way", WAYS)
every_waiting_way = pytest.mark.parametrize("way", WAITING)

# Failures


@every_way
def test_a_provider_error_inside_the_text(way: str) -> None:
    """Ends, the partial step, ERROR, and the same exception as the error."""
    seen = walk(way, source(way, (*CUT, *BUSY))).check()
    assert seen.table == rows("""
        0 0 RESPONSE_START
        1 0 STEP_START
        2 0 TEXT_START
        3 0 TEXT_DELTA 'par'
        4 0 USAGE 3+1
        5 0 TEXT_END
        6 0 STEP_END partial 3+1
        7 0 ERROR ServerError partial 3+1
    """)
    assert isinstance(seen.error, ServerError)
    assert seen.error.partial is not None
    assert seen.error.partial is seen.response
    assert ("par", None) == (seen.error.partial.text, seen.error.partial.finish_reason)


@every_way
def test_a_bad_frame_in_the_middle(way: str) -> None:
    """What was good before it in the same read is delivered."""
    seen = walk(way, source(way, (HEL + sse("{broken"), LO))).check()
    assert seen.table == rows("""
        0 0 RESPONSE_START
        1 0 STEP_START
        2 0 TEXT_START
        3 0 TEXT_DELTA 'Hel'
        4 0 TEXT_END
        5 0 STEP_END partial
        6 0 ERROR BadFrameError partial
    """)
    assert isinstance(seen.error, BadFrameError)


@every_way
def test_a_bad_frame_is_recovered_from(way: str) -> None:
    policy = Retry.max(1).restart().filter(BadFrameError)
    seen = walk(way, source(way, (HEL + sse("{broken"),), OK).retry_when(policy)).check()
    expected = """
        0 0 RESPONSE_START
        1 0 STEP_START
        2 0 TEXT_START
        3 0 TEXT_DELTA 'Hel'
        4 0 TEXT_END
        5 0 STEP_END partial
        6 0 STATUS restart 'attempt 2 after BadFrameError'
    """
    assert seen.table == f"{rows(expected)}\n{hello(7, 1, '3+2')}"


@every_way
def test_strict_mode(way: str) -> None:
    """The first departure of the provider from its format is a failure like any other."""
    frames = (HEL, cc(tc(0, "c1", "f", "{}")), cc(tc(1, "c1", "f", "{}")), cc(finish="tool_calls"), DONE)
    seen = walk(way, source(way, frames, strict=True)).check()
    assert seen.table == rows("""
        0 0 RESPONSE_START
        1 0 STEP_START
        2 0 TEXT_START
        3 0 TEXT_DELTA 'Hel'
        4 0 TEXT_END
        5 0 TOOL_CALL_START c1
        6 0 TOOL_CALL_ARGS_DELTA '{}'
        7 0 TOOL_CALL_END c1
        8 0 STEP_END partial
        9 0 ERROR RepairError partial
    """)
    assert isinstance(seen.error, RepairError)


@every_way
def test_strict_mode_is_recovered_from(way: str) -> None:
    """And the next attempt is as strict; a call id that an attempt before had is no departure."""
    first = (cc(tc(0, "c1", "f", "{}")), cc(finish="tool_calls"))
    second = (cc(tc(0, "c1", "f", "{}")), cc(finish="tool_calls"), cu(3, 2), DONE)
    seen = walk(
        way,
        source(way, first, second, strict=True).retry_when(Retry.max(1).restart().filter(RepairError)),
    ).check()
    assert seen.table == rows("""
        0 0 RESPONSE_START
        1 0 STEP_START
        2 0 TOOL_CALL_START c1
        3 0 TOOL_CALL_ARGS_DELTA '{}'
        4 0 TOOL_CALL_END c1
        5 0 STEP_END partial
        6 0 STATUS restart 'attempt 2 after RepairError'
        7 1 STEP_START
        8 1 TOOL_CALL_START call_1_0
        9 1 TOOL_CALL_ARGS_DELTA '{}'
        10 1 TOOL_CALL_END call_1_0
        11 1 USAGE 3+2
        12 1 STEP_END whole 3+2
        13 1 RESPONSE_END whole 3+2
    """)
    assert [call.id for call in seen.response.tool_calls] == ["call_1_0"]
    assert "repeated_id" in seen.response.repairs.notes


# Limits below the stream


@every_waiting_way
def test_the_first_limit(way: str) -> None:
    clock = VirtualClock()
    stream = source(way, answer(1.0, *BEGUN, 60.0, *OK), clock=clock)
    seen = walk(way, stream.timeout(first=5), clock).check()
    assert seen.table == rows("""
        0 0 RESPONSE_START
        1 0 STEP_START
        2 0 STEP_END partial
        3 0 ERROR FirstEventTimeoutError partial
    """)
    assert isinstance(seen.error, FirstEventTimeoutError)
    assert 5.0 == seen.events[-1].time - 1_700_000_000


@every_waiting_way
def test_the_limit_on_the_next_item(way: str) -> None:
    clock = VirtualClock()
    stream = source(way, answer(9.0, HEL, 3.0, LO, 60.0, *OK), clock=clock)
    seen = walk(way, stream.timeout(item=5), clock).check()
    assert seen.table == rows("""
        0 0 RESPONSE_START
        1 0 STEP_START
        2 0 TEXT_START
        3 0 TEXT_DELTA 'Hel'
        4 0 TEXT_DELTA 'lo'
        5 0 TEXT_END
        6 0 STEP_END partial
        7 0 ERROR IdleTimeoutError partial
    """)
    assert isinstance(seen.error, IdleTimeoutError)
    assert 17.0 == seen.events[-1].time - 1_700_000_000


@every_waiting_way
def test_the_limit_on_the_whole(way: str) -> None:
    clock = VirtualClock()
    stream = source(way, answer(*[piece for _ in range(30) for piece in (HEL, 1.0)]), clock=clock)
    seen = walk(way, stream.timeout(2.5), clock).check()
    assert seen.table == rows("""
        0 0 RESPONSE_START
        1 0 STEP_START
        2 0 TEXT_START
        3 0 TEXT_DELTA 'Hel'
        4 0 TEXT_DELTA 'Hel'
        5 0 TEXT_DELTA 'Hel'
        6 0 TEXT_END
        7 0 STEP_END partial
        8 0 ERROR TotalTimeoutError partial
    """)
    assert isinstance(seen.error, TotalTimeoutError)
    assert seen.error.partial is not None
    assert "HelHelHel" == seen.error.partial.text


# Retry


@every_way
def test_a_retry_before_any_content(way: str) -> None:
    """A failure before the provider has accepted leaves nothing but STATUS; after that, an empty step."""
    first: Any = BUSY if way == "parse" else status(503)
    seen = walk(way, source(way, first, OK).retry(2)).check()
    if way != "parse":
        expected = """
            0 0 RESPONSE_START
            1 0 STATUS retry 'attempt 2 after ServerError'
        """
        rest = f"{hello(2, 0, '3+2')}"
        partial = [False]
    else:
        expected = """
            0 0 RESPONSE_START
            1 0 STEP_START
            2 0 STEP_END partial
            3 0 STATUS retry 'attempt 2 after ServerError'
        """
        rest = f"{hello(4, 1, '3+2')}"
        partial = [True, False]
    assert seen.table == f"{rows(expected)}\n{rest}"
    assert partial == [step.partial for step in seen.response.steps]


@every_way
def test_a_retry_after_step_start(way: str) -> None:
    seen = walk(way, source(way, BEGUN, BEGUN, OK).retry(2)).check()
    expected = """
        0 0 RESPONSE_START
        1 0 STEP_START
        2 0 STEP_END partial
        3 0 STATUS retry 'attempt 2 after TruncatedStreamError'
        4 1 STEP_START
        5 1 STEP_END partial
        6 1 STATUS retry 'attempt 3 after TruncatedStreamError'
    """
    assert seen.table == f"{rows(expected)}\n{hello(7, 2, '3+2')}"
    assert [1, 2, 3] == [event.attempt for event in seen.events if isinstance(event, StepStart)] or (
        way == "parse"
    )


@every_way
def test_no_retry_after_content(way: str) -> None:
    seen = walk(way, source(way, CUT, OK).retry(2)).check()
    assert seen.table == rows("""
        0 0 RESPONSE_START
        1 0 STEP_START
        2 0 TEXT_START
        3 0 TEXT_DELTA 'par'
        4 0 USAGE 3+1
        5 0 TEXT_END
        6 0 STEP_END partial 3+1
        7 0 ERROR TruncatedStreamError partial 3+1
    """)
    assert isinstance(seen.error, TruncatedStreamError)
    assert "par" == seen.response.text


@every_way
def test_a_retry_with_restart(way: str) -> None:
    """What came stays, and is void: usage counts, the rest does not."""
    seen = walk(way, source(way, CUT, OK).retry_when(Retry.max(1).restart())).check()
    expected = RESTARTED.format("restart", "attempt 2 ")
    assert seen.table == f"{expected}\n{hello(8, 1, '6+3')}"
    response = seen.response
    assert ["par", "Hello"] == [step.text for step in response.steps]
    assert [True, False] == [step.partial for step in response.steps]
    assert ("Hello", "Hello", "Hello") == (response.text, response.full_text, response.message.text)
    assert "stop" == response.finish_reason


@every_way
def test_a_recovered_step_gives_nothing_but_its_usage(way: str) -> None:
    """Not its thinking, nor its calls, its refusal or its text."""
    lost = (
        cc({"reasoning_content": "hmm"}), cc({"content": "par"}), cc(tc(0, "c1", "f", "{}")), cc({"refusal": "no"}),
        cu(5, 4),
    )  # fmt: skip
    seen = walk(way, source(way, lost, OK).retry_when(Retry.max(1).restart())).check()
    response = seen.response
    assert ("Hello", "Hello", "", "", ()) == (
        response.text,
        response.full_text,
        response.thinking,
        response.refusal,
        response.tool_calls,
    )
    assert ["Hello"] == [part.text for part in response.message.parts]
    first = response.steps[0]
    assert ("par", "hmm", "no", True) == (first.text, first.thinking, first.refusal, first.partial)
    assert ["f"] == [call.name for call in first.tool_calls]
    assert (8, 6) == (response.usage.input_tokens, response.usage.output_tokens)


@every_way
def test_usage_is_counted_over_all_attempts(way: str) -> None:
    """The last snapshot of each failing step, once."""
    lost = (cu(10, 0), cc({"content": "a"}), cu(10, 1), cu(10, 2))
    seen = walk(way, source(way, lost, lost, OK).retry_when(Retry.max(5).restart())).check()
    assert [(10, 2), (10, 2), (3, 2)] == [
        (step.usage.input_tokens, step.usage.output_tokens) for step in seen.response.steps
    ]
    usage = seen.response.usage
    assert (23, 6) == (usage.input_tokens, usage.output_tokens)


@every_way
def test_retries_that_are_exhausted(way: str) -> None:
    """Each attempt has its step and its STATUS; the error tells of the last failure."""
    seen = walk(way, source(way, BEGUN, BUSY, BEGUN).retry_when(Retry.max(2))).check()
    assert seen.table == rows("""
        0 0 RESPONSE_START
        1 0 STEP_START
        2 0 STEP_END partial
        3 0 STATUS retry 'attempt 2 after TruncatedStreamError'
        4 1 STEP_START
        5 1 STEP_END partial
        6 1 STATUS retry 'attempt 3 after ServerError'
        7 2 STEP_START
        8 2 STEP_END partial
        9 2 ERROR RetryExhaustedError partial
    """)
    assert isinstance(seen.error, RetryExhaustedError)
    assert isinstance(seen.error.__cause__, TruncatedStreamError)
    assert 3 == seen.error.attempts
    assert seen.error.partial is not None
    assert 3 == len(seen.error.partial.steps)


@every_waiting_way
def test_a_retry_waits_in_virtual_time(way: str) -> None:
    clock = VirtualClock()
    stream = source(way, status(503), status(429, retry_after="7"), OK, clock=clock)
    seen = walk(way, stream.retry_when(Retry.backoff(3, 2.0).jitter(0)), clock).check()
    expected = """
        0 0 RESPONSE_START
        1 0 STATUS retry 'attempt 2 after ServerError'
        2 0 STATUS retry 'attempt 3 after RateLimitError'
    """
    assert seen.table == f"{rows(expected)}\n{hello(3, 0, '3+2')}"
    # Two seconds by the policy; then seven, since the provider asks for more than the policy's four.
    assert [0.0, 0.0, 2.0, 9.0] == [event.time - 1_700_000_000 for event in seen.events[:4]]
    assert 0 == clock.pending


# Leaving early


@every_way
def test_take_below_the_recovery(way: str) -> None:
    """Nothing more after it, and no further attempt."""
    stream = source(way, BEGUN, OK).retry(3)
    for count, types in (
        (3, ["RESPONSE_START", "STEP_START", "STEP_END"]),
        (1, ["RESPONSE_START"]),
    ):
        seen = (
            walk(way, stream.take(count))
            if count == 3
            else walk(way, source(way, BEGUN, OK).retry(3).take(1))
        )
        assert types == seen.types
        assert seen.error is None


@every_way
def test_take_above_the_recovery(way: str) -> None:
    """A stream that ends well has nothing to recover from; one that was left with its ERROR keeps it."""
    assert ["RESPONSE_START", "STEP_START", "STEP_END"] == walk(
        way, source(way, BEGUN, OK).take(3).retry(3)
    ).types
    seen = walk_loosely(way, source(way, BEGUN, OK).take(4).retry(3))
    assert ["RESPONSE_START", "STEP_START", "STEP_END", "ERROR"] == seen


def walk_loosely(way: str, stream: ChatStream) -> list[str]:
    """The types of a stream whose ERROR is not its error."""
    events: list[AnyChatEvent] = []

    async def read() -> None:
        async for event in stream:
            events.append(event)  # noqa: PERF401

    if way == "parse":
        stream.subscribe(events.append)
    else:
        asyncio.run(read())
    return [event.type.value for event in events]


@every_way
def test_on_error_complete_shows_the_error_all_the_same(way: str) -> None:
    types = walk_loosely(way, source(way, CUT).on_error_complete())  # type: ignore[arg-type, unused-ignore]
    assert ["STEP_END", "ERROR"] == types[-2:]


# Abort


ABORTED_WAITING = rows("""
    0 0 RESPONSE_START
    1 0 STEP_START
    2 0 STEP_END partial
    3 0 STATUS retry 'attempt 2 after TruncatedStreamError'
    4 0 ABORT partial
""")


async def abort_when(stream: ChatStream, clock: VirtualClock, seconds: float, takers: int = 1) -> Any:
    """Abort after some time; what the subscribers saw."""
    seen: list[list[AnyChatEvent]] = [[] for _ in range(takers)]

    async def read(events: list[AnyChatEvent]) -> None:
        async for event in stream:
            events.append(event)  # noqa: PERF401

    ends: list[bool] = []
    tasks = [asyncio.ensure_future(read(events)) for events in seen]
    pushed: list[AnyChatEvent] = []
    stream.subscribe(pushed.append, lambda error: ends.append(False), lambda: ends.append(True))
    for _ in range(int(seconds * 4)):
        await settle()
        clock.advance(0.25)
    await settle()
    stream.abort("enough")
    async with asyncio.timeout(5):
        await asyncio.gather(*tasks)
    stream.abort("once more")
    await settle()
    assert ends == [True]
    return [*seen, pushed]


def shown(events: list[AnyChatEvent]) -> str:
    return Walk(events, None).check().table


async def test_abort_of_a_running_attempt() -> None:
    """For all who are subscribed, each with an id of its own."""
    clock = VirtualClock()
    model = model_of(*[answer(HEL, 60.0, *OK)] * 3, clock=clock)
    both = await abort_when(model.prompt("hi").stream().retry(2), clock, 1.0, 2)
    for events in both:
        assert shown(events) == rows("""
            0 0 RESPONSE_START
            1 0 STEP_START
            2 0 TEXT_START
            3 0 TEXT_DELTA 'Hel'
            4 0 TEXT_END
            5 0 STEP_END partial
            6 0 ABORT partial
        """)
        assert isinstance(events[-1], Abort)
        assert events[-1].reason == "enough"
    assert 3 == len({events[0].response_id for events in both})


async def test_abort_while_a_retry_waits() -> None:
    clock = VirtualClock()
    model = model_of(*[BEGUN] * 3, clock=clock)
    stream = model.prompt("hi").stream().retry_when(Retry.fixed_delay(5, 60))
    for events in await abort_when(stream, clock, 1.0, 2):
        assert shown(events) == ABORTED_WAITING
    assert 0 == clock.pending
    assert 0 == model._transport.acquired


async def test_abort_of_the_attempt_after_a_wait() -> None:
    clock = VirtualClock()
    model = model_of(*[BEGUN] * 2, *[answer(HEL, 60.0)] * 2, clock=clock)
    stream = model.prompt("hi").stream().retry_when(Retry.fixed_delay(5, 2))
    for events in await abort_when(stream, clock, 4.0):
        assert ["TEXT_DELTA", "TEXT_END", "STEP_END", "ABORT"] == [event.type.value for event in events[-4:]]
        assert 1 == events[-1].step
    assert 0 == model._transport.acquired


async def test_abort_while_copied_events_come() -> None:
    """A stream of another kind is stopped too."""
    clock = VirtualClock()
    model = model_of(*[BEGUN] * 2, clock=clock)
    left: list[bool] = []
    endless: Flux[AnyChatEvent] = Flux.from_(
        reactivex.concat(reactivex.of(StepStart(), TextDelta("a")), reactivex.never())
    ).do_on_cancel(lambda: left.append(True))
    for events in await abort_when(model.prompt("hi").stream().fallback_to(endless), clock, 1.0):
        assert ["TEXT_DELTA", "TEXT_END", "STEP_END", "ABORT"] == [event.type.value for event in events[-4:]]
        shown(events)
    assert [True, True] == left


# Filters


@every_way
def test_a_narrow_filter_still_shows_the_error(way: str) -> None:
    """A filter of one type has the frame of the stream, STATUS among it."""
    keep = ChatEventFilter.of(T.TEXT_DELTA)
    seen = walk(way, source(way, BEGUN, CUT, event_filter=keep).retry(3))
    assert seen.table == rows("""
        0 0 RESPONSE_START
        1 0 STEP_START
        2 0 STEP_END partial
        3 0 STATUS retry 'attempt 2 after TruncatedStreamError'
        4 1 STEP_START
        6 1 TEXT_DELTA 'par'
        9 1 STEP_END partial 3+1
        10 1 ERROR TruncatedStreamError partial 3+1
    """)


@every_way
def test_a_filter_that_hides_tool_events_does_not_hide_that_content_came(way: str) -> None:
    """Whether a tool was called is read from the Run: no retry."""
    keep = ~ChatEventFilter.of_group(ChatEventGroup.TOOL_CALL)
    seen = walk(way, source(way, TOOL, OK, event_filter=keep).retry(3))
    assert seen.table == rows("""
        0 0 RESPONSE_START
        1 0 STEP_START
        5 0 STEP_END partial
        6 0 ERROR TruncatedStreamError partial
    """)
    exact = walk(way, source(way, TOOL, OK).only(T.RESPONSE_START, T.STEP_END, T.ERROR).retry(3)).types
    assert ["RESPONSE_START", "STEP_END", "ERROR"] == exact


@every_way
def test_a_recovery_under_a_filter_that_hides_tool_events(way: str) -> None:
    """Restarted, the hidden call stays hidden and void; usage and text are those of all."""
    keep = ~ChatEventFilter.of_group(ChatEventGroup.TOOL_CALL)
    stream = source(way, TOOL, OK, event_filter=keep).retry_when(Retry.max(1).restart())
    seen = walk(way, stream)
    assert seen.table == "\n".join([
        rows("""
            0 0 RESPONSE_START
            1 0 STEP_START
            5 0 STEP_END partial
            6 0 STATUS restart 'attempt 2 after TruncatedStreamError'
        """),
        hello(7, 1, "3+2"),
    ])  # fmt: skip
    assert () == seen.response.tool_calls
    assert ["c1"] == [call.id for call in seen.response.steps[0].tool_calls]


# Subscribers


@pytest.mark.parametrize("at", ["Hel", None])
def test_a_subscriber_that_raises_ends_alone(at: str | None) -> None:
    """Its exception goes to its own on_error; no attempt follows it."""
    for below in (True, False):
        turns = source("parse", BEGUN, OK)
        got: list[Any] = []

        def on_next(event: AnyChatEvent, got: list[Any] = got) -> None:
            got.append(event.type.value)
            if event.text == at and event.type in {T.TEXT_DELTA, T.STATUS, T.STEP_START}:
                raise KeyError("mine")

        errors: list[Exception] = []
        dropped: list[Any] = []
        Hooks.on_error_dropped(dropped.append)
        try:
            turns.retry(3).subscribe(on_next, errors.append if below else None)
        finally:
            Hooks.on_error_dropped(None)
        assert ["KeyError"] == [type(error).__name__ for error in [*errors, *dropped]]
        assert ("TEXT_DELTA" if at else "STEP_START") == got[-1]


async def test_of_two_subscribers_one_may_raise() -> None:
    model = model_of(BEGUN, BEGUN, OK, OK)
    stream = model.prompt("hi").stream().retry(1)
    errors: list[Exception] = []
    stream.subscribe(raise_at("Hel"), errors.append)
    types = [event.type.value async for event in stream]
    assert ["STEP_END", "RESPONSE_END"] == types[-2:]
    await settle(100)
    assert ["KeyError"] == [type(error).__name__ for error in errors]
    assert 0 == model._transport.acquired


@every_way
def test_an_error_that_is_not_worth_it_is_not_tried_again(way: str) -> None:
    seen = walk(
        way, source(way, (sse({"error": {"message": "no", "code": 404}}),), OK).retry_when(Retry.max(3))
    )
    assert isinstance(seen.error, NotFoundError)
    assert [StepEnd.type.value, "ERROR"] == seen.types[-2:]
