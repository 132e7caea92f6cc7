"""hold_back, guard and redact: what must not be seen is not, however it is cut, in no event and in no response."""

from __future__ import annotations

import re
from typing import Any

import pytest
import reactivex
from hypothesis import given
from hypothesis import strategies as st

import semflux
from semflux import (
    ChatEventType,
    ChatStream,
    Citation,
    CitedSource,
    ConfigurationError,
    Custom,
    Raw,
    ResponseEnd,
    SemfluxError,
    ServerToolResult,
    StepEnd,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ToolCall,
    ToolCallEnd,
    ToolResult,
)
from semflux.errors import ConnectionLostError
from semflux.events import ContentFilter, MediaDone, RefusalDelta, ServerToolStart, Status, ToolCallArgsDelta
from semflux.response import ChatResponse, MediaBlock, SearchResult, StepResponse
from tests.frames import DONE, STOP, an, blk, cc, cu, dl, md, start, tc, text_block
from tests.frames import end as block_end
from tests.operators.screened import BUSY, by_hand, everything, legal, openai, texts
from tests.operators.watching import watch
from tests.recovering import BEGUN, OK, source, walk
from tests.streams import stream, wrap

T = ChatEventType

# However it is cut


@pytest.mark.parametrize("at", range(1, len("a password!")))
def test_half_of_a_phrase_is_never_seen(at: int) -> None:
    whole = "a password!"
    seen = legal(watch(openai(whole[:at], whole[at:]).hold_back("PASSword")))
    assert "a ***!" == "".join(texts(seen))
    assert "a ***!" == seen.items[-1].response.text


@given(
    st.lists(st.text("paswP", max_size=5), max_size=8),
    st.lists(st.text("pasw", min_size=1, max_size=4), min_size=1, max_size=3),
    st.booleans(),
)
def test_any_cutting_gives_what_the_whole_text_gives(
    cut: list[str], wanted: list[str], as_pattern: bool
) -> None:
    longest_first = re.compile("|".join(sorted(wanted, key=len, reverse=True)), re.IGNORECASE)
    phrases: list[Any] = [longest_first] if as_pattern else wanted
    seen = legal(watch(openai(*cut).hold_back(*phrases, replace="-")))
    assert longest_first.sub("-", "".join(cut)) == "".join(texts(seen))


def test_what_has_nothing_to_hide_are_the_same_events() -> None:
    """Not copies: and what waits is held back no longer than it has to be."""
    source = openai("a pass", "age ", "to p")
    plain, seen = watch(source).items, watch(source.hold_back("password", "zebra")).items
    assert plain[:-1] == seen[:-1]
    assert plain[-1].response.text == seen[-1].response.text
    given = [TextDelta("a"), TextDelta("b")]
    passed = watch(by_hand(*given).hold_back("z")).items
    assert [id(event) for event in given] == [id(event) for event in passed]


def test_only_what_can_become_a_phrase_waits() -> None:
    subject = reactivex.Subject[Any]()
    seen = watch(ChatStream(subject).hold_back("password"))
    told: list[list[Any]] = []
    for piece in ("see", " p", "ark", " passw", "ord"):
        subject.on_next(TextDelta(piece))
        told.append(texts(seen))
    assert [
        ["see"],
        ["see"],
        ["see", " p", "ark"],
        ["see", " p", "ark"],
        ["see", " p", "ark", " ***"],
    ] == told


def test_what_comes_after_it_waits_behind_it() -> None:
    """The order stays, and `seq` rises."""
    usage = cc({"content": "pass"}) + cu(1, 1) + cc({"content": "ing"})
    seen = legal(watch(openai("on ", tail=usage + cc(finish="stop") + DONE).hold_back("password")))
    assert ["TEXT_DELTA", "TEXT_DELTA", "USAGE", "TEXT_DELTA"] == [
        event.type.value for event in seen.items if event.type in {T.TEXT_DELTA, T.USAGE}
    ]
    assert ["on ", "pass", "ing"] == texts(seen)


def test_a_phrase_goes_over_the_ends_of_blocks() -> None:
    """A vendor that cites cuts its text into many."""
    body = (
        start()
        + text_block(0, "the pass")
        + text_block(1, "word")
        + text_block(2, " is")
        + md("end_turn")
        + STOP
    )
    seen = legal(watch(semflux.parse(body, dialect="anthropic").hold_back("password")))
    assert ["the ***", " is"] == texts(seen)


