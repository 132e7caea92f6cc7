"""using: a resource lives as long as the subscription it is for, and its source is closed before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import reactivex

from semflux import Flux, Mono
from semflux.operators.using import using
from semflux.testing import check_operator
from tests.flux.answers import FRAMES, TYPES, Chunks, chat
from tests.operators.watching import END, Probe, error, hooked, item, raising, signals

FAILURE, CLEANUP = ValueError("mine"), KeyError("of the clean-up")


class Opened:
    """Resources that were opened, in a log."""

    def __init__(self, log: list[Any] | None = None, raises: Exception | None = None) -> None:
        self.log: list[Any] = [] if log is None else log
        self.raises = raises
        self.count = 0

    def open(self) -> int:
        self.count += 1
        self.log.append(f"open {self.count}")
        return self.count

    def close(self, resource: int) -> None:
        self.log.append(f"close {resource}")
        if self.raises is not None:
            raise self.raises


def make_of(source: Any) -> Callable[[int], Any]:
    return lambda _: source


def around(
    source: Any, opened: Opened, *, eager: bool = True, make: Callable[[int], Any] | None = None
) -> Flux[Any]:
    flux = Flux.using(opened.open, make or make_of(source), opened.close, eager=eager)
    return flux.do_finally(lambda signal: opened.log.append(str(signal)))


@pytest.mark.parametrize("eager", [True, False])
def test_a_source_with_a_resource_keeps_the_contract(eager: bool) -> None:
    check_operator(lambda source: using(lambda: 1, lambda _: source, lambda _: None, eager=eager))


def test_each_subscription_has_a_resource_of_its_own() -> None:
    """The stream is made for it."""
    opened = Opened()
    flux = Flux.using(opened.open, lambda resource: Flux.just(resource, None), opened.close)
    assert [item(1), item(None), END] == signals(flux)
    assert [item(2), item(None), END] == signals(flux)
    assert ["open 1", "close 1", "open 2", "close 2"] == opened.log


@pytest.mark.parametrize("fails", [None, FAILURE])
def test_an_eager_clean_up_comes_before_the_end_and_another_one_after_it(fails: Exception | None) -> None:
    """The end, or the error."""
    for eager, order in ((True, ["close 1", "told"]), (False, ["told", "close 1"])):
        opened = Opened()
        source = Probe(1, fails=fails).source
        flux = Flux.using(opened.open, make_of(source), opened.close, eager=eager)

        def tell(*_: Any, log: list[Any] = opened.log) -> None:
            log.append("told")

        flux.subscribe(None, tell, tell)
        assert ["open 1", *order] == opened.log


def test_an_eager_clean_up_that_raises_is_the_error() -> None:
    """With the error of the stream as its context."""
    assert [item(1), error(CLEANUP)] == signals(around(Probe(1).source, Opened(raises=CLEANUP)))
    raised = KeyError("again")
    assert [error(raised)] == signals(around(Flux.error(FAILURE), Opened(raises=raised)))
    assert FAILURE is raised.__context__


def test_a_late_clean_up_that_raises_is_dropped() -> None:
    """After an end, after an error and after a cancel."""
    with hooked() as dropped:
        assert [item(1), END] == signals(around(Probe(1).source, Opened(raises=CLEANUP), eager=False))
        assert [error(FAILURE)] == signals(around(Flux.error(FAILURE), Opened(raises=CLEANUP), eager=False))
        watch_and_leave(around(Flux.never(), Opened(raises=CLEANUP)))
    assert [CLEANUP] * 3 == dropped.errors


def watch_and_leave(flux: Flux[Any]) -> None:
    flux.subscribe(None).dispose()


def test_leaving_cancels_the_source_then_cleans_up_once() -> None:
    """Before `dispose` returns; also from inside an item."""
    for eager in (True, False):
        opened = Opened()
        probe = Probe(1, ends=False)
        probe.log = opened.log
        subscription = Flux.using(opened.open, make_of(probe.source), opened.close, eager=eager).subscribe(
            None
        )
        subscription.dispose()
        subscription.dispose()
        assert ["open 1", "source disposed", "close 1"] == opened.log

    opened, probe = Opened(), Probe(1, 2, 3)
    probe.log = opened.log
    assert [item(1), END] == signals(Flux.using(opened.open, lambda _: probe.source, opened.close).take(1))
    assert ["open 1", "source disposed", "close 1"] == opened.log


def test_a_clean_up_that_leaves_is_not_called_again() -> None:
    kept: list[Any] = []
    log: list[Any] = []
    source = reactivex.Subject[Any]()

    def close(_: int) -> None:
        log.append("close")
        kept[0].dispose()

    watched: list[Any] = []
    kept.append(
        Flux.using(lambda: 1, lambda _: source, close).subscribe(None, None, lambda: watched.append(END))
    )
    source.on_completed()
    assert (["close"], []) == (log, watched)


def test_what_opening_raises_is_the_error_and_nothing_is_cleaned_up() -> None:
    opened = Opened()
    assert [error(FAILURE)] == signals(Flux.using(raising(FAILURE), lambda _: Flux.just(1), opened.close))
    assert [] == opened.log


def test_what_making_the_stream_raises_is_the_error_after_the_clean_up() -> None:
    opened = Opened()
    assert [error(FAILURE)] == signals(around(None, opened, make=raising(FAILURE)))
    assert ["open 1", "close 1", "ON_ERROR"] == opened.log


@pytest.mark.parametrize("eager", [True, False])
async def test_a_resource_around_a_chat_stream_is_closed_after_it(eager: bool) -> None:
    """When it was read to its end, when it fails, at a break; the connection first."""

    async def read(chunks: Chunks, stop: bool = False) -> tuple[list[str], list[Any]]:
        opened = Opened()

        def close(resource: int) -> None:
            opened.log.append(f"source closed {chunks.closed}")
            opened.close(resource)

        types: list[str] = []
        flux = Flux.using(opened.open, lambda _: chat(chunks.sync()), close, eager=eager)
        try:
            async for event in flux:
                types.append(str(event.type))
                if stop and len(types) == 4:
                    break
        except Exception as failure:
            types.append(type(failure).__name__)
        return types, opened.log

    closed = ["open 1", "source closed 1", "close 1"]
    assert (TYPES, closed) == await read(Chunks(*FRAMES))
    assert (TYPES[:4], closed) == await read(Chunks(*FRAMES), stop=True)
    types, log = await read(Chunks(*FRAMES[:3], fails=OSError("gone")))
    assert ("ERROR", closed) == (types[-2], log)


async def test_a_chat_stream_with_a_resource_is_pulled() -> None:
    """It is read no further than the consumer wants."""
    chunks = Chunks(*FRAMES)
    async with aiter(Flux.using(lambda: 1, lambda _: chat(chunks.agen()), lambda _: None)) as events:
        assert TYPES[:4] == [str((await anext(events)).type) for _ in range(4)]
        assert chunks.asked < len(FRAMES)
    assert 1 == chunks.closed


async def test_a_mono_has_a_resource_too() -> None:
    opened = Opened()
    assert 10 == await Mono.using(opened.open, lambda resource: Mono.just(resource * 10), opened.close)
    assert ["open 1", "close 1"] == opened.log
