"""Every way to stop a stream, as the server sees it: it finds the connection closed, and at once.

`took` collects how long that takes; the median is about a millisecond (`pytest -s` prints it), and all
that is asserted is that it is not a matter of seconds.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from semflux import ChatModel, ChatStream
from semflux.errors import SemfluxError, TotalTimeoutError
from semflux.events import AnyChatEvent
from tests.faultserver import EOF, REQUEST, FaultServer, Step, head, pour
from tests.model.asking import (
    CHAT,
    HELLO,
    SSE,
    Watching,
    acquired,
    asking,
    eof_of,
    model_at,
    settle,
    streamed,
    until,
)

STREAMING: list[Step] = [REQUEST, head("200 OK", SSE), HELLO, EOF]
"""A server that has begun to answer, and waits for its client to go."""
SILENT: list[Step] = [REQUEST, EOF]
"""A server that has read the request, and says nothing."""
ROUNDS = 12


async def by_break(stream: ChatStream) -> float:
    began = 0.0
    async for event in stream:
        if event.text == "lo":
            began = time.perf_counter()
            break
    return began


async def by_aclose(stream: ChatStream) -> float:
    async with aiter(stream) as events:
        async for event in events:
            if event.text == "lo":
                break
        return time.perf_counter()


async def by_raising(stream: ChatStream) -> float:
    began = 0.0
    with pytest.raises(KeyError):
        async for event in stream:
            if event.text == "lo":
                began = time.perf_counter()
                raise KeyError
    return began


async def by_task_cancel(stream: ChatStream) -> float:
    watching = Watching(stream)
    await until(lambda: len(watching.events) == 5)
    await settle()
    began = time.perf_counter()
    watching.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching.task
    return began


async def by_asyncio_timeout(stream: ChatStream) -> float:
    """L2: the caller gets a plain TimeoutError, not one of ours."""
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(None) as limit:
            async for event in stream:
                if event.text == "lo":
                    limit.reschedule(asyncio.get_running_loop().time() + 0.005)
    began = time.perf_counter()
    assert not isinstance(caught.value, SemfluxError)
    return began


async def by_dispose(stream: ChatStream) -> float:
    events: list[AnyChatEvent] = []
    subscription = stream.subscribe(events.append)
    await until(lambda: len(events) == 5)
    began = time.perf_counter()
    subscription.dispose()
    subscription.dispose()
    count = len(events)
    await settle()
    assert len(events) == count
    return began


async def by_dispose_in_on_next(stream: ChatStream) -> float:
    events: list[AnyChatEvent] = []
    began = 0.0

    def take(event: AnyChatEvent) -> None:
        nonlocal began
        events.append(event)
        if len(events) == 4:
            began = time.perf_counter()
            subscription.dispose()

    subscription = stream.subscribe(take)
    await until(lambda: bool(began))
    await settle()
    assert len(events) == 4
    return began


async def by_dispose_in_another_thread(stream: ChatStream) -> float:
    events: list[AnyChatEvent] = []
    subscription = stream.subscribe(events.append)
    await until(lambda: len(events) == 5)
    began = time.perf_counter()
    thread = threading.Thread(target=subscription.dispose)
    thread.start()
    await asyncio.to_thread(thread.join)
    return began


async def by_take(stream: ChatStream) -> float:
    seen = [event async for event in stream.take(4)]
    began = time.perf_counter()
    assert len(seen) == 4
    return began


async def by_take_in_callbacks(stream: ChatStream) -> float:
    ends: list[float] = []
    stream.take(4).subscribe(on_completed=lambda: ends.append(time.perf_counter()))
    await until(lambda: bool(ends))
    return ends[0]


async def by_next(stream: ChatStream) -> float:
    first = await stream.next()
    assert first.type == "RESPONSE_START"
    return time.perf_counter()


async def by_take_until(stream: ChatStream) -> float:
    await stream.take_until(lambda event: event.text == "Hel").collect_list()
    return time.perf_counter()


async def by_block_first(stream: ChatStream) -> float:
    first = await asyncio.to_thread(stream.text().block_first)
    assert first == "Hel"
    return time.perf_counter()


async def by_block_timeout(stream: ChatStream) -> float:
    def wait() -> float:
        with pytest.raises(TotalTimeoutError):
            stream.block(timeout=0.25)
        return time.perf_counter()

    return await asyncio.to_thread(wait)


async def by_cancelled_mono(stream: ChatStream) -> float:
    events: list[AnyChatEvent] = []
    awaiting = asyncio.ensure_future(_await(stream.do_on_next(events.append).response()))
    await until(lambda: len(events) == 5)
    await settle()
    began = time.perf_counter()
    awaiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await awaiting
    return began


async def _await(mono: Awaitable[Any]) -> Any:
    return await mono


async def by_a_raising_subscriber(stream: ChatStream) -> float:
    errors: list[Exception] = []
    began = 0.0

    def fail(event: AnyChatEvent) -> None:
        nonlocal began
        if event.text == "lo":
            began = time.perf_counter()
            raise KeyError

    stream.subscribe(fail, errors.append)
    await until(lambda: bool(errors))
    assert isinstance(errors[0], KeyError)
    return began


WAYS: list[Callable[[ChatStream], Awaitable[float]]] = [
    by_break,
    by_aclose,
    by_raising,
    by_task_cancel,
    by_asyncio_timeout,
    by_dispose,
    by_dispose_in_on_next,
    by_dispose_in_another_thread,
    by_take,
    by_take_in_callbacks,
    by_take_until,
    by_block_first,
    by_block_timeout,
    by_cancelled_mono,
    by_a_raising_subscriber,
]


@pytest.mark.parametrize("way", WAYS)
async def test_the_server_sees_the_end_of_a_stream_that_is_stopped(
    way: Callable[[ChatStream], Awaitable[float]],
) -> None:
    took: list[float] = []
    async with FaultServer(STREAMING) as server:
        model = model_at(server)
        for n in range(4 if way is by_block_timeout else ROUNDS):
            began = await way(model.prompt("hi").stream())
            took.append(await eof_of(server, n) - began)
            await until(lambda: acquired(model) == 0)
        await model.aclose()
    print(
        f"EOF after {way.__name__}: median {statistics.median(took) * 1000:.2f} ms, max {max(took) * 1000:.2f} ms"
    )
    assert max(took) < 2


async def test_a_stream_that_is_only_begun_sends_no_request() -> None:
    """RESPONSE_START comes before any I/O: whoever wants no more of it costs nothing."""
    async with asking(SILENT) as (model, server):
        await by_next(model.prompt("hi").stream())
        assert [event.type.value async for event in model.prompt("hi").stream().take(1)] == ["RESPONSE_START"]
        await settle()
        assert server.seen == []


@pytest.mark.parametrize("how", ["task", "dispose"])
async def test_a_stream_may_be_stopped_while_it_waits_for_headers(how: str) -> None:
    took: list[float] = []
    async with asking(SILENT) as (model, server):
        for n in range(ROUNDS):
            stream = model.prompt("hi").stream()
            watching = Watching(stream) if how == "task" else None
            subscription = None if how == "task" else stream.subscribe()
            seen = await server.connection(n)
            await until(lambda seen=seen: bool(seen.requests))  # type: ignore[misc]  # it sees no type for a default
            began = time.perf_counter()
            if watching is not None:
                watching.task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await watching.task
            if subscription is not None:
                subscription.dispose()
            took.append(await eof_of(server, n) - began)
            await settle()
            assert acquired(model) == 0
    print(f"EOF waiting for headers, {how}: median {statistics.median(took) * 1000:.2f} ms")
    assert max(took) < 2


async def test_a_stream_may_be_stopped_while_it_connects() -> None:
    """At each turn of the loop on the way there: nothing is left, wherever it is."""
    async with asking(SILENT) as (model, _):
        for turns in range(25):
            watching = Watching(model.prompt("hi").stream())
            for _ in range(turns):
                await asyncio.sleep(0)
            watching.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await watching.task
            await until(lambda: acquired(model) == 0)


@pytest.mark.parametrize("turns", range(40))
async def test_a_task_may_be_cancelled_at_any_await(turns: int) -> None:
    """L1. CancelledError comes out, no terminal event, and nothing stays; twice is as good as once."""
    async with asking([REQUEST, streamed(CHAT)]) as (model, _):
        for times in (1, 2):
            watching = Watching(model.prompt("hi").stream())
            for _ in range(turns):
                await asyncio.sleep(0)
            for _ in range(times):
                watching.task.cancel()
                await asyncio.sleep(0)
            await asyncio.wait({watching.task})
            if watching.task.cancelled():
                assert "RESPONSE_END" not in watching.types
            await until(lambda: acquired(model) == 0)


@pytest.mark.parametrize("take", ["pull", "push"])
async def test_a_stream_may_be_left_at_any_event(take: str) -> None:
    """U3. Exactly that many events, and none of an end."""
    async with asking([REQUEST, streamed(CHAT)] * 30) as (model, _):
        whole = [event async for event in model.prompt("hi").stream()]
        for count in range(1, len(whole)):
            events: list[AnyChatEvent] = []
            stream = model.prompt("hi").stream()
            if take == "pull":
                async for event in stream:
                    events.append(event)
                    if len(events) == count:
                        break
            else:
                await _push(stream, events, count)
            await settle()
            assert events == whole[:count]
            await until(lambda: acquired(model) == 0)


async def _push(stream: ChatStream, events: list[AnyChatEvent], count: int) -> None:
    def take(event: AnyChatEvent) -> None:
        events.append(event)
        if len(events) == count:
            subscription.dispose()

    subscription = stream.subscribe(take)
    await until(lambda: len(events) == count)


# Failures.


async def test_a_failure_closes_the_connection_too() -> None:
    """The server goes on; the client has seen enough."""
    async with asking([REQUEST, head("200 OK", SSE), HELLO, b"data: {nonsense\n\n", EOF]) as (model, server):
        with pytest.raises(SemfluxError):
            await model.prompt("hi").call()
        await eof_of(server)


async def test_an_error_of_status_closes_the_connection_of_an_endless_body() -> None:
    async with asking([REQUEST, head("500 Oops"), pour(total=64 << 20)]) as (model, server):
        with pytest.raises(SemfluxError):
            await model.prompt("hi").call()
        async with asyncio.timeout(5):
            await server.seen[0].eof.wait()


async def test_do_finally_and_do_on_cancel_hear_of_a_cancel() -> None:
    """Contract rule 8: clean-up belongs there, since no event tells it."""
    said: list[str] = []
    async with asking(STREAMING) as (model, server):
        stream = model.prompt("hi").stream()
        stream = stream.do_on_cancel(lambda: said.append("cancel")).do_finally(
            lambda signal: said.append(str(signal.value))
        )
        await by_break(stream)
        await eof_of(server)
    assert [word.lower() for word in said] == ["cancel", "cancel"]


async def test_a_cancel_closes_before_control_returns_to_the_loop() -> None:
    """Not one turn later: `dispose` has closed when it returns."""
    async with asking(STREAMING) as (model, _):
        events: list[AnyChatEvent] = []
        subscription = model.prompt("hi").stream().subscribe(events.append)
        await until(lambda: len(events) == 5)
        assert acquired(model) == 1
        subscription.dispose()
        assert acquired(model) == 0


async def test_a_stream_kept_in_a_name_is_closed_with_async_with() -> None:
    async with asking(STREAMING) as (model, server):
        async with aiter(model.prompt("hi").stream()) as events:
            await anext(events)
            await anext(events)
            assert acquired(model) == 1
        assert acquired(model) == 0
        with pytest.raises(StopAsyncIteration):
            await anext(events)
        await eof_of(server)


def test_the_model_needs_no_loop_to_be_made() -> None:
    assert repr(ChatModel("vllm:x")) == "<ChatModel vllm:x at 127.0.0.1, openai-chat>"
