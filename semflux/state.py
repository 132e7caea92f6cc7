"""What belongs to one stream and is shared by its stages: ids, counts, the ledger of repairs, the fold.

A stream that recovers from a failure gets new stages for each attempt, over the same `RunState`; so
its order of events, its steps and its usage go on.
"""

from __future__ import annotations

import os
import time as _time
from collections.abc import Callable

import attrs

from semflux.errors import RepairError
from semflux.events import Origin
from semflux.fold import Fold
from semflux.response import RepairReport
from semflux.usage import Pricer
from semflux.wire.limits import Limits


@attrs.frozen(kw_only=True)
class Boundaries:
    """Which boundaries a wire format has. One that it lacks is *implied*: marked, never a repair."""

    text_start: bool = False
    """A text block has a start of its own."""
    text_end: bool = False
    """A text block has an end of its own; so a call that starts does not end it."""
    thinking_start: bool = False
    """A block of reasoning has a start of its own."""
    thinking_end: bool = False
    """A block of reasoning has an end of its own."""
    tool_start: bool = False
    """A call has a start of its own: its fragments need not wait for a name."""
    tool_end: bool = False
    """A call has an end of its own, before the finish signal."""
    tool_ids: bool = False
    """Every call has an id; so a made-up one is a repair."""
    server_pairs: bool = False
    """Each result of a server tool has a start, and each start a result, in the same answer."""


IMPLIED = Boundaries()
"""A format without any boundary."""


class RepairLedger:
    """Counts departures of a provider from its format, and notes; in strict mode the first one raises."""

    __slots__ = ("_report", "notes", "repairs", "strict")

    def __init__(self, *, strict: bool = False) -> None:
        self.strict: bool = strict
        self.repairs: dict[str, int] = {}
        self.notes: dict[str, int] = {}
        self._report: RepairReport | None = None

    def repair(self, kind: str, what: str) -> None:
        """Count a repair. *what* says in a few words what the provider did, without its content.

        Raises:
            RepairError: in strict mode.
        """
        self.count(kind)
        if self.strict:
            raise RepairError(
                f"the provider departed from its own format: {what}; strict mode does not mend it", kind=kind
            )

    def count(self, kind: str) -> None:
        """Count a repair where it is too late to fail: after the end of the stream."""
        self.repairs[kind] = self.repairs.get(kind, 0) + 1
        self._report = None

    def note(self, kind: str, count: int = 1) -> None:
        """Count something that is no departure."""
        self.notes[kind] = self.notes.get(kind, 0) + count
        self._report = None

    def report(self) -> RepairReport:
        """The counts as of now."""
        if self._report is None:
            self._report = RepairReport(self.repairs, self.notes)
        return self._report


def new_response_id() -> str:
    """An id that no other stream has."""
    return f"sf_{os.urandom(16).hex()}"


class RunState:
    """The shared state of one stream."""

    __slots__ = (
        "attempt",
        "boundaries",
        "fold",
        "folds",
        "ledger",
        "limits",
        "origin",
        "response_id",
        "seq",
        "started",
        "step",
        "time",
        "tool_ids",
    )

    def __init__(
        self,
        *,
        response_id: str | None = None,
        strict: bool = False,
        limits: Limits | None = None,
        boundaries: Boundaries = IMPLIED,
        time: Callable[[], float] = _time.time,
        pricer: Pricer | None = None,
    ) -> None:
        self.response_id: str = new_response_id() if response_id is None else response_id
        """Our id of the stream."""
        self.seq: int = 0
        """The place that the next delivered event gets."""
        self.started: bool = False
        """True once RESPONSE_START was made."""
        self.tool_ids: set[str] = set()
        """Ids of calls that subscribers have seen."""
        self.attempt: int = 1
        """Which attempt at the current call of the model this is, from 1."""
        self.step: int = -1
        """The number of the latest step; -1 before the first."""
        self.ledger: RepairLedger = RepairLedger(strict=strict)
        self.limits: Limits = limits or Limits()
        self.boundaries: Boundaries = boundaries
        """What the dialect of the current attempt has."""
        self.origin: Origin = Origin(response_id=self.response_id)
        """What the provider has said of itself so far, for events that are made when it fails."""
        self.time: Callable[[], float] = time
        """Seconds since 1970."""
        self.fold: Fold = Fold(self.response_id, self.limits, self.ledger.report, pricer)
        """What the events came to so far."""
        self.folds: dict[object, Fold] = {}
        """The same, below operators that change what they say: by operator, since each attempt of a stream that recovers
        gets an operator anew, and its response goes on."""

    def configure(
        self,
        *,
        ledger: RepairLedger | None = None,
        limits: Limits | None = None,
        pricer: Pricer | None = None,
        time: Callable[[], float] | None = None,
    ) -> None:
        """Settings of the source, before its first event; what is None stays as it is."""
        self.ledger = ledger or self.ledger
        self.limits = limits or self.limits
        self.time = time or self.time
        self.fold = Fold(self.response_id, self.limits, self.ledger.report, pricer)


__all__ = ("IMPLIED", "Boundaries", "RepairLedger", "RunState", "new_response_id")
