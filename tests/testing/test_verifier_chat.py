"""The semantic steps: what a chat stream says, whatever the cutting of its bytes and deltas."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

import semflux
from semflux import ChatEventType as T
from semflux import Flux, TextDelta, TextStart
from semflux.errors import ProviderError, TruncatedStreamError
from semflux.events import Abort, Error, ResponseEnd, ThinkingDelta
from semflux.testing import StepFailedError, StepVerifier
from semflux.testing.chat_steps import FRAME
from tests.frames import DONE, STOP, an, blk, cc, cu, cuts, dl, end, md, start, tc, text_block

create = StepVerifier.create

CLAUDE = b"".join(
    [
        start(),
        blk(0, "thinking", thinking="", signature=""),
        dl(0, "thinking_delta", thinking="h"),
        dl(0, "thinking_delta", thinking="m"),
        dl(0, "signature_delta", signature="SIG"),
        end(0),
        text_block(1, "Hel", "lo"),
        blk(2, "tool_use", id="a", name="add", input={}),
        dl(2, "input_json_delta", partial_json='{"x":'),
        dl(2, "input_json_delta", partial_json="1}"),
        end(2),
        md("tool_use"),
        STOP,
    ]
)


def claude(data: bytes = CLAUDE) -> Any:
    return semflux.parse(data, dialect="anthropic")


def hello(*pieces: str) -> Flux[Any]:
    return Flux.just(TextStart(), *[TextDelta(piece) for piece in pieces])


def failure(verifier: StepVerifier[Any]) -> StepFailedError:
    with pytest.raises(StepFailedError) as caught:
        verifier.verify()
    return caught.value


def test_a_whole_answer_in_a_few_steps() -> None:
    (
        create(claude())
        .expect_thinking("hm")
        .expect_text("Hello")
        .expect_tool("add", {"x": 1})
        .expect_usage(input=3, output=5)
        .expect_response(lambda response: response.finish_reason == "tool_calls")
        .verify_complete()
    )


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_any_cutting_of_the_bytes_is_the_same_answer(size: int) -> None:
    data = cc({"content": "Grüße 🌧"}) + cc({"content": " ok"}) + cc({}, "stop") + cu(3, 4) + DONE
    stream = semflux.parse(cuts(data, size), dialect="openai-chat")

    create(stream).expect_text("Grüße 🌧 ok").expect_usage(output=4, total=7).verify_complete()


def test_any_cutting_of_the_deltas_is_the_same_text() -> None:
    """Also where two steps share the text."""
    for cut in range(6):
        pieces = ["Hello!"[:cut], "Hello!"[cut:]]
        for at in range(7):
            create(hello(*pieces)).expect_text("Hello!"[:at]).expect_text("Hello!"[at:]).verify_complete()


def test_text_that_is_left_over_fails_the_next_step() -> None:
    """Whether it came in the same delta or in another."""
    for pieces in (["Hello"], ["Hel", "lo"]):
        assert (
            failure(create(hello(*pieces)).expect_text("Hel").expect_complete()).actual
            == "on_next(TextDelta(text='lo'))"
        )
        create(hello(*pieces)).expect_text("Hel").then_cancel().verify()


def test_text_works_on_texts_too() -> None:
    create(claude().text()).expect_text("He").expect_text("llo").verify_complete()


def test_a_record_has_what_was_left_over() -> None:
    (
        create(hello("Hello"))
        .expect_text("Hel")
        .record_with()
        .expect_text("lo")
        .expect_recorded_matches(lambda items: [item.text for item in items] == ["lo"])
        .verify_complete()
    )


@pytest.mark.parametrize(
    "verifier, expected, actual",
    [
        (create(claude()).expect_thinking("hm").expect_text("Help").expect_complete(), "text 'p' after 'Hel'", "text='lo'"),
        (create(claude()).expect_text("Hello").expect_complete(), "text 'Hello'", "ThinkingDelta"),
        (create(claude().text()).expect_thinking("x").expect_complete(), "thinking 'x'", "on_next('Hel')"),
        (create(claude()).expect_tool("add").expect_complete(), "a call add()", "ThinkingDelta"),
        (create(claude().in_group("TOOL_CALL")).expect_tool("sub", {"x": 1}).expect_complete(), "a call sub({'x': 1})", "a call add({'x': 1})"),
        (create(claude().in_group("TOOL_CALL")).expect_tool("add", {"x": 2}).expect_complete(), "a call add({'x': 2})", "a call add({'x': 1})"),
        (create(claude()).expect_usage(input=4).expect_complete(), "usage input_tokens=4", "usage input_tokens=3"),
        (create(claude()).expect_thinking("hm").expect_usage(input=4).expect_complete(), "usage input_tokens=4", "on_next(TextDelta"),
        (create(claude()).expect_response(lambda response: response.text == "x").expect_complete(), "RESPONSE_END with a response for which <lambda> is true", "on_next(RESPONSE_END) with ChatResponse"),
        (create(claude(CLAUDE[:500])).expect_response().expect_complete(), "RESPONSE_END", "on_next(Error"),
        (create(Flux.just(Abort("stop"))).expect_response().expect_complete(), "RESPONSE_END", "on_next(Abort"),
        (create(hello()).expect_response().expect_complete(), "RESPONSE_END", "on_complete()"),
        (create(claude()).expect_type(T.STEP_START).expect_complete(), "on_next(an event of type STEP_START)", "on_next(ResponseStart"),
        (create(Flux.just("x")).expect_type(T.STEP_START).expect_complete(), "on_next(an event of type STEP_START)", "on_next('x')"),
        (create(Flux.just(TextDelta("a"), Abort("stop"))).expect_text("a").expect_complete(), "on_complete()", "on_next(Abort"),
    ],
)  # fmt: skip
def test_each_step_says_what_it_wants(verifier: StepVerifier[Any], expected: str, actual: str) -> None:
    error = failure(verifier)

    assert expected == error.expected
    assert actual in error.actual


def test_types_are_exact() -> None:
    create(claude()).expect_type(
        T.RESPONSE_START, semflux.StepStart, T.USAGE, T.THINKING_START
    ).then_cancel().verify()


def test_usage_on_a_terminal_event_is_for_the_next_step_too() -> None:
    only_end = claude().only(ResponseEnd)
    create(only_end).expect_usage(output=5, reasoning=None).expect_response().verify_complete()


def test_an_error_after_content() -> None:
    """The partial end and ERROR are passed over; the error is the stream's."""
    data = start() + blk(0, "text", text="") + dl(0, "text_delta", text="Hel")
    create(claude(data)).expect_text("Hel").verify_error(TruncatedStreamError)
    overloaded = data + an("error", error={"type": "overloaded_error", "message": "Overloaded"})
    create(claude(overloaded)).expect_text("Hel").verify_error(ProviderError, re.compile("Overloaded"))
    assert failure(create(claude(data)).expect_text("Hel").expect_complete()).actual.startswith(
        "on_next(Error"
    )


