"""tap, log, name, checkpoint."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from semflux import Flux
from semflux.events import TextDelta
from semflux.operators import SignalListener
from tests.operators.watching import END, Probe, error, hooked, item, raising, signals

FAILURE, OTHER = ValueError("mine"), TypeError("other")


class Listener(SignalListener[Any]):
    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def on_subscribe(self) -> None:
        self.log.append("subscribe")

    def on_next(self, item: Any) -> None:
        self.log.append(item)

    def on_error(self, error: Exception) -> None:
        self.log.append(error)

    def on_complete(self) -> None:
        self.log.append("complete")

    def on_cancel(self) -> None:
        self.log.append("cancel")


def test_a_listener_is_told_every_signal() -> None:
    """One for each subscription."""
    for source, told in (
        (Flux.just(1), [1, "complete"]),
        (Flux.error(FAILURE), [FAILURE]),
        (Flux.just(1, 2).concat_with(Flux.just(3)), [1, "cancel"]),
    ):
        log: list[Any] = []
        flux = source.tap(lambda: Listener(log))  # noqa: B023  # called in this turn
        signals(flux.take(1) if told[-1] == "cancel" else flux)
        assert ["subscribe", *told] == log


def test_a_listener_that_knows_nothing_changes_nothing() -> None:
    for source in (Flux.just(1), Flux.error(FAILURE), Flux.just(1, 2).take(1)):
        assert signals(source) == signals(source.tap(SignalListener))
    assert [item(1), END] == signals(Flux.just(1, 2).tap(SignalListener).take(1))


@pytest.mark.parametrize("method", ["on_subscribe", "on_next", "on_complete"])
def test_what_a_listener_raises_is_the_error(method: str) -> None:
    """After the source is cancelled."""
    listener = SignalListener[Any]()
    setattr(listener, method, raising(FAILURE))
    probe = Probe(1, 2)
    assert error(FAILURE) == signals(Flux.from_(probe.source).tap(lambda: listener))[-1]
    assert 1 == probe.disposed


def test_what_a_listener_raises_at_an_error_takes_its_place() -> None:
    """At a cancel it goes to the hook."""
    listener: Any = SignalListener[Any]()
    listener.on_error = raising(OTHER)
    listener.on_cancel = raising(FAILURE)
    assert [error(OTHER)] == signals(Flux.error(FAILURE).tap(lambda: listener))
    assert OTHER.__context__ is FAILURE
    with hooked() as dropped:
        assert [item(1), END] == signals(Flux.just(1, 2).tap(lambda: listener).take(1))
    assert [FAILURE] == dropped.errors
    assert [error(OTHER)] == signals(Flux.just(1).tap(raising(OTHER)))


def test_a_log_tells_types_and_never_texts(caplog: pytest.LogCaptureFixture) -> None:
    """Unless it is told to."""
    caplog.set_level(logging.INFO, logger="semflux.stream")
    secret = ValueError("sesame")
    source = Flux.just(TextDelta("sesame"), "sesame").concat_with(Flux.error(secret))
    signals(source.log("answers"))
    assert [
        "answers: subscribed",
        "answers: next TEXT_DELTA",
        "answers: next str",
        "answers: error ValueError",
    ] == caplog.messages
    caplog.clear()
    signals(Flux.just("sesame", 2).log(level="full").take(1))
    signals(Flux.error(secret).log(level="full"))
    signals(Flux.empty().log(logger=logging.getLogger("semflux.stream")))
    assert [
        "stream: subscribed",
        "stream: next 'sesame'",
        "stream: cancelled",
        "stream: subscribed",
        "stream: error ValueError('sesame')",
        "stream: subscribed",
        "stream: complete",
    ] == caplog.messages


def test_an_error_says_through_which_part_of_the_chain_it_came() -> None:
    """Once, however often it comes; items and the end pass."""
    failure = ValueError("mine")
    flux = Flux.error(failure).name("answers").checkpoint("after the parser")
    for _ in range(2):
        assert [error(failure)] == signals(flux)
    assert [
        "semflux: in the stream 'answers'",
        "semflux: passed the checkpoint 'after the parser'",
    ] == failure.__notes__
    assert [item(1), END] == signals(Flux.just(1).checkpoint("here"))
