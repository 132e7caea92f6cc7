"""What the tests of hold_back, guard and redact look through: answers in pieces, and what was seen of them."""

from __future__ import annotations

from typing import Any

import reactivex

import semflux
from semflux import (
    ChatEventType,
    ChatStream,
    SemfluxError,
    TextPart,
)
from semflux.contract import violations_of
from tests.frames import DONE, cc, cu, sse
from tests.operators.watching import Watcher

T = ChatEventType
BUSY = sse({"error": {"message": "busy", "code": 503}})


def openai(*pieces: str, tail: bytes = cc(finish="stop") + cu(3, 2) + DONE) -> ChatStream:
    body = b"".join([cc({"content": piece}) for piece in pieces])
    return semflux.parse(body + tail, dialect="openai-chat")


def by_hand(*events: Any) -> ChatStream:
    return ChatStream(reactivex.of(*events))


def texts(seen: Watcher, type_: ChatEventType = T.TEXT_DELTA) -> list[Any]:
    return [event.text for event in seen.items if event.type is type_]


def legal(seen: Watcher) -> Watcher:
    """In order, with the text of the events in the response."""
    assert violations_of(seen.items, seq="rising") == ()
    response = seen.items[-1].response
    assert "".join(texts(seen)) == response.full_text
    assert response.text == "".join(
        [part.text for part in response.message.parts if isinstance(part, TextPart)]
    )
    return seen


def everything(seen: Watcher) -> str:
    """All that a subscriber could read."""
    error = seen.error
    partial = error.partial if isinstance(error, SemfluxError) else None
    told = [event.to_dict() for event in seen.items]
    return repr((told, None if partial is None else partial.to_dict(), error and error.args))
