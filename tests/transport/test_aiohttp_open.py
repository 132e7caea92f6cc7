"""What can happen until status and headers are there: rows C1 to C8 of faults.md but TLS."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from semflux.errors import (
    BadResponseError,
    ConfigurationError,
    ConnectError,
    ConnectionLostError,
    ConnectTimeoutError,
    PoolTimeoutError,
    TransportError,
)
from semflux.http import HttpRequest, Timeouts
from semflux.transport import AiohttpTransport
from semflux.transport._aiohttp_errors import open_error
from tests.faultserver import EOF, HANG, REQUEST, RESET, FaultServer, Seen, answer, chunk, head, pour
from tests.transport.asking import CANARY, TIMEOUTS, ask, failure_of, open_, read_all

Transport = AiohttpTransport


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Resolver(AbstractResolver):
    """Every name is loopback, unless it *fails* or *hangs*."""

    def __init__(self, *, fails: bool = False, hangs: bool = False) -> None:
        self.fails = fails
        self.hangs = hangs

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if self.fails:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if self.hangs:
            await asyncio.Event().wait()
        return [
            ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0)
        ]

    async def close(self) -> None:
        pass


@contextmanager
def full_backlog() -> Iterator[int]:
    """A port whose listener accepts nothing and has no room left: a connect hangs, as with lost SYNs."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers: list[socket.socket] = []
        try:
            for _ in range(4):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
                fillers.append(filler)
            yield listener.getsockname()[1]
        finally:
            for filler in fillers:
                filler.close()


async def test_an_answer_has_its_status_and_lower_case_headers(transport: Transport) -> None:
    reply = answer(b"hello", "X-Request-Id: r1", "Via: a", "VIA: b", "X-Odd: caf\xe9", "X-Fine: plain")
    async with FaultServer([REQUEST, reply]) as server:
        exchange = await open_(transport, server.url)
        assert (exchange.status, transport.acquired) == (200, 0)
        assert exchange.headers["x-request-id"] == "r1"
        assert exchange.headers["via"] == "a, b"
        assert exchange.headers["x-odd"] == "caf\ufffd"
        assert await read_all(exchange) == b"hello"
        assert CANARY not in repr(exchange) + repr(transport)


async def test_a_request_arrives_as_it_was_made(transport: Transport) -> None:
    async with FaultServer([REQUEST, answer(b"")]) as server:
        await open_(transport, server.url)
        (request,) = server.requests
        first, *lines = request.decode().lower().split("\r\n")
        assert first == f"post /v1/chat?key={CANARY} http/1.1"
        assert {
            f"authorization: bearer {CANARY}",
            f"x-api-key: {CANARY}",
            "content-type: application/json",
            "content-length: 16",
            "accept-encoding: identity",
            "user-agent: semflux",
        } <= set(lines)
        assert lines[-1] == '{"stream": true}'


async def test_compression_is_not_asked_for_even_if_the_caller_does(transport: Transport) -> None:
    """Accept-Encoding: identity: a cut compressed body would end without an error."""
    async with FaultServer([REQUEST, answer(b"")]) as server:
        headers = (("accept-encoding", "gzip"), ("User-Agent", "mine"))
        request = HttpRequest(url=server.url, headers=headers, body=b"")
        exchange = await transport.open(request, timeouts=TIMEOUTS)
        assert await exchange.read() == b""
        sent = server.requests[0].lower()
        assert b"accept-encoding: identity" in sent
        assert b"gzip" not in sent
        assert b"user-agent: mine" in sent
        assert b"content-length: 0" in sent


async def test_a_get_has_no_body(transport: Transport) -> None:
    async with FaultServer([REQUEST, answer(b"[]")]) as server:
        exchange = await transport.open(HttpRequest(url=server.url, method="GET"), timeouts=TIMEOUTS)
        assert await read_all(exchange) == b"[]"
        assert server.requests[0].startswith(b"GET /v1/chat HTTP/1.1")


async def test_a_large_body_is_sent_whole_and_without_a_warning(transport: Transport) -> None:
    body = bytes(range(256)) * 4096 * 3
    async with FaultServer([REQUEST, answer(b"ok")]) as server:
        exchange = await transport.open(ask(server.url, body), timeouts=TIMEOUTS)
        assert await read_all(exchange) == b"ok"
        assert server.requests[0].endswith(b"\r\n\r\n" + body)


async def test_phases_are_told_in_order_and_a_pooled_connection_is_not_made_again(
    transport: Transport,
) -> None:
    phases: list[str] = []
    async with FaultServer([REQUEST, answer(b"1"), REQUEST, answer(b"2")]) as server:
        for body in (b"1", b"2"):
            exchange = await transport.open(ask(server.url), timeouts=TIMEOUTS, on_phase=phases.append)
            assert await read_all(exchange) == body
        assert phases == ["pool", "connect", "request", "pool", "request"]
        assert len(server.seen) == 1


