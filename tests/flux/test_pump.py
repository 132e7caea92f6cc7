"""The pump's own promises, where no whole stream shows them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from reactivex.disposable import Disposable

from semflux.errors import SemfluxError, TruncatedStreamError
from semflux.events import ChatEventType, TextDelta
from semflux.flux import ChatStream, Flux
from semflux.flux.edge import PullEdge
from semflux.flux.pump import Pump
from semflux.flux.source import ChatSource
from semflux.operators import EventSubject, Run, normalize, terminate
from tests.flux.answers import DATA, FRAMES, TYPES, Chunks, chat, chat_frames, settle
from tests.operators.watching import END, Watcher, hooked, plain, rx, signals, watch

T = ChatEventType


class Silent(Pump):
    """A source without a step."""

    waits = False

    def _more(self) -> bytes | None:
        self._end_response()
        return None


def test_a_source_without_a_step_has_its_frame_all_the_same() -> None:
    """RESPONSE_START and RESPONSE_END; what comes in after that is not looked at."""
    kept: list[Silent] = []

    def make(run: Run) -> Silent:
        kept.append(Silent(run))
        return kept[-1]

    seen = watch(ChatStream(ChatSource(make)))
    assert [T.RESPONSE_START, T.RESPONSE_END] == [event.type for event in seen.items]

    pump = kept[0]
    with hooked() as dropped:
        assert pump.pump()
        pump._receive(b"late")
        pump._ended()
        pump._end_response()
        pump._begin_step(lambda _: None)
        pump.dispose()
    assert (2, [], []) == (len(seen.items), dropped.items, dropped.errors)


def test_what_a_parser_raises_while_its_stream_fails_goes_to_the_hook() -> None:
    """The stream fails already, and for a better reason."""
    pump, seen = Silent(Run()), Watcher()
    pump.subject.subscribe(seen)
    second = SemfluxError("second")

    class Decoder:
        dialect = parser = type("", (), {"name": "d", "options": type("", (), {"provider": None})})

        def flush(self) -> Any:
            yield TextDelta("held")
            raise second

    pump._decoder = Decoder()  # type: ignore[assignment]  # what of it is used
    first = SemfluxError("first")
    with hooked() as dropped:
        pump.fail(first)
    assert [T.RESPONSE_START, T.TEXT_DELTA] == [event.type for event in seen.items]
    assert (first, "d", [second]) == (seen.error, first.provider, dropped.errors)


async def test_a_task_lets_the_loop_do_other_things() -> None:
    """After 64 KiB of a source that never waits."""
    turns, ended = [0], asyncio.Event()

    class Ready:
        async def __aiter__(self) -> Any:
            for frame in chat_frames(2000):
                yield frame

    async def count() -> None:
        while not ended.is_set():
            turns[0] += 1
            await asyncio.sleep(0)

    chat(Ready()).subscribe(lambda _: None, None, ended.set)
    async with asyncio.timeout(5):
        await count()
    assert turns[0] > 3


async def test_a_shared_synchronous_source_goes_on_too() -> None:
    """Its task needs no wait."""
    shared = chat(DATA).pipe(rx.share())
    seen, ended = list[str](), asyncio.Event()
    first = aiter(shared)
    assert T.RESPONSE_START == (await anext(first)).type
    shared.subscribe(lambda e: seen.append(e.type), None, ended.set)
    await first.aclose()
    async with asyncio.timeout(5):
        await ended.wait()
    assert T.RESPONSE_END == seen[-1]


def test_a_shared_source_without_a_loop_stays_where_it_is() -> None:
    """Nothing can go on there, and nothing is raised."""
    run = Run(pull=True)
    edge: PullEdge[Any] = PullEdge(run)
    stream = chat(DATA)
    stream.to_observable()._subscribe_core(
        edge, run.scheduler
    )  # as an operator that shares does: not told of a dispose
    edge.dispose()
    assert run.driver is not None
    assert not run.driver.over


@pytest.mark.parametrize("form", ["sync", "agen"])
async def test_a_source_that_ends_without_its_finish_signal_fails(form: str) -> None:
    """Its end is seen; it is closed."""
    chunks, seen = Chunks(*FRAMES[:3]), list[Any]()
    with pytest.raises(TruncatedStreamError):
        async for event in chat(getattr(chunks, form)()):
            seen.append(event)
    assert (T.ERROR, 1) == (seen[-1].type, chunks.closed)


def test_a_file_that_ends_without_its_finish_signal_fails(tmp_path: Path) -> None:
    """It is closed at its end."""
    path = tmp_path / "cut.sse"
    path.write_bytes(b"".join(FRAMES[:3]))
    assert isinstance(watch(chat(path)).error, TruncatedStreamError)


@pytest.mark.parametrize("more", [True, False])
async def test_a_source_that_aborts_its_own_stream_is_not_read_further(more: bool) -> None:
    """Neither its next chunk nor its end matters."""
    run, seen, closed = Run(), Watcher(), list[bool]()

    async def source() -> Any:
        try:
            yield b"".join(FRAMES[:3])
            run.abort("enough")
            if more:
                yield FRAMES[3]
        finally:
            closed.append(True)

    chat(source()).subscribe(seen, scheduler=run.scheduler)
    await settle()
    await settle()
    assert [T.TEXT_END, T.STEP_END, T.ABORT] == [event.type for event in seen.items[-3:]]
    assert (END, [True]) == (seen.signals[-1], closed)


def test_a_subscriber_of_rxpy_that_left_and_raises_one_of_our_errors() -> None:
    """It can't be taken for a failure of the stream: it goes to the hook."""
    failure = SemfluxError("mine")
    subject: EventSubject[Any] = EventSubject()
    streams = (
        chat(DATA).to_observable(),
        chat(DATA).pipe(rx.map(lambda e: e)).to_observable(),
        subject.pipe(normalize(), terminate()),
    )
    for stream in streams:
        later: list[Any] = []

        def leave(_: Any, later: list[Any] = later) -> None:
            later[0].dispose()
            raise failure

        with hooked() as dropped:
            plain.of(0).subscribe(
                lambda _, s=stream, later=later, leave=leave: later.append(s.subscribe(leave))
            )
            subject.on_next(TextDelta("a"))
        assert [failure] == dropped.errors


