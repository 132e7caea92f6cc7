"""on_backpressure_* and limit_rate: between a source that goes at its own pace and a subscriber that pulls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import semflux
from semflux.clock import VirtualClock
from semflux.contract import violations_of
from semflux.errors import BufferOverflowError, ConfigurationError
from semflux.events import ChatEventGroup, ChatEventType
from semflux.flux import ChatStream, Flux
from semflux.operators import EventSubject
from semflux.operators.delivery import DELIVERY, Delivery, coalesced, weight_of
from semflux.testing import TestPublisher
from tests.flux.answers import DATA, FRAMES, TYPES, Chunks, Reads, chat, chat_frames, settle
from tests.frames import cc
from tests.operators.watching import END, hooked, raising, watch

T = ChatEventType
MANY = chat_frames(4000)
OOPS = ValueError("oops")
PREFETCH = 64
"""Items that the iterator itself asks for."""


async def pushed(operator: Any, count: int) -> tuple[list[Any], Any]:
    """What a subscriber gets that reads one item, sleeps while *count* items are pushed, and reads on."""
    subject: EventSubject[int] = EventSubject()
    got: list[Any] = []
    async with asyncio.timeout(5), aiter(operator(Flux(subject))) as items:
        first = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0)
        subject.on_next(0)
        got.append(await first)
        for each in range(1, count):
            subject.on_next(each)
        subject.on_completed()
        try:
            async for each in items:
                got.append(each)  # noqa: PERF401  # what came before the error counts
        except BufferOverflowError as error:
            return got, error
    return got, None


async def test_a_buffer_keeps_order_and_overflows_by_an_error() -> None:
    """What is in it is delivered first."""
    assert (list(range(100)), None) == await pushed(lambda f: f.on_backpressure_buffer(), 100)
    got, error = await pushed(lambda f: f.on_backpressure_buffer(10), 200)
    assert list(range(PREFETCH + 10)) == got
    assert isinstance(error, BufferOverflowError)


async def test_a_buffer_may_drop_the_oldest_or_the_latest() -> None:
    """And tells which."""
    gone: list[Any] = []
    got, error = await pushed(
        lambda f: f.on_backpressure_buffer(10, "drop_oldest", on_overflow=gone.append), 200
    )
    assert error is None
    assert [*range(PREFETCH), *range(190, 200)] == got
    assert list(range(PREFETCH, 190)) == gone
    got, error = await pushed(lambda f: f.on_backpressure_buffer(10, "drop_latest"), 200)
    assert (list(range(PREFETCH + 10)), None) == (got, error)


async def test_drop_latest_and_error() -> None:
    """Beyond what is asked for."""
    gone: list[Any] = []
    got, _ = await pushed(lambda f: f.on_backpressure_drop(gone.append), 100)
    assert (list(range(PREFETCH)), list(range(PREFETCH, 100))) == (got, gone)
    got, _ = await pushed(lambda f: f.on_backpressure_latest(), 100)
    assert [*range(PREFETCH), 99] == got
    got, error = await pushed(lambda f: f.on_backpressure_error(), 100)
    assert list(range(PREFETCH)) == got
    assert isinstance(error, BufferOverflowError)


async def test_a_handler_that_raises_is_no_failure_of_the_stream() -> None:
    """It goes to the hooks."""
    with hooked() as dropped:
        _, error = await pushed(lambda f: f.on_backpressure_drop(raising(OOPS)), PREFETCH + 2)
    assert error is None
    assert [OOPS, OOPS] == dropped.errors


def test_a_callback_subscriber_sees_no_difference() -> None:
    """It wants everything."""
    for stream in (
        chat(DATA).on_backpressure_drop(),
        chat(DATA).on_backpressure_latest(),
        chat(DATA).on_backpressure_error(),
        chat(DATA).on_backpressure_buffer(1),
        chat(DATA).limit_rate(1),
    ):
        assert isinstance(stream, ChatStream)
        seen = watch(stream)
        assert TYPES == [e.type for e in seen.items]
        assert END == seen.signals[-1]


@pytest.mark.parametrize(
    "operator",
    [
        lambda s: s.on_backpressure_drop(),
        lambda s: s.on_backpressure_latest(),
        lambda s: s.on_backpressure_buffer(8, "drop_oldest"),
        lambda s: s.on_backpressure_buffer(8, "drop_latest"),
    ],
)
async def test_of_a_chat_stream_only_deltas_and_observations_are_dropped(operator: Any) -> None:
    """The source is read to its end by a task while the consumer sleeps, and what waits stays small."""
    reads = Reads(MANY)
    async with aiter(operator(chat(reads))) as stream:
        events: list[Any] = [await anext(stream)]
        for _ in range(9000):
            await asyncio.sleep(0)
        assert len(MANY) == reads.asked
        events += [event async for event in stream]
    assert len(events) < PREFETCH + 8 + 8
    assert {4, 7} >= {violation.rule for violation in violations_of(events, seq="rising")}
    kept = [str(e.type) for e in events if not e.is_delta]
    assert [str(t) for t in TYPES if t != "TEXT_DELTA"] == kept


async def test_heartbeat_and_raw_go_first() -> None:
    """Then deltas, if they must."""
    frames = [FRAMES[0], *[cc({"content": f"{i} "}) for i in range(70)], *[b'data: {"odd": 1}\n\n'] * 9]
    frames += [cc({"content": "."}) for _ in range(5)] + FRAMES[-2:]
    for overflow in ("drop_oldest", "drop_latest"):
        gone: list[Any] = []
        limited = chat(Reads(frames)).on_backpressure_buffer(19, overflow, on_overflow=gone.append)
        async with aiter(limited) as stream:
            await anext(stream)
            for _ in range(300):
                await asyncio.sleep(0)
            assert T.RAW is gone[0].type
            assert [event async for event in stream][-1].is_(T.RESPONSE_END)


async def test_an_overflow_ends_a_chat_stream_in_order() -> None:
    """ENDs, STEP_END(partial), ERROR with the same error."""
    for operator in (lambda s: s.on_backpressure_error(), lambda s: s.on_backpressure_buffer(5)):
        events: list[Any] = []
        with pytest.raises(BufferOverflowError) as caught:
            async for event in operator(chat(Reads(MANY))):
                events.append(event)
                if len(events) == 1:
                    for _ in range(300):
                        await asyncio.sleep(0)
        assert () == violations_of(events)
        assert caught.value is events[-1].error


async def test_whatever_ends_it_ends_the_source() -> None:
    """A limit, an abort, a break; and the source's own error comes through."""
    clock = VirtualClock()
    chunks = Chunks(*FRAMES[:3], endless=True)
    events: list[Any] = []

    async def read(stream: Any) -> None:
        async for event in stream:
            events.append(event)  # noqa: PERF401  # what came before the error counts

    for make in (lambda s: s.on_backpressure_buffer(), lambda s: s.limit_rate(5)):
        chunks = Chunks(*FRAMES[:3], endless=True)
        task = asyncio.create_task(read(make(chat(chunks.agen())).timeout(5, clock=clock)))
        async with asyncio.timeout(5):
            await chunks.waiting.wait()
            clock.advance(5)
            with pytest.raises(semflux.TotalTimeoutError):
                await task
            await settle()
        assert () == violations_of(events)
        assert 1 == chunks.closed
        events.clear()
        chunks = Chunks(*FRAMES[:3], endless=True)
        stream = make(chat(chunks.agen()))
        task = asyncio.create_task(read(stream))
        async with asyncio.timeout(5):
            await chunks.waiting.wait()
            stream.abort("enough")
            await task
        assert T.ABORT is events[-1].type
        assert () == violations_of(events)
        events.clear()
        chunks = Chunks(*FRAMES[:3], endless=True)
        async for _ in make(chat(chunks.agen())):
            break
        await settle()
        assert 1 == chunks.closed
        with pytest.raises(semflux.TruncatedStreamError):
            await read(make(chat(Reads(FRAMES[:3]))))
        assert () == violations_of(events)
        events.clear()


