"""A stream whose pump is in the test's hand, and a transport that opens when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from semflux import Timeouts
from semflux.clock import VirtualClock
from semflux.dialects import dialect
from semflux.dialects.base import ParserOptions
from semflux.flux.chat import ChatStream
from semflux.flux.source import ChatSource
from semflux.http import HttpRequest
from semflux.model_pump import Call, ModelPump
from semflux.operators.run import Run
from semflux.transport import Exchange, Phase, Recording, ReplayTransport, Transport

REQUEST = HttpRequest(url="http://127.0.0.1/v1")


async def plain_request() -> HttpRequest:
    return REQUEST


class Rig:
    """A stream over a transport of the test's own, with its pump in the hand."""

    def __init__(
        self,
        transport: Transport,
        *,
        request: Callable[[], Awaitable[HttpRequest]] = plain_request,
        clock: VirtualClock | None = None,
        timeouts: Timeouts | None = None,
        **settings: Any,
    ) -> None:
        self.call = Call(
            transport=transport,
            request=request,
            dialect=settings.pop("dialect", dialect("openai-chat")),
            provider="acme",
            model="m",
            timeouts=timeouts or Timeouts(),
            options=ParserOptions(),
            clock=clock,
            **settings,
        )
        self.pumps: list[ModelPump] = []
        self.stream = ChatStream(ChatSource(self._make))

    def _make(self, run: Run) -> ModelPump:
        self.pumps.append(ModelPump(run, self.call))
        return self.pumps[-1]

    @property
    def pump(self) -> ModelPump:
        return self.pumps[-1]


class Gated(Transport):
    """Opens when told to, then gives *recording*; counts what is open. It may be slow to be cancelled."""

    def __init__(self, *body: Any, slow_cancel: int = 0) -> None:
        self.gate = asyncio.Event()
        self.inner = ReplayTransport(Recording(body=body))
        self.opening = 0
        self._slow_cancel = slow_cancel

    async def open(
        self, request: HttpRequest, *, timeouts: Timeouts, on_phase: Callable[[Phase], None] | None = None
    ) -> Exchange:
        self.opening += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            for _ in range(self._slow_cancel):
                await asyncio.sleep(0)
            raise
        finally:
            self.opening -= 1
        return await self.inner.open(request, timeouts=timeouts, on_phase=on_phase)

    async def aclose(self) -> None:
        await self.inner.aclose()

    @property
    def acquired(self) -> int:
        return self.inner.acquired + self.opening


__all__ = ("Gated", "Rig", "plain_request")
