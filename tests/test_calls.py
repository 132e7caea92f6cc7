"""Tool calls: which call a fragment belongs to, when a call starts, and what ids it gets."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.calls import Call
from semflux.errors import RepairError, ToolArgumentsError
from semflux.events import ChatEventType, ToolCallArgsDelta, ToolCallStart
from semflux.frozen import FrozenDict
from semflux.state import Boundaries
from semflux.wire.limits import Limits
from tests.notation import FULL, Machine, draft

T = ChatEventType
IDS = Boundaries(tool_ids=True)
"""OpenAI chat: nothing but ids."""


def frag(
    text: str,
    id: str | None = None,
    name: str | None = None,
    index: int | None = None,
    item: str | None = None,
) -> Any:
    """A fragment whose text the notation cannot hold."""
    return ToolCallArgsDelta.draft_class(text, id, name, item_id=item, index=index)


def args(machine: Machine) -> dict[str | None, str]:
    """The joined arguments of each call."""
    joined: dict[str | None, str] = {}
    for event in machine.out:
        if event.type is T.TOOL_CALL_START:
            assert event.tool_call_id not in joined
            joined[event.tool_call_id] = ""
        elif event.type is T.TOOL_CALL_ARGS_DELTA:
            joined[event.tool_call_id] += event.text or ""
    return joined


@pytest.mark.parametrize(
    "given, gives",
    [
        ("TOOL~[a:f]1{,0} TOOL~[b:g]2{,1} TOOL~[a]3 TOOL~[b]4", {"a": "13", "b": "24"}),
        ("TOOL~[a:f]1{,0} TOOL~[b:g]2{,1} TOOL~3{,0} TOOL~4{,1}", {"a": "13", "b": "24"}),
        ("TOOL~[a:f]1{x,0} TOOL~[b:g]2{y,0} TOOL~3{x} TOOL~4{y,0}", {"a": "13", "b": "24"}),
        ("TOOL~[a:f]1{,0} TOOL~[a]2{,0} TOOL~[:]3{,0}", {"a": "123"}),
        ("TOOL~[a:f]1 TOOL~2 TOOL~3", {"a": "123"}),
        ("TOOL~[a:f]1 TOOL~2{,0}", {"a": "12"}),
        ("TOOL~[a:f]1{,0} TOOL~[a]2", {"a": "12"}),
        ("TOOL~[a:f]1 TOOL~[a]2{,5}", {"a": "12"}),
        ("TOOL~[a:f]1{,0} TOOL~[a]2{,1}", {"a": "12"}),
        ("TOOL~[a:f]1{,0} TOOL~[b:f]2{,0} TOOL~3{,0}", {"a": "1", "b": "23"}),
        ("TOOL~[a:f]1{,0} TOOL~[b:g]2{,1} TOOL~3", {"a": "13", "b": "2"}),
        ("TOOL~[a:f]1{,0} TOOL~[:g]2{,1}", {"a": "1", "call_0_1": "2"}),
        ("TOOL~[a:f]1 TOOL~[:g]2", {"a": "1", "call_0_1": "2"}),
        ("TOOL~[a:f]1{,0} TOOL~2{,1}", {"a": "1", "call_0_1": "2"}),
        ("TOOL+[a:f]{,0} TOOL~1{,0} TOOL+[b:g]{,0} TOOL~2{,0} TOOL-{,0} TOOL~3{,0}", {"a": "13", "b": "2"}),
    ],
)  # fmt: skip
def test_a_fragment_finds_its_call(given: str, gives: dict[str, str]) -> None:
    """By call id, else item id, else index, else the only open call; an empty id or name is an absent one; a new
    id under a used index is a new call."""
    assert args(Machine().feed(given).feed("$")) == gives


def test_a_fragment_without_identity_goes_to_the_oldest_of_several_calls() -> None:
    """Row 17: relabelled, a repair."""
    machine = Machine().feed("TOOL+[a:f]{,0} TOOL+[b:g]{,1} TOOL~x")

    assert machine.shown == "TOOL+[a:f]{,0} TOOL+[b:g]{,1} TOOL~[a]x{,0}"
    assert machine.repairs == {"relabelled": 1}


def test_fragments_carry_the_identity_of_their_call() -> None:
    """Whatever they came with."""
    machine = Machine().feed("TOOL+[a:f]{i,3} TOOL~[a]x TOOL~y{i}")

    assert machine.shown == "TOOL+[a:f]{i,3} TOOL~[a]x{i,3} TOOL~[a]y{i,3}"
    assert [event.name for event in machine.out] == ["f", "f", "f"]


# The start waits for the name, never for the id.


def test_a_start_waits_for_the_name() -> None:
    """Held fragments come as one ARGS_DELTA, right after it; what comes with the name is the next."""
    machine = Machine().feed("TOOL~[a]1{,0} TOOL~2{,0} TOOL~[a:f]3{,0}")

    assert machine.shown == "TOOL+[a:f]{,0}* TOOL~[a]12{,0} TOOL~[a]3{,0}"


def test_at_the_finish_signal_a_start_goes_without_a_name() -> None:
    """Nothing that came is lost."""
    machine = Machine().feed("TOOL~[a]1{,0} TOOL~2{,0} SEAL")

    assert machine.shown == "TOOL+[a]{,0}* TOOL~[a]12{,0} TOOL-[a]{,0}*"


def test_an_explicit_start_without_a_name_does_not_wait() -> None:
    """Its format has starts, and no later frame brings a name; if one does, the end has it."""
    machine = Machine().feed("TOOL+[a] TOOL~[a:f]x TOOL-[a]")

    assert machine.shown == "TOOL+[a] TOOL~[a]x TOOL-[a]"
    assert [event.name for event in machine.out] == [None, "f", "f"]


def test_an_id_that_comes_late_is_the_calls_own() -> None:
    """Before the start it is what subscribers see."""
    machine = Machine(IDS).feed("TOOL~1{,0} TOOL~[a]2{,0} TOOL~[:f]3{,0} $")

    assert machine.shown == "TOOL+[a:f]{,0}* TOOL~[a]12{,0} TOOL~[a]3{,0} TOOL-[a]{,0}*"
    assert machine.repairs == {}


def test_an_id_that_comes_after_the_start_changes_nothing_but_is_known() -> None:
    """The made-up id stays; later fragments may use either the index or the vendor's id."""
    machine = Machine(IDS).feed("TOOL~[:f]1{,0} TOOL~[a]2{,0} TOOL~[a]3 $")

    assert args(machine) == {"call_0_0": "123"}
    assert machine.repairs == {"made_up_id": 1}


