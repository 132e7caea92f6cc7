"""Operators that go on after a failure, or bring one about in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Self, TypeVar

from reactivex import abc

from semflux import operators as ops
from semflux.clock import Clock
from semflux.flux.base import Base
from semflux.retry import ErrorFilter, Retry

T = TypeVar("T")


class Recovering(Base[T], Generic[T]):
    """Retry, fallback, timeout; for Flux and ChatStream, which stays one sane stream."""

    __slots__ = ()

    def retry(self, retries: int | None = None) -> Self:
        """Subscribe again, at once, when it fails: at most *retries* times; None: for ever. Only before the first
        item (on a chat stream: the first content event); the last failure is the error, as it is."""
        return self._same(ops.retry(retries, chat=self.is_chat))

    def retry_when(self, policy: Retry) -> Self:
        """Subscribe again when it fails, as *policy* says: `Retry.backoff(3, min_backoff=0.5)`. Only before the
        first item (on a chat stream: the first content event), unless the policy restarts."""
        return self._same(ops.retry_when(policy, chat=self.is_chat))

    def on_error_resume(
        self, fallback: Callable[[Exception], abc.ObservableBase[T]], errors: ErrorFilter | None = None
    ) -> Self:
        """Go on with the stream that *fallback* gives for the error, or for those of *errors* alone."""
        return self._same(ops.on_error_resume(fallback, errors, chat=self.is_chat))

    def on_error_return(self, value: T, errors: ErrorFilter | None = None) -> Self:
        """End with *value* in place of the error."""
        return self._same(ops.on_error_return(value, errors, chat=self.is_chat))

    def on_error_map(
        self, change: Callable[[Exception], Exception], errors: ErrorFilter | None = None
    ) -> Self:
        """Put the error that *change* gives in the place of the error."""
        return self._same(ops.on_error_map(change, errors, chat=self.is_chat))

    def on_error_complete(self, errors: ErrorFilter | None = None) -> Self:
        """End well in place of an error, or of those of *errors* alone. The ERROR of a chat stream comes all the
        same."""
        return self._same(ops.on_error_complete(errors))

    def fallback_to(self, *sources: abc.ObservableBase[T], errors: ErrorFilter | None = None) -> Self:
        """Go on with the next of *sources* at each failure; the last one's error is final."""
        return self._same(ops.fallback_to(*sources, errors=errors, chat=self.is_chat))

    def timeout(
        self,
        total: float | None = None,
        *,
        first: float | None = None,
        item: float | None = None,
        fallback: abc.ObservableBase[T] | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Fail when a limit, in seconds, passes: *first* until the first item (on a chat stream: the first content
        event), *item* from one to the next, *total* for the whole; the source is cancelled first. *fallback*: go on
        with that stream instead."""
        return self._same(
            ops.timeout(total, first=first, item=item, fallback=fallback, clock=clock, chat=self.is_chat)
        )


__all__ = ("Recovering",)