async def test_cookies_are_not_kept(transport: Transport) -> None:
    async with FaultServer([REQUEST, answer(b"", "Set-Cookie: a=b"), REQUEST, answer(b"")]) as server:
        for _ in range(2):
            await open_(transport, server.url)
        assert b"cookie" not in server.requests[1].lower()


async def test_the_environment_is_not_read(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    async with FaultServer([REQUEST, answer(b"direct")]) as server:
        assert await read_all(await open_(transport, server.url)) == b"direct"


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"]
)
async def test_a_redirect_is_an_answer_and_nobody_goes_there(transport: Transport, status: str) -> None:
    async with FaultServer([REQUEST, answer(b"")]) as elsewhere:
        reply = answer(b"moved", f"Location: {elsewhere.url}", status=status)
        async with FaultServer([REQUEST, reply]) as server:
            exchange = await open_(transport, server.url)
            assert exchange.status == int(status[:3])
            assert exchange.headers["location"] == elsewhere.url
            assert await read_all(exchange) == b"moved"
        assert elsewhere.seen == []


async def test_c1_a_closed_port_refuses(transport: Transport) -> None:
    port = free_port()
    error = await failure_of(open_(transport, f"http://127.0.0.1:{port}/"))
    assert (type(error), error.kind, error.phase, error.retryable) == (
        ConnectError,
        "refused",
        "connect",
        True,
    )
    assert f"127.0.0.1:{port}" in str(error)


async def test_c2_a_name_that_is_not_known() -> None:
    transport = AiohttpTransport(resolver=Resolver(fails=True))
    error = await failure_of(open_(transport, "http://model.invalid/v1"))
    assert (type(error), error.kind, error.phase, error.retryable) == (ConnectError, "dns", "connect", True)
    assert "model.invalid:80" in str(error)
    assert transport.acquired == 0
    await transport.aclose()


async def test_a_resolver_of_ones_own_decides_where_a_name_leads() -> None:
    transport = AiohttpTransport(resolver=Resolver())
    async with FaultServer([REQUEST, answer(b"there")]) as server:
        assert await read_all(await open_(transport, f"http://model.test:{server.port}/")) == b"there"
    await transport.aclose()


async def test_an_address_without_a_route(transport: Transport) -> None:
    """A UDP-like failure at once: the broadcast address takes no TCP connection."""
    error = await failure_of(open_(transport, "http://255.255.255.255/"))
    assert (type(error), error.kind, error.retryable) == (ConnectError, "unreachable", True)


async def test_c4_a_connect_that_hangs_ends_with_its_limit(transport: Transport) -> None:
    with full_backlog() as port:
        began = time.monotonic()
        opening = open_(transport, f"http://127.0.0.1:{port}/", Timeouts(connect=0.1))
        error = await failure_of(opening)
        assert time.monotonic() - began < 0.2
    assert isinstance(error, ConnectTimeoutError)
    assert "0.1 s (the connect limit)" in str(error)


async def test_c5_a_full_pool_ends_with_its_limit() -> None:
    transport = AiohttpTransport(limit=1)
    async with FaultServer([REQUEST, head(), HANG]) as server:
        held = await open_(transport, server.url)
        error = await failure_of(open_(transport, server.url, Timeouts(pool=0.02)))
        assert isinstance(error, PoolTimeoutError)
        assert "0.02 s (the pool limit)" in str(error)
        assert (transport.acquired, error.retryable) == (1, False)
        held.close()
        assert transport.acquired == 0
        (await open_(transport, server.url)).close()
    await transport.aclose()


async def test_who_watches_keeps_the_time(transport: Transport) -> None:
    """With *on_phase*, limits are the caller's: this opening would have failed after 1 ms."""
    async with FaultServer([REQUEST, 0.02, answer(b"late")]) as server:
        timeouts = Timeouts(pool=1e-9, connect=1e-9)
        exchange = await transport.open(ask(server.url), timeouts=timeouts, on_phase=lambda _: None)
        assert await read_all(exchange) == b"late"


async def test_limits_of_none_are_none(transport: Transport) -> None:
    async with FaultServer([REQUEST, 0.02, answer(b"late")]) as server:
        exchange = await open_(transport, server.url, Timeouts(pool=None, connect=None))
        assert await read_all(exchange) == b"late"


async def test_c6_a_connection_closed_without_a_byte(transport: Transport) -> None:
    async with FaultServer([REQUEST]) as server:
        error = await failure_of(open_(transport, server.url))
    assert (type(error), error.kind, error.phase) == (ConnectionLostError, "disconnected", "headers")
    assert error.retryable


