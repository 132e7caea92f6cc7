"""`Retry`: when to try again, and how long to wait first. Reactor's rules, as a value.

Rule 1. The filter comes first: an error it does not let through ends the stream as it is.
Rule 2. Then the count: after *n* retries the error is RetryExhaustedError, with the last failure as its
        cause.
Rule 3. Then the wait: `base = min(min_backoff * multiplier ** i, max_backoff)`, moved at random by up to
        `base * jitter`, never below *min_backoff* and never above *max_backoff*. A provider's retry-after
        is waited for if it is longer, and refused if it is longer than *retry_after_limit*: then the error
        itself is the end.

Source of 1 to 3: Reactor's `Retry` and `RetryBackoffSpec`. Two rules are ours, since a chat stream that is
tried again after its first words shows them twice: `before_content` and `restart`.
"""

from __future__ import annotations

import random as _random
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Self, TypeAlias

import attrs

from semflux.errors import ConfigurationError, RetryExhaustedError, SemfluxError

ErrorFilter: TypeAlias = (
    "type[BaseException] | tuple[type[BaseException], ...] | Callable[[BaseException], object]"
)
"""Which errors: a class, several, or a predicate."""


@attrs.frozen(kw_only=True)
class RetrySignal:
    """A failure, and how often it has been tried again so far."""

    failure: BaseException
    """What happened."""
    total_retries: int
    """Retries so far, over the life of the subscription."""
    total_retries_in_a_row: int
    """Retries since the last item, on a chat stream the last content event, or since the start."""


def matches(errors: ErrorFilter | None) -> Callable[[BaseException], object]:
    """The predicate that *errors* stands for; None lets everything through."""
    if errors is None:
        return lambda error: True
    if callable(errors) and not isinstance(errors, type):
        return errors
    classes = errors
    return lambda error: isinstance(error, classes)


def _retryable(error: BaseException) -> bool:
    """Ours say whether the same request may succeed; anybody else's is given the benefit of the doubt."""
    return error.retryable if isinstance(error, SemfluxError) else True


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_jitter(instance: object, attribute: Any, value: float) -> None:
    if not _is_number(value) or not 0 <= value <= 1:
        raise ConfigurationError(f"the jitter of a retry is a fraction from 0 to 1, not {value!r}")


def _check_multiplier(instance: object, attribute: Any, value: float) -> None:
    if not _is_number(value) or not 1 <= value < _INFINITE:
        raise ConfigurationError(f"the multiplier of a retry is a number from 1 up, not {value!r}")


def _check_wait(instance: object, attribute: Any, value: float) -> None:
    if not _is_number(value) or not 0 <= value < _INFINITE:
        raise ConfigurationError(f"the wait of a retry is a number of seconds from 0 up, not {value!r}")


def _check_max(instance: Any, attribute: Any, value: float | None) -> None:
    if value is not None and (not _is_number(value) or not value >= instance._min):
        raise ConfigurationError(
            f"the longest wait of a retry is a number of seconds not below its shortest, {instance._min:g}; "
            f"not {value!r}"
        )


def _check_limit(instance: object, attribute: Any, value: float) -> None:
    if not _is_number(value) or not value >= 0:
        raise ConfigurationError(f"retry_after_limit is a number of seconds from 0 up, not {value!r}")


_INFINITE = float("inf")

_NEVER = 1e300
"""Seconds: what a wait without a bound grows to at most, so that sums of it are still numbers."""


