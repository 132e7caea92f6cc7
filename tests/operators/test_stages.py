"""The four stages: one by one as RxPY operators they give what the fused pipeline gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import reactivex
from hypothesis import given
from hypothesis import strategies as st
from reactivex import Observable

from semflux.errors import ConnectionLostError, RepairError, ResponseTooLargeError, SemfluxError
from semflux.events import ChatEventType, Error, TextDelta
from semflux.filters import ChatEventFilter
from semflux.normalize import SEAL
from semflux.operators import (
    EventSubject,
    Run,
    aggregate,
    filter_events,
    normalize,
    only,
    pipeline,
    terminate,
)
from semflux.state import IMPLIED, Boundaries, RunState
from semflux.wire.limits import Limits
from tests.notation import FULL, draft
from tests.operators.watching import END, Watcher, error, hooked, item, plain, raising, rx, signals, watch

T = ChatEventType
Op = Callable[[Any], Observable[Any]]

_ids = st.sampled_from(["", "{a,0}", "{b,1}", "{,0}"])
_tokens = st.one_of(
    st.builds("{}{}{}".format, st.sampled_from(["TEXT", "THINK"]), st.sampled_from(["+", "-"]), _ids),
    st.builds(
        "{}~{}{}".format,
        st.sampled_from(["TEXT", "THINK"]),
        st.sampled_from(["a", "bc", "\ud83d", "é"]),
        _ids,
    ),
    st.builds("TOOL{}{}".format, st.sampled_from(["+[c1:f]", "-[c1]", "~[c1]x", "~x"]), _ids),
    st.sampled_from(
        [
            "USAGE",
            "HEARTBEAT",
            "RAW",
            "CITATION",
            "REFUSAL~no",
            "STEP+0",
            "STEP+1",
            "STEP-0",
            "SERVER-{s}",
            "SEAL",
        ]
    ),
)
_ends = st.sampled_from(["RESP-", "ABORT", "ERROR", "$", "!!", "BUG", "RESP- TEXT~late"])
_filters = st.sampled_from(
    [
        None,
        ChatEventFilter.of(T.TEXT_DELTA),
        ChatEventFilter.DEFAULT,
        lambda event: event.type is T.TEXT_DELTA,
        lambda event: not event.attributes,
    ]
)
FAILURES = {"!!": ConnectionLostError("broken", kind="reset"), "BUG": ZeroDivisionError("a bug")}


def stages(keep: Any) -> list[Op]:
    """The four, one by one."""
    last = [] if keep is None else [filter_events(keep)]
    return [normalize(), aggregate(), terminate(), *last]


def with_map_between(keep: Any) -> list[Op]:
    """Operators of RxPY between them, which forward the run."""
    same: Op = rx.map(lambda event: event)
    return [op for stage in stages(keep) for op in (stage, same)]


def fused(keep: Any) -> list[Op]:
    return [pipeline(keep)]


def state_of(boundaries: Boundaries, strict: bool, limits: Limits | None) -> RunState:
    return RunState(response_id="r", strict=strict, boundaries=boundaries, limits=limits, time=lambda: 1.0)


def drive(
    operators: Sequence[Op], script: list[str], state: RunState, *, as_source: bool
) -> tuple[Watcher, RunState]:
    """Push fresh drafts of *script* through *operators*."""
    watcher = Watcher()
    run = Run(state=state)
    failure = FAILURES.get(script[-1])
    tokens = [token for token in script if token not in {"$", *FAILURES}]
    drafts = [SEAL if token == "SEAL" else draft(token) for token in tokens]
    if as_source:
        tail: Observable[Any] = plain.empty() if failure is None else plain.throw(failure)
        source: Observable[Any] = plain.concat(plain.from_iterable(drafts), tail)
        source.pipe(*operators).subscribe(watcher, scheduler=run.scheduler)
        return watcher, state
    subject: EventSubject[Any] = EventSubject()
    subject.pipe(*operators).subscribe(watcher, scheduler=run.scheduler)
    for each in drafts:
        subject.on_next(each)
    if failure is None:
        subject.on_completed()
    else:
        subject.on_error(failure)
    return watcher, state


def told(watcher: Watcher) -> list[Any]:
    """All that a subscriber can see: events in every field, ends, and errors by what they say."""
    shown: list[Any] = []
    for signal in watcher.signals:
        if signal[0] == "item":
            event = signal[1]
            failure = event.error
            shown.append(
                (
                    type(event),
                    event.seq,
                    event.time,
                    event.text,
                    event.tool_call_id,
                    event.name,
                    event.tool_call,
                    event.item_id,
                    event.index,
                    event.attributes,
                    event.usage,
                    event.origin,
                    None if event.response is None else event.response.to_dict(),
                    None if failure is None else (type(failure), str(failure), failure.kind),
                )
            )
        elif signal[0] == "error":
            shown.append(("error", type(signal[1]), str(signal[1])))
        else:
            shown.append(signal)
    return shown


@given(
    st.lists(_tokens, max_size=20),
    _ends,
    st.sampled_from([IMPLIED, FULL]),
    st.booleans(),
    st.sampled_from([None, Limits(max_text_chars=3), Limits(max_tool_calls=1)]),
    _filters,
    st.booleans(),
)
def test_fused_or_one_by_one_the_stages_give_the_same(
    tokens: list[str],
    end: str,
    boundaries: Boundaries,
    strict: bool,
    limits: Limits | None,
    keep: Any,
    as_source: bool,
) -> None:
    """Type, order, every field, ledger and ending; with failures, repairs in strict mode, and bounds."""
    script = ["STEP+0", *tokens, *end.split()]
    with hooked():
        results = [
            drive(make(keep), script, state_of(boundaries, strict, limits), as_source=as_source)
            for make in (fused, stages, with_map_between)
        ]
    expected = told(results[0][0])
    for watcher, state in results[1:]:
        assert expected == told(watcher)
        assert results[0][1].ledger.report() == state.ledger.report()

    watcher = results[0][0]
    ends = [signal for signal in watcher.signals if signal[0] != "item"]
    assert ends == watcher.signals[-1:]
    assert watcher.items[-1].is_terminal
    assert watcher.items[-1].error is watcher.error
    assert 1 == sum(event.is_terminal for event in watcher.items)
    if keep is None:
        assert list(range(len(watcher.items))) == [event.seq for event in watcher.items]


def test_a_failure_is_seen_twice_and_is_one() -> None:
    """ENDs, STEP_END and ERROR come first, then `on_error` with the same object."""
    for make in (fused, stages):
        failure = ConnectionLostError("broken", kind="reset")
        source = plain.concat(plain.of(draft("STEP+0"), draft("TEXT~a")), plain.throw(failure))
        seen = watch(source.pipe(*make(None)))
        assert ["STEP_START", "TEXT_START", "TEXT_DELTA", "TEXT_END", "STEP_END", "ERROR"] == [
            event.type for event in seen.items
        ]
        assert [error(failure)] == seen.signals[6:]
        assert seen.items[5].error is failure


def test_an_exception_of_another_kind_is_wrapped_once() -> None:
    """ERROR and `on_error` have the same SemfluxError, whose cause is what was raised."""
    bug = ZeroDivisionError("bug")
    seen = watch(plain.throw(bug).pipe(pipeline()))

    assert [seen.error] == [event.error for event in seen.items]
    assert isinstance(seen.error, SemfluxError)
    assert seen.error.__cause__ is bug


@pytest.mark.parametrize("make", [fused, stages])
def test_strict_mode_fails_at_the_first_repair(make: Callable[[Any], list[Op]]) -> None:
    """With what came before it."""
    state = state_of(FULL, True, None)
    watcher, _ = drive(
        make(None), ["STEP+0", "TEXT+", "TEXT~a", "TEXT+", "TEXT~b", "RESP-"], state, as_source=True
    )

    assert isinstance(watcher.error, RepairError)
    assert ["STEP_START", "TEXT_START", "TEXT_DELTA", "TEXT_END", "STEP_END", "ERROR"] == [
        e.type for e in watcher.items
    ]


@pytest.mark.parametrize("make", [fused, stages])
def test_a_repair_at_the_end_of_the_input_fails_too(make: Callable[[Any], list[Op]]) -> None:
    """The end itself is where a missing end is seen."""
    watcher, _ = drive(
        make(None), ["STEP+0", "TEXT+", "TEXT~a", "$"], state_of(FULL, True, None), as_source=False
    )

    assert isinstance(watcher.error, RepairError)


@pytest.mark.parametrize("make", [fused, stages])
def test_a_bound_that_is_passed_fails_the_stream_in_order(make: Callable[[Any], list[Op]]) -> None:
    """A stage further down failed: its failure enters at the first one."""
    state = state_of(IMPLIED, False, Limits(max_text_chars=2))
    watcher, _ = drive(make(None), ["STEP+0", "TEXT~ab", "TEXT~c", "RESP-"], state, as_source=False)

    assert isinstance(watcher.error, ResponseTooLargeError)
    assert ["TEXT_END", "STEP_END", "ERROR"] == [event.type for event in watcher.items[-3:]]


@pytest.mark.parametrize("make", [fused, stages])
def test_a_filter_that_raises_is_the_users_error(make: Callable[[Any], list[Op]]) -> None:
    """`on_error` alone: it is no failure of the stream, and no ERROR event speaks of it."""
    failure = ValueError("mine")
    watcher, _ = drive(
        make(raising(failure)), ["STEP+0", "TEXT~a", "RESP-"], state_of(IMPLIED, False, None), as_source=True
    )

    assert [("item", T.STEP_START), ("error", failure)] == [
        (kind, value.type if kind == "item" else value) for kind, value in watcher.signals
    ]


def test_normalize_alone_passes_the_failure_on() -> None:
    """Without `terminate` the error goes down as it is, after the ENDs and the ERROR draft."""
    bug = ZeroDivisionError("bug")
    source: Observable[Any] = plain.concat(plain.of(draft("TEXT~a")), plain.throw(bug))
    seen = watch(source.pipe(normalize()))

    assert [T.TEXT_START, T.TEXT_DELTA, T.TEXT_END, T.ERROR] == [event.type for event in seen.items]
    assert seen.error is bug


def test_each_subscription_starts_anew() -> None:
    """Nothing is shared between two subscriptions of one chain: *seq* starts at 0 for both."""
    for make in (fused, stages):
        chain = plain.defer(lambda _: plain.of(draft("TEXT~a"), draft("RESP-"))).pipe(*make(None))
        first, second = watch(chain), watch(chain)
        assert [0, 1, 2, 3] == [event.seq for event in first.items] == [event.seq for event in second.items]
        assert first.items[:3] == second.items[:3]
        assert first.items[3].response.response_id != second.items[3].response.response_id


def test_stages_live_with_a_shared_source() -> None:
    """`share` opens a run of its own; two subscribers behind it see the same events."""
    subject: EventSubject[Any] = EventSubject()
    shared = subject.pipe(*[*stages(None), rx.share()])
    one, two = watch(shared), watch(shared.pipe(only(T.TEXT_DELTA)))
    for token in ("TEXT~a", "RESP-"):
        subject.on_next(draft(token))

    assert ["TEXT_START", "TEXT_DELTA", "TEXT_END", "RESPONSE_END"] == [event.type for event in one.items]
    assert [item(one.items[1]), END] == two.signals


def test_a_stage_that_is_cancelled_lets_go_and_stays_silent() -> None:
    """What still comes is not looked at, an end or an error neither."""
    for make in (fused, stages):
        subject: EventSubject[Any] = EventSubject()
        seen = Watcher()
        later = subject.pipe(*make(None)).subscribe(seen)
        subject.on_next(draft("TEXT~a"))
        later.dispose()
        assert not subject.has_observers
        assert [T.TEXT_START, T.TEXT_DELTA] == [event.type for event in seen.items]


def test_signals_of_a_source_that_minds_no_cancel_are_ignored() -> None:
    """A link that is over passes nothing on, whatever its source does."""
    for operator in (pipeline(), normalize()):
        kept: list[Any] = []

        class Deaf(EventSubject[Any]):
            def _subscribe_core(self, observer: Any, scheduler: Any = None, kept: list[Any] = kept) -> Any:
                kept.append(observer)
                return reactivex.disposable.Disposable()

        seen = Watcher()
        operator(Deaf()).subscribe(seen).dispose()
        kept[0].on_next(draft("TEXT~a"))
        kept[0].on_error(ValueError("late"))
        kept[0].on_completed()
        assert [] == seen.signals


def test_run_fail_enters_at_the_first_stage() -> None:
    """An operator further down can fail the stream in order; without stages it must do so itself."""
    for make in (fused, stages):
        run = Run()
        subject: EventSubject[Any] = EventSubject()
        seen = Watcher()
        subject.pipe(*make(None)).subscribe(seen, scheduler=run.scheduler)
        subject.on_next(draft("TEXT~a"))
        failure = SemfluxError("failed")
        assert run.fail(failure)
        run.abort("nothing to abort without a driver")
        assert [T.TEXT_START, T.TEXT_DELTA, T.TEXT_END, T.ERROR] == [event.type for event in seen.items]
        assert seen.error is failure
    assert not Run().fail(SemfluxError("x"))


def test_a_terminal_event_that_comes_in_ends_the_stream() -> None:
    """ERROR brings `on_error` with its error; what follows is dropped."""
    failure = SemfluxError("x")
    assert ["ERROR"] == [
        e.type for e in watch(plain.of(Error(failure), TextDelta("late")).pipe(*stages(None))).items
    ]
    assert signals(plain.of(Error(failure), TextDelta("late")).pipe(pipeline()))[-1] == ("error", failure)
