"""group_by: a stream for each key; who reads it, who does not, and what becomes of it."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
import reactivex

import semflux
from semflux import ChatEventGroup, ChatEventType, Flux, GroupedFlux
from semflux.errors import AlreadyConsumedError, BufferOverflowError
from semflux.operators import part
from semflux.operators.delivery import Room
from tests.frames import DONE, cc, cuts, tc
from tests.operators.watching import END, Probe, Watcher, error, item, raising, signals, watch

T, G = ChatEventType, ChatEventGroup
FAILURE = ValueError("mine")
ANSWER = (
    b"".join([cc({"content": f"{n} "}) + cc({"reasoning_content": f"{n}?"}) for n in range(20)])
    + cc(tc(0, "c1", "f", "{}"))
    + cc(finish="tool_calls")
    + DONE
)


class Groups(Watcher):
    """Subscribes to each group as it comes; *limit*: to so many items of it."""

    def __init__(self, source: Any, limit: int = 99) -> None:
        super().__init__()
        self.limit = limit
        self.groups: list[tuple[Any, Watcher]] = []
        self.subscription = source.subscribe(self)

    def on_next(self, value: Any) -> None:
        self.groups.append((value.key, watch(value.take(self.limit))))

    @property
    def told(self) -> list[Any]:
        return [(key, each.items) for key, each in self.groups]


def odd(value: int) -> bool:
    return value % 2 == 1


def test_there_is_a_stream_for_each_key() -> None:
    """It begins with its first item and ends with the source; its items may be values of them."""
    source = reactivex.Subject[Any]()
    seen = Groups(Flux.from_(source).group_by(odd))
    for value in (1, 2, 3):
        source.on_next(value)
    assert [(True, [1, 3]), (False, [2])] == seen.told
    source.on_completed()
    assert ([END], [END, END]) == (seen.signals, [each.signals[-1] for _, each in seen.groups])
    assert [(None, ["1", "None"])] == Groups(Flux.just(1, None).group_by(lambda _: None, str)).told


def test_a_group_has_one_subscriber_and_holds_what_came_before() -> None:
    """It keeps its key through operators that keep the items."""
    source = reactivex.Subject[Any]()
    watcher = watch(Flux.from_(source).group_by(odd))
    source.on_next(1)
    source.on_next(3)
    group = watcher.items[0]
    assert isinstance(group, GroupedFlux)
    kept = group.filter(lambda value: value > 1)
    assert (True, True) == (kept.key, kept.share().key)
    assert [item(3)] == watch(kept).signals
    assert isinstance(watch(group).error, AlreadyConsumedError)


def test_an_error_is_that_of_all_groups_and_of_the_stream() -> None:
    """What a function raises, too, and a key that is none; then the source is cancelled first."""
    probe = Probe(1, 2, 3)
    seen = Groups(Flux.from_(probe.source).group_by(raising(FAILURE, at=3)))
    assert [[item(1), error(FAILURE)], [item(2), error(FAILURE)]] == [each.signals for _, each in seen.groups]
    assert ([error(FAILURE)], 1) == (seen.signals, probe.disposed)
    failing = Flux.just(1).concat_with(Flux.error(FAILURE))
    assert [item(1), error(FAILURE)] == signals(failing.group_by(odd).flat_map(lambda each: each))
    assert [error(FAILURE)] == signals(Flux.just(1).group_by(odd, raising(FAILURE)))
    assert isinstance(watch(Flux.just(1).group_by(lambda value: [value])).error, TypeError)


def test_a_group_that_was_left_begins_anew_with_its_next_item() -> None:
    source = Flux.just(1, 2, 3, 4, 5)
    assert [(True, [1]), (False, [2]), (True, [3]), (False, [4]), (True, [5])] == Groups(
        source.group_by(odd), limit=1
    ).told


def test_a_group_that_nobody_wants_is_dropped_and_does_not_come_again() -> None:
    """Nothing refers to it: what comes for it is held by nobody."""
    source = reactivex.Subject[Any]()
    watcher = watch(Flux.from_(source).group_by(odd).filter(lambda group: group.key))
    for value in (2, 1, 4, 3, 6):
        source.on_next(value)
    assert [True] == [group.key for group in watcher.items]
    assert [item(1), item(3)] == watch(watcher.items[0]).signals


def test_the_source_is_cancelled_when_the_stream_and_all_groups_are_left() -> None:
    """After the stream is left no group begins."""
    source = reactivex.Subject[Any]()
    told, subscriptions = list[Any](), list[Any]()

    def look(group: GroupedFlux[bool, int]) -> None:
        subscriptions.append(group.subscribe(told.append))

    stream = Flux.from_(source).group_by(lambda value: value % 3).subscribe(look)
    source.on_next(0)
    source.on_next(1)
    stream.dispose()
    for value in (2, 3):
        source.on_next(value)
    subscriptions[0].dispose()
    source.on_next(6)
    source.on_next(4)
    assert ([0, 1, 3, 4], 1) == (told, len(source.observers))
    subscriptions[1].dispose()
    assert [] == source.observers


def test_a_group_that_waits_for_its_turn_holds_its_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer at once than there are groups: nothing hangs, up to the bound of what a group holds."""

    def one_by_one() -> list[Any]:
        return signals(Flux.just(1, 2, 3, 4, 5, 6).group_by(odd).flat_map(lambda each: each, concurrency=1))

    assert [*map(item, (1, 3, 5, 2, 4, 6)), END] == one_by_one()
    monkeypatch.setattr(part, "HELD", Room(items=2))
    assert [BufferOverflowError] == [type(signal[1]) for signal in one_by_one()[3:]]


