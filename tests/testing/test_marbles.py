"""Marbles as text: what came, on one line; and the same line as a source."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex
from hypothesis import given
from hypothesis import strategies as st

from semflux import (
    BlockingInLoopError,
    ChatEventType,
    ChatResponse,
    ChatStream,
    ConfigurationError,
    Flux,
    RateLimitError,
    ResponseEnd,
    ResponseStart,
    Secret,
    StepEnd,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from semflux.clock import VirtualClock
from semflux.events import EVENT_CLASSES
from semflux.response import StepResponse
from semflux.testing import (
    Marbles,
    Mark,
    Signal,
    SignalKind,
    StepVerifier,
    from_marbles,
    marble_text,
    record,
    record_async,
)
from semflux.testing.marble_labels import NOTATION, token_of
from tests.events.samples import SAMPLES, sample

T = ChatEventType

ANSWER = (
    ResponseStart(),
    StepStart(),
    TextStart(),
    TextDelta("a"),
    TextDelta("b"),
    TextEnd(),
    StepEnd(),
    ResponseEnd(),
)


# As text


def test_events_are_shown_in_the_notation_of_the_docstrings() -> None:
    """A terminal event brings the end with it."""
    assert "RESP+ STEP+ TEXT+ TEXT~a TEXT~b TEXT- STEP- RESP-|" == marble_text(ANSWER)
    assert "RESP+ STEP+" == marble_text(ANSWER[:2])
    assert "ERROR(RateLimitError) X(RateLimitError)" == marble_text([SAMPLES[T.ERROR]])


def test_each_of_the_event_types_has_a_word_of_its_own() -> None:
    assert set(T) == set(NOTATION)
    assert len(T) == len(set(NOTATION.values()))
    assert (
        "RESP+ STATUS(abc) HEARTBEAT RESP- ABORT(abc) STEP+1 STEP-1 TEXT+ TEXT~abc TEXT- THINK+ THINK~abc THINK-"
        " SIGNATURE REDACTED TOOL+[abc:abc] TOOL~[abc]abc TOOL-[abc] RESULT[abc] SERVER+(abc) SERVER~abc SERVER-(abc)"
        " CITATION MEDIA~ MEDIA- REFUSAL~abc FILTER(abc) USAGE ERROR(RateLimitError) RAW CUSTOM(abc)"
    ) == marble_text(SAMPLES.values())


@pytest.mark.parametrize("type_", T)
def test_no_event_shows_more_than_20_characters_of_a_text(type_: ChatEventType) -> None:
    shown = token_of(sample(type_, text="s" * 500, data="d" * 500))
    assert "s" * 18 not in shown
    assert "d" * 5 not in shown


@pytest.mark.parametrize(
    "item, shown",
    [
        ("word", "word"),
        ("two words", "'two words'"),
        ("1", "'1'"),
        ("", "''"),
        ("None", "'None'"),
        ("X", "'X'"),
        ("TEXT", "'TEXT'"),
        ("é", "é"),
        ("line\nend", "'line\\nend'"),
        ("it's", '"it\'s"'),
        ("p" * 21, f"{'p' * 17}..."),
        (1, "1"),
        (1.5, "1.5"),
        (-1, "{-1}"),
        (1e-9, "{1e-09}"),
        (10**30, "{10000000000000000...}"),
        (None, "None"),
        (True, "True"),
        ([1, "a"], "[1, a]"),
        ((0, "a"), "<0, a>"),
        ([1, 2, 3, 4, 5, 6], "[1, 2, 3, 4, +2]"),
        ([[[["deep"]]]], "[[[[...]]]]"),
        ({"a": 1}, "{'a': 1}"),
        (ValueError("a secret"), "{ValueError}"),
        (Flux.empty(), "{Flux}"),
        (Secret("key"), "{Secret('***')}"),
        (TextDelta("two words"), "TEXT~'two words'"),
        (ChatResponse(), "{Response}"),
        (ChatResponse(steps=(StepResponse(text="Hi"),)), "{Response 'Hi'}"),
    ],
)
def test_items_are_shown_by_a_short_repr(item: object, shown: str) -> None:
    expected = repr(shown[:-3] + "...") if shown.startswith("ppp") else shown
    assert expected == token_of(item)


def test_what_cannot_be_shown_is_shown_all_the_same() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert "{Broken, whose rep...}" == token_of(Broken())


def test_a_long_stream_is_shortened_with_a_count() -> None:
    """The first, how many are left out, the last."""
    assert "0 1 ...(95 more)... 97 98 99" == marble_text(range(100), limit=6)
    assert "0 1 2 3" == marble_text(range(4), limit=4)
    assert len(marble_text(range(100_000))) < 250
    timed = record(from_marbles("a-b-c-d-e-f-g-h|"))
    assert "a -2s- ...(6 more)... -12s- h -1s-|" == timed.text(limit=4)


def test_columns_are_proportional_to_time() -> None:
    def at(*times: float) -> Marbles:
        return Marbles(tuple([Mark(Signal(SignalKind.NEXT, "a"), time) for time in times]))

    assert "a--a-a-" == at(0, 3, 5).text()
    assert "a---a-" == at(0, 4).text()
    assert "a-a---a-" == at(0, 0.1, 0.3).text()
    assert "--(a a)-" == at(2, 2).text()
    assert "a-a-" == at(0, 600).text()
    assert "a -0.001s- a -999.999s- a" == at(0, 0.001, 1000).text()
    assert "a -1s- a" == at(0, 1).text(step=1.0)
    assert "a-a-" == at(0, 1).text(step=0.5)
    assert "a a" == Marbles.of("aa").text()


def test_ends_are_shown() -> None:
    failed = Signal(SignalKind.ERROR, RateLimitError("the text of an error is private"))
    assert "1 X(RateLimitError)" == marble_text([1, failed])
    assert "1|" == marble_text([1, Signal(SignalKind.COMPLETE)])
    assert "|" == marble_text([Signal(SignalKind.COMPLETE)])
    assert "" == marble_text([])
    assert "--1-X(IdleTimeoutError)" == str(record(from_marbles("--1").timeout(item=2)))


# Recorded


def test_a_stream_is_recorded_with_its_times() -> None:
    marbles = record(from_marbles("--a--b|"))
    assert [(2.0, "a"), (5.0, "b"), (6.0, "|")] == [(mark.time, mark.token) for mark in marbles.marks]
    assert 0.0 == marbles.begin
    assert "--a--b|" == str(marbles)
    assert "-----[a, b]-----|" == record(from_marbles("--a--b----------|").buffer(2)).text(step=1)


def test_a_function_gets_the_clock() -> None:
    def make(clock: VirtualClock) -> Flux[Any]:
        clock.call_later(1, lambda: None)
        return from_marbles("-a|", clock=clock)

    assert "-a|" == str(record(make))


def test_operators_of_rxpy_go_by_the_clock() -> None:
    assert "--0-1-2-" == record(reactivex.interval(60.0), seconds=180).text()


def test_sources_inside_of_a_stream_go_by_the_clock_too() -> None:
    """Each source of several has a run of its own, in the time of the one below it."""
    one, two = from_marbles("--1----2|"), from_marbles("--a--|")
    nested = record(one.flat_map(lambda n: two))
    assert [(4, "a"), (9, "a"), (12, "|")] == [(mark.time, mark.token) for mark in nested.marks]
    assert "--1----2--a--|" == str(record(one.concat_with(two)))
    assert "--a-X(IdleTimeoutError)" == str(record(Flux.merge(two.timeout(item=2), Flux.empty())))


@pytest.mark.parametrize(
    "stream", [from_marbles("--a|").on_backpressure_buffer(), from_marbles("--a|").limit_rate(2)]
)
def test_so_do_those_above_a_buffer_that_is_pulled_from(stream: Flux[Any]) -> None:
    (
        StepVerifier.with_virtual_time(lambda clock: stream, demand=1)
        .expect_no_event(1)
        .then_await(1)
        .expect_next("a")
        .then_await(1)
        .verify_complete()
    )


def test_a_subscriber_may_cancel() -> None:
    assert "--a-!" == str(record(from_marbles("--a--b|"), cancel_at=4))
    assert "--a|" == str(record(from_marbles("--a|"), cancel_at=9))


def test_what_never_ends_is_given_up() -> None:
    assert "--a-" == str(record(from_marbles("--a")))
    assert "" == str(record(Flux.create(lambda sink: None)))


async def test_in_a_coroutine_it_is_awaited() -> None:
    assert "--a|" == str(await record_async(from_marbles("--a|")))
    with pytest.raises(BlockingInLoopError, match="await record_async"):
        record(from_marbles("--a|"))


# Read


def items_of(text: str, **options: Any) -> list[Any]:
    return [mark.signal.value for mark in Marbles.parse(text, **options).marks if mark.signal is not None]


def test_items_are_read_back() -> None:
    assert ["a", 1, 1.5, None, True, "b c", [1, ["x"]], (0, "a"), -1] == items_of(
        "a 1 1.5 None True 'b c' [1, [x]] <0, a> {-1}"
    )
    assert [1, 2] == items_of("--a--b", values={"a": 1, "b": 2})
    assert [Ellipsis] == items_of("--{thing}", values={"{thing}": Ellipsis})
    assert ["a", "b"] == items_of("--(a,b)")


@pytest.mark.parametrize("type_", T)
def test_events_are_read_back(type_: ChatEventType) -> None:
    word = token_of(SAMPLES[type_])
    (event,) = items_of(word)
    assert type_ is event.type
    assert word == token_of(event)
    assert isinstance(event, EVENT_CLASSES[type_])


def test_errors_are_read_back() -> None:
    given = ValueError("mine")
    assert [RateLimitError, KeyError, Exception, Exception] == [
        type(Marbles.parse(text).marks[-1].signal.value)  # type: ignore[union-attr]  # it is an error
        for text in ("X(RateLimitError)", "X(KeyError)", "#", "X")
    ]
    assert [given] == items_of("#", error=given)


def test_a_character_is_a_step_and_blanks_take_no_time() -> None:
    def times(text: str, step: float = 1.0) -> list[float | None]:
        return [mark.time for mark in Marbles.parse(text, step=step).marks]

    assert [2, 5, 6] == times("--a--b|")
    assert [0.2, 0.5, 0.6] == times("--a--b|", 0.1)
    assert [2, 2, 2] == times("--(a b |)")
    assert [2, 7] == times("--'ab'-|")
    assert [0, 0, 0] == times("a b c")
    assert [0, 0.6, 10.6] == times("a -0.6s- b -10s-|")


@pytest.mark.parametrize(
    "text, problem",
    [
        ("--a|b", "nothing comes after an end"),
        ("--(a", r"a \) is missing"),
        ("--[a", r"a comma or \] is to come here"),
        ("--[a b]", r"a comma or \] is to come here"),
        ("--%", "a word, a number"),
        ("0 ...(5 more)... 9", "was shortened"),
        ("X(Nonsense)", "no error class is called Nonsense"),
        ("X(print)", "no error class"),
        ("--{Flux}", "was is not in the text"),
        ("[1, +2]", "a word, a number"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        from_marbles(text)


def test_a_step_is_above_zero_and_a_source_does_not_cancel() -> None:
    with pytest.raises(ConfigurationError, match="above zero"):
        from_marbles("--a", step=-1)
    with pytest.raises(ConfigurationError, match="what a subscriber does"):
        from_marbles("--a!")


# A source


def test_a_text_is_a_source_in_a_verification() -> None:
    (
        StepVerifier.with_virtual_time(lambda clock: from_marbles("--a--b|"))
        .expect_no_event(1)
        .then_await(1)
        .expect_next("a")
        .then_await(4)
        .expect_next("b")
        .verify_complete()
    )


def test_each_subscriber_gets_it_anew_and_a_cancel_stops_it() -> None:
    clock = VirtualClock()
    source = from_marbles("--a--b|", clock=clock)
    one: list[str] = []
    two: list[str] = []
    subscription = source.subscribe(one.append)
    clock.advance(2)
    source.subscribe(two.append)
    subscription.dispose()
    assert 1 == clock.pending
    clock.advance(9)
    assert (["a"], ["a", "b"]) == (one, two)
    assert 0 == clock.pending


def test_without_times_it_needs_no_clock() -> None:
    got: list[Any] = []
    from_marbles("a (b c) d|").subscribe(got.append)
    assert ["a", "b", "c", "d"] == got


def test_a_cancel_from_inside_an_item_stops_the_rest_of_its_time() -> None:
    assert "a|" == str(record(from_marbles("a b c|").take(1)))
    assert [1] == from_marbles("1 2 3|").take(1).collect_list().block()


def test_events_in_a_text_are_a_chat_stream() -> None:
    stream = ChatStream(from_marbles("RESP+--STEP+--TEXT+--TEXT~Blue--TEXT~light--TEXT-|"))
    got = record(stream.text())
    assert [(21, "Blue"), (32, "light"), (49, "|")] == [(mark.time, mark.token) for mark in got.marks]


# There and back

_words = st.sampled_from(
    ["a", "b", "word", "'two words'", "1", "1.5", "{-1}", "[1, x]", "<0, a>", "None", "''"]
    + [token_of(event) for event in SAMPLES.values() if not event.is_terminal]
)
_ends = st.sampled_from(["|", "X(KeyError)", "X(RateLimitError)"])
_groups = st.one_of(
    _words, st.lists(_words, min_size=2, max_size=3).map(lambda words: f"({' '.join(words)})")
)


@given(st.lists(_words, min_size=1, max_size=12), _ends)
def test_a_text_without_times_comes_back_as_it_was(words: list[str], end: str) -> None:
    text = f"{' '.join([*words, ''])}{end}".replace(" |", "|")
    if " " not in text:
        return  # of one item: a character is a step, then
    assert text == marble_text(record(from_marbles(text)))


@given(st.lists(st.tuples(st.integers(1, 5), _groups), min_size=1, max_size=6), st.integers(1, 5), _ends)
def test_a_text_with_times_comes_back_as_it_was(marks: list[tuple[int, str]], last: int, end: str) -> None:
    text = "".join([f"{'-' * dashes}{token}" for dashes, token in marks]) + "-" * last + end
    assert text == record(from_marbles(text)).text(step=1.0, width=500)
    assert text == record(from_marbles(text, step=0.25)).text(step=0.25, width=500)
