"""The screen by itself: what it does at an end that came too early, and after it has stopped."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.errors import ConnectionLostError
from semflux.events import Abort, Error, ResponseEnd, TextDelta, TextEnd
from semflux.fold import Fold
from semflux.matching import matcher_of
from semflux.refold import Refold
from semflux.response import ChatResponse, StepResponse
from semflux.screen import PROSE, Screen, Stop
from semflux.usage import Usage


def screen_of(stop: Stop | None = None) -> tuple[Screen, Refold]:
    refold = Refold(Fold())
    make = matcher_of("guard", ["pass", "password"], "*", ignore_case=True, window=1)
    return Screen(make, PROSE, refold, stop), refold


def through(screen: Screen, *events: Any) -> list[Any]:
    told: list[Any] = []
    for event in events:
        screen.take(event)
        told += screen.ready()
    screen.finish()
    return [*told, *screen.ready()]


@pytest.mark.parametrize(
    "response", [None, ChatResponse.of([StepResponse(text="a pass")], finish_reason="stop")]
)
@pytest.mark.parametrize("fails", [False, True])
def test_a_good_end_becomes_the_one_that_was_asked_for(response: ChatResponse | None, fails: bool) -> None:
    """Where its source was over before the phrase was decided."""
    screen, _ = screen_of(Stop("secrets", fails))
    usage = Usage(input_tokens=3)
    first, last = through(screen, TextDelta("a pass"), ResponseEnd(response, usage, "stop"))
    assert (TextDelta("a "), True, True) == (first, screen.stopped, screen.over)
    expected = None if response is None else ("a ", None, True)
    came_to = (
        None
        if last.response is None
        else (last.response.text, last.response.finish_reason, last.response.partial)
    )
    assert (expected, usage) == (came_to, last.usage)
    if fails:
        assert isinstance(last, Error)
        assert last.error is screen.error
        assert last.error.partial is last.response
    else:
        assert ("secrets", None) == (last.reason, screen.error)
        assert isinstance(last, Abort)


def test_pieces_that_come_after_the_stop_are_left_out() -> None:
    """Whatever is no text passes: what is open must end."""
    screen, _ = screen_of(Stop("secrets"))
    told = through(screen, TextDelta("a pass"), TextDelta("age"), TextDelta("more"), TextEnd())
    assert [TextDelta("a "), TextEnd()] == told


def test_a_good_end_without_a_match_is_one() -> None:
    screen, _ = screen_of(Stop("secrets"))
    assert [TextDelta("a"), ResponseEnd()] == through(screen, TextDelta("a"), ResponseEnd())


def test_an_error_of_another_kind_is_copied_with_its_cause() -> None:
    """What it rests on tells what had arrived."""
    _, refold = screen_of()
    outer, inner = RuntimeError("outer"), ConnectionLostError("inner")
    inner.partial = ChatResponse.of([StepResponse(text="password")])
    outer.__cause__ = inner
    told: Any = refold.failure(outer)
    assert (RuntimeError, ("outer",)) == (type(told), told.args)
    assert told is not outer
    assert "" == told.__cause__.partial.text
    assert told is refold.failure(outer) is refold.failure(told)
