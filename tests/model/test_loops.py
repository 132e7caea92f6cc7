"""Many streams at once, several loops, models that nobody closes: nothing is mixed up and nothing is left."""

from __future__ import annotations

import asyncio
import gc
import random
from typing import Any

import pytest

from semflux import ChatModel, Timeouts
from semflux.errors import (
    BadRequestError,
    ConnectionLostError,
    PoolTimeoutError,
    SemfluxError,
    TruncatedStreamError,
)
from semflux.transport.aiohttp import AiohttpTransport
from tests.faultserver import EOF, REQUEST, RESET, FaultServer, Seen, Step, answer, chunk, head
from tests.frames import DONE, cc
from tests.model.asking import (
    BODIES,
    CHAT,
    DIALECTS,
    FINISH,
    HELLO,
    JSON,
    SSE,
    WHOLE,
    acquired,
    asking,
    model_at,
    request_of,
    streamed,
    until,
)


async def echo(seen: Seen) -> None:
    """Answer each request with its own prompt, word by word, at a pace of its own; "fail" in many ways."""
    while True:
        await REQUEST(seen)
        prompt = request_of(seen.requests[-1])[2]["messages"][-1]["content"]
        name, _, kind = prompt.partition(" ")
        if kind == "refuse":
            seen.writer.write(answer(b"{}", JSON, status="400 Bad"))
            continue
        seen.writer.write(head("200 OK", SSE, chunked=True))
        for n in range(20):
            seen.writer.write(chunk(cc({"content": f"{name}.{n} "})))
            await seen.writer.drain()
            await asyncio.sleep(random.random() / 500)
            if n == 10 and kind == "reset":
                await RESET(seen)
                return
            if n == 10 and kind == "cut":
                seen.writer.write(chunk(b""))
                break
        else:
            seen.writer.write(chunk(FINISH + DONE) + chunk(b""))


EXPECTED: dict[str, type[SemfluxError] | None] = {
    "": None,
    "refuse": BadRequestError,
    "reset": ConnectionLostError,
    "cut": TruncatedStreamError,
    "leave": None,
}


async def test_fifty_streams_at_once_see_only_their_own_text() -> None:
    """L4, small: some fail, each with its own error; some are left half way."""
    kinds = list(EXPECTED)

    async def ask(model: ChatModel, n: int) -> None:
        kind = kinds[n % len(kinds)]
        texts: list[str] = []
        error: Exception | None = None
        ids: set[str] = set()
        try:
            async for event in model.prompt(f"p{n} {kind}").stream():
                ids.add(event.response_id)
                if event.type == "TEXT_DELTA":
                    texts.append(event.text or "")
                    if kind == "leave" and len(texts) == 5:
                        break
        except SemfluxError as exc:
            error = exc
        assert type(error) is (EXPECTED[kind] or type(None))
        assert len(ids) == 1
        count = {"": 20, "refuse": 0, "leave": 5}.get(kind, len(texts))
        assert texts == [f"p{n}.{i} " for i in range(count)]

    async with FaultServer([echo]) as server, model_at(server) as model:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            for n in range(50):
                group.create_task(ask(model, n))
        await until(lambda: acquired(model) == 0)


async def test_one_stream_object_may_be_read_by_many_at_once() -> None:
    async with asking([REQUEST, streamed(CHAT)]) as (model, server):
        stream = model.prompt("hi").stream()
        responses = await asyncio.gather(*[_call(stream.response()) for _ in range(20)])
        assert {response.text for response in responses} == {"Hello"}
        assert len({response.response_id for response in responses}) == 20
        assert len(server.requests) == 20


async def _call(mono: Any) -> Any:
    return await mono


class Serving:
    """A server on a loop of its own, in a thread: for tests that run loops one after the other."""

    def __init__(self, *scripts: list[Step]) -> None:
        self.scripts = scripts

    def run(self, main: Any) -> None:
        """Call *main*(server) in a thread while the server runs in this one."""

        async def serve() -> None:
            async with FaultServer(*self.scripts) as server:
                await asyncio.to_thread(main, server)

        asyncio.run(serve())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_works_in_one_asyncio_run_after_another_and_in_block(dialect: str) -> None:
    script: list[Step] = [REQUEST, streamed(BODIES[dialect]), REQUEST, answer(WHOLE[dialect], JSON)]

    def main(server: FaultServer) -> None:
        model = model_at(server, dialect)

        async def twice() -> list[str]:
            return [(await model.prompt("hi").call()).text for _ in range(2)]

        assert model.prompt("hi").call().block(timeout=10).text == "Hello"
        assert asyncio.run(twice()) == ["Hello", "Hello"]
        assert asyncio.run(twice()) == ["Hello", "Hello"]
        assert model.prompt("hi").call().block(timeout=10).text == "Hello"
        # One connection for each loop, used for both of its calls.
        assert [len(seen.requests) for seen in server.seen] == [2, 2, 2]
        assert acquired(model) == 0

    Serving(script).run(main)