def test_a_late_id_is_matched_by_item_before_index() -> None:
    """Two calls without ids, with items of their own."""
    machine = Machine().feed("TOOL~1{x} TOOL~2{y} TOOL~[a:f]3{x} TOOL~[b:g]4{y} $")

    assert args(machine) == {"a": "13", "b": "24"}


@pytest.mark.parametrize("given", ["TOOL~[:f]1{x,0} TOOL~[a]2{,0}", "TOOL~[:f]1{,0} TOOL~[a]2{x,0}"])
def test_a_late_id_is_matched_by_index_where_only_one_side_has_an_item(given: str) -> None:
    """What one of them does not say cannot tell them apart."""
    assert args(Machine().feed(given)) == {"call_0_0": "12"}


def test_a_name_or_id_that_is_sent_again_is_the_same() -> None:
    """No second call, no doubled name."""
    machine = Machine(IDS).feed("TOOL~[a:f]1{,0} TOOL~[a:f]2{,0} TOOL~[a:f]{,0} $")

    assert machine.shown == "TOOL+[a:f]{,0}* TOOL~[a]1{,0} TOOL~[a]2{,0} TOOL-[a]{,0}*"


def test_another_name_without_id_under_a_used_index_is_another_call() -> None:
    """Servers without ids that use index 0 for every call."""
    machine = Machine().feed("TOOL~[:f]1{,0} TOOL~[:g]2{,0} TOOL~3{,0} $")

    assert args(machine) == {"call_0_0": "1", "call_0_1": "23"}


