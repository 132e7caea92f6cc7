"""smooth: steady pieces, nothing lost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
import reactivex
from hypothesis import given
from hypothesis import strategies as st

import semflux
from semflux import ChatStream, Retry, Sinks
from semflux.clock import VirtualClock
from semflux.cuts import Cutter
from semflux.errors import ConfigurationError, ConnectionLostError
from semflux.events import TextDelta, TextEnd, TextStart, ThinkingDelta
from semflux.testing import assert_well_formed
from tests.frames import DONE, cc, sse
from tests.operators.watching import END, error, item, raising, signals, watch
from tests.recovering import Turns

ANSWER = cc({"content": "a b"}) + cc(finish="stop") + DONE


def chat(*events: Any) -> ChatStream:
    return ChatStream(reactivex.of(*events))


def cut(by: Any, *texts: str) -> list[str]:
    cutter = Cutter(by)
    pieces = [piece for text in texts for piece in cutter.feed(text)]
    return [*pieces, cutter.finish()]


@pytest.mark.parametrize(
    "by, text, pieces",
    [
        ("word", "one two  three", ["one ", "two  ", "three"]),
        ("word", "\u4f60\u597d\uff0cGPT \u597d", ["\u4f60", "\u597d\uff0c", "GPT ", "\u597d"]),
        ("word", "\uc548\ub155 \uc138\uc0c1", ["\uc548\ub155 ", "\uc138\uc0c1"]),
        ("word", "\u0e17\u0e35\u0e48\u0e14\u0e35", ["\u0e17\u0e35\u0e48", "\u0e14\u0e35"]),
        ("word", "x" * 200 + " y", ["x" * 80, "x" * 80, "x" * 40 + " ", "y"]),
        ("word", "ab\u4f60cd ef", ["ab", "\u4f60", "cd ", "ef"]),
        ("word", " a  b", [" ", "a  ", "b"]),
        ("line", "x" * 200 + "\ny", ["x" * 200 + "\n", "y"]),
        ("line", "a\r\nb\n\nc", ["a\r\n", "b\n", "\n", "c"]),
        ("char", "e\u0301x", ["e\u0301", "x"]),
        (
            "char",
            "\U0001f468\u200d\U0001f469x\u2764\ufe0f",
            ["\U0001f468\u200d\U0001f469", "x", "\u2764\ufe0f"],
        ),
        (
            "char",
            "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7",
            ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"],
        ),
        (re.compile(r"[.] "), "a. b. c", ["a. ", "b. ", "c"]),
        (lambda held: 2 if len(held) >= 2 else None, "abcde", ["ab", "cd", "e"]),
    ],
)
def test_a_text_is_cut_the_same_whole_or_char_by_char(by: Any, text: str, pieces: list[str]) -> None:
    assert (pieces, pieces) == (cut(by, text), cut(by, *text))


@given(
    st.lists(st.text(max_size=9) | st.text("ab \n\r\u4f60\u0301", max_size=9), max_size=9),
    st.sampled_from(["word", "line", "char", re.compile(r"\s")]),
)
def test_any_cutting_gives_the_same_pieces_and_joined_they_are_the_text(texts: list[str], by: Any) -> None:
    whole = "".join(texts)
    pieces = cut(by, *texts)
    assert whole == "".join(pieces)
    assert [piece for piece in pieces if piece] == [piece for piece in cut(by, whole) if piece]


@pytest.mark.parametrize("size", [1, 1000])
def test_what_finds_nothing_is_not_asked_again_each_time(size: int) -> None:
    """The text that it is shown grows by a quarter: all looks together cost a few times the text."""
    shown = 0

    def never(held: str) -> int | None:
        nonlocal shown
        shown += len(held)
        return None

    total = 100_000
    assert ["x" * total] == cut(never, *["x" * size] * (total // size))
    assert shown < 12 * total


def test_each_character_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the text is, whole or in pieces."""
    looks = 0
    parts = Cutter._parts

    def counted(self: Cutter, before: str, char: str) -> bool:
        nonlocal looks
        looks += 1
        return parts(self, before, char)

    monkeypatch.setattr(Cutter, "_parts", counted)
    text = "w\u00f6rd " * 10_000
    for by in ("word", "line", "char"):
        for texts in ([text], list(text)):
            looks = 0
            assert text == "".join(cut(by, *texts))
            assert looks <= len(text)


