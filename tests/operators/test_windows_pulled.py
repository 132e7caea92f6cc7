"""The windows of chat streams, and of who pulls: nothing is lost, and the source goes as far as somebody waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import reactivex

import semflux
from semflux import ChatEventType, Flux
from semflux.clock import VirtualClock
from semflux.errors import (
    BufferOverflowError,
    SemfluxError,
    TotalTimeoutError,
)
from semflux.operators import part
from semflux.operators.delivery import Room
from semflux.operators.lift import NOTHING, Direct
from semflux.operators.run import Run
from tests.frames import DONE, an, cc, cuts, start
from tests.operators.watching import END, Watcher, error, item, watch

T = ChatEventType
FAILURE = ValueError("mine")
ANSWER = b"".join([cc({"content": f"{n} "}) for n in range(40)]) + cc(finish="stop") + DONE


def subject() -> reactivex.Subject[Any]:
    return reactivex.Subject()


# A chat stream, in the three ways of reading it


class Chunks:
    """Pieces of an answer, and how many of them were asked for."""

    def __init__(self, data: bytes = ANSWER, size: int = 300) -> None:
        self.pieces = cuts(data, size)
        self.asked = 0
        self.closed = False

    async def __aiter__(self) -> Any:
        try:
            for piece in self.pieces:
                self.asked += 1
                await asyncio.sleep(0)
                yield piece
        finally:
            self.closed = True

    def stream(self) -> semflux.ChatStream:
        return semflux.parse(self.__aiter__(), dialect="openai-chat")


def anthropic() -> bytes:
    """Two blocks of text."""
    blocks = [
        an("content_block_start", index=n, content_block={"type": "text", "text": ""})
        + b"".join(
            [
                an("content_block_delta", index=n, delta={"type": "text_delta", "text": text})
                for text in ("a", "b", "c")
            ]
        )
        + an("content_block_stop", index=n)
        for n in (0, 1)
    ]
    end = an("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 5})
    return start() + b"".join(blocks) + end + an("message_stop")


def kinds(events: list[Any]) -> list[tuple[Any, Any]]:
    return [(event.type, event.text) for event in events]


async def test_all_events_of_a_chat_stream_are_in_its_windows() -> None:
    """Cut after each TEXT_END, and after STEP_END; in their order, none lost, whoever reads how."""
    whole = kinds(await semflux.parse(anthropic(), dialect="anthropic").collect_list())
    for last in (T.TEXT_END, T.STEP_END):
        for data in (anthropic(), cuts(anthropic(), 50)):

            def cut(source: Any = data, last: Any = last) -> Flux[Any]:
                return semflux.parse(source, dialect="anthropic").window_until(lambda e: e.is_(last))

            pulled = [[event async for event in each] async for each in cut()]
            mapped = await cut().concat_map(lambda each: each.collect_list()).collect_list()
            flat = await cut().flat_map(lambda each: each).collect_list()
            kept = [await each.collect_list() for each in await cut().collect_list()]
            assert whole == kinds([event for each in pulled for event in each])
            assert [len(each) for each in pulled] == [len(each) for each in mapped]
            assert [len(each) for each in pulled] == [len(each) for each in kept]
            assert whole == kinds(flat)
            assert all(each[-1].is_(last) for each in pulled[:-1])


async def test_an_error_of_a_chat_stream_is_that_of_its_last_window_and_of_the_stream() -> None:
    """The answer is cut off: its ERROR is the last event."""
    seen: list[Any] = []
    errors: list[SemfluxError] = []
    with pytest.raises(SemfluxError) as stream:
        async for each in semflux.parse(ANSWER[:400], dialect="openai-chat").window(500):
            with pytest.raises(SemfluxError) as within:
                await each.do_on_next(seen.append).count()
            errors.append(within.value)
    assert [stream.value] == errors == [seen[-1].error]


async def test_leaving_in_the_middle_closes_the_source() -> None:
    """The window and the stream of windows; and in flat_map, which leaves both."""
    chunks = Chunks()
    async for each in chunks.stream().window(10):
        async for event in each:
            if event.is_(T.TEXT_DELTA):
                break
        break
    for _ in range(5):
        await asyncio.sleep(0)
    assert (True, True) == (chunks.closed, chunks.asked < 5)

    chunks = Chunks()
    assert 12 == len(await chunks.stream().window(10).flat_map(lambda each: each).take(12).collect_list())
    for _ in range(5):
        await asyncio.sleep(0)
    assert (True, True) == (chunks.closed, chunks.asked < len(chunks.pieces))


async def test_a_window_that_is_kept_goes_on_without_the_stream() -> None:
    """To its end, as far as it is read; then the source is closed."""
    chunks = Chunks()
    each = await chunks.stream().window(20).next()
    assert (False, True) == (chunks.closed, chunks.asked < 5)
    assert 20 == len(await each.collect_list())
    for _ in range(5):
        await asyncio.sleep(0)
    assert (True, True) == (chunks.closed, chunks.asked < len(chunks.pieces))


async def test_the_source_goes_no_further_than_somebody_waits_for() -> None:
    """And a little ahead; windows that nobody reads are passed over."""
    chunks = Chunks(size=100)
    windows = aiter(chunks.stream().window(10))
    first = await anext(windows)
    before = chunks.asked
    for _ in range(20):
        await asyncio.sleep(0)
    assert chunks.asked <= before + 1
    async with aiter(first) as events:
        assert T.RESPONSE_START is (await anext(events)).type
    async for _ in windows:
        pass
    assert len(chunks.pieces) == chunks.asked


async def test_two_tasks_may_read_a_window_and_the_stream_at_once() -> None:
    chunks = Chunks()
    windows = aiter(chunks.stream().window(10))
    first = await anext(windows)

    async def rest() -> int:
        return sum([len(await each.collect_list()) async for each in windows])

    async def events() -> int:
        return len([event async for event in first])

    total = len(await Chunks().stream().collect_list())
    assert (10, total - 10) == tuple(await asyncio.gather(events(), rest()))


class Pulling(Watcher):
    """A subscriber that pulls, by hand."""

    def __init__(self, source: Any, demand: int = 9) -> None:
        super().__init__()
        self.run = Run(demand=demand, pull=True)
        self.subscription = source.observable.subscribe(self, scheduler=self.run.scheduler)

    def on_next(self, value: Any) -> None:
        self.run.demand -= 1
        super().on_next(value)

    def take(self, demand: int) -> None:
        """Want *demand* items."""
        driver: Any = self.run.driver
        self.run.demand = demand
        self.run.is_waiting = True
        if not driver.pump():
            driver.fill()
        self.run.is_waiting = False

    @property
    def types(self) -> list[Any]:
        return [event.type for event in self.items]


async def test_a_failure_from_below_ends_the_chat_stream_in_order() -> None:
    """It enters at the first stage: ERROR is in the window. That of a window's subscriber is this window's own."""
    failure, own = TotalTimeoutError("late"), TotalTimeoutError("own")
    stream = Pulling(semflux.parse(ANSWER, dialect="openai-chat").window(6))
    first = Pulling(stream.items[0], demand=2)
    first.run.fail(own)
    first.take(9)
    assert error(own) == first.signals[-1]
    while len(stream.items) < 2:
        stream.take(9)
    second = Pulling(stream.items[1], demand=2)
    stream.run.fail(failure)
    second.take(9)
    assert (T.ERROR, error(failure), error(failure)) == (
        second.types[-1],
        second.signals[-1],
        stream.signals[-1],
    )


def test_a_failure_from_below_ends_any_other_stream() -> None:
    """Its source is cancelled, the window fails, and the stream of windows."""
    failure, source = TotalTimeoutError("late"), subject()
    stream = Pulling(Flux.from_(source).window(9))
    source.on_next(1)
    window = watch(stream.items[0])
    stream.run.fail(failure)
    assert ([item(1), error(failure)], error(failure)) == (window.signals, stream.signals[-1])
    assert [] == source.observers


def test_a_window_may_be_one_source_of_several() -> None:
    """Of which another one drives the run already: the window is pushed to."""
    source = subject()
    windows = watch(Flux.from_(source).window(2))
    source.on_next(1)
    run = Run(pull=True, demand=9)
    run.drive(Pulling(windows.items[0]).run.driver)  # type: ignore[arg-type]  # any driver
    source.on_next(2)
    source.on_next(3)
    watcher = Watcher()
    windows.items[1].observable.subscribe(watcher, scheduler=run.scheduler)
    source.on_next(4)
    assert [item(3), item(4), END] == watcher.signals


def test_a_driver_has_nothing_to_wait_for_while_items_wait() -> None:
    source = subject()
    windows = watch(Flux.from_(source).window(9))
    source.on_next(1)
    each = Pulling(windows.items[0], demand=0)
    assert [] == each.signals
    each.run.demand = 1
    driver: Any = each.run.driver
    assert driver.fill() is None
    assert driver.pump()
    assert [item(1)] == each.signals


def test_what_a_source_tells_after_its_end_is_nobody_s() -> None:
    """As what a subscriber does who leaves twice."""

    class Restless(Direct[Any]):
        def _subscribe_core(self, observer: Any, scheduler: Any = None) -> Any:
            for value in (1, 2):
                observer.on_next(value)
                observer.on_error(FAILURE)
                observer.on_completed()
            self.link = observer
            return NOTHING

    source = Restless()
    watcher = watch(Flux.from_(source).window(9))
    assert (2, error(FAILURE)) == (len(watcher.signals), watcher.signals[-1])
    assert [item(1), error(FAILURE)] == watch(watcher.items[0]).signals
    source.link.dispose()
    source.link.dispose()
    assert [error(FAILURE)] == watch(Flux.from_(Restless()).group_by(id)).signals[1:]


async def test_an_abort_from_below_ends_the_chat_stream_in_order() -> None:
    """ABORT is in the window; an abort of one window is the end of that one."""
    stream = Pulling(semflux.parse(ANSWER, dialect="openai-chat").window(500))
    first = Pulling(stream.items[0], demand=2)
    stream.run.abort("enough")
    first.take(9)
    assert (T.ABORT, END, END) == (first.types[-1], first.signals[-1], stream.signals[-1])
    stream = Pulling(semflux.parse(ANSWER, dialect="openai-chat").window(500))
    first = Pulling(stream.items[0], demand=2)
    first.run.abort("enough")
    first.take(9)
    assert ([T.RESPONSE_START, T.STEP_START], END) == (first.types, first.signals[-1])
    stream.subscription.dispose()


async def test_a_stream_of_windows_that_nobody_takes_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody waits for another window meanwhile, so that they pile up."""
    monkeypatch.setattr(part, "HELD", Room(items=2))
    stream = semflux.parse(Chunks().__aiter__(), dialect="openai-chat")
    groups = Pulling(stream.group_by(lambda event: event.seq), demand=1)
    for _ in range(20):
        await asyncio.sleep(0)
    with pytest.raises(BufferOverflowError):
        await asyncio.wait_for(groups.items[0].collect_list(), 5)


async def test_a_timer_rings_while_the_source_is_waited_for() -> None:
    """A subscriber that pulls gets what it lets out at once, of windows and of lists."""
    clock, more = VirtualClock(), asyncio.Event()

    async def slow() -> Any:
        yield cc({"content": "a"})
        await more.wait()
        yield cc(finish="stop") + DONE

    def stream() -> semflux.ChatStream:
        return semflux.parse(slow(), dialect="openai-chat")

    for made in (
        stream().window_timeout(99, 1.0, clock=clock).concat_map(lambda each: each.count()),
        stream().buffer_timeout(99, 1.0, clock=clock).map(len),
        stream().coalesce(max_delay=1.0, clock=clock).skip(3).map(lambda event: 4),
    ):
        async with aiter(made) as counts:
            task = asyncio.ensure_future(anext(counts))
            for _ in range(20):
                await asyncio.sleep(0)
            clock.advance(1.0)
            for _ in range(20):
                await asyncio.sleep(0)
            assert task.done()
            assert 4 == await task
