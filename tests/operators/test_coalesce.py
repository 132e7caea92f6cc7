"""coalesce and snapshots: fewer events, and what they come to."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex
from hypothesis import given
from hypothesis import strategies as st

import semflux
from semflux import ChatStream
from semflux.clock import VirtualClock
from semflux.errors import ConfigurationError, ConnectionLostError
from semflux.events import (
    Abort,
    Citation,
    ResponseEnd,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ToolCallArgsDelta,
)
from semflux.fold import Fold
from semflux.response import CitedSource
from tests.frames import DONE, cc, cu
from tests.operators.watching import END, error, item, leaving, raising, signals, watch
from tests.streams import stream, wrap

ANSWER = b"".join([cc({"content": piece}) for piece in "abcdef"]) + cc(finish="stop") + cu(12, 6) + DONE


def chat(*events: Any) -> ChatStream:
    return ChatStream(reactivex.of(*events))


def texts(source: Any) -> list[str]:
    return [event.text for event in watch(source).items if event.text is not None]


def test_pieces_of_one_block_come_as_one() -> None:
    """Up to so many characters; what is left at a boundary goes out before it."""
    events = [TextStart(), *[TextDelta(piece) for piece in "abcde"], TextEnd()]
    assert [
        item(TextStart()),
        item(TextDelta("ab")),
        item(TextDelta("cd")),
        item(TextDelta("e")),
        item(TextEnd()),
        END,
    ] == signals(chat(*events).coalesce(2))


def test_a_larger_piece_is_not_cut() -> None:
    """It fills the bound, and more, at once."""
    assert ["abcdef", "g"] == texts(chat(TextDelta("abcdef"), TextDelta("g")).coalesce(3))


@pytest.mark.parametrize(
    "events",
    [
        [TextDelta("a"), ThinkingDelta("b"), TextDelta("c")],
        [TextDelta("a", index=0), TextDelta("b", index=1)],
        [TextDelta("a", item_id="x"), TextDelta("b")],
        [ToolCallArgsDelta("a", "c1"), ToolCallArgsDelta("b", "c2")],
        [TextDelta("a"), Citation(CitedSource(url="https://a.b")), TextDelta("b")],
        [TextDelta("a", attributes={"logprobs": [1]}), TextDelta("b"), TextDelta("c", attributes={"x": 1})],
    ],
)
def test_pieces_of_different_blocks_stay_apart(events: list[Any]) -> None:
    """By class, index, id or call; other events keep their place; attributes belong to their own piece."""
    assert [*map(item, events), END] == signals(chat(*events).coalesce(99))


def test_arguments_of_one_call_come_as_one() -> None:
    """With its id and name."""
    events = [ToolCallArgsDelta('{"a"', "c1", "f"), ToolCallArgsDelta(":1}", "c1", "f")]
    assert [item(ToolCallArgsDelta('{"a":1}', "c1", "f")), END] == signals(chat(*events).coalesce(99))


def test_a_merged_event_stands_in_the_place_of_its_last_one() -> None:
    """So the order rises, and no number comes twice; the events that were merged stay as they were."""
    events: list[Any] = stream(TextDelta("a"), TextDelta("b"), TextEnd(), TextDelta("c"))
    merged = watch(chat(*events).coalesce(99)).items
    assert [1, 2, 3] == [event.seq for event in merged]
    assert [events[1].time, "r"] == [merged[0].time, merged[0].response_id]
    assert ["a", "b"] == [event.text for event in events[:2]]


def test_an_error_lets_out_what_is_held_first() -> None:
    """It came before the failure."""
    failure = ConnectionLostError("cut")
    source = ChatStream(
        reactivex.concat(reactivex.of(TextDelta("a"), TextDelta("b")), reactivex.throw(failure))
    )
    assert [item(TextDelta("ab")), error(failure)] == signals(source.coalesce(99))


def test_the_first_held_piece_waits_no_longer_than_max_delay() -> None:
    """On the given clock; the next piece begins a new wait, and what went out by size leaves no timer."""
    clock, subject = VirtualClock(), reactivex.Subject[Any]()
    watcher = watch(ChatStream(subject).coalesce(3, 1.0, clock=clock))
    subject.on_next(TextDelta("a"))
    clock.advance(0.9)
    subject.on_next(TextDelta("b"))
    assert [] == watcher.items
    clock.advance(0.1)
    assert ["ab"] == [event.text for event in watcher.items]
    subject.on_next(TextDelta("cde"))
    assert ["ab", "cde"] == [event.text for event in watcher.items]
    assert 0 == clock.pending
    subject.on_next(TextDelta("f"))
    subject.on_completed()
    assert ["ab", "cde", "f"] == [event.text for event in watcher.items]
    assert 0 == clock.pending


def test_a_dispose_forgets_what_is_held_and_its_timer() -> None:
    """Nothing comes after it."""
    clock, subject = VirtualClock(), reactivex.Subject[Any]()
    told: list[Any] = []
    subscription = ChatStream(subject).coalesce(max_delay=1.0, clock=clock).subscribe(told.append)
    subject.on_next(TextDelta("a"))
    subscription.dispose()
    clock.advance(5)
    assert ([], 0) == (told, clock.pending)


@pytest.mark.parametrize("boundary", [TextEnd(), ThinkingDelta("b")])
def test_a_subscriber_may_leave_at_what_a_boundary_lets_out(boundary: Any) -> None:
    """The boundary is not told then."""
    subject = reactivex.Subject[Any]()
    told = leaving(ChatStream(subject).coalesce(99))
    for event in (TextDelta("a"), boundary):
        subject.on_next(event)
    assert [TextDelta("a")] == told


def test_a_delay_needs_a_clock() -> None:
    """That of a loop, if none is given."""
    failure = watch(chat(TextDelta("a"), TextDelta("b")).coalesce(max_delay=1)).error
    assert isinstance(failure, ConfigurationError)
    assert "running event loop" in str(failure)


async def test_the_running_loop_gives_the_time() -> None:
    """In a stream that never pauses, the boundaries alone let out."""
    source = semflux.parse(ANSWER, dialect="openai-chat")
    assert ["abcdef"] == [event.text async for event in source.coalesce(max_delay=0.05) if event.has_text]


@pytest.mark.parametrize("wrong", [{}, {"max_chars": 0}, {"max_delay": -1}])
def test_bounds_are_above_zero(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="coalesce"):
        chat().coalesce(**wrong)


@given(st.lists(st.sampled_from(["a", "bb", "", "ccc"]), max_size=20), st.integers(1, 9))
def test_nothing_is_lost_whatever_the_bound(pieces: list[str], bound: int) -> None:
    """The text is the same, and the response is."""
    body = b"".join([cc({"content": piece}) for piece in pieces]) + cc(finish="stop") + DONE
    plain = watch(semflux.parse(body, dialect="openai-chat")).items
    merged = watch(semflux.parse(body, dialect="openai-chat").coalesce(bound)).items
    assert "".join(pieces) == "".join([event.text for event in merged if event.text])
    assert len(merged) <= len(plain)
    assert plain[-1].response.text == merged[-1].response.text
    seqs = [event.seq for event in merged]
    assert sorted(set(seqs)) == seqs


def test_snapshots_grow_to_the_whole_response() -> None:
    """Partial until the end; the last one is that of RESPONSE_END."""
    source = semflux.parse(ANSWER, dialect="openai-chat")
    found = watch(source.snapshots()).items
    grown = [snapshot.text for snapshot in found]
    assert ["a", "ab", "abc", "abcd", "abcde", "abcdef"] == sorted({text for text in grown if text}, key=len)
    assert all(snapshot.partial for snapshot in found[:-1])
    assert (False, 12) == (found[-1].partial, found[-1].usage.input_tokens)
    assert 1 == len({snapshot.response_id for snapshot in found})


def test_snapshots_of_events_without_a_response_are_folded() -> None:
    """As those that were made by hand."""
    (last,) = watch(chat(ResponseEnd()).snapshots()).items
    assert not last.partial
    (aborted,) = watch(chat(Abort("stop")).snapshots()).items
    assert aborted.partial
    assert ["a", ""] == [each.text for each in watch(chat(*wrap(TextDelta("a"))).snapshots()).items]


def test_snapshots_pass_an_error_of_the_fold_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source is cancelled."""
    failure = ConnectionLostError("cut")
    monkeypatch.setattr(Fold, "add", raising(failure))
    assert [error(failure)] == signals(chat(TextDelta("a"), TextDelta("b")).snapshots())