def test_a_phrase_does_not_go_over_other_content() -> None:
    """What a call or thinking parts, nobody reads as one; it does not wait for more either."""
    body = (
        start()
        + text_block(0, "the pass")
        + blk(1, "thinking", thinking="")
        + dl(1, "thinking_delta", thinking="word pass")
        + block_end(1)
        + text_block(2, "word")
        + md("end_turn")
        + STOP
    )
    seen = legal(watch(semflux.parse(body, dialect="anthropic").hold_back("password")))
    assert ["the pass", "word"] == texts(seen)
    assert ["word pass"] == texts(seen, T.THINKING_DELTA)


def test_a_step_ends_its_texts() -> None:
    events = stream(
        *[*wrap(TextStart(), TextDelta("pass"), TextEnd(), text="pass")[:-1]],
        *wrap(TextStart(), TextDelta("word"), TextEnd(), text="word")[1:-1],
        ResponseEnd(ChatResponse.of([StepResponse(text="pass"), StepResponse(step=1, text="word")])),
    )
    seen = watch(by_hand(*events).hold_back("password"))
    assert ["pass", "word"] == texts(seen)
    assert "password" == seen.items[-1].response.full_text


def test_overlapping_blocks_are_one_text_to_their_reader() -> None:
    """In the order of the pieces: what a step's text is."""
    body = (
        start()
        + blk(0, "text", text="")
        + blk(1, "text", text="")
        + dl(0, "text_delta", text="pass")
        + dl(1, "text_delta", text="word")
        + dl(0, "text_delta", text="!")
        + block_end(0)
        + block_end(1)
        + md("end_turn")
        + STOP
    )
    seen = watch(semflux.parse(body, dialect="anthropic").hold_back("password"))
    assert ["***", "!"] == texts(seen)
    assert "***!" == seen.items[-1].response.text


def test_a_call_that_starts_in_the_middle_of_a_text_does_not_part_it() -> None:
    """Where its block is open: the call waits for the rest of the phrase."""
    body = (
        start()
        + blk(0, "text", text="")
        + dl(0, "text_delta", text="pass")
        + blk(1, "tool_use", id="c", name="f", input={})
        + dl(0, "text_delta", text="word")
        + block_end(1)
        + block_end(0)
        + md("tool_use")
        + STOP
    )
    seen = legal(watch(semflux.parse(body, dialect="anthropic").hold_back("password")))
    assert ["***"] == texts(seen)
    assert "c" == seen.items[-1].response.tool_calls[0].id


# What is looked at


def test_log_probabilities_of_changed_pieces_are_dropped() -> None:
    """They tell the words."""
    probable: Any = {"logprobs": {"content": [{"token": "pass"}, {"token": "word"}]}}
    body = (
        cc({"content": "password"}, **probable) + cc({"content": "x"}, **probable) + cc(finish="stop") + DONE
    )
    seen = watch(semflux.parse(body, dialect="openai-chat").hold_back("password"))
    first, second = [event for event in seen.items if event.type is T.TEXT_DELTA]
    assert (False, True) == ("logprobs" in first.attributes, "logprobs" in second.attributes)
    assert 2 == len(seen.items[-1].response.logprobs)


def test_a_replacement_may_be_made_of_what_was_found() -> None:
    assert "a PASS!" == "".join(texts(watch(openai("a pa", "ss!").hold_back("pass", replace=str.upper))))


def test_all_that_is_hidden_leaves_no_empty_piece() -> None:
    seen = legal(watch(openai("pass", "word").hold_back("password", replace="")))
    assert [] == texts(seen)


def test_refusals_and_thinking_are_looked_at_too_and_arguments_only_if_asked() -> None:
    body = (
        cc({"reasoning_content": "my pass"})
        + cc({"reasoning_content": "word"})
        + cc(tc(0, "c", "f", '{"a": "pass'))
        + cc(tc(0, args='word"}'))
        + cc({"refusal": "no pass"})
        + cc({"refusal": "word"})
        + cc(finish="tool_calls")
        + DONE
    )
    plain = watch(semflux.parse(body, dialect="openai-chat").hold_back("password"))
    assert (["my ***"], ["no ***"]) == (texts(plain, T.THINKING_DELTA), texts(plain, T.REFUSAL_DELTA))
    assert '{"a": "password"}' == plain.items[-1].response.tool_calls[0].arguments_json
    asked = watch(semflux.parse(body, dialect="openai-chat").hold_back("password", lanes=["tool_args"]))
    assert ["my pass", "word"] == texts(asked, T.THINKING_DELTA)
    (call,) = [event.tool_call for event in asked.items if event.type is T.TOOL_CALL_END]
    assert ('{"a": "***"}', {"a": "***"}) == (call.arguments_json, call.arguments)
    assert call == asked.items[-1].response.tool_calls[0]


