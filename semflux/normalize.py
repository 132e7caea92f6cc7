"""The normalizer: whatever a dialect yields becomes an order that every subscriber may rely on.

A pure state machine, one per stream. Dialects translate; this stage guarantees section 2 of the
contract: it makes the starts and ends that a wire format does not have (*implied*), and those that
a provider should have sent (*repairs*, counted, and fatal in strict mode).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from semflux.blocks import CLOSING_MARK, IMPLIED_MARK, REPAIRED_MARK, REPLACEMENT, Blocks, hold_surrogate
from semflux.calls import Call, Calls
from semflux.errors import SemfluxError
from semflux.events import (
    EVENT_CLASSES,
    AnyChatEvent,
    ChatEventGroup,
    ChatEventType,
    Error,
    RefusalDelta,
    ServerToolArgsDelta,
    ServerToolResult,
    ServerToolStart,
    StepEnd,
    thaw_event,
)
from semflux.frozen import EMPTY
from semflux.stage import Stage
from semflux.state import RunState

T = ChatEventType
_TEXT, _THINKING = ChatEventGroup.TEXT, ChatEventGroup.THINKING


class Seal:
    """A dialect's word that all open blocks and calls end here: the finish signal has come.

    No event: the normalizer consumes it.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "SEAL"


SEAL = Seal()
"""The one `Seal`."""


def as_semflux_error(error: BaseException) -> SemfluxError:
    """*error* itself if it is ours, else one of ours that stands for it."""
    if isinstance(error, SemfluxError):
        return error
    wrapped = SemfluxError(
        f"the source of the stream raised {type(error).__name__}; see __cause__",
        kind="source",
    )
    wrapped.__cause__ = error
    return wrapped


class _Server:
    __slots__ = ("event", "held", "index", "item_id")

    def __init__(self, event: Any) -> None:
        self.item_id: str | None = event.item_id
        self.index: int | None = event.index
        self.event = event
        self.held = ""


