"""What a server answers `semflux chat`, by script, and what it was asked."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.running import Server
from tests.faultserver import EOF, REQUEST, answer, chunk, head
from tests.frames import DONE, cc, cu

MODEL = ("--model", "vllm:m")
SSE = "Content-Type: text/event-stream"


def answers(*frames: bytes) -> tuple[Any, ...]:
    """A script: one request, one whole answer."""
    return (REQUEST, answer(b"".join(frames), SSE))


HELLO = answers(cc({"content": "Hello"}), cc({"content": " there"}), cc(finish="stop"), cu(7, 2), DONE)
ENDLESS = (REQUEST, head("200 OK", SSE, chunked=True), chunk(cc({"content": "one "})), EOF)


def body(server: Server, n: int = 0) -> dict[str, Any]:
    """The JSON of request *n*."""
    fields: dict[str, Any] = json.loads(server.faults.requests[n].partition(b"\r\n\r\n")[2])
    return fields


def asked(server: Server, n: int = 0) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in body(server, n)["messages"]]
