"""OpenAI chat completions, and the many that speak it: frames to events.

One wire with implied boundaries: text, reasoning and calls have neither starts nor ends, so that all
of them end with the finish signal: `finish_reason`, or `[DONE]` without one. Usage comes later, in a
chunk without choices, and some servers send it with every chunk. Facts: OpenAI's API reference
("The chat completion chunk object") and the recorded streams of its imitators.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Frames are untyped JSON: each value is checked where it is read, which leaves what is inside it unknown.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from semflux.blocks import IMPLIED_MARK
from semflux.dialects.base import (
    Dialect,
    Out,
    Parser,
    ParserOptions,
    int_of,
    require,
    string_of,
    text_of,
    whole_object,
)
from semflux.dialects.openai_chat_parts import (
    FINISH_REASONS,
    KNOWN_DELTA,
    citations_of,
    filter_events,
    image_of,
    usage_of,
)
from semflux.dialects.reasoning_details import ReasoningDetails
from semflux.dialects.think_tags import ThinkSplitter
from semflux.errors import BadFrameError, ProviderError
from semflux.events import ChatEventType, TextDelta, ThinkingDelta
from semflux.frozen import EMPTY, FrozenDict, freeze
from semflux.http_errors import error_from_code, error_from_object
from semflux.response import MediaBlock
from semflux.state import Boundaries
from semflux.wire.json import TypedDecoder, decode, encode
from semflux.wire.limits import DEFAULT_LIMITS

T = ChatEventType
_TEXT, _THINKING = TextDelta.draft_class, ThinkingDelta.draft_class


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct, forbid_unknown_fields=True):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    type: str | None = None


class _Delta(msgspec.Struct, forbid_unknown_fields=True):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_ToolCall] | None = None
    role: str | None = None
    refusal: None = None


class _Choice(msgspec.Struct):
    delta: _Delta
    index: int | None = None
    finish_reason: None = None
    logprobs: None = None
    content_filter_results: None = None


class _Chunk(msgspec.Struct):
    """A chunk that only adds text, reasoning or fragments of calls: nearly all of a stream.

    Anything else fails to decode as this and is read untyped, by the general way.
    """

    choices: list[_Choice]
    usage: None = None
    error: None = None
    x_groq: None = None
    citations: None = None
    search_results: None = None
    prompt_filter_results: None = None
    moderation: None = None


class _NamedChunk(_Chunk):
    """The same while it is not known yet who answers."""

    id: str | None = None
    model: str | None = None
    object: str | None = None


_named = TypedDecoder(_NamedChunk).decode
_plain = TypedDecoder(_Chunk).decode

_SAYS = frozenset({"usage", "x_groq", "citations", "moderation", "search_results", "prompt_filter_results"})
"""What a chunk without choices may be about; any other becomes RAW."""


class OpenAIChatParser(Parser):
    """The parser of one step."""

    def __init__(self, out: Out, options: ParserOptions) -> None:
        super().__init__(out, options)
        self._think = ThinkSplitter(options.think_tags)
        self._cited: set[Any] = set()
        self._details = ReasoningDetails()
        self._last_call: str | None = None
        """The id of the call that the latest fragment was of, where it had one."""
        self._logprobs: list[Any] = []
        """Log-probabilities of tokens whose text has not come out yet."""
        self._whole = False
        limits = out.state.limits
        if limits == DEFAULT_LIMITS:
            self._plain, self._named = _plain, _named
        else:
            self._plain = TypedDecoder(_Chunk, limits).decode
            self._named = TypedDecoder(_NamedChunk, limits).decode

    def decode(self, event: str | None, data: bytes) -> Iterable[Any]:
        out = self.out
        if event is None:
            chunk: _Chunk | None
            if out.identified:
                chunk = self._plain(data)
            else:
                chunk = self._identify(data)
            if chunk is not None:
                choices = chunk.choices
                if len(choices) == 1 and not choices[0].index:
                    delta = choices[0].delta
                    content, thought, calls = delta.content, delta.reasoning_content, delta.tool_calls
                    if calls is None:
                        if not thought:
                            if not content:
                                return ()
                            if self._think.passes:
                                return (_TEXT(content, out.origin, None, None, out.raw_type, EMPTY),)
                        elif not content:
                            return (_THINKING(thought, out.origin, None, None, out.raw_type, EMPTY),)
                    elif len(calls) == 1 and not content and not thought:
                        return (self._typed_call(calls[0]),)
                    return self._delta_only(delta)
        return self._decode_any(event, data)

    def _identify(self, data: bytes) -> _Chunk | None:
        chunk = self._named(data)
        if chunk is None or chunk.object == "error":
            return None
        self.out.identify(chunk.id, chunk.model)
        self.out.raw_type = chunk.object or None
        return chunk

    def _delta_only(self, delta: _Delta) -> Iterator[Any]:
        """A delta of the known fields, in the order in which a model makes them."""
        if delta.reasoning_content:
            yield self.out.thinking(delta.reasoning_content)
        if delta.content:
            yield from self._text(delta.content)
        for call in delta.tool_calls or ():
            yield self._typed_call(call)

    def _typed_call(self, call: _ToolCall) -> Any:
        function = call.function
        if function is None:
            return self._fragment("", call.index, call.id, None)
        return self._fragment(function.arguments or "", call.index, call.id, function.name)

    def _fragment(self, text: str, index: int | None, id: str | None, name: str | None) -> Any:
        """A fragment of a call. One without index and id goes on with the call of the one before it."""
        if index is not None and not 0 <= index <= self.out.state.limits.max_block_index:
            raise BadFrameError("the index of a tool call is out of bounds", kind="shape")
        if id:
            self._last_call = id
        elif index is not None or name:
            self._last_call = None
        elif self._last_call is not None:
            self.out.repair("relabelled", "a fragment that does not say which call it belongs to")
            id = self._last_call
        return self.out.tool_args(text, index, id, name)

    def _decode_any(self, event: str | None, data: bytes) -> Iterator[Any]:
        text = data.strip()
        if text == b"[DONE]":
            yield from self._done()
            return
        if not text:
            self.out.note("empty_frame")
            return
        try:
            chunk = decode(text, self.out.state.limits)
        except BadFrameError:
            message = text.decode("utf-8", "replace")
            if event == "error" or message[:6].lower() == "error ":
                raise error_from_code(None, message, provider=self._provider) from None
            raise
        if event == "error" and not (isinstance(chunk, dict) and chunk.get("error")):
            raise error_from_object(chunk, provider=self._provider)
        if isinstance(chunk, str) and chunk[:6].lower() == "error ":
            raise error_from_code(None, chunk, provider=self._provider)
        if not isinstance(chunk, dict):
            raise BadFrameError("a frame is JSON, but no object", kind="shape")
        yield from self._chunk(chunk, "delta")

    @property
    def _provider(self) -> str:
        return self.options.provider or "openai-chat"

    def decode_whole(self, data: bytes) -> Iterable[Any]:
        answer = whole_object(decode(data, self.out.state.limits))
        self._whole = True
        yield from self._chunk(answer, "message")
        if not isinstance(answer.get("choices"), list):
            raise ProviderError(
                "the answer has no choices: it is not a chat completion",
                provider=self._provider,
                kind="no_choices",
            )
        yield from self._done()

    def _done(self) -> Iterator[Any]:
        yield from self.finish()
        if not self.finished:
            # Some servers never send a finish_reason (Snowflake, Novita): the marker alone is the signal.
            yield self.out.finish("stop", None)
        self.ended = True

    def missing_end(self) -> None:
        self.out.repair("missing_done", "no [DONE] at the end")

    # The general way

    def _chunk(self, chunk: dict[str, Any], key: str) -> Iterator[Any]:
        out = self.out
        out.raw_type = text_of(chunk.get("object")) or None
        error = chunk.get("error")
        if error or chunk.get("object") == "error":
            yield from self._usage(chunk)
            raise error_from_object(chunk, provider=self._provider)
        out.identify(chunk.get("id"), chunk.get("model"))
        yield from self._prompt_filter(chunk.get("prompt_filter_results"))
        for position, choice in enumerate(require(chunk.get("choices"), list, "choices") or ()):
            if not isinstance(choice, dict):
                raise BadFrameError(f"choices[{position}] is no object", kind="shape")
            index = int_of(choice.get("index"))
            if index is not None and index != 0:
                yield out.event(T.CUSTOM, "choice", freeze(choice), index=index)
                continue
            yield from self._choice(choice, key)
        yield from self._sources(chunk.get("citations"))
        yield from self._usage(chunk)
        for name in ("moderation", "search_results"):
            if chunk.get(name):
                yield out.raw({name: chunk[name]})
        if "choices" not in chunk and not self._whole and not _SAYS.intersection(chunk):
            yield out.raw(chunk)

    def _choice(self, choice: dict[str, Any], key: str) -> Iterator[Any]:
        out = self.out
        delta = require(choice.get(key), dict, f"choices[0].{key}")
        logprobs = choice.get("logprobs")
        tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
        if isinstance(tokens, list):
            self._logprobs += tokens
        if delta:
            yield from self._delta(delta)
        yield from filter_events(out, choice.get("content_filter_results"))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            yield from self.finish()
            yield out.finish(FINISH_REASONS.get(reason.lower(), "other"), reason)

    def _delta(self, delta: dict[str, Any]) -> Iterator[Any]:
        out = self.out
        yield from self._reasoning(delta)
        content = delta.get("content")
        if isinstance(content, list):
            for part in content:
                yield from self._part(part)
        elif content:
            yield from self._text(require(content, str, "content") or "")
        refusal = require(delta.get("refusal"), str, "refusal")
        if refusal:
            yield out.event(T.REFUSAL_DELTA, refusal)
        for position, call in enumerate(require(delta.get("tool_calls"), list, "tool_calls") or ()):
            if require(call, dict, "a tool call") is not None:
                # In a whole answer each is a call of its own, whatever ids they have.
                yield self._call(call, position if self._whole else None)
        function = delta.get("function_call")
        if isinstance(function, dict):
            draft = out.tool_args(_arguments(function), 0, None, text_of(function.get("name")) or None)
            draft.attributes = IMPLIED_MARK  # the legacy format has no ids
            yield draft
        for source, cited in citations_of(delta.get("annotations")):
            if cited not in self._cited:
                self._cited.add(cited)
                yield out.citation(source)
        yield from self._media(delta)
        for name, value in delta.items():
            if name not in KNOWN_DELTA and value not in (None, "", [], {}):
                yield out.raw({name: value})

    def _reasoning(self, delta: dict[str, Any]) -> Iterator[Any]:
        """One of three fields; servers that send several repeat the same words in them."""
        found = delta.get("reasoning_details")
        details = [detail for detail in found if isinstance(detail, dict)] if isinstance(found, list) else []
        for name in ("reasoning_content", "reasoning"):
            value = delta.get(name)
            if isinstance(value, str) and value:
                yield self.out.thinking(value)
                break
        else:
            for detail in details:
                text = string_of(detail.get("text")) or string_of(detail.get("summary"))
                if text:
                    yield self.out.thinking(text)
        for detail in details:
            self._details.add(detail)
            if text_of(detail.get("signature")):
                yield self.out.event(T.THINKING_SIGNATURE, text_of(detail["signature"]))
            elif text_of(detail.get("data")):
                yield self.out.event(T.THINKING_REDACTED, text_of(detail["data"]))

    def _text(self, text: str) -> Iterator[Any]:
        if self._think.passes:
            yield self._piece(text)
            return
        for thinking, piece in self._think.split(text):
            yield self.out.thinking(piece) if thinking else self._piece(piece)

    def _piece(self, text: str) -> Any:
        """Text with the log-probabilities of its tokens, and of those before it that gave no text."""
        if not self._logprobs:
            return self.out.text(text)
        tokens, self._logprobs = self._logprobs, []
        return self.out.text(text, attributes=FrozenDict(logprobs=freeze(tokens)))

    def _part(self, part: Any) -> Iterator[Any]:
        """A part of a list content (Mistral): text, thinking, or something for RAW."""
        out = self.out
        if isinstance(part, str):
            yield from self._text(part) if part else ()
            return
        if not isinstance(part, dict):
            raise BadFrameError("a part of the content is no object", kind="shape")
        kind = part.get("type")
        if kind == "text" and isinstance(part.get("text"), str):
            yield from self._text(part["text"]) if part["text"] else ()
        elif kind == "thinking":
            thinking = part.get("thinking")
            for piece in thinking if isinstance(thinking, list) else [thinking]:
                text = string_of(piece.get("text") if isinstance(piece, dict) else piece)
                if text:
                    yield out.thinking(text)
        else:
            yield out.raw(part)

    def _call(self, call: dict[str, Any], position: int | None) -> Any:
        function = require(call.get("function"), dict, "the function of a tool call") or {}
        value = call.get("index")
        index = position if value is None else int_of(value)
        if value is not None and index is None:
            raise BadFrameError("the index of a tool call is no number", kind="shape")
        name = text_of(function.get("name")) or None
        draft = self._fragment(_arguments(function), index, text_of(call.get("id")) or None, name)
        if call.get("extra_content"):
            draft.attributes = FrozenDict(extra_content=freeze(call["extra_content"]))
        return draft

    def _media(self, delta: dict[str, Any]) -> Iterator[Any]:
        images = delta.get("images")
        for image in images if isinstance(images, list) else ():
            block = image_of(image)
            yield self.out.raw({"images": image}) if block is None else self.out.event(T.MEDIA_DONE, block)
        audio = delta.get("audio")
        if isinstance(audio, dict):
            if text_of(audio.get("data")):
                block = MediaBlock(
                    kind="audio", data=audio["data"], transcript=text_of(audio.get("transcript")) or None
                )
                yield self.out.event(T.MEDIA_DONE if self._whole else T.MEDIA_PARTIAL, block)
            if string_of(audio.get("transcript")):
                yield self._piece(audio["transcript"])

    def _prompt_filter(self, results: Any) -> Iterator[Any]:
        if isinstance(results, list):
            for result in results:
                if isinstance(result, dict):
                    yield from filter_events(self.out, result.get("content_filter_results"))

    def _sources(self, citations: Any) -> Iterator[Any]:
        """Top-level citations: addresses that are sent again with every chunk (Perplexity, xAI)."""
        for source, cited in citations_of(citations):
            if cited not in self._cited:
                self._cited.add(cited)
                yield self.out.citation(source)

    def _usage(self, chunk: dict[str, Any]) -> Iterator[Any]:
        usage = chunk.get("usage")
        groq = chunk.get("x_groq")
        if not isinstance(usage, dict) and isinstance(groq, dict):
            usage = groq.get("usage")
        if isinstance(usage, dict) and usage:
            tier = chunk.get("service_tier")
            yield self.out.usage(usage_of(usage, text_of(tier) or None))

    def finish(self) -> Iterator[Any]:
        for thinking, piece in self._think.flush():
            yield self.out.thinking(piece) if thinking else self._piece(piece)
        for detail in self._details.whole():
            yield self.out.raw({"reasoning_details": [detail]}, block=detail)


def _arguments(function: dict[str, Any]) -> str:
    """Arguments as text; some servers send them as an object."""
    value = function.get("arguments")
    if isinstance(value, (dict, list)):
        return encode(value).decode()
    return require(value, str, "the arguments of a tool call") or ""


OPENAI_CHAT = Dialect(
    name="openai-chat",
    title="OpenAI chat completions and compatible servers",
    framing="sse",
    boundaries=Boundaries(tool_ids=True),
    parser=OpenAIChatParser,
    end_marker=b"[DONE]",
)
"""Nothing but calls has an identity, and nothing an end before the finish signal."""

__all__ = ("OPENAI_CHAT", "OpenAIChatParser")
