# In the order of an answer's bytes:
#   base      what a transport promises: Transport opens an Exchange, which gives bytes
#   aiohttp   the network; _aiohttp and _aiohttp_errors are its part that needs aiohttp itself
#   replay    recorded bytes from memory, for tests and demonstrations
#   watchdog  the five limits of Timeouts, one timer a stream
"""Bytes from a provider, without their meaning."""

from semflux.transport.aiohttp import AiohttpTransport
from semflux.transport.base import READ_SIZE, Exchange, Phase, Transport
from semflux.transport.replay import Recording, ReplayTransport
from semflux.transport.watchdog import Limit, Watchdog, timeout_error

__all__ = (
    "READ_SIZE",
    "AiohttpTransport",
    "Exchange",
    "Limit",
    "Phase",
    "Recording",
    "ReplayTransport",
    "Transport",
    "Watchdog",
    "timeout_error",
)
