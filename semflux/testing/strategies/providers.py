"""The bytes of a dialect, with the answer that is in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import attrs
from hypothesis import strategies as st

from semflux.errors import ConfigurationError
from semflux.testing.strategies.answers import Answer, CallPart, TextPiece, ThoughtPart, answers

Frame: TypeAlias = tuple[str | None, Any]
"""One SSE event: its name, None for none, and its data: a JSON value, or a text as it is."""

Renderer: TypeAlias = Callable[[Answer], Iterable[Frame]]
"""Writes an answer in the frames of a dialect."""


@attrs.frozen
class ProviderStream:
    """What a provider sends, and what it means."""

    dialect: str
    """The dialect it is in."""
    data: bytes = attrs.field(repr=False)
    """All bytes of the answer."""
    answer: Answer
    """What must come out."""


def _openai_chat(answer: Answer) -> Iterator[Frame]:
    def chunk(delta: Any, finish: str | None = None) -> Frame:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return None, {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    index = -1
    for part in answer.parts:
        if isinstance(part, TextPiece):
            yield from [chunk({"content": piece}) for piece in part.pieces]
        elif isinstance(part, ThoughtPart):
            yield from [chunk({"reasoning_content": piece}) for piece in part.pieces]
        else:
            index += 1
            call = {"index": index, "id": part.id, "type": "function"}
            yield chunk({"tool_calls": [{**call, "function": {"name": part.name, "arguments": ""}}]})
            for piece in part.pieces:
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, {"stop": "stop", "length": "length"}.get(answer.finish_reason, "tool_calls"))
    if answer.usage is not None:
        told = {"prompt_tokens": answer.usage.input_tokens, "completion_tokens": answer.usage.output_tokens}
        yield None, {"id": "c1", "model": "m", "choices": [], "usage": told}
    yield None, "[DONE]"


def _anthropic(answer: Answer) -> Iterator[Frame]:
    def frame(type_: str, **fields: Any) -> Frame:
        return type_, {"type": type_, **fields}

    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
    }
    usage = answer.usage
    if usage is not None:
        message["usage"] = {"input_tokens": usage.input_tokens, "output_tokens": 0}
    yield frame("message_start", message=message)
    for index, part in enumerate(answer.parts):
        block, deltas = _block_of(part)
        yield frame("content_block_start", index=index, content_block=block)
        yield frame("ping")
        yield from [frame("content_block_delta", index=index, delta=delta) for delta in deltas]
        yield frame("content_block_stop", index=index)
    reason = {"stop": "end_turn", "length": "max_tokens"}.get(answer.finish_reason, "tool_use")
    told = {} if usage is None else {"usage": {"output_tokens": usage.output_tokens}}
    yield frame("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, **told)
    yield frame("message_stop")


def _block_of(part: TextPiece | ThoughtPart | CallPart) -> tuple[Any, list[Any]]:
    if isinstance(part, TextPiece):
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in part.pieces]
    if isinstance(part, ThoughtPart):
        signature = part.signature
        signed = [] if signature is None else [{"type": "signature_delta", "signature": signature}]
        thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in part.pieces]
        return {"type": "thinking", "thinking": ""}, [*thoughts, *signed]
    call: dict[str, Any] = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
    return call, [{"type": "input_json_delta", "partial_json": piece} for piece in part.pieces]


_RENDERERS: dict[str, Renderer] = {"openai-chat": _openai_chat, "anthropic": _anthropic}


def register_renderer(dialect: str, renderer: Renderer) -> None:
    """Teach `provider_streams` a dialect of yours; one that is known is replaced."""
    _RENDERERS[dialect] = renderer


@st.composite
def provider_streams(
    draw: st.DrawFn,
    dialect: str,
    *,
    answer: st.SearchStrategy[Answer] | None = None,
    renderer: Renderer | None = None,
) -> ProviderStream:
    """Legal bytes of *dialect*, as SSE: with LF or CRLF, with comments between frames or not, JSON escaped or not.

    *answer*: what is said; default: anything, `answers()`. *renderer*: writes it; default: the one that is known for
    *dialect*.

    Raises:
        ConfigurationError: for a dialect without a renderer.
    """
    write = renderer or _RENDERERS.get(dialect)
    if write is None:
        raise ConfigurationError(
            f"provider_streams({dialect!r}): nobody has said how it is written; pass renderer=, or call "
            "register_renderer()"
        )
    said = draw(answers() if answer is None else answer)
    end = draw(st.sampled_from(["\n", "\r\n"]))
    ascii_only = draw(st.booleans())
    space = draw(st.sampled_from(["", " "]))
    comments = draw(st.sampled_from([0, 0, 2, 3]))
    lines: list[str] = []
    for number, (name, value) in enumerate(write(said)):
        if comments and number % comments == 0:
            lines += [": keep-alive", ""]
        if name is not None:
            lines.append(f"event:{space}{name}")
        data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=ascii_only)
        lines += [f"data:{space}{data}", ""]
    return ProviderStream(dialect, "".join([line + end for line in lines]).encode(), said)


__all__ = ("Frame", "ProviderStream", "Renderer", "provider_streams", "register_renderer")
