"""The fold: events in, what they came to out. The only maker of a `ChatResponse`.

Texts are kept as lists of pieces and joined once, at the end of a step: adding piece to piece is
quadratic.
"""

# pyright: reportPrivateUsage=false
# The table at the end names methods of the class above it.

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import attrs

from semflux.errors import BadFrameError, ConfigurationError, ResponseTooLargeError, ToolArgumentsError
from semflux.events import (
    EVENT_CLASSES,
    AnyChatEvent,
    ChatEventGroup,
    ChatEventType,
    Citation,
    ContentFilter,
    MediaDone,
    MediaPartial,
    Raw,
    RefusalDelta,
    ServerToolArgsDelta,
    ServerToolResult,
    ServerToolStart,
    StepEnd,
    StepStart,
    TextDelta,
    TextStart,
    ThinkingDelta,
    ThinkingRedacted,
    ThinkingSignature,
    ThinkingStart,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    UsageEvent,
)
from semflux.frozen import EMPTY
from semflux.messages import Message, ToolCall
from semflux.pieces import Piece, Pieces
from semflux.response import ChatResponse, CitedSource, FinishReason, MediaBlock, RepairReport, StepResponse
from semflux.usage import Pricer, Usage
from semflux.wire.json import decode as decode_json
from semflux.wire.json import encode as encode_json
from semflux.wire.limits import DEFAULT_LIMITS, Limits


def complete_call(
    call_id: str, name: str, fragments: list[str], *, custom: bool = False, limits: Limits | None = None
) -> ToolCall:
    """The call that *fragments* of argument text make.

    No text at all is `{}`: a tool without parameters. Text that is not one whole JSON value gives
    `arguments` None and says why.
    """
    text = "".join(fragments)
    if custom:
        return ToolCall(id=call_id, name=name, arguments_json=text, kind="custom")
    if not text:
        return ToolCall(id=call_id, name=name, arguments=EMPTY)
    try:
        arguments = decode_json(text, limits or DEFAULT_LIMITS)
        if "\\ud" in text.lower():
            arguments = decode_json(encode_json(arguments))  # an escaped half of a pair becomes U+FFFD
    except BadFrameError as error:
        return ToolCall(id=call_id, name=name, arguments_json=text, arguments_error=str(error))
    return ToolCall(id=call_id, name=name, arguments_json=text, arguments=arguments)


class _Call:
    __slots__ = ("call", "custom", "fragments", "id", "name", "size")

    def __init__(self, call_id: str, name: str, custom: bool) -> None:
        self.id = call_id
        self.name = name
        self.custom = custom
        self.fragments: list[str] = []
        self.size = 0
        self.call: ToolCall | None = None


