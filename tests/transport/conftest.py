from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import attrs
import pytest
import trustme

from semflux.transport import AiohttpTransport


@pytest.fixture
async def transport() -> AsyncIterator[AiohttpTransport]:
    """A transport of which nothing is in use when the test ends."""
    transport = AiohttpTransport()
    yield transport
    acquired = transport.acquired
    await transport.aclose()
    assert acquired == 0


@attrs.frozen
class Tls:
    """A certificate authority that nobody but `client` trusts."""

    ca: trustme.CA

    def server(self, *names: str) -> ssl.SSLContext:
        """For a server whose certificate is for *names*."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*names).configure_cert(context)
        return context

    def client(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        return context


@pytest.fixture(scope="session")
def tls() -> Tls:
    return Tls(trustme.CA(key_type=trustme.KeyType.ECDSA))
