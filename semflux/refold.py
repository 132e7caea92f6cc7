"""`Refold`: events with what came of them, folded anew where an operator changes what they say."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, cast

import attrs

from semflux.errors import SemfluxError
from semflux.events import (
    Error,
    StepEnd,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolResult,
    change_event,
)
from semflux.fold import Fold
from semflux.response import ChatResponse, StepResponse

_OF_STEP = ("text", "thinking", "refusal", "tool_calls", "citations", "media", "message", "logprobs")
_NOTHING = StepResponse()


def changed(event: Any, **fields: Any) -> Any:
    """*event*, or a copy of it if one of *fields* is another."""
    if all(
        getattr(event, name) is value if isinstance(value, BaseException) else getattr(event, name) == value
        for name, value in fields.items()
    ):
        return event
    return change_event(event, **fields)


class Refold:
    """The calls, responses and errors on events, as what passed makes them: no text is on them that was not seen.

    All else on a response stays: usage, finish reasons, repairs.
    """

    def __init__(self, fold: Fold) -> None:
        """*fold*: what has passed in earlier attempts."""
        self._fold = fold
        self.pieces: set[str | None] = set()
        """Calls whose arguments have come in pieces, passed or not."""
        self._copies: dict[int, tuple[BaseException, BaseException]] = {}

    def passed(self, event: Any) -> Any:
        """*event* as it passes, with what came to pass so far."""
        fold = self._fold
        if isinstance(event, ToolCallEnd):
            call = event.tool_call
            if call is not None and call.arguments_json and event.tool_call_id not in self.pieces:
                # A filter above leaves its pieces out.
                fold.add(ToolCallArgsDelta(call.arguments_json, event.tool_call_id, event.name))
        fold.add(event)
        if isinstance(event, ToolCallEnd | ToolResult):
            return changed(event, tool_call=fold.call(event.tool_call_id) or event.tool_call)
        if isinstance(event, StepEnd):
            step = event.response
            return event if step is None else changed(event, response=_blended(step, fold.steps[-1]))
        if isinstance(event, Error):
            return changed(event, error=self.failure(event.error), response=self.response(event.response))
        if event.is_terminal:
            return changed(event, response=self.response(event.response))
        return event

    def response(self, response: ChatResponse | None) -> ChatResponse | None:
        """*response* with what has passed of it."""
        if response is None:
            return None
        return attrs.evolve(response, steps=tuple(shown_steps(response.steps, self._fold)))

    def amend(self, fold: Fold) -> None:
        """Put what has passed into *fold*: a stream that goes on after a failure tells it again in its response."""
        fold.steps[:] = shown_steps(fold.steps, self._fold)

    def failure(self, error: Exception) -> Exception:
        """*error* with what has passed as its `partial`: a copy, the same one each time, if that is less."""
        return cast("Exception", self._copied(error))

    def _copied(self, error: BaseException | None) -> Any:
        if error is None:
            return None
        known = self._copies.get(id(error))
        if known is not None:
            return known[1]
        self._copies[id(error)] = (error, error)
        cause, context = self._copied(error.__cause__), self._copied(error.__context__)
        partial = self.response(error.partial) if isinstance(error, SemfluxError) else None
        same = not isinstance(error, SemfluxError) or partial == error.partial
        if same and cause is error.__cause__ and context is error.__context__:
            return error
        found = copy.copy(error)
        if isinstance(found, SemfluxError):
            found.partial = partial
        found.__traceback__ = error.__traceback__
        found.__cause__, found.__context__ = cause, context
        found.__suppress_context__ = error.__suppress_context__
        self._copies[id(error)] = (error, found)
        self._copies[id(found)] = (found, found)
        return found


def _blended(step: StepResponse, passed: StepResponse) -> StepResponse:
    """*step* with what *passed* of it."""
    return attrs.evolve(step, **{name: getattr(passed, name) for name in _OF_STEP})


def shown_steps(steps: Iterable[StepResponse], shown: Fold) -> list[StepResponse]:
    """*steps* with what *shown* has of them. Those before its first one came by another way, and stay; of a later one
    that it does not know, nothing was seen."""
    passed = {step.step: step for step in shown.response(partial=True).steps}
    first = min(passed, default=0)
    return [step if step.step < first else _blended(step, passed.get(step.step, _NOTHING)) for step in steps]


__all__ = ("Refold", "changed", "shown_steps")
