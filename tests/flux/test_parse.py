"""parse(): its sources, wrong ones, and whatever bytes come: one terminal event and errors of ours alone."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import semflux
from semflux.contract import violations_of
from semflux.errors import (
    AlreadyConsumedError,
    ConfigurationError,
    EmptyResponseError,
    FrameTooLargeError,
    RepairError,
    SemfluxError,
)
from semflux.events import ChatEventType, Heartbeat
from semflux.filters import ChatEventFilter
from semflux.flux import ChatStream, Flux
from semflux.flux.parse import ByteSource
from semflux.operators import EventSubject, Run
from semflux.wire.limits import Limits
from tests.flux.answers import DATA, FORMS, FRAMES, TYPES, Chunks, chat, chat_frames, claude_frames, settle
from tests.frames import cc, text_block
from tests.operators.watching import Watcher, hooked, plain, watch

T = ChatEventType


class Again:
    """An iterable that can be gone over again, in both ways."""

    def __iter__(self) -> Any:
        return iter(FRAMES)


class AgainAsync:
    async def __aiter__(self) -> Any:
        for frame in FRAMES:
            yield frame


SYNC_SOURCES: list[Any] = [
    DATA,
    bytearray(DATA),
    memoryview(DATA),
    list(FRAMES),
    tuple(FRAMES),
    [bytearray(frame) for frame in FRAMES],
    [memoryview(frame) for frame in FRAMES],
    [b"", *FRAMES, b""],
    Again(),
]


@pytest.mark.parametrize("source", SYNC_SOURCES, ids=lambda source: type(source).__name__)
def test_synchronous_sources_are_parsed_inside_subscribe(source: ByteSource) -> None:
    """With no loop, and as often as one likes."""
    stream = chat(source)
    assert (
        TYPES
        == [event.type for event in watch(stream).items]
        == [event.type for event in watch(stream).items]
    )


@pytest.mark.parametrize("source", [*SYNC_SOURCES, AgainAsync(), plain.of(*FRAMES), Flux.just(*FRAMES)])
async def test_all_sources_are_parsed_in_async_for(source: ByteSource) -> None:
    """Cold: twice the same."""
    stream = chat(source)
    for _ in range(2):
        assert TYPES == [event.type async for event in stream]


@pytest.mark.parametrize(
    "source", [AgainAsync(), plain.of(*FRAMES), Flux.just(*FRAMES), Flux.just(DATA).next()]
)
async def test_sources_that_wait_are_parsed_by_a_task(source: ByteSource) -> None:
    """`subscribe` needs a running loop for them."""
    seen, ended = Watcher(), asyncio.Event()
    chat(source).do_finally(lambda _: ended.set()).subscribe(seen)
    assert [] == seen.signals
    async with asyncio.timeout(5):
        await ended.wait()
    assert TYPES == [event.type for event in seen.items]


def test_a_path_or_a_file_is_read(tmp_path: Path) -> None:
    """A path as often as one likes; a file, which stays the user's to close, once."""
    path = tmp_path / "capture.sse"
    path.write_bytes(DATA * 1)
    for source in (path, str(path)):
        stream = chat(source)
        assert TYPES == [e.type for e in watch(stream).items] == [e.type for e in watch(stream).items]
    with path.open("rb") as file:
        stream = chat(file)
        assert TYPES == [event.type for event in watch(stream).items]
        assert not file.closed
        again = watch(stream)
        assert isinstance(again.error, AlreadyConsumedError)
        assert [T.RESPONSE_START, T.STEP_START, T.STEP_END, T.ERROR] == [event.type for event in again.items]
    assert TYPES == [event.type for event in watch(chat(io.BytesIO(DATA))).items]


def test_a_file_is_not_read_further_than_wanted(tmp_path: Path) -> None:
    """And a path is closed where a stream is left."""
    data = b"".join(chat_frames(5000))
    path = tmp_path / "long.sse"
    path.write_bytes(data)
    file = io.BytesIO(data)
    assert 5 == len(watch(chat(file).take(5)).items)
    assert 16 * 1024 == file.tell()
    assert 5 == len(watch(chat(path).take(5)).items)


def test_a_missing_file_is_told_by_its_name(tmp_path: Path) -> None:
    """As the error of the stream, which has its RESPONSE_START."""
    for wrong, why in ((tmp_path / "nowhere.sse", "No such file"), (tmp_path, "Is a directory")):
        seen = watch(chat(wrong))
        assert isinstance(seen.error, ConfigurationError)
        assert why in str(seen.error)
        assert wrong.name in str(seen.error)
        assert [T.RESPONSE_START, T.STEP_START, T.STEP_END, T.ERROR] == [event.type for event in seen.items]