class Events:
    """A chat stream whose source says whether it is closed."""

    def __init__(self, size: int = 200) -> None:
        self.closed = False
        self.size = size

    async def __aiter__(self) -> Any:
        try:
            for piece in cuts(ANSWER, self.size):
                await asyncio.sleep(0)
                yield piece
        finally:
            self.closed = True

    def groups(self) -> Flux[GroupedFlux[ChatEventGroup, Any]]:
        return semflux.parse(self.__aiter__(), dialect="openai-chat").group_by(lambda event: event.type.group)


async def test_all_events_of_a_chat_stream_are_in_the_groups() -> None:
    """Whoever reads them how: one after another, as they come, at most so many at once."""
    whole = await semflux.parse(ANSWER, dialect="openai-chat").collect_list()
    expected: dict[Any, list[Any]] = {}
    for event in whole:
        expected.setdefault(event.type.group, []).append((event.type, event.text))

    def types(events: list[Any]) -> list[Any]:
        return [(event.type, event.text) for event in events]

    pulled = {group.key: types([e async for e in group]) async for group in Events().groups()}
    assert expected == pulled
    kept = {group.key: types(await group.collect_list()) for group in await Events().groups().collect_list()}
    assert expected == kept
    for at_once in (1, 2, 256):
        lists = await Events().groups().flat_map(lambda each: each.collect_list(), at_once).collect_list()
        assert sorted(map(types, lists)) == sorted(expected.values())
    flat = await Events().groups().flat_map(lambda each: each).collect_list()
    assert types(flat) == types(whole)


async def test_a_task_for_each_group() -> None:
    """Each pulls its own, at its own pace."""
    read: dict[Any, int] = {}

    async def count(group: GroupedFlux[Any, Any]) -> None:
        async for _ in group:
            read[group.key] = read.get(group.key, 0) + 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        async for group in Events(size=60).groups():
            tasks.create_task(count(group))
    assert len(await semflux.parse(ANSWER, dialect="openai-chat").collect_list()) == sum(read.values())
    assert {G.LIFECYCLE, G.STEP, G.TEXT, G.THINKING, G.TOOL_CALL} <= set(read)


async def test_leaving_the_groups_in_the_middle_closes_the_source() -> None:
    """One group only was read; the others are nobody's."""
    events = Events()
    async for group in events.groups():
        if group.key is G.TEXT:
            async for event in group:
                if event.is_(T.TEXT_DELTA):
                    break
            break
    gc.collect()
    for _ in range(5):
        await asyncio.sleep(0)
    assert events.closed

    events = Events()
    assert 7 == len(await events.groups().flat_map(lambda each: each).take(7).collect_list())
    for _ in range(5):
        await asyncio.sleep(0)
    assert events.closed


async def test_one_group_may_be_kept_alone() -> None:
    """The stream of groups is left: the source goes on for that one."""
    group = await Events().groups().filter(lambda each: each.key is G.TEXT).next()
    texts = await group.filter(lambda event: event.text).map(lambda event: event.text).collect_list()
    assert [f"{n} " for n in range(20)] == texts