def test_a_subject_that_has_ended_ends_its_subscriber_at_once() -> None:
    """What it is subscribed to is disposed of when it becomes known."""
    subject: EventSubject[int] = EventSubject()
    subject.on_completed()
    assert [END] == signals(Flux(subject))
    assert [END] == signals(Flux(subject).map(lambda x: x))


async def test_a_pulled_subscription_that_is_over_takes_nothing_more() -> None:
    """From a source that minds no disposal; and it disposes of what it is connected to late."""
    edge: PullEdge[int] = PullEdge(Run())
    edge.on_next(1)
    await edge.wait()
    edge.dispose()
    edge.on_next(2)
    edge.on_error(ValueError("late"))
    edge.on_completed()
    assert ([], None) == (list(edge.items), edge.error)
    disposed: list[bool] = []
    edge.connect(Disposable(lambda: disposed.append(True)))
    await edge.wait()
    assert [True] == disposed


def test_a_dispose_from_another_thread_after_the_loop_is_closed() -> None:
    """Nothing runs there any more: what is open is closed where the dispose comes from."""
    kept: list[Any] = []

    async def begin() -> None:
        kept.append(chat(Chunks(*FRAMES, endless=True).sync()).subscribe)
        run = Run(pull=True)
        pump = Silent(run)
        kept.append(pump)

    asyncio.run(begin())
    pump: Pump = kept[1]
    thread = threading.Thread(target=pump.dispose)
    thread.start()
    thread.join(5)
    assert pump._closed


def test_types_of_the_test_answer() -> None:
    """What other tests count on."""
    assert TYPES == [event.type for event in watch(chat(FRAMES)).items]
