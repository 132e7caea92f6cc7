"""The pictures of docs/which-operator.md: one entry an operator, each drawn from a run on a virtual clock.

The call that is shown is the call that runs, on `source` where there is one, else on `a`, `b`, `c`.
`python -m tests.test_docs` writes docs/marbles/NAME.svg; tests/test_docs.py holds them to the code.
"""

from __future__ import annotations

import re
from typing import Any

import attrs

import semflux
from semflux import ChatEventGroup, ChatEventType, ChatStream, Flux, Mono, Retry
from semflux.clock import VirtualClock
from semflux.operators import Signal
from semflux.testing import Diagram, from_marbles
from semflux.testing.diagram import Source

THOUGHT = "THINK+--THINK~Hm--THINK---TEXT~Blue--|"
ANSWER = "RESP+--TEXT+--TEXT~Blue--TEXT~light--TEXT---RESP-|"


@attrs.frozen
class Attempts:
    """A source that does something else each time it is subscribed to."""

    texts: tuple[str, ...]

    def __call__(self, clock: VirtualClock) -> Flux[Any]:
        left = iter(self.texts)
        return Flux.defer(lambda: from_marbles(next(left), clock=clock))


@attrs.frozen
class Picture:
    """One picture."""

    call: str
    """What is shown and run: `take(2)`, or `a.merge_with(b)`."""
    sources: tuple[Source, ...]
    chat: bool = False
    """Whether the sources are chat streams."""
    options: dict[str, Any] = attrs.Factory(dict)
    """Those of `Diagram.of`."""

    def operator(self, *sources: Flux[Any]) -> Any:
        given = [ChatStream(source) for source in sources] if self.chat else list(sources)
        scope = {**NAMES, **dict(zip("abcd", given, strict=False))}
        called = self.call
        if len(given) == 1 and re.match(r"[a-z_]+\(", called):
            scope["source"] = given[0]
            called = f"source.{called}"
        return eval(called, scope)

    def diagram(self) -> Diagram:
        return Diagram.of(self.call, self.operator, *self.sources, **self.options)

    def svg(self) -> str:
        return self.diagram().svg()


