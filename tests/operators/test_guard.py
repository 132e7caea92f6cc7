"""guard: the stream ends at a phrase, and nothing of it is seen."""

from __future__ import annotations

import asyncio

import pytest
import reactivex

from semflux import (
    BlockedContentError,
    ChatEventType,
    ChatStream,
    Hooks,
    ResponseEnd,
    TextDelta,
)
from semflux.contract import violations_of
from tests.frames import DONE, cc
from tests.operators.screened import legal, openai, texts
from tests.operators.watching import watch
from tests.recovering import collected, source, walk

T = ChatEventType


@pytest.mark.parametrize("way", ["pull", "push", "await", "parse"])
@pytest.mark.parametrize("fails", [False, True])
def test_guard_ends_the_stream_before_the_phrase(way: str, fails: bool) -> None:
    """In order; with what came before it, and nothing of it."""
    frames = [cc({"content": piece}) for piece in ("a pass", "word b", "c", "d")] + [cc(finish="stop"), DONE]
    found = walk(way, source(way, frames).guard("password", reason="secrets", fail=fails)).check(seq="rising")
    assert [
        "RESPONSE_START",
        "STEP_START",
        "TEXT_START",
        "TEXT_DELTA",
        "TEXT_END",
        "STEP_END",
    ] == found.types[:-1]
    assert ("ERROR" if fails else "ABORT") == found.types[-1]
    assert ("a ", True, None) == (found.response.text, found.response.partial, found.response.finish_reason)
    assert "passw" not in repr([event.to_dict() for event in found.events])
    if fails:
        assert isinstance(found.error, BlockedContentError)
        assert "secrets" in str(found.error)
        assert found.error.partial == found.response
    else:
        assert ("secrets", None) == (found.events[-1].reason, found.error)  # type: ignore[union-attr]  # it is an ABORT


def test_guard_closes_the_connection_at_once() -> None:
    async def run() -> None:
        stream = source("push", [cc({"content": "password"}), *[cc({"content": "x"})] * 1000])
        seen = await collected(stream.guard("password"))
        assert "ABORT" == seen[-1].type.value
        assert len(seen) < 8

    asyncio.run(run())


@pytest.mark.parametrize("fails", [False, True])
def test_guard_finds_a_phrase_that_only_the_end_decides(fails: bool) -> None:
    """Its good end was on its way already: it is none."""
    seen = watch(openai("a pass").guard("pass", "password", fail=fails))
    legal(seen)
    assert "a " == seen.items[-1].response.text
    assert (T.ERROR if fails else T.ABORT) is seen.items[-1].type
    assert fails == isinstance(seen.error, BlockedContentError)
    assert seen.items[-1].error is seen.error
    assert [] == [event for event in seen.items if event.type is T.RESPONSE_END]


def test_guard_over_events_by_hand() -> None:
    """There is nothing to end in order; a terminal event without a response stays without one."""
    handmade = watch(
        ChatStream(reactivex.of(TextDelta("a"), TextDelta("password"), TextDelta("b"))).guard("password")
    )
    assert (["a"], BlockedContentError) == (texts(handmade), type(handmade.error))
    bare = watch(ChatStream(reactivex.of(TextDelta("pass"), ResponseEnd())).guard("pass", "password"))
    assert [(T.ABORT, None)] == [(event.type, event.response) for event in bare.items]
    cut = watch(openai("a", "pass").take(5).guard("pass", "password"))
    assert isinstance(cut.error, BlockedContentError)
    assert isinstance(
        watch(ChatStream(reactivex.of(TextDelta("pass"))).guard("pass", "password")).error,
        BlockedContentError,
    )


def test_guard_lets_recovery_answer_it() -> None:
    stream = openai("a pass", "word").guard("password", fail=True)
    seen = watch(stream.on_error_resume(lambda error: openai("sorry")))
    assert violations_of(seen.items, seq="rising") == ()
    assert ["a ", "sorry"] == [step.text for step in seen.items[-1].response.steps]
    assert "sorry" == seen.items[-1].response.text
    assert "passw" not in repr([event.to_dict() for event in seen.items])


def test_guard_of_one_reader_leaves_the_others_alone() -> None:
    async def run() -> None:
        shared = source(
            "push", [cc({"content": piece}) for piece in ("a", "password", "b")] + [cc(finish="stop"), DONE]
        ).share()
        guarded, plain = await asyncio.gather(collected(shared.guard("password")), collected(shared))
        assert (T.ABORT, T.RESPONSE_END) == (guarded[-1].type, plain[-1].type)
        assert ("a", "apasswordb") == (guarded[-1].response.text, plain[-1].response.text)  # type: ignore[union-attr]  # both have one

    asyncio.run(run())


def test_nothing_is_dropped_into_a_hook() -> None:
    dropped: list[BaseException] = []
    Hooks.on_error_dropped(dropped.append)
    try:
        watch(openai("a pass").guard("pass", "password", fail=True))
        watch(openai("a pass", "word").guard("password", fail=True))
    finally:
        Hooks.on_error_dropped(None)
    assert [] == dropped