def test_the_same_name_under_a_used_index_is_another_call_once_the_arguments_are_whole() -> None:
    """Until then it is the same call with its name repeated."""
    machine = (
        Machine()
        .push(frag("{", None, "f", 0), frag('"a":1}', None, "f", 0), frag('{"b": 2}', None, "f", 0))
        .feed("$")
    )

    assert args(machine) == {"call_0_0": '{"a":1}', "call_0_1": '{"b": 2}'}


# Ids.


def test_missing_ids_are_made_up_and_marked() -> None:
    """`call_{step}_{n}`, with n the place of the call in its step; a repair where the format has ids."""
    machine = Machine(IDS).feed("STEP+0 TOOL~[:f]{,0} STEP-0 STEP+1 TOOL~[a:f]{,0} TOOL~[:g]{,1} STEP-1")

    starts = [event for event in machine.out if event.type is T.TOOL_CALL_START]
    assert [event.tool_call_id for event in starts] == ["call_0_0", "a", "call_1_1"]
    assert [event.attributes for event in starts] == [
        {"implied": True, "made_up_id": True}, {"implied": True}, {"implied": True, "made_up_id": True},
    ]  # fmt: skip
    assert machine.repairs == {"made_up_id": 2}


def test_made_up_ids_count_calls_in_the_order_in_which_they_came() -> None:
    """Two calls that wait for their names until the finish signal: 0 and 1."""
    assert args(Machine().feed("TOOL~1{,0} TOOL~2{,1} SEAL")) == {"call_0_0": "1", "call_0_1": "2"}


def test_a_made_up_id_differs_from_those_that_were_sent() -> None:
    """A provider may use such an id itself."""
    machine = Machine().feed("TOOL~[call_0_1:f]{,0} TOOL~[:g]{,1}")

    assert machine.shown == "TOOL+[call_0_1:f]{,0}* TOOL+[call_0_1_:g]{,1}^*"


def test_where_the_dialect_says_so_a_made_up_id_is_implied() -> None:
    """The legacy function_call of OpenAI chat has none."""
    legacy = frag("{}", None, "f", 0)
    legacy.attributes = FrozenDict(implied=True)
    machine = Machine(IDS, strict=True).push(legacy).feed("$")

    assert args(machine) == {"call_0_0": "{}"}
    assert machine.repairs == {}


def test_the_id_of_an_ended_call_is_never_reopened() -> None:
    """The later call gets an id of its own, counted; its fragments find it by what the provider calls it."""
    machine = Machine(IDS).feed("TOOL+[a:f] TOOL~[a]1 TOOL-[a] TOOL~[a:f]2 TOOL~[a]3 $")

    assert args(machine) == {"a": "1", "call_0_1": "23"}
    assert machine.repairs == {"repeated_id": 1}


def test_the_end_of_an_ended_call_is_dropped() -> None:
    """It opens nothing and ends no other."""
    machine = Machine().feed("TOOL+[a:f] TOOL-[a] TOOL+[b:g] TOOL-[a]")

    assert machine.shown == "TOOL+[a:f] TOOL-[a] TOOL+[b:g]"
    assert machine.repairs == {"stray_end": 1}


def test_an_open_calls_id_under_another_index_with_a_name_is_a_new_call() -> None:
    """With a made-up id; without a name it is the same call."""
    machine = Machine(IDS).feed("TOOL~[a:f]1{,0} TOOL~[a:f]2{,1} TOOL~3{,1} TOOL~4{,0} $")

    assert args(machine) == {"a": "14", "call_0_1": "23"}
    assert machine.repairs == {"repeated_id": 1}


def test_an_id_of_an_earlier_step_is_made_unique() -> None:
    """Servers that begin to count anew: no id comes twice in a stream."""
    machine = Machine(IDS).feed("STEP+0 TOOL~[a:f]1 STEP-0 STEP+1 TOOL~[a:f]2 STEP-1")

    assert args(machine) == {"a": "1", "call_1_0": "2"}


def test_an_id_that_was_made_up_here_cannot_be_taken_by_the_provider() -> None:
    """Ids that subscribers have seen count as used."""
    machine = Machine(IDS).feed("TOOL~[:f]1{,0} TOOL~[call_0_0:g]2{,1} $")

    assert args(machine) == {"call_0_0": "1", "call_0_1": "2"}