@pytest.mark.parametrize("inside", ["a loop", "block"])
@pytest.mark.parametrize("cycle", [False, True])
def test_a_model_that_is_never_closed_leaves_nothing(inside: str, cycle: bool) -> None:
    """Not even where the collector finds it in a cycle; `no_leaks` looks for session and sockets."""

    def main(server: FaultServer) -> None:
        model = model_at(server)
        if inside == "block":
            model.prompt("hi").call().block(timeout=10)
        else:
            asyncio.run(_run(model))
        holder: list[Any] = [model]
        if cycle:
            holder.append(holder)
        del model, holder
        gc.collect()

    async def _run(model: ChatModel) -> None:
        await model.prompt("hi").call()

    Serving([REQUEST, streamed(CHAT)]).run(main)


async def test_a_stream_that_nobody_refers_to_any_more_is_closed() -> None:
    async with asking([REQUEST, head("200 OK", SSE), HELLO, EOF]) as (model, server):
        events = aiter(model.prompt("hi").stream())
        while (await anext(events)).type != "TEXT_DELTA":
            pass
        del events
        gc.collect()
        async with asyncio.timeout(5):
            await server.seen[0].eof.wait()


@pytest.mark.parametrize("how", ["returns", "raises", "is cancelled", "gathers"])
def test_a_loop_may_close_in_the_middle_of_a_stream(how: str) -> None:
    """L3: no "Task was destroyed", no "Unclosed", no hanging; the server sees the end."""

    def main(server: FaultServer) -> None:
        model = model_at(server)

        async def consume() -> None:
            async for event in model.prompt("hi").stream():
                if event.text == "lo" and how == "raises":
                    raise KeyError

        async def program() -> None:
            events: list[Any] = []
            if how == "raises":
                await consume()
                return
            tasks = [asyncio.create_task(consume()) for _ in range(3)]
            subscription = model.prompt("hi").stream().subscribe(events.append)
            await until(lambda: len(events) == 5)
            if how == "is cancelled":
                current = asyncio.current_task()
                assert current is not None
                current.cancel()
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            subscription.dispose()
            if how == "gathers":
                await asyncio.gather(*tasks, return_exceptions=True)

        if how == "raises":
            with pytest.raises(KeyError):
                asyncio.run(program())
        elif how == "is cancelled":
            runs = asyncio.new_event_loop()
            try:
                with pytest.raises(asyncio.CancelledError):
                    runs.run_until_complete(program())
                pending = asyncio.all_tasks(runs)
                for task in pending:
                    task.cancel()
                runs.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
                runs.run_until_complete(runs.shutdown_asyncgens())
            finally:
                runs.close()
        else:
            asyncio.run(program())
        assert acquired(model) == 0

    Serving([REQUEST, head("200 OK", SSE), HELLO, EOF]).run(main)


async def test_async_with_ends_the_connections_and_a_later_call_opens_new_ones() -> None:
    async with FaultServer([REQUEST, streamed(CHAT), EOF]) as server:
        model = model_at(server)
        async with model as same:
            assert same is model
            await model.prompt("hi").call()
        async with asyncio.timeout(5):
            await server.seen[0].eof.wait()
        await model.prompt("hi").call()
        await model.aclose()
        await model.aclose()
        assert len(server.seen) == 2


async def test_a_transport_that_was_passed_in_is_left_alone() -> None:
    """Two models share it; whoever made it closes it."""
    async with FaultServer([REQUEST, streamed(CHAT), REQUEST, streamed(CHAT), EOF]) as server:
        transport = AiohttpTransport()
        for _ in range(2):
            async with model_at(server, transport=transport) as model:
                await model.prompt("hi").call()
        assert len(server.seen) == 1
        await transport.aclose()


async def test_a_pool_of_one_makes_the_second_stream_wait() -> None:
    async with FaultServer([REQUEST, streamed(CHAT), REQUEST, streamed(CHAT)]) as server:
        transport = AiohttpTransport(limit=1)
        model = model_at(server, transport=transport)
        responses = await asyncio.gather(_call(model.prompt("a").call()), _call(model.prompt("b").call()))
        assert [response.text for response in responses] == ["Hello", "Hello"]
        assert len(server.seen) == 1
        await transport.aclose()


async def test_a_pool_that_stays_full_fails_the_stream_that_waits() -> None:
    """C5. The message names the limit; the stream that holds the connection goes on."""
    async with FaultServer([REQUEST, head("200 OK", SSE), HELLO, EOF]) as server:
        transport = AiohttpTransport(limit=1)
        model = model_at(server, transport=transport, timeouts=Timeouts(pool=0.02))
        async with aiter(model.prompt("a").stream()) as events:
            while (await anext(events)).type != "TEXT_DELTA":
                pass
            with pytest.raises(PoolTimeoutError, match="pool="):
                await model.prompt("b").call()
            assert (await anext(events)).text == "lo"
            assert transport.acquired == 1
        assert transport.acquired == 0
        assert len(server.seen) == 1
        await transport.aclose()
