"""The windows: where they are cut, who may read them, what becomes of them, and how far they drive the source."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
import reactivex

import semflux
from semflux import ChatEventType, Flux
from semflux.clock import VirtualClock
from semflux.errors import (
    AlreadyConsumedError,
    BufferOverflowError,
    ConfigurationError,
    SemfluxError,
    TotalTimeoutError,
)
from semflux.operators import parts, window, window_timeout
from semflux.operators.delivery import Room
from semflux.operators.lift import NOTHING, Direct
from semflux.operators.run import Run
from tests.frames import DONE, an, cc, cuts, start
from tests.operators.watching import END, Probe, Watcher, error, item, raising, watch

T = ChatEventType
FAILURE = ValueError("mine")
ANSWER = b"".join([cc({"content": f"{n} "}) for n in range(40)]) + cc(finish="stop") + DONE


class Windows(Watcher):
    """Subscribes to each window as it comes."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        self.windows: list[Watcher] = []
        self.subscription = source.subscribe(self)

    def on_next(self, value: Any) -> None:
        self.windows.append(watch(value))

    @property
    def told(self) -> list[list[Any]]:
        return [each.signals for each in self.windows]


def lists(source: Flux[Flux[Any]]) -> list[Any]:
    return watch(source.concat_map(lambda each: each.collect_list())).items


def subject() -> reactivex.Subject[Any]:
    return reactivex.Subject()


# Where they are cut


def test_windows_are_cut_by_number_and_by_condition() -> None:
    """The last one ends with the source; none is empty."""
    assert [[1, 2], [3]] == lists(Flux.just(1, 2, 3).window(2))
    assert [[1, 2], [3]] == lists(Flux.just(1, 2, 3).window_until(lambda x: x == 2))
    assert [[1, 2]] == lists(Flux.just(1, 2).window_until(lambda x: x == 2))
    assert [[1], [2, 3]] == lists(Flux.just(1, 2, 3).window_until(lambda x: x == 2, cut_before=True))
    assert [[1, 2], [3]] == lists(Flux.just(0, 1, 2, 0, 0, 3).window_while(lambda x: x > 0))
    assert [[1, 1], [None], [2]] == lists(Flux.just(1, 1, None, 2).window_until_changed())
    assert [["a", "b"], ["cc"]] == lists(Flux.just("a", "b", "cc").window_until_changed(len))
    assert [] == lists(Flux.empty().window(2))
    with pytest.raises(ConfigurationError, match=r"window\(0\)"):
        window(0)


def test_a_window_comes_with_its_first_item_and_ends_with_its_last() -> None:
    source = subject()
    seen = Windows(Flux.from_(source).window(2))
    assert [] == seen.windows
    source.on_next(1)
    assert [[item(1)]] == seen.told
    source.on_next(2)
    assert [[item(1), item(2), END]] == seen.told
    source.on_completed()
    assert ([END], 1) == (seen.signals, len(seen.windows))


def test_the_time_of_a_window_begins_with_its_first_item() -> None:
    """An idle stream gives none; a full one leaves no timer; it may be read after it has ended."""
    clock, source = VirtualClock(), subject()
    seen = Windows(Flux.from_(source).window_timeout(2, 1.0, clock=clock))
    clock.advance(10)
    assert [] == seen.windows
    source.on_next(1)
    clock.advance(1.0)
    source.on_next(2)
    source.on_next(3)
    assert [[item(1), END], [item(2), item(3), END]] == seen.told
    assert 0 == clock.pending
    source.on_next(4)
    source.on_completed()
    assert ([item(4), END], [END], 0) == (seen.told[-1], seen.signals, clock.pending)


def test_window_timeout_minds_its_timer_and_its_arguments() -> None:
    """A window that outlives its stream ends by the time; with it goes the source."""
    clock, probe = VirtualClock(), Probe(1, ends=False)
    seen = Windows(Flux.from_(probe.source).window_timeout(9, 1.0, clock=clock))
    seen.subscription.dispose()
    assert (0, 1) == (probe.disposed, clock.pending)
    clock.advance(1.0)
    assert (1, [[item(1), END]], 0) == (probe.disposed, seen.told, clock.pending)
    failing = Windows(Flux.just(1).concat_with(Flux.error(FAILURE)).window_timeout(9, 1.0, clock=clock))
    assert ([error(FAILURE)], 0) == (failing.signals, clock.pending)
    assert isinstance(watch(Flux.just(1).window_timeout(2, 1)).error, ConfigurationError)
    for wrong in ((0, 1), (1, 0)):
        with pytest.raises(ConfigurationError, match="above zero"):
            window_timeout(*wrong)


# Who may read them


