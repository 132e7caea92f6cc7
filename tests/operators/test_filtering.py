"""map, filter, only, in_group, text, filter_events, the takes, single, collect_list: each on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import reactivex

from semflux.errors import ConfigurationError, EmptySequenceError, TooManyItemsError
from semflux.events import (
    ChatEvent,
    ChatEventGroup,
    ChatEventType,
    Heartbeat,
    ResponseEnd,
    ResponseStart,
    Status,
    StepStart,
    TextDelta,
    TextStart,
    ThinkingDelta,
)
from semflux.filters import ChatEventFilter
from semflux.operators import (
    collect_list,
    do_on_cancel,
    filter_,
    filter_events,
    in_group,
    map_,
    only,
    single,
    take,
    take_until,
    take_while,
    text,
)
from tests.operators.watching import END, Probe, error, item, plain, raising, rx, signals, watch

T, G = ChatEventType, ChatEventGroup
EVENTS = (
    ResponseStart(),
    StepStart(),
    ThinkingDelta("t"),
    TextStart(),
    TextDelta("a"),
    TextDelta("b"),
    ResponseEnd(),
)
FAILURE = ValueError("mine")


def tenfold(value: int) -> int:
    return value * 10


def is_odd(value: int) -> int:
    return value % 2


def below_3(value: int) -> bool:
    return value < 3


def test_map_gives_the_function_of_each_item() -> None:
    """None is a value as any other."""
    assert [item(10), item(20), END] == signals(plain.of(1, 2).pipe(map_(tenfold)))
    assert [item(None), END] == signals(plain.of(1).pipe(map_(lambda _: None)))


def test_filter_keeps_what_the_predicate_holds_for() -> None:
    """Anything true will do."""
    assert [item(1), item(3), END] == signals(plain.of(1, 2, 3).pipe(filter_(is_odd)))


FUNCTIONS: list[Callable[[Callable[[Any], Any]], Any]] = [map_, filter_, take_while]


@pytest.mark.parametrize("operator", FUNCTIONS)
def test_a_function_that_raises_cancels_the_source_and_is_the_error(operator: Any) -> None:
    """The source is let go of first; the item at which it raised is not delivered."""
    probe = Probe(1, 2, 3)
    told = probe.log = []
    probe.source.pipe(operator(raising(FAILURE, at=2))).subscribe(told.append, told.append)

    assert [1, "source disposed", FAILURE] == told
    assert ([1, 2], 1) == (probe.emitted, probe.disposed)


@pytest.mark.parametrize(
    "operator", [*[f(lambda x: x) for f in FUNCTIONS], take(3), take_until(lambda _: False), single()]
)
def test_an_error_of_the_source_goes_through(operator: Any) -> None:
    """As it is, and alone."""
    assert [error(FAILURE)] == signals(plain.throw(FAILURE).pipe(operator))


def test_only_takes_types_classes_and_names() -> None:
    """Exactly these: no terminal event, unless it is named; the end comes all the same."""
    source = plain.of(*EVENTS)
    a, b = item(TextDelta("a")), item(TextDelta("b"))

    assert [a, b, END] == signals(source.pipe(only(T.TEXT_DELTA)))
    assert [a, b, END] == signals(source.pipe(only(TextDelta)))
    assert [a, b, END] == signals(source.pipe(only("TEXT_DELTA")))  # type: ignore[arg-type]  # a name will do
    assert [a, b, item(ResponseEnd()), END] == signals(source.pipe(only(TextDelta, T.RESPONSE_END)))
    assert [END] == signals(source.pipe(only()))


@pytest.mark.parametrize("wrong", ["text", 7, None, int, ChatEvent, [T.TEXT_DELTA], G.TEXT.lower()])
def test_only_refuses_what_is_no_type(wrong: Any) -> None:
    """When the chain is written, with a word on what to write."""
    with pytest.raises(
        ConfigurationError, match=r"no event type: write ChatEventType\.TEXT_DELTA or TextDelta"
    ):
        only(wrong)


def test_in_group_takes_groups_and_their_names() -> None:
    """All events of the group and nothing else."""
    source = plain.of(*EVENTS)
    group = [item(TextStart()), item(TextDelta("a")), item(TextDelta("b")), END]

    assert group == signals(source.pipe(in_group(G.TEXT)))
    assert group == signals(source.pipe(in_group("TEXT")))  # type: ignore[arg-type]  # a name will do
    assert [item(ThinkingDelta("t")), *group] == signals(source.pipe(in_group(G.TEXT, G.THINKING)))


@pytest.mark.parametrize("wrong", ["text", 7, None, TextDelta])
def test_in_group_refuses_what_is_no_group(wrong: Any) -> None:
    """As `only` does."""
    with pytest.raises(ConfigurationError, match=r"no group of events: write ChatEventGroup\.TEXT"):
        in_group(wrong)


def test_text_gives_the_pieces_of_the_answer() -> None:
    """Not those of thinking."""
    assert [item("a"), item("b"), END] == signals(plain.of(*EVENTS).pipe(text()))


@pytest.mark.parametrize("keep", [ChatEventFilter.of(T.TEXT_DELTA), lambda event: event.type is T.TEXT_DELTA])
def test_filter_events_always_shows_the_frame_of_the_stream(keep: Any) -> None:
    """Steps, lifecycle and terminal events come whatever it says; HEARTBEAT only where it says so."""
    source = plain.of(*EVENTS[:-1], Status("queued"), Heartbeat(), EVENTS[-1])

    assert ["RESPONSE_START", "STEP_START", "TEXT_DELTA", "TEXT_DELTA", "STATUS", "RESPONSE_END"] == [
        event.type for event in watch(source.pipe(filter_events(keep))).items
    ]


@pytest.mark.parametrize("count", range(1, 5))
def test_take_cancels_the_source_before_it_completes(count: int) -> None:
    """And before the last item is delivered: the source never makes one more."""
    probe = Probe(1, 2, 3, 4, 5)
    log = probe.log = []
    probe.source.pipe(take(count)).subscribe(log.append, None, lambda: log.append("end"))

    assert [*range(1, count), "source disposed", count, "end"] == log
    assert (count, 1) == (len(probe.emitted), probe.disposed)


def test_take_of_nothing_never_subscribes() -> None:
    """It just ends."""
    probe = Probe(1)
    assert [END] == signals(probe.source.pipe(take(0)))
    assert 0 == probe.subscribed


def test_take_of_more_than_there_is_takes_all() -> None:
    """The end of the source is the end."""
    assert [item(1), item(2), END] == signals(plain.of(1, 2).pipe(take(3)))


def test_take_refuses_a_negative_count() -> None:
    """When the chain is written."""
    with pytest.raises(ConfigurationError, match=r"take\(-1\)"):
        take(-1)


def test_take_may_be_cancelled_at_its_last_item() -> None:
    """Then no end is told."""
    told: list[Any] = []
    subject: reactivex.Subject[int] = reactivex.Subject()
    later: list[Any] = []

    def last(value: int) -> None:
        told.append(value)
        later[0].dispose()

    later.append(subject.pipe(take(1)).subscribe(last, None, lambda: told.append("end")))
    subject.on_next(1)

    assert [1] == told


def test_take_while_ends_before_the_first_that_fails() -> None:
    """The source is cancelled; later items do not matter."""
    probe = Probe(1, 2, 3, 1)
    assert [item(1), item(2), END] == signals(probe.source.pipe(take_while(below_3)))
    assert ([1, 2, 3], 1) == (probe.emitted, probe.disposed)


def test_take_until_includes_the_first_that_holds() -> None:
    """It is delivered, then the end; the source is cancelled before both."""
    probe = Probe(1, 2, 3, 4)
    probe.log = []
    assert [item(1), item(2), item(3), END] == signals(probe.source.pipe(take_until(lambda x: x == 3)))
    assert ([1, 2, 3], 1) == (probe.emitted, probe.disposed)


def test_take_until_delivers_the_item_at_which_its_predicate_raises() -> None:
    """Then the error."""
    probe = Probe(1, 2, 3)
    assert [item(1), item(2), error(FAILURE)] == signals(probe.source.pipe(take_until(raising_at_2)))
    assert ([1, 2], 1) == (probe.emitted, probe.disposed)


def raising_at_2(value: int) -> bool:
    if value == 2:
        raise FAILURE
    return False


def test_single_gives_the_one_item_at_the_end() -> None:
    """EmptySequenceError without one; TooManyItemsError at the second, where the source is cancelled."""
    assert [item(1), END] == signals(plain.of(1).pipe(single()))
    assert [item(None), END] == signals(plain.of(None).pipe(single()))
    assert isinstance(watch(plain.empty().pipe(single())).error, EmptySequenceError)

    probe = Probe(1, 2, 3)
    seen = watch(probe.source.pipe(single()))
    assert isinstance(seen.error, TooManyItemsError)
    assert ([], [1, 2], 1) == (seen.items, probe.emitted, probe.disposed)


def test_collect_list_gives_all_items_at_the_end() -> None:
    """An empty list for an empty stream; an error instead of a list."""
    assert [item([1, 2]), END] == signals(plain.of(1, 2).pipe(collect_list()))
    assert [item([]), END] == signals(plain.empty().pipe(collect_list()))
    assert [error(FAILURE)] == signals(plain.concat(plain.of(1), plain.throw(FAILURE)).pipe(collect_list()))


ALL: list[tuple[Any, int]] = [
    (map_(lambda x: x), 3),
    (filter_(lambda _: True), 3),
    (take(9), 3),
    (take_while(lambda _: True), 3),
    (take_until(lambda _: False), 3),
    (single(), 0),
    (collect_list(), 0),
    (do_on_cancel(lambda: None), 3),
]


@pytest.mark.parametrize("operator, shown", ALL)
def test_nothing_comes_through_after_a_cancel(operator: Any, shown: int) -> None:
    """Whatever a source does that minds no cancel: no item, no error, no end."""
    kept: list[Any] = []
    deaf = plain.create(lambda observer, _: kept.append(observer))
    told: list[Any] = []
    subscription = deaf.pipe(Undetached(operator)).subscribe(
        told.append, told.append, lambda: told.append("end")
    )
    for value in (1, 1, 1)[:shown]:
        kept[0].on_next(value)
    subscription.dispose()
    link = Undetached.link
    link.on_next(2)
    link.on_error(FAILURE)
    link.on_completed()

    assert [1] * shown == told


class Undetached:
    """Applies an operator and keeps its link, which stands behind RxPY's own guard."""

    link: Any = None

    def __init__(self, operator: Any) -> None:
        self.operator = operator

    def __call__(self, source: Any) -> Any:
        lifted = self.operator(source)
        make = lifted._make

        def keep(below: Any, run: Any) -> Any:
            Undetached.link = make(below, run)
            return Undetached.link

        lifted._make = keep
        return lifted


def test_they_work_between_operators_of_rxpy() -> None:
    """In one `pipe` with map, start_with, distinct, share."""
    source = plain.of(1, 1, 2, 3, 4).pipe(
        rx.distinct(),
        map_(tenfold),
        rx.start_with(0),
        filter_(lambda x: x != 20),
        rx.share(),
        take(3),
        rx.to_list(),
    )
    assert [item([0, 10, 30]), END] == signals(source)


def test_a_chain_can_be_subscribed_to_many_times() -> None:
    """State is made at subscribe time."""
    chain = plain.of(1, 2, 3).pipe(take(2), collect_list())
    assert [item([1, 2]), END] == signals(chain) == signals(chain)


def test_what_a_subscribe_function_raises_is_the_error_of_the_stream() -> None:
    """For a source that is subscribed to without RxPY's own guard too."""

    class Broken(reactivex.Observable[int]):
        def subscribe(self, *args: Any, **kwargs: Any) -> Any:
            raise FAILURE

    assert [error(FAILURE)] == signals(Broken().pipe(map_(lambda x: x), single()))
