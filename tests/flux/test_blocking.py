"""block(), block_first(), block_last(): the same pipeline on the loop of one private thread."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from semflux.errors import TotalTimeoutError, TruncatedStreamError
from semflux.flux import Flux, SignalType
from semflux.flux.blocking import THREAD_NAME, run_blocking, shutdown
from tests.flux.answers import DATA, FRAMES, TYPES, Chunks, chat
from tests.operators.watching import Probe, plain


@pytest.fixture(autouse=True)
def no_thread() -> Iterator[None]:
    # A test of another file may have made the thread in this process, and it stays.
    shutdown()
    yield
    shutdown()


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD_NAME]


def test_blocking_calls_give_first_and_last() -> None:
    """None where there is none; each call is a new subscription."""
    flux = Flux.just(1, 2, 3)
    assert (1, 3, 3) == (flux.block_first(), flux.block_last(), flux.block())
    assert (None, None) == (Flux.empty().block_first(), Flux.empty().block())
    assert 1 == flux.next().block(5)
    assert TYPES[-1] == getattr(chat(DATA).block_last(), "type", None)
    assert "0 1 2 " == chat(DATA).response().block().text


def test_block_first_cancels_the_rest() -> None:
    """As `take(1)` does."""
    probe = Probe(1, 2, 3)
    assert 1 == Flux(probe.source).block_first()
    assert ([1], 1) == (probe.emitted, probe.disposed)


def test_one_thread_serves_all_calls() -> None:
    """So connections are used again; it is made anew after a shutdown, which may be called twice."""
    assert [] == threads()
    Flux.just(1).block()
    first = threads()
    Flux.just(1).block()
    assert first == threads()
    assert (1, True) == (len(first), first[0].daemon)
    shutdown()
    shutdown()
    assert [] == threads()
    assert 1 == Flux.just(1).block()
    assert first != threads()


def test_errors_are_raised_as_they_are() -> None:
    """The very object, of any class; a TimeoutError of the stream's own is no timeout of the call."""
    for failure in (ValueError("mine"), TotalTimeoutError("the stream's own"), TimeoutError("plain")):
        with pytest.raises(type(failure)) as caught:
            Flux.error(failure).block(5)
        assert caught.value is failure
    with pytest.raises(TruncatedStreamError) as broken:
        chat(DATA[:300]).block()
    assert broken.value.partial is not None


@pytest.mark.parametrize("name", ["block", "block_first", "block_last", "next().block"])
def test_a_timeout_cancels_the_stream(name: str) -> None:
    """The source is closed before the call returns."""
    probe, told = Probe(ends=False), list[Any]()
    flux: Any = Flux(probe.source).do_finally(told.append)
    call = flux.next().block if name == "next().block" else getattr(flux, name)
    with pytest.raises(
        TotalTimeoutError, match=r"\(timeout=0.01\) ran out after 0.01 s; the stream was cancelled"
    ) as caught:
        call(0.01)
    assert (1, [SignalType.CANCEL], "sink") == (probe.disposed, told, caught.value.phase)


def test_a_source_that_waits_is_closed_by_a_timeout() -> None:
    """Its own clean-up is waited for."""
    chunks = Chunks(*FRAMES[:2], endless=True)
    with pytest.raises(TotalTimeoutError):
        chat(chunks.agen()).block(timeout=0.02)
    assert 1 == chunks.closed


def test_ctrl_c_cancels_the_stream() -> None:
    """KeyboardInterrupt goes on in the caller."""
    probe = Probe(ends=False)

    main = threading.main_thread().ident
    assert main is not None
    thread = threading.Timer(0.02, signal.pthread_kill, (main, signal.SIGINT))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        Flux(probe.source).block()
    thread.join()
    assert 1 == probe.disposed


def test_a_failure_after_the_timeout_is_not_left_unseen() -> None:
    """A coroutine that answers a cancel with an error: nobody asks for it any more."""

    async def stubborn() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            raise ValueError("late") from None

    with pytest.raises(TotalTimeoutError):
        run_blocking(stubborn(), 0.01, "stubborn")


def test_blocking_calls_from_many_threads() -> None:
    """They share the loop, and do not wait for each other."""
    results: list[Any] = []
    gate = threading.Barrier(4)

    def call(i: int) -> None:
        gate.wait(5)
        results.append(Flux(plain.timer(0.01)).map(lambda _: i).block(5))

    workers = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(5)
    assert [0, 1, 2, 3] == sorted(results)


def test_a_shutdown_cancels_what_runs() -> None:
    """Its connections are closed; the call that waited is told by a cancellation."""
    probe, told = Probe(ends=False), list[Any]()

    def call() -> None:
        try:
            Flux(probe.source).do_on_next(told.append).block()
        except asyncio.CancelledError as error:
            told.append(type(error))

    thread = threading.Thread(target=call)
    thread.start()
    while not probe.subscribed:
        time.sleep(0.001)
    shutdown()
    thread.join(5)
    assert (1, [asyncio.CancelledError]) == (probe.disposed, told)


def test_blocking_inside_a_callback_of_a_synchronous_stream() -> None:
    """No loop runs there: it works."""
    seen: list[Any] = []
    chat(DATA).text().take(1).subscribe(lambda _: seen.append(Flux.just(7).block()))
    assert [7] == seen
