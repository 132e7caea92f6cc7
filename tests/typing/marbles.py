"""Types of the marbles in `semflux.testing`. Only checked, never run."""

from __future__ import annotations

from typing import Any, assert_type

from semflux import Flux
from semflux.clock import VirtualClock
from semflux.testing import (
    Diagram,
    Marbles,
    Mark,
    from_marbles,
    marble_svg,
    marble_text,
    operator_svg,
    record,
    record_async,
)


def make(clock: VirtualClock) -> Flux[int]:
    return Flux.just(1)


async def marbles() -> None:
    assert_type(from_marbles("--a|", {"a": 1}, step=0.1), Flux[Any])
    assert_type(record(Flux.just(1), cancel_at=2), Marbles)
    assert_type(await record_async(make), Marbles)
    assert_type(Marbles.parse("--a|").marks, tuple[Mark, ...])
    assert_type(marble_text([1, "a", None]), str)
    assert_type(marble_svg(Marbles.parse("--a|"), title="one"), str)
    assert_type(Diagram.of("take(1)", lambda source: source.take(1), "--a|", make, Flux.just(1)), Diagram)
    assert_type(operator_svg("take(1)", lambda source: source.take(1), "--a|"), str)
