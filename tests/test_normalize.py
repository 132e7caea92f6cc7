"""The 26 rows of contract section 4, and what its prose says of boundaries and repairs."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from semflux.errors import RepairError
from semflux.events import ChatEventType, Origin, TextDelta
from semflux.frozen import FrozenDict
from semflux.normalize import SEAL, as_semflux_error
from semflux.state import IMPLIED, Boundaries
from tests.notation import FAILURE, FULL, Machine, draft, show

T = ChatEventType


class Row(NamedTuple):
    number: str
    given: str
    gives: str
    """In a format without boundaries."""
    repairs: dict[str, int]
    full_repairs: dict[str, int]
    """In a format that has every boundary."""
    full_gives: str | None = None
    """In a format that has every boundary; None: the same, but what was implied is repaired."""


ROWS = (
    Row("1", "TEXT~a TEXT~b $", "TEXT+* TEXT~a TEXT~b TEXT-*", {}, {"missing_start": 1, "missing_end": 1}),
    Row("2", "THINK~t TEXT~x $", "THINK+* THINK~t THINK-* TEXT+* TEXT~x TEXT-*", {}, {"missing_start": 2, "missing_end": 2}),
    Row("3", "TEXT+ TEXT+ TEXT~x $", "TEXT+ TEXT~x TEXT-*", {"duplicate_start": 1}, {"duplicate_start": 1, "missing_end": 1}),
    Row("4a", "TEXT-", "", {"stray_end": 1}, {"stray_end": 1}),
    Row("4b", "THINK~t TEXT-", "THINK+* THINK~t", {"stray_end": 1}, {"missing_start": 1, "stray_end": 1}),
    Row("5", "TEXT~a STEP-0", "TEXT+* TEXT~a TEXT-* STEP-0", {}, {"missing_start": 1, "missing_end": 1}),
    Row("6", "THINK~r RESP-", "THINK+* THINK~r THINK-* RESP-", {}, {"missing_start": 1, "missing_end": 1}),
    Row("7", "TEXT~a USAGE HEARTBEAT RAW TEXT~b $", "TEXT+* TEXT~a USAGE HEARTBEAT RAW TEXT~b TEXT-*", {},
        {"missing_start": 1, "missing_end": 1}),
    Row("8", "THINK~t SIGNATURE THINK~u $", "THINK+* THINK~t SIGNATURE THINK~u THINK-*", {},
        {"missing_start": 1, "missing_end": 1}),
    Row("9", "TEXT+ TEXT~a TEXT- $", "TEXT+ TEXT~a TEXT-", {}, {}),
    Row("10", "TEXT~a $ $", "TEXT+* TEXT~a TEXT-*", {}, {"missing_start": 1, "missing_end": 1}),
    Row("11", "TEXT~p{a,0} TEXT~q{b,1} TEXT-{a,0} $",
        "TEXT+{a,0}* TEXT~p{a,0} TEXT+{b,1}* TEXT~q{b,1} TEXT-{a,0} TEXT-{b,1}*", {},
        {"missing_start": 2, "missing_end": 1}),
    Row("14", "TOOL~[c1]frag $", "TOOL+[c1]* TOOL~[c1]frag TOOL-[c1]*", {}, {"missing_start": 1, "missing_end": 1}),
    Row("15", "TOOL+[c1] TOOL+[c2] TOOL-[c1] TOOL-[c2] $", "TOOL+[c1] TOOL+[c2] TOOL-[c1] TOOL-[c2]", {}, {}),
    Row("16", "TOOL-[x]", "TOOL+[x]* TOOL-[x]", {"missing_start": 1}, {"missing_start": 1}),
    Row("17", "TOOL+[c1] TOOL~x TOOL-[unknown] $", "TOOL+[c1] TOOL~[c1]x TOOL-[c1]", {"relabelled": 2}, {"relabelled": 2}),
    Row("18", "TOOL+[c1] RESP-", "TOOL+[c1] TOOL-[c1]* RESP-", {}, {"missing_end": 1}),
    Row("19", "TEXT~a TOOL+[c1] $", "TEXT+* TEXT~a TEXT-* TOOL+[c1] TOOL-[c1]*", {}, {"missing_start": 1, "missing_end": 2},
        "TEXT+! TEXT~a TOOL+[c1] TEXT-! TOOL-[c1]!"),
    Row("20", "RESULT[c1]", "RESULT[c1]", {}, {}),
    Row("21", "STEP+0 STEP+0 RESP-", "STEP+0 STEP-0 RESP-", {"duplicate_start": 1, "missing_end": 1},
        {"duplicate_start": 1, "missing_end": 1}),
    Row("22", "TOOL+{,0} TOOL+{,1} $", "TOOL+[call_0_0]{,0}^ TOOL+[call_0_1]{,1}^ TOOL-[call_0_0]{,0}* TOOL-[call_0_1]{,1}*",
        {}, {"made_up_id": 2, "missing_end": 2}),
    Row("23", "SERVER-{s}", "SERVER+{s}* SERVER-{s}", {}, {"missing_start": 1}),
    Row("24", "SERVER+{s} SERVER+{s} RESP-", "SERVER+{s} SERVER-{s}* RESP-", {"duplicate_start": 1},
        {"duplicate_start": 1, "missing_result": 1}),
    Row("25a", "RESP- TEXT~a USAGE RESP- STEP-0", "RESP-", {"after_terminal": 4}, {"after_terminal": 4}),
    Row("25b", "ABORT RESULT[c1]", "ABORT", {"after_terminal": 1}, {"after_terminal": 1}),
    Row("25c", "ERROR SEAL", "ERROR", {"after_terminal": 1}, {"after_terminal": 1}),
    Row("26", "STEP+0 TEXT~a !!", "STEP+0 TEXT+* TEXT~a TEXT-? STEP-0? ERROR", {}, {"missing_start": 1}),
)  # fmt: skip
"""Rows 12 and 13 are tests of their own."""


@pytest.mark.parametrize("row", ROWS, ids=[f"row {row.number}" for row in ROWS])
def test_a_row_holds_in_a_format_without_boundaries(row: Row) -> None:
    """What the format does not have is implied: marked, and not counted."""
    machine = Machine(IMPLIED).feed(row.given)

    assert machine.shown == row.gives
    assert machine.repairs == row.repairs


@pytest.mark.parametrize("row", ROWS, ids=[f"row {row.number}" for row in ROWS])
def test_a_row_holds_in_a_format_that_has_all_boundaries(row: Row) -> None:
    """What the format has and did not come is repaired: marked, and counted by kind."""
    machine = Machine(FULL).feed(row.given)

    assert machine.shown == (row.full_gives or row.gives.replace("*", "!"))
    assert machine.repairs == row.full_repairs


@pytest.mark.parametrize("boundaries", [IMPLIED, FULL], ids=["implied", "full"])
@pytest.mark.parametrize("row", ROWS, ids=[f"row {row.number}" for row in ROWS])
def test_strict_mode_fails_at_the_first_repair_and_only_then(row: Row, boundaries: Boundaries) -> None:
    """A stream without repairs passes; what comes after its end cannot fail it any more."""
    repairs = dict(row.full_repairs if boundaries is FULL else row.repairs)
    repairs.pop("after_terminal", None)
    machine = Machine(boundaries, strict=True)

    if not repairs:
        machine.feed(row.given)
    else:
        with pytest.raises(RepairError) as caught:
            machine.feed(row.given)

        assert caught.value.kind in repairs
        assert sum(machine.repairs.values()) == 1


def test_row_13_made_boundaries_carry_the_origin_of_their_opener() -> None:
    """Response id, step and the vendor's id are the delta's, on all three events."""
    origin = Origin(response_id="ours", provider_response_id="theirs", step=3)
    machine = Machine().push(draft("TEXT~a", origin)).feed("$")

    assert [event.type for event in machine.out] == [T.TEXT_START, T.TEXT_DELTA, T.TEXT_END]
    assert [(e.response_id, e.provider_response_id, e.step) for e in machine.out] == [
        ("ours", "theirs", 3)
    ] * 3


def test_a_made_boundary_names_the_frame_of_its_opener() -> None:
    """`raw_type` comes from the draft that opened the block or call."""
    delta, fragment = draft("TEXT~a"), draft("TOOL~[c1:f]x")
    delta.raw_type, fragment.raw_type = "delta", "fragment"
    machine = Machine().push(delta, fragment).feed("$")

    assert [event.raw_type for event in machine.out] == ["delta"] * 3 + ["fragment"] * 3


def test_frozen_events_are_copied_not_changed() -> None:
    """An event that somebody may have seen goes in as it is and comes out as a draft."""
    seen = TextDelta("a", item_id="x")
    machine = Machine().feed("TEXT+{x,0}").push(seen)

    assert machine.shown == "TEXT+{x,0} TEXT~a{x,0}"
    assert seen == TextDelta("a", item_id="x")
    assert machine.out[1].is_draft


def test_frozen_events_that_need_no_order_pass() -> None:
    """A frozen event without an arm is thawed and passes."""
    machine = Machine().push(draft("RAW").__class__.frozen_class({"a": 1}))

    assert machine.shown == "RAW"
    assert machine.out[0].is_draft


# Identity of blocks.


@pytest.mark.parametrize(
    "given, gives",
    [
        ("TEXT+{a,0} TEXT~x", "TEXT+{a,0} TEXT~x{a,0}"),
        ("TEXT+{a,0} TEXT-", "TEXT+{a,0} TEXT-{a,0}"),
        ("TEXT+{a,0} TEXT~x{a}", "TEXT+{a,0} TEXT~x{a,0}"),
        ("TEXT+{a,0} TEXT~x{,0}", "TEXT+{a,0} TEXT~x{a,0}"),
        ("TEXT+{a} TEXT~x{a,0}", "TEXT+{a} TEXT~x{a}"),
        ("TEXT+{,0} TEXT~x{a,0}", "TEXT+{,0} TEXT~x{,0}"),
        ("TEXT+ TEXT~x{a,0}", "TEXT+ TEXT+{a,0}* TEXT~x{a,0}"),
        ("TEXT+{a,0} TEXT+{b,1} TEXT~x", "TEXT+{a,0} TEXT+{b,1} TEXT+* TEXT~x"),
        ("TEXT+{a,0} TEXT+{b,0} TEXT~x{,0}", "TEXT+{a,0} TEXT+{b,0} TEXT+{,0}* TEXT~x{,0}"),
        ("TEXT+{a,0} TEXT+{b,1} TEXT-", "TEXT+{a,0} TEXT+{b,1} TEXT-{a,0}"),
        ("TEXT+{a,0} TEXT-{b,1}", "TEXT+{a,0}"),
        ("TEXT+{a,0} TEXT-{b}", "TEXT+{a,0}"),
        ("TEXT+{a} TEXT+{b} TEXT-{b}", "TEXT+{a} TEXT+{b} TEXT-{b}"),
        ("TEXT+{,0} TEXT+{,1} TEXT-{,1}", "TEXT+{,0} TEXT+{,1} TEXT-{,1}"),
        ("TEXT+{a,0} TEXT~x{b,1} TEXT~y{a,0}", "TEXT+{a,0} TEXT+{b,1}* TEXT~x{b,1} TEXT~y{a,0}"),
    ],
)  # fmt: skip
def test_a_delta_finds_its_block(given: str, gives: str) -> None:
    """Without identity it joins the single open block; an identified one never joins an anonymous block; with
    two candidates a new block opens."""
    assert Machine().feed(given).shown == gives


def test_a_block_of_the_other_group_ends_all_that_are_open() -> None:
    """TEXT and THINKING never overlap, however many blocks of one group are open."""
    machine = Machine().feed("TEXT~a{a,0} TEXT~b{b,1} THINK+{c,2} THINK~t{c,2}")

    assert machine.shown == (
        "TEXT+{a,0}* TEXT~a{a,0} TEXT+{b,1}* TEXT~b{b,1} TEXT-{a,0}* TEXT-{b,1}* THINK+{c,2} THINK~t{c,2}"
    )


def test_in_a_format_without_boundaries_only_a_tool_start_ends_a_block() -> None:
    """USAGE, CITATION, REFUSAL, SERVER_TOOL, RAW and fragments of an open call do not."""
    machine = Machine().feed(
        "TOOL~[c1:f]a TEXT~x USAGE CITATION REFUSAL~r SERVER+{s} RAW TOOL~[c1]b TOOL~[c2:g]c"
    )

    assert machine.shown == (
        "TOOL+[c1:f]* TOOL~[c1]a TEXT+* TEXT~x USAGE CITATION REFUSAL~r SERVER+{s} RAW TOOL~[c1]b TEXT-* "
        "TOOL+[c2:g]* TOOL~[c2]c"
    )


# The finish signal, steps, ends.


def test_the_finish_signal_ends_blocks_and_calls_but_not_the_step() -> None:
    """Usage, and even content, may come after it; server tools are ended with the step."""
    machine = Machine().feed("STEP+0 TEXT~a TOOL~[c1:f]x SERVER+{s} SEAL USAGE TEXT~b SEAL STEP-0")

    assert machine.shown == (
        "STEP+0 TEXT+* TEXT~a TEXT-* TOOL+[c1:f]* TOOL~[c1]x SERVER+{s} TOOL-[c1]* USAGE TEXT+* TEXT~b TEXT-* "
        "SERVER-{s}* STEP-0"
    )
    assert machine.repairs == {}


def test_the_finish_signal_shows_itself_by_its_name() -> None:
    """It is no event, but a log of drafts can be read."""
    assert repr(SEAL) == "SEAL"


def test_a_step_that_starts_inside_another_ends_it() -> None:
    """Steps do not nest; one of the same number is dropped, the next one ends the first."""
    machine = Machine().feed("STEP+0 TEXT~a STEP+0 TEXT~b STEP+1 TEXT~c RESP-")

    assert machine.shown == (
        "STEP+0 TEXT+* TEXT~a TEXT~b TEXT-* STEP-0 STEP+1 TEXT+* TEXT~c TEXT-* STEP-1 RESP-"
    )
    assert machine.repairs == {"duplicate_start": 2, "missing_end": 1}


def test_the_end_of_a_step_that_is_not_open_is_dropped() -> None:
    """It is a repair."""
    machine = Machine().feed("STEP+0 STEP-0 STEP-0 RESP-")

    assert machine.shown == "STEP+0 STEP-0 RESP-"
    assert machine.repairs == {"stray_end": 1}


def test_a_step_that_its_maker_ends_as_partial_ends_its_content_as_partial() -> None:
    """ENDs that are made while failing are neither implied nor repaired."""
    end = draft("STEP-0")
    end.attributes = FrozenDict(partial=True)
    machine = Machine(FULL).feed("STEP+0 TEXT+ TOOL+[c1] SERVER+{s}").push(end)

    assert machine.shown == "STEP+0 TEXT+ TOOL+[c1] SERVER+{s} TEXT-? TOOL-[c1]? SERVER-{s}? STEP-0?"
    assert machine.repairs == {}


@pytest.mark.parametrize("again, more", [("$", ""), ("!!", " ERROR"), ("RESP-", " RESP-")])
def test_a_step_that_the_end_of_the_stream_ends_is_ended_once(again: str, more: str) -> None:
    """Whatever is told after it: a second end, a failure, a terminal event."""
    assert Machine(strict=True).feed(f"STEP+0 $ {again}").shown == f"STEP+0 STEP-0{more}"


@pytest.mark.parametrize("token, last", [("!!", "ERROR"), ("ABORT", "ABORT"), ("ERROR", "ERROR")])
def test_a_failure_or_abort_ends_all_that_is_open(token: str, last: str) -> None:
    """Blocks, calls, server tools, the step, and then the terminal event: nothing is counted."""
    machine = Machine(FULL, strict=True).feed(f"STEP+0 THINK+ THINK~t TOOL+[c1] SERVER+{{s}} {token} $ !!")

    assert machine.shown == (
        f"STEP+0 THINK+ THINK~t TOOL+[c1] SERVER+{{s}} THINK-? TOOL-[c1]? SERVER-{{s}}? STEP-0? {last}"
    )
    assert machine.repairs == {}


def test_the_error_event_brings_the_failure_itself() -> None:
    """A SemfluxError as it is; anything else inside one of ours, as its cause."""
    assert Machine().feed("!!").out[-1].error is FAILURE
    assert as_semflux_error(FAILURE) is FAILURE

    cause = KeyError("k")
    wrapped = as_semflux_error(cause)
    assert (wrapped.kind, wrapped.phase, wrapped.__cause__) == ("source", "stream", cause)
    assert "KeyError" in str(wrapped)


def test_a_failure_that_a_strict_stream_has_while_it_ends_is_closed_in_order() -> None:
    """What was told before the repair stays told, and what is open ends once."""
    machine = Machine(FULL, strict=True).feed("STEP+0 TEXT+ TEXT~a TOOL+[c1]")

    with pytest.raises(RepairError):
        machine.feed("STEP-0")
    machine.out += machine.normalizer.finish(FAILURE)

    assert machine.shown == "STEP+0 TEXT+ TEXT~a TOOL+[c1] TEXT-? TOOL-[c1]? STEP-0? ERROR"


# Server tools.


@pytest.mark.parametrize(
    "given, gives",
    [
        ("SERVER+ SERVER~a SERVER-", "SERVER+{server_0_0} SERVER~a{server_0_0} SERVER-{server_0_0}"),
        ("SERVER+ SERVER- SERVER+", "SERVER+{server_0_0} SERVER-{server_0_0} SERVER+{server_0_1}"),
        ("SERVER~a{s} SERVER-{s}", "SERVER+{s}* SERVER~a{s} SERVER-{s}"),
        ("SERVER-{,4}", "SERVER+{server_0_0,4}* SERVER-{server_0_0,4}"),
        ("SERVER+{a,0} SERVER+{b,1} SERVER~x{,1} SERVER-{,1}",
         "SERVER+{a,0} SERVER+{b,1} SERVER~x{b,1} SERVER-{b,1}"),
        ("SERVER+{s} SERVER-{s} SERVER+{s} SERVER-{s}", "SERVER+{s} SERVER-{s} SERVER+{s} SERVER-{s}"),
    ],
)  # fmt: skip
def test_a_server_tool_is_found_by_its_id_else_its_index_else_alone(given: str, gives: str) -> None:
    """An item without id gets one, `server_{step}_{n}`; a result without start gets one."""
    assert Machine().feed(given).shown == gives


def test_made_up_ids_of_server_tools_count_anew_in_each_step() -> None:
    """They hold the step, so that they differ all the same."""
    machine = Machine().feed("STEP+0 SERVER+ SERVER- STEP-0 STEP+1 SERVER+ SERVER- STEP-1")

    assert [e.item_id for e in machine.out if e.type is T.SERVER_TOOL_START] == ["server_0_0", "server_1_0"]


def test_a_second_start_that_the_dialect_implied_is_not_counted() -> None:
    """Some formats show a phase of a tool several times; the dialect says so."""
    again = draft("SERVER+{s}")
    again.attributes = FrozenDict(implied=True)
    machine = Machine(FULL).feed("SERVER+{s}").push(again)

    assert (machine.shown, machine.repairs) == ("SERVER+{s}", {})


def test_a_start_that_the_dialect_implies_is_not_counted_either() -> None:
    """Responses: an item whose result comes in the final output only."""
    result = draft("SERVER-{s}")
    result.attributes = FrozenDict(implied=True)
    machine = Machine(FULL).push(result)

    assert (machine.shown, machine.repairs) == ("SERVER+{s}* SERVER-{s}*", {})


def test_parts_of_a_server_tool_know_which_tool_it_is() -> None:
    """What a delta or result leaves out is taken from the start."""
    start = draft("SERVER+{s}")
    start.sub_type = "web_search"
    machine = Machine().push(start).feed("SERVER~a{s} SERVER-{s}")

    assert [event.sub_type for event in machine.out] == ["web_search"] * 3


def test_show_writes_what_draft_reads() -> None:
    """The notation itself: what it cannot tell apart, no test here can."""
    tokens = "TEXT~a{x,1} TOOL+[c:f]{,2} TOOL~[c]b STEP+3 SIGNATURE HEARTBEAT"

    assert show([draft(token) for token in tokens.split()]) == tokens


def test_streams_made_by_hand_may_have_no_steps_or_only_their_ends() -> None:
    """Row 5: while content is open; once a step has started, each END needs its START."""
    assert Machine(strict=True).feed("TEXT~a STEP-0 TOOL~[c:f] STEP-0").shown == (
        "TEXT+* TEXT~a TEXT-* STEP-0 TOOL+[c:f]* TOOL-[c]* STEP-0"
    )
    assert Machine().feed("STEP-0").repairs == {"stray_end": 1}
    assert Machine().feed("STEP+0 STEP-0 TEXT~a STEP-0").repairs == {"stray_end": 1}
