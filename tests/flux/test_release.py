"""What a subscription that is over still holds: nothing."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from semflux.flux import Flux
from tests.flux.answers import FRAMES, TYPES, Chunks, chat, settle
from tests.operators.watching import Probe, raising


class StopError(Exception):
    """What a subscriber raises."""


def test_a_subscription_that_is_over_holds_nothing() -> None:
    """Rule 3.13: source, chain and callbacks are free after a dispose, an end, an error or a raise, even if
    the subscription is kept."""

    class Callback:
        def __init__(self, raises: bool = False) -> None:
            self.raises = raises

        def __call__(self, *_: Any) -> Any:
            if self.raises:
                raise StopError
            return True

    for end in ("dispose", "complete", "error", "raise"):
        probe = Probe(1, 2, fails=ValueError("x") if end == "error" else None, ends=end == "complete")
        callbacks = [Callback(end == "raise"), Callback(), Callback(), Callback(), Callback()]
        chain = Flux(probe.source).filter(callbacks[1]).map(callbacks[2]).do_finally(callbacks[3])
        kept = chain.subscribe(callbacks[0], callbacks[4], callbacks[4])
        kept.dispose()
        dead = [weakref.ref(each) for each in (probe, *callbacks)]
        del probe, callbacks, chain
        gc.collect()
        assert [None] * 6 == [ref() for ref in dead], end


async def test_a_pulled_stream_that_is_over_holds_nothing() -> None:
    """Nor does an iterator that was closed and is kept."""
    chunks = Chunks(*FRAMES)
    source = chunks.agen()
    dead = weakref.ref(source)
    events = aiter(chat(source).map(lambda e: e.type))
    assert TYPES[:4] == [await anext(events) for _ in range(4)]
    await events.aclose()
    del source
    gc.collect()
    assert (None, 1) == (dead(), chunks.closed)


def test_an_interrupt_closes_a_synchronous_source() -> None:
    """KeyboardInterrupt passes through `subscribe`, and leaves nothing open."""
    chunks = Chunks(*FRAMES)
    with pytest.raises(KeyboardInterrupt):
        chat(chunks.sync()).text().subscribe(raising(KeyboardInterrupt()))  # type: ignore[arg-type]  # it never returns
    assert 1 == chunks.closed


async def test_a_loop_that_ends_cancels_its_streams() -> None:
    """A subscription that nobody disposed of is cancelled as any task is."""
    chunks, told = Chunks(*FRAMES[:2], endless=True), list[Any]()

    async def main() -> None:
        chat(chunks.agen()).do_finally(told.append).subscribe(lambda _: None)
        await chunks.waiting.wait()
        for task in asyncio.all_tasks():
            if task.get_name() == "semflux-pump":
                task.cancel()
        await settle()

    await asyncio.to_thread(asyncio.run, main())
    assert 1 == chunks.closed
