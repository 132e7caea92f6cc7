"""`retry`, `retry_when`: try the same source again."""

from __future__ import annotations

import random as _random
from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.operators.recover import Attempt, is_chat_source, recover
from semflux.retry import Retry, RetrySignal

T = TypeVar("T")


class _Retrying:
    def __init__(self, source: abc.ObservableBase[Any], policy: Retry, random: Callable[[], float]) -> None:
        self._source = source
        self._policy = policy
        self._random = random
        self._total = 0
        self._in_a_row = 0

    def next(self, error: Exception, *, content: bool, progress: bool) -> Attempt | None:
        policy = self._policy
        if progress:
            self._in_a_row = 0
        if content and policy.before_content:
            return None
        signal = RetrySignal(failure=error, total_retries=self._total, total_retries_in_a_row=self._in_a_row)
        wait = policy.next_wait(signal, self._random)
        self._total += 1
        self._in_a_row += 1
        return Attempt(
            source=self._source,
            status="restart" if content else "retry",
            text=f"attempt {self._total + 1} after {type(error).__name__}",
            foreign=not is_chat_source(self._source),
            before=lambda: policy.run_before(signal),
            wait=wait,
            after=lambda: policy.run_after(signal),
        )


def retry_when(
    policy: Retry, *, random: Callable[[], float] = _random.random, chat: bool = False
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Subscribes to the source again when it fails, as *policy* says: see `semflux.Retry`.

    On a chat stream only before the first content event, unless the policy restarts; on another source
    only before the first item. *random* gives the jitter, from 0 up to 1. *chat*: the items are chat events,
    and stay one stream; as a method of `ChatStream` it knows.

    ```
    X(429)                            retry_when(Retry.backoff(3, 0.5))
    RESP+ STATUS(retry) -0.6s- STEP+ TEXT~a ... RESP-|
    ```

    Raises:
        ConfigurationError: if *policy* is no `Retry`.
    """
    if not isinstance(policy, Retry):
        raise ConfigurationError(
            f"retry_when() takes a Retry, such as Retry.backoff(3, min_backoff=0.5), not {policy!r}"
        )
    return recover(lambda source: _Retrying(source, policy, random), chat=chat)


def retry(
    retries: int | None = None, *, chat: bool = False
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Subscribes to the source again, at once, when it fails: at most *retries* times, so at most
    *retries* + 1 attempts; None: for ever. The last failure is the error, as it is.

    (RxPY's operator of this name counts attempts.)
    """
    policy = Retry.indefinitely() if retries is None else Retry.max(retries)
    return retry_when(policy.on_retry_exhausted_throw(lambda _, signal: signal.failure), chat=chat)


__all__ = ("retry", "retry_when")
