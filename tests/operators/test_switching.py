"""switch_map, switch_on_first, expand: which stream goes on, and which is left."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest
import reactivex
from reactivex.disposable import Disposable

import semflux
from semflux import ChatEventType, Flux
from semflux.errors import AlreadyConsumedError
from semflux.operators import Signal
from semflux.operators.lift import Direct
from tests.frames import DONE, cc, cuts
from tests.operators.watching import END, Probe, error, item, raising, signals, watch

T = ChatEventType
FAILURE, OTHER = ValueError("mine"), ValueError("other")
ANSWER = b"".join([cc({"content": f"{n} "}) for n in range(20)]) + cc(finish="stop") + DONE


def subjects(count: int) -> list[reactivex.Subject[Any]]:
    return [reactivex.Subject() for _ in range(count)]


# switch_map


def test_switch_map_gives_the_items_of_the_newest_source() -> None:
    """The end comes when the source and the newest one have ended."""
    source, one, two = subjects(3)
    watcher = watch(Flux.from_(source).switch_map(lambda inner: inner))
    source.on_next(one)
    one.on_next(1)
    source.on_next(two)
    one.on_next(2)
    two.on_next(None)
    source.on_completed()
    assert [item(1), item(None)] == watcher.signals
    two.on_completed()
    assert END == watcher.signals[-1]
    assert [END] == signals(Flux.empty().switch_map(lambda inner: inner))


def test_the_source_before_is_cancelled_first() -> None:
    """Before the function is called."""
    one, source = Probe(ends=False), subjects(1)[0]
    seen: list[int] = []

    def function(value: Any) -> Any:
        seen.append(one.disposed)
        return one.source

    watch(Flux.from_(source).switch_map(function))
    source.on_next(1)
    source.on_next(2)
    assert ([0, 1], 2) == (seen, one.subscribed)


class Stubborn(Direct[Any]):
    """Goes on after it was cancelled."""

    def _subscribe_core(self, observer: Any, scheduler: Any = None) -> Any:
        self.observer = observer
        return Disposable()


def test_a_late_signal_of_an_old_source_does_not_pass() -> None:
    """An error neither; one that comes from inside an item, too."""
    old, source, new = Stubborn(), *subjects(2)
    watcher = watch(
        Flux.from_(source)
        .switch_map(lambda inner: inner)
        .do_on_next(lambda value: source.on_next(new) if value == 1 else None)
    )
    source.on_next(old)
    late = old.observer
    late.on_next(1)
    late.on_next(2)
    late.on_error(FAILURE)
    new.on_next(3)
    assert [item(1), item(3)] == watcher.signals


def test_what_comes_from_inside_an_item_is_of_its_source_still() -> None:
    """The old one fails, or ends, after the newer one has come: that is nobody's. After the subscriber has left so is
    all."""
    for end in ("on_error", "on_completed"):
        old, source, new = subjects(3)

        def look(value: Any, *told: Any, end: str = end) -> None:
            if value == 1:
                told[1].on_next(told[2])
                getattr(told[0], end)(*([FAILURE] if end == "on_error" else []))

        watcher = watch(
            Flux.from_(source)
            .switch_map(lambda inner: inner)
            .do_on_next(functools.partial(_with, look, old, source, new))
        )
        source.on_next(old)
        old.on_next(1)
        new.on_next(2)
        assert [item(1), item(2)] == watcher.signals
    for method in ("switch_map", "expand", "expand_deep", "flat_map_sequential"):
        source = reactivex.Subject[Any]()
        made = getattr(Flux.from_(source), method)(lambda _: Eager(1, 2, ends=False))
        taken = made.do_on_next(source.on_next).do_on_next(source.on_next).take(1)
        watcher = watch(taken)
        source.on_next(0)
        assert (2, END, []) == (len(watcher.signals), watcher.signals[-1], source.observers)


class Leaving(Direct[Any]):
    """Its subscriber leaves while it subscribes."""

    def __init__(self, leave: Any) -> None:
        super().__init__()
        self.leave = leave
        self.disposed = 0

    def _subscribe_core(self, observer: Any, scheduler: Any = None) -> Any:
        self.leave()

        def dispose() -> None:
            self.disposed += 1

        return Disposable(dispose)


@pytest.mark.parametrize("method", ["switch_map", "expand", "expand_deep", "flat_map_sequential"])
def test_a_source_that_is_left_while_it_is_subscribed_to_is_cancelled(method: str) -> None:
    source, subscriptions = reactivex.Subject[Any](), list[Any]()
    leaving = Leaving(lambda: subscriptions[0].dispose())
    subscriptions.append(getattr(Flux.from_(source), method)(lambda _: leaving).subscribe())
    source.on_next(1)
    source.on_completed()
    assert (1, []) == (leaving.disposed, source.observers)


@pytest.mark.parametrize("method", ["switch_map", "expand", "expand_deep", "flat_map_sequential"])
def test_an_end_from_inside_the_last_item_that_is_taken_is_the_only_one(method: str) -> None:
    source = reactivex.Subject[Any]()
    made = getattr(Flux.from_(source), method)(lambda value: Eager(value))
    watcher = watch(made.do_on_next(lambda _: source.on_completed()).take(1))
    source.on_next(1)
    assert [item(1), END] == watcher.signals


def _with(look: Any, old: Any, source: Any, new: Any, value: Any) -> None:
    look(value, old, source, new)


def test_an_error_of_any_cancels_the_rest() -> None:
    """Of the newest one, of the source, of the function."""
    source, inner = subjects(2)
    watcher = watch(Flux.from_(source).switch_map(lambda _: inner))
    source.on_next(1)
    inner.on_error(FAILURE)
    assert ([error(FAILURE)], []) == (watcher.signals, source.observers)
    source, inner = subjects(2)
    watcher = watch(Flux.from_(source).switch_map(lambda _: inner))
    source.on_next(1)
    source.on_error(FAILURE)
    assert ([error(FAILURE)], []) == (watcher.signals, inner.observers)
    probe = Probe(1, 2)
    assert [error(FAILURE)] == signals(Flux.from_(probe.source).switch_map(raising(FAILURE)))
    assert 1 == probe.disposed


def test_leaving_cancels_the_newest_one_and_the_source() -> None:
    """From inside an item that is given at once, too."""
    source, inner = subjects(2)
    watch(Flux.from_(source).switch_map(lambda _: inner).take(1))
    source.on_next(1)
    inner.on_next(1)
    assert ([], []) == (source.observers, inner.observers)
    eager, source = Eager(1, 2, ends=False), subjects(1)[0]
    watcher = watch(Flux.from_(source).switch_map(lambda _: eager).take(1))
    source.on_next(1)
    assert ([item(1), END], 1, []) == (watcher.signals, eager.disposed, source.observers)
    source, hot = subjects(1)[0], Flux.from_(reactivex.concat(reactivex.of(1), reactivex.never()))
    watcher = watch(Flux.from_(source).switch_map(lambda _: hot).take(1))
    source.on_next(1)
    assert ([item(1), END], []) == (watcher.signals, source.observers)


async def test_switch_map_leaves_a_chat_stream_in_the_middle() -> None:
    """Its source is closed; the newest one comes whole."""
    closed: list[str] = []

    def stream(name: str) -> semflux.ChatStream:
        async def chunks() -> Any:
            try:
                for piece in cuts(ANSWER, 90):
                    await asyncio.sleep(0)
                    yield piece
            finally:
                closed.append(name)

        return semflux.parse(chunks(), dialect="openai-chat")

    source, seen = reactivex.Subject[str](), list[Any]()
    ended = asyncio.Event()
    Flux.from_(source).switch_map(lambda name: stream(name).text()).subscribe(
        seen.append, on_completed=ended.set
    )
    source.on_next("a")
    while len(seen) < 3:
        await asyncio.sleep(0)
    source.on_next("b")
    source.on_completed()
    await asyncio.wait_for(ended.wait(), 5)
    await asyncio.sleep(0)
    assert ["a", "b"] == closed
    assert [f"{n} " for n in range(20)] == seen[-20:]


# switch_on_first


def test_the_first_signal_decides_what_becomes_of_the_whole_stream() -> None:
    """The first item is in it."""
    made = Flux.just(2, 3, 4).switch_on_first(lambda first, whole: whole.map(lambda x: (first.value, x)))
    assert [item((2, 2)), item((2, 3)), item((2, 4)), END] == signals(made)
    seen: list[Signal[Any]] = []

    def function(first: Signal[Any], whole: Flux[Any]) -> Flux[Any]:
        seen.append(first)
        return whole.start_with("first")

    assert [item("first"), END] == signals(Flux.empty().switch_on_first(function))
    assert [item("first"), error(FAILURE)] == signals(Flux.error(FAILURE).switch_on_first(function))
    assert [item("first"), item(None), END] == signals(Flux.just(None).switch_on_first(function))
    assert [Signal.of_complete(), Signal.of_error(FAILURE), Signal.of_next(None)] == seen
    assert [item(9), END] == signals(Flux.error(FAILURE).switch_on_first(lambda first, whole: Flux.just(9)))


def test_the_whole_stream_may_come_later_and_has_one_subscriber() -> None:
    """What came before is held for it."""
    source, gate = subjects(2)
    kept: list[Any] = []

    def function(first: Signal[Any], whole: Flux[Any]) -> Flux[Any]:
        kept.append(whole)
        return Flux.from_(gate).concat_with(whole)

    watcher = watch(Flux.from_(source).switch_on_first(function))
    for value in (1, 2):
        source.on_next(value)
    gate.on_completed()
    source.on_next(3)
    source.on_error(FAILURE)
    assert [item(1), item(2), item(3), error(FAILURE)] == watcher.signals
    assert isinstance(watch(kept[0]).error, AlreadyConsumedError)


def test_the_source_is_cancelled_when_the_whole_stream_is_not_read_any_more() -> None:
    """By who left it, or since nobody can come; what was made goes on."""
    left = Probe(1, 2, 3)
    rest = reactivex.Subject[Any]()
    watcher = watch(
        Flux.from_(left.source).switch_on_first(lambda first, whole: whole.take(1).concat_with(rest))
    )
    assert ([1], 1) == (left.emitted, left.disposed)
    rest.on_next(9)
    assert [item(1), item(9)] == watcher.signals
    ignored, other = Probe(1, 2, 3), reactivex.Subject[Any]()
    watcher = watch(Flux.from_(ignored.source).switch_on_first(lambda first, whole: other))
    assert ([1], 1) == (ignored.emitted, ignored.disposed)
    other.on_next(9)
    other.on_completed()
    assert [item(9), END] == watcher.signals


def test_the_source_is_cancelled_when_what_was_made_of_it_ends() -> None:
    """Well, with an error, or since the function raised; and when the subscriber leaves."""
    kept: list[Any] = []

    def kept_and(made: Flux[Any]) -> Any:
        def function(first: Signal[Any], whole: Flux[Any]) -> Flux[Any]:
            kept.append(whole)
            return made

        return function

    for made, end in ((Flux.empty(), END), (Flux.error(OTHER), error(OTHER))):
        source = reactivex.Subject[Any]()
        watcher = watch(Flux.from_(source).switch_on_first(kept_and(made)))
        source.on_next(1)
        assert ([end], []) == (watcher.signals, source.observers)
    probe = Probe(1, 2)
    assert [error(FAILURE)] == signals(Flux.from_(probe.source).switch_on_first(raising(FAILURE)))
    assert 1 == probe.disposed
    probe = Probe(1, 2)
    taken = Flux.from_(probe.source).switch_on_first(lambda first, whole: whole).take(1)
    assert ([item(1), END], 1) == (signals(taken), probe.disposed)


class Eager(Direct[Any]):
    """Tells all inside of `subscribe`."""

    def __init__(self, *items: Any, ends: bool = True) -> None:
        super().__init__()
        self.items, self.ends, self.disposed = items, ends, 0

    def _subscribe_core(self, observer: Any, scheduler: Any = None) -> Any:
        for value in self.items:
            observer.on_next(value)
        if self.ends:
            observer.on_completed()

        def dispose() -> None:
            self.disposed += 1

        return Disposable(dispose)


def test_a_source_may_tell_all_before_it_is_connected() -> None:
    """It is cancelled all the same, where it should be; what it tells after its end is nobody's."""
    eager = Eager(1, 2, ends=False)
    made = Flux.from_(eager).switch_on_first(lambda first, whole: Flux.from_(Eager("x")))
    assert [item("x"), END] == signals(made)
    assert 1 == eager.disposed
    eager = Eager(1, 2)
    made = Flux.from_(eager).switch_on_first(lambda first, whole: whole)
    assert [item(1), item(2), END] == signals(made)
    left = Flux.from_(Eager(1, 2)).switch_on_first(lambda first, whole: Flux.from_(Eager(7, 8))).take(1)
    assert [item(7), END] == signals(left)


