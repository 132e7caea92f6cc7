"""Small builders of wire frames, and `read`, which parses bytes and holds what comes out to the rules of order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import attrs

import semflux
from semflux.contract import violations_of
from semflux.errors import SemfluxError
from semflux.events import AnyChatEvent, ChatEventType
from semflux.response import ChatResponse

T = ChatEventType


def sse(value: Any, event: str | None = None) -> bytes:
    """One SSE event with *value* as JSON; a string goes out as it is."""
    data = value if isinstance(value, str) else json.dumps(value)
    return (f"event: {event}\n" if event else "").encode() + f"data: {data}\n\n".encode()


# OpenAI chat.

DONE = sse("[DONE]")


def chunk(*choices: Any, **fields: Any) -> bytes:
    """A chunk with these choices."""
    head = {"id": "c1", "object": "chat.completion.chunk", "model": "m1"}
    return sse({**head, "choices": list(choices), **fields})


def cc(delta: Any = None, finish: str | None = None, index: int = 0, **choice: Any) -> bytes:
    """A chunk with one delta."""
    return chunk({"index": index, "delta": {} if delta is None else delta, "finish_reason": finish, **choice})


def cu(prompt: int, completion: int, **usage: Any) -> bytes:
    """The chunk without choices that has the usage."""
    return chunk(usage={"prompt_tokens": prompt, "completion_tokens": completion, **usage})


def tc(
    index: int | None, id: str | None = None, name: str | None = None, args: str | None = None
) -> dict[str, Any]:
    """A delta with a fragment of one call; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not None}
    call = {"index": index, "id": id, "function": function or None}
    return {"tool_calls": [{key: value for key, value in call.items() if value is not None}]}


def completion(message: Any, finish: str | None = "stop", **fields: Any) -> bytes:
    """A whole answer."""
    head = {"id": "c1", "object": "chat.completion", "model": "m1"}
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    return json.dumps({**head, "choices": choices, **fields}).encode()


# Anthropic.


def an(type: str, **fields: Any) -> bytes:
    """A frame of the messages API."""
    return sse({"type": type, **fields}, type)


def start(content: Iterable[Any] = (), stop_reason: str | None = None, id: str = "m1", **usage: Any) -> bytes:
    """The frame that starts a message."""
    message = {
        "id": id,
        "type": "message",
        "model": "claude",
        "content": list(content),
        "stop_reason": stop_reason,
    }
    return an("message_start", message={**message, "usage": usage or {"input_tokens": 3, "output_tokens": 1}})


def blk(index: int | None, type: str, **block: Any) -> bytes:
    """The start of a block."""
    fields = {} if index is None else {"index": index}
    return an("content_block_start", **fields, content_block={"type": type, **block})


def dl(index: int | None, type: str, **delta: Any) -> bytes:
    """A delta of a block."""
    fields = {} if index is None else {"index": index}
    return an("content_block_delta", **fields, delta={"type": type, **delta})


def end(index: int | None) -> bytes:
    """The stop of a block."""
    return an("content_block_stop", **({} if index is None else {"index": index}))


def md(reason: str | None, usage: Any = None, **delta: Any) -> bytes:
    """The frame that says why the message stops."""
    return an(
        "message_delta",
        delta={"stop_reason": reason, **delta},
        usage={"output_tokens": 5} if usage is None else usage,
    )


STOP = an("message_stop")


def text_block(index: int, *pieces: str) -> bytes:
    """A whole block of text."""
    deltas = [dl(index, "text_delta", text=piece) for piece in pieces]
    return blk(index, "text", text="") + b"".join(deltas) + end(index)


# Reading.


@attrs.frozen
class Seen:
    """What a subscriber of `parse()` saw."""

    events: list[AnyChatEvent]
    error: SemfluxError | None

    @property
    def response(self) -> ChatResponse:
        """What it came to."""
        response = self.events[-1].response
        assert isinstance(response, ChatResponse)
        return response

    @property
    def types(self) -> list[str]:
        """The types between STEP_START and STEP_END, boundaries of blocks left out."""
        frame = {
            T.RESPONSE_START,
            T.STEP_START,
            T.STEP_END,
            T.RESPONSE_END,
            T.TEXT_START,
            T.TEXT_END,
            T.THINKING_START,
        }
        hidden = frame | {T.THINKING_END, T.TOOL_CALL_START, T.TOOL_CALL_END}
        return [str(event.type) for event in self.events if event.type not in hidden]

    @property
    def repairs(self) -> dict[str, int]:
        """The repairs, by kind."""
        return dict(self.response.repairs.repairs)

    def of(self, *types: ChatEventType) -> list[Any]:
        """The events of these types."""
        return [event for event in self.events if event.type in types]

    def texts(self, type: ChatEventType) -> list[str | None]:
        """The texts of the events of this type."""
        return [event.text for event in self.of(type)]

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        """Id, name and argument text of each call."""
        return [(call.id, call.name, call.arguments_json) for call in self.response.tool_calls]


def read(data: bytes | Iterable[bytes], dialect: str, **options: Any) -> Seen:
    """Parse *data* (bytes, or chunks of them) and check the order of what comes."""
    events: list[AnyChatEvent] = []
    errors: list[Exception] = []
    ended: list[bool] = []
    semflux.parse(data, dialect=dialect, **options).subscribe(
        events.append, errors.append, lambda: ended.append(True)
    )
    assert len(errors) + len(ended) == 1, "exactly one terminal signal"
    error = errors[0] if errors else None
    assert error is None or (isinstance(error, SemfluxError) and error.kind != "source"), repr(error)
    assert events[-1].error is error
    assert violations_of(events) == ()
    return Seen(events, error if isinstance(error, SemfluxError) else None)


def chat(*frames: bytes, **options: Any) -> Seen:
    """Parse frames of OpenAI chat."""
    return read(b"".join(frames), "openai-chat", **options)


def claude(*frames: bytes, **options: Any) -> Seen:
    """Parse frames of Anthropic."""
    return read(b"".join(frames), "anthropic", **options)


def cuts(data: bytes, size: int) -> list[bytes]:
    """*data* in pieces of *size* bytes."""
    return [data[i : i + size] for i in range(0, len(data), size)]


def meaning(seen: Seen) -> tuple[Any, ...]:
    """All that does not depend on the run: events without ids and clocks, and the response."""
    response = {**seen.response.to_dict(), "response_id": ""}
    return (
        [(type(e).__name__, e.text, e.tool_call_id, e.name, e.item_id, e.index, e.raw_type, e.sub_type, e.attributes, e.raw,
          e.usage, e.step, e.provider_response_id) for e in seen.events],
        response,
        None if seen.error is None else (type(seen.error).__name__, str(seen.error), seen.error.kind),
    )  # fmt: skip