# Starts and ends of the provider's own.


@pytest.mark.parametrize(
    "given, gives, repairs",
    [
        ("TOOL+[a:f] TOOL+[a:f]", "TOOL+[a:f]", {"duplicate_start": 1}),
        ("TOOL+[a:f]{,0} TOOL+[a:f]", "TOOL+[a:f]{,0}", {"duplicate_start": 1}),
        ("TOOL+[a:f]{,0} TOOL+[a]{,1}", "TOOL+[a:f]{,0}", {"duplicate_start": 1}),
        ("TOOL+[a:f]{,0} TOOL+[a:f]{,1}", "TOOL+[a:f]{,0} TOOL+[call_0_1:f]{,1}^", {"repeated_id": 1}),
        ("TOOL+[a:f]{,0} TOOL-{,0}", "TOOL+[a:f]{,0} TOOL-[a]{,0}", {}),
        ("TOOL+[a:f]{i} TOOL-{i}", "TOOL+[a:f]{i} TOOL-[a]{i}", {}),
        ("TOOL+[a:f] TOOL-", "TOOL+[a:f] TOOL-[a]", {"relabelled": 1}),
        ("TOOL-", "", {"stray_end": 1}),
        ("TOOL-{,3}", "", {"stray_end": 1}),
        ("TOOL+[a:f] TOOL+[b:g] TOOL-[x]", "TOOL+[a:f] TOOL+[b:g] TOOL-[a]", {"relabelled": 1}),
        ("TOOL+[a:f] TOOL+[b:g] TOOL-", "TOOL+[a:f] TOOL+[b:g] TOOL-[a]", {"relabelled": 1}),
        ("TOOL~[a]x TOOL-[a]", "TOOL+[a]* TOOL~[a]x TOOL-[a]", {}),
        ("TOOL-[a:f]", "TOOL+[a:f]* TOOL-[a]", {"missing_start": 1}),
    ],
)  # fmt: skip
def test_starts_and_ends_find_their_call(given: str, gives: str, repairs: dict[str, int]) -> None:
    """A second start is dropped; the end of an unknown call ends the oldest; a stray one ends nothing."""
    machine = Machine().feed(given)

    assert machine.shown == gives
    assert machine.repairs == repairs


def test_an_end_of_the_providers_own_names_its_own_frame() -> None:
    """One that is made here names the frame that opened the call."""
    start, end = draft("TOOL+[a:f]"), draft("TOOL-[a]")
    start.raw_type, end.raw_type = "start", "stop"

    assert [event.raw_type for event in Machine().push(start, end).out] == ["start", "stop"]


@pytest.mark.parametrize("boundaries", [IDS, FULL])
def test_a_fragment_that_says_nothing_makes_no_call(boundaries: Boundaries) -> None:
    """Neither id nor name nor text; the index alone is none."""
    machine = Machine(boundaries).feed("TOOL~{,0} TOOL~ SEAL")

    assert (machine.shown, machine.repairs) == ("", {})


def test_a_made_start_has_what_came_with_the_call() -> None:
    """Such as the extra content of a vendor, which must be sent back."""
    first = frag("{}", "a", "f", 0)
    first.attributes = FrozenDict(extra_content={"x": 1})

    machine = Machine().push(first)

    assert machine.out[0].attributes == {"extra_content": {"x": 1}, "implied": True}


# Repeats.


@pytest.mark.parametrize("with_name", ["f", None])
def test_whole_arguments_that_are_sent_again_are_dropped(with_name: str | None) -> None:
    """With a complete JSON object there, an exact repeat is a repeat; counted."""
    machine = Machine(IDS).push(
        frag('{"a":', "t", "f", 0), frag("1}", "t", None, 0), frag('{"a":1}', "t", with_name, 0)
    ).feed("$")  # fmt: skip

    assert args(machine) == {"t": '{"a":1}'}
    assert machine.repairs == {"repeated_arguments": 1}


