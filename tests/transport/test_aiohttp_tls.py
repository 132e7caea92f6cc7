"""Row C3 of faults.md: TLS never falls back to less."""

from __future__ import annotations

import datetime as dt
import ssl
from typing import Any

import pytest
import trustme

from semflux.errors import ConfigurationError, ConnectTimeoutError, TlsError
from semflux.http import Timeouts
from semflux.transport import AiohttpTransport
from semflux.transport._aiohttp import _default_ssl
from tests.faultserver import EOF, HANG, REQUEST, RESET, FaultServer, answer, head
from tests.transport.asking import failure_of, open_, read_all
from tests.transport.conftest import Tls


async def test_a_certificate_of_a_trusted_authority(tls: Tls) -> None:
    transport = AiohttpTransport(ssl=tls.client())
    async with FaultServer([REQUEST, answer(b"safe")], tls=tls.server("127.0.0.1")) as server:
        assert await read_all(await open_(transport, server.url)) == b"safe"
    assert transport.acquired == 0
    await transport.aclose()


async def test_a_self_signed_certificate_is_refused(transport: AiohttpTransport, tls: Tls) -> None:
    async with FaultServer([REQUEST, answer(b"")], tls=tls.server("127.0.0.1")) as server:
        error = await failure_of(open_(transport, server.url))
        assert server.requests == []
    assert (type(error), error.kind, error.phase, error.retryable) == (TlsError, "tls", "connect", False)
    assert f"127.0.0.1:{server.port}" in str(error)
    assert "certificate" in str(error)


async def test_a_certificate_for_another_host_is_refused(tls: Tls) -> None:
    transport = AiohttpTransport(ssl=tls.client())
    async with FaultServer([REQUEST, answer(b"")], tls=tls.server("other.test")) as server:
        error = await failure_of(open_(transport, server.url))
        assert server.requests == []
    assert (type(error), error.retryable) == (TlsError, False)
    assert "not valid for '127.0.0.1'" in str(error)
    await transport.aclose()


async def test_an_expired_certificate_is_refused(tls: Tls) -> None:
    expired = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.ca.issue_cert("127.0.0.1", not_before=expired, not_after=expired).configure_cert(context)
    transport = AiohttpTransport(ssl=tls.client())
    async with FaultServer([REQUEST, answer(b"")], tls=context) as server:
        error = await failure_of(open_(transport, server.url))
        assert server.requests == []
    assert (type(error), error.retryable) == (TlsError, False)
    assert "expired" in str(error)
    await transport.aclose()


async def test_a_port_that_speaks_no_tls(transport: AiohttpTransport) -> None:
    async with FaultServer([b"HTTP/1.1 400 Bad Request\r\n\r\n", 0.02]) as server:
        error = await failure_of(open_(transport, server.url.replace("http:", "https:")))
    assert (type(error), error.retryable) == (TlsError, False)
    assert "(WRONG_VERSION_NUMBER): does that port speak TLS?" in str(error)


@pytest.mark.parametrize("end", [[RESET], []])
async def test_a_handshake_cut_short_may_be_tried_again(transport: AiohttpTransport, end: list[Any]) -> None:
    async def first_bytes(seen: Any) -> None:
        await seen.reader.read(1)

    async with FaultServer([first_bytes, *end]) as server:
        error = await failure_of(open_(transport, server.url.replace("http:", "https:")))
    assert (type(error), error.kind, error.retryable) == (TlsError, "tls", True)


async def test_a_handshake_that_hangs_counts_as_connecting(transport: AiohttpTransport) -> None:
    async with FaultServer([HANG]) as server:
        url = server.url.replace("http:", "https:")
        error = await failure_of(open_(transport, url, Timeouts(connect=0.05)))
        assert isinstance(error, ConnectTimeoutError)
        assert transport.acquired == 0


async def test_a_server_of_old_tls_is_refused(tls: Tls) -> None:
    context = tls.server("127.0.0.1")
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    client = tls.client()
    client.minimum_version = ssl.TLSVersion.TLSv1_3
    transport = AiohttpTransport(ssl=client)
    async with FaultServer([REQUEST, answer(b"")], tls=context) as server:
        error = await failure_of(open_(transport, server.url))
    assert type(error) is TlsError
    await transport.aclose()


def test_the_default_context_verifies_hosts_and_wants_tls_1_2() -> None:
    context = _default_ssl()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("switch", [False, True, "no"])
def test_verification_has_no_switch(switch: Any) -> None:
    """aiohttp's own ssl=False would turn it off."""
    with pytest.raises(ConfigurationError, match="certificates are always verified"):
        AiohttpTransport(ssl=switch)


async def test_closing_tells_a_tls_peer_at_once(tls: Tls) -> None:
    transport = AiohttpTransport(ssl=tls.client())
    async with FaultServer([REQUEST, head(), b"x", EOF], tls=tls.server("127.0.0.1")) as server:
        exchange = await open_(transport, server.url)
        assert await exchange.read() == b"x"
        exchange.close()
        await server.seen[0].eof.wait()
    assert transport.acquired == 0
    await transport.aclose()


def test_trustme_is_not_trusted_by_the_system(tls: Tls) -> None:
    """Or these tests would show nothing."""
    pem = tls.ca.cert_pem.bytes()
    assert isinstance(tls.ca, trustme.CA)
    assert pem not in b"".join(_default_ssl().get_ca_certs(binary_form=True))
