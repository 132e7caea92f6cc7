"""smooth: text in steady pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import reactivex
from hypothesis import given
from hypothesis import strategies as st

import semflux
from semflux import ChatStream
from semflux.clock import VirtualClock
from semflux.contract import violations_of
from semflux.errors import ConfigurationError, ConnectionLostError
from semflux.events import ResponseEnd, TextDelta, TextEnd, TextStart, ThinkingDelta
from tests.frames import DONE, cc, cu
from tests.operators.watching import END, error, item, leaving, signals, watch
from tests.streams import stream

ANSWER = (
    b"".join([cc({"content": piece}) for piece in ["Hel", "lo you an", "d me"]])
    + cc(finish="stop")
    + cu(1, 2)
    + DONE
)
WORDS = ["Hello", " you", " and", " me"]


def chat(*events: Any) -> ChatStream:
    return ChatStream(reactivex.of(*events))


def parsed(body: bytes = ANSWER) -> ChatStream:
    return semflux.parse(body, dialect="openai-chat")


def texts(events: list[Any]) -> list[str]:
    return [event.text for event in events if event.is_delta]


def test_words_come_one_by_one() -> None:
    """What is left goes out before a boundary."""
    events = [TextStart(), TextDelta("a b c", item_id="x"), TextEnd()]
    pieces = [item(TextDelta(text, item_id="x")) for text in ("a", " b", " c")]
    assert [item(TextStart()), *pieces, item(TextEnd()), END] == signals(chat(*events).smooth())


def test_blocks_and_deltas_with_attributes_stay_apart() -> None:
    """Their facts are true of the whole."""
    events = [
        TextDelta("a"),
        ThinkingDelta("b"),
        TextDelta("c d", attributes={"logprobs": [1]}),
        TextDelta("e"),
    ]
    assert [*map(item, events), END] == signals(chat(*events).smooth())


def test_thinking_may_stay_as_it_is() -> None:
    assert ["a b"] == texts(watch(chat(ThinkingDelta("a b")).smooth(thinking=False)).items)


def test_the_events_are_legal_and_their_numbers_rise() -> None:
    """The responses are the same; what is above keeps its own."""
    above: list[Any] = []
    events = watch(parsed().do_on_next(above.append).smooth("grapheme")).items
    assert () == violations_of(events, seq="rising")
    assert () == violations_of(above)
    assert above[-1].response == events[-1].response


def test_sharing_below_and_above_works() -> None:
    """A late subscriber of a replay gets a legal stream too."""
    shared = parsed().smooth("grapheme").replay().auto_connect()
    for _ in range(2):
        assert () == violations_of(watch(shared).items, seq="rising")
    again = parsed().replay().auto_connect().smooth()
    for _ in range(2):
        events = watch(again).items
        assert WORDS == texts(events)
        assert () == violations_of(events, seq="rising")


def test_what_reads_the_response_works_below() -> None:
    assert "Hello you and me" == parsed().smooth().response().block().text
    assert "Hello you and me" == watch(parsed().smooth().snapshots()).items[-1].text


@pytest.mark.parametrize("above", [True, False])
def test_a_recovered_stream_is_one_stream(above: bool) -> None:
    """Recovery above or below: the numbers go on rising."""
    broken = parsed(ANSWER[: ANSWER.index(b"d me")])
    source = (
        broken.fallback_to(parsed()).smooth("grapheme")
        if above
        else broken.smooth("grapheme").fallback_to(parsed().smooth("grapheme"))
    )
    events = watch(source).items
    assert isinstance(events[-1], ResponseEnd)
    assert () == violations_of(events, seq="rising")


def test_a_users_error_above_is_recovered_below() -> None:
    """No ERROR event stands in for it: the numbers go on all the same."""

    def fail(event: Any) -> Any:
        if isinstance(event, TextEnd):
            raise ValueError
        return event

    events = watch(parsed().do_on_next(fail).smooth("grapheme").on_error_return("sorry")).items
    seqs = [event.seq for event in events]
    assert sorted(set(seqs)) == seqs


def test_an_error_lets_out_what_is_held_first() -> None:
    failure, clock = ConnectionLostError("cut"), VirtualClock()
    source = ChatStream(reactivex.concat(reactivex.of(TextDelta("a b c")), reactivex.throw(failure)))
    wanted = [*[item(TextDelta(text)) for text in ("a", " b", " c")], error(failure)]
    assert wanted == signals(source.smooth())
    assert wanted == signals(source.smooth(delay=1, clock=clock))
    assert 0 == clock.pending


def test_a_wrong_function_fails_the_stream() -> None:
    """What came before it goes out."""
    watcher = watch(chat(TextDelta("abc")).smooth(lambda buffer: 9))
    assert isinstance(watcher.error, ConfigurationError)
    assert ["abc"] == texts(watcher.items)
    watcher = watch(chat(TextDelta("abcdef")).smooth(lambda buffer: 2 if len(buffer) > 3 else 0))
    assert isinstance(watcher.error, ConfigurationError)
    assert "abcdef" == "".join(texts(watcher.items))


def test_pieces_come_delay_apart() -> None:
    """The first at once; what is no piece waits behind them, and the terminal event lets all out."""
    clock, subject = VirtualClock(), reactivex.Subject[Any]()
    watcher = watch(ChatStream(subject).smooth(delay=0.25, clock=clock))
    subject.on_next(TextDelta("a b c"))
    subject.on_next(TextEnd())
    assert ["a"] == texts(watcher.items)
    clock.advance(0.25)
    assert ["a", " b"] == texts(watcher.items)
    clock.advance(0.25)
    assert [TextDelta("a"), TextDelta(" b"), TextDelta(" c"), TextEnd()] == watcher.items
    clock.advance(5)
    assert 0 == clock.pending
    subject.on_next(TextDelta("d e f"))
    subject.on_next(ResponseEnd())
    assert ["a", " b", " c", "d", " e", " f"] == texts(watcher.items)
    assert (ResponseEnd(), 0) == (watcher.items[-1], clock.pending)


@pytest.mark.parametrize("count, delay", [(50, 0.25), (5000, 0.25), (3, 9.0)])
def test_no_piece_waits_longer_than_max_lag(count: int, delay: float) -> None:
    """They come faster, and evenly."""
    clock, subject = VirtualClock(), reactivex.Subject[Any]()
    watcher = watch(ChatStream(subject).smooth(delay=delay, max_lag=1.0, clock=clock))
    subject.on_next(TextDelta(" a" * count))
    subject.on_next(TextEnd())
    clock.advance(0.5)
    assert len(watcher.items) <= count * 0.6 + 1
    clock.advance(0.51)
    assert count + 1 == len(watcher.items)


def test_a_dispose_forgets_what_is_held_and_its_timer() -> None:
    clock, subject = VirtualClock(), reactivex.Subject[Any]()
    told: list[Any] = []
    subscription = ChatStream(subject).smooth(delay=1, clock=clock).subscribe(told.append)
    subject.on_next(TextDelta("a b c"))
    subscription.dispose()
    clock.advance(5)
    assert (1, 0) == (len(told), clock.pending)


@pytest.mark.parametrize("last", [TextDelta("a b c"), TextEnd(), ThinkingDelta("x")])
def test_a_subscriber_may_leave_at_any_piece(last: Any) -> None:
    """Nothing comes after it."""
    subject = reactivex.Subject[Any]()
    told = leaving(ChatStream(subject).smooth())
    for event in (TextDelta("x"), last):
        subject.on_next(event)
    assert 1 == len(told)


@pytest.mark.parametrize("last", [ResponseEnd(), None])
def test_a_subscriber_may_leave_at_what_an_end_lets_out(last: Any) -> None:
    """The end is not told then."""
    subject = reactivex.Subject[Any]()
    told = leaving(ChatStream(subject).smooth(delay=1, clock=VirtualClock()), 2)
    subject.on_next(TextDelta("a b c"))
    if last is None:
        subject.on_completed()
    else:
        subject.on_next(last)
    assert ["a", " b"] == texts(told)


def test_a_subscriber_may_leave_at_a_piece_of_the_timer() -> None:
    """No timer is left."""
    clock, subject = VirtualClock(), reactivex.Subject[Any]()
    told = leaving(ChatStream(subject).smooth(delay=1, clock=clock), 2)
    subject.on_next(TextDelta("a b c d"))
    clock.advance(9)
    assert (["a", " b"], 0) == (texts(told), clock.pending)


def test_an_empty_piece_is_none() -> None:
    """Nor does it make one."""
    events = [TextStart(), TextDelta(""), TextEnd()]
    assert [TextStart(), TextEnd()] == watch(chat(*events).smooth()).items


def test_a_delay_needs_a_clock() -> None:
    failure = watch(chat(TextDelta("a b")).smooth(delay=1)).error
    assert isinstance(failure, ConfigurationError)


@pytest.mark.parametrize("wrong", [{"delay": 0}, {"max_lag": 0}, {"by": "words"}])
def test_bounds_are_above_zero(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="smooth"):
        chat().smooth(**wrong)


async def test_pieces_of_the_timer_reach_who_waits_for_the_source() -> None:
    """While it is silent; and it is silent until they have come."""
    go = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield cc({"content": "a b c d"})
        await go.wait()
        yield cc(finish="stop") + DONE

    found: list[str] = []
    async for event in semflux.parse(chunks(), dialect="openai-chat").smooth(delay=0.001):
        if event.is_delta:
            found.append(event.text or "")
            if len(found) == 3:
                go.set()
    assert ["a", " b", " c", " d"] == found


@pytest.mark.parametrize("hidden", [False, True])
async def test_the_source_waits_while_many_pieces_do(hidden: bool) -> None:
    """Who pulls slowly, or waits for what comes later, reads it no further than that: here it waits for a clock."""
    clock = VirtualClock()
    read: list[int] = []

    async def chunks() -> AsyncIterator[bytes]:
        for number in range(2000):
            read.append(number)
            yield cc({"content": f" {number}"})
        yield cc(finish="stop") + DONE

    source = semflux.parse(chunks(), dialect="openai-chat").smooth(delay=1.0, max_lag=9000.0, clock=clock)
    events: list[Any] = []

    async def pull() -> None:
        async for event in source.only(ResponseEnd) if hidden else source:  # seen as they come
            events.append(event)  # noqa: PERF401  # seen as they come, up to a cancel

    task = asyncio.create_task(pull())
    for _ in range(3000):
        await asyncio.sleep(0)
    assert 60 < len(read) < 140
    clock.advance(20)
    for _ in range(500):
        await asyncio.sleep(0)
    assert 80 < len(read) < 160
    while not task.done():
        clock.advance(100)
        await asyncio.sleep(0)
    assert 2000 == len(read)
    assert isinstance(events[-1], ResponseEnd)
    assert 0 == clock.pending


@given(
    st.lists(st.text("a \u6211\u0301\n", max_size=6), max_size=12),
    st.sampled_from(["word", "line", "grapheme"]),
)
def test_nothing_is_lost(pieces: list[str], by: Any) -> None:
    body = b"".join([cc({"content": piece}) for piece in pieces]) + cc(finish="stop") + DONE
    events = watch(parsed(body).smooth(by)).items
    assert "".join(pieces) == "".join(texts(events))
    assert () == violations_of(events, seq="rising")


def test_events_made_by_hand_have_no_numbers_and_get_none() -> None:
    assert {-1} == {event.seq for event in watch(chat(TextDelta("a b c")).smooth()).items}
    assert [0, 1, 2, 3] == [
        event.seq for event in watch(chat(*stream(TextDelta("a b c"), TextEnd())).smooth()).items
    ]
