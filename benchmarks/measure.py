"""How a race is run and shown: CPU time, all contestants interleaved, medians, ratios of the same round.

Machines swing by a factor of two, within seconds. So contestants take turns, each ratio is taken inside one
round, and the median over the rounds is what counts.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import asdict, dataclass, field

_MIN_SECONDS = 0.02
"""CPU time below which a turn is several passes."""


@dataclass
class Contestant:
    """Something that goes over a stream once when it is called."""

    name: str
    run: Callable[[], object]
    peer: bool = False
    """True for other libraries: two orders slower, so they take part in the first rounds only."""


@dataclass
class Result:
    """The turns of one contestant, in microseconds of CPU per frame, or per item."""

    name: str
    rounds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def best(self) -> float:
        return min(self.rounds)

    def ratio(self, other: Result) -> float:
        """How many times *other* this is: the median over the rounds that both were in."""
        return statistics.median(
            mine / theirs for mine, theirs in zip(self.rounds, other.rounds, strict=False)
        )


def race(
    contestants: Sequence[Contestant], frames: int, rounds: int, *, peer_rounds: int = 5
) -> dict[str, Result]:
    """Let *contestants* take turns; results by name, without those that fail, which is told."""
    repeats: dict[str, int] = {}
    results: dict[str, Result] = {}
    for contestant in contestants:
        try:
            seconds = _turn(contestant, 1)
        except Exception as error:  # whatever a peer raises: the others go on
            if not contestant.peer:
                raise
            print(
                f"  {contestant.name}: left out, it raised {type(error).__name__}: {error}", file=sys.stderr
            )
            continue
        repeats[contestant.name] = max(1, round(_MIN_SECONDS / max(seconds, 1e-6)))
        results[contestant.name] = Result(contestant.name)
    for number in range(rounds):
        order = [c for c in contestants if c.name in results and not (c.peer and number >= peer_rounds)]
        for contestant in order if number % 2 == 0 else reversed(order):
            times = repeats[contestant.name]
            results[contestant.name].rounds.append(_turn(contestant, times) / times / frames * 1e6)
    return results


def _turn(contestant: Contestant, times: int) -> float:
    gc.collect()  # nobody pays for another's garbage
    start = time.process_time()
    for _ in range(times):
        contestant.run()
    return time.process_time() - start


def show_race(
    title: str, results: dict[str, Result], limit: str, ours: str, own: Container[str], unit: str
) -> None:
    """One row for each contestant; those that are not of our *own* beside *ours* too."""
    print(f"\n{title}")
    rows = [
        (
            r.name,
            number(r.median),
            number(r.best),
            number(r.ratio(results[limit])),
            "" if r.name in own else number(r.ratio(results[ours])),
        )
        for r in results.values()
    ]
    table((f"us CPU per {unit}", "median", "best", "to limit", "to ours by Rx"), rows)


def race_as_dict(results: dict[str, Result], limit: str) -> dict[str, dict[str, float]]:
    return {
        r.name: {"median": r.median, "best": r.best, "to_limit": r.ratio(results[limit])}
        for r in results.values()
    }


@dataclass
class Goal:
    """A goal of the project beside what came out."""

    what: str
    goal: str
    aim: str
    got: float
    met: bool
    unit: str = ""

    @classmethod
    def at_most(cls, what: str, got: float, goal: float, aim: float | None = None, unit: str = "") -> Goal:
        return cls(what, f"<= {goal:g}", "" if aim is None else f"{aim:g}", got, got <= goal, unit)

    @classmethod
    def at_least(cls, what: str, got: float, goal: float, aim: float | None = None) -> Goal:
        return cls(what, f">= {goal:g}", "" if aim is None else f"{aim:g}", got, got >= goal)


def goals_as_dicts(goals: Sequence[Goal]) -> list[dict[str, object]]:
    return [asdict(goal) for goal in goals]


def show_goals(goals: Sequence[Goal]) -> None:
    print("\ngoals of the project")
    table(
        ("", "goal", "aim", "got", ""),
        [(g.what, g.goal, g.aim, f"{g.got:.3g}{g.unit}", "ok" if g.met else "MISSED") for g in goals],
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print *rows* under *head*: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        cells = [
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join(cells).rstrip())


def number(value: float | None) -> str:
    """Three digits that mean something; "-" for None."""
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"