@pytest.mark.parametrize("source", [7, None, object(), 1.5])
def test_what_is_no_source_is_refused(source: Any) -> None:
    """When the call is written."""
    with pytest.raises(ConfigurationError, match="give bytes, a path, a binary file, or an iterable"):
        chat(source)


def test_an_unknown_dialect_is_refused() -> None:
    """When the call is written."""
    with pytest.raises(ConfigurationError, match="klingon"):
        semflux.parse(b"", dialect="klingon")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunk", ["text", 7, None, [b"x"]])
async def test_chunks_that_are_no_bytes_are_refused(form: str, chunk: Any) -> None:
    """With what came before them; the source is closed."""
    chunks, seen = Chunks(FRAMES[0], cc({"content": "half"}), chunk), list[Any]()
    with pytest.raises(ConfigurationError, match=f"its source gave {type(chunk).__name__}"):
        async for event in chat(FORMS[form](chunks)):
            seen.append(event)
    await settle()
    assert ["TEXT_DELTA", "TEXT_END", "STEP_END", "ERROR"] == [event.type for event in seen[-4:]]
    assert 1 == chunks.closed


def test_a_text_file_is_refused(tmp_path: Path) -> None:
    """It says how to open it."""
    path = tmp_path / "x"
    path.write_bytes(DATA)
    with path.open(encoding="utf-8") as file:
        wrong: Any = file
        assert "open files with 'rb'" in str(watch(chat(wrong)).error)


@pytest.mark.parametrize("source", [AgainAsync(), plain.of(*FRAMES)])
def test_a_source_that_waits_needs_a_loop(source: ByteSource) -> None:
    """ConfigurationError by `on_error`, after RESPONSE_START and ERROR; not raised by `subscribe`."""
    seen = watch(chat(source))
    assert [T.RESPONSE_START, T.ERROR] == [event.type for event in seen.items]
    assert isinstance(seen.error, ConfigurationError)
    assert "no event loop is running here" in str(seen.error)


def test_a_source_that_waits_is_not_begun_for_one_who_left() -> None:
    """Neither error nor event: nobody is there."""
    seen: list[Any] = []
    with hooked() as dropped:
        plain.of(0).subscribe(lambda _: chat(AgainAsync()).subscribe(seen.append, seen.append).dispose())
        later: list[Any] = []
        leaving = chat(AgainAsync()).do_on_next(lambda _: later[0].dispose())
        plain.of(0).subscribe(lambda _: later.append(leaving.subscribe(None, seen.append)))
    assert ([], []) == (seen, dropped.errors)


def test_the_disposable_exists_before_the_first_event() -> None:
    """Of a stream that fails at once, too."""
    for source in (DATA, AgainAsync()):
        order: list[Any] = []

        def start(_: int, source: Any = source, order: list[Any] = order) -> None:
            order.append(chat(source).subscribe(lambda e: order.append(e.type), lambda _: None))

        plain.of(0).subscribe(start)
        assert T.RESPONSE_START == order[1]


def test_options_of_parse() -> None:
    """strict, limits, event_filter."""
    doubled = b"".join([*claude_frames(1)[:1], text_block(0, "a"), text_block(0, "a"), *claude_frames(1)[2:]])
    wrong = b"".join(
        [claude_frames(1)[0], b'event: content_block_stop\ndata: {"type":"content_block_stop","index":7}\n\n']
    )
    strict = watch(semflux.parse(wrong + b"".join(claude_frames(1)[1:]), dialect="anthropic", strict=True))
    assert isinstance(strict.error, RepairError)
    assert watch(semflux.parse(doubled, dialect="anthropic")).error is None
    limited = watch(chat(DATA, limits=Limits(max_event_bytes=50)))
    assert isinstance(limited.error, FrameTooLargeError)
    shown = watch(chat(DATA, event_filter=ChatEventFilter.of(T.TEXT_DELTA)))
    assert [*TYPES[:2], *TYPES[3:6], *TYPES[7:]] == [event.type for event in shown.items]
    hidden = watch(chat(DATA, event_filter=ChatEventFilter.of(T.USAGE)))
    assert [*TYPES[:2], *TYPES[7:]] == [event.type for event in hidden.items]
    assert "0 1 2 " == hidden.items[-1].response.text


@pytest.mark.parametrize("source", [b"", [], [b""]])
def test_no_bytes_at_all_are_an_error(source: Any) -> None:
    """A stream without its finish signal never succeeds."""
    assert isinstance(watch(chat(source)).error, EmptyResponseError)


