"""ChatStream: what its operators let through, its response, and streams beside each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from semflux.errors import (
    StreamAbortedError,
    TruncatedStreamError,
)
from semflux.events import Abort, ChatEventGroup, ChatEventType, ResponseEnd, TextDelta
from semflux.flux import ChatStream, Flux, Mono, SignalType
from semflux.operators import EventSubject, pipeline
from tests.flux.answers import DATA, TYPES, chat
from tests.notation import draft
from tests.operators.watching import (
    END,
    item,
    plain,
    rx,
    signals,
    watch,
)

T, G = ChatEventType, ChatEventGroup


def types(source: Any) -> list[str]:
    return [event.type for event in watch(source).items]


def test_operators_that_keep_events_keep_the_type() -> None:
    """`map`, `text`, `pipe` give a Flux."""
    stream = chat(DATA)
    keeping: list[Any] = [
        stream.filter(lambda _: True),
        stream.filter_events(lambda _: True),
        stream.only(TextDelta),
        stream.in_group(G.TEXT),
        stream.take(1),
        stream.take_while(lambda _: True),
        stream.take_until(lambda _: False),
        stream.do_on_next(lambda _: None),
        stream.do_on_error(lambda _: None),
        stream.do_on_complete(lambda: None),
        stream.do_on_cancel(lambda: None),
        stream.do_finally(lambda _: None),
        Flux.from_(stream),
    ]
    assert {ChatStream} == {type(each) for each in keeping}
    assert {Flux} == {
        type(each) for each in (stream.map(lambda e: e.text), stream.text(), stream.pipe(rx.take(1)))
    }
    assert {Mono} == {type(each) for each in (stream.next(), stream.response(), stream.collect_list())}
    assert "<ChatStream>" == repr(stream)


def test_the_operators_of_a_chat_stream() -> None:
    """What each lets through."""
    stream = chat(DATA)
    assert TYPES == types(stream) == types(stream.filter_events(lambda _: True).do_on_next(lambda _: None))
    assert (
        ["TEXT_DELTA"] * 3
        == types(stream.only(T.TEXT_DELTA))
        == types(stream.filter(lambda e: e.is_(T.TEXT_DELTA)))
    )
    assert TYPES[2:7] == types(stream.in_group(G.TEXT))
    assert ["0 ", "1 ", "2 "] == watch(stream.text()).items
    assert (
        TYPES[:3] == types(stream.take(3)) == types(stream.take_while(lambda e: e.type is not T.TEXT_DELTA))
    )
    assert TYPES[:4] == types(stream.take_until(lambda e: e.type is T.TEXT_DELTA))
    assert [T.RESPONSE_START, T.STEP_START, T.STEP_END, T.RESPONSE_END] == types(
        stream.filter_events(lambda _: False)
    )
    told: list[Any] = []
    full = (
        stream.do_on_complete(lambda: told.append("c"))
        .do_on_cancel(lambda: told.append("x"))
        .do_finally(told.append)
    )
    assert TYPES == types(full)
    assert ["c", SignalType.ON_COMPLETE] == told
    broken = chat(DATA[:200]).do_on_error(told.append)
    assert isinstance(watch(broken).error, TruncatedStreamError)
    assert isinstance(told[-1], TruncatedStreamError)


async def test_response_is_what_the_stream_comes_to() -> None:
    """The response of RESPONSE_END; the error of the stream otherwise."""
    response = await chat(DATA).response()
    assert "0 1 2 " == response.text
    with pytest.raises(TruncatedStreamError) as caught:
        await chat(DATA[:300]).response()
    assert caught.value.partial is not None


@pytest.mark.parametrize(
    "abort, words", [("ABORT", "aborted from the other side"), ("why", "the stream was aborted: why")]
)
async def test_response_of_an_aborted_stream_raises(abort: str, words: str) -> None:
    """With what had arrived."""
    last = draft("ABORT") if abort == "ABORT" else Abort(abort)
    drafts = plain.of(draft("STEP+0"), draft("TEXT~half"), last)
    with pytest.raises(StreamAbortedError, match=words) as caught:
        await ChatStream(drafts.pipe(pipeline())).response()
    assert caught.value.partial is not None
    assert "half" == caught.value.partial.full_text or caught.value.partial.text

    with pytest.raises(StreamAbortedError):
        await ChatStream(plain.of(Abort())).response()


async def test_the_response_of_a_stream_without_its_end_is_none() -> None:
    """An exact filter took it away: the Mono is empty."""
    assert await chat(DATA).only(TextDelta).response() is None
    assert [item(3), END] == signals(chat(DATA).only(TextDelta).collect_list().map(len))


async def test_streams_merge_and_concat_with_async_for() -> None:
    """Each with its own response id and its own *seq*; a second source is not held up by the first."""

    async def slow() -> AsyncIterator[bytes]:
        yield DATA[:250]
        await asyncio.Event().wait()

    merged = chat(slow()).pipe(rx.merge(chat(DATA)))
    ends = 0
    async with asyncio.timeout(5), aiter(merged) as events:
        async for event in events:
            ends += event.type is T.RESPONSE_END
            if ends:
                break
    assert 1 == ends

    both = [event async for event in chat(DATA).pipe(rx.concat(chat(DATA)))]
    assert TYPES * 2 == [event.type for event in both]
    assert [*range(9), *range(9)] == [event.seq for event in both]
    assert 2 == len({event.response_id for event in both})


async def test_a_stream_that_comes_late_wakes_its_consumer() -> None:
    """flat_map opens it when a timer fires: until then there was nothing to drive."""
    late = Flux(plain.timer(0.001)).pipe(rx.flat_map(lambda _: chat(DATA)))
    async with asyncio.timeout(5):
        assert TYPES == [event.type async for event in late]


async def test_a_shared_stream_goes_on_when_the_one_who_pulled_leaves() -> None:
    """The others get the rest."""

    async def source() -> AsyncIterator[bytes]:
        for start in range(0, len(DATA), 50):
            await asyncio.sleep(0)
            yield DATA[start : start + 50]

    shared = chat(source()).pipe(rx.share())
    seen, ended = list[str](), asyncio.Event()
    first = aiter(shared)
    assert T.RESPONSE_START == (await anext(first)).type
    shared.subscribe(lambda e: seen.append(e.type), None, ended.set)
    await first.aclose()
    async with asyncio.timeout(5):
        await ended.wait()
    assert TYPES[-5:] == seen[-5:]


async def test_a_stop_button_ends_a_stream_that_waits() -> None:
    """RxPY's take_until takes an observable; the source is closed."""
    stop: EventSubject[int] = EventSubject()
    closed: list[str] = []

    async def endless() -> AsyncIterator[bytes]:
        try:
            yield DATA[:250]
            await asyncio.Event().wait()
        finally:
            closed.append("closed")

    asyncio.get_running_loop().call_later(0.005, stop.on_next, 1)
    async with asyncio.timeout(5):
        events = [event async for event in chat(endless()).pipe(rx.take_until(stop))]
    assert ("RESPONSE_START", ["closed"]) == (events[0].type, closed)


def test_an_end_without_a_response_is_no_response() -> None:
    """Events made by hand may lack it."""
    assert isinstance(watch(ChatStream(plain.of(ResponseEnd())).response()).error, StreamAbortedError)
