"""The terminator: stamps, exactly one terminal event, nothing after it."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import reactivex

from semflux.contract import violations_of
from semflux.errors import (
    ConnectionLostError,
    ResponseTooLargeError,
    SemfluxError,
    ToolArgumentsError,
    TruncatedStreamError,
)
from semflux.events import (
    Abort,
    ChatEvent,
    Error,
    ResponseEnd,
    ResponseStart,
    StepStart,
    TextDelta,
    ToolCallArgsDelta,
)
from semflux.frozen import FrozenDict
from semflux.operators.aggregate import aggregate
from semflux.operators.filter_events import filter_events
from semflux.operators.normalize import normalize
from semflux.operators.pipeline import pipeline
from semflux.operators.run import Run
from semflux.operators.terminate import terminate
from semflux.response import ChatResponse
from semflux.state import RunState
from semflux.terminate import Terminator
from semflux.wire.limits import Limits
from tests.notation import FULL, draft, show


def ticking(state: RunState) -> RunState:
    """*state* with a clock that goes on by a second at each look."""
    clock = iter(range(100, 200))
    state.time = lambda: float(next(clock))
    return state


def test_events_are_stamped_once_and_frozen() -> None:
    """*seq* counts from 0, time is the clock's; a frozen event that somebody may have seen is copied."""
    seen = TextDelta("a")
    terminator = Terminator(ticking(RunState()))
    out = [*terminator.push(TextDelta.draft_class("x")), *terminator.push(seen)]

    assert [(event.seq, event.time) for event in out] == [(0, 100.0), (1, 101.0)]
    assert (seen.seq, out[1]) == (-1, seen)
    for event in out:
        assert type(event) is TextDelta
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            event.text = "b"  # type: ignore[misc]  # it is frozen


def test_a_draft_becomes_its_event_in_place() -> None:
    """Nobody has seen it: no copy is made."""
    delta = TextDelta.draft_class("x")

    assert [*Terminator().push(delta)] == [delta]
    assert type(delta) is TextDelta


@pytest.mark.parametrize(
    "terminal", [ResponseEnd(), Abort(), Error(SemfluxError("x"))], ids=["end", "abort", "error"]
)
def test_nothing_comes_after_the_terminal_event(terminal: Any) -> None:
    """Dropped and counted."""
    state = RunState(strict=True)
    terminator = Terminator(state)
    assert not terminator.ended
    out = [
        *terminator.push(terminal),
        *terminator.push(TextDelta("late")),
        *terminator.finish(),
        *terminator.finish(SemfluxError("y")),
    ]

    assert out == [terminal]
    assert terminator.ended
    assert terminator.error is terminal.error
    assert state.ledger.repairs == {"after_terminal": 1}


def test_an_input_that_just_ends_gives_an_error() -> None:
    """With what had arrived, on the event and on the exception."""
    state = RunState(response_id="r")
    terminator = Terminator(state)
    state.fold.add(TextDelta("par"))
    (event,) = terminator.finish()

    assert isinstance(event, Error)
    assert isinstance(event.error, TruncatedStreamError)
    assert terminator.error is event.error
    assert event.response is not None
    assert (event.response.text, event.error.partial) == ("par", event.response)


def test_a_failure_gives_an_error_with_itself() -> None:
    """What it knows already, it keeps."""
    known = ChatResponse(response_id="known")
    failure = ConnectionLostError("x", partial=known)
    (event,) = Terminator().finish(failure)

    assert event.error is failure
    assert failure.partial is known


# The four stages: as one operator, and one after another.


def staged(keep: Any = None) -> Any:
    return lambda source: source.pipe(
        normalize(), aggregate(), terminate(), filter_events(keep or (lambda event: True))
    )