async def test_switch_on_first_reads_a_chat_stream_at_the_pace_of_its_subscriber() -> None:
    """All events, or up to where it is left: then the source is closed."""
    asked: list[int] = []
    closed: list[bool] = []

    async def chunks() -> Any:
        try:
            for number, piece in enumerate(cuts(ANSWER, 90)):
                asked.append(number)
                await asyncio.sleep(0)
                yield piece
        finally:
            closed.append(True)

    def made() -> Flux[Any]:
        return semflux.parse(chunks(), dialect="openai-chat").switch_on_first(
            lambda first, whole: whole.map(lambda event: (first.value, event.type))
        )

    seen = [each async for each in made()]
    assert [T.RESPONSE_START, T.RESPONSE_END] == [seen[0][1], seen[-1][1]]
    assert {T.RESPONSE_START} == {each[0].type for each in seen}
    asked.clear()
    async for _, type_ in made():
        if type_ is T.TEXT_DELTA:
            break
    for _ in range(5):
        await asyncio.sleep(0)
    assert (2, True) == (len(closed), len(asked) < 9)


# expand


def digits(value: int) -> Flux[int]:
    return Flux.just(value * 10, value * 10 + 1) if value < 100 else Flux.empty()


def test_expand_goes_by_breadth_and_expand_deep_by_depth() -> None:
    source = Flux.just(1, 5)
    assert [1, 5, 10, 11, 50, 51, 100, 101, 110, 111, 500, 501, 510, 511] == watch(
        source.expand(digits)
    ).items
    deep = watch(source.expand_deep(digits))
    assert [1, 10, 100, 101, 11, 110, 111, 5, 50, 500, 501, 51, 510, 511] == deep.items
    assert END == deep.signals[-1]
    for method in ("expand", "expand_deep"):
        assert [item(None), END] == signals(getattr(Flux.just(None), method)(lambda _: Flux.empty()))
        assert [END] == signals(getattr(Flux.empty(), method)(digits))