def test_a_run_can_fail_or_abort_a_stream_in_order() -> None:
    """Ends, STEP_END, then ERROR with `on_error`, or ABORT with the end; before the first event too."""
    failure = SemfluxError("stopped")
    for how in ("fail", "abort"):
        for at in (T.RESPONSE_START, T.TEXT_DELTA):
            run, seen = Run(), Watcher()

            def act(event: Any, run: Run = run, at: Any = at, how: str = how, seen: Watcher = seen) -> None:
                seen.on_next(event)
                if event.type is at:
                    run.fail(failure) if how == "fail" else run.abort("why")

            chat(DATA).subscribe(act, seen.on_error, seen.on_completed, scheduler=run.scheduler)
            last = seen.items[-1]
            assert () == violations_of(seen.items)
            assert [T.ERROR if how == "fail" else T.ABORT] == [last.type]
            assert (seen.error is failure) == (how == "fail")
            assert ("end",) == seen.signals[-1] or how == "fail"
            if how == "abort":
                assert "why" == last.reason
            with hooked() as dropped:
                run.fail(failure)
                run.abort("again")
            assert [failure] == dropped.errors


async def test_a_stream_that_waits_is_woken_by_fail_and_abort() -> None:
    """At once, though the source gives nothing; and also before it was begun."""
    for how in ("fail", "abort"):
        for begun in (True, False):
            chunks, run, seen = Chunks(*FRAMES[:3], endless=True), Run(), Watcher()
            chat(chunks.agen()).subscribe(seen, scheduler=run.scheduler)
            async with asyncio.timeout(5):
                if begun:
                    await chunks.waiting.wait()
            run.fail(SemfluxError("stopped")) if how == "fail" else run.abort("why")
            await settle()
            assert [T.ERROR if how == "fail" else T.ABORT] == [seen.items[-1].type]
            assert T.RESPONSE_START == seen.items[0].type
            assert () == violations_of(seen.items)
            assert chunks.closed == begun


async def test_one_who_leaves_at_response_start_sees_no_error() -> None:
    """fail() and abort() begin a stream that had not begun; its subscriber may want nothing of it."""
    for how in ("fail", "abort"):
        run, seen, later = Run(), list[Any](), list[Any]()

        def leave(event: Any, seen: list[Any] = seen, later: list[Any] = later) -> None:
            seen.append(event)
            later[0].dispose()

        later.append(chat(Chunks(*FRAMES).agen()).subscribe(leave, seen.append, scheduler=run.scheduler))
        run.fail(SemfluxError("stopped")) if how == "fail" else run.abort("why")
        assert [T.RESPONSE_START] == [event.type for event in seen]


def test_what_was_held_back_is_part_of_what_failed() -> None:
    """A parser that holds half a think tag gives it out when the stream fails."""
    broken: Any = [cc({"content": "yes <thi"}), None]
    seen = watch(chat(broken))
    assert "yes <thi" == seen.error.partial.steps[0].text


FUZZ = st.one_of(
    st.binary(max_size=200),
    st.lists(
        st.sampled_from(
            [
                *FRAMES,
                *claude_frames(2),
                b"data: ",
                b"data: {}\n\n",
                b"data: []\n\n",
                b'event: error\ndata: {"error": {"message": "x"}}\n\n',
                b"\n\n",
                b"\r\n",
                b"\xff\xfe",
                b": ping\n\n",
                b"{",
                b'{"error": 1}',
                b"null",
                b"data: 1e999\n\n",
                b"<html>",
                b"data: " + b"[" * 200 + b"\n\n",
            ]
        ),
        max_size=12,
    ).map(b"".join),
)


@given(FUZZ, st.sampled_from(["openai-chat", "anthropic"]), st.booleans(), st.integers(1, 64))
def test_whatever_the_bytes_there_is_one_end_and_no_error_but_ours(
    data: bytes, dialect: str, strict: bool, size: int
) -> None:
    """In legal order; ERROR and `on_error` are one; nothing goes to the hooks."""
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    with hooked() as dropped:
        seen = watch(semflux.parse(chunks, dialect=dialect, strict=strict))
    assert () == violations_of(seen.items)
    assert 1 == sum(event.is_terminal for event in seen.items)
    assert ("item", seen.items[-1]) == seen.signals[-2]
    assert seen.error is seen.items[-1].error
    assert seen.error is None or isinstance(seen.error, SemfluxError)
    assert seen.error is None or seen.error.kind != "source", seen.error.__cause__
    assert ([], []) == (dropped.errors, dropped.items)


def test_a_stream_of_ours_can_be_filtered_on_a_subject() -> None:
    """Events go on into a Subject of the user's."""
    subject: EventSubject[Any] = EventSubject()
    seen = watch(ChatStream(subject).text())
    chat(DATA).to_observable().subscribe(subject)
    subject.on_next(Heartbeat())
    assert ["0 ", "1 ", "2 "] == seen.items
