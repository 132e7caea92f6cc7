"""`CopyLink`: the events of another stream, put into a Run event by event."""

from __future__ import annotations

from typing import Any

import attrs

from semflux.errors import ConfigurationError
from semflux.events import (
    AnyChatEvent,
    ChatEvent,
    Error,
    Origin,
    ResponseStart,
    StepEnd,
    StepStart,
    UsageEvent,
    thaw_event,
)
from semflux.normalize import as_semflux_error
from semflux.operators.lift import Link
from semflux.operators.pipeline import PipelineLink
from semflux.operators.run import Run
from semflux.state import IMPLIED


class CopyLink(Link[AnyChatEvent, Any]):
    """Puts the events of a foreign stream into the Run, through stages of its own.

    Its start is the stream's if that has not begun, else it is swallowed; its steps are counted on; its
    ERROR is a failure of the Run, which makes one of its own. Content by hand, outside of any step, gets
    a step.
    """

    __slots__ = ("_from", "_made_step", "_open", "_pipe", "_to")

    def __init__(self, pipe: PipelineLink, run: Run) -> None:
        super().__init__(pipe, run)
        self._pipe = pipe
        self._open = False
        self._made_step = False
        self._from: Origin | None = None
        self._to = run.state.origin
        # What it lacks is no fault of the provider that failed before it.
        run.state.boundaries = IMPLIED
        pipe.connect(self)

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        if not isinstance(value, ChatEvent):
            self.fail(
                ConfigurationError(
                    f"a chat stream goes on with chat events, and this source gave {type(value).__name__}: put "
                    "text(), map() and the like after the recovery"
                )
            )
            return
        if isinstance(value, Error):
            self._end(value.error)
            return
        state = self.run.state
        if isinstance(value, ResponseStart):
            if state.started:
                return
            state.started = True
        else:
            self._begin()
        if isinstance(value, StepStart):
            self._open = True
            state.step += 1
        elif isinstance(value, StepEnd):
            self._open = self._made_step = False
        elif value.is_terminal and self._made_step:
            self.on_next(StepEnd(finish_reason=getattr(value, "finish_reason", None) or "stop"))
        elif not self._open and (value.is_content or isinstance(value, UsageEvent)):
            self._made_step = True
            self.on_next(StepStart())
        if value.origin is not self._from:
            self._from = value.origin
            self._to = attrs.evolve(value.origin, response_id=state.response_id, step=max(state.step, 0))
        elif self._to.step != state.step >= 0:
            self._to = attrs.evolve(self._to, step=state.step)
        draft: Any = thaw_event(value)
        draft.origin = self._to
        self._pipe.on_next(draft)

    def _begin(self) -> None:
        """RESPONSE_START, if there has been none."""
        if not self.run.state.started:
            self.on_next(ResponseStart())

    def _end(self, error: Exception) -> None:
        if not self.stopped:
            self._begin()
            self._pipe.on_error(as_semflux_error(error))

    def on_error(self, error: Exception) -> None:
        self._end(error)

    def on_completed(self) -> None:
        if not self.stopped:
            self._begin()
            self._pipe.on_completed()


__all__ = ("CopyLink",)