SECRET = "sk-live-4242424242"
CARRIERS: list[Any] = [
    Status("queued", SECRET),
    ToolResult(ToolCall(id="c", name="f"), f"it is {SECRET}"),
    ServerToolStart("mcp", "x", SECRET, {"input": [SECRET]}, item_id="s"),
    ServerToolResult("mcp", SECRET, (SearchResult(title=SECRET, snippet=SECRET),), raw={"a": {"b": (SECRET, 1)}}, item_id="s"),
    Citation(CitedSource(url="u", cited_text=SECRET, raw={"text": SECRET}, start=1)),
    MediaDone(MediaBlock(kind="audio", data="c2stbGl2ZQ==", transcript=SECRET)),
    ContentFilter("x", SECRET),
    Raw({"choices": [{"text": SECRET}]}, attributes={"block": {"text": SECRET}}),
    Custom("choice", {"delta": SECRET}),
    RefusalDelta(SECRET),
    ThinkingDelta(SECRET),
    ToolCallArgsDelta(f'"{SECRET}"', "c"),
    ToolCallEnd("c", "f", ToolCall(id="c", name="f", arguments_json=f'{{"k": "{SECRET}"}}', arguments={"k": SECRET})),
]  # fmt: skip


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda event: event.type.value)
def test_redact_looks_everywhere(carrier: Any) -> None:
    """Each string of an event; and the responses are made of what passed."""
    step = StepResponse(
        text=SECRET,
        tool_calls=(ToolCall(id="c", name="f", arguments_json=SECRET),),
        citations=(CitedSource(cited_text=SECRET),),
    )
    events = stream(*wrap(carrier)[:-2], StepEnd(step), ResponseEnd(ChatResponse.of([step])))
    seen = watch(by_hand(*events).redact())
    assert len(events) == len(seen.items)
    assert SECRET not in everything(seen)
    assert "***" in everything(seen) or carrier.type is T.TOOL_CALL_END


def test_redact_hides_what_looks_like_a_key_however_it_is_cut() -> None:
    """And leaves prose, Markdown and numbers alone."""
    whole = f"Use ***this*** key: {SECRET}, and token=abcdef99 within 4096 tokens."
    for size in (1, 7, 1000):
        seen = legal(watch(openai(*[whole[i : i + size] for i in range(0, len(whole), size)]).redact()))
        assert "Use ***this*** key: ***, and token=*** within 4096 tokens." == "".join(texts(seen))


def test_redact_takes_patterns_of_yours() -> None:
    seen = legal(
        watch(openai("call 555-", "0199 or Bob").redact(re.compile(r"\d{3}-\d{4}"), "Bob", mask="[x]"))
    )
    assert "call [x] or [x]" == "".join(texts(seen))


def test_arguments_whose_pieces_a_filter_left_out_are_masked_whole() -> None:
    body = cc(tc(0, "c", "f", f'{{"k": "{SECRET}"}}')) + cc(finish="tool_calls") + DONE
    source = semflux.parse(body, dialect="openai-chat").only(T.TOOL_CALL_END, T.RESPONSE_END)
    seen = watch(source.redact())
    assert {"k": "***"} == seen.items[0].tool_call.arguments
    assert seen.items[0].tool_call == seen.items[-1].response.tool_calls[0]
    plain = watch(source.redact("nothing"))
    assert (
        {"k": SECRET}
        == plain.items[0].tool_call.arguments
        == plain.items[-1].response.tool_calls[0].arguments
    )


def test_a_response_tells_what_passed_and_nothing_else() -> None:
    """What a filter above left out could not be looked at."""
    seen = watch(openai("pass", "word").only(T.RESPONSE_END).hold_back("password"))
    assert ("", 3) == (seen.items[0].response.text, seen.items[0].response.usage.input_tokens)


# Failures, recovery, cancel


def test_a_failure_tells_nothing_either() -> None:
    """Neither the partial response of its ERROR, nor that of the exception, nor those of its causes."""
    seen = watch(openai("a pass", "word", tail=BUSY).hold_back("password"))
    assert "password" not in everything(seen)
    assert seen.items[-1].error is seen.error
    assert isinstance(seen.error, SemfluxError)
    assert seen.error.partial is not None
    assert ("a ***", True) == (seen.error.partial.text, seen.error.partial.partial)
    retried = watch(openai("password", tail=BUSY).retry(1).hold_back("password"))
    failure: Any = retried.error
    assert "password" not in everything(retried)
    while failure is not None:
        assert "password" not in repr(getattr(failure, "partial", None) and failure.partial.to_dict())
        failure = failure.__cause__ or failure.__context__


