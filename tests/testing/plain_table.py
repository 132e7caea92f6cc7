"""The operators of Reactor that know nothing of chat, and two that do: see operator_table.py, which takes them in."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import reactivex
from reactivex.scheduler import ImmediateScheduler

from semflux import Citation, CitedSource, TextDelta, ThinkingDelta, ToolCall, ToolCallEnd
from semflux import operators as ops
from semflux.clock import VirtualClock
from semflux.operators import Signal

DECIDES: dict[str, Any] = {"ends_early": True, "holds_items": True}
OPEN = ["dispose_reaches_the_source", "dispose_inside_on_next", "lets_go_of_its_source"]
FOLDS: dict[str, Any] = {"holds_items": True}
PARTS: dict[str, Any] = {
    "holds_items": True,
    # Each subscription gets other parts; and the one that is open keeps the source after a dispose.
    "skip": ["works_twice", "isolates_a_raising_subscriber", *OPEN],
}
CHAT: dict[str, Any] = {
    "items": lambda: [TextDelta("a"), TextDelta("b"), TextDelta("c")],
    "takes_none": False,
    "holds_items": True,
}

AGAIN: dict[str, Any] = {
    "holds_items": True,
    # The source is subscribed to twice for each subscriber.
    "recovers": True,
    # The rule's source has nothing to say the second time.
    "skip": ["isolates_a_raising_subscriber"],
}


def nothing() -> None:
    pass


def same(value: Any) -> Any:
    return value


def at_once(value: Any) -> Any:
    """A source that has told all before subscribing returns: of none of these the next one cuts anything."""
    return reactivex.return_value(value, ImmediateScheduler.singleton())


class Hasty(VirtualClock):
    """A clock for which all time has passed when a timer is set, as for one that rings on another thread."""

    def call_later(self, delay: float, fn: Any, *args: Any) -> Any:
        timer = super().call_later(delay, fn, *args)
        self.advance(delay)
        return timer


VARIABLE: ContextVar[int] = ContextVar("VARIABLE")
TIMED: dict[str, Any] = {"holds_items": True}

PLAIN: dict[str, list[tuple[Callable[[Any], Any], dict[str, Any]]]] = {
    "all_": [(ops.all_(lambda item: item != 2), DECIDES), (ops.all_(lambda item: True), FOLDS)],
    "any_": [(ops.any_(lambda item: item == 2), DECIDES), (ops.any_(lambda item: False), FOLDS)],
    "coalesce": [
        (ops.coalesce(2), CHAT),
        (ops.coalesce(max_delay=1.0, clock=VirtualClock()), CHAT),
        (lambda source: source.coalesce(1), CHAT),
    ],
    "collect": [(ops.collect(list, list.append), FOLDS)],
    "collect_map": [(ops.collect_map(same), FOLDS)],
    "concat_map_iterable": [(ops.concat_map_iterable(lambda item: [item]), {})],
    "concat_with": [(ops.concat_with(reactivex.of(8)), {})],
    "count": [(ops.count(), FOLDS)],
    "default_if_empty": [(ops.default_if_empty(8), {})],
    "element_at": [(ops.element_at(1), DECIDES), (ops.element_at(0, None), DECIDES)],
    "handle": [(ops.handle(lambda item, sink: sink.next(item)), {})],
    "has_element": [(ops.has_element(2), DECIDES)],
    "has_elements": [(ops.has_elements(), DECIDES)],
    "ignore_elements": [(ops.ignore_elements(), {})],
    "index": [(ops.index(), {})],
    "last": [(ops.last(), {"maps_errors": True, "ends_early": True, **FOLDS}), (ops.last(0), FOLDS)],
    "map_not_none": [(ops.map_not_none(same), {})],
    "or_else": [
        (ops.or_else(reactivex.never()), {"own_run": True}),
        (lambda source: source.or_else(reactivex.never()), {"own_run": True}),
    ],
    "reduce": [(ops.reduce(lambda a, b: b), FOLDS)],
    "reduce_with": [(ops.reduce_with(list, lambda a, b: [*a, b]), FOLDS)],
    "repeat": [(ops.repeat(0), {}), (ops.repeat(1), AGAIN)],
    "repeat_when": [
        (ops.repeat_when(lambda ends: reactivex.of(1)), {}),
        (ops.repeat_when(lambda ends: ends.pipe(ops.take(2))), AGAIN),
    ],
    "scan": [(ops.scan(lambda a, b: b), {})],
    "scan_with": [(ops.scan_with(lambda: 0, lambda a, b: b), FOLDS)],
    "single_or_empty": [(ops.single_or_empty(), DECIDES)],
    "skip": [(ops.skip(0), {}), (lambda source: source.skip(1), {})],
    "skip_until": [(ops.skip_until(lambda item: item == 2), {})],
    "skip_while": [(ops.skip_while(lambda item: item == 1), {})],
    "smooth": [
        (ops.smooth("line"), CHAT),
        (lambda source: source.smooth(delay=0.1, clock=VirtualClock()), CHAT),
    ],
    "snapshots": [(ops.snapshots(), CHAT)],
    "start_with": [(ops.start_with(8), FOLDS)],
    "switch_if_empty": [(ops.switch_if_empty(reactivex.of(8)), {})],
    "buffer": [(ops.buffer(1), {}), (ops.buffer(2), FOLDS)],
    "buffer_timeout": [(ops.buffer_timeout(2, 1.0, clock=VirtualClock()), FOLDS)],
    "buffer_until": [(ops.buffer_until(lambda item: item == 2), FOLDS)],
    "buffer_until_changed": [(ops.buffer_until_changed(), FOLDS)],
    "buffer_while": [(ops.buffer_while(lambda item: item == 2), FOLDS)],
    "concat_map": [(ops.concat_map(lambda item: reactivex.of(item)), FOLDS)],
    "dematerialize": [(ops.dematerialize(), {"items": lambda: [Signal.of_next(1)], "takes_none": False})],
    "distinct": [(ops.distinct(), {})],
    "distinct_until_changed": [(ops.distinct_until_changed(), {})],
    "do_after_terminate": [(ops.do_after_terminate(nothing), {})],
    "do_first": [(ops.do_first(nothing), {})],
    "do_on_each": [(ops.do_on_each(same), {})],
    "do_on_subscribe": [(ops.do_on_subscribe(nothing), {})],
    "do_on_terminate": [(ops.do_on_terminate(nothing), {})],
    "do_on_request": [(ops.do_on_request(same), {})],
    "flat_map": [(ops.flat_map(lambda item: reactivex.of(item)), FOLDS)],
    "materialize": [(ops.materialize(), {"holds_items": True, "recovers": True})],
    "merge_with": [(ops.merge_with(reactivex.empty()), {"holds_items": True, "own_run": True})],
    "take_until_other": [(ops.take_until_other(reactivex.never()), {})],
    "transform_deferred": [
        (ops.transform_deferred(lambda source: source), {}),
        (lambda source: source.transform_deferred(lambda same: same.map(str)), {}),
    ],
    "expand": [(ops.expand(lambda item: reactivex.empty()), {})],
    "expand_deep": [(ops.expand_deep(lambda item: reactivex.empty()), FOLDS)],
    "flat_map_sequential": [(ops.flat_map_sequential(lambda item: reactivex.of(item)), FOLDS)],
    "group_by": [
        (ops.group_by(same), PARTS),
        (lambda source: source.group_by(same).flat_map(same), FOLDS),
        (lambda source: source.group_by(lambda item: 1, str).flat_map(same), FOLDS),
    ],
    "switch_map": [(ops.switch_map(at_once), FOLDS)],
    "switch_on_first": [
        (ops.switch_on_first(lambda signal, whole: whole), {}),
        (lambda source: source.switch_on_first(lambda signal, whole: whole.map(str)), {}),
    ],
    "window": [(ops.window(1), PARTS), (lambda source: source.window(2).flat_map(same), FOLDS)],
    "window_timeout": [
        (ops.window_timeout(1, 1.0, clock=VirtualClock()), PARTS),
        (lambda source: source.window_timeout(2, 1.0, clock=VirtualClock()).flat_map(same), FOLDS),
    ],
    "window_until": [
        (ops.window_until(lambda item: True), PARTS),
        (lambda source: source.window_until(lambda item: item == 2).flat_map(same), FOLDS),
        (lambda source: source.window_until(lambda item: item == 2, True).concat_map(same), FOLDS),
    ],
    "window_until_changed": [
        (ops.window_until_changed(), PARTS),
        (lambda source: source.window_until_changed().flat_map(same), FOLDS),
    ],
    "window_while": [
        (ops.window_while(lambda item: False), PARTS),
        (lambda source: source.window_while(lambda item: item == 2).flat_map(same), FOLDS),
    ],
    "checkpoint": [(ops.checkpoint("here"), {})],
    "log": [(ops.log(), {})],
    "name": [(ops.name("numbers"), {})],
    "tap": [(ops.tap(ops.SignalListener), {})],
    "citations": [(ops.citations(), {**CHAT, "items": lambda: [Citation(CitedSource(url="a"))]})],
    "dedupe_snapshots": [(ops.dedupe_snapshots(), CHAT)],
    "guard": [(ops.guard("zzz"), CHAT), (ops.guard(re.compile("z+")), CHAT)],
    "hold_back": [(ops.hold_back("abc"), CHAT), (ops.hold_back(re.compile("z")), CHAT)],
    "partial_json": [
        (
            ops.partial_json("$[*]"),
            {**CHAT, "items": lambda: [TextDelta("[1,"), TextDelta("2,"), TextDelta("3]")]},
        ),
        (ops.partial_json("$.a", type=str, tool="t"), CHAT),
    ],
    "redact": [(ops.redact(), CHAT)],
    "thinking": [(ops.thinking(), {**CHAT, "items": lambda: [ThinkingDelta("a"), ThinkingDelta("b")]})],
    "delay_elements": [(ops.delay_elements(1.0, clock=Hasty()), TIMED)],
    "delay_subscription": [
        (ops.delay_subscription(1.0, clock=Hasty()), TIMED),
        (ops.delay_subscription(reactivex.empty()), TIMED),
        (ops.delay_subscription(reactivex.of(1, 2)), TIMED),
    ],
    "delay_until": [
        (ops.delay_until(lambda item: reactivex.of(1, 2)), TIMED),
        (ops.delay_until(lambda item: reactivex.empty()), TIMED),
    ],
    "debounce": [
        (ops.debounce(1.0, clock=VirtualClock()), TIMED),
        (ops.debounce(1.0, clock=Hasty()), TIMED),
    ],
    "publish_on": [
        (ops.publish_on(ImmediateScheduler.singleton()), {"own_run": True}),
        (ops.publish_on(ImmediateScheduler.singleton(), 1), {"own_run": True}),
    ],
    "subscribe_on": [(ops.subscribe_on(ImmediateScheduler.singleton()), {})],
    "context_write": [
        (ops.context_write({"key": 1}), {"own_run": True}),
        (ops.context_write({VARIABLE: 1}), {"own_run": True}),
    ],
    "elapsed": [(ops.elapsed(clock=VirtualClock()), {})],
    "sample": [(ops.sample(1.0, clock=VirtualClock()), TIMED), (ops.sample(1.0, clock=Hasty()), TIMED)],
    "skip_for": [(ops.skip_for(1.0, clock=VirtualClock()), TIMED)],
    "take_for": [(ops.take_for(1.0, clock=VirtualClock()), {})],
    "throttle_first": [(ops.throttle_first(1.0, clock=VirtualClock()), TIMED)],
    "timestamp": [(ops.timestamp(clock=VirtualClock()), {})],
    "tool_calls": [
        (ops.tool_calls(), {**CHAT, "items": lambda: [ToolCallEnd(tool_call=ToolCall(id="c", arguments={}))]})
    ],
}
"""By name: ways to make it, each with the flags of `check_operator` that are true of it."""
