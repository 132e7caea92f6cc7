"""Servers that cannot be reached, or whose answer is none. Rows C1, C3 and C6 to C8 of faults.md."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from semflux import ChatModel
from semflux.errors import (
    BadResponseError,
    ConnectError,
    ConnectionLostError,
    SemfluxError,
    TlsError,
)
from tests.faultserver import EOF, REQUEST, RESET, FaultServer, Step, head
from tests.model.asking import (
    CHAT,
    asking,
    pushed,
    read,
    streamed,
    types,
)


@pytest.mark.parametrize("take", [read, pushed])
async def test_a_refused_connection_is_a_connect_error(take: Any) -> None:
    """C1. One attempt: this release retries nothing."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        async with ChatModel("vllm:x", max_retries=0, base_url=f"http://127.0.0.1:{port}") as model:
            seen = await take(model.prompt("hi").stream())
    assert types(seen) == ["RESPONSE_START", "ERROR"]
    assert isinstance(seen.error, ConnectError)
    assert (seen.error.kind, seen.error.attempts, seen.error.provider) == ("refused", 1, "vllm")
    assert seen.error.partial is not None


async def test_a_plain_port_that_is_asked_for_tls_is_a_tls_error() -> None:
    """C3."""
    async with (
        FaultServer([b"SSH-2.0-OpenSSH_9\r\n", EOF]) as server,
        ChatModel("vllm:x", max_retries=0, base_url=f"https://127.0.0.1:{server.port}") as model,
    ):
        seen = await read(model.prompt("hi").stream())
    assert isinstance(seen.error, TlsError)


@pytest.mark.parametrize(
    "script, cls",
    [
        ([REQUEST], ConnectionLostError),
        ([RESET], ConnectionLostError),
        ([REQUEST, RESET], ConnectionLostError),
        ([REQUEST, b"HTTP/1.1 200 OK\r\nContent-"], BadResponseError),
        ([b"SSH-2.0-OpenSSH_9\r\n", EOF], BadResponseError),
        ([REQUEST, b"\x00\x01\x02", EOF], BadResponseError),
        ([REQUEST, head("200 OK", "x: " + "y" * 9000), EOF], BadResponseError),
        ([REQUEST, head("200 OK", *[f"x{n}: y" for n in range(200)]), EOF], BadResponseError),
        ([REQUEST, head("101 Switching", "Upgrade: x", "Connection: upgrade"), EOF], BadResponseError),
    ],
)
async def test_what_is_no_answer_fails_before_a_step_begins(
    script: list[Step], cls: type[SemfluxError]
) -> None:
    """C6 to C8."""
    async with asking(script) as (model, _):
        seen = await read(model.prompt("hi").stream())
    assert types(seen) == ["RESPONSE_START", "ERROR"]
    assert type(seen.error) is cls
    assert (seen.error.phase, seen.error.attempts, seen.error.provider) == ("headers", 1, "openai")
    assert len(str(seen.error)) < 300


async def test_a_stale_connection_fails_and_the_next_call_opens_another() -> None:
    """C6, on a connection that was kept alive."""
    async with asking([REQUEST, streamed(CHAT), REQUEST], [REQUEST, streamed(CHAT)]) as (model, server):
        assert (await model.prompt("hi").call()).text == "Hello"
        with pytest.raises(ConnectionLostError) as caught:
            await model.prompt("hi").call()
        assert caught.value.retryable
        assert (await model.prompt("hi").call()).text == "Hello"
        assert len(server.seen) == 2
