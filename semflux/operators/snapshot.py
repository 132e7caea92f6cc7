"""`Snapshot`: a chat stream so far in few events, for whoever comes late, and its state, for whoever ends early."""

from __future__ import annotations

from typing import Any, TypeAlias

import attrs
from reactivex import abc

from semflux.errors import SemfluxError
from semflux.events import Abort, AnyChatEvent, ChatEvent, ChatEventType, ResponseStart, StepStart, thaw_event
from semflux.normalize import as_semflux_error
from semflux.operators.delivery import joined, joins
from semflux.operators.pipeline import PipelineLink
from semflux.operators.run import Run
from semflux.state import RunState

T = ChatEventType

_Lane: TypeAlias = tuple[ChatEventType, str | None]

_UNSHOWN = frozenset({T.HEARTBEAT, T.RAW})
_BARRIERS = frozenset({T.CITATION, T.MEDIA_PARTIAL, T.MEDIA_DONE})
_BY_CALL = frozenset({T.TOOL_CALL_ARGS_DELTA, T.SERVER_TOOL_ARGS_DELTA})


class _Piece:
    """An event of the snapshot, and what was joined to it since."""

    __slots__ = ("event", "texts")

    def __init__(self, event: ChatEvent) -> None:
        self.event = event
        self.texts: list[str] = [event.text or ""]


class Snapshot:
    """Folds a stream into fewer events that come to the same.

    Pieces of a block are joined, and keep the place of the first one; HEARTBEAT, RAW and all but the latest USAGE of
    a step are left out. The result is legal by `semflux.contract`, with a rising *seq*, and what comes live after
    it goes on from there. Its memory is that of the answer itself.
    """

    def __init__(self) -> None:
        self._pieces: dict[int, _Piece] = {}
        self._count = 0
        self._lanes: dict[_Lane, _Piece] = {}
        self._usage: int | None = None
        self.last_seq: int = -1
        """The *seq* of the latest event."""
        self.is_whole: bool = False
        """True if it began with RESPONSE_START: else it is a part of a stream, and says nothing of its state."""
        self.is_ended: bool = False
        """True once the terminal event has come."""

    def add(self, event: ChatEvent) -> None:
        """The next event."""
        type_ = event.type
        self.last_seq = max(self.last_seq, event.seq)
        if type_ in _UNSHOWN:
            return
        if not self._count:
            self.is_whole = type_ is T.RESPONSE_START
        if event.is_delta and type_ not in _BARRIERS:
            # Pieces of text are joined only where no other block's came between: the order of a step's text is theirs.
            lane = (type_, (event.tool_call_id or event.item_id) if type_ in _BY_CALL else None)
            piece = self._lanes.get(lane)
            if piece is not None and joins(piece.event, event):
                piece.texts.append(event.text or "")
                return
            self._lanes[lane] = self._append(event)
            return
        if type_ in _BARRIERS:
            self._lanes = {lane: piece for lane, piece in self._lanes.items() if lane[0] in _BY_CALL}
        elif type_ is T.STEP_START or type_ is T.STEP_END:
            self._lanes.clear()
            self._usage = None
        elif type_ is T.USAGE:
            if self._usage is not None:
                del self._pieces[self._usage]
            self._usage = self._count
        self.is_ended = self.is_ended or event.is_terminal
        self._append(event)

    def _append(self, event: ChatEvent) -> _Piece:
        piece = self._pieces[self._count] = _Piece(event)
        self._count += 1
        return piece

    def events(self) -> list[ChatEvent]:
        """The stream so far."""
        return [joined(piece.event, piece.texts) for piece in self._pieces.values()]

    def state(self) -> tuple[RunState, PipelineLink, _Collected]:
        """A state that has seen the same stream, the pipeline over it, and what comes out of that from now on."""
        events = self.events()
        state = RunState(response_id=events[0].response_id)
        state.started = True
        run = Run(state=state)
        collected = _Collected()
        pipe = PipelineLink(collected, run, None)
        for event in events:
            if isinstance(event, ResponseStart) or event.is_terminal:
                continue
            if isinstance(event, StepStart):
                state.step += 1
            pipe.on_next(thaw_event(event))
            state.origin = attrs.evolve(event.origin)
        state.seq = self.last_seq + 1
        collected.events.clear()
        return state, pipe, collected

    def failing(self, error: Exception) -> tuple[list[AnyChatEvent], SemfluxError]:
        """What ends the stream here with *error*: ENDs, STEP_END(partial), ERROR; and the error as it carries it."""
        failure = as_semflux_error(error)
        _, pipe, collected = self.state()
        pipe.on_error(failure)
        return collected.events, failure

    def aborting(self, reason: str) -> list[AnyChatEvent]:
        """What ends the stream here with ABORT."""
        state, pipe, collected = self.state()
        pipe.on_next(Abort.draft_class(reason, origin=state.origin))
        return collected.events


class _Collected(abc.ObserverBase[AnyChatEvent]):
    """Keeps events; how it ends is known."""

    def __init__(self) -> None:
        self.events: list[AnyChatEvent] = []

    def on_next(self, value: Any) -> None:
        self.events.append(value)

    def on_error(self, error: Exception) -> None:
        """It is the one that was given."""

    def on_completed(self) -> None:
        """After ABORT."""


__all__ = ("Snapshot",)
