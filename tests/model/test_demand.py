"""Back-pressure: what nobody takes is neither read nor made; and what is taken comes whole."""

from __future__ import annotations

import asyncio

import pytest

from semflux.events import AnyChatEvent
from semflux.flux.iterate import EventIterator
from tests.faultserver import EOF, REQUEST, head, pour
from tests.frames import cc
from tests.model.asking import FINISH, HELLO, SSE, acquired, asking, eof_of, streamed, until


async def test_a_stream_that_is_not_read_stops_the_server() -> None:
    """After the buffers of the sockets: about 64 KiB of ours, the rest is the kernel's."""
    block = cc({"content": "x" * 1000}) * 16
    async with asking([REQUEST, head("200 OK", SSE), pour(block, 256 << 20)]) as (model, server):
        events = aiter(model.prompt("hi").stream())
        while (await anext(events)).type != "TEXT_DELTA":
            pass
        seen = await server.connection()
        before = -1
        while seen.accepted != before:
            before = seen.accepted
            await asyncio.sleep(0.1)
        assert 0 < before < 64 << 20
        await anext(events)
        await events.aclose()


async def test_a_callback_subscriber_that_does_not_return_stops_the_server_as_well() -> None:
    """It asks for everything, and gets it in its own time: what it has not taken waits in the socket."""
    block = cc({"content": "x" * 1000}) * 16
    count = 0

    def slow(event: AnyChatEvent) -> None:
        nonlocal count
        count += 1
        if count == 50:
            subscription.dispose()

    async with asking([REQUEST, head("200 OK", SSE), pour(block, 256 << 20)]) as (model, _):
        subscription = model.prompt("hi").stream().subscribe(slow)
        await until(lambda: count == 50)
        await until(lambda: acquired(model) == 0)


@pytest.mark.parametrize("taken", [1, 2, 3, 10])
async def test_64_means_64(taken: int) -> None:
    """A consumer that stops after a few events has had at most 64 made beyond them."""
    made: list[AnyChatEvent] = []
    body = HELLO + cc({"content": "x"}) * 1000 + FINISH
    async with asking([REQUEST, head("200 OK", SSE), body, EOF]) as (model, server):
        events: EventIterator[AnyChatEvent] = aiter(model.prompt("hi").stream().do_on_next(made.append))
        for _ in range(taken):
            await anext(events)
        await asyncio.sleep(0.02)
        assert len(made) <= taken + 63
        await events.aclose()
        if server.seen:
            await eof_of(server)


async def test_a_consumer_that_goes_on_gets_all() -> None:
    body = HELLO + cc({"content": "x"}) * 1000 + FINISH
    async with asking([REQUEST, streamed(body)]) as (model, _):
        text = [piece async for piece in model.prompt("hi").stream().text()]
    assert "".join(text) == "Hello" + "x" * 1000