def test_other_events_first_let_out_what_is_held() -> None:
    events = [
        TextStart(),
        TextDelta("on"),
        TextDelta("e tw"),
        TextDelta("o"),
        TextEnd(),
        ThinkingDelta("a b"),
    ]
    expected = [
        TextStart(),
        TextDelta("one "),
        TextDelta("two"),
        TextEnd(),
        ThinkingDelta("a "),
        ThinkingDelta("b"),
    ]
    assert [*map(item, expected), END] == signals(chat(*events).smooth())


def test_an_error_lets_out_what_is_held_first() -> None:
    failure = ConnectionLostError("cut")
    source = ChatStream(reactivex.concat(reactivex.of(TextDelta("a")), reactivex.throw(failure)))
    assert [item(TextDelta("a")), error(failure)] == signals(source.smooth())


def test_numbers_rise_and_the_response_is_the_same() -> None:
    """One delta is cut into many; the stream is legal still."""
    body = cc({"content": "one two three four"}) + cc(finish="stop") + DONE
    plain = watch(semflux.parse(body, dialect="openai-chat")).items
    events = watch(semflux.parse(body, dialect="openai-chat").smooth()).items
    seqs = [event.seq for event in events]
    assert len(plain) + 3 == len(events)
    assert sorted(set(seqs)) == seqs
    assert plain[-1].response.text == events[-1].response.text
    assert_well_formed(events, seq="rising")


async def test_a_reader_that_pulls_gets_every_piece() -> None:
    body = cc({"content": "one two three"}) + cc(finish="stop") + DONE
    source = semflux.parse(body, dialect="openai-chat").smooth()
    assert ["one ", "two ", "three"] == [event.text async for event in source if event.has_text]


def test_pieces_come_a_delay_apart() -> None:
    """The first at once; the end lets out the rest, and leaves no timer."""
    clock, subject = VirtualClock(), reactivex.Subject[Any]()
    watcher = watch(ChatStream(subject).smooth("char", delay=0.1, clock=clock))
    subject.on_next(TextDelta("abcde"))
    assert ["a"] == [event.text for event in watcher.items]
    clock.advance(0.1)
    assert ["a", "b"] == [event.text for event in watcher.items]
    subject.on_completed()
    assert (list("abcde"), 0) == ([event.text for event in watcher.items], clock.pending)


def test_a_source_far_ahead_makes_several_go_at_a_time() -> None:
    """101 pieces, a tenth of a second each, and one second to lag."""
    clock, subject = VirtualClock(), reactivex.Subject[Any]()
    watcher = watch(ChatStream(subject).smooth("char", delay=0.1, max_lag=1.0, clock=clock))
    subject.on_next(TextDelta("x" * 101))
    assert 10 == len(watcher.items)


@pytest.mark.parametrize("wrong", [0, 2, -1, True, "1", 1.0])
def test_a_function_that_gives_no_length_is_told_so(wrong: Any) -> None:
    failure = watch(chat(TextDelta("a")).smooth(lambda held: wrong)).error
    assert isinstance(failure, ConfigurationError)
    assert "smooth(by=...)" in str(failure)


def test_a_function_that_raises_is_the_error_of_the_stream() -> None:
    failure = RuntimeError("no")
    assert [error(failure)] == signals(chat(TextDelta("a")).smooth(raising(failure)))


