"""The operators of Reactor that know nothing of chat, and two that do: see operator_table.py, which takes them in."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import reactivex

from semflux import Citation, CitedSource, TextDelta, ThinkingDelta, ToolCall, ToolCallEnd
from semflux import operators as ops
from semflux.clock import VirtualClock
from semflux.operators import Signal

DECIDES: dict[str, Any] = {"ends_early": True, "holds_items": True}
FOLDS: dict[str, Any] = {"holds_items": True}
CHAT: dict[str, Any] = {
    "items": lambda: [TextDelta("a"), TextDelta("b"), TextDelta("c")],
    "takes_none": False,
    "holds_items": True,
}


def nothing() -> None:
    pass


def same(value: Any) -> Any:
    return value


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
    "reduce": [(ops.reduce(lambda a, b: b), FOLDS)],
    "reduce_with": [(ops.reduce_with(list, lambda a, b: [*a, b]), FOLDS)],
    "scan": [(ops.scan(lambda a, b: b), {})],
    "scan_with": [(ops.scan_with(lambda: 0, lambda a, b: b), FOLDS)],
    "single_or_empty": [(ops.single_or_empty(), DECIDES)],
    "skip": [(ops.skip(0), {}), (lambda source: source.skip(1), {})],
    "skip_until": [(ops.skip_until(lambda item: item == 2), {})],
    "skip_while": [(ops.skip_while(lambda item: item == 1), {})],
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
    "flat_map": [(ops.flat_map(lambda item: reactivex.of(item)), FOLDS)],
    "materialize": [(ops.materialize(), {"holds_items": True, "recovers": True})],
    "merge_with": [(ops.merge_with(reactivex.empty()), {"holds_items": True, "own_run": True})],
    "take_until_other": [(ops.take_until_other(reactivex.never()), {})],
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
    "tool_calls": [
        (ops.tool_calls(), {**CHAT, "items": lambda: [ToolCallEnd(tool_call=ToolCall(id="c", arguments={}))]})
    ],
}
"""By name: ways to make it, each with the flags of `check_operator` that are true of it."""
