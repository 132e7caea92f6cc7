"""Operators that share one subscription to a source among several subscribers."""

from __future__ import annotations

from typing import Generic, Self, TypeVar

from semflux.clock import Clock
from semflux.flux.base import Base
from semflux.flux.connectable import Connectable
from semflux.operators.delivery import Policy
from semflux.operators.publish import Publication, publish
from semflux.operators.replay import cache, replay
from semflux.operators.share import share

T = TypeVar("T")


class Sharing(Base[T], Generic[T]):
    """`share`, `publish`, `replay` and `cache`; for Flux and ChatStream.

    The source is subscribed to once, for all. It goes at the pace of the slowest subscriber that pulls, once 1,024
    items or 8 MiB wait for it; *policy* says what is done before: "block", "coalesce", "drop" or "error".
    """

    __slots__ = ()

    def share(self, *, grace: float = 0.0, policy: Policy = "block", clock: Clock | None = None) -> Self:
        """Starts with the first subscriber; the last one that leaves cancels it, after *grace* seconds. Late
        subscribers miss what was; after the end the next one starts it anew."""
        return self._same(share(grace=grace, chat=self.is_chat, policy=policy, clock=clock))

    def publish(self, *, policy: Policy = "block") -> Connectable[Self]:
        """Starts when `connect()` of what this gives is called. Late subscribers miss what was."""
        return self._connectable(publish(chat=self.is_chat, policy=policy)(self._observable))

    def replay(
        self,
        count: int | None = None,
        ttl: float | None = None,
        *,
        compact: bool = False,
        policy: Policy = "block",
        clock: Clock | None = None,
    ) -> Connectable[Self]:
        """As `publish()`; late subscribers get the last *count* items that are not older than *ttl* seconds first,
        everything without either. *compact*, for a chat stream: they get few events that come to the same."""
        make = replay(count, ttl, compact=compact, chat=self.is_chat, policy=policy, clock=clock)
        return self._connectable(make(self._observable))

    def cache(
        self, count: int | None = None, ttl: float | None = None, *, clock: Clock | None = None
    ) -> Self:
        """Starts with the first subscriber and goes on to its end, whoever leaves; everybody gets everything, or the
        last *count* items, or those that are not older than *ttl* seconds."""
        return self._same(cache(count, ttl, chat=self.is_chat, clock=clock))

    def _connectable(self, publication: Publication) -> Connectable[Self]:
        return Connectable(self._again(publication), publication, self._again)


__all__ = ("Sharing",)
