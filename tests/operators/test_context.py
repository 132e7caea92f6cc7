"""`context_write`: what a subscriber says to what is above it."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest
import reactivex

from semflux import ChatEventType, Flux, Mono, parse
from semflux.operators.context import Context
from tests.operators.watching import END, Probe, error, item, raising, rx, signals, watch

FAILURE = ValueError("mine")
USER: ContextVar[str] = ContextVar("USER", default="nobody")


def seen(key: Any = "key") -> Flux[Any]:
    """What stands under *key* for this subscription."""
    return Flux.defer_contextual(lambda context: Flux.just(context.get(key)))


def tell(sink: Any, value: Any) -> None:
    sink.next(value)
    sink.complete()


def test_a_context_is_an_immutable_mapping() -> None:
    empty = Context()
    one = empty.put("a", 1)
    both = one.put_all({"b": 2, "a": 3})
    assert ({}, {"a": 1}, {"a": 3, "b": 2}) == (dict(empty), dict(one), dict(both))
    assert ({"b": 2}, True) == (dict(both.delete("a")), both.delete("c") is both)
    assert ("a" in both, both["b"], len(both), one == Context({"a": 1})) == (True, 2, 2, True)
    assert "<Context of 1>" == repr(Context({"password": "secret"}))


def test_what_is_above_sees_it_and_what_is_below_does_not() -> None:
    """Of several the nearest to the source has the last word."""
    below = seen().context_write({"key": 1}).concat_with(seen())
    assert [1, None] == watch(below).items
    assert [1] == watch(seen().map(lambda x: x).context_write({"key": 1}).context_write({"key": 2})).items
    assert [3] == watch(
        seen().context_write(lambda context: context.put("key", context["key"] + 1)).context_write({"key": 2})
    ).items


def test_each_subscription_has_its_own() -> None:
    source = seen()
    assert [1] == watch(source.context_write({"key": 1})).items
    assert [None] == watch(source).items
    assert [7] == watch(
        Mono.defer_contextual(lambda context: reactivex.of(context["key"])).context_write({"key": 7})
    ).items


def test_inner_sources_see_the_context_of_their_subscriber() -> None:
    """Not what is written above it."""
    made = (
        Flux.just(1, 2)
        .context_write({"key": "above"})
        .flat_map(lambda _: seen())
        .context_write({"key": "below"})
    )
    assert ["below", "below"] == watch(made).items
    assert ["x", "x", "x"] == watch(
        Flux.concat(seen(), Flux.merge(seen(), seen())).context_write({"key": "x"})
    ).items


def test_a_source_that_is_retried_or_repeated_sees_the_same() -> None:
    contexts: list[Any] = []

    def make(context: Context) -> Flux[Any]:
        contexts.append((context["key"], USER.get()))
        return Flux.error(FAILURE)

    written = Flux.defer_contextual(make).context_write({"key": 1, USER: "me"})
    assert [error(FAILURE)] == signals(written.retry(2))
    assert [error(FAILURE)] == signals(
        Flux.defer_contextual(make).retry(1).context_write({"key": 1, USER: "me"})
    )
    assert [(1, "me")] * 5 == contexts
    assert ["me"] == watch(
        Flux.error(FAILURE)
        .on_error_resume(lambda _: Flux.defer(lambda: Flux.just(USER.get())))
        .context_write({USER: "me"})
    ).items


def test_a_shared_source_sees_the_context_of_who_connected() -> None:
    """That is the first subscriber, or the last one that was missing."""
    shared = seen().publish().auto_connect(1)
    assert [1] == watch(shared.context_write({"key": 1})).items
    assert [2] == watch(seen().share().context_write({"key": 2})).items


def test_context_variables_are_set_for_code_above() -> None:
    """For factories, functions of create, what they schedule, and other sources of RxPY; nowhere else."""
    below: list[str] = []
    created: Flux[str] = Flux.create(lambda sink: tell(sink, USER.get()))
    deferred = Flux.defer(lambda: Flux.just(USER.get()))
    foreign = Flux.from_(rx.do_action(lambda _: None)(Probe(1).source)).map(lambda _: USER.get())
    for source in (created, deferred, foreign):
        assert ["me"] == watch(source.context_write({USER: "me"})).items
    assert ["inner"] == watch(created.context_write({USER: "inner"}).context_write({USER: "outer"})).items
    created.context_write({USER: "me"}).subscribe(lambda value: below.append(value))
    assert (["me"], "nobody") == (below, USER.get())


def test_a_sink_has_the_context() -> None:
    made: Flux[Any] = Flux.create(lambda sink: tell(sink, sink.context["key"]))
    assert [item(1), END] == signals(made.context_write({"key": 1}))


def test_transform_deferred_contextual_makes_a_chain_of_the_context() -> None:
    made = Flux.just(1, 2, 3).transform_deferred_contextual(lambda flux, context: flux.take(context["count"]))
    assert [1, 2] == watch(made.context_write({"count": 2})).items


def test_what_a_function_raises_is_the_error() -> None:
    assert [error(FAILURE)] == signals(Flux.just(1).context_write(raising(FAILURE)))
    assert [error(FAILURE)] == signals(Flux.defer_contextual(raising(FAILURE)))


async def test_tasks_and_sources_that_wait_have_the_variables() -> None:
    """Also where the consumer's own task pulls: each step of the source has them, and the consumer has not."""

    async def numbers() -> Any:
        yield USER.get()
        await asyncio.sleep(0)
        yield USER.get()

    source = Flux.from_async_iterable(numbers()).context_write({USER: "me"})
    got = [(value, USER.get()) async for value in source]
    assert [("me", "nobody"), ("me", "nobody")] == got

    made: Flux[str] = Flux.generate(lambda sink: sink.next(USER.get()))
    assert ["me"] * 100 == await made.context_write({USER: "me"}).take(100).collect_list()
    assert ["me"] * 100 == await made.limit_rate(8).context_write({USER: "me"}).take(100).collect_list()


@pytest.mark.parametrize("key", ["plain", USER])
async def test_the_pace_is_that_of_the_subscriber(key: Any) -> None:
    """The run above is the run below, but for the context."""
    asked: list[int] = []

    def step(state: int, sink: Any) -> int:
        asked.append(state)
        sink.next(state)
        return state + 1

    async for value in Flux.generate(step, lambda: 1).context_write({key: "x"}):
        if value == 10:
            break
    assert len(asked) <= 64


async def test_the_bytes_of_a_chat_stream_are_read_with_the_variables() -> None:
    """In the task of the consumer, who has others."""
    read: list[str] = []

    async def body() -> Any:
        for chunk in (b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', b"data: [DONE]\n\n"):
            read.append(USER.get())
            await asyncio.sleep(0)
            read.append(USER.get())
            yield chunk

    stream = parse(body(), dialect="openai-chat").context_write({USER: "me"})
    assert ["a"] == [event.text async for event in stream if event.type is ChatEventType.TEXT_DELTA]
    assert ({"me"}, "nobody") == (set(read), USER.get())


async def test_a_reader_of_such_a_stream_can_be_cancelled() -> None:
    """What it waits for is told."""
    cancelled: list[str] = []
    waiting = asyncio.Event()

    async def body() -> Any:
        try:
            waiting.set()
            await asyncio.Event().wait()
        finally:
            cancelled.append(USER.get())
        yield b""

    stream = parse(body(), dialect="openai-chat").context_write({USER: "me"})
    task = asyncio.ensure_future(stream.collect_list())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ["me"] == cancelled