def run(
    operator: Any, drafts: list[Any], *, error: Exception | None = None, state: RunState | None = None
) -> tuple[list[ChatEvent], list[Any]]:
    """The events, and how it ended: the exception, or "completed"."""
    events: list[ChatEvent] = []
    ends: list[Any] = []
    source = reactivex.from_iterable(drafts)
    if error is not None:
        source = reactivex.concat(source, reactivex.throw(error))
    source.pipe(operator).subscribe(
        events.append,
        ends.append,
        lambda: ends.append("completed"),
        scheduler=Run(state=state or RunState(response_id="r")).scheduler,
    )
    return events, ends


def both(make: Any, **options: Any) -> tuple[list[ChatEvent], list[Any]]:
    """What `pipeline` and the four operators give for the drafts of *make*: the same."""
    first, first_ends = run(pipeline(), make(), state=make_state(options), error=options.get("error"))
    second, second_ends = run(staged(), make(), state=make_state(options), error=options.get("error"))
    assert show(first) == show(second)
    assert [event.seq for event in first] == [event.seq for event in second] == list(range(len(first)))
    assert [type(end) for end in first_ends] == [type(end) for end in second_ends]
    assert len(first_ends) == 1
    assert first_ends[0] == "completed" or first_ends[0] is first[-1].error
    return first, first_ends


def make_state(options: dict[str, Any]) -> RunState:
    state = RunState(
        response_id="r", strict=options.get("strict", False), boundaries=options.get("boundaries", FULL)
    )
    state.configure(limits=options.get("limits"))
    return state


def drafts(tokens: str) -> Any:
    return lambda: [draft(token) for token in tokens.split()]


def test_a_stream_that_ends_well_completes() -> None:
    """After RESPONSE_END nothing of the source is delivered."""
    events, ends = both(drafts("RESP+ STEP+0 TEXT+ TEXT~a TEXT- STEP-0 RESP- TEXT~late RESP-"))

    assert show(events) == "RESP+ STEP+0 TEXT+ TEXT~a TEXT- STEP-0 RESP-"
    assert ends == ["completed"]
    assert violations_of(events) == ()


def test_an_aborted_stream_completes() -> None:
    """ABORT is no failure."""
    events, ends = both(drafts("RESP+ STEP+0 TEXT+ TEXT~a ABORT"))

    assert show(events) == "RESP+ STEP+0 TEXT+ TEXT~a TEXT-? STEP-0? ABORT"
    assert ends == ["completed"]


@pytest.mark.parametrize("error", [ConnectionLostError("x"), KeyError("k")], ids=["ours", "a stranger's"])
def test_a_source_that_fails_is_closed_in_order(error: Exception) -> None:
    """ERROR, then on_error with the same object."""
    events, ends = both(drafts("RESP+ STEP+0 THINK+ THINK~t TOOL+[c:f]"), error=error)

    assert show(events) == "RESP+ STEP+0 THINK+ THINK~t TOOL+[c:f] THINK-? TOOL-[c]? STEP-0? ERROR"
    assert isinstance(ends[0], SemfluxError)
    assert ends[0] is error or ends[0].__cause__ is error


def test_a_source_that_just_ends_gives_an_error() -> None:
    """What is open is ended, then TruncatedStreamError."""
    events, ends = both(drafts("RESP+ STEP+0 TEXT+ TEXT~a TEXT- STEP-0"))

    assert show(events) == "RESP+ STEP+0 TEXT+ TEXT~a TEXT- STEP-0 ERROR"
    assert isinstance(ends[0], TruncatedStreamError)


def test_a_source_that_ends_inside_a_block_of_a_strict_stream_fails_with_the_repair() -> None:
    """And once."""
    events, ends = both(drafts("RESP+ STEP+0 TEXT+ TEXT~a"), strict=True)

    assert show(events) == "RESP+ STEP+0 TEXT+ TEXT~a TEXT-? STEP-0? ERROR"
    assert ends[0].kind == "missing_end"


SMALL = Limits(max_text_chars=2, max_thinking_chars=2, max_tool_args_chars=2, max_tool_calls=1)


