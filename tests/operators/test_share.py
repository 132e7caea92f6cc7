"""share, publish, ref_count, auto_connect, replay, cache: one subscription for all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import semflux
from semflux.clock import VirtualClock
from semflux.contract import violations_of
from semflux.errors import BufferOverflowError, ConfigurationError, OperatorError, TruncatedStreamError
from semflux.events import ChatEventType
from semflux.flux import ChatStream, Connectable, Flux
from semflux.testing import TestPublisher
from tests.flux.answers import DATA, FRAMES, TYPES, Chunks, Reads, chat, chat_frames, settle
from tests.frames import cc
from tests.operators.watching import END, error, hooked, item, raising, watch

T = ChatEventType
OOPS = ValueError("oops")
MANY = chat_frames(4000)


def seqs(events: list[Any]) -> list[int]:
    return [event.seq for event in events]


async def read(stream: Any, into: list[Any]) -> None:
    async for each in stream:
        into.append(each)  # noqa: PERF401  # what came before an error counts


# Who starts it, and who ends it


def test_share_subscribes_once_and_late_subscribers_miss_what_was() -> None:
    """The last one that leaves cancels the source; the next one starts it anew."""
    publisher: TestPublisher[int] = TestPublisher.create()
    shared = publisher.flux().share()
    first, second = watch(shared), None
    publisher.next(1)
    second = watch(shared)
    publisher.next(2)
    assert ([item(1), item(2)], [item(2)]) == (first.signals, second.signals)
    assert 1 == publisher.subscribe_count
    publisher.complete()
    assert END == first.signals[-1] == second.signals[-1]
    again: TestPublisher[int] = TestPublisher.create()
    shared = again.flux().share()
    one, two = shared.subscribe(), shared.subscribe()
    one.dispose()
    again.assert_not_cancelled()
    two.dispose()
    again.assert_cancelled(1)
    shared.subscribe().dispose()
    assert 2 == again.subscribe_count


def test_a_shared_stream_that_has_ended_starts_anew() -> None:
    """A new subscription is a new request."""
    shared = chat(DATA).share()
    first, second = watch(shared), watch(shared)
    assert TYPES == [e.type for e in first.items] == [e.type for e in second.items]
    assert first.items[0].response_id != second.items[0].response_id


def test_the_source_lives_on_for_the_time_of_grace() -> None:
    """On the given clock; whoever comes meanwhile goes on with it."""
    clock = VirtualClock()
    publisher: TestPublisher[int] = TestPublisher.create()
    shared = publisher.flux().share(grace=5, clock=clock)
    shared.subscribe().dispose()
    clock.advance(4)
    again = shared.subscribe()
    clock.advance(10)
    publisher.assert_not_cancelled()
    again.dispose()
    clock.advance(5)
    publisher.assert_cancelled(1)
    assert 0 == clock.pending
    watch(shared)
    assert 2 == publisher.subscribe_count


async def test_grace_is_counted_by_the_running_loop() -> None:
    """Without a clock. Without a loop there is no grace."""
    publisher: TestPublisher[int] = TestPublisher.create()
    publisher.flux().share(grace=0.001).subscribe().dispose()
    publisher.assert_not_cancelled()
    await asyncio.sleep(0.02)
    publisher.assert_cancelled(1)


def test_without_a_loop_there_is_no_grace() -> None:
    """Nobody could count it."""
    publisher: TestPublisher[int] = TestPublisher.create()
    publisher.flux().share(grace=60).subscribe().dispose()
    publisher.assert_cancelled(1)


def test_publish_waits_for_connect() -> None:
    """All get everything; disposing of the connection tells them."""
    publisher: TestPublisher[int] = TestPublisher.create()
    shared = publisher.flux().publish()
    assert isinstance(shared, Connectable)
    first, second = watch(shared.stream), watch(shared.stream)
    assert 0 == publisher.subscribe_count
    connection = shared.connect()
    shared.connect()
    assert 1 == publisher.subscribe_count
    publisher.next(1)
    connection.dispose()
    connection.dispose()
    publisher.assert_cancelled(1)
    for seen in (first, second):
        assert item(1) == seen.signals[0]
        assert isinstance(seen.error, OperatorError)
    watch(shared.stream)
    shared.connect()
    assert 2 == publisher.subscribe_count


def test_ref_count_and_auto_connect_wait_for_as_many() -> None:
    """auto_connect never disconnects, and tells its end to who comes after it."""
    publisher: TestPublisher[int] = TestPublisher.create()
    counted = publisher.flux().publish().ref_count(2)
    one = counted.subscribe()
    assert 0 == publisher.subscribe_count
    two = counted.subscribe()
    assert 1 == publisher.subscribe_count
    one.dispose()
    two.dispose()
    publisher.assert_cancelled(1)
    other: TestPublisher[int] = TestPublisher.create()
    connected = other.flux().publish().auto_connect(2)
    one = connected.subscribe()
    assert 0 == other.subscribe_count
    two = connected.subscribe()
    one.dispose()
    two.dispose()
    other.assert_not_cancelled()
    other.next(1).complete()
    assert [END] == watch(connected).signals
    assert 1 == other.subscribe_count
    at_once: TestPublisher[int] = TestPublisher.create()
    at_once.flux().publish().auto_connect(0)
    assert 1 == at_once.subscribe_count


def test_replay_and_cache_tell_what_was() -> None:
    """Everything, the last ones, or the young ones; after the end too."""
    clock = VirtualClock()
    publisher: TestPublisher[int] = TestPublisher.create()
    whole = publisher.flux().replay()
    last = publisher.flux().replay(1)
    young = publisher.flux().replay(ttl=5, clock=clock)
    for each in (whole, last, young):
        each.connect()
    publisher.next(1)
    clock.advance(5)
    publisher.next(2)
    assert [1, 2] == watch(whole.stream).items
    assert [2] == watch(last.stream).items
    assert [2] == watch(young.stream).items
    publisher.error(OOPS)
    assert [item(1), item(2), error(OOPS)] == watch(whole.stream).signals
    cold: TestPublisher[int] = TestPublisher.create()
    cached = cold.flux().cache()
    cached.subscribe().dispose()
    cold.next(1).complete()
    assert [item(1), END] == watch(cached).signals == watch(cached).signals
    assert 1 == cold.subscribe_count


def test_replay_of_a_plain_stream_that_is_too_long_fails_for_late_ones() -> None:
    """It was asked for everything."""
    shared = Flux.from_iterable(range(10_001)).replay()
    shared.connect()
    assert isinstance(watch(shared.stream).error, BufferOverflowError)


def test_a_chat_stream_that_is_too_long_comes_as_its_snapshot() -> None:
    """Few events that come to the same."""
    shared = chat(b"".join(chat_frames(10_001))).cache()
    first, late = watch(shared), watch(shared)
    assert len(first.items) > 10_000
    assert 7 == len(late.items)
    assert () == violations_of(late.items, seq="rising")
    assert first.items[-1] == late.items[-1]


@pytest.mark.parametrize(
    "make",
    [
        lambda flux: flux.replay(-1),
        lambda flux: flux.replay(ttl=0),
        lambda flux: flux.replay(compact=True),
        lambda flux: flux.publish().ref_count(0),
        lambda flux: flux.publish().ref_count(grace=-1),
        lambda flux: flux.publish().auto_connect(-1),
    ],
)
def test_wrong_numbers_are_refused(make: Any) -> None:
    """When the chain is made."""
    with pytest.raises(ConfigurationError):
        make(Flux.just(1))


# Chat streams


async def test_a_shared_chat_stream_is_one() -> None:
    """All see the same events."""
    chunks = Chunks(*FRAMES)
    shared = chat(chunks.agen()).publish().ref_count(3)
    assert isinstance(chat(DATA).share(), ChatStream)
    assert isinstance(chat(DATA).cache(), ChatStream)
    assert isinstance(chat(DATA).publish().stream, ChatStream)
    assert isinstance(chat(DATA).publish().ref_count(), ChatStream)
    first: list[Any] = []
    second: list[Any] = []
    seen = watch(shared)
    await asyncio.gather(read(shared, first), read(shared, second))
    assert TYPES == [e.type for e in first]
    assert all(a is b is c for a, b, c in zip(first, second, seen.items, strict=True))
    assert 1 == chunks.closed


async def test_late_subscribers_of_a_cached_chat_stream_get_it_from_its_start() -> None:
    """Then what is live."""
    shared = chat(Chunks(*FRAMES).agen()).cache()
    late: list[Any] = []
    tasks: list[Any] = []
    async for event in shared:
        if event.is_(T.TEXT_DELTA) and not tasks:
            tasks.append(asyncio.create_task(read(shared, late)))
            await settle()
    await tasks[0]
    assert TYPES == [e.type for e in late]
    assert () == violations_of(late)


async def test_a_late_subscriber_may_get_a_snapshot_and_then_what_is_live() -> None:
    """At each place in the stream, with text, thinking, calls and usage."""
    frames = [
        cc({"reasoning_content": "hm"}),
        cc({"reasoning_content": "m"}),
        cc({"content": "a"}),
        cc({"content": "b"}),
        cc({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{"}}]}),
        cc({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}),
        cc(finish="tool_calls"),
        b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}\n\n',
        b"data: [DONE]\n\n",
    ]
    whole = watch(chat(b"".join(frames))).items
    for place in range(len(whole)):
        shared = chat(b"".join(frames)).replay(compact=True).ref_count()
        late: list[Any] = []
        first: list[Any] = []

        def join(
            event: Any, place: int = place, late: Any = late, first: Any = first, s: Any = shared
        ) -> None:
            first.append(event)
            if event.seq == place:
                s.subscribe(late.append)

        shared.subscribe(join)
        assert () == violations_of(late, seq="rising"), place
        assert late[-1] is first[-1]
        assert len(late) <= len(whole)


async def test_abort_of_a_shared_stream_reaches_all() -> None:
    """And only those who are subscribed."""
    chunks = Chunks(*FRAMES[:3], endless=True)
    for shared in (
        chat(chunks.agen()).share(),
        chat(chunks.agen()).publish().auto_connect(0),
    ):
        first, second = watch(shared), watch(shared)
        await settle()
        shared.abort("enough")
        await settle()
        for seen in (first, second):
            assert T.ABORT is seen.items[-1].type
            assert END == seen.signals[-1]
        shared.abort("again")


async def test_a_disconnected_chat_stream_ends_in_abort() -> None:
    """In order, for all."""
    chunks = Chunks(*FRAMES[:3], endless=True)
    shared = chat(chunks.agen()).publish()
    seen = watch(shared.stream)
    connection = shared.connect()
    async with asyncio.timeout(5):
        await chunks.waiting.wait()
    connection.dispose()
    assert () == violations_of(seen.items)
    assert (T.ABORT, "disconnected") == (seen.items[-1].type, seen.items[-1].reason)
    assert END == seen.signals[-1]
    await settle()
    assert 1 == chunks.closed


async def test_the_error_of_a_shared_chat_stream_is_everybodys() -> None:
    """ERROR, then the same exception."""
    shared = chat(Chunks(*FRAMES[:3]).agen()).publish().ref_count(3)
    first, second = watch(shared), watch(shared)
    events: list[Any] = []
    with pytest.raises(TruncatedStreamError):
        await read(shared, events)
    assert () == violations_of(first.items)
    assert first.error is second.error is first.items[-1].error


async def test_one_subscriber_can_go_on_elsewhere_after_the_failure() -> None:
    """In a stream of its own from there: one response id, one order; the others end."""
    shared = chat(Chunks(*FRAMES[:3]).agen()).publish().ref_count(3)
    failed = watch(shared)
    mended: list[Any] = []
    other: list[Any] = []
    await asyncio.gather(
        read(shared.on_error_resume(lambda error: chat(DATA)), mended),
        read(shared.on_error_resume(lambda error: chat(DATA)), other),
    )
    assert T.ERROR is failed.items[-1].type
    for events in (mended, other):
        assert () == violations_of(events)
        assert T.RESPONSE_END is events[-1].type
        assert 2 == len(events[-1].response.steps)


async def test_a_limit_of_one_subscriber_ends_it_alone() -> None:
    """In order: block ENDs, STEP_END(partial), ERROR."""
    clock = VirtualClock()
    chunks = Chunks(*FRAMES[:3], endless=True)
    shared = chat(chunks.agen()).publish().ref_count(2)
    others = watch(shared)
    mine: list[Any] = []
    task = asyncio.create_task(read(shared.timeout(5, clock=clock), mine))
    async with asyncio.timeout(5):
        await chunks.waiting.wait()
        clock.advance(5)
        with pytest.raises(semflux.TotalTimeoutError):
            await task
    assert () == violations_of(mine)
    assert T.ERROR is mine[-1].type
    assert "0 1 " == mine[-1].response.text
    assert T.TEXT_DELTA is others.items[-1].type
    shared.abort("done")


def test_a_stream_that_waits_needs_a_loop_when_it_is_shared() -> None:
    """Told as an error of the stream."""
    seen = watch(chat(Reads(FRAMES)).share())
    assert isinstance(seen.error, ConfigurationError)


async def test_a_subscriber_that_raises_or_leaves_is_not_seen_by_the_others() -> None:
    """From inside its own item too."""
    shared = chat(Chunks(*FRAMES).agen()).publish().ref_count(3)
    with hooked() as dropped:
        shared.subscribe(raising(OOPS))
        kept: list[Any] = []
        await asyncio.gather(read(shared.take(2), []), read(shared, kept))
    assert TYPES == [e.type for e in kept]
    assert [OOPS] == dropped.errors
