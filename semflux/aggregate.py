"""The aggregator: folds the events of the stream and puts what they came to on those that tell it."""

# pyright: reportPrivateUsage=false
# The table at the end names methods of the class above it.

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from semflux.events import EVENT_CLASSES, AnyChatEvent, ChatEventType, thaw_event
from semflux.fold import ARMS as FOLD
from semflux.fold import Fold
from semflux.stage import Stage
from semflux.state import RunState

T = ChatEventType


class Aggregator(Stage[AnyChatEvent, AnyChatEvent]):
    """Normalized events in; the same events out, one for one.

    `tool_call` is set on TOOL_CALL_END, `usage` as of now on USAGE, `response` and `usage` on
    STEP_END, RESPONSE_END, ABORT and ERROR.

    ```
    TEXT~a TEXT~b STEP-   ->   TEXT~a TEXT~b STEP-(response.text = "ab")
    ```

    Raises:
        ResponseTooLargeError, ToolArgumentsError: if the answer passes a bound.
    """

    def __init__(self, state: RunState | None = None) -> None:
        self._fold: Fold = (state or RunState()).fold
        self._add = self._fold.add

    def push(self, item: AnyChatEvent) -> Iterable[AnyChatEvent]:
        draft = thaw_event(item)
        arm = AGGREGATE.get(draft.__class__)
        if arm is not None:
            arm(self, draft)
        return (draft,)

    def _call(self, event: Any) -> None:
        self._add(event)
        event.tool_call = self._fold.call(event.tool_call_id)

    def _usage(self, event: Any) -> None:
        self._add(event)
        event.usage = self._fold.usage

    def _step(self, event: Any) -> None:
        self._add(event)
        step = self._fold.steps[-1]
        event.response = step
        event.usage = step.usage
        event.finish_reason = step.finish_reason

    def _end(self, event: Any) -> None:
        response = self._fold.response(partial=False, finish_reason=event.finish_reason)
        event.response = response
        event.usage = response.usage
        event.finish_reason = response.finish_reason

    def _partial(self, event: Any) -> None:
        response = self._fold.response(partial=True)
        event.response = response
        event.usage = response.usage

    def _error(self, event: Any) -> None:
        self._partial(event)
        if event.error.partial is None:
            event.error.partial = event.response

    def fold_in(self, event: Any) -> None:
        """Fold an event that tells nothing of what it came to."""
        FOLD[event.__class__](self._fold, event)


# One table for all streams: a bound method for each class and stream would be a seventh of a stream's memory.
AGGREGATE: dict[type[Any], Callable[[Aggregator, Any], None]] = dict.fromkeys(FOLD, Aggregator.fold_in)
"""What is done with a draft, by its class; nothing where there is none."""
for _type, _arm in {
    T.TOOL_CALL_END: Aggregator._call,
    T.USAGE: Aggregator._usage,
    T.STEP_END: Aggregator._step,
    T.RESPONSE_END: Aggregator._end,
    T.ABORT: Aggregator._partial,
    T.ERROR: Aggregator._error,
}.items():
    AGGREGATE[EVENT_CLASSES[_type].draft_class] = _arm

__all__ = ("AGGREGATE", "Aggregator")