def test_a_window_holds_its_items_until_its_subscriber_comes() -> None:
    """Its end, too; and it has one subscriber."""
    source = subject()
    watcher = watch(Flux.from_(source).window(2))
    source.on_next(None)
    first = watcher.items[0]
    early = watch(first)
    source.on_next(2)
    source.on_next(3)
    source.on_error(FAILURE)
    assert [item(None), item(2), END] == early.signals
    assert [item(3), error(FAILURE)] == watch(watcher.items[1]).signals
    assert isinstance(watch(first).error, AlreadyConsumedError)


def test_a_subscriber_may_leave_a_window_that_holds_many() -> None:
    """At any of the items that waited for it."""
    windows = watch(Flux.just(1, 2, 3).window(3)).items
    assert [item(1), END] == watch(windows[0].take(1)).signals


def test_a_subscriber_that_raises_leaves_its_window_alone() -> None:
    source, told = subject(), list[Any]()
    watcher = watch(Flux.from_(source).window(2))
    source.on_next(1)
    watcher.items[0].subscribe(raising(FAILURE), told.append)
    for value in (2, 3):
        source.on_next(value)
    assert ([FAILURE], 2) == (told, len(watcher.items))


def test_the_items_of_a_window_that_was_left_are_dropped() -> None:
    """Up to its end; the next one begins where it would have."""
    source = subject()
    seen = Windows(Flux.from_(source).window(3).map(lambda each: each.take(1)))
    for value in range(4):
        source.on_next(value)
    assert [[item(0), END], [item(3), END]] == seen.told


def test_a_window_that_nobody_can_read_any_more_holds_nothing() -> None:
    """It was not subscribed to, and nothing refers to it."""
    source, held = subject(), list[Any]()
    Flux.from_(source).window(99).subscribe(lambda _: None)

    class Item:
        pass

    def tell() -> None:
        value = Item()
        held.append(weakref.ref(value))
        source.on_next(value)

    for _ in range(3):
        tell()
    gc.collect()
    assert [None, None, None] == [each() for each in held]


def test_a_window_fails_if_it_would_hold_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone: the others and the stream of windows go on."""
    monkeypatch.setattr(parts, "HELD", Room(items=3))
    source = subject()
    watcher = watch(Flux.from_(source).window(5))
    for value in range(8):
        source.on_next(value)
    source.on_completed()
    assert isinstance(watch(watcher.items[0]).error, BufferOverflowError)
    assert [item(5), item(6), item(7), END] == watch(watcher.items[1]).signals


# What becomes of them


def test_an_error_is_that_of_the_window_and_of_the_stream() -> None:
    """Of the window first; what the predicate raises cancels the source before."""
    log: list[Any] = []
    probe = Probe(1, 2)
    probe.log = log

    def look(each: Flux[Any]) -> None:
        each.subscribe(log.append, lambda failed: log.append(("window", failed)))

    Flux.from_(probe.source).window_while(raising(FAILURE, at=2)).subscribe(
        look, lambda failed: log.append(("stream", failed))
    )
    assert [1, "source disposed", ("window", FAILURE), ("stream", FAILURE)] == log


def test_a_window_outlives_the_stream_of_windows() -> None:
    """Up to its end: then the source is cancelled, and no window comes any more."""
    probe = Probe(1, 2, 3, 4, 5)
    assert [item([1, 2, 3]), END] == watch(
        Flux.from_(probe.source).window(3).take(1).flat_map(lambda each: each.collect_list())
    ).signals
    assert ([1, 2, 3], 1) == (probe.emitted, probe.disposed)


def test_the_source_is_cancelled_when_the_stream_and_its_window_are_left() -> None:
    """In any order, and not before."""
    for first in (0, 1):
        source, subscriptions = subject(), list[Any]()
        subscriptions.append(
            Flux.from_(source)
            .window(9)
            .subscribe(lambda each, kept=subscriptions: kept.append(each.subscribe()))  # type: ignore[misc]
        )
        source.on_next(1)
        subscriptions[first].dispose()
        assert 1 == len(source.observers)
        subscriptions[1 - first].dispose()
        assert [] == source.observers


def test_a_window_without_a_subscriber_keeps_the_source_as_long_as_somebody_may_come() -> None:
    """Then it is cancelled, and the window's error or end is nobody's."""
    source = subject()
    watcher = Watcher()
    subscription = Flux.from_(source).window(9).subscribe(watcher)
    source.on_next(1)
    subscription.dispose()
    source.on_next(2)
    assert ([1], 1) == ([len(watcher.items)], len(source.observers))
    watcher.signals.clear()
    gc.collect()
    assert [] == source.observers


def test_an_error_after_the_stream_was_left_is_that_of_the_window() -> None:
    source = subject()
    seen = Windows(Flux.from_(source).window(9))
    source.on_next(1)
    seen.subscription.dispose()
    source.on_error(FAILURE)
    assert ([], [[item(1), error(FAILURE)]]) == (seen.signals, seen.told)


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
    monkeypatch.setattr(parts, "HELD", Room(items=2))
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
