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
from semflux.operators.decide import (
    all_,
    any_,
    element_at,
    has_element,
    has_elements,
)
from semflux.operators.dedupe_snapshots import dedupe_snapshots
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
from semflux.operators.filter import filter_
from semflux.operators.filter_events import filter_events
from semflux.operators.flat_map import (
    concat_map,
    flat_map,
    merge_with,
)
from semflux.operators.fold import (
    collect,
    collect_map,
    count,
    last,
    reduce,
    reduce_with,
    single_or_empty,
)
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
from semflux.operators.redact import redact
from semflux.operators.retry import retry, retry_when
from semflux.operators.run import Run
from semflux.operators.scan import (
    index,
    scan,
    scan_with,
)
from semflux.operators.several import (
    take_until_other,
)
from semflux.operators.single import single
from semflux.operators.skip import (
    skip,
    skip_until,
    skip_while,
)
from semflux.operators.snapshots import (
    snapshots,
)
from semflux.operators.subject import EventSubject
from semflux.operators.take import take
from semflux.operators.take_until import take_until
from semflux.operators.take_while import take_while
from semflux.operators.terminate import terminate
from semflux.operators.text import text, thinking
from semflux.operators.timeout import timeout
from semflux.operators.tool_calls import tool_calls

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
    "count",
    "dedupe_snapshots",
    "default_if_empty",
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
    "do_on_subscribe",
    "do_on_terminate",
    "element_at",
    "fallback_to",
    "filter_",
    "filter_events",
    "flat_map",
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
    "partial_json",
    "pipeline",
    "redact",
    "reduce",
    "reduce_with",
    "retry",
    "retry_when",
    "scan",
    "scan_with",
    "single",
    "single_or_empty",
    "skip",
    "skip_until",
    "skip_while",
    "snapshots",
    "start_with",
    "switch_if_empty",
    "take",
    "take_until",
    "take_until_other",
    "take_while",
    "tap",
    "terminate",
    "text",
    "thinking",
    "timeout",
    "tool_calls",
)
