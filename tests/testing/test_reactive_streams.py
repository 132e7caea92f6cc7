"""The rules of Reactive Streams, each over every public source of a stream and every operator.

A test's name has the rule's number: 1 is the publisher's side, 2 the subscriber's, 3 the subscription's, 4 that
of a processor. What asyncio and RxPY make of a rule is said under it. Not here: 1.10 and 1.11 (resubscribing is
the source's policy: cold by default), 2.2 to 2.4, 2.7 and 3.4 (advice for subscribers and for speed), 3.9 (a
demand is a number of this library's own making, and `take(-1)` and the like are refused when they are written).
"""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import attrs
import pytest
import reactivex
from reactivex import abc

import semflux
from semflux import Flux, SemfluxError
from semflux.operators.lift import Direct
from semflux.operators.run import UNBOUNDED, Run
from semflux.testing import PublisherProbe, StepVerifier, TestPublisher
from semflux.testing.operator_rules import RULES
from semflux.testing.subscriptions import PullSubscription, Recorder, bare
from semflux.transport import Recording
from semflux.transport.replay import ReplayTransport
from tests.frames import DONE, cc, cu
from tests.model.asking import NAMES
from tests.operators.watching import hooked
from tests.testing.operator_table import CASES, Entry

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")

TEXTS = [f"{n} " for n in range(20)]
BODY = b"".join([cc({"content": text}) for text in TEXTS]) + cc({}, "stop") + cu(3, 20) + DONE
CUT = BODY[: len(BODY) // 2]
PIECES = [BODY[i : i + 50] for i in range(0, len(BODY), 50)]


async def later(pieces: list[Any], fails: Exception | None = None) -> AsyncIterator[Any]:
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece
    if fails is not None:
        raise fails


class Again:
    """An asynchronous iterable that can be gone over again."""

    def __init__(self, pieces: list[Any], fails: Exception | None = None) -> None:
        self._pieces = pieces
        self._fails = fails

    def __aiter__(self) -> AsyncIterator[Any]:
        return later(self._pieces, self._fails)


def model(body: bytes) -> Any:
    transport = ReplayTransport(Recording(body=(body,)), repeat=True)
    return semflux.ChatModel(NAMES["openai-chat"], api_key="k", transport=transport, max_retries=0)


def parse(source: Any) -> Any:
    return semflux.parse(source, dialect="openai-chat")


@attrs.frozen
class Source:
    """A public way to a stream; each call makes one that gives the same."""

    good: Callable[[], Any]
    """Ends well."""
    bad: Callable[[], Any]
    """Ends in an error."""
    pulls: bool = True
    """Gives no more than is asked for; else what comes beyond it waits at the edge."""


def failing() -> Any:
    return Flux.error(ValueError("x"))


class Iterables:
    """An iterable that is no sequence."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)


def told_one_by_one(place: int, sink: Any) -> int:
    if place < len(TEXTS):
        sink.next(TEXTS[place])
    else:
        sink.complete()
    return place + 1


def raise_at_once(sink: Any) -> None:
    raise ValueError("x")


def tell(sink: Any) -> None:
    for text in TEXTS:
        sink.next(text)
    sink.complete()


def tell_failure(sink: Any) -> None:
    sink.next("a")
    sink.error(ValueError("x"))


SOURCES: dict[str, Source] = {
    "parse bytes": Source(lambda: parse(BODY), lambda: parse(CUT)),
    "parse an iterable": Source(lambda: parse(PIECES), lambda: parse([CUT])),
    "parse an async iterable": Source(lambda: parse(Again(PIECES)), lambda: parse(Again([CUT]))),
    "parse an observable": Source(
        lambda: parse(reactivex.from_iterable(PIECES)), lambda: parse(reactivex.of(CUT))
    ),
    "a model": Source(lambda: model(BODY).prompt("hi").stream(), lambda: model(CUT).prompt("hi").stream()),
    "a filtered stream": Source(
        lambda: parse(BODY).filter_events(lambda event: True).only(semflux.TextDelta),
        lambda: parse(CUT).text(),
    ),
    "Flux.just": Source(lambda: Flux.just(*TEXTS), failing),
    "Flux.from_iterable": Source(lambda: Flux.from_iterable(Iterables(TEXTS)), failing),
    "Flux.from_async_iterable": Source(
        lambda: Flux.from_async_iterable(Again(TEXTS)),
        lambda: Flux.from_async_iterable(Again(TEXTS, ValueError("x"))),
    ),
    "Flux.range": Source(lambda: Flux.range(0, len(TEXTS)).map(TEXTS.__getitem__), failing),
    "Flux.generate": Source(
        lambda: Flux.generate(told_one_by_one, lambda: 0), lambda: Flux.generate(raise_at_once)
    ),
    "Flux.create": Source(lambda: Flux.create(tell), lambda: Flux.create(tell_failure), pulls=False),
    "Flux.push": Source(lambda: Flux.push(tell), lambda: Flux.push(tell_failure), pulls=False),
    "Flux.defer": Source(lambda: Flux.defer(lambda: Flux.just(*TEXTS)), lambda: Flux.defer(failing)),
    "Flux.using": Source(
        lambda: Flux.using(list, lambda held: Flux.just(*TEXTS), list.clear),
        lambda: Flux.using(list, lambda held: failing(), list.clear),
    ),
    "Flux.concat": Source(
        lambda: Flux.concat(Flux.just(TEXTS[0]), Flux.just(*TEXTS[1:])),
        lambda: Flux.concat(failing(), failing()),
    ),
    "an RxPY observable": Source(
        lambda: Flux.from_(reactivex.from_iterable(TEXTS)),
        lambda: Flux.from_(reactivex.throw(ValueError("x"))),
        pulls=False,
    ),
    "a publisher": Source(
        lambda: TestPublisher.create_cold().emit(*TEXTS).flux(),
        lambda: TestPublisher.create_cold().next("a").error(ValueError("x")).flux(),
        pulls=False,
    ),
}

sources = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
operators = pytest.mark.parametrize("case", [case for _, case in CASES], ids=[name for name, _ in CASES])
RULE = {rule.__name__: rule for rule in RULES}


def holds(case: Entry, *rules: str) -> None:
    """The operator keeps these rules of the contract, and no others are looked at."""
    from semflux.testing import check_operator

    given = {name: value for name, value in case.flags.items() if name != "skip"}
    skipped = set(case.flags.get("skip", ()))
    wanted = set(rules) - skipped
    check_operator(case.make, skip=[name for name in RULE if name not in wanted], **given)


class Looks(Recorder):
    """An observer without an edge above it, which checks the grammar as it goes."""

    def __init__(self, react: Callable[[Any], object] = lambda signal: None) -> None:
        super().__init__(self._look)
        self.signals: list[Any] = []
        self.depth = 0
        self.overlaps = 0
        self.threads: set[int] = set()
        self._react = react

    def _look(self, signal: Any) -> None:
        self.threads.add(threading.get_ident())
        self.overlaps += self.depth > 0
        self.depth += 1
        try:
            self.signals.append(signal)
            self._react(signal)
        finally:
            self.depth -= 1

    @property
    def items(self) -> list[Any]:
        return [signal.value for signal in self.signals if not signal.is_terminal]

    @property
    def ends(self) -> list[Any]:
        return [signal for signal in self.signals if signal.is_terminal]


async def until(condition: Callable[[], object], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0)


async def turns(count: int = 30) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def watched(stream: Any, react: Callable[[Any], object] = lambda signal: None) -> Looks:
    """Subscribe without an edge, and wait for the end."""
    looks = Looks(react)
    looks.subscribe(bare(stream), Run())
    await until(lambda: looks.over)
    await turns()
    return looks


# 1: the publisher.


@sources
async def test_rule_1_01_no_more_items_than_were_requested(source: Source) -> None:
    """`async for` has a demand of 64, a verifier any other: a stream of ours stops when it is used up."""
    run = Run(demand=3, pull=True)
    came: list[Any] = []
    pulled = PullSubscription(bare(source.good()), came.append, run)
    pulled.start()
    await until(lambda: len(came) >= 3)
    await turns()
    assert 3 == len(came)
    if source.pulls:
        # One draft may be several events (an implied start and the delta), and the pump looks between drafts.
        assert len(pulled._edge.items) <= 1
    pulled.request(2)
    await until(lambda: len(came) >= 5)
    await turns()
    assert 5 == len(came)
    pulled.dispose()
    await pulled.released()


@operators
def test_rule_1_01_an_operator_hands_the_demand_on(case: Entry) -> None:
    holds(case, "hands_the_run_on")


@sources
async def test_rule_1_02_fewer_items_than_were_requested_and_an_end(source: Source) -> None:
    await (
        StepVerifier.create(source.good(), demand=10_000)
        .then_consume_while(lambda item: True)
        .expect_complete()
        .verify_async()
    )


@sources
async def test_rule_1_03_signals_are_serial(source: Source) -> None:
    """No signal inside another one, and all in one thread, even if the subscriber does things meanwhile."""
    for stream in (source.good(), source.bad()):
        looks = await watched(stream)
        assert (0, 1) == (looks.overlaps, len(looks.threads))


@operators
def test_rule_1_03_an_operator_is_serial(case: Entry) -> None:
    holds(case, "is_serial")


@sources
async def test_rule_1_04_a_failure_is_told_by_on_error(source: Source) -> None:
    looks = await watched(source.bad())
    assert ["on_error"] == [end.kind for end in looks.ends]
    if looks.items and isinstance(looks.items[-1], semflux.ChatEvent):
        assert looks.items[-1].error is looks.ends[0].value
        assert isinstance(looks.ends[0].value, SemfluxError)


@operators
def test_rule_1_04_an_operator_passes_it_on(case: Entry) -> None:
    holds(case, "passes_errors_on")


@sources
async def test_rule_1_05_an_end_is_told_by_on_complete(source: Source) -> None:
    looks = await watched(source.good())
    assert ["on_complete"] == [end.kind for end in looks.ends]


@sources
async def test_rule_1_06_after_an_end_the_subscription_is_over(source: Source) -> None:
    """A dispose then is no cancel, and nothing is held open."""
    for stream in (source.good(), source.bad()):
        probe = PublisherProbe(stream)
        looks = await watched(probe.flux())
        looks.dispose()
        probe.assert_was_not_cancelled()


@sources
async def test_rule_1_07_nothing_after_an_end(source: Source) -> None:
    for stream in (source.good(), source.bad()):
        looks = await watched(stream)
        assert ([], 1) == (looks.breaches, len(looks.ends))


@operators
def test_rule_1_07_nothing_after_the_end_of_an_operator(case: Entry) -> None:
    holds(case, "ends_once", "nothing_after_the_end")


@sources
async def test_rule_1_08_after_a_cancel_signals_stop(source: Source) -> None:
    """At once: a source of ours looks before each signal."""
    came: list[Any] = []

    def cancel(value: Any) -> None:
        came.append(value)
        if len(came) == 3 and subscriptions:
            subscriptions[0].dispose()

    subscriptions: list[Any] = []
    edge = Recorder(lambda signal: cancel(signal))
    subscriptions.append(edge)
    edge.subscribe(bare(source.good()), Run())
    await until(lambda: edge.cancelled)
    await turns()
    assert 3 == len(came)


@operators
def test_rule_1_08_an_operator_is_silent_after_a_cancel(case: Entry) -> None:
    holds(case, "nothing_after_dispose", "dispose_inside_on_next")


@sources
async def test_rule_1_09_subscribe_returns_normally(source: Source) -> None:
    """And with something to dispose of, whatever happens meanwhile."""
    for stream in (source.good(), source.bad()):
        subscription = stream.subscribe(on_error=lambda error: None)
        assert isinstance(subscription, abc.DisposableBase)
        subscription.dispose()
    await turns()


@operators
def test_rule_1_09_subscribing_to_an_operator_returns(case: Entry) -> None:
    holds(case, "subscribing_returns")


@sources
async def test_rule_1_10_streams_are_cold(source: Source) -> None:
    """A stream may be subscribed to again, and gives the same."""
    stream = source.good()
    first, second = await watched(stream), await watched(stream)
    assert [type(value) for value in first.items] == [type(value) for value in second.items]
    assert len(first.items) >= len(TEXTS)


@operators
def test_rule_1_10_operators_are_cold(case: Entry) -> None:
    holds(case, "works_twice")


# 2: the subscriber.


@sources
async def test_rule_2_01_without_demand_nothing_comes(source: Source) -> None:
    await StepVerifier.create(source.good(), demand=0).expect_no_event(0.01).then_cancel().verify_async()


@sources
async def test_rule_2_05_each_subscription_is_one_of_its_own(source: Source) -> None:
    """To cancel one leaves the other alone."""
    stream = source.good()
    first, second = Looks(), Looks()
    first.subscribe(bare(stream), Run())
    second.subscribe(bare(stream), Run())
    first.dispose()
    await until(lambda: second.over)
    assert ["on_complete"] == [end.kind for end in second.ends]


@sources
async def test_rule_2_08_a_subscriber_minds_late_items(source: Source) -> None:
    """The edge of `Flux.subscribe` is deaf after a dispose."""
    came: list[Any] = []
    subscription = source.good().subscribe(came.append)
    subscription.dispose()
    had = len(came)
    await turns()
    assert had == len(came)


@sources
async def test_rule_2_09_an_end_may_come_without_a_request(source: Source) -> None:
    """As it is the next thing, it is told."""
    stream = source.good()
    count = len((await watched(stream)).items)
    verifier = StepVerifier.create(source.good(), demand=count).expect_next_count(count)
    await verifier.expect_complete().verify_async()


@sources
async def test_rule_2_10_an_error_may_come_without_a_request(source: Source) -> None:
    count = len((await watched(source.bad())).items)
    verifier = StepVerifier.create(source.bad(), demand=count).expect_next_count(count)
    await verifier.expect_error().verify_async()


@sources
async def test_rule_2_13_a_subscriber_that_raises_is_over(source: Source) -> None:
    """Its source is cancelled, and its exception is told: by its own `on_error`, or else by the hooks."""
    raised = ZeroDivisionError("of the subscriber")

    def raises(value: Any) -> None:
        raise raised

    errors: list[Exception] = []
    probe = PublisherProbe(source.good())
    probe.flux().subscribe(raises, errors.append)
    await until(lambda: errors)
    await turns()
    assert [raised] == errors
    probe.assert_was_cancelled()
    with hooked() as dropped:
        source.good().subscribe(raises)
        await until(lambda: dropped.errors)
    assert [raised] == dropped.errors


@operators
def test_rule_2_13_an_operator_isolates_it(case: Entry) -> None:
    holds(case, "isolates_a_raising_subscriber")


# 3: the subscription.


@sources
async def test_rule_3_02_more_may_be_requested_inside_on_next(source: Source) -> None:
    """One item at a time, each asking for the next one."""
    total = len((await watched(source.good())).items)
    came: list[Any] = []

    def feed(signal: Any) -> None:
        came.append(signal)
        if not signal.is_terminal:
            pulled.request(1)

    pulled = PullSubscription(bare(source.good()), feed, Run(demand=1, pull=True))
    pulled.start()
    await until(lambda: came and came[-1].is_terminal)
    assert total + 1 == len(came)
    await pulled.released()


def test_rule_3_03_recursion_is_bounded() -> None:
    """10,000 items at once, pushed and pulled."""
    items = range(10_000)
    StepVerifier.create(Flux.from_iterable(items)).expect_next_count(10_000).verify_complete()
    StepVerifier.create(Flux.from_iterable(items), demand=10_000).expect_next_count(10_000).verify_complete()
    body = [cc({"content": "x"})] * 10_000 + [cc({}, "stop"), DONE]
    StepVerifier.create(parse(body)).expect_text("x" * 10_000).verify_complete()


@operators
def test_rule_3_03_the_recursion_of_an_operator_is_bounded(case: Entry) -> None:
    holds(case, "takes_many_items")


@sources
async def test_rule_3_05_a_cancel_is_idempotent_and_thread_safe(source: Source) -> None:
    looks = Looks()
    looks.subscribe(bare(source.good()), Run())
    threads = [threading.Thread(target=looks.dispose) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    looks.dispose()
    had = len(looks.signals)
    await turns()
    assert had == len(looks.signals)


@operators
def test_rule_3_05_a_cancel_reaches_the_source_once(case: Entry) -> None:
    holds(case, "dispose_reaches_the_source")


@sources
async def test_rule_3_06_after_a_cancel_a_request_does_nothing(source: Source) -> None:
    came: list[Any] = []
    pulled = PullSubscription(bare(source.good()), came.append, Run(demand=2, pull=True))
    pulled.start()
    await until(lambda: len(came) == 2)
    pulled.dispose()
    pulled.request(5)
    await turns()
    await pulled.released()
    assert 2 == len(came)


@operators
def test_rule_3_07_after_an_end_a_cancel_does_nothing(case: Entry) -> None:
    holds(case, "dispose_after_the_end", "cancels_its_source_before_it_ends")


@sources
async def test_rule_3_08_requests_add_up(source: Source) -> None:
    verifier = StepVerifier.create(source.good(), demand=1).then_request(2).then_request(3)
    await verifier.expect_next_count(6).expect_no_event(0.005).then_cancel().verify_async()


class Held(Direct[Any]):
    """Says when nobody refers to its subscriber any more."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner
        self.subscribers: list[weakref.ref[Any]] = []

    def _subscribe_core(self, observer: Any, scheduler: Any = None) -> abc.DisposableBase:
        self.subscribers.append(weakref.ref(observer))
        subscription: abc.DisposableBase = self.inner.subscribe(observer, scheduler=scheduler)
        return subscription


@sources
async def test_rule_3_13_after_a_cancel_the_subscriber_is_let_go(source: Source) -> None:
    """Whoever keeps the stream, or the subscription."""

    class Mine:
        def take(self, value: Any) -> None:
            pass

    mine = Mine()
    gone = weakref.ref(mine)
    stream = source.good()
    subscription = stream.subscribe(mine.take, lambda error: None)
    subscription.dispose()
    del mine
    await turns()
    gc.collect()
    assert gone() is None
    assert stream is not None


@operators
def test_rule_3_13_an_operator_lets_go(case: Entry) -> None:
    holds(case, "lets_go_of_its_source", "lets_go_of_its_subscriber")


@sources
async def test_rule_3_17_any_number_may_be_wanted(source: Source) -> None:
    """That is what a callback subscriber wants."""
    run = Run()
    assert run.demand == UNBOUNDED
    looks = Looks()
    looks.subscribe(bare(source.good()), run)
    await until(lambda: looks.over)
    assert len(looks.items) >= len(TEXTS)


# 4: the processor.


@operators
def test_rule_4_01_an_operator_takes_what_any_source_gives(case: Entry) -> None:
    """None too. All other rules are above; tests/testing/test_operator_contract.py runs them together."""
    holds(case, "takes_none")
