"""Walks on to another stream, event by event: a fallback, events from elsewhere, a function that raised.

The tables are those of test_walks.py.
"""

from __future__ import annotations

from typing import Any

import pytest
import reactivex

from semflux import ChatEventType, ChatStream, Flux, parse
from semflux.errors import (
    ServerError,
    TruncatedStreamError,
)
from semflux.events import (
    AnyChatEvent,
    ContentFilter,
    MediaPartial,
    ResponseEnd,
    ResponseStart,
    StepStart,
    TextDelta,
)
from semflux.response import MediaBlock
from tests.frames import STOP, md, start, text_block
from tests.recovering import (
    BEGUN,
    BUSY,
    CUT,
    OK,
    RESTARTED,
    WAITING,
    WAYS,
    hello,
    raise_at,
    rows,
    source,
    walk,
)

T = ChatEventType
every_way = pytest.mark.parametrize("way", WAYS)
every_waiting_way = pytest.mark.parametrize("way", WAITING)

# Fallback


@every_way
def test_a_fallback_to_another_model(way: str) -> None:
    """A cold stream goes on in the same Run."""
    other = source(way, OK)
    seen = walk(way, source(way, CUT).fallback_to(other)).check()
    expected = RESTARTED.format("fallback", "")
    assert seen.table == f"{expected}\n{hello(8, 1, '6+3')}"
    assert "Hello" == seen.response.text


@every_way
def test_a_fallback_to_another_dialect(way: str) -> None:
    """Its format is told by its own dialect: nothing of it is a repair of the first one's."""
    other = parse(start() + text_block(0, "Hel", "lo") + md("end_turn") + STOP, dialect="anthropic")
    seen = walk(way, source(way, CUT, strict=True).on_error_resume(lambda error: other)).check()
    expected = RESTARTED.format("fallback", "")
    assert seen.table == expected + "\n" + rows("""
        8 1 STEP_START
        9 1 USAGE 3+1
        10 1 TEXT_START
        11 1 TEXT_DELTA 'Hel'
        12 1 TEXT_DELTA 'lo'
        13 1 TEXT_END
        14 1 USAGE 3+5
        15 1 STEP_END whole 3+5
        16 1 RESPONSE_END whole 6+6
    """)
    assert {} == seen.response.repairs.repairs


def events_of(*frames: bytes) -> list[AnyChatEvent]:
    """The events of an answer, as another subscription had them."""
    events: list[AnyChatEvent] = []
    parse(b"".join(frames), dialect="openai-chat").subscribe(events.append, lambda error: None)
    return events


@every_way
def test_a_fallback_to_events_from_elsewhere(way: str) -> None:
    """They are copied into the Run: its id, its order, its steps."""
    events = events_of(*OK)
    before = [(event.seq, event.response_id) for event in events]
    for other in (Flux.just(*events), Flux.from_iterable(events)):
        seen = walk(way, source(way, CUT).fallback_to(other)).check()
        expected = RESTARTED.format("fallback", "")
        assert seen.table == f"{expected}\n{hello(8, 1, '6+3')}"
        assert "Hello" == seen.response.text
    assert before == [(event.seq, event.response_id) for event in events]


@every_way
def test_a_fallback_to_events_that_fail(way: str) -> None:
    """Their ERROR is the Run's, and comes once, with the response of the whole."""
    events = events_of(*CUT)
    assert events[-1].error is not None
    seen = walk(way, source(way, CUT).fallback_to(Flux.from_iterable(events))).check()
    assert seen.table == RESTARTED.format("fallback", "") + "\n" + rows("""
        8 1 STEP_START
        9 1 TEXT_START
        10 1 TEXT_DELTA 'par'
        11 1 USAGE 3+1
        12 1 TEXT_END
        13 1 STEP_END partial 3+1
        14 1 ERROR TruncatedStreamError partial 6+2
    """)
    assert seen.error is events[-1].error


@every_way
def test_a_fallback_written_by_hand(way: str) -> None:
    """Content outside of a step gets one."""
    other: Flux[AnyChatEvent] = Flux.just(TextDelta("sorry"), ResponseEnd())
    seen = walk(way, source(way, CUT).fallback_to(other)).check()
    assert seen.table == RESTARTED.format("fallback", "") + "\n" + rows("""
        8 1 STEP_START
        9 1 TEXT_START
        10 1 TEXT_DELTA 'sorry'
        11 1 TEXT_END
        12 1 STEP_END whole
        13 1 RESPONSE_END whole 3+1
    """)
    assert ("sorry", "stop") == (seen.response.text, seen.response.finish_reason)
    assert {} == seen.response.repairs.repairs


@every_way
def test_a_fallback_by_hand_that_does_not_say_its_end(way: str) -> None:
    other: Flux[AnyChatEvent] = Flux.just(TextDelta("sorry"))
    seen = walk(way, source(way, CUT).fallback_to(other)).check()
    assert ["STEP_END", "ERROR"] == seen.types[-2:]
    assert isinstance(seen.error, TruncatedStreamError)