def test_the_stream_counts_on_from_the_pieces() -> None:
    """So the numbers rise in a stream that recovers, whoever stands above whom."""
    busy = sse({"error": {"message": "busy", "code": 503}})
    broken = cc({"content": "one two three four"}) + busy
    for build in (
        lambda s: s.smooth().retry_when(Retry.max(1).restart()),
        lambda s: s.retry_when(Retry.max(1).restart()).smooth(),
        lambda s: s.smooth().on_error_resume(lambda error: semflux.parse(ANSWER, dialect="openai-chat")),
        lambda s: s.smooth().do_on_next(raise_once()).retry_when(Retry.max(1).restart()),
    ):
        stream = build(semflux.parse(Turns([broken], [ANSWER]), dialect="openai-chat"))
        events = watch(stream).items
        seqs = [event.seq for event in events]
        assert sorted(set(seqs)) == seqs
        assert "a b" == events[-1].response.text


def raise_once() -> Any:
    left = [True]

    def function(event: Any) -> None:
        if event.text == "two " and left:
            left.pop()
            raise ConnectionLostError("once", kind="reset", retryable=True)

    return function


def test_snapshots_sharing_and_late_readers_work_below_it() -> None:
    source = semflux.parse(
        cc({"content": "one two"}) + cc(finish="stop") + DONE, dialect="openai-chat"
    ).smooth()
    assert "one two" == watch(source.snapshots()).items[-1].text
    late = source.replay(compact=True)
    connection = late.connect()
    assert_well_formed(watch(late.stream).items, seq="rising")
    connection.dispose()


async def test_a_reader_that_waits_gets_each_piece_in_its_time() -> None:
    """The source says nothing meanwhile."""
    clock, source = VirtualClock(), Sinks.unicast()
    stream = ChatStream(source.as_flux().observable).smooth(delay=1.0, max_lag=9.0, clock=clock)
    source.try_emit_next(TextDelta("one two three "))
    told: list[Any] = []

    async def read() -> None:
        nonlocal told
        async for event in stream:
            told += [event.text]

    task = asyncio.ensure_future(read())
    for expected in (["one "], ["one ", "two "]):
        for _ in range(20):
            await asyncio.sleep(0)
        assert expected == told
        clock.advance(1.0)
    source.try_emit_complete()
    await task
    assert ["one ", "two ", "three "] == told
    assert 0 == clock.pending


async def test_a_reader_that_does_not_ask_lets_the_source_stand_still() -> None:
    taken: list[int] = []

    def pieces() -> Iterator[bytes]:
        for number in range(1000):
            taken.append(number)
            yield cc({"content": f"{number} "})
        yield cc(finish="stop") + DONE

    async with aiter(semflux.parse(pieces(), dialect="openai-chat").smooth()) as events:
        for _ in range(10):
            await anext(events)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(taken) < 100


def test_a_subscriber_may_leave_at_any_piece() -> None:
    for count in range(1, 6):
        seen = watch(chat(TextDelta("a b c d"), TextEnd()).smooth().take(count))
        assert count == len(seen.items)
    clock, subject = VirtualClock(), reactivex.Subject[Any]()
    told: list[Any] = []
    subscription = ChatStream(subject).smooth(delay=1.0, max_lag=9.0, clock=clock).subscribe(told.append)
    subject.on_next(TextDelta("a b c"))
    subscription.dispose()
    clock.advance(9.0)
    assert (["a "], 0) == ([event.text for event in told], clock.pending)


def test_a_delay_needs_a_clock() -> None:
    failure = watch(chat(TextDelta("a b ")).smooth(delay=1.0)).error
    assert isinstance(failure, ConfigurationError)
    assert "running event loop" in str(failure)


def test_deltas_with_facts_of_their_own_and_other_blocks_are_not_joined() -> None:
    probable = TextDelta("x y", attributes={"logprobs": [1]})
    events = [
        TextDelta("a"),
        probable,
        TextDelta("b", index=1),
        TextDelta("c", index=2),
        ThinkingDelta("d e"),
    ]
    told = watch(chat(*events).smooth(thinking=False)).items
    assert ["a", "x y", "b", "c", "d e"] == [event.text for event in told]


@pytest.mark.parametrize("wrong", [{"by": "wrod"}, {"delay": 0}, {"max_lag": -1}])
def test_wrong_arguments_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="smooth"):
        chat().smooth(**wrong)