@pytest.mark.parametrize(
    "tokens, cls, shown",
    [
        ("TEXT+ TEXT~ab TEXT~c", ResponseTooLargeError, "TEXT+ TEXT~ab TEXT-?"),
        ("TEXT+ TEXT~a TEXT~b TEXT~c", ResponseTooLargeError, "TEXT+ TEXT~a TEXT~b TEXT-?"),
        ("THINK+ THINK~a THINK~b THINK~c", ResponseTooLargeError, "THINK+ THINK~a THINK~b THINK-?"),
        ("TEXT+ TEXT~abc", ResponseTooLargeError, "TEXT+ TEXT-?"),
        ("REFUSAL~abc", ResponseTooLargeError, ""),
        ("TOOL+[c:f] TOOL~[c]abc", ToolArgumentsError, "TOOL+[c:f] TOOL-[c]?"),
        ("TOOL+[c:f] TOOL+[d:f]", ToolArgumentsError, "TOOL+[c:f] TOOL-[c]?"),
    ],
)  # fmt: skip
def test_a_bound_that_is_passed_closes_the_stream_in_order(
    tokens: str, cls: type[Exception], shown: str
) -> None:
    """Without the event that passed it, and with one terminal event."""
    events, ends = both(drafts(f"RESP+ STEP+0 {tokens} TEXT~more STEP-0 RESP-"), limits=SMALL)

    assert show(events) == " ".join(["RESP+ STEP+0", *shown.split(), "STEP-0? ERROR"])
    assert type(ends[0]) is cls
    assert violations_of(events) == ()


def test_what_a_failing_stream_still_tells_passes_no_bound_again() -> None:
    """Half a pair, arguments that waited for a name: they are ended, not refused."""
    high = "\ud83d"

    def make() -> list[Any]:
        waiting = ToolCallArgsDelta.draft_class("abcd", "c", None)
        return [
            ResponseStart.draft_class(),
            StepStart.draft_class(),
            TextDelta.draft_class("ab" + high),
            waiting,
            draft("ERROR"),
        ]

    events, ends = both(make, limits=SMALL, boundaries=FULL)

    assert show(events) == (
        "RESP+ STEP+0 TEXT+! TEXT~ab TEXT~\ufffd TEXT-? TOOL+[c]! TOOL~[c]abcd TOOL-[c]? STEP-0? ERROR"
    )
    assert violations_of(events) == ()
    assert isinstance(ends[0], ConnectionLostError)


def test_the_short_way_of_deltas_gives_what_the_long_one_gives() -> None:
    """Deltas of one block after another, interrupted by everything that may interrupt them."""

    def make() -> list[Any]:
        special = TextDelta.draft_class("l", attributes=FrozenDict(logprobs=({"token": "l"},)))
        more = [TextDelta.draft_class(text) for text in ("a", "b", "ä", "c", "d\ud83d", "\ude00", "e", "f")]
        tokens = "TEXT~g{x,1} TEXT~h{x,1} TEXT~i THINK~t THINK~u USAGE THINK~v TEXT~j TEXT~k RESP-"
        return [
            draft("RESP+"),
            draft("STEP+0"),
            *more,
            special,
            TextDelta.draft_class("m"),
            *[draft(t) for t in tokens.split()],
        ]

    events, ends = both(make)

    assert ends == ["completed"]
    assert violations_of(events) == ()
    response: Any = events[-1].response
    assert (response.text, response.thinking) == ("abäcd😀eflmghijk", "tuv")
    assert response.logprobs == ({"token": "l"},)


def test_frozen_events_of_somebody_else_pass_through_the_pipeline() -> None:
    """As copies."""
    seen = [ResponseStart(), StepStart(), TextDelta("a"), TextDelta("b"), ResponseEnd()]
    events, ends = both(lambda: seen)

    assert show(events) == "RESP+ STEP+0 TEXT+! TEXT~a TEXT~b TEXT-! STEP-0 RESP-"
    assert ends == ["completed"]
    assert all(event.seq == -1 for event in seen)
