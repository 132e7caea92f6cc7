"""Timed operators above a consumer that pulls while the source waits, and on streams of chat events that fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import reactivex

from semflux import Flux, parse
from semflux.clock import VirtualClock
from semflux.contract import violations_of
from semflux.errors import ConnectionLostError
from semflux.events import ChatEventType, Error, TextDelta
from semflux.flux import ChatStream
from tests.frames import DONE, cc, cu
from tests.operators.watching import Watcher, watch
from tests.recovering import settle

BEGUN = cc({"content": "a"}) + cc({"content": "b"})
REST = cc({"content": "c"}) + cc(finish="stop") + cu(12, 6) + DONE
T = ChatEventType


def text_of(value: Any) -> Any:
    """The text of an event, be it in a tuple."""
    if isinstance(value, TextDelta):
        return value.text
    return text_of(value[-1]) if isinstance(value, tuple) else None


class Line:
    """A response whose bytes are told by hand, through an operator, to a subscriber of either kind."""

    def __init__(self, make: Callable[[ChatStream, VirtualClock], Any], *, pulled: bool) -> None:
        self.clock = VirtualClock()
        self.bytes: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.taken: list[Any] = []
        self.error: Exception | None = None
        self.over = self.closed = False
        made = make(parse(self._body(), dialect="openai-chat"), self.clock)
        self.task: asyncio.Task[None] | None = None
        self.subscription: Any = None
        if pulled:
            self.task = asyncio.ensure_future(self._pull(made))
        else:
            self.subscription = made.subscribe(self.taken.append, self._failed, self._ended)

    async def _body(self) -> AsyncIterator[bytes]:
        try:
            while (piece := await self.bytes.get()) is not None:
                yield piece
        finally:
            self.closed = True

    async def _pull(self, stream: Any) -> None:
        try:
            async for event in stream:
                self.taken.append(event)  # those before an error count too
        except Exception as error:
            self._failed(error)
        else:
            self._ended()

    def _failed(self, error: Exception) -> None:
        self.error = error
        self.over = True

    def _ended(self) -> None:
        self.over = True

    async def tell(self, *pieces: bytes | None) -> None:
        for piece in pieces:
            self.bytes.put_nowait(piece)
        await settle()

    async def pass_(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await settle()

    async def leave(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
        else:
            self.subscription.dispose()
        await settle()

    @property
    def texts(self) -> list[str]:
        return [text for text in map(text_of, self.taken) if text is not None]


both = pytest.mark.parametrize("pulled", [True, False])

LATER: dict[str, tuple[Callable[[ChatStream, VirtualClock], Any], list[str]]] = {
    "delay_elements": (lambda chat, clock: chat.delay_elements(3, clock=clock), ["a", "b"]),
    "delay_until": (
        lambda chat, clock: chat.delay_until(
            lambda event: Flux.just(1).delay_elements(0.1, clock=clock)  # ten events are there in a second
        ),
        ["a", "b"],
    ),
    "sample": (lambda chat, clock: chat.sample(3, clock=clock), ["b"]),
    "debounce": (lambda chat, clock: chat.debounce(3, clock=clock), ["b"]),
}


@both
@pytest.mark.parametrize("name", LATER)
async def test_what_the_time_lets_out_comes_while_the_source_waits(name: str, pulled: bool) -> None:
    """A consumer that pulls has it at once, not with the next bytes; nothing is left of the time when it leaves."""
    make, expected = LATER[name]
    line = Line(make, pulled=pulled)
    await line.tell(BEGUN)
    assert [] == line.texts
    for _ in range(30):
        await line.pass_(0.1)
    assert expected == line.texts
    await line.tell(cc({"content": "c"}))
    await line.leave()
    assert 0 == line.clock.pending
    assert line.closed
    assert expected == line.texts


@both
async def test_delay_subscription_finds_its_consumer_waiting(pulled: bool) -> None:
    """The source has been asked for nothing until then."""
    line = Line(lambda chat, clock: chat.delay_subscription(3, clock=clock), pulled=pulled)
    await line.tell(BEGUN)
    assert ([], 1, 1) == (line.taken, line.bytes.qsize(), line.clock.pending)
    await line.pass_(3)
    assert ["a", "b"] == line.texts
    await line.tell(REST)
    assert line.over
    assert () == violations_of(line.taken)


@both
async def test_a_consumer_may_leave_before_the_subscription(pulled: bool) -> None:
    line = Line(lambda chat, clock: chat.delay_subscription(3, clock=clock), pulled=pulled)
    await settle()
    assert 1 == line.clock.pending
    await line.leave()
    assert 0 == line.clock.pending


@both
async def test_take_for_ends_while_the_source_waits(pulled: bool) -> None:
    """The source is closed."""
    line = Line(lambda chat, clock: chat.take_for(3, clock=clock), pulled=pulled)
    await line.tell(BEGUN)
    assert (["a", "b"], False) == (line.texts, line.over)
    await line.pass_(3)
    assert (True, None, True, 0) == (line.over, line.error, line.closed, line.clock.pending)


@both
async def test_what_sets_no_timer_goes_by_the_time_of_its_items(pulled: bool) -> None:
    made: list[tuple[Callable[[ChatStream, VirtualClock], Any], list[str]]] = [
        (lambda chat, clock: chat.skip_for(3, clock=clock), ["c"]),
        (lambda chat, clock: chat.elapsed(clock=clock), ["a", "b", "c"]),
        (lambda chat, clock: chat.timestamp(clock=clock), ["a", "b", "c"]),
        # The first event of all, and the first after the time.
        (lambda chat, clock: chat.throttle_first(3, clock=clock), ["c"]),
    ]
    for make, expected in made:
        line = Line(make, pulled=pulled)
        await line.tell(BEGUN)
        await line.pass_(3)
        assert 0 == line.clock.pending
        await line.tell(REST)
        assert (expected, True, None) == (line.texts, line.over, line.error)


@both
async def test_a_delayed_chat_stream_keeps_the_order_of_its_events(pulled: bool) -> None:
    line = Line(lambda chat, clock: chat.delay_elements(3, clock=clock), pulled=pulled)
    await line.tell(BEGUN, REST)
    assert ([], False) == (line.taken, line.over)
    await line.pass_(3)
    assert line.over
    assert T.RESPONSE_END is line.taken[-1].type
    assert () == violations_of(line.taken)


@both
@pytest.mark.parametrize("name", ["delay_elements", "delay_until"])
async def test_an_error_event_stays_before_its_error(name: str, pulled: bool) -> None:
    """What waits comes at once, in order, ERROR last."""
    line = Line(
        lambda chat, clock: (
            chat.delay_elements(3, clock=clock)
            if name == "delay_elements"
            else chat.delay_until(lambda event: Flux.from_(reactivex.never()))
        ),
        pulled=pulled,
    )
    await line.tell(BEGUN, None)
    assert line.over
    assert ["a", "b"] == line.texts
    last = line.taken[-1]
    assert isinstance(last, Error)
    assert last.error is line.error
    assert () == violations_of(line.taken)
    assert 0 == line.clock.pending


@pytest.mark.parametrize("name", ["delay_elements", "delay_until"])
def test_a_subscriber_may_leave_among_what_an_error_lets_out(name: str) -> None:
    """It is told no more."""
    failure = ConnectionLostError("gone")
    subject: reactivex.Subject[Any] = reactivex.Subject()
    stream, clock = ChatStream(subject), VirtualClock()
    made = (
        stream.delay_elements(3, clock=clock)
        if name == "delay_elements"
        else stream.delay_until(lambda event: Flux.from_(reactivex.never()))
    )
    watcher = Watcher()

    def leave(event: Any) -> None:
        watcher.on_next(event)
        subscription.dispose()

    subscription = made.subscribe(leave, watcher.on_error, watcher.on_completed)
    for event in (TextDelta("a"), TextDelta("b"), Error(failure)):
        subject.on_next(event)
    subject.on_error(failure)
    assert [TextDelta("a")] == watcher.items
    assert 1 == len(watcher.signals)
    assert 0 == clock.pending


def test_a_timer_that_is_set_during_a_dispose_is_cancelled() -> None:
    """As by another thread, between the item and its timer."""

    class Disposing(VirtualClock):
        def call_later(self, delay: float, fn: Any, *args: Any) -> Any:
            timer = super().call_later(delay, fn, *args)
            subscription.dispose()
            return timer

    clock, subject = Disposing(), reactivex.Subject[Any]()
    subscription = Flux.from_(subject).delay_elements(1, clock=clock).subscribe()
    subject.on_next(1)
    assert 0 == clock.pending


def test_an_error_without_its_event_discards_what_waits() -> None:
    subject: reactivex.Subject[Any] = reactivex.Subject()
    failure = ValueError("mine")
    watcher = watch(Flux.from_(subject).delay_elements(3, clock=VirtualClock()))
    subject.on_next(1)
    subject.on_error(failure)
    assert ([], failure) == (watcher.items, watcher.error)
