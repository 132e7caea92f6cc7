"""aiohttp's exceptions, read for their safe fields and turned into ours.

The results are new objects without cause or context. An exception of aiohttp carries request
headers in its `repr` and the URL's query in its `str`, and may quote the peer's bytes without
bound, so none of its texts is used. Host and port are safe; so are OpenSSL's own words.
"""

from __future__ import annotations

import errno
import ssl
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError, LineTooLong

from semflux.errors import (
    BadResponseError,
    ConfigurationError,
    ConnectError,
    ConnectionLostError,
    ErrorPhase,
    SemfluxError,
    TlsError,
    TransportError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


class UpgradeError(aiohttp.ClientConnectionError):
    """The answer changes the protocol (101), which nobody asked for. Never leaves the transport."""


def closed_error(kind: str) -> ConnectionLostError:
    """For what we closed ourselves: the exchange ("closed") or the transport ("client_closed")."""
    what = "the exchange" if kind == "closed" else "the transport"
    return ConnectionLostError(f"{what} was closed on this side", kind=kind, retryable=False)


def open_error(exc: Exception, where: str, *, secure: bool) -> SemfluxError:
    """What came instead of an answer. *where*: host and port; *secure*: whether over TLS."""
    match exc:
        case aiohttp.ClientConnectorDNSError():
            return ConnectError(f"the host name of {where} cannot be resolved", kind="dns")
        case aiohttp.ClientConnectorCertificateError(certificate_error=error):
            return _certificate_error(error, where)
        case aiohttp.ClientConnectorSSLError():
            return TlsError(f"TLS with {where} failed{_reason(exc)}: does that port speak TLS?")
        case aiohttp.ClientConnectorError():
            return _connect_error(exc, where, secure=secure)
        case aiohttp.InvalidURL():
            return ConfigurationError("the URL of the request is not valid: check base_url", kind="url")
        case aiohttp.ClientResponseError():
            return _bad_response(exc, where)
        case UpgradeError():
            return BadResponseError(f"the answer of {where} is no answer but an upgrade", kind="not_http")
        case aiohttp.ServerDisconnectedError(message=str()):
            return _lost("disconnected", f"{where} closed the connection before it answered", "headers")
        case aiohttp.ServerDisconnectedError():
            return BadResponseError(
                f"{where} closed the connection in the middle of its headers", kind="cut", retryable=True
            )
        case OSError():
            return _lost("reset", f"the connection to {where} was lost before an answer", "headers")
        case aiohttp.ClientConnectionError():
            return _lost("disconnected", f"the connection to {where} was lost before an answer", "headers")
        case _:
            return _unforeseen(exc, "headers")


def reset_error() -> ConnectionLostError:
    """For a connection that ended by an error in the middle of a body."""
    return _lost("reset", "the connection was lost in the middle of the body", "stream")


def read_error(exc: Exception, *, broken: bool) -> TransportError:
    """What came instead of the next bytes of a body. *broken*: the connection ended by an error."""
    match exc:
        case aiohttp.ClientPayloadError() if _has_cause(exc, ContentEncodingError):
            return _lost("decode", "the compressed body cannot be unpacked", "stream", retryable=False)
        case aiohttp.ClientError() | OSError() if broken or isinstance(exc, OSError):
            return reset_error()
        case aiohttp.ClientPayloadError():
            return _lost("payload", "the body was cut, or breaks the rules of HTTP", "stream")
        case aiohttp.ClientConnectionError() | RuntimeError():
            # RuntimeError: aiohttp's "Connection closed." for a reader that comes after the loss.
            return _lost("disconnected", "the connection was lost in the middle of the body", "stream")
        case _:
            return _unforeseen(exc, "stream")


def _certificate_error(error: Exception, where: str) -> TlsError:
    why = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else "not valid"
    return TlsError(
        f"the certificate of {where} was refused ({why}); for a private authority pass "
        f"ssl=ssl.create_default_context(cafile=...)"
    )


def _reason(exc: aiohttp.ClientConnectorError) -> str:
    # OpenSSL's constant, such as WRONG_VERSION_NUMBER.
    error = exc.os_error
    return f" ({error.reason})" if isinstance(error, ssl.SSLError) and error.reason else ""


def _connect_error(exc: aiohttp.ClientConnectorError, where: str, *, secure: bool) -> ConnectError:
    error = exc.os_error
    if isinstance(error, ConnectionRefusedError) or error.errno == errno.ECONNREFUSED:
        return ConnectError(f"{where} refused the connection: is the server running?", kind="refused")
    if secure and isinstance(error, ConnectionError):
        return TlsError(f"{where} closed the connection during the TLS handshake", retryable=True)
    return ConnectError(f"{where} cannot be reached", kind="unreachable")


def _bad_response(exc: aiohttp.ClientResponseError, where: str) -> BadResponseError:
    if _has_cause(exc, LineTooLong) or exc.message == "Too many headers received":
        return BadResponseError(
            f"the headers of {where} are too large: more than 8,190 bytes in a line, or 128 lines",
            kind="header_too_large",
        )
    if _has_cause(exc, ContentEncodingError):
        return BadResponseError(
            f"the answer of {where} is compressed in a way that cannot be unpacked here, unasked",
            kind="encoding",
        )
    return BadResponseError(f"the answer of {where} is not HTTP", kind="not_http")


def _lost(
    kind: str, message: str, phase: ErrorPhase, *, retryable: bool | None = None
) -> ConnectionLostError:
    return ConnectionLostError(message, kind=kind, phase=phase, retryable=retryable)


def _unforeseen(exc: Exception, phase: ErrorPhase) -> TransportError:
    return TransportError(f"the HTTP client failed with {type(exc).__name__}", phase=phase)


def _chain(exc: BaseException) -> Iterator[BaseException]:
    """The exception and its causes."""
    link: BaseException | None = exc
    while link is not None:
        yield link
        link = link.__cause__


def _has_cause(exc: BaseException, cls: type[BaseException]) -> bool:
    return any(isinstance(link, cls) for link in _chain(exc))


__all__ = ("UpgradeError", "closed_error", "open_error", "read_error", "reset_error")
