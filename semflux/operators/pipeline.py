"""The four stages of a stream as one operator: normalize, aggregate, terminate, filter.

They give what the four operators give one after another (a test holds them to it), for less than half
of the cost, and a traceback from socket to subscriber stays short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from reactivex import Observable, abc

from semflux.aggregate import AGGREGATE, Aggregator
from semflux.blocks import is_whole
from semflux.calls import Call
from semflux.errors import SemfluxError
from semflux.events import (
    Abort,
    AnyChatEvent,
    ChatEvent,
    Error,
    ResponseEnd,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
)
from semflux.filters import delivers, shown_classes
from semflux.normalize import Normalizer, as_semflux_error
from semflux.operators.hooks import Hooks
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.terminate import Terminator

_LANES = frozenset({TextDelta.draft_class, ThinkingDelta.draft_class})
_class_of: Callable[[Any], type[Any]] = type
_arm_of = AGGREGATE.get
_ARGS = ToolCallArgsDelta.draft_class
_TERMINAL_CLASSES = frozenset({ResponseEnd, Abort, Error})


class PipelineLink(Link[Any, AnyChatEvent]):
    """The four stages at work in one subscription."""

    __slots__ = (
        "_aggregator",
        "_args_shown",
        "_call_lanes",
        "_down",
        "_fold",
        "_keep",
        "_lane",
        "_lane_class",
        "_lane_index",
        "_lane_item",
        "_lane_shown",
        "_normalizer",
        "_push",
        "_shown",
        "_state",
        "_terminator",
        "_time",
    )

    def __init__(
        self, below: abc.ObserverBase[AnyChatEvent], run: Run, keep: Callable[[ChatEvent], object] | None
    ) -> None:
        super().__init__(below, run)
        run.head = self
        self._down = below.on_next
        self._state = run.state
        self._time = run.state.time
        self._normalizer = Normalizer(run.state)
        self._push = self._normalizer.push
        self._fold = run.state.fold
        self._aggregator = Aggregator(run.state)
        self._terminator = Terminator(run.state)
        self._shown = shown_classes(keep)
        self._keep = None if keep is None or self._shown is not None else delivers(keep)
        # Most of a stream is one delta of text or thinking after another of the same block. Such a delta passes the
        # normalizer as it is and has one place in the fold: the lane takes it there without the stages.
        self._lane: Callable[[str], None] | None = None
        self._lane_class: type[Any] | None = None
        self._lane_item: str | None = None
        self._lane_index: int | None = None
        self._lane_shown = True
        self._call_lanes: dict[int | None, tuple[Call, Callable[[str], None], str | None]] = {}
        self._args_shown = self._shown is None or ToolCallArgsDelta in self._shown

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        try:
            kind = _class_of(value)
            lane = self._lane
            if (
                kind is self._lane_class
                and lane is not None
                and (
                    value.index == self._lane_index
                    and value.item_id == self._lane_item
                    and (value.text.isascii() or is_whole(value.text))
                    and not value.attributes
                )
            ):
                lane(value.text)
                state = self._state
                value.seq = state.seq
                state.seq += 1
                value.time = self._time()
                value.__class__ = value.frozen_class
                if self._lane_shown:
                    self._down(value)
                return
            if kind is _ARGS:
                found = self._call_lanes.get(value.index)
                if found is not None:
                    call, add, origin_item = found
                    text = value.text
                    if (
                        text
                        and not value.name
                        and ((sent := value.tool_call_id) is None or sent == call.sent_id)
                        and value.item_id == origin_item
                        and text.isascii()
                        and len(text) != call.size
                        and not value.attributes
                    ):
                        # What Calls.fragment and Fold._args do with more of a call that is known by its index.
                        call.fragments.append(text)
                        call.size += len(text)
                        value.tool_call_id = call.id
                        value.name = call.name
                        add(text)
                        state = self._state
                        value.seq = state.seq
                        state.seq += 1
                        value.time = self._time()
                        value.__class__ = value.frozen_class
                        if self._args_shown:
                            self._down(value)
                        return
                self._lane = None
                drafts = self._push(value)
                if drafts:
                    self._emit(drafts)
                self._open_call_lane(value)
                return
            if self._call_lanes:
                self._call_lanes.clear()
            if kind in _LANES:
                self._lane = None
                self._emit(self._push(value))
                self._open_lane(value, kind)
                return
            self._lane = None
            drafts = self._push(value)
            if drafts:
                self._emit(drafts)
        except SemfluxError as error:
            if self.stopped:
                # Not a stage's: what is below has left, and then raised.
                raise
            self.run.fail(error)

    def _open_lane(self, event: Any, kind: type[Any]) -> None:
        """After a delta went the long way: may the next one of its block take the short one?"""
        if self._keep is None and not self.stopped and self._normalizer.is_plain(event):
            self._lane = self._fold.lane(event)
            self._lane_class = kind
            self._lane_item, self._lane_index = event.item_id, event.index
            self._lane_shown = self._shown is None or event.frozen_class in self._shown

    def _open_call_lane(self, event: Any) -> None:
        """As `_open_lane`, for a call: several may be open at a time, each at its index."""
        if self._keep is None and not self.stopped and event.index is not None:
            call = self._normalizer.plain_call(event)
            add = None if call is None else self._fold.call_lane(call.id)
            if call is None or add is None:
                self._call_lanes.pop(event.index, None)
            else:
                self._call_lanes[event.index] = (call, add, call.item_id)

    def _emit(self, drafts: Iterable[Any]) -> None:
        state, shown = self._state, self._shown
        for draft in drafts:
            arm = _arm_of(_class_of(draft))
            if arm is not None:
                arm(self._aggregator, draft)
            frozen = draft.frozen_class
            if frozen in _TERMINAL_CLASSES:
                event = self._terminator.stamp(draft)
                self._down(event)
                self._end(event)
                return
            # What Terminator.stamp does, without its calls: this runs for every event.
            draft.seq = state.seq
            state.seq += 1
            draft.time = self._time()
            draft.__class__ = frozen
            if frozen in shown if shown is not None else self._keeps(draft):
                self._down(draft)
            if self.stopped:
                return

    def _keeps(self, event: Any) -> object:
        """What the filter says. If it raises, that is an error of the user's, and not the stream's."""
        keep = self._keep
        try:
            return keep is None or keep(event)
        except Exception as error:
            self.fail(error)
            return False

    def _end(self, event: Any) -> None:
        """The end that follows the terminal event, which is always delivered."""
        if self.stopped:
            return
        self.dispose()
        if event.error is None:
            self.below.on_completed()
        else:
            self.below.on_error(event.error)

    def on_error(self, error: Exception) -> None:
        if self.stopped:
            return
        try:
            self._emit(self._normalizer.finish(error))
        except Exception as broken:
            self._break(error, broken)

    def _break(self, error: Exception, broken: Exception) -> None:
        """The stages cannot even end the stream: an end there must be, without them."""
        if self.stopped:
            Hooks.drop_error(broken)
            return
        failure = as_semflux_error(error)
        event = self._terminator.stamp(Error.draft_class(failure, None, None, self._state.origin))
        self.dispose()
        if event is not None:
            self._down(event)
        self.below.on_error(failure)

    def closing(self, error: Exception) -> list[AnyChatEvent]:
        """The ends and the ERROR of a stream that was left because something below it failed, for a recovery that
        goes on with it; none if it has ended."""
        events: list[AnyChatEvent] = []
        for draft in self._normalizer.finish(error):
            arm = _arm_of(_class_of(draft))
            if arm is not None:
                arm(self._aggregator, draft)
            event = self._terminator.stamp(draft)
            shown = self._shown
            if event.is_terminal or (
                event.frozen_class in shown if shown is not None else self._keeps(event)
            ):
                events.append(event)
        return events

    def on_completed(self) -> None:
        if self.stopped:
            return
        try:
            self._emit(self._normalizer.finish())
        except SemfluxError as error:
            self._emit(self._normalizer.finish(error))
        for event in () if self.stopped else self._terminator.finish():
            self._down(event)
            self._end(event)


def pipeline(
    keep: Callable[[ChatEvent], object] | None = None,
) -> Callable[[abc.ObservableBase[Any]], Observable[AnyChatEvent]]:
    """normalize, aggregate, terminate and filter_events(*keep*) in one operator; None keeps all."""
    return lift(lambda below, run: PipelineLink(below, run, keep))


__all__ = ("PipelineLink", "pipeline")
