"""What the stages of one stream share: ids, counts, the ledger of repairs, the fold."""

from __future__ import annotations

import pytest

from semflux.errors import RepairError
from semflux.events import TextDelta, UsageEvent
from semflux.response import RepairReport
from semflux.state import IMPLIED, Boundaries, RepairLedger, RunState, new_response_id
from semflux.usage import Usage
from semflux.wire.limits import Limits


def test_a_ledger_counts_repairs_and_notes_by_kind() -> None:
    """They are told apart: notes are no departures of the provider."""
    ledger = RepairLedger()
    ledger.repair("missing_end", "a block without an end")
    ledger.repair("missing_end", "a block without an end")
    ledger.note("comment")
    ledger.note("comment", 3)

    assert ledger.report() == RepairReport({"missing_end": 2}, {"comment": 4})
    assert ledger.report() is ledger.report()
    assert ledger.report().count == 2


def test_a_report_does_not_change_when_the_ledger_does() -> None:
    """It is what was known at its time."""
    ledger = RepairLedger()
    before = ledger.report()
    ledger.count("after_terminal")

    assert before == RepairReport()
    assert ledger.report() == RepairReport({"after_terminal": 1})


def test_a_strict_ledger_raises_at_the_first_repair() -> None:
    """It is counted, and the error says what the provider did. Notes, and what comes too late, raise nothing."""
    ledger = RepairLedger(strict=True)
    ledger.note("comment")
    ledger.count("after_terminal")

    with pytest.raises(RepairError, match="a call without an id") as caught:
        ledger.repair("made_up_id", "a call without an id")
    assert caught.value.kind == "made_up_id"
    assert ledger.repairs == {"after_terminal": 1, "made_up_id": 1}


def test_every_stream_has_an_id_of_its_own() -> None:
    """Unless it is given one."""
    assert RunState().response_id != RunState().response_id
    assert new_response_id().startswith("sf_")
    assert RunState(response_id="mine").origin.response_id == "mine"


def test_a_new_stream_has_delivered_nothing() -> None:
    """The first seq is 0, the first step will be 0."""
    state = RunState()

    assert (state.seq, state.step, state.boundaries, state.ledger.strict) == (0, -1, IMPLIED, False)
    assert state.time() > 1_700_000_000
    assert Boundaries() == IMPLIED


def test_the_response_has_the_counts_of_the_streams_own_ledger() -> None:
    """Also of one that the source has set."""
    state = RunState(strict=True)
    state.configure(ledger=RepairLedger())
    state.ledger.repair("x", "y")

    assert state.fold.response(partial=False).repairs.repairs == {"x": 1}


def test_settings_of_the_source_reach_the_fold() -> None:
    """Limits, prices, the clock; what is None stays."""
    limits = Limits(max_text_chars=5)
    state = RunState(response_id="r")
    state.configure(limits=limits, pricer=lambda usage, model: 0.25, time=lambda: 7.0)
    state.configure()

    assert (state.limits, state.fold.limits, state.time()) == (limits, limits, 7.0)


def test_the_pricer_of_the_source_is_asked() -> None:
    """For each step's usage."""
    state = RunState()
    state.configure(pricer=lambda usage, model: 0.25)
    state.fold.add(TextDelta("a"))
    state.fold.add(UsageEvent(Usage(input_tokens=1)))

    assert state.fold.usage == Usage(input_tokens=1, cost=0.25)
