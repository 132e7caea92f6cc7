"""What strict mode says of each repair: the kind that is counted, and in a few words what the provider did."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.blocks import is_whole
from semflux.errors import RepairError, ToolArgumentsError
from semflux.events import ServerToolResult, ToolCallArgsDelta
from semflux.normalize import SEAL
from semflux.state import IMPLIED, Boundaries
from semflux.wire.limits import Limits
from tests.notation import FULL, Machine, draft, show

IDS = Boundaries(tool_ids=True)


def said(what: str) -> str:
    return f"the provider departed from its own format: {what}; strict mode does not mend it"


@pytest.mark.parametrize(
    "boundaries, given, kind, what",
    [
        (IMPLIED, "TEXT+ TEXT+", "duplicate_start", "a second start of an open text block"),
        (IMPLIED, "THINK+ THINK+", "duplicate_start", "a second start of an open thinking block"),
        (FULL, "TEXT~a", "missing_start", "a text delta without the start of its block"),
        (FULL, "THINK~a", "missing_start", "a thinking delta without the start of its block"),
        (IMPLIED, "TEXT-", "stray_end", "the end of a text block that is not open"),
        (IMPLIED, "THINK-", "stray_end", "the end of a thinking block that is not open"),
        (FULL, "TEXT+ SEAL", "missing_end", "a text block without an end"),
        (FULL, "THINK+ SEAL", "missing_end", "a thinking block without an end"),
        (IMPLIED, "TOOL+[a:f] TOOL+[a:f]", "duplicate_start", "a second start of an open tool call"),
        (FULL, "TOOL~[a:f]x", "missing_start", "a fragment of arguments without the start of its call"),
        (IMPLIED, "TOOL+[a:f] TOOL-[x]", "relabelled", "the end of an unknown tool call"),
        (IMPLIED, "TOOL+[a:f] TOOL-", "relabelled", "the end of an unknown tool call"),
        (IMPLIED, "TOOL-[x]", "missing_start", "the end of a tool call that never started"),
        (IMPLIED, "TOOL-", "stray_end", "the end of a tool call that is not open"),
        (FULL, "TOOL+[a:f] SEAL", "missing_end", "a tool call without an end"),
        (IMPLIED, "TOOL+[a:f]{,0} TOOL+[b:g]{,1} TOOL~x", "relabelled",
         "a fragment that does not say which call it belongs to"),
        (IMPLIED, "TOOL+[a:f] TOOL-[a] TOOL~[a:f]x", "repeated_id", "the id of another tool call"),
        (IDS, "TOOL~[:f]x", "made_up_id", "a tool call without an id"),
        (IMPLIED, "SERVER+{s} SERVER+{s}", "duplicate_start", "a second start of an open server tool"),
        (FULL, "SERVER-{s}", "missing_start", "the result of a server tool that never started"),
        (FULL, "SERVER+{s} $", "missing_result", "a server tool without a result"),
        (IMPLIED, "STEP+0 STEP+1", "duplicate_start", "a step that starts inside a step"),
        (IMPLIED, "STEP-0", "stray_end", "the end of a step that is not open"),
        (IMPLIED, "STEP+0 RESP-", "missing_end", "a step without an end"),
    ],
)  # fmt: skip
def test_strict_mode_says_what_the_provider_did(
    boundaries: Boundaries, given: str, kind: str, what: str
) -> None:
    with pytest.raises(RepairError) as raised:
        Machine(boundaries, strict=True).feed(given)
    assert (kind, said(what)) == (raised.value.kind, str(raised.value))


def test_strict_mode_says_that_arguments_were_repeated() -> None:
    """With braces, which the notation has other uses for."""
    whole: Any = [ToolCallArgsDelta.draft_class("{}", "a", "f", index=0) for _ in range(2)]
    with pytest.raises(RepairError) as raised:
        Machine(strict=True).push(*whole)
    assert ("repeated_arguments", said("the whole arguments of a call sent once more")) == (
        raised.value.kind,
        str(raised.value),
    )


def test_repeated_arguments_are_found_in_any_script() -> None:
    """Letters that are not ASCII go another way, and are counted as well."""
    pieces: Any = [("a", "f", '{"ü":'), (None, None, '"ü'), (None, None, '"}'), (None, None, '{"ü":"ü"}')]
    machine = Machine()
    for call_id, name, text in pieces:
        machine.push(ToolCallArgsDelta.draft_class(text, call_id, name, index=0))
    assert ['{"ü":', '"ü', '"}'] == [event.text for event in machine.out if event.is_delta]
    assert {"repeated_arguments": 1} == machine.repairs


def test_an_answer_with_too_many_calls_is_told_how_many_it_may_have() -> None:
    machine = Machine()
    machine.state.limits = Limits(max_tool_calls=1)
    with pytest.raises(ToolArgumentsError) as raised:
        machine.feed("TOOL~[a:f]x{,0} TOOL~[b:f]x{,1}")
    error = raised.value
    assert ("the answer has more than 1 tool calls", "count", "stream") == (
        str(error), error.kind, error.phase,
    )  # fmt: skip


@pytest.mark.parametrize(
    "boundary, gives",
    [
        ("text_start", "TEXT+! TEXT~a TEXT-* THINK+* THINK~t THINK-*"),
        ("text_end", "TEXT+* TEXT~a TEXT-! THINK+* THINK~t THINK-*"),
        ("thinking_start", "TEXT+* TEXT~a TEXT-* THINK+! THINK~t THINK-*"),
        ("thinking_end", "TEXT+* TEXT~a TEXT-* THINK+* THINK~t THINK-!"),
    ],
)
def test_only_the_boundary_that_the_format_has_is_repaired(boundary: str, gives: str) -> None:
    """The other three are implied: each of the four is a word of its own."""
    machine = Machine(Boundaries(**{boundary: True})).feed("TEXT~a THINK~t $")
    assert gives == machine.shown
    assert {"missing_start" if boundary.endswith("start") else "missing_end": 1} == machine.repairs


@pytest.mark.parametrize(
    "boundary, given, gives",
    [
        ("text_end", "TEXT+ TOOL+[a]", "TEXT+ TOOL+[a]"),
        ("text_end", "THINK+ TOOL+[a]", "THINK+ THINK-* TOOL+[a]"),
        ("thinking_end", "TEXT+ TOOL+[a]", "TEXT+ TEXT-* TOOL+[a]"),
        ("thinking_end", "THINK+ TOOL+[a]", "THINK+ TOOL+[a]"),
    ],
)
def test_a_call_ends_a_block_whose_format_has_no_end_for_it(boundary: str, given: str, gives: str) -> None:
    """The end of blocks of its own group, not of the other one."""
    assert gives == Machine(Boundaries(**{boundary: True})).feed(given).shown


def test_half_a_pair_has_the_identity_of_its_block_and_the_frame_that_opened_it() -> None:
    opener = draft("TEXT~a\ud83d{i,3}")
    opener.raw_type = "delta"
    half = Machine().push(opener).feed("SEAL").out[-2]
    assert ("\ufffd", "i", 3, "delta") == (half.text, half.item_id, half.index, half.raw_type)


def test_half_a_pair_of_a_call_has_the_identity_of_its_call() -> None:
    opener = draft("TOOL~[c:f]a\ud83d{i,3}")
    opener.raw_type = "fragment"
    half = Machine().push(opener).feed("SEAL").out[-2]
    assert ("\ufffd", "c", "f", "i", 3, "fragment") == (
        half.text, half.tool_call_id, half.name, half.item_id, half.index, half.raw_type,
    )  # fmt: skip


def test_half_a_pair_of_a_server_tool_has_the_identity_of_its_tool() -> None:
    start = draft("SERVER+{s,3}")
    start.sub_type, start.raw_type = "web_search", "added"
    half = Machine().push(start).feed("SERVER~a\ud83d{s} SERVER-{s}").out[-2]
    assert ("\ufffd", "web_search", "s", 3, "added") == (
        half.text, half.sub_type, half.item_id, half.index, half.raw_type,
    )  # fmt: skip


def test_a_made_start_of_a_server_tool_says_which_tool_and_names_the_frame() -> None:
    """Both are its result's, the only thing that came."""
    result = draft("SERVER-{s,3}")
    result.sub_type, result.raw_type = "web_search", "done"
    made = Machine().push(result).out[0]
    assert ("web_search", "s", 3, "done") == (made.sub_type, made.item_id, made.index, made.raw_type)