@every_way
def test_a_text_in_place_of_the_error(way: str) -> None:
    seen = walk(way, source(way, CUT).on_error_return("sorry")).check()
    assert seen.table == RESTARTED.format("fallback", "") + "\n" + rows("""
        8 1 STEP_START
        9 1 TEXT_START
        10 1 TEXT_DELTA 'sorry'
        11 1 TEXT_END
        12 1 STEP_END whole
        13 1 RESPONSE_END whole 3+1
    """)
    assert ("sorry", "sorry", "stop") == (
        seen.response.text,
        seen.response.full_text,
        seen.response.finish_reason,
    )


@every_way
def test_a_fallback_that_recovers_itself(way: str) -> None:
    other = source(way, BEGUN, OK).retry(1)
    seen = walk(way, source(way, CUT).fallback_to(other)).check()
    assert seen.table == "\n".join([
        RESTARTED.format("fallback", ""),
        rows("""
            8 1 STEP_START
            9 1 STEP_END partial
            10 1 STATUS retry 'attempt 2 after TruncatedStreamError'
        """),
        hello(11, 2, "6+3"),
    ])  # fmt: skip


@every_way
def test_fallbacks_one_after_another(way: str) -> None:
    """Each failure goes to the next; the last one's error is final."""
    stream = source(way, CUT).fallback_to(source(way, BEGUN), source(way, BUSY))
    seen = walk(way, stream).check()
    assert seen.table == RESTARTED.format("fallback", "") + "\n" + rows("""
        8 1 STEP_START
        9 1 STEP_END partial
        10 1 STATUS fallback 'after TruncatedStreamError'
        11 2 STEP_START
        12 2 STEP_END partial
        13 2 ERROR ServerError partial 3+1
    """)


# A user's function that raises above the recovery


@every_way
def test_a_function_above_the_recovery_raises(way: str) -> None:
    """There is no ERROR then, and nothing was ended: the ends come when the stream goes on."""
    stream = source(way, OK).do_on_next(raise_at("lo")).fallback_to(source(way, OK))
    seen = walk(way, stream)
    assert seen.table == "\n".join([
        rows("""
            0 0 RESPONSE_START
            1 0 STEP_START
            2 0 TEXT_START
            3 0 TEXT_DELTA 'Hel'
            5 0 TEXT_END
            6 0 STEP_END partial
            7 0 STATUS fallback 'after KeyError'
        """),
        hello(8, 1, "3+2"),
    ])  # fmt: skip
    assert "Hello" == seen.response.full_text
    assert [True, False] == [step.partial for step in seen.response.steps]


@every_way
def test_a_function_above_the_recovery_raises_for_good(way: str) -> None:
    """Then it is as without a recovery: its exception, as it is, and no ERROR."""
    seen = walk(way, source(way, OK).do_on_next(raise_at("lo")).retry(3))
    assert ["TEXT_DELTA"] == seen.types[-1:]
    assert isinstance(seen.error, KeyError)


@every_way
def test_what_a_filter_above_hid_has_no_ends(way: str) -> None:
    hidden = source(way, OK).only(T.STEP_START, T.TEXT_DELTA).do_on_next(raise_at("lo"))
    seen = walk(way, hidden.fallback_to(source(way, OK)))
    assert ["STEP_START", "TEXT_DELTA", "STEP_END", "STATUS", "STEP_START"] == seen.types[:5]


@every_way
def test_an_error_that_a_filter_above_hid_is_recovered_from(way: str) -> None:
    """STATUS has a place of its own in the order then."""
    seen = walk(way, source(way, CUT).only(T.TEXT_DELTA).fallback_to(source(way, OK)))
    assert seen.table == "\n".join(
        [
            rows("""
                3 0 TEXT_DELTA 'par'
                8 0 STATUS fallback 'after TruncatedStreamError'
            """),
            hello(9, 1, "6+3"),
        ]
    )


# Streams of another kind


@every_way
def test_content_that_comes_to_nothing_is_content(way: str) -> None:
    """An event of the groups MEDIA and SAFETY forbids a retry as text does."""
    for event in (ContentFilter("hate"), MediaPartial(MediaBlock(kind="image", data="aaaa"))):
        events = [ResponseStart(), StepStart(), event]
        stream = ChatStream(failing(events, ServerError("x")))
        seen = walk(way, stream.retry(3)).check()
        assert ["RESPONSE_START", "STEP_START", event.type.value, "STEP_END", "ERROR"] == seen.types


def failing(events: list[Any], error: Exception) -> Any:
    """A stream of another kind, which says these and fails."""
    return reactivex.concat(reactivex.from_iterable(events), reactivex.throw(error))


@every_way
def test_a_stream_of_another_kind_is_made_a_stream_of_ours_before_it_recovers(way: str) -> None:
    """From its first event on: one id, one order."""
    stream = ChatStream(failing(events_of(*BEGUN)[:2], ServerError("x"))).fallback_to(source(way, OK))
    seen = walk(way, stream).check()
    assert seen.table == "\n".join([
        rows("""
            0 0 RESPONSE_START
            1 0 STEP_START
            2 0 STEP_END partial
            3 0 STATUS fallback 'after ServerError'
        """),
        hello(4, 1, "3+2"),
    ])  # fmt: skip
