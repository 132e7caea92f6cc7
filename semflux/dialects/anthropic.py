"""Anthropic messages: frames to events.

One wire with blocks of its own: each has a start, deltas and a stop, and an index. `message_stop` is
the finish signal and the end marker in one. Facts: Anthropic's documentation ("Streaming messages")
and the recorded streams, of gateways too: some leave out the type, the index, a stop, or all frames
of a block.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Frames are untyped JSON: each value is checked where it is read, which leaves what is inside it unknown.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from semflux.dialects.anthropic_parts import (
    FINISH_REASONS,
    STATUS_REASONS,
    citation_of,
    merge_block,
    result_of,
    server_tool,
    usage_of,
)
from semflux.dialects.base import Dialect, Out, Parser, ParserOptions, int_of, require, text_of, whole_object
from semflux.errors import BadFrameError, ProviderError
from semflux.events import ChatEventType, TextDelta, ThinkingDelta, ToolCallArgsDelta
from semflux.frozen import EMPTY, FrozenDict, freeze
from semflux.http_errors import error_from_code, error_from_object
from semflux.state import Boundaries
from semflux.wire.json import TypedDecoder, decode, encode
from semflux.wire.limits import DEFAULT_LIMITS

T = ChatEventType


class _TextDelta(msgspec.Struct, tag="text_delta"):
    text: str


class _ThinkingDelta(msgspec.Struct, tag="thinking_delta"):
    text: str = msgspec.field(name="thinking")


class _InputDelta(msgspec.Struct, tag="input_json_delta"):
    text: str = msgspec.field(name="partial_json")


class _Frame(msgspec.Struct, tag="content_block_delta"):
    """A delta of a block: nearly all of a stream. Anything else is read untyped, by the general way."""

    index: int
    delta: _TextDelta | _ThinkingDelta | _InputDelta


_typed = TypedDecoder(_Frame).decode
_TEXT, _THINKING = TextDelta.draft_class, ThinkingDelta.draft_class
_ARGS = ToolCallArgsDelta.draft_class
_DELTA = "content_block_delta"


class _Block:
    """A content block that is open."""

    __slots__ = ("deltas", "fast", "input", "kind", "raw", "tool_id")

    def __init__(self, kind: str, raw: dict[str, Any]) -> None:
        self.kind = kind
        self.raw = raw
        self.tool_id = text_of(raw.get("id")) or None
        self.input: str | None = None
        """An input that came with the start: sent at the stop, unless deltas bring a whole one."""
        self.deltas: list[str] = []
        self.fast = _FAST.get(kind)
        """The delta that it normally gets; None when a delta must be looked at."""

    @property
    def is_unmodelled(self) -> bool:
        """True if nothing but RAW tells of it, and of the block as a whole only its end."""
        return not self.kind.endswith(("_tool_use", "_tool_result")) and self.kind not in _MODELLED


_MODELLED = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
_FAST: dict[str, type[Any]] = {"text": _TextDelta, "thinking": _ThinkingDelta, "tool_use": _InputDelta}


class AnthropicParser(Parser):
    """The parser of one step."""

    def __init__(self, out: Out, options: ParserOptions) -> None:
        super().__init__(out, options)
        limits = out.state.limits
        self._typed = _typed if limits == DEFAULT_LIMITS else TypedDecoder(_Frame, limits).decode
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, Any] = {}
        self._message_id: str | None = None
        self._latest = -1
        self._reason: str | None = None
        self._frames: dict[str, Callable[[dict[str, Any]], Iterator[Any]]] = {
            "message_start": self._message_start,
            "content_block_start": self._block_start,
            "content_block_delta": self._block_delta,
            "content_block_stop": self._block_stop,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "ping": self._ping,
            "error": self._error,
        }
        self._starts: dict[str, Callable[[_Block, int], Iterator[Any]]] = {
            "text": self._text_start,
            "thinking": self._thinking_start,
            "redacted_thinking": self._redacted,
            "tool_use": self._tool_start,
        }
        self._deltas: dict[str, Callable[[dict[str, Any], int, _Block | None], Iterator[Any]]] = {
            "text_delta": self._text_delta,
            "thinking_delta": self._thinking_delta,
            "signature_delta": self._signature_delta,
            "citations_delta": self._citations_delta,
            "input_json_delta": self._input_delta,
        }

    @property
    def _provider(self) -> str:
        return self.options.provider or "anthropic"

    def decode(self, event: str | None, data: bytes) -> Iterable[Any]:
        if event == _DELTA or event is None:
            frame = self._typed(data)
            if frame is not None:
                index = frame.index
                block = self._blocks.get(index)
                delta = frame.delta
                kind = type(delta)
                if block is not None and block.fast is kind:
                    text = delta.text
                    if not text:
                        return ()
                    origin = self.out.origin
                    if kind is _InputDelta:
                        return (_ARGS(text, block.tool_id, None, origin, None, index, _DELTA, EMPTY),)
                    make = _TEXT if kind is _TextDelta else _THINKING
                    return (make(text, origin, None, index, _DELTA, EMPTY),)
        return self._decode_any(event, data)

    def _decode_any(self, event: str | None, data: bytes) -> Iterator[Any]:
        text = data.strip()
        self.out.raw_type = event
        if text == b"[DONE]":
            yield self.out.raw("[DONE]")
            return
        if not text:
            self.out.note("empty_frame")
            return
        try:
            frame = decode(text, self.out.state.limits)
        except BadFrameError:
            if event == "error":
                message = text.decode("utf-8", "replace")
                raise error_from_code(None, message, provider=self._provider) from None
            raise
        if not isinstance(frame, dict):
            if event == "error":
                raise error_from_object(frame, provider=self._provider)
            raise BadFrameError("a frame is JSON, but no object", kind="shape")
        kind = text_of(frame.get("type")) or event or ""
        self.out.raw_type = kind or None
        if not kind and frame.get("error"):
            kind = "error"
        read = self._frames.get(kind)
        if read is None:
            yield self.out.raw(frame)
        else:
            yield from read(frame)

    def decode_whole(self, data: bytes) -> Iterable[Any]:
        answer = whole_object(decode(data, self.out.state.limits))
        if answer.get("type") == "error" or answer.get("error"):
            raise error_from_object(answer, provider=self._provider)
        if not isinstance(answer.get("content"), list):
            raise ProviderError(
                "the answer has no content: it is not a message", provider=self._provider, kind="no_content"
            )
        self.out.raw_type = "message"
        yield from self._message(answer)
        yield from self._message_stop(answer)

    # Frames of the message

    def _message_start(self, frame: dict[str, Any]) -> Iterator[Any]:
        message = require(frame.get("message"), dict, "message") or {}
        message_id = text_of(message.get("id")) or None
        if self._message_id is not None and message_id is not None:
            if message_id != self._message_id:
                raise BadFrameError("a second message starts inside the first", kind="shape")
            self.out.repair("duplicate_start", "a second start of the same message")
            return
        self._message_id = message_id
        yield from self._message(message)

    def _message(self, message: dict[str, Any]) -> Iterator[Any]:
        """A message object: at its start it is empty, in some gateways and in whole answers it is full."""
        out = self.out
        out.identify(message.get("id"), message.get("model"))
        usage = require(message.get("usage"), dict, "usage")
        if usage:
            yield self._observe(usage)
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            frame = {"index": self._latest + 1, "content_block": block}
            yield from self._block_start(frame)
            yield from self._block_stop(frame)
        yield from self._stopping(message)

    def _message_delta(self, frame: dict[str, Any]) -> Iterator[Any]:
        yield from self._stopping(require(frame.get("delta"), dict, "delta") or {})
        usage = require(frame.get("usage"), dict, "usage")
        if usage:
            yield self._observe(usage)
        management = frame.get("context_management")
        if isinstance(management, dict) and management.get("applied_edits"):
            yield self.out.raw({"context_management": management})

    def _stopping(self, delta: dict[str, Any]) -> Iterator[Any]:
        reason = text_of(delta.get("stop_reason"))
        if not reason:
            return
        self._reason = reason
        out = self.out
        if reason == "refusal":
            details = delta.get("stop_details")
            found = details if isinstance(details, dict) else {}
            yield out.event(
                T.CONTENT_FILTER,
                text_of(found.get("category")) or "refusal",
                text_of(found.get("explanation")) or None,
                True,
            )
        if reason in STATUS_REASONS:
            yield out.event(T.STATUS, reason, text_of(delta.get("stop_sequence")) or None)

    def _message_stop(self, frame: dict[str, Any]) -> Iterator[Any]:
        for index in list(self._blocks):
            # Their stops never came; the normalizer ends them, and counts it.
            block = self._blocks[index]
            yield from self._leave(index)
            if block.is_unmodelled:
                yield self.out.raw({"index": index, "content_block": block.raw}, index, block=block.raw)
        reason = self._reason
        yield self.out.finish("stop" if reason is None else FINISH_REASONS.get(reason, "other"), reason)
        self.ended = True

    def _ping(self, frame: dict[str, Any]) -> Iterator[Any]:
        yield self.out.heartbeat()

    def _error(self, frame: dict[str, Any]) -> Iterator[Any]:
        usage = frame.get("usage")
        if isinstance(usage, dict) and usage:
            yield self._observe(usage)
        raise error_from_object(frame, provider=self._provider)

    def _observe(self, usage: dict[str, Any]) -> Any:
        self._usage.update({key: value for key, value in usage.items() if value is not None})
        return self.out.usage(usage_of(self._usage))

    # Frames of a block

    def _index(self, frame: dict[str, Any], *, starts: bool = False) -> int:
        """The block's index; a missing one is the next block's at a start, else the latest one's."""
        value = frame.get("index")
        if value is None:
            return self._latest + 1 if starts else max(self._latest, 0)
        index = int_of(value)
        if index is None or not 0 <= index <= self.out.state.limits.max_block_index:
            raise BadFrameError("the index of a block is no number, or out of bounds", kind="shape")
        return index

    def _block_start(self, frame: dict[str, Any]) -> Iterator[Any]:
        raw = require(frame.get("content_block"), dict, "content_block")
        index = self._index(frame, starts=True)
        if raw is None:
            raise BadFrameError("the start of a block without the block", kind="shape")
        if index in self._blocks:
            yield from self._leave(index)
        self._latest = max(self._latest, index)
        kind = text_of(raw.get("type"))
        block = self._blocks[index] = _Block(kind, raw)
        start = self._starts.get(kind)
        if start is not None:
            yield from start(block, index)
        elif kind.endswith("_tool_use"):
            yield from self._server_start(block, index)
        elif kind.endswith("_tool_result"):
            yield self._server_result(raw, index)
        else:
            yield self.out.raw(frame, index)

    def _text_start(self, block: _Block, index: int) -> Iterator[Any]:
        yield self.out.text_start(index)
        if text_of(block.raw.get("text")):
            yield self.out.text(block.raw["text"], index)
        citations = block.raw.get("citations")
        for citation in citations if isinstance(citations, list) else ():
            if isinstance(citation, dict):
                yield self.out.citation(citation_of(citation), index)

    def _thinking_start(self, block: _Block, index: int) -> Iterator[Any]:
        yield self.out.thinking_start(index)
        if text_of(block.raw.get("thinking")):
            yield self.out.thinking(block.raw["thinking"], index)
        if text_of(block.raw.get("signature")):
            yield self.out.event(T.THINKING_SIGNATURE, text_of(block.raw["signature"]), index=index)

    def _redacted(self, block: _Block, index: int) -> Iterator[Any]:
        yield self.out.event(T.THINKING_REDACTED, text_of(block.raw.get("data")), index=index)

    def _tool_start(self, block: _Block, index: int) -> Iterator[Any]:
        yield self.out.tool_start(block.tool_id, text_of(block.raw.get("name")) or None, index)
        block.input = _input_of(block.raw)
        if block.input is not None:
            block.fast = None

    def _server_start(self, block: _Block, index: int) -> Iterator[Any]:
        name = text_of(block.raw.get("name")) or None
        block.input = _input_of(block.raw)
        if block.input is not None:
            block.fast = None
        yield self.out.event(
            T.SERVER_TOOL_START,
            server_tool(block.kind, name),
            name,
            None,
            freeze(block.raw),
            item_id=block.tool_id,
            index=index,
            attributes=FrozenDict(args_key="input"),
        )

    def _server_result(self, raw: dict[str, Any], index: int) -> Any:
        text, results, is_error = result_of(raw)
        return self.out.event(
            T.SERVER_TOOL_RESULT,
            server_tool(text_of(raw.get("type")), None),
            text,
            results,
            is_error,
            freeze(raw),
            item_id=text_of(raw.get("tool_use_id")) or None,
            index=index,
        )

    def _block_delta(self, frame: dict[str, Any]) -> Iterator[Any]:
        index = self._index(frame)
        block = self._blocks.get(index)
        delta = require(frame.get("delta"), dict, "delta")
        if delta is None:
            raise BadFrameError("a delta frame without its delta", kind="shape")
        read = self._deltas.get(text_of(delta.get("type")))
        if read is not None:
            yield from read(delta, index, block)
            return
        if block is not None:
            merge_block(block.raw, delta)
        yield self.out.raw(frame, index)

    def _text_delta(self, delta: dict[str, Any], index: int, block: _Block | None) -> Iterator[Any]:
        text = require(delta.get("text"), str, "the text of a delta")
        if text:
            yield self.out.text(text, index)

    def _thinking_delta(self, delta: dict[str, Any], index: int, block: _Block | None) -> Iterator[Any]:
        text = require(delta.get("thinking"), str, "the thinking of a delta")
        if text:
            yield self.out.thinking(text, index)

    def _signature_delta(self, delta: dict[str, Any], index: int, block: _Block | None) -> Iterator[Any]:
        signature = require(delta.get("signature"), str, "the signature of a delta")
        if block is not None and block.kind != "thinking":
            yield self.out.raw({"delta": delta}, index)
        elif signature:
            yield self.out.event(T.THINKING_SIGNATURE, text_of(signature), index=index)

    def _citations_delta(self, delta: dict[str, Any], index: int, block: _Block | None) -> Iterator[Any]:
        citation = require(delta.get("citation"), dict, "the citation of a delta")
        if citation:
            yield self.out.citation(citation_of(citation), index)

    def _input_delta(self, delta: dict[str, Any], index: int, block: _Block | None) -> Iterator[Any]:
        fragment = require(delta.get("partial_json"), str, "the input of a delta")
        if not fragment:
            return
        if block is None:
            # No start for this index: nothing says which tool this would be.
            self.out.repair("orphan_delta", "input for a block that never started")
            yield self.out.raw({"delta": delta}, index)
        elif block.input is not None:
            block.deltas.append(fragment)
        elif block.kind.endswith("_tool_use"):
            yield self.out.event(
                T.SERVER_TOOL_ARGS_DELTA,
                fragment,
                None,
                item_id=block.tool_id,
                index=index,
            )
        elif block.kind == "tool_use":
            yield self.out.tool_args(fragment, index)
        else:
            yield self.out.raw({"delta": delta}, index)

    def _leave(self, index: int) -> Iterator[Any]:
        """What was held for the block at *index*."""
        block = self._blocks.pop(index)
        if block.input is None:
            return
        joined = "".join(block.deltas)
        text = joined if _is_object(joined) else block.input
        if block.kind == "tool_use":
            yield self.out.tool_args(text, index)
        else:
            yield self.out.event(
                T.SERVER_TOOL_ARGS_DELTA,
                text,
                None,
                item_id=block.tool_id,
                index=index,
            )

    def _block_stop(self, frame: dict[str, Any]) -> Iterator[Any]:
        index = self._index(frame)
        block = self._blocks.get(index)
        if block is None:
            self.out.repair("stray_end", "the stop of a block that is not open")
            return
        yield from self._leave(index)
        if block.kind == "text":
            yield self.out.text_end(index)
        elif block.kind == "thinking":
            yield self.out.thinking_end(index)
        elif block.kind == "tool_use":
            yield self.out.tool_end(index=index)
        elif block.is_unmodelled:
            yield self.out.raw(frame, index, block=block.raw)

    def finish(self) -> Iterator[Any]:
        for index in list(self._blocks):
            yield from self._leave(index)


def _input_of(raw: dict[str, Any]) -> str | None:
    """The input in the start of a block, as text; None where it is empty, as it normally is."""
    value = raw.get("input")
    return encode(value).decode() if isinstance(value, dict) and value else None


def _is_object(text: str) -> bool:
    try:
        return bool(text) and isinstance(decode(text), dict)
    except BadFrameError:
        return False


ANTHROPIC = Dialect(
    name="anthropic",
    title="Anthropic messages",
    framing="sse",
    boundaries=Boundaries(
        text_start=True,
        text_end=True,
        thinking_start=True,
        thinking_end=True,
        tool_start=True,
        tool_end=True,
        tool_ids=True,
    ),
    parser=AnthropicParser,
)
"""Blocks and calls have starts and ends of their own. A server tool may be answered in a later response."""

__all__ = ("ANTHROPIC", "AnthropicParser")