def test_expanding_goes_on_without_end_and_without_recursion() -> None:
    """Until the subscriber leaves."""
    for method in ("expand", "expand_deep"):
        endless = getattr(Flux.just(0), method)(lambda value: Flux.just(value + 1))
        assert list(range(5000)) == watch(endless.take(5000)).items


@pytest.mark.parametrize("method", ["expand", "expand_deep"])
def test_an_error_of_any_stream_cuts_at_once(method: str) -> None:
    """Of the source, of one that was made, of the function."""
    failing = getattr(Flux.just(1).concat_with(Flux.error(FAILURE)), method)
    assert [item(1), error(FAILURE)] == signals(failing(lambda _: Flux.empty()))
    made = getattr(Flux.just(1, 2), method)(lambda _: Flux.error(FAILURE))
    assert error(FAILURE) == watch(made).signals[-1]
    probe = Probe(1, 2)
    raised = getattr(Flux.from_(probe.source), method)(raising(FAILURE))
    assert ([item(1), error(FAILURE)], 1) == (signals(raised), probe.disposed)


@pytest.mark.parametrize("method", ["expand", "expand_deep"])
def test_leaving_an_expansion_cancels_what_is_at_work(method: str) -> None:
    """The source, or the stream that was made; at an item that came with others, too."""
    source, inner = subjects(2)
    subscription = getattr(Flux.from_(source), method)(lambda _: inner).subscribe(lambda _: None)
    source.on_next(1)
    source.on_next(2)
    source.on_completed()
    assert 1 == len(inner.observers)
    subscription.dispose()
    assert [] == inner.observers
    probe = Probe(1, 2)
    assert [item(1), END] == signals(getattr(Flux.from_(probe.source), method)(digits).take(1))
    assert 1 == probe.disposed
    eager = Eager(7, 8, ends=False)
    taken = getattr(Flux.just(1), method)(lambda _: eager).take(2)
    assert ([item(1), item(7), END], 1) == (signals(taken), eager.disposed)


async def test_a_chat_stream_may_be_expanded() -> None:
    """Each event of the first one by its text; the pull goes on with the streams that were made."""

    async def chunks() -> Any:
        for piece in cuts(ANSWER, 90):
            await asyncio.sleep(0)
            yield piece

    def more(text: str) -> Flux[str]:
        return semflux.parse(chunks(), dialect="openai-chat").text().take(2) if text == "3 " else Flux.empty()

    first = [f"{n} " for n in range(20)]
    texts = semflux.parse(chunks(), dialect="openai-chat").text()
    assert [*first, "0 ", "1 "] == [text async for text in texts.expand(more)]
    texts = semflux.parse(chunks(), dialect="openai-chat").text()
    deep = [text async for text in texts.expand_deep(more)]
    assert [*first[:4], "0 ", "1 ", *first[4:]] == deep