class Normalizer(Stage[Any, AnyChatEvent]):
    """Drafts of a dialect in, drafts in a legal order out.

    ```
    TEXT~a TOOL+[c1] $   ->   TEXT+ TEXT~a TEXT- TOOL+[c1] TOOL-[c1]
    ```

    Frozen events may come in too; they are copied first. Nothing is made after a terminal event.

    Raises:
        RepairError: in strict mode, at the first departure of the provider from its own format.
    """

    def __init__(self, state: RunState | None = None) -> None:
        self._state = state or RunState()
        self._blocks = Blocks(self._state)
        self._calls = Calls(self._state, self._blocks)
        self._servers: dict[str, _Server] = {}
        self._server_count = 0
        self._refusal = ""
        self._step_open = False
        self._stepped = False
        """True once a step has started: streams made by hand may have none."""
        self._ended = False
        self._arms: dict[type[Any], Callable[[Any], Iterable[Any]]] = {Seal: self._seal}
        for event_type, arm in {
            T.TEXT_START: self._text_start,
            T.TEXT_DELTA: self._text,
            T.TEXT_END: self._text_end,
            T.THINKING_START: self._thinking_start,
            T.THINKING_DELTA: self._thinking,
            T.THINKING_END: self._thinking_end,
            T.TOOL_CALL_START: self._calls.start,
            T.TOOL_CALL_ARGS_DELTA: self._calls.fragment,
            T.TOOL_CALL_END: self._calls.end,
            T.SERVER_TOOL_START: self._server_start,
            T.SERVER_TOOL_ARGS_DELTA: self._server_args,
            T.SERVER_TOOL_RESULT: self._server_result,
            T.REFUSAL_DELTA: self._refuse,
            T.STEP_START: self._begin_step,
            T.STEP_END: self._end_step,
            T.RESPONSE_END: self._end_response,
            T.ABORT: self._abort,
            T.ERROR: self._error,
        }.items():
            self._arms[EVENT_CLASSES[event_type].draft_class] = arm
        self._text_class = EVENT_CLASSES[T.TEXT_DELTA].draft_class

    def is_plain(self, event: Any) -> bool:
        """True if another delta like *event*, of text or thinking and in ASCII, would pass as it is."""
        block = self._blocks.likely
        return (
            block is not None
            and block.group is event.group
            and block.index == event.index
            and block.item_id == event.item_id
            and not block.held
        )

    def plain_call(self, event: Any) -> Call | None:
        """The call that another fragment like *event*, without id and name and in ASCII, would just go on."""
        return self._calls.plain(event)

    def push(self, item: Any) -> Iterable[Any]:
        if type(item) is self._text_class:
            # Nearly every event of a stream is a delta of the one open block: nothing to do for it.
            block = self._blocks.likely
            if (
                block is not None
                and block.group is _TEXT
                and block.index == item.index
                and block.item_id == item.item_id
                and not block.held
                and item.text.isascii()
            ):
                return (item,)
        if self._ended:
            self._state.ledger.count("after_terminal")
            return ()
        arm = self._arms.get(item.__class__)
        if arm is None:
            if item.is_draft:
                return (item,)
            item = thaw_event(item)
            arm = self._arms.get(item.__class__)
            if arm is None:
                return (item,)
        return arm(item)

    def finish(self, error: BaseException | None = None) -> Iterable[Any]:
        if self._ended:
            return ()
        if error is None:
            return self._close()
        return self._error(Error.draft_class(as_semflux_error(error), None, None, self._state.origin))

    # Blocks

    def _text_start(self, event: Any) -> Iterable[Any]:
        return self._blocks.start(event, _TEXT)

    def _text_end(self, event: Any) -> Iterable[Any]:
        return self._blocks.end(event, _TEXT)

    def _thinking_start(self, event: Any) -> Iterable[Any]:
        return self._blocks.start(event, _THINKING)

    def _thinking_end(self, event: Any) -> Iterable[Any]:
        return self._blocks.end(event, _THINKING)

    def _text(self, event: Any) -> Iterable[Any]:
        return self._blocks.delta(event, _TEXT)

    def _thinking(self, event: Any) -> Iterable[Any]:
        block = self._blocks.likely
        if (
            block is not None
            and block.group is _THINKING
            and block.index == event.index
            and block.item_id == event.item_id
            and not block.held
            and event.text.isascii()
        ):
            return (event,)
        return self._blocks.delta(event, _THINKING)

    def _refuse(self, event: Any) -> Iterable[Any]:
        text, self._refusal = hold_surrogate(self._refusal, event.text)
        if not text:
            return ()
        event.text = text
        return (event,)

    # Server tools

    def _server(self, event: Any) -> _Server | None:
        if event.item_id:
            return self._servers.get(event.item_id)
        for server in self._servers.values():
            if event.index is None or server.index == event.index:
                return server
        return None

    def _server_open(self, event: Any) -> None:
        if not event.item_id:
            event.item_id = f"server_{self._state.origin.step}_{self._server_count}"
        self._server_count += 1
        self._servers[event.item_id] = _Server(event)

    def _server_start(self, event: Any) -> Iterable[Any]:
        if event.item_id and event.item_id in self._servers:
            if not event.attributes.get("implied"):
                self._state.ledger.repair("duplicate_start", "a second start of an open server tool")
            return ()
        self._server_open(event)
        return (event,)

    def _made_server_start(self, event: Any) -> Any:
        paired = self._state.boundaries.server_pairs and not event.attributes.get("implied")
        if paired:
            self._state.ledger.repair("missing_start", "the result of a server tool that never started")
        start = ServerToolStart.draft_class(
            event.sub_type,
            None,
            None,
            None,
            event.origin,
            event.item_id,
            event.index,
            event.raw_type,
            REPAIRED_MARK if paired else IMPLIED_MARK,
        )
        self._server_open(start)
        event.item_id = start.item_id
        return start

    def _server_args(self, event: Any) -> Iterator[Any]:
        yield from self._server_known(event)
        server = self._servers[event.item_id]
        event.text, server.held = hold_surrogate(server.held, event.text)
        if event.text:
            yield event

    def _server_result(self, event: Any) -> Iterator[Any]:
        yield from self._server_known(event)
        yield from self._server_rest(self._servers[event.item_id])
        del self._servers[event.item_id]
        yield event

    def _server_rest(self, server: _Server) -> Iterator[Any]:
        """The delta for half a pair that never got its other half."""
        if server.held:
            server.held = ""
            start = server.event
            yield ServerToolArgsDelta.draft_class(
                REPLACEMENT, start.sub_type, start.origin, server.item_id, server.index, start.raw_type
            )

    def _server_known(self, event: Any) -> Iterator[Any]:
        """Say in *event* which server tool it is of; the start of one that never started."""
        server = self._server(event)
        if server is None:
            yield self._made_server_start(event)
        else:
            event.item_id = server.item_id
            event.sub_type = event.sub_type or server.event.sub_type

    def _close_servers(self, *, failing: bool) -> Iterator[Any]:
        for key, server in list(self._servers.items()):
            mark = CLOSING_MARK if failing else IMPLIED_MARK
            if not failing and self._state.boundaries.server_pairs:
                self._state.ledger.repair("missing_result", "a server tool without a result")
                mark = REPAIRED_MARK
            yield from self._server_rest(server)
            del self._servers[key]
            event = server.event
            yield ServerToolResult.draft_class(
                event.sub_type,
                None,
                (),
                False,
                None,
                event.origin,
                event.item_id,
                event.index,
                event.raw_type,
                mark,
            )

    # Steps and ends. They come lazily, as in `Blocks`.

    def _seal(self, seal: Seal) -> Iterator[Any]:
        return self._end_blocks(failing=False)

    def _end_blocks(self, *, failing: bool) -> Iterator[Any]:
        yield from self._blocks.leave(None, failing=failing)
        yield from self._calls.close(failing=failing)
        if self._refusal:
            self._refusal = ""
            yield RefusalDelta.draft_class(REPLACEMENT, self._state.origin)

    def _end_content(self, *, failing: bool) -> Iterator[Any]:
        yield from self._end_blocks(failing=failing)
        yield from self._close_servers(failing=failing)

    def _close(self, *, failing: bool = False) -> Iterator[Any]:
        """Ends of everything that is open, the step included."""
        yield from self._end_content(failing=failing)
        if self._step_open:
            self._step_open = False
            mark = CLOSING_MARK if failing else EMPTY
            yield StepEnd.draft_class(None, None, None, None, self._state.origin, attributes=mark)

    def _begin_step(self, event: Any) -> Iterator[Any]:
        if self._step_open:
            self._state.ledger.repair("duplicate_start", "a step that starts inside a step")
            if event.origin.step == self._state.origin.step:
                return
        # Content that came outside of any step is over, too.
        yield from self._close()
        self._step_open = self._stepped = True
        self._state.origin = event.origin
        self._server_count = 0
        self._calls.begin_step(event.origin.step)
        yield event

    def _end_step(self, event: Any) -> Iterator[Any]:
        in_step = self._step_open or (not self._stepped and (self._blocks.any_open or self._calls.any_open))
        if not in_step:
            self._state.ledger.repair("stray_end", "the end of a step that is not open")
            return
        yield from self._end_content(failing=bool(event.attributes.get("partial")))
        self._step_open = False
        self._state.origin = event.origin
        yield event

    def _end_response(self, event: Any) -> Iterator[Any]:
        if self._step_open:
            self._state.ledger.repair("missing_end", "a step without an end")
        yield from self._close()
        self._ended = True
        yield event

    def _abort(self, event: Any) -> Iterator[Any]:
        # What is only being ended must not run into a bound once more.
        self._state.fold.release()
        yield from self._close(failing=True)
        self._ended = True
        yield event

    _error = _abort


__all__ = ("SEAL", "Normalizer", "Seal", "as_semflux_error")