async def test_c6_a_stale_connection_of_the_pool(transport: Transport) -> None:
    """Closed by the server between two requests; a POST is not sent twice unasked."""

    async def close_on_request(seen: Seen) -> None:
        await seen.reader.readexactly(1)

    async with FaultServer([REQUEST, answer(b"1"), close_on_request]) as server:
        await open_(transport, server.url)
        error = await failure_of(open_(transport, server.url))
        assert (error.kind, error.phase) in {("disconnected", "headers"), ("reset", "headers")}
        assert len(server.seen) == 1


async def test_c6_a_reset_without_a_byte(transport: Transport) -> None:
    async with FaultServer([REQUEST, RESET]) as server:
        error = await failure_of(open_(transport, server.url))
    assert (type(error), error.kind, error.phase) == (ConnectionLostError, "reset", "headers")


HEAD = head("200 OK", "Content-Type: text/event-stream", length=5)


@pytest.mark.parametrize("length", range(1, len(HEAD), 3))
async def test_c7_headers_cut_anywhere(transport: Transport, length: int) -> None:
    async with FaultServer([REQUEST, HEAD[:length]]) as server:
        error = await failure_of(open_(transport, server.url))
    assert (type(error), error.kind, error.phase) == (BadResponseError, "cut", "headers")
    assert error.retryable


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH_9.9 CANARY\r\n",
        bytes(range(256)) * 8,
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nno colon CANARY\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\nabc",
        head(chunked=True) + chunk(b"abc") + b"zz\r\n",
    ],
    ids=["ssh", "bytes", "two lengths", "bad length", "no colon", "upgrade", "bad chunk"],
)
async def test_c7_what_is_not_http(transport: Transport, reply: bytes) -> None:
    async with FaultServer([REQUEST, reply, EOF]) as server:
        error = await failure_of(open_(transport, server.url))
    assert (type(error), error.kind, error.phase) == (BadResponseError, "not_http", "headers")
    assert not error.retryable
    assert "CANARY" not in str(error)


@pytest.mark.parametrize(
    "lines",
    [
        ["X: " + "a" * 9000],
        ["a" * 9000 + ": x"],
        [f"x-{n}: y" for n in range(200)],
    ],
)
async def test_c8_headers_out_of_bounds(transport: Transport, lines: list[str]) -> None:
    async with FaultServer([REQUEST, head("200 OK", *lines, length=0), EOF]) as server:
        error = await failure_of(open_(transport, server.url))
    assert (type(error), error.kind, error.retryable) == (BadResponseError, "header_too_large", False)
    assert "aaa" not in str(error)


async def test_c8_a_header_without_end(transport: Transport) -> None:
    async with FaultServer([REQUEST, b"HTTP/1.1 200 OK\r\nX: ", pour(b"a" * 1000)]) as server:
        error = await failure_of(open_(transport, server.url))
    assert error.kind == "header_too_large"


async def test_an_encoding_that_nobody_can_read(transport: Transport) -> None:
    """Known from the headers alone, where aiohttp lacks the package."""
    async with FaultServer([REQUEST, answer(b"??", "Content-Encoding: br"), EOF]) as server:
        error = await failure_of(open_(transport, server.url))
    assert (type(error), error.kind) == (BadResponseError, "encoding")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:80/v1",
        "ftp://127.0.0.1/",
        "http:///v1",
        "http://127.0.0.1:99999/",
        "http://[::1/",
        "http://127.1/v1",
        "http://someone@127.0.0.1/",
        "http://:someone@127.0.0.1/",
    ],
)
async def test_a_url_that_cannot_be_asked(transport: Transport, url: str) -> None:
    error = await failure_of(transport.open(HttpRequest(url=url), timeouts=TIMEOUTS))
    assert (type(error), error.phase) == (ConfigurationError, "config")
    assert "someone" not in str(error)


async def test_an_ipv6_address_is_shown_in_brackets(transport: Transport) -> None:
    error = await failure_of(open_(transport, f"http://[::1]:{free_port()}/"))
    assert "[::1]:" in str(error)


async def test_what_nobody_foresaw_is_a_transport_error_without_its_text(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise LookupError(CANARY)

    monkeypatch.setattr("aiohttp.ClientSession._prepare_headers", fail)
    error = await failure_of(open_(transport, "http://127.0.0.1/"))
    assert type(error) is TransportError
    assert "LookupError" in str(error)


def test_a_connection_error_of_no_special_kind() -> None:
    import aiohttp

    error = open_error(aiohttp.ClientConnectionError(CANARY), "host:80", secure=False)
    assert (type(error), error.kind, error.phase) == (ConnectionLostError, "disconnected", "headers")
    assert CANARY not in str(error)
