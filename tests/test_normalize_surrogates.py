"""Half a surrogate pair at the end of a delta waits for its other half, in whatever can be cut."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.blocks import hold_surrogate
from semflux.events import (
    EVENT_CLASSES,
    ChatEventType,
    RefusalDelta,
    ServerToolArgsDelta,
    ServerToolResult,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
)
from tests.notation import Machine, draft

T = ChatEventType
HIGH, LOW = "\ud83d", "\ude00"


def text(piece: str, item: str | None = None) -> Any:
    return TextDelta.draft_class(piece, item_id=item)


def thinking(piece: str, item: str | None = None) -> Any:
    return ThinkingDelta.draft_class(piece, item_id=item)


def refusal(piece: str, item: str | None = None) -> Any:
    return RefusalDelta.draft_class(piece, item_id=item)


def args(piece: str, item: str | None = None) -> Any:
    return ToolCallArgsDelta.draft_class(piece, item or "c1", "f")


def server(piece: str, item: str | None = None) -> Any:
    return ServerToolArgsDelta.draft_class(piece, item_id=item or "s")


MAKERS = [text, thinking, refusal, args, server]


def deltas(machine: Machine) -> list[str | None]:
    return [event.text for event in machine.out if event.is_delta]


@pytest.mark.parametrize("code, waits", [(0xD7FF, False), (0xD800, True), (0xDBFF, True), (0xDC00, False)])
def test_high_surrogates_wait_and_their_neighbours_do_not(code: int, waits: bool) -> None:
    assert (chr(code) if waits else "") == hold_surrogate("", chr(code))[1]


@pytest.mark.parametrize(
    "held, piece, gives",
    [
        ("", "abc", ("abc", "")),
        ("", "", ("", "")),
        ("", "ä", ("ä", "")),
        ("", "a" + HIGH, ("a", HIGH)),
        (HIGH, LOW + "b", ("😀b", "")),
        (HIGH, "b", ("\ufffdb", "")),
        (HIGH, "", ("", HIGH)),
        (HIGH, HIGH, ("\ufffd", HIGH)),
        ("", LOW + "a", ("\ufffda", "")),
        ("", HIGH + LOW, ("😀", "")),
        ("", "a" + HIGH + "b", ("a\ufffdb", "")),
    ],
)  # fmt: skip
def test_what_can_be_shown_and_what_waits(held: str, piece: str, gives: tuple[str, str]) -> None:
    """A pair is joined, a lone half becomes U+FFFD, a high one at the end waits."""
    assert hold_surrogate(held, piece) == gives


@pytest.mark.parametrize("make", MAKERS)
def test_a_pair_that_is_cut_over_two_deltas_is_one_character(make: Any) -> None:
    """The first delta comes without its last half, the second one begins with the whole."""
    machine = Machine().push(make("a" + HIGH), make(LOW + "b")).feed("$")

    assert deltas(machine) == ["a", "😀b"]


@pytest.mark.parametrize("make", MAKERS)
def test_a_delta_that_is_nothing_but_half_a_pair_gives_nothing_yet(make: Any) -> None:
    """Three deltas in, two of them halves: two come out."""
    machine = Machine().push(make("a"), make(HIGH), make(LOW)).feed("$")

    assert deltas(machine) == ["a", "😀"]


@pytest.mark.parametrize("make", MAKERS)
def test_a_lone_half_at_the_end_becomes_the_replacement_character(make: Any) -> None:
    """It comes before the END, as a delta of its own."""
    machine = Machine().push(make("a" + HIGH)).feed("$")

    assert deltas(machine) == ["a", "\ufffd"]
    assert all("".join(filter(None, [event.text])).encode() is not None for event in machine.out)


@pytest.mark.parametrize("make", [text, thinking, refusal, args])
@pytest.mark.parametrize("end", ["SEAL", "!!", "ABORT", "STEP-0", "RESP-"])
def test_however_the_block_ends(make: Any, end: str) -> None:
    """The finish signal, a failure, an abort, the end of the step or of the stream."""
    machine = Machine().feed("STEP+0").push(make(HIGH)).feed(end)

    assert deltas(machine) == ["\ufffd"]


def test_an_end_of_the_providers_own_gives_it_too() -> None:
    """A block, call or result that ends by its own frame."""
    machine = Machine().push(text(HIGH, "a"), args(HIGH), server(HIGH))
    machine.feed("TEXT-{a} TOOL-[c1]").push(ServerToolResult.draft_class(item_id="s"))

    assert [event.type for event in machine.out if event.text == "\ufffd"] == [
        T.TEXT_DELTA, T.TOOL_CALL_ARGS_DELTA, T.SERVER_TOOL_ARGS_DELTA,
    ]  # fmt: skip
    assert machine.out[-1].type is T.SERVER_TOOL_RESULT


@pytest.mark.parametrize("make", [text, thinking, args])
def test_each_block_and_call_has_its_own_half(make: Any) -> None:
    """Deltas of another block between the halves do not join them."""
    machine = Machine().push(make(HIGH, "a"), make(HIGH, "b"), make(LOW, "b"), make("x", "a")).feed("$")

    assert deltas(machine) == ["😀", "\ufffdx"]


def test_other_events_pass_while_a_half_waits() -> None:
    """Usage, heartbeats and raw frames are not content of the block."""
    machine = Machine().push(text("a" + HIGH)).feed("USAGE HEARTBEAT RAW").push(text(LOW)).feed("$")

    assert [event.type for event in machine.out] == [
        T.TEXT_START, T.TEXT_DELTA, T.USAGE, T.HEARTBEAT, T.RAW, T.TEXT_DELTA, T.TEXT_END,
    ]  # fmt: skip


def test_ascii_after_a_held_half_does_not_take_the_short_way() -> None:
    """The half comes first, as U+FFFD."""
    machine = Machine().push(text(HIGH), text("a"), text("b")).feed("$")

    assert deltas(machine) == ["\ufffda", "b"]
    machine = Machine().push(thinking(HIGH), thinking("a"), thinking("b")).feed("$")
    assert deltas(machine) == ["\ufffda", "b"]


def test_a_half_in_fragments_that_wait_for_a_name() -> None:
    """Fragments that are held are joined before they are sent."""
    nameless = ToolCallArgsDelta.draft_class
    machine = Machine().push(
        nameless("a" + HIGH, "c1", None), nameless(LOW, "c1", None), draft("TOOL~[c1:f]b")
    )

    assert deltas(machine) == ["a😀", "b"]


def test_the_class_of_every_delta_with_text_is_tried_here() -> None:
    """Media deltas have blocks, not text."""
    tried = {make("x").type for make in MAKERS}

    assert tried == {t for t in T if t.phase == "DELTA"} - {T.MEDIA_PARTIAL}
    assert tried <= set(EVENT_CLASSES)