@attrs.frozen(kw_only=True)
class Retry:
    """When to try again. Made by `Retry.max`, `max_in_a_row`, `indefinitely`, `fixed_delay` or `backoff`;
    each method gives a changed copy."""

    _limit: int | None = attrs.field(default=None, alias="limit")
    _min: float = attrs.field(default=0.0, alias="min", validator=_check_wait)
    _max: float | None = attrs.field(default=None, alias="max", validator=_check_max)
    _multiplier: float = attrs.field(default=2.0, alias="multiplier", validator=_check_multiplier)
    _jitter: float = attrs.field(default=0.5, alias="jitter", validator=_check_jitter)
    _in_a_row: bool = attrs.field(default=False, alias="in_a_row")
    _filter: Callable[[BaseException], object] = attrs.field(default=_retryable, alias="filter")
    _before: tuple[Callable[[RetrySignal], object], ...] = attrs.field(default=(), alias="before")
    _after: tuple[Callable[[RetrySignal], object], ...] = attrs.field(default=(), alias="after")
    _exhausted: Callable[[Retry, RetrySignal], BaseException] | None = attrs.field(
        default=None, alias="exhausted"
    )
    _retry_after_limit: float = attrs.field(default=60.0, alias="retry_after_limit", validator=_check_limit)
    before_content: bool = True
    """Only before the first content event, and before a tool ran; on a plain Flux, before the first item."""
    restarts: bool = False
    """Try again after content too: what came stays, STATUS(restart) says that it is void."""

    @classmethod
    def max(cls, retries: int) -> Self:
        """At most *retries* times, at once."""
        return cls(limit=_count(retries))

    @classmethod
    def max_in_a_row(cls, retries: int) -> Self:
        """At most *retries* times without an item in between, on a chat stream a content event, at once."""
        return cls(limit=_count(retries), in_a_row=True)

    @classmethod
    def indefinitely(cls) -> Self:
        """For ever, at once."""
        return cls()

    @classmethod
    def fixed_delay(cls, retries: int, delay: float) -> Self:
        """At most *retries* times, *delay* seconds after each failure."""
        return cls(limit=_count(retries), min=delay, max=delay, jitter=0.0)

    @classmethod
    def backoff(cls, retries: int, min_backoff: float) -> Self:
        """At most *retries* times, after waits that double from *min_backoff* seconds on."""
        return cls(limit=_count(retries), min=min_backoff)

    def filter(self, errors: ErrorFilter) -> Self:
        """Only these errors, in place of the rule so far. Default: those that say they are `retryable`, and all
        that are not ours."""
        return attrs.evolve(self, filter=matches(errors))

    def modify_filter(
        self, change: Callable[[Callable[[BaseException], object]], Callable[[BaseException], object]]
    ) -> Self:
        """The rule that *change* makes of the one so far."""
        return attrs.evolve(self, filter=change(self._filter))

    def multiplier(self, factor: float) -> Self:
        """Each wait *factor* times the one before, from 1 up; default 2."""
        return attrs.evolve(self, multiplier=factor)

    def max_backoff(self, seconds: float) -> Self:
        """No wait longer than this; default: no bound."""
        return attrs.evolve(self, max=seconds)

    def jitter(self, fraction: float) -> Self:
        """Each wait moved by up to this part of it, at random, to two digits; default 0.5."""
        return attrs.evolve(self, jitter=fraction)

    def transient_errors(self, in_a_row: bool = True) -> Self:
        """Count, and grow waits, from the last item on."""
        return attrs.evolve(self, in_a_row=in_a_row)

    def retry_after_limit(self, seconds: float) -> Self:
        """The longest retry-after of a provider that is waited for; default 60. A longer one ends the stream with
        the error itself, which holds it."""
        return attrs.evolve(self, retry_after_limit=seconds)

    def restart(self, allowed: bool = True) -> Self:
        """Try again after content too; see `restarts`."""
        return attrs.evolve(self, before_content=not allowed, restarts=allowed)

    def do_before_retry(self, callback: Callable[[RetrySignal], object]) -> Self:
        """Call *callback* before the wait. If it gives an awaitable, that is waited for first, in a running event
        loop. If it raises, its exception is the end of the stream."""
        return attrs.evolve(self, before=(*self._before, callback))

    def do_after_retry(self, callback: Callable[[RetrySignal], object]) -> Self:
        """Call *callback* after the wait, before the next attempt; in all else as `do_before_retry`."""
        return attrs.evolve(self, after=(*self._after, callback))

    def on_retry_exhausted_throw(self, make: Callable[[Retry, RetrySignal], BaseException]) -> Self:
        """The error when all retries failed, in place of RetryExhaustedError."""
        return attrs.evolve(self, exhausted=make)

    def next_wait(self, signal: RetrySignal, random: Callable[[], float] = _random.random) -> float:
        """Seconds to wait before the next attempt.

        Raises:
            The failure itself where it is not to be tried again, else RetryExhaustedError or what
            `on_retry_exhausted_throw` makes.
        """
        failure = signal.failure
        if not self._filter(failure):
            raise failure
        done = signal.total_retries_in_a_row if self._in_a_row else signal.total_retries
        if self._limit is not None and done >= self._limit:
            self._exhaust(signal, done)
        asked: Any = getattr(failure, "retry_after", None)
        if not _is_number(asked):
            return self._wait(done, random)
        if asked > self._retry_after_limit:
            raise failure
        return max(self._wait(done, random), float(asked))

    def _exhaust(self, signal: RetrySignal, done: int) -> NoReturn:
        failure = signal.failure
        if self._exhausted is not None:
            made = self._exhausted(self, signal)
            if made is failure or made.__cause__ is not None:
                raise made
            raise made from failure
        error = RetryExhaustedError(f"retries exhausted: {done}/{self._limit}; the last failure: {failure}")
        error.attempts = signal.total_retries + 1
        if isinstance(failure, SemfluxError):
            for name in ("provider", "status", "code", "request_id", "retry_after", "partial"):
                setattr(error, name, getattr(failure, name))
            error.attempts = max(error.attempts, failure.attempts)
        raise error from failure

    def _wait(self, done: int, random: Callable[[], float]) -> float:
        if self._min == 0:
            return 0.0
        top = max(min(_INFINITE if self._max is None else self._max, _NEVER), self._min)
        try:
            base = min(self._min * float(self._multiplier) ** done, top)
        except OverflowError:
            base = top
        offset = base * self._spread
        low, high = max(self._min - base, -offset), min(top - base, offset)
        # Sums of large numbers are rounded: the bounds hold all the same.
        return max(self._min, min(base + low + random() * (high - low), top))

    @property
    def _spread(self) -> float:
        """The jitter to two digits, as Reactor has it; what is written in two is what it says."""
        return int(self._jitter * 100 + 1e-9) / 100

    def run_before(self, signal: RetrySignal) -> Iterator[object]:
        """Calls the callbacks before the wait, one at each step; gives what they give: an awaitable is to be
        awaited before the next step."""
        return (callback(signal) for callback in self._before)

    def run_after(self, signal: RetrySignal) -> Iterator[object]:
        """The same for those after the wait."""
        return (callback(signal) for callback in self._after)


class RetryBudget:
    """Keeps retries from becoming a storm: a tenth of the requests may be sent again, and ten to begin with."""

    __slots__ = ("_tokens",)

    def __init__(self) -> None:
        self._tokens = _RESERVE

    def request(self) -> None:
        """A request is sent."""
        self._tokens = min(_RESERVE, self._tokens + 1)

    def take(self) -> bool:
        """True if one may be sent again; it is counted."""
        if self._tokens < _PRICE:
            return False
        self._tokens -= _PRICE
        return True


_PRICE = 10  # requests that pay for one retry
_RESERVE = 10 * _PRICE


def _count(retries: int) -> int:
    if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
        raise ConfigurationError(f"a number of retries is a whole number from 0 up, not {retries!r}")
    return retries


__all__ = ("ErrorFilter", "Retry", "RetryBudget", "RetrySignal", "matches")
