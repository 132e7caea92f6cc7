"""using_when: a resource that is opened and closed by waiting; an end waits for the clean-up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from semflux import Flux, Mono
from semflux.errors import ConfigurationError, OperatorError
from semflux.operators.using_when import using_when
from semflux.testing import check_operator
from tests.flux.answers import FRAMES, TYPES, Chunks, chat, settle
from tests.operators.resources import OPENED, Session
from tests.operators.watching import END, Probe, error, hooked, item, raising, signals, watch

FAILURE, CLEANUP = ValueError("mine"), KeyError("of the clean-up")


def test_a_source_with_an_asynchronous_resource_keeps_the_contract() -> None:
    """Where nothing has to be waited for."""
    check_operator(lambda source: using_when(Flux.just(1), lambda _: source, lambda _: None))


async def test_an_end_goes_down_when_its_clean_up_has_ended() -> None:
    """The end, or the error; one clean-up of three."""
    for source, cleaned, end in (
        (Flux.just(1), "complete", END),
        (Flux.error(FAILURE), "error mine", error(FAILURE)),
    ):
        session = Session(waits=True)
        watcher = watch(session.around(source))
        await settle()
        assert [*OPENED, f"{cleaned}..."] == session.log
        assert end not in watcher.signals
        session.may_close.set()
        await settle()
        assert ([*OPENED, f"{cleaned}...", cleaned], end) == (session.log, watcher.signals[-1])


async def test_a_consumer_that_pulls_waits_for_the_clean_up() -> None:
    session = Session()
    assert [1, 2] == [each async for each in session.around(Flux.just(1, 2))]
    assert "complete" == session.log[-1]
    session = Session()
    with pytest.raises(ValueError, match="mine"):
        await session.around(Flux.error(FAILURE)).collect_list()
    assert "error mine" == session.log[-1]


async def test_a_clean_up_that_raises_is_the_error() -> None:
    """With the error of the stream as its context."""
    with pytest.raises(KeyError):
        await Session(raises=KeyError("first")).around(Flux.just(1)).collect_list()
    with pytest.raises(KeyError) as caught:
        await Session(raises=KeyError("second")).around(Flux.error(FAILURE)).collect_list()
    assert FAILURE is caught.value.__context__


async def test_a_clean_up_that_is_cancelled_is_an_error() -> None:
    """From outside of the stream."""

    async def cancelled(_: int) -> None:
        raise asyncio.CancelledError

    with pytest.raises(OperatorError, match="clean-up was cancelled"):
        await Flux.using_when(Flux.just(1), lambda _: Flux.just(2), cancelled).collect_list()


async def test_what_opening_raises_is_the_error() -> None:
    """As is what making the stream raises, after the clean-up."""
    closed: list[Any] = []

    async def refuses() -> int:
        raise FAILURE

    with pytest.raises(ValueError, match="mine"):
        await Flux.using_when(refuses, lambda _: Flux.just(1), closed.append).collect_list()
    assert [] == closed
    with pytest.raises(ValueError, match="mine"):
        await Flux.using_when(Session().open, raising(FAILURE), closed.append).collect_list()
    assert 1 == len(closed)


def test_the_resource_may_be_the_first_item_of_a_stream() -> None:
    """Which is cancelled then; without one there is only the end, and an error is the error."""
    log: list[Any] = []

    def flux(resource: Any) -> Flux[int]:
        return Flux.using_when(resource, lambda given: Flux.just(given * 10), log.append)

    probe = Probe(1, 2)
    assert [item(10), END] == signals(flux(probe.source))
    assert (1, [1]) == (probe.disposed, log)
    assert [item(30), END] == signals(flux(Mono.just(3)))
    assert [END] == signals(flux(Flux.empty()))
    assert [error(FAILURE)] == signals(flux(Flux.error(FAILURE)))
    waiting = Probe(ends=False)
    flux(waiting.source).subscribe(None).dispose()
    assert (1, [1, 3]) == (waiting.disposed, log)


def test_one_clean_up_does_for_all_ends() -> None:
    log: list[Any] = []

    def flux(source: Any) -> Flux[int]:
        return Flux.using_when(Flux.just(1), lambda _: source, log.append)

    assert [END] == signals(flux(Flux.empty()))
    assert [error(FAILURE)] == signals(flux(Flux.error(FAILURE)))
    flux(Flux.never()).subscribe(None).dispose()
    assert [1, 1, 1] == log


def test_a_clean_up_without_a_loop_to_wait_in_is_told() -> None:
    """It is the error; after a cancel it is dropped."""

    async def close(_: int) -> None:
        raise AssertionError

    def flux(source: Any) -> Flux[int]:
        return Flux.using_when(Flux.just(1), lambda _: source, close)

    watcher = watch(flux(Flux.just(2)))
    assert isinstance(watcher.error, ConfigurationError)
    assert "block()" in str(watcher.error)
    with hooked() as dropped:
        flux(Flux.never()).subscribe(None).dispose()
    assert [ConfigurationError] == [type(each) for each in dropped.errors]


class Pool:
    """Async context managers, in a log."""

    def __init__(self, suppresses: bool = False) -> None:
        self.log: list[Any] = []
        self.suppresses = suppresses

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[int]:
        self.log.append("open")
        try:
            yield 1
        except BaseException as failure:
            self.log.append(type(failure).__name__)
            if not self.suppresses:
                raise
        finally:
            await asyncio.sleep(0)
            self.log.append("closed")

    def around(self, source: Any) -> Flux[Any]:
        return Flux.using_when(self.connect, lambda _: source)


async def test_a_context_manager_is_entered_and_left() -> None:
    """With the error of the stream; a cancel is a CancelledError for it. It may make an end of an error."""
    pool = Pool()
    assert [5] == await pool.around(Flux.just(5)).collect_list()
    assert ["open", "closed"] == pool.log
    pool = Pool()
    with pytest.raises(ValueError, match="mine"):
        await pool.around(Flux.error(FAILURE)).collect_list()
    assert ["open", "ValueError", "closed"] == pool.log
    for pool in (Pool(), Pool(suppresses=True)):
        with hooked() as dropped:
            assert 5 == await pool.around(Flux.just(5, 6)).next()
        assert (["open", "CancelledError", "closed"], []) == (pool.log, dropped.errors)
    assert [] == await Pool(suppresses=True).around(Flux.error(FAILURE)).collect_list()


async def test_a_context_manager_that_is_really_cancelled_says_so() -> None:
    """Not by the cancel of its stream."""

    class Manager:
        async def __aenter__(self) -> int:
            return 1

        async def __aexit__(self, *_: object) -> None:
            raise asyncio.CancelledError

    with hooked() as dropped:
        assert 5 == await Flux.using_when(Manager, lambda _: Flux.just(5, 6)).next()
    assert [OperatorError] == [type(each) for each in dropped.errors]


async def test_wrong_resources_are_told() -> None:
    """With what to write instead."""
    wrong: Any = Flux.using_when
    with pytest.raises(ConfigurationError, match="complete"):
        wrong(Pool().connect, lambda _: Flux.just(1), error=lambda *_: None)
    with pytest.raises(ConfigurationError, match="using\\(\\)"):
        await wrong(lambda: 1, lambda _: Flux.just(1), lambda _: None).collect_list()
    with pytest.raises(ConfigurationError, match="context manager"):
        await wrong(lambda: 1, lambda _: Flux.just(1)).collect_list()


async def test_a_chat_stream_is_closed_before_its_resource() -> None:
    """When it was read to its end, when it fails, at a break."""

    async def read(chunks: Chunks, stop: bool = False) -> tuple[list[str], list[Any]]:
        session = Session()
        seen: list[Any] = []

        async def close(given: Session) -> None:
            seen.append(f"source closed {chunks.closed}")
            await given.complete()

        types: list[str] = []
        try:
            async with aiter(Flux.using_when(session.open, lambda _: chat(chunks.agen()), close)) as events:
                async for event in events:
                    types.append(str(event.type))
                    if stop and len(types) == 4:
                        break
        except Exception as failure:
            types.append(type(failure).__name__)
        assert "complete" == session.log[-1]
        return types, seen

    assert (TYPES, ["source closed 1"]) == await read(Chunks(*FRAMES))
    assert (TYPES[:4], ["source closed 1"]) == await read(Chunks(*FRAMES), stop=True)
    types, seen = await read(Chunks(*FRAMES[:3], fails=OSError("gone")))
    assert ("ERROR", ["source closed 1"]) == (types[-2], seen)


async def test_a_chat_stream_with_a_resource_is_pulled() -> None:
    """It is read no further than the consumer wants; its subscribers that do not pull get all."""
    chunks = Chunks(*FRAMES)
    async with aiter(Session().around(chat(chunks.agen()))) as events:
        assert TYPES[:4] == [str((await anext(events)).type) for _ in range(4)]
        assert chunks.asked < len(FRAMES)
    watcher = watch(Session().around(chat(Chunks(*FRAMES).agen())))
    for _ in range(10):
        await settle()
    assert (TYPES, END) == ([str(event.type) for event in watcher.items], watcher.signals[-1])


async def test_block_waits_for_the_clean_up() -> None:
    """In plain code, on the private thread."""
    log: list[str] = []

    async def opened() -> int:
        return 1

    async def close(_: int) -> None:
        await asyncio.sleep(0)
        log.append("closed")

    flux = Flux.using_when(opened, lambda given: Flux.just(given, 2), close)
    assert 1 == await asyncio.to_thread(flux.block_first)
    assert 2 == await asyncio.to_thread(flux.block_last)
    assert ["closed", "closed"] == log


async def test_a_mono_has_an_asynchronous_resource_too() -> None:
    session = Session()
    assert session is await Mono.using_when(session.open, Mono.just, Session.complete)
    assert "complete" == session.log[-1]


def test_a_clean_up_that_raises_at_once_is_the_error() -> None:
    """Where no loop runs, and where one does."""
    flux = Flux.using_when(Flux.just(1), lambda _: Flux.just(2), raising(CLEANUP))
    assert [item(2), error(CLEANUP)] == signals(flux)
    closing = Flux.using_when(Flux.just(1), lambda _: Flux.just(2), Mono.just)
    assert isinstance(watch(closing).error, ConfigurationError)


async def test_a_clean_up_may_be_a_mono() -> None:
    """It is awaited, as whatever can be."""
    closed: list[Any] = []
    flux = Flux.using_when(
        Flux.just(1), lambda _: Flux.just(2), lambda given: Mono.just(given).do_on_next(closed.append)
    )
    assert ([2], [1]) == (await flux.collect_list(), closed)
    failing = Flux.using_when(Flux.just(1), lambda _: Flux.just(2), raising(CLEANUP))
    with pytest.raises(KeyError):
        await failing.collect_list()


async def test_a_context_manager_may_raise_the_cancel_again() -> None:
    """That is no error."""

    class Manager:
        async def __aenter__(self) -> int:
            return 1

        async def __aexit__(self, *failure: object) -> None:
            error: Any = failure[1]
            if error is not None:
                raise error

    with hooked() as dropped:
        assert 5 == await Flux.using_when(Manager, lambda _: Flux.just(5, 6)).next()
    assert [] == dropped.errors
