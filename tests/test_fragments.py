"""Fragments of calls that are known by their index: nearly all of them, so they have a short way of their own."""

from __future__ import annotations

import pytest

from semflux.events import ChatEventType, Origin
from semflux.state import Boundaries
from tests.notation import Machine, draft

T = ChatEventType
IDS = Boundaries(tool_ids=True)


@pytest.mark.parametrize(
    "given, gives",
    [
        ("TOOL~[a:f]1{,0} TOOL~22{,0}", "TOOL+[a:f]{,0}* TOOL~[a]1{,0} TOOL~[a]22{,0}"),
        ("TOOL~[a:f]1{,0} TOOL~[a]22{,0}", "TOOL+[a:f]{,0}* TOOL~[a]1{,0} TOOL~[a]22{,0}"),
        ("TOOL~[a:f]1{,0} TOOL~{,0}", "TOOL+[a:f]{,0}* TOOL~[a]1{,0}"),
        ("TOOL~[a:f]1{x,0} TOOL~22{y,0}", "TOOL+[a:f]{x,0}* TOOL~[a]1{x,0} TOOL~[a]22{x,0}"),
        ("TOOL~[a:f]\ud83d{,0} TOOL~bb{,0}", "TOOL+[a:f]{,0}* TOOL~[a]\ufffdbb{,0}"),
        ("TOOL~[a:f]1 TOOL~22{x}", "TOOL+[a:f]* TOOL~[a]1 TOOL~[a]22"),
        ("TOOL~[a:f]1 TOOL~22{,0}", "TOOL+[a:f]* TOOL~[a]1 TOOL~[a]22"),
        (
            "TOOL~[a:f]1{,0} TOOL~[b]22{,0} SEAL",
            "TOOL+[a:f]{,0}* TOOL~[a]1{,0} TOOL-[a]{,0}* TOOL+[b]{,0}* TOOL~[b]22{,0} TOOL-[b]{,0}*",
        ),
        (
            "TOOL~[a:f]1{x,0} TOOL~[b:g]2{y,0} TOOL~33{x,0}",
            "TOOL+[a:f]{x,0}* TOOL~[a]1{x,0} TOOL+[b:g]{y,0}* TOOL~[b]2{y,0} TOOL~[a]33{x,0}",
        ),
    ],
)
def test_a_fragment_under_a_known_index_goes_to_the_call_that_it_names(given: str, gives: str) -> None:
    """An id or an item of its own counts for more than the index; what is held comes first."""
    machine = Machine(IDS).feed(given)
    assert gives == machine.shown
    assert {} == machine.repairs


def test_fragments_of_the_short_way_have_the_name_of_their_call() -> None:
    machine = Machine().feed("TOOL~[a:f]1{,0} TOOL~22{,0}")
    assert ["f"] * 3 == [event.name for event in machine.out]


def test_what_waited_for_the_name_is_of_the_call_and_the_frame_that_opened_it() -> None:
    opener = draft("TOOL~[a]1{i,0}", Origin(response_id="r", step=3))
    opener.raw_type = "delta"
    waited = Machine().push(opener).feed("TOOL~[a:f]2{i,0}").out[1]
    assert ("1", "a", "f", "i", 0, "delta", 3) == (
        waited.text, waited.tool_call_id, waited.name, waited.item_id, waited.index, waited.raw_type, waited.step,
    )  # fmt: skip


def test_a_start_with_a_new_id_is_a_call_of_its_own() -> None:
    """A fragment would bring a late id to the call that has none; a start begins."""
    machine = Machine().feed("TOOL+[:f]{,0} TOOL+[a:g]{,0}")
    assert "TOOL+[call_0_0:f]{,0}^ TOOL+[a:g]{,0}" == machine.shown
    assert {} == machine.repairs


def test_a_repeated_id_stays_made_unique_while_the_call_waits_for_its_name() -> None:
    """Each of its fragments says the id that is taken."""
    machine = Machine().feed("TOOL+[a:f] TOOL-[a] TOOL~[a]2{,0} TOOL~[a]33{,0} SEAL")
    starts = [event.tool_call_id for event in machine.out if event.type is T.TOOL_CALL_START]
    assert ["a", "call_0_1"] == starts


def test_a_call_that_ends_before_it_had_a_name_or_id_gets_an_id_by_repair() -> None:
    machine = Machine(IDS).feed("TOOL~1{,0} TOOL-{,0}")
    assert "TOOL+[call_0_0]{,0}^* TOOL~[call_0_0]1{,0} TOOL-[call_0_0]{,0}" == machine.shown
    assert {"made_up_id": 1} == machine.repairs


def test_a_fragment_under_the_index_of_a_call_that_is_over_is_of_another_call() -> None:
    machine = Machine().feed("TOOL~[a:f]1{,0} TOOL-{,0} TOOL~22{,0} SEAL")
    assert machine.shown == (
        "TOOL+[a:f]{,0}* TOOL~[a]1{,0} TOOL-[a]{,0} "
        "TOOL+[call_0_1]{,0}^* TOOL~[call_0_1]22{,0} TOOL-[call_0_1]{,0}*"
    )


def test_every_call_of_a_step_has_a_number_of_its_own() -> None:
    machine = Machine().feed("TOOL+{,0} TOOL+{,1} TOOL+{,2}")
    assert ["call_0_0", "call_0_1", "call_0_2"] == [event.tool_call_id for event in machine.out]


def test_an_id_that_was_made_up_here_and_then_sent_is_noted_and_no_repair() -> None:
    """The provider cannot know it."""
    machine = Machine().feed("TOOL~[:f]1{,0} TOOL~[call_0_0:g]2{,1}")
    assert ({}, {"repeated_id": 1}) == (machine.repairs, machine.state.ledger.notes)