def test_a_fragment_like_the_one_before_is_no_repeat() -> None:
    """Only the whole of a complete object can be one."""
    machine = Machine(IDS).push(frag("11", "t", "f", 0), frag("11", "t", None, 0)).feed("$")

    assert args(machine) == {"t": "1111"}
    assert machine.repairs == {}


def test_an_unfinished_object_is_not_whole_and_a_finished_one_that_is_no_json_neither() -> None:
    """So that their repeats stay."""
    machine = Machine(IDS).push(frag('{"a"', "t", "f", 0), frag('{"a"', "t", None, 0)).feed("$")
    assert args(machine) == {"t": '{"a"{"a"'}

    machine = Machine(IDS).push(frag("{a}", "t", "f", 0), frag("{a}", "t", None, 0)).feed("$")
    assert args(machine) == {"t": "{a}{a}"}


def test_looking_for_repeats_is_bounded() -> None:
    """Each look parses everything so far: a call gets sixteen, so that time stays linear."""
    call = Call(frag("", "t", "f", 0), "t", "f", 0)
    call.fragments.append("{}")

    assert [call.whole for _ in range(18)] == [True] * 16 + [False] * 2


# Bounds and strictness.


def test_a_call_too_many_is_refused_before_anything_shows_it() -> None:
    """The error of its kind, and no start that would need an end."""
    machine = Machine()
    machine.state.limits = Limits(max_tool_calls=1)
    machine.feed("STEP+0 TOOL~[a:f]x{,0}")

    with pytest.raises(ToolArgumentsError) as caught:
        machine.feed("TOOL~[b:g]y{,1}")
    machine.feed("!!")

    assert caught.value.kind == "count"
    assert machine.shown == "STEP+0 TOOL+[a:f]{,0}* TOOL~[a]x{,0} TOOL-[a]{,0}? STEP-0? ERROR"


def test_the_bound_on_calls_is_one_step_long() -> None:
    """Each message may have so many."""
    machine = Machine()
    machine.state.limits = Limits(max_tool_calls=1)

    machine.feed("STEP+0 TOOL~[a:f]x STEP-0 STEP+1 TOOL~[b:f]x STEP-1")
    assert machine.repairs == {}


def test_a_strict_failure_before_a_start_leaves_everything_in_order() -> None:
    """The text is not ended twice, and the call that could not start is told when the stream closes."""
    machine = Machine(IDS, strict=True).feed("STEP+0 TEXT~a")

    with pytest.raises(RepairError):
        machine.push(frag("x", None, "f", 0))
    machine.feed("!!")

    assert machine.shown == (
        "STEP+0 TEXT+* TEXT~a TEXT-? TOOL+[call_0_0:f]{,0}^* TOOL-[call_0_0]{,0}? STEP-0? ERROR"
    )


def test_a_call_that_waits_for_its_name_is_told_when_the_stream_fails() -> None:
    """With what had come of it; and closing makes no repair, in strict mode too."""
    machine = Machine(FULL, strict=True).feed("STEP+0 TEXT+").push(ToolCallStart.draft_class("b", "g"))
    machine.feed("!!")
    assert machine.repairs == {}

    machine = Machine(IDS, strict=True).feed("STEP+0 TEXT~a TOOL~x{,0} !!")
    assert machine.shown == (
        "STEP+0 TEXT+* TEXT~a TEXT-? TOOL+[call_0_0]{,0}^* TOOL~[call_0_0]x{,0} TOOL-[call_0_0]{,0}? STEP-0? ERROR"
    )


def test_an_explicit_start_does_not_end_text_that_has_ends_of_its_own() -> None:
    """In a format whose blocks end by themselves, a call may start inside one."""
    machine = Machine(FULL).feed("TEXT+ TEXT~a TOOL+[a:f] TEXT~b TEXT- TOOL-[a]")

    assert machine.shown == "TEXT+ TEXT~a TOOL+[a:f] TEXT~b TEXT- TOOL-[a]"
    assert machine.repairs == {}


def test_draft_and_event_of_a_fragment_are_the_same_object() -> None:
    """Nothing is copied on the way of a fragment."""
    fragment = draft("TOOL~[a]x")
    machine = Machine().feed("TOOL+[a:f]").push(fragment)

    assert machine.out[-1] is fragment
