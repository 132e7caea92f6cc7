"""Streams of events that are tried again: in time, in a row, at random, and left at every event."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semflux import ChatStream, Retry
from semflux.clock import VirtualClock
from semflux.contract import violations_of
from semflux.errors import (
    RetryExhaustedError,
    SemfluxError,
    ServerError,
    TotalTimeoutError,
    TruncatedStreamError,
)
from semflux.events import AnyChatEvent
from tests.frames import cc, cu, sse, tc
from tests.recovering import (
    BEGUN,
    CUT,
    OK,
    WAYS,
    collected,
    model_of,
    pull,
    push,
    settle,
    source,
    status,
    until_done,
    walk,
)


async def test_a_wait_is_woken_by_a_dispose_of_another_thread() -> None:
    """Whoever waits for the next event sees the end at once."""
    stream = model_of(BEGUN, OK).prompt("hi").stream().retry_when(Retry.fixed_delay(3, 600))
    iterator = aiter(stream)
    seen: list[str] = []

    async def read() -> None:
        seen.extend([event.type.value async for event in iterator])

    task = asyncio.ensure_future(read())
    await settle(60)
    thread = threading.Thread(target=iterator.dispose)
    thread.start()
    async with asyncio.timeout(5):
        await task
    thread.join()
    await iterator.aclose()


async def test_cancelling_the_task_that_waits_for_a_retry_leaves_nothing() -> None:
    clock = VirtualClock()
    model = model_of(BEGUN, OK, clock=clock)
    task = asyncio.ensure_future(collected(model.prompt("hi").stream().retry_when(Retry.fixed_delay(3, 600))))
    await settle(60)
    assert 1 == clock.pending
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 0 == clock.pending
    assert 0 == model._transport.acquired


@pytest.mark.parametrize("pulled", [True, False])
async def test_a_limit_for_the_whole_holds_while_a_retry_waits(pulled: bool) -> None:
    """It is none of an attempt: no recovery takes it up."""
    clock = VirtualClock()
    model = model_of(BEGUN, OK, clock=clock)
    stream = model.prompt("hi").stream().retry_when(Retry.fixed_delay(3, 600)).timeout(5)
    seen = walk_in(stream, clock, pulled)
    events, error = await seen
    assert ["STEP_END", "STATUS", "ERROR"] == [event.type.value for event in events[-3:]]
    assert isinstance(error, TotalTimeoutError)
    assert error is events[-1].error
    assert () == violations_of(events)
    assert 0 == clock.pending


async def walk_in(
    stream: ChatStream, clock: VirtualClock, pulled: bool
) -> tuple[list[AnyChatEvent], Exception | None]:
    events: list[AnyChatEvent] = []
    task = asyncio.ensure_future((pull if pulled else push)(stream, events))
    await until_done(task, clock)
    return events, await task


def test_block_waits_for_a_retry() -> None:
    model = model_of(BEGUN, status(503), OK)
    policy = Retry.backoff(3, 0.001)
    response = model.prompt("hi").stream().retry_when(policy).response().block(timeout=5)
    assert response is not None
    assert "Hello" == response.text


def test_in_a_row_counts_from_the_last_content_on_a_chat_stream() -> None:
    """A step without content is no success: an answer that dies at once is not tried for ever."""
    seen = walk("parse", source("parse", *[BEGUN] * 9).retry_when(Retry.max_in_a_row(2))).check()
    assert isinstance(seen.error, RetryExhaustedError)
    assert 3 == len(seen.response.steps)
    turns = [CUT, BEGUN, CUT, BEGUN, BEGUN, OK, OK]
    seen = walk("parse", source("parse", *turns).retry_when(Retry.max_in_a_row(3).restart())).check()
    assert "Hello" == seen.response.text
    turns = [CUT, BEGUN, BEGUN, BEGUN, OK]
    seen = walk("parse", source("parse", *turns).retry_when(Retry.max_in_a_row(3).restart())).check()
    assert isinstance(seen.error, RetryExhaustedError)


def test_a_filter_that_raises_is_the_end() -> None:
    def raising(error: BaseException) -> object:
        raise KeyError("mine")

    seen = walk("parse", source("parse", BEGUN, OK).retry_when(Retry.max(3).filter(raising))).check()
    assert ["STEP_END", "ERROR"] == seen.types[-2:]
    assert isinstance(seen.error, SemfluxError)
    assert isinstance(seen.error.__cause__, KeyError)
    assert isinstance(seen.error.__cause__.__context__, TruncatedStreamError)


def test_a_final_failure_has_no_frames_of_the_recovery() -> None:
    """Its traceback would hold what the frames do."""
    seen = walk("parse", source("parse", BEGUN).retry(0)).check()
    assert seen.error is not None
    trace, names = seen.error.__traceback__, []
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    assert [] == [name for name in names if "retry" in name or "recover" in name]


FAILURES = {
    "cut": CUT,
    "begun": BEGUN,
    "busy": (sse({"error": {"message": "busy", "code": 503}}),),
    "call": (cc(tc(0, "c1", "f", '{"a":')), cu(4, 1)),
    "thinking": (cc({"reasoning_content": "hm"}), cu(2, 2)),
    "broken": (cc({"content": "x"}) + sse("{"),),
    "empty": (),
    "raises": (cc({"content": "x"}), OSError("disk")),
}
FINAL = {"ok": OK, "cut": CUT, "no": (sse({"error": {"message": "no", "code": 404}}),)}


def raising_turns(turns: list[Any]) -> list[Any]:
    """Turns in which an exception is raised where it stands."""

    def chunks(turn: Any) -> Any:
        for chunk in turn:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    return [chunks(turn) for turn in turns]


@settings(deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(FAILURES)), max_size=6),
    last=st.sampled_from(sorted(FINAL)),
    layers=st.lists(st.sampled_from(["retry", "restart", "fallback", "return", "map", "raise"]), max_size=4),
    pulled=st.booleans(),
)
def test_whatever_fails_and_recovers_stays_one_sane_stream(
    names: list[str], last: str, layers: list[str], pulled: bool
) -> None:
    """The rules of order hold, seq has no gap, and usage is that of all steps."""
    turns = raising_turns([*[FAILURES[name] for name in names], FINAL[last], *[OK] * 20])
    stream = source("parse", *turns)
    raised = False
    for layer in layers:
        if layer == "retry":
            stream = stream.retry(2)
        elif layer == "restart":
            stream = stream.retry_when(Retry.max(2).restart().filter(Exception))
        elif layer == "fallback":
            stream = stream.fallback_to(source("parse", CUT), source("parse", BEGUN, OK).retry(1))
        elif layer == "return":
            stream = stream.on_error_return("sorry")
        elif layer == "map":
            stream = stream.on_error_map(lambda error: ServerError(f"mapped: {error}"))
        elif not raised:
            raised = True
            stream = stream.take_while(raise_once())
    seen = walk("pull" if pulled else "parse", stream)
    if raised:
        # The event at which the function raised is missing; and its exception alone may be the end.
        broken = violations_of(seen.events, seq="rising") if seen.events[-1].is_terminal else ()
        assert [violation for violation in broken if violation.rule != 7] == []
    else:
        seen.check()
        told = [event.usage for event in seen.events if event.type.value == "STEP_END" and event.usage]
        usage = seen.events[-1].usage
        assert sum(each.input_tokens or 0 for each in told) == (0 if usage is None else usage.input_tokens)
        assert len(seen.response.steps) == seen.types.count("STEP_START")


def raise_once() -> Callable[[AnyChatEvent], bool]:
    """A predicate that raises at the second delta of a stream, once."""
    seen = [0]

    def keep(event: AnyChatEvent) -> bool:
        seen[0] += event.is_delta
        if event.is_delta and seen[0] == 2:
            raise KeyError("mine")
        return True

    return keep


RECOVERING: dict[str, Callable[[str], ChatStream]] = {
    "retry": lambda way: source(way, BEGUN, BEGUN, OK).retry(3),
    "restart": lambda way: source(way, CUT, CUT, OK).retry_when(Retry.max(3).restart()),
    "fallback": lambda way: source(way, CUT).fallback_to(source(way, OK)),
    "return": lambda way: source(way, CUT).on_error_return("sorry"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RECOVERING)
def test_a_recovering_stream_may_be_left_at_every_event(name: str, way: str) -> None:
    """Nothing comes after that, and nothing is left open."""
    whole = walk(way, RECOVERING[name](way)).types
    for count in range(1, len(whole)):
        seen = walk(way, RECOVERING[name](way).take(count))
        assert whole[:count] == seen.types
        assert seen.error is None


@pytest.mark.parametrize("name", RECOVERING)
async def test_a_recovering_stream_may_be_disposed_of_at_every_event(name: str) -> None:
    whole = [event.type.value async for event in RECOVERING[name]("push")]
    for count in range(1, len(whole) + 1):
        got: list[str] = []
        held: list[Any] = []

        def on_next(event: AnyChatEvent, got: list[str] = got, held: Any = held, count: int = count) -> None:
            got.append(event.type.value)
            if len(got) == count:
                held[0].dispose()

        held.append(RECOVERING[name]("push").subscribe(on_next))
        await settle(150)
        assert whole[:count] == got