class _Step:
    """The step that is being folded."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.text: list[str] = []
        self.thinking: list[str] = []
        self.refusal: list[str] = []
        self.sizes = {"text": 0, "thinking": 0, "refusal": 0}
        """Characters so far."""
        self.calls: dict[str, _Call] = {}
        self.citations: list[CitedSource] = []
        self.media: list[MediaBlock] = []
        self.logprobs: list[Any] = []
        self.usage: Usage | None = None
        self.pieces = Pieces()
        self.text_piece: Piece | None = None
        self.thinking_piece: Piece | None = None
        self.model: str | None = None
        self.provider_response_id: str | None = None
        self.dialect: str | None = None


class Fold:
    """What the events of one stream came to so far."""

    def __init__(
        self,
        response_id: str = "",
        limits: Limits | None = None,
        repairs: Callable[[], RepairReport] = RepairReport,
        pricer: Pricer | None = None,
    ) -> None:
        self.response_id = response_id
        self.limits: Limits = limits or Limits()
        self._bound()
        self.steps: list[StepResponse] = []
        """The steps that are over."""
        self.content_seen: bool = False
        """True once the current step has had a content event."""
        self.contents: int = 0
        """Pieces of content that have begun, in all steps: blocks, calls, citations and so on. 0 before the first."""
        self._repairs = repairs
        self._pricer = pricer
        self._step = _Step(0)
        self._open = False
        self._finish: FinishReason | None = None

    # Reading

    @property
    def usage(self) -> Usage | None:
        """What the current step has used as of now; None when the provider gave none."""
        usage = self._step.usage
        if usage is None:
            return None
        changes: dict[str, Any] = {}
        if usage.total_tokens is None and usage.input_tokens is not None and usage.output_tokens is not None:
            changes["total_tokens"] = usage.input_tokens + usage.output_tokens
        if self._pricer is not None and usage.cost is None:
            changes["cost"] = self._price(usage, self._pricer)
        return attrs.evolve(usage, **changes) if changes else usage

    def _price(self, usage: Usage, pricer: Pricer) -> float | None:
        """The price; a price table that breaks fails the stream once, and is not asked again."""
        try:
            cost = pricer(usage, self._step.model)
            if cost is None or math.isfinite(cost):
                return cost
            what = f"gave {cost}, which is no price"
        except Exception as error:  # noqa: BLE001  # a function of the user's: whatever it raises
            what = f"raised {type(error).__name__}"
        self._pricer = None
        raise ConfigurationError(
            f"the pricer {what}: it takes a Usage and a model's name, and gives a number or None"
        )

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The complete calls of the current step, in the order of their starts."""
        return tuple([entry.call for entry in self._step.calls.values() if entry.call is not None])

    def response(self, *, partial: bool, finish_reason: FinishReason | None = None) -> ChatResponse:
        """All steps so far; the one that is open counts as a partial step."""
        steps = [*self.steps, self._close(None, None, partial=True)] if self._open else self.steps
        return ChatResponse.of(
            steps,
            response_id=self.response_id,
            finish_reason=None if partial else (finish_reason or self._finish),
            repairs=self._repairs(),
            partial=partial,
        )

    # Folding

    def add(self, event: AnyChatEvent) -> None:
        """Take *event* in.

        Raises:
            ResponseTooLargeError: if the text or thinking of the step passes its bound.
            ToolArgumentsError: if the arguments of one call, or the number of calls, do.
        """
        arm = ARMS.get(type(event))
        if arm is not None:
            arm(self, event)

    def _bound(self) -> None:
        limits = self.limits
        self._max_text = limits.max_text_chars
        self._max_thinking = limits.max_thinking_chars
        self._max_args = limits.max_tool_args_chars
        self._max_calls = limits.max_tool_calls

    def release(self) -> None:
        """Hold this step to no bound any more: it has failed, and what is open only ends."""
        self._max_text = self._max_thinking = self._max_args = self._max_calls = sys.maxsize

    def lane(self, event: TextDelta | ThinkingDelta) -> Callable[[str], None] | None:
        """A short way for more of the block of *event*, which was just added; valid until any other event
        is. None if there is none."""
        step = self._step
        if event.group is ChatEventGroup.TEXT:
            piece, texts, bound, what = step.text_piece, step.text, self._max_text, "text"
        else:
            piece, texts, bound, what = step.thinking_piece, step.thinking, self._max_thinking, "thinking"
        if piece is None or event.attributes:
            return None
        to_step, to_piece = texts.append, piece.texts.append
        sizes = step.sizes

        def add(text: str) -> None:
            sizes[what] += len(text)
            if sizes[what] > bound:
                raise _too_large(what, bound)
            to_step(text)
            to_piece(text)

        return add

    def call_lane(self, call_id: str) -> Callable[[str], None] | None:
        """A short way for more arguments of a call that is known; valid until any event but arguments is added."""
        entry = self._step.calls.get(call_id)
        if entry is None:
            return None
        to_entry = entry.fragments.append
        bound = self._max_args

        def add(text: str) -> None:
            entry.size += len(text)
            if entry.size > bound:
                raise _too_long(bound)
            to_entry(text)

        return add

    def _begin(self, event: StepStart) -> None:
        self._step = _Step(event.step)
        self._open = True
        self.content_seen = False
        self._bound()

    def _meet(self, event: Any) -> _Step:
        """The current step; it opens with its first event where no STEP_START came."""
        self._open = True
        self._note(event)
        return self._step

    def _note(self, event: Any) -> None:
        """Content that comes to nothing in the response is content all the same."""
        self.content_seen = True
        self.contents += 1

    def _text_start(self, event: TextStart) -> None:
        step = self._meet(event)
        step.text_piece = step.pieces.add("text", event)

    def _text(self, event: TextDelta) -> None:
        step = self._step
        text = event.text
        step.sizes["text"] += len(text)
        if step.sizes["text"] > self._max_text:
            raise _too_large("text", self._max_text)
        piece = step.text_piece
        if piece is None or piece.index != event.index or piece.item_id != event.item_id:
            self._meet(event)
            piece = step.text_piece = step.pieces.find("text", event) or step.pieces.add("text", event)
        step.text.append(text)
        piece.texts.append(text)
        if event.attributes:
            step.logprobs.extend(event.attributes.get("logprobs", ()))

    def _thinking_start(self, event: ThinkingStart) -> None:
        step = self._meet(event)
        step.thinking_piece = step.pieces.add("thinking", event)

    def _thinking(self, event: ThinkingDelta) -> None:
        step = self._step
        text = event.text
        step.sizes["thinking"] += len(text)
        if step.sizes["thinking"] > self._max_thinking:
            raise _too_large("thinking", self._max_thinking)
        piece = step.thinking_piece
        if piece is None or piece.index != event.index or piece.item_id != event.item_id:
            self._meet(event)
            piece = step.thinking_piece = step.pieces.find("thinking", event) or step.pieces.add(
                "thinking", event
            )
        step.thinking.append(text)
        piece.texts.append(text)

    def _signature(self, event: ThinkingSignature) -> None:
        step = self._meet(event)
        anonymous = event.item_id is None and event.index is None
        piece = step.thinking_piece if anonymous else step.pieces.find("thinking", event)
        if piece is None:
            piece = step.thinking_piece = step.pieces.add("thinking", event)
        piece.signature = event.text

    def _redacted(self, event: ThinkingRedacted) -> None:
        self._meet(event).pieces.add("redacted", event).texts.append(event.text)

    def _refusal(self, event: RefusalDelta) -> None:
        step = self._meet(event)
        step.sizes["refusal"] += len(event.text)
        if step.sizes["refusal"] > self._max_text:
            raise _too_large("refusal", self._max_text)
        step.refusal.append(event.text)
        (step.pieces.last("refusal") or step.pieces.add("refusal", event)).texts.append(event.text)

    def _call_start(self, event: ToolCallStart) -> None:
        self._call_entry(event)

    def _call_entry(self, event: ToolCallStart | ToolCallArgsDelta | ToolCallEnd) -> _Call:
        step = self._meet(event)
        call_id = event.tool_call_id or ""
        entry = step.calls.get(call_id)
        if entry is None:
            if len(step.calls) >= self._max_calls:
                raise ToolArgumentsError(
                    f"the answer has more than {self._max_calls} tool calls", kind="count", phase="stream"
                )
            entry = step.calls[call_id] = _Call(
                call_id, event.name or "", event.attributes.get("kind") == "custom"
            )
            step.pieces.add("call", event, call_id)
        return entry

    def _args(self, event: ToolCallArgsDelta) -> None:
        entry = self._step.calls.get(event.tool_call_id or "") or self._call_entry(event)
        entry.size += len(event.text)
        if entry.size > self._max_args:
            raise _too_long(self._max_args)
        entry.fragments.append(event.text)

    def _call_end(self, event: ToolCallEnd) -> None:
        entry = self._call_entry(event)
        if event.name and not entry.name:
            entry.name = event.name
        entry.call = complete_call(
            entry.id, entry.name, entry.fragments, custom=entry.custom, limits=self.limits
        )

    def call(self, call_id: str | None) -> ToolCall | None:
        """The complete call *call_id* of the current step; None while it is open or unknown."""
        entry = self._step.calls.get(call_id or "")
        return None if entry is None else entry.call

    def _server_start(self, event: ServerToolStart) -> None:
        piece = self._meet(event).pieces.add("server", event, event.raw)
        piece.args_key = event.attributes.get("args_key")

    def _server_args(self, event: ServerToolArgsDelta) -> None:
        piece = self._meet(event).pieces.find("server", event)
        if piece is not None:
            piece.texts.append(event.text)

    def _server_result(self, event: ServerToolResult) -> None:
        step = self._meet(event)
        if event.attributes.get("whole"):
            # The vendor's result repeats the whole item, call included: it takes the place of the start.
            piece = step.pieces.find("server", event)
            if piece is not None:
                piece.raw, piece.args_key = event.raw, None
                return
        if event.raw is not None:
            step.pieces.add("server", event, event.raw)

    def _citation(self, event: Citation) -> None:
        self._meet(event).citations.append(event.citation)

    def _media(self, event: MediaDone) -> None:
        self._meet(event).media.append(event.block)

    def _raw(self, event: Raw) -> None:
        block = event.attributes.get("block")
        if block is not None:
            self._open = True
            self._step.pieces.add("vendor", event, block)

    def _usage(self, event: UsageEvent) -> None:
        self._open = True
        step = self._step
        step.usage = event.usage if step.usage is None else step.usage.merge(event.usage)
        self._identify(step, event)

    def _end(self, event: StepEnd) -> None:
        step = self._step
        self._identify(step, event)
        if event.usage is not None:
            step.usage = event.usage if step.usage is None else step.usage.merge(event.usage)
        partial = bool(event.attributes.get("partial"))
        reason = None if partial else self._reason(event.finish_reason)
        self.steps.append(self._close(reason, event.provider_finish_reason, partial=partial))
        self._finish = reason
        self._open = False
        self._step = _Step(step.number + 1)

    def _identify(self, step: _Step, event: Any) -> None:
        origin = event.origin
        step.model = origin.model or step.model
        step.provider_response_id = origin.provider_response_id or step.provider_response_id
        step.dialect = origin.dialect or step.dialect

    def _reason(self, reason: FinishReason | None) -> FinishReason | None:
        """Many vendors say "stop" whatever happened: complete calls, or a refusal, say more."""
        if reason != "stop":
            return reason
        calls = self._step.calls.values()
        if calls and all(entry.call is not None and entry.call.is_complete for entry in calls):
            return "tool_calls"
        return "refusal" if self._step.refusal and not self._step.text else "stop"

    def _close(
        self, reason: FinishReason | None, provider_reason: str | None, *, partial: bool
    ) -> StepResponse:
        step = self._step
        calls = {
            entry.id: entry.call
            or complete_call(entry.id, entry.name, entry.fragments, custom=entry.custom, limits=self.limits)
            for entry in step.calls.values()
        }
        return StepResponse(
            step=step.number,
            text="".join(step.text),
            thinking="".join(step.thinking),
            refusal="".join(step.refusal),
            tool_calls=tuple(calls.values()),
            citations=tuple(step.citations),
            media=tuple(step.media),
            finish_reason=reason,
            provider_finish_reason=provider_reason,
            usage=self.usage,
            model=step.model,
            provider_response_id=step.provider_response_id,
            message=Message("assistant", step.pieces.parts(calls, step.dialect)),
            logprobs=tuple(step.logprobs),
            partial=partial,
        )