def test_without_a_semantic_step_nothing_is_passed_over() -> None:
    assert "on_next(ResponseStart" in failure(create(claude()).expect_complete()).actual
    script = create(claude()).expect_text("").expect_next_count(1).expect_complete()
    assert "on_next(StepStart" in failure(script).actual


def test_a_call_that_is_cut_short_has_no_arguments() -> None:
    data = cc(tc(0, "a", "add", '{"x":')) + cc({}, "length") + DONE
    create(semflux.parse(data, dialect="openai-chat")).expect_tool("add").verify_complete()


def test_content_is_never_passed_over() -> None:
    content = {type_ for type_ in T if type_.is_content} - FRAME
    assert {
        T.TEXT_DELTA,
        T.THINKING_DELTA,
        T.TOOL_CALL_END,
        T.TOOL_CALL_ARGS_DELTA,
        T.REFUSAL_DELTA,
    } <= content
    assert FRAME & {T.RESPONSE_END, T.ABORT, T.ERROR} == set()
    assert {T.USAGE, T.TEXT_START, T.STEP_END, T.HEARTBEAT, T.RAW, T.CITATION, T.TOOL_CALL_START} <= FRAME


def test_thinking_is_told_from_text() -> None:
    for first, second in itertools.permutations([TextDelta("a"), ThinkingDelta("a")]):
        script = create(Flux.just(first, second))
        if first == TextDelta("a"):
            script.expect_text("a").expect_thinking("a").verify_complete()
        else:
            script.expect_thinking("a").expect_text("a").verify_complete()
    assert Error.__name__ == "Error"