@pytest.mark.parametrize("end", ["$", "!!"])
def test_a_made_result_of_a_server_tool_says_which_tool_and_nothing_else(end: str) -> None:
    start = draft("SERVER+{s,3}")
    start.sub_type, start.raw_type = "web_search", "added"
    made: Any = Machine().push(start).feed(end).out[1]
    assert ("web_search", "s", 3, "added") == (made.sub_type, made.item_id, made.index, made.raw_type)
    untouched: Any = ServerToolResult()
    assert (untouched.results, untouched.is_error) == (made.results, made.is_error)


@pytest.mark.parametrize(
    "given, rest",
    [
        ("TEXT~a\ud83d", "TEXT-?"),
        ("TOOL~[c:f]a\ud83d", "TOOL-[c]?"),
        ("REFUSAL~a\ud83d", ""),
    ],
)
def test_half_a_pair_is_shown_once_where_the_stream_fails_right_after_it(given: str, rest: str) -> None:
    """Ends come one by one: what was told of them is not told again."""
    machine = Machine().feed(given)
    before = len(machine.out)
    half = next(iter(machine.normalizer.push(SEAL)))
    assert "\ufffd" == half.text
    machine.feed("!!")
    assert f"{rest} ERROR".strip() == show(machine.out[before:])


def test_half_a_pair_of_a_refusal_is_of_the_step_that_it_stands_in() -> None:
    half = Machine().feed("STEP+3 REFUSAL~a\ud83d SEAL").out[-1]
    assert ("\ufffd", 3) == (half.text, half.step)


def test_half_a_pair_of_a_server_tool_is_shown_once_too() -> None:
    machine = Machine().feed("SERVER+{s} SERVER~a\ud83d{s}")
    before = len(machine.out)
    half = next(iter(machine.normalizer.push(draft("SERVER-{s}"))))
    assert "\ufffd" == half.text
    machine.feed("!!")
    assert "SERVER-{s}? ERROR" == show(machine.out[before:])


def test_a_text_is_whole_where_it_can_be_encoded() -> None:
    for text in ("", "a", "ä", "\U0001f600"):
        assert is_whole(text)
    for half in ("\ud83d", "a\ude00b"):
        assert not is_whole(half)