def halves(number: int, sink: Any) -> None:
    if number % 2 == 0:
        sink.next(number // 2)
    elif number > 4:
        sink.complete()


def tell(sink: Any) -> None:
    sink.next("a")
    sink.next("b")
    sink.complete()


def count_down(left: int, sink: Any) -> int:
    if left:
        sink.next(left)
    else:
        sink.complete()
    return left - 1


async def letters() -> Any:
    for letter in "ab":
        yield letter


NAMES: dict[str, Any] = {
    **{name: getattr(semflux, name) for name in semflux.__all__},
    "T": ChatEventType,
    "G": ChatEventGroup,
    "Mono": Mono,
    "Retry": Retry,
    "Signal": Signal,
    "halves": halves,
    "tell": tell,
    "count_down": count_down,
    "letters": letters,
    "seen": [],
}


def of(call: str, *sources: Source, chat: bool = False, **options: Any) -> Picture:
    return Picture(call, sources, chat, options)


PICTURES: dict[str, Picture] = {
    # Make
    "just": of("Flux.just(1, 2)"),
    "from_iterable": of("Flux.from_iterable(range(3))"),
    "from_async_iterable": of("Flux.from_async_iterable(letters())"),
    "empty": of("Flux.empty()"),
    "error": of("Flux.error(KeyError())"),
    "defer": of("Flux.defer(lambda: a)", "--1--2--|"),
    "create": of("Flux.create(tell)"),
    "generate": of("Flux.generate(count_down, lambda: 3)"),
    "range": of("Flux.range(5, 3)"),
    "never": of("Flux.never()"),
    # Change
    "map": of("map(lambda n: n * 10)", "--1--2--3--|"),
    "map_not_none": of("map_not_none({1: 'one', 3: 'three'}.get)", "--1--2--3--|"),
    "handle": of("handle(halves)", "--1--2--4--5--6--|"),
    "concat_map_iterable": of("concat_map_iterable(lambda n: [n] * n)", "--1--2--3--|"),
    "flat_map": of("a.flat_map({1: b, 2: c}.get)", "--1--2--|", "--x--y|", "--z--w|"),
    "concat_map": of("a.concat_map({1: b, 2: c}.get)", "--1--2--|", "--x--y|", "--z--w|"),
    "scan": of("scan(lambda total, n: total + n)", "--1--2--3--|"),
    "scan_with": of("scan_with(lambda: 10, lambda total, n: total + n)", "--1--2--3--|"),
    "index": of("index()", "--a--b--|"),
    "buffer": of("buffer(2)", "--1--2--3--|"),
    "buffer_until": of("buffer_until(lambda n: n == 0)", "--1--0--2--3--0--|"),
    "buffer_while": of("buffer_while(lambda n: n > 0)", "--1--2--0--3--|"),
    "buffer_until_changed": of("buffer_until_changed()", "--1--1--2--3--|"),
    "buffer_timeout": of("buffer_timeout(3, 4)", "--1-2-3-------4--------|"),
    "materialize": of("materialize().map(lambda s: s.is_next)", "--1--2--|"),
    "dematerialize": of("materialize().take(2).dematerialize()", "--1--2--3--|"),
    "window": of("window(2).flat_map(lambda w: w.collect_list())", "--1--2--3--4--|"),
    "window_until": of("window_until(lambda n: n == 0).flat_map(lambda w: w.count())", "--1--2--0--3--|"),
    "group_by": of("group_by(lambda n: n % 2).flat_map(lambda g: g.collect_list())", "--1--2--3--4--|"),
    "flat_map_sequential": of("a.flat_map_sequential({1: b, 2: c}.get)", "--1-2--|", "----x--y|", "-z|"),
    "switch_map": of("a.switch_map({1: b, 2: c}.get)", "--1-----2--|", "--x--y--z|", "--w|"),
    "switch_on_first": of("switch_on_first(lambda first, whole: whole.take(first.value))", "--2--5--6--|"),
    "expand": of("expand(lambda n: Flux.from_iterable(range(n)))", "--2--|"),
    "repeat": of("repeat(1)", "--1--2--|"),
    # Pick
    "filter": of("filter(lambda n: n % 2)", "--1--2--3--|"),
    "take": of("take(2)", "--1--2--3--4--|"),
    "take_while": of("take_while(lambda n: n < 3)", "--1--2--3--4--|"),
    "take_until": of("take_until(lambda n: n == 3)", "--1--2--3--4--|"),
    "take_until_other": of("a.take_until_other(b)", "--1--2--3--4--|", "-------stop--|"),
    "skip": of("skip(2)", "--1--2--3--4--|"),
    "skip_while": of("skip_while(lambda n: n < 3)", "--1--2--3--1--|"),
    "skip_until": of("skip_until(lambda n: n == 3)", "--1--2--3--1--|"),
    "distinct": of("distinct()", "--1--2--1--3--|"),
    "distinct_until_changed": of("distinct_until_changed()", "--1--1--2--1--|"),
    "next": of("next()", "--1--2--|"),
    "single": of("single()", "--1--2--|"),
    "single_or_empty": of("single_or_empty()", "-----|"),
    "last": of("last()", "--1--2--|"),
    "element_at": of("element_at(1)", "--a--b--c--|"),
    "count": of("count()", "--a--b--c--|"),
    "any": of("any(lambda n: n > 1)", "--1--2--3--|"),
    "all": of("all(lambda n: n > 1)", "--2--1--3--|"),
    "has_element": of("has_element(2)", "--1--2--3--|"),
    "has_elements": of("has_elements()", "--1--2--|"),
    "ignore_elements": of("ignore_elements()", "--1--2--|"),
    "then": of("a.then(b.next())", "--1--2--|", "--9--|"),
    "collect_list": of("collect_list()", "--1--2--3--|"),
    "collect": of("collect(set, set.add)", "--1--2--1--|"),
    "collect_map": of("collect_map(lambda word: word[0])", "--one--two--|"),
    "reduce": of("reduce(lambda total, n: total + n)", "--1--2--3--|"),
    "reduce_with": of("reduce_with(lambda: 10, lambda total, n: total + n)", "--1--2--3--|"),
    "default_if_empty": of("default_if_empty(0)", "-----|"),
    "switch_if_empty": of("a.switch_if_empty(b)", "-----|", "--1--|"),
    # Text of LLM streams
    "text": of("text()", ANSWER, chat=True),
    "only": of("only(T.TEXT_DELTA)", ANSWER, chat=True),
    "in_group": of("in_group(G.TEXT)", ANSWER, chat=True),
    "filter_events": of("filter_events(lambda e: e.text == 'Blue')", ANSWER, chat=True),
    "coalesce": of("coalesce(max_chars=9)", ANSWER, chat=True),
    "smooth": of("smooth()", "--TEXT~on--TEXT~'e tw'--TEXT~o--TEXT---|", chat=True),
    "snapshots": of("snapshots().map(lambda r: r.text)", "--TEXT~Blue--TEXT~light--|", chat=True),
    "thinking": of("thinking()", THOUGHT, chat=True),
    "hold_back": of("hold_back('password')", "--TEXT~pass--TEXT~word--TEXT~too--|", chat=True),
    "guard": of(
        "guard('password').on_error_complete()", "--TEXT~a--TEXT~pass--TEXT~word--TEXT~too--|", chat=True
    ),
    "redact": of("redact('key')", "--TEXT~a_ke--TEXT~y--TEXT~b--|", chat=True),
    "dedupe_snapshots": of("dedupe_snapshots()", "--TEXT~a--TEXT~ab--TEXT~abc--|", chat=True),
    # Time
    "timeout": of("timeout(item=4)", "--1--2--------3--|"),
    "timeout_fallback": of("a.timeout(first=3, fallback=b)", "------1--|", "--9--|"),
    "delay_elements": of("delay_elements(2)", "--1--2--3--|"),
    "delay_subscription": of("delay_subscription(3)", "--1--2--|"),
    "sample": of("sample(4)", "-1-2-3-----4--|"),
    "throttle_first": of("throttle_first(3)", "-1-2-3-----4--|"),
    "debounce": of("debounce(3)", "-1-2-3-----4--|"),
    "elapsed": of("elapsed()", "--1---2--|"),
    "take_for": of("take_for(6)", "--1--2--3--|"),
    "skip_for": of("skip_for(4)", "--1--2--3--|"),
    # Errors
    "retry": of("retry(1)", Attempts(("--X(ServerError)", "--1--|"))),
    "retry_when": of("retry_when(Retry.fixed_delay(2, 4))", Attempts(("--X(ServerError)", "--1--|"))),
    "on_error_resume": of("a.on_error_resume(lambda error: b)", "--1--X(ServerError)", "--9--|"),
    "on_error_return": of("on_error_return(0)", "--1--X(ServerError)"),
    "on_error_map": of("on_error_map(lambda error: KeyError())", "--1--X(ServerError)"),
    "on_error_complete": of("on_error_complete()", "--1--X(ServerError)"),
    "fallback_to": of("a.fallback_to(b, c)", "--X(ServerError)", "--X(OverloadedError)", "--9--|"),
    # Several streams
    "start_with": of("start_with(0)", "--1--2--|"),
    "concat": of("Flux.concat(a, b)", "--1--|", "--8--9--|"),
    "concat_with": of("a.concat_with(b)", "--1--|", "--8--9--|"),
    "merge": of("Flux.merge(a, b)", "--1-----2--|", "----8-----9--|"),
    "merge_with": of("a.merge_with(b)", "--1-----2--X(ServerError)", "----8--------9--|"),
    "zip": of("Flux.zip(a, b)", "--1-----2--3--|", "----8-----9--|"),
    "combine_latest": of("Flux.combine_latest(a, b)", "--1-----2-----|", "----8-----9--|"),
    "first_with_value": of("Flux.first_with_value(a, b)", "----1--2--|", "--8-----9--|"),
    "first_with_signal": of("Flux.first_with_signal(a, b)", "----1--2--|", "--|"),
    "or_else": of("a.or_else(b)", "----1--2--|", "--8-----9--|"),
    "delay_until": of("a.delay_until(lambda n: b)", "--1--2--|", "---x|"),
    "expand_deep": of("expand_deep(lambda n: Flux.from_iterable(range(n)))", "--2--|"),
    "window_timeout": of(
        "window_timeout(3, 4).flat_map(lambda w: w.collect_list())", "--1-2-3-------4--------|"
    ),
    "window_while": of("window_while(lambda n: n > 0).flat_map(lambda w: w.count())", "--1--2--0--3--|"),
    "window_until_changed": of("window_until_changed().flat_map(lambda w: w.count())", "--1--1--2--|"),
    "repeat_when": of("repeat_when(lambda ends: ends.delay_elements(3).take(2))", "--1--|"),
    "transform": of("transform(lambda flux: flux.skip(1).map(str))", "--1--2--3--|"),
    "transform_deferred": of("transform_deferred(lambda flux: flux.take(1))", "--1--2--|"),
    "citations": of("citations().map(lambda source: 'a source')", "--TEXT~a--CITATION--TEXT~b--|", chat=True),
    "push": of("Flux.push(tell)"),
    "using": of("Flux.using(list, lambda held: a, list.clear)", "--1--2--|"),
    # Share
    "share": of("share()", "--1--2--3--4--|", joins=(0, 6)),
    "replay": of("replay(1).auto_connect()", "--1--2--3--4--|", joins=(0, 6)),
    "cache": of("cache()", "--1--2--3--4--|", joins=(0, 6)),
    "publish": of("publish().auto_connect(2)", "--1--2--3--|", joins=(0, 4)),
    # Watch
    "do_on_next": of("do_on_next(seen.append)", "--1--2--|"),
}
"""Each picture by the name of its file."""
