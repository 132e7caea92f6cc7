"""The pace of a shared stream: that of its slowest reader, unless a policy says otherwise."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import reactivex

from semflux.contract import violations_of
from semflux.errors import BufferOverflowError
from semflux.events import ChatEventType
from semflux.flux import Flux
from semflux.operators.delivery import Room
from semflux.operators.publish import Publication
from semflux.operators.share import share
from tests.flux.answers import FRAMES, Chunks, Reads, chat, chat_frames, settle
from tests.frames import cc
from tests.operators.watching import END, watch

T = ChatEventType
OOPS = ValueError("oops")
MANY = chat_frames(4000)


def seqs(events: list[Any]) -> list[int]:
    return [event.seq for event in events]


async def read(stream: Any, into: list[Any]) -> None:
    async for each in stream:
        into.append(each)  # noqa: PERF401  # what came before an error counts


async def test_the_slowest_reader_sets_the_pace() -> None:
    """Its buffer full, the source is read no further; callback subscribers do not change that."""
    reads = Reads(MANY)
    shared = chat(reads).publish().ref_count(2)
    seen = watch(shared)
    async with aiter(shared) as slow:
        await anext(slow)
        for _ in range(5000):
            await asyncio.sleep(0)
        assert 1000 < reads.asked < 1024 + 64 + 64
        assert len(seen.items) < 1024 + 64 + 64
        events = [event async for event in slow]
    assert len(MANY) == reads.asked
    assert list(range(1, 4000 + 6)) == seqs(events)


async def test_a_sync_source_is_paused_too() -> None:
    """It goes on from where there is room."""
    chunks = Chunks(*MANY)
    shared = chat(chunks.sync()).share()
    async with aiter(shared) as slow:
        await anext(slow)
        assert chunks.asked < 1024 + 64 + 64
        assert list(range(1, 4000 + 6)) == seqs([event async for event in slow])
    assert 1 == chunks.closed


async def test_weight_fills_a_buffer_as_well() -> None:
    """8 MiB of text wait at most, and one event."""
    reads = Reads([cc({"content": "x" * 1024 * 1024}) for _ in range(200)])
    shared = chat(reads).share()
    async with aiter(shared) as slow:
        await anext(slow)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert reads.asked < 64 + 12


async def test_weight_stops_a_source_that_has_more_to_push_at_once() -> None:
    """Not at the end of what it has in hand, but at the item that fills the buffer."""
    small, large = cc({"content": "."}), cc({"content": "x" * 1024 * 1024})
    given: list[Any] = []
    shared = chat(b"".join([*[small] * 80, *[large] * 20])).do_on_next(given.append).share()
    async with aiter(shared) as slow:
        await anext(slow)
        assert 80 < len(given) < 80 + 16


@pytest.mark.parametrize("policy", ["coalesce", "drop"])
async def test_a_policy_makes_room_first(policy: Any) -> None:
    """Deltas are joined, HEARTBEAT and RAW go: the source need not wait, and nothing else is lost."""
    if policy == "coalesce":
        frames = MANY
    else:
        frames = [FRAMES[0], *[cc({"content": "."}), *[b'data: {"odd": 1}\n\n'] * 3000], *FRAMES[1:]]
    reads = Reads(frames)
    shared = chat(reads).publish(policy=policy).ref_count(2)
    seen = watch(shared)
    async with aiter(shared) as slow:
        first = await anext(slow)
        for _ in range(20_000):
            await asyncio.sleep(0)
        assert END == seen.signals[-1]
        events: list[Any] = [first, *[event async for event in slow]]
    assert () == violations_of(events, seq="rising")
    assert events[-1] == seen.items[-1]
    assert len(events) < len(seen.items)


async def test_a_policy_fails_the_slow_one_alone() -> None:
    """After what waits for it: ENDs, STEP_END(partial), ERROR with BufferOverflowError."""
    reads = Reads(MANY)
    shared = chat(reads).publish(policy="error").ref_count(2)
    seen = watch(shared)
    events: list[Any] = []
    with pytest.raises(BufferOverflowError):
        async for event in shared:
            events.append(event)
            if len(events) == 1:
                for _ in range(9000):
                    await asyncio.sleep(0)
    assert END == seen.signals[-1]
    assert () == violations_of(events)
    assert T.ERROR is events[-1].type
    assert events[-1].error.partial is not None
    assert events[-1].response.text == "".join([e.text for e in events if e.type is T.TEXT_DELTA])


async def test_a_source_that_cannot_wait_overflows_its_slow_reader() -> None:
    """It minds no demand: what there is no room for would have to be kept without a bound."""
    shared = Flux.from_(reactivex.from_iterable(range(5000))).share()
    with pytest.raises(BufferOverflowError):
        await read(shared, [])
    assert list(range(5000)) == await Flux.from_iterable(range(5000)).share().collect_list()
    assert list(range(1000)) == await Flux.from_iterable(range(1000)).share().collect_list()


async def test_a_source_that_is_merged_with_others_is_shared_as_well() -> None:
    """A driver that comes later is driven; two subscriptions of one consumer do not mix."""
    late = Flux.just(0).pipe(lambda source: source).to_observable()
    shared = chat(Chunks(*FRAMES).agen()).map(lambda e: e.seq).share()
    both = Flux(reactivex.concat(late, shared.to_observable())).share()
    assert [0, *range(9)] == await both.collect_list()
    shared = chat(Chunks(*FRAMES).agen()).map(lambda e: e.seq).share()
    doubled = Flux(reactivex.merge(shared.to_observable(), shared.to_observable()))
    assert sorted([*range(9), *range(9)]) == sorted(await doubled.collect_list())


async def test_the_last_reader_that_leaves_closes_the_source_before_it_goes_on() -> None:
    """Whether it breaks, closes or is cancelled."""
    chunks = Chunks(*FRAMES[:3], endless=True)
    shared = chat(chunks.agen()).share()
    async for _ in shared:
        break
    await settle()
    assert 1 == chunks.closed
    one = Chunks(*FRAMES[:3], endless=True)
    task = asyncio.create_task(read(chat(one.agen()).share(), []))
    async with asyncio.timeout(5):
        await one.waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await settle()
    assert 1 == one.closed


def test_a_shared_stream_can_be_blocked_on() -> None:
    """With the private loop's thread."""
    assert T.RESPONSE_END is chat(Reads(FRAMES)).share().block_last(5).type  # type: ignore[union-attr]


def test_the_room_of_a_buffer_can_be_set() -> None:
    """By the operator; a publication without subscribers has room for all."""
    publication = share(room=Room(items=5))(Flux.just(1, 2))
    assert [1, 2] == watch(Flux(publication)).items
    bare = Publication(Flux.just(1))
    assert not bare.is_connected
    assert () == bare.runs
    bare.disconnect()
    assert bare.can_wait
    bare.connect()
