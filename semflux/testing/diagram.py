"""`Diagram`: an operator at work: what came in, and what it made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import attrs
from reactivex import abc

from semflux.clock import VirtualClock
from semflux.flux import Flux
from semflux.testing.clocks import SteppedClock
from semflux.testing.marble_svg import picture_of
from semflux.testing.marbles import Marbles, lines_of
from semflux.testing.recording import Notes, Subscriber, from_marbles, noted, play, stream_of
from semflux.testing.verification import run_here

Source = str | Marbles | abc.ObservableBase[Any] | Callable[[VirtualClock], abc.ObservableBase[Any]]
"""What comes in: a text of marbles, a stream, or a function that makes one for the clock."""

_Made = abc.ObservableBase[Any]
Operator = (
    Callable[[], _Made]
    | Callable[[Flux[Any]], _Made]
    | Callable[[Flux[Any], Flux[Any]], _Made]
    | Callable[[Flux[Any], Flux[Any], Flux[Any]], _Made]
    | Callable[[Flux[Any], Flux[Any], Flux[Any], Flux[Any]], _Made]
)
"""What makes the result of the sources, of which there are four at most."""


@attrs.frozen
class Diagram:
    """An operator at work.

    ```python
    take = Diagram.of("take(2)", lambda source: source.take(2), "--1--2--3--|")
    print(take)                 # --1--(2 !)        take(2)
    take.svg()                  # a picture
    ```
    """

    call: str
    """The operator, as one writes it."""
    inputs: tuple[Marbles, ...]
    """What each source gave, and when it was cancelled."""
    results: tuple[Marbles, ...]
    """What each subscriber got."""

    @staticmethod
    async def of_async(
        call: str,
        operator: Operator,
        *sources: Source,
        seconds: float = 3600.0,
        joins: Iterable[float] = (0.0,),
        cancel_at: float | None = None,
    ) -> Diagram:
        """As `of`, in a coroutine."""
        clock = SteppedClock()
        notes = [Notes(clock) for _ in sources]
        make = cast("Callable[..., abc.ObservableBase[Any]]", operator)
        stream = make(
            *[noted(_stream(source, clock), note) for source, note in zip(sources, notes, strict=True)]
        )
        subscribers = [Subscriber(clock, stream, when, cancel_at) for when in joins]
        await play(clock, subscribers, seconds)
        return Diagram(
            call,
            tuple([note.marbles for note in notes]),
            tuple([subscriber.marbles for subscriber in subscribers]),
        )

    @staticmethod
    def of(
        call: str,
        operator: Operator,
        *sources: Source,
        seconds: float = 3600.0,
        joins: Iterable[float] = (0.0,),
        cancel_at: float | None = None,
    ) -> Diagram:
        """Run `operator(*sources)`, each source a `Flux`, on a virtual clock, and write down what comes where.

        *joins*: when somebody subscribes, in seconds, one line each; *cancel_at*: when they cancel; *seconds*: how long
        it goes on at most.

        Raises:
            BlockingInLoopError: inside a running loop: `await Diagram.of_async(...)` there.
        """
        coroutine = Diagram.of_async(
            call, operator, *sources, seconds=seconds, joins=joins, cancel_at=cancel_at
        )
        return run_here(coroutine, "Diagram.of", "Diagram.of_async")

    def text(self) -> str:
        """Its lines: what comes in, with the call beside it, then what comes out."""
        lines = lines_of([*self.inputs, *self.results])
        if not self.inputs:
            return "\n".join([self.call, *lines])
        ends = len(self.inputs) - 1
        lines[ends] += f"        {self.call}"
        return "\n".join(lines)

    def svg(self, *, title: str | None = None) -> str:
        """Its picture, as an SVG file that needs nothing else. *title* is read out in place of it; default: the call."""
        return picture_of(self.call, self.inputs, self.results, title=title)

    def __str__(self) -> str:
        return self.text()


def operator_svg(
    call: str,
    operator: Operator,
    *sources: Source,
    seconds: float = 3600.0,
    joins: Iterable[float] = (0.0,),
    cancel_at: float | None = None,
) -> str:
    """`Diagram.of(...).svg()`."""
    return Diagram.of(call, operator, *sources, seconds=seconds, joins=joins, cancel_at=cancel_at).svg()


def _stream(source: Source, clock: VirtualClock) -> abc.ObservableBase[Any]:
    if isinstance(source, str | Marbles):
        return from_marbles(source, clock=clock)
    return stream_of(source, clock)


__all__ = ("Diagram", "Operator", "Source", "operator_svg")
