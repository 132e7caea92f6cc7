"""Every source, cut every way, read every way: all items come, in the order of their part, and nothing is left."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

import semflux
from semflux import Flux
from tests.frames import DONE, cc, cuts

COUNT = 150
ANSWER = b"".join([cc({"content": f"{n} "}) for n in range(COUNT)]) + cc(finish="stop") + DONE

Parts = Flux[Flux[Any]]


async def _chunks(size: int) -> AsyncIterator[bytes]:
    for piece in cuts(ANSWER, size):
        await asyncio.sleep(0)
        yield piece


async def _numbers() -> AsyncIterator[int]:
    for number in range(COUNT):
        await asyncio.sleep(0)
        yield number


def _generated() -> Flux[int]:
    def function(number: int, sink: Any) -> int:
        if number < COUNT:
            sink.next(number)
        else:
            sink.complete()
        return number + 1

    return Flux.generate(function, lambda: 0)


def _chat(source: Any) -> Flux[int]:
    return semflux.parse(source, dialect="openai-chat").map(lambda event: event.seq)


SOURCES: dict[str, Callable[[], Flux[int]]] = {
    "chat, at once": lambda: _chat(ANSWER),
    "chat, in small pieces": lambda: _chat(_chunks(30)),
    "chat, in large pieces": lambda: _chat(_chunks(2000)),
    "pushed": lambda: Flux.from_iterable(range(COUNT)),
    "generated": _generated,
    "iterated": lambda: Flux.from_async_iterable(_numbers()),
    "in batches": lambda: _chat(_chunks(50)).limit_rate(8),
}
WAYS: dict[str, Callable[[Flux[int]], Any]] = {
    "window(1)": lambda source: source.window(1),
    "window(7)": lambda source: source.window(7),
    "window(9999)": lambda source: source.window(9999),
    "cut before": lambda source: source.window_until(lambda n: n % 7 == 3, cut_before=True),
    "groups": lambda source: source.group_by(lambda n: n % 7),
}


async def _nested(parts: Parts) -> list[list[Any]]:
    return [[each async for each in part] async for part in parts]


async def _later(parts: Parts) -> list[list[Any]]:
    return [await part.collect_list() for part in await parts.collect_list()]


async def _mapped(parts: Parts) -> list[list[Any]]:
    return [each async for each in parts.flat_map(lambda part: part.collect_list(), 2)]


async def _in_order(parts: Parts) -> list[list[Any]]:
    return await parts.concat_map(lambda part: part.collect_list()).share().collect_list()


async def _tasks(parts: Parts) -> list[list[Any]]:
    async def read(part: Flux[Any]) -> list[Any]:
        found: list[Any] = []
        async for each in part:
            found.append(each)
            await asyncio.sleep(0)
        return found

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(read(part)) async for part in parts]
    return [task.result() for task in tasks]


async def _called(parts: Parts) -> list[list[Any]]:
    found: list[list[Any]] = []
    ended = asyncio.Event()

    def look(part: Flux[Any]) -> None:
        found.append([])
        part.subscribe(found[-1].append)

    parts.subscribe(look, on_completed=ended.set)
    await ended.wait()
    return found


READERS: dict[str, Callable[[Parts], Awaitable[list[list[Any]]]]] = {
    "one after another": _nested,
    "all, then each": _later,
    "two at once": _mapped,
    "in order, shared": _in_order,
    "a task each": _tasks,
    "callbacks": _called,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("way", WAYS)
async def test_all_items_come_in_their_parts(way: str, reader: str) -> None:
    """As they do where the whole stream is known."""
    for name, source in SOURCES.items():
        total = len(await source().collect_list())
        expected = await _later(WAYS[way](Flux.from_iterable(range(total))))
        found = await asyncio.wait_for(READERS[reader](WAYS[way](source())), 30)
        assert sorted(expected) == sorted(found), name


async def _break(parts: Parts) -> None:
    async for part in parts:
        async for each in part:
            if each == 5:
                break
        else:
            continue
        break


async def _take(parts: Parts) -> None:
    await parts.flat_map(lambda part: part).take(5).collect_list()


async def _take_of_each(parts: Parts) -> None:
    await parts.flat_map(lambda part: part.take(2)).take(5).collect_list()


async def _keep_one(parts: Parts) -> None:
    kept = await parts.next()
    await kept.take(3).collect_list()


async def _keep_none(parts: Parts) -> None:
    await parts.next()


@pytest.mark.parametrize("leave", [_break, _take, _take_of_each, _keep_one, _keep_none])
@pytest.mark.parametrize("way", WAYS)
async def test_nothing_is_left_of_what_is_left_in_the_middle(
    way: str, leave: Callable[[Parts], Awaitable[None]]
) -> None:
    """No task, wherever the items come from."""
    for name, source in SOURCES.items():
        await asyncio.wait_for(leave(WAYS[way](source())), 30)
        gc.collect()
        for _ in range(20):
            await asyncio.sleep(0)
        assert {asyncio.current_task()} == asyncio.all_tasks(), name
