"""Operators on RxPY observables: the stages of a stream, and Reactor's operators with Reactor's meaning.

lift.py, run.py, subject.py   how an operator is made, what travels with a subscription, our Subject
pipeline.py                   the four stages as one operator
one file an operator          normalize, aggregate, terminate, filter_events; map_, filter_, take ...

All work in `observable.pipe(...)` of RxPY. `Flux` has them as methods.
"""

from semflux.operators.aggregate import aggregate
from semflux.operators.buffer import (
    buffer,
    buffer_timeout,
    buffer_until,
    buffer_until_changed,
    buffer_while,
)
from semflux.operators.citations import citations
from semflux.operators.coalesce import (
    coalesce,
)
from semflux.operators.collect_list import collect_list
from semflux.operators.concat import (
    concat_with,
    default_if_empty,
    start_with,
    switch_if_empty,
)
from semflux.operators.concat_map_iterable import (
    concat_map_iterable,
)
from semflux.operators.context_write import context_write
from semflux.operators.decide import (
    all_,
    any_,
    element_at,
    has_element,
    has_elements,
)
from semflux.operators.dedupe_snapshots import dedupe_snapshots
from semflux.operators.deferred import transform_deferred
from semflux.operators.delay import delay_elements, delay_subscription, delay_until
from semflux.operators.distinct import (
    distinct,
    distinct_until_changed,
)
from semflux.operators.do_at import (
    do_after_terminate,
    do_first,
    do_on_subscribe,
    do_on_terminate,
)
from semflux.operators.do_finally import SignalType, do_finally
from semflux.operators.do_on import do_on_cancel, do_on_complete, do_on_error, do_on_next
from semflux.operators.do_on_request import do_on_request
from semflux.operators.elapsed import elapsed, skip_for, take_for, timestamp
from semflux.operators.expand import expand, expand_deep
from semflux.operators.filter import filter_
from semflux.operators.filter_events import filter_events
from semflux.operators.flat_map import (
    concat_map,
    flat_map,
    merge_with,
)
from semflux.operators.flat_map_sequential import flat_map_sequential
from semflux.operators.fold import (
    collect,
    collect_map,
    count,
    last,
    reduce,
    reduce_with,
    single_or_empty,
)
from semflux.operators.group_by import group_by
from semflux.operators.handle import (
    handle,
)
from semflux.operators.hold_back import guard, hold_back
from semflux.operators.hooks import Hooks
from semflux.operators.ignore_elements import (
    ignore_elements,
)
from semflux.operators.in_group import in_group
from semflux.operators.map import map_
from semflux.operators.map_not_none import (
    map_not_none,
)
from semflux.operators.materialize import (
    Signal,
    dematerialize,
    do_on_each,
    materialize,
)
from semflux.operators.normalize import normalize
from semflux.operators.noting import (
    SignalListener,
    checkpoint,
    log,
    name,
    tap,
)
from semflux.operators.on_error import (
    fallback_to,
    on_error_complete,
    on_error_map,
    on_error_resume,
    on_error_return,
)
from semflux.operators.only import only
from semflux.operators.partial_json import partial_json
from semflux.operators.pipeline import pipeline
from semflux.operators.publish_on import publish_on, subscribe_on
from semflux.operators.redact import redact
from semflux.operators.repeat import repeat, repeat_when
from semflux.operators.retry import retry, retry_when
from semflux.operators.run import Run
from semflux.operators.sample import debounce, sample, throttle_first
from semflux.operators.scan import (
    index,
    scan,
    scan_with,
)
from semflux.operators.several import (
    or_else,
    take_until_other,
)
from semflux.operators.single import single
from semflux.operators.skip import (
    skip,
    skip_until,
    skip_while,
)
from semflux.operators.smooth import smooth
from semflux.operators.snapshots import (
    snapshots,
)
from semflux.operators.subject import EventSubject
from semflux.operators.switch_map import switch_map
from semflux.operators.switch_on_first import switch_on_first
from semflux.operators.take import take
from semflux.operators.take_until import take_until
from semflux.operators.take_while import take_while
from semflux.operators.terminate import terminate
from semflux.operators.text import text, thinking
from semflux.operators.timeout import timeout
from semflux.operators.tool_calls import tool_calls
from semflux.operators.window import (
    window,
    window_timeout,
    window_until,
    window_until_changed,
    window_while,
)

__all__ = (
    "EventSubject",
    "Hooks",
    "Run",
    "Signal",
    "SignalListener",
    "SignalType",
    "aggregate",
    "all_",
    "any_",
    "buffer",
    "buffer_timeout",
    "buffer_until",
    "buffer_until_changed",
    "buffer_while",
    "checkpoint",
    "citations",
    "coalesce",
    "collect",
    "collect_list",
    "collect_map",
    "concat_map",
    "concat_map_iterable",
    "concat_with",
    "context_write",
    "count",
    "debounce",
    "dedupe_snapshots",
    "default_if_empty",
    "delay_elements",
    "delay_subscription",
    "delay_until",
    "dematerialize",
    "distinct",
    "distinct_until_changed",
    "do_after_terminate",
    "do_finally",
    "do_first",
    "do_on_cancel",
    "do_on_complete",
    "do_on_each",
    "do_on_error",
    "do_on_next",
    "do_on_request",
    "do_on_subscribe",
    "do_on_terminate",
    "elapsed",
    "element_at",
    "expand",
    "expand_deep",
    "fallback_to",
    "filter_",
    "filter_events",
    "flat_map",
    "flat_map_sequential",
    "group_by",
    "guard",
    "handle",
    "has_element",
    "has_elements",
    "hold_back",
    "ignore_elements",
    "in_group",
    "index",
    "last",
    "log",
    "map_",
    "map_not_none",
    "materialize",
    "merge_with",
    "name",
    "normalize",
    "on_error_complete",
    "on_error_map",
    "on_error_resume",
    "on_error_return",
    "only",
    "or_else",
    "partial_json",
    "pipeline",
    "publish_on",
    "redact",
    "reduce",
    "reduce_with",
    "repeat",
    "repeat_when",
    "retry",
    "retry_when",
    "sample",
    "scan",
    "scan_with",
    "single",
    "single_or_empty",
    "skip",
    "skip_for",
    "skip_until",
    "skip_while",
    "smooth",
    "snapshots",
    "start_with",
    "subscribe_on",
    "switch_if_empty",
    "switch_map",
    "switch_on_first",
    "take",
    "take_for",
    "take_until",
    "take_until_other",
    "take_while",
    "tap",
    "terminate",
    "text",
    "thinking",
    "throttle_first",
    "timeout",
    "timestamp",
    "tool_calls",
    "transform_deferred",
    "window",
    "window_timeout",
    "window_until",
    "window_until_changed",
    "window_while",
)