def test_causes_are_copied_once_and_kept_in_order() -> None:
    first, last = ConnectionLostError("first"), SemfluxError("last")
    first.partial = last.partial = ChatResponse.of([StepResponse(text="password")])
    first.__cause__, last.__context__ = last, first
    last.__suppress_context__ = True
    seen = watch(ChatStream(reactivex.throw(first)).hold_back("password"))
    told: Any = seen.error
    assert (ConnectionLostError, "first") == (type(told), str(told))
    assert ("", "") == (told.partial.text, told.__cause__.partial.text)
    assert told.__cause__.__suppress_context__
    assert "password" == first.partial.text


def test_an_error_that_tells_nothing_is_the_same_one() -> None:
    failure = ConnectionLostError("cut")
    assert failure is watch(ChatStream(reactivex.throw(failure)).redact()).error


@pytest.mark.parametrize("way", ["pull", "push", "await", "parse"])
def test_below_a_recovery_and_above_one(way: str) -> None:
    """All attempts are one stream, with one response."""
    for build in (
        lambda s: s.retry_when(semflux.Retry.max(1).restart()).hold_back("hel"),
        lambda s: s.hold_back("hel").retry_when(semflux.Retry.max(1).restart()),
    ):
        found = walk(way, build(source(way, BEGUN, OK))).check(seq="rising")
        assert "***lo" == found.response.text
        assert [True, False] == [step.partial for step in found.response.steps]
        assert "hel" not in repr(found.response.to_dict()).lower()


def test_a_limit_above_is_still_known_below() -> None:
    """Its error is another object there, and the fallback comes all the same."""
    from semflux.clock import VirtualClock

    clock = VirtualClock()
    subject = reactivex.Subject[Any]()
    fallback = openai("fine")
    stream = ChatStream(subject).timeout(item=1, clock=clock, fallback=fallback)
    seen = watch(stream.hold_back("password"))
    subject.on_next(TextDelta("a"))
    clock.advance(5)
    assert "fine" == texts(seen)[-1]


def test_a_replacement_that_raises_is_the_error() -> None:
    """The source is cancelled; at the end of a stream it is the error too."""

    def broken(found: str) -> str:
        raise ValueError(found)

    assert isinstance(
        watch(openai("a", "password", "b").hold_back("password", replace=broken)).error, ValueError
    )
    late = watch(ChatStream(reactivex.of(TextDelta("pass"))).hold_back("pass", "password", replace=broken))
    assert isinstance(late.error, ValueError)
    failing = reactivex.concat(reactivex.of(TextDelta("pass")), reactivex.throw(ConnectionLostError("x")))
    told = watch(ChatStream(failing).hold_back("pass", "password", replace=broken)).error
    assert isinstance(told, ValueError)
    assert isinstance(told.__context__, ConnectionLostError)


def test_a_subscriber_may_leave_at_any_event() -> None:
    total = len(watch(openai("a pass", "ing pass", "word").hold_back("password")).items)
    for count in range(1, total):
        seen: list[Any] = []
        stream = openai("a pass", "ing pass", "word").hold_back("password").take(count)
        stream.subscribe(seen.append)
        assert count == len(seen)


def test_a_function_below_that_raises_tells_nothing_of_what_waits() -> None:
    """The recovery ends the step itself then: with what was seen of it."""

    def broken(event: Any) -> None:
        if event.text == "b":
            raise ValueError

    above = openai("a", "b", "pass").hold_back("password").do_on_next(broken)
    seen = watch(above.on_error_resume(lambda error: openai("sorry")))
    assert ["ab", "sorry"] == [step.text for step in seen.items[-1].response.steps]


@pytest.mark.parametrize("name", ["hold_back", "guard"])
def test_wrong_arguments_are_refused_at_once(name: str) -> None:
    stream: Any = openai("a")
    for wrong in ((), ("",), (3,)):
        with pytest.raises(ConfigurationError, match=name):
            getattr(stream, name)(*wrong)
    for lanes in (["words"], []):
        with pytest.raises(ConfigurationError, match="lanes"):
            getattr(stream, name)("a", lanes=lanes)
    with pytest.raises(ConfigurationError, match="window=0"):
        stream.redact(window=0)


def test_an_event_of_a_vendor_has_no_other_strings() -> None:
    """Keys, numbers and media stay as they are."""
    raw = an("x", numbers=[1, 2.5, None, True], **{SECRET: "key"})
    assert raw
    seen = watch(ChatStream(reactivex.of(Raw({"n": (1, 2.5, None, True), "data": "x"}))).redact())
    assert {"n": (1, 2.5, None, True), "data": "x"} == seen.items[0].raw
