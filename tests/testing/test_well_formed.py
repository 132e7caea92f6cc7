"""assert_well_formed: the rules of order, with a report that shows where they are broken."""

from __future__ import annotations

import subprocess
import sys

import pytest

from semflux.events import TextDelta, TextEnd, TextStart, ToolCallArgsDelta
from semflux.testing import assert_well_formed
from tests.streams import stream, wrap


def report(*args: object, **options: object) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_well_formed(*args, **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_the_kit_needs_no_test_framework() -> None:
    program = (
        "import semflux.testing, sys; print(*sorted({'pytest', 'hypothesis', 'aiohttp'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "" == done.stdout.strip()


def test_a_legal_stream_passes() -> None:
    legal = wrap(TextStart(index=0), TextDelta("a", index=0), TextEnd(index=0), text="a")
    assert_well_formed(legal)
    assert_well_formed(event for event in legal)
    assert_well_formed([event for event in legal if event.seq != 99], seq="rising")


def test_the_report_marks_the_event() -> None:
    events = wrap(TextDelta("a", index=0), text="a")

    assert """these 5 events break the rules of order (1 times):
     0  RESPONSE_START
     1  STEP_START
     2  TEXT_DELTA {,0} 'a'
      ^ rule 4: TEXT_DELTA lies outside a block of its group
     3  STEP_END
     4  RESPONSE_END""" == report(events)


def test_the_end_itself_may_be_wrong() -> None:
    shown = report(wrap()[:-1])

    assert shown.endswith("        (the end)\n      ^ rule 1: the stream has no terminal event")
    assert report([]).startswith("these 0 events break")


def test_a_long_stream_is_shown_around_what_is_wrong() -> None:
    pieces = [TextDelta("x" * 50, index=0) for _ in range(100)]
    events = wrap(TextStart(index=0), *pieces, TextEnd(index=0), TextEnd(index=1), text="x" * 5000)
    shown = report(events).splitlines()

    assert "        ..." == shown[1]
    assert len(shown) < 15
    assert "      ^ rule 4: TEXT_END ends a block that is not open" in shown
    assert f"   101  TEXT_DELTA {{,0}} '{'x' * 40}...'" in shown


def test_events_made_by_hand_have_no_order_yet() -> None:
    from semflux.events import ResponseStart

    shown = report([ResponseStart(), ToolCallArgsDelta("{", "call_1")], seq="ignored")

    assert "TOOL_CALL_ARGS_DELTA call_1 '{'" in shown
    assert "rule 8" not in shown


def test_steps_are_shown() -> None:
    from semflux.events import ResponseStart, StepEnd, StepStart
    from tests.streams import EMPTY

    shown = report(
        stream(ResponseStart(), StepStart(), StepEnd(EMPTY), StepStart(), TextDelta("a", item_id="i"))
    )
    assert "     3  STEP_START step 1" in shown
    assert "TEXT_DELTA step 1 {i,} 'a'" in shown
