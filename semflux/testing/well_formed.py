"""`assert_well_formed`: the rules of order, with a report that shows where they are broken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from semflux.contract import Checker, Violation
from semflux.events import ChatEvent

_AROUND = 3  # events shown on each side of one that breaks a rule, where a stream is long
_SHORT = 40  # events of a stream that is shown whole


def assert_well_formed(
    events: Iterable[ChatEvent], *, seq: Literal["exact", "rising", "ignored"] = "exact"
) -> None:
    """Check that *events* are one legal stream, from RESPONSE_START to its terminal event.

    *seq*: "exact" for all events of a stream; "rising" for what a filter let through; "ignored" for events
    that were made by hand.

    Raises:
        AssertionError: if a rule of order is broken. Its text has the events, numbered, with the rules
            at the events that break them.
    """
    checker = Checker(seq=seq)
    lines: list[str] = []
    found: dict[int, list[Violation]] = {}
    seen = 0
    for place, event in enumerate(events):
        lines.append(_line(place, event))
        checker.check(event)
        if len(checker.violations) > seen:
            found[place] = list(checker.violations[seen:])
            seen = len(checker.violations)
    last = list(checker.finish()[seen:])
    if not found and not last:
        return
    shown = {place for place in range(len(lines)) if _near(place, len(lines), found)}
    report = [f"these {len(lines)} events break the rules of order ({seen + len(last)} times):"]
    for place, line in enumerate(lines):
        if place in shown:
            report.append(line)
            report += [_mark(violation) for violation in found.get(place, [])]
        elif place - 1 in shown or place == 0:
            report.append("        ...")
    report += [f"        (the end)\n{_mark(violation)}" for violation in last]
    raise AssertionError("\n".join(report))


def _near(place: int, count: int, found: dict[int, list[Violation]]) -> bool:
    return count <= _SHORT or place >= count - _AROUND or any(abs(place - each) <= _AROUND for each in found)


def _line(place: int, event: ChatEvent) -> str:
    parts = [event.type.value]
    if event.step:
        parts.append(f"step {event.step}")
    if event.tool_call_id:
        parts.append(event.tool_call_id)
    if event.item_id or event.index is not None:
        parts.append(f"{{{event.item_id or ''},{'' if event.index is None else event.index}}}")
    if event.text:
        parts.append(repr(event.text if len(event.text) <= 40 else f"{event.text[:40]}..."))
    return f"{place:6}  {' '.join(parts)}"


def _mark(violation: Violation) -> str:
    return f"      ^ rule {violation.rule}: {violation.message}"


__all__ = ("assert_well_formed",)