async def test_limit_rate_asks_in_batches() -> None:
    """So the source works ahead by one batch at most; nothing is lost."""
    reads = Reads(MANY)
    async with aiter(chat(reads).limit_rate(100)) as stream:
        await anext(stream)
        for _ in range(2000):
            await asyncio.sleep(0)
        assert 90 < reads.asked <= 100
        assert list(range(1, 4000 + 6)) == [event.seq async for event in stream]
    sync = Chunks(*MANY)
    assert list(range(4000 + 6)) == [e.seq async for e in chat(sync.sync()).limit_rate(10, 10)]
    plain: TestPublisher[int] = TestPublisher.create_cold()
    plain.next(1, 2).complete()
    assert [1, 2] == await plain.flux().limit_rate(1).collect_list()


async def test_two_of_them_in_one_chain() -> None:
    """Each with a run of its own."""
    stream = chat(Reads(FRAMES)).on_backpressure_buffer().limit_rate(3).share().on_backpressure_buffer()
    assert TYPES == [event.type async for event in stream]


@pytest.mark.parametrize(
    "make",
    [
        lambda flux: flux.on_backpressure_buffer(0),
        lambda flux: flux.on_backpressure_buffer(1, "odd"),
        lambda flux: flux.limit_rate(0),
        lambda flux: flux.limit_rate(2, 3),
    ],
)
def test_wrong_numbers_are_refused(make: Any) -> None:
    """When the chain is made."""
    with pytest.raises(ConfigurationError):
        make(Flux.just(1))


def test_the_classes_of_delivery() -> None:
    """What tells where the stream is is never dropped, whatever is added later."""
    first = {type_ for type_, kind in DELIVERY.items() if kind is Delivery.FIRST_TO_GO}
    assert {T.HEARTBEAT, T.RAW} == first
    for type_, kind in DELIVERY.items():
        if type_.group in {ChatEventGroup.STEP, ChatEventGroup.TOOL_CALL, ChatEventGroup.SERVER_TOOL}:
            assert kind is Delivery.KEPT
    assert DELIVERY[T.ERROR] is DELIVERY[T.ABORT] is DELIVERY[T.RESPONSE_END] is Delivery.KEPT


def test_what_an_item_weighs() -> None:
    """Its text, its media, its raw object."""
    assert 64 + 5 == weight_of("hello")
    assert 64 == weight_of(7)
    assert weight_of(semflux.TextDelta("x" * 100)) == 164
    assert weight_of(semflux.Raw({"a": ["x" * 100, b"y" * 10, 1]})) > 64 + 111
    assert weight_of(semflux.MediaDone(semflux.MediaBlock(kind="image", data="x" * 50))) == 64 + 50
    assert [semflux.TextDelta("ab"), 1, semflux.TextDelta("c")] == coalesced(
        [semflux.TextDelta("a"), semflux.Heartbeat(), semflux.TextDelta("b"), 1, semflux.TextDelta("c")]
    )
