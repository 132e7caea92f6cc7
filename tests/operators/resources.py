"""What the tests of resources open and close."""

from __future__ import annotations

import asyncio
from typing import Any

from semflux import Flux


class Session:
    """A resource with an asynchronous life, in a log."""

    def __init__(self, *, raises: Exception | None = None, waits: bool = False) -> None:
        self.log: list[Any] = []
        self.raises = raises
        self.may_close = asyncio.Event()
        if not waits:
            self.may_close.set()

    async def open(self) -> Session:
        self.log.append("opening")
        await asyncio.sleep(0)
        self.log.append("open")
        return self

    async def _close(self, how: str) -> None:
        self.log.append(f"{how}...")
        await self.may_close.wait()
        self.log.append(how)
        if self.raises is not None:
            raise self.raises

    async def complete(self) -> None:
        await self._close("complete")

    async def fail(self, failure: Exception) -> None:
        await self._close(f"error {failure}")

    async def cancel(self) -> None:
        await self._close("cancel")

    def around(self, source: Any) -> Flux[Any]:
        return Flux.using_when(self.open, lambda _: source, Session.complete, Session.fail, Session.cancel)


OPENED = ["opening", "open"]
