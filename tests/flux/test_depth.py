"""Long streams take no deep stack, and a traceback stays short."""

from __future__ import annotations

import asyncio
import sys
import traceback
from types import FrameType
from typing import Any

from semflux.flux import Flux
from semflux.operators import EventSubject, collect_list, filter_, map_, take
from tests.flux.answers import chat, chat_frames
from tests.operators.watching import plain, watch

MANY = 10_000


def test_ten_thousand_items_through_a_synchronous_chain() -> None:
    """In a loop, not in a recursion: rule 3.3."""
    chain = (
        Flux.from_iterable(range(MANY))
        .filter(lambda _: True)
        .map(lambda x: x)
        .do_on_next(lambda _: None)
        .take(MANY)
    )
    assert list(range(MANY)) == watch(chain).items
    source = plain.from_iterable(range(MANY)).pipe(
        map_(lambda x: x), filter_(lambda _: True), take(MANY), collect_list()
    )
    assert [list(range(MANY))] == watch(source).items


def test_ten_thousand_events_of_one_answer() -> None:
    """By subscription, frame by frame and as a whole."""
    frames = chat_frames(MANY)
    assert MANY == len(watch(chat(frames).text()).items) == len(watch(chat(b"".join(frames)).text()).items)


async def test_ten_thousand_events_pulled() -> None:
    """By `async for`."""
    frames = chat_frames(MANY)
    assert MANY == len([text async for text in chat(frames).text()])


def test_ten_thousand_emissions_from_inside_one() -> None:
    """Each from the one before it."""
    subject: EventSubject[int] = EventSubject()
    seen = watch(subject)
    subject.subscribe(lambda value: subject.on_next(value + 1) if value < MANY else None)
    subject.on_next(0)
    assert list(range(MANY + 1)) == seen.items


def depth_of(frame: FrameType | None, stop: str) -> list[str]:
    names: list[str] = []
    while frame is not None:
        names.append(frame.f_code.co_name)
        if frame.f_code.co_name == stop:
            return names
        frame = frame.f_back
    raise AssertionError(names)


def test_a_traceback_from_source_to_subscriber_is_short() -> None:
    """Under thirteen frames, with three operators between."""
    stacks: list[list[str]] = []

    def look(_: Any) -> None:
        stacks.append(depth_of(sys._getframe(), "run_now"))

    chat(b"".join(chat_frames(3))).filter(lambda _: True).do_on_next(lambda _: None).map(
        lambda e: e
    ).subscribe(look)
    assert max(map(len, stacks)) < 13, max(stacks, key=len)


def test_the_traceback_of_a_raising_subscriber_is_two_frames() -> None:
    """It is caught at the edge: where it was called, and where it raised."""
    told: list[Exception] = []

    def fail(_: Any) -> None:
        raise ValueError("mine")

    chat(b"".join(chat_frames(1))).filter(lambda _: True).do_on_next(lambda _: None).map(
        lambda e: e
    ).subscribe(fail, told.append)
    assert ["on_next", "fail"] == [frame.name for frame in traceback.extract_tb(told[0].__traceback__)]


def test_the_traceback_of_a_failing_operator_is_short_when_pulled() -> None:
    """From the consumer to the user's function."""

    def fail(_: Any) -> None:
        raise ValueError("mine")

    async def read() -> None:
        async for _ in (
            chat(b"".join(chat_frames(1))).filter(lambda _: True).do_on_next(lambda _: None).map(fail)
        ):
            pass

    try:
        asyncio.run(read())
    except ValueError as error:
        assert len(traceback.extract_tb(error.__traceback__)) < 13
    else:
        raise AssertionError