def _too_long(bound: int) -> ToolArgumentsError:
    return ToolArgumentsError(
        f"the arguments of a call passed the bound of {bound} characters", kind="size", phase="stream"
    )


def _too_large(what: str, bound: int) -> ResponseTooLargeError:
    return ResponseTooLargeError(f"the {what} passed the bound of {bound} characters", kind=what)


_BY_CLASS: dict[ChatEventType, Callable[[Fold, Any], None]] = {
    StepStart.type: Fold._begin,
    TextStart.type: Fold._text_start,
    TextDelta.type: Fold._text,
    ThinkingStart.type: Fold._thinking_start,
    ThinkingDelta.type: Fold._thinking,
    ThinkingSignature.type: Fold._signature,
    ThinkingRedacted.type: Fold._redacted,
    RefusalDelta.type: Fold._refusal,
    ToolCallStart.type: Fold._call_start,
    ToolCallArgsDelta.type: Fold._args,
    ToolCallEnd.type: Fold._call_end,
    ServerToolStart.type: Fold._server_start,
    ServerToolArgsDelta.type: Fold._server_args,
    ServerToolResult.type: Fold._server_result,
    Citation.type: Fold._citation,
    ContentFilter.type: Fold._note,
    MediaDone.type: Fold._media,
    MediaPartial.type: Fold._note,
    ToolResult.type: Fold._note,
    Raw.type: Fold._raw,
    UsageEvent.type: Fold._usage,
    StepEnd.type: Fold._end,
}
ARMS: dict[type[Any], Callable[[Fold, Any], None]] = {}
"""What `Fold.add` does, by class of event; nothing where there is none."""
for _type, _arm in _BY_CLASS.items():
    ARMS[EVENT_CLASSES[_type]] = _arm
    ARMS[EVENT_CLASSES[_type].draft_class] = _arm

__all__ = ("ARMS", "Fold", "complete_call")
