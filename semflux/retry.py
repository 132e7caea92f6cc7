"""`Retry`: when to try again, and how long to wait first. Reactor's rules, as a value.

Rule 1. The filter comes first: an error it does not let through ends the stream as it is.
Rule 2. Then the count: after *n* retries the error is RetryExhaustedError, with the last failure as its
        cause.
Rule 3. Then the wait: `base = min(min_backoff * multiplier ** i, max_backoff)`, moved at random by up to
        `base * jitter`, never below *min_backoff* and never above *max_backoff*. A provider's retry-after
        is waited for if it is longer, and refused if it is longer than *retry_after_limit*.

Source of 1 to 3: Reactor's `Retry` and `RetryBackoffSpec`. Two rules are ours, since a chat stream that is
tried again after its first words shows them twice: `before_content` and `restart`.
"""

from __future__ import annotations

import random as _random
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeAlias

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
    """Retries since the last item, or since the start."""


def matches(errors: ErrorFilter | None) -> Callable[[BaseException], object]:
    """The predicate that *errors* stands for; None lets everything through."""
    if errors is None:
        return lambda error: True
    if isinstance(errors, (type, tuple)):
        classes = errors
        return lambda error: isinstance(error, classes)
    return errors


def _retryable(error: BaseException) -> bool:
    """Ours say whether the same request may succeed; anybody else's is given the benefit of the doubt."""
    return error.retryable if isinstance(error, SemfluxError) else True


def _fraction(instance: object, attribute: Any, value: float) -> None:
    if not 0 <= value <= 1:
        raise ConfigurationError(f"the jitter of a retry is a fraction from 0 to 1, not {value!r}")


def _seconds(instance: object, attribute: Any, value: float | None) -> None:
    if value is not None and not value >= 0:
        raise ConfigurationError(
            f"{attribute.name.strip('_')} is a number of seconds from 0 up, not {value!r}"
        )


@attrs.frozen(kw_only=True)
class Retry:
    """When to try again. Made by `Retry.max`, `max_in_a_row`, `indefinitely`, `fixed_delay` or `backoff`;
    each method gives a changed copy."""

    _limit: int | None = None
    _min: float = attrs.field(default=0.0, validator=_seconds)
    _max: float | None = attrs.field(default=None, validator=_seconds)
    _multiplier: float = 2.0
    _jitter: float = attrs.field(default=0.5, validator=_fraction)
    _in_a_row: bool = False
    _filter: Callable[[BaseException], object] = _retryable
    _before: tuple[Callable[[RetrySignal], object], ...] = ()
    _after: tuple[Callable[[RetrySignal], object], ...] = ()
    _exhausted: Callable[[Retry, RetrySignal], BaseException] | None = None
    _retry_after_limit: float = attrs.field(default=60.0, validator=_seconds)
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
        """At most *retries* times without an item in between, at once."""
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
        """Each wait *factor* times the one before; default 2."""
        return attrs.evolve(self, multiplier=factor)

    def max_backoff(self, seconds: float) -> Self:
        """No wait longer than this; default: no bound."""
        return attrs.evolve(self, max=seconds)

    def jitter(self, fraction: float) -> Self:
        """Each wait moved by up to this part of it, at random; default 0.5."""
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
        """Call *callback* before the wait."""
        return attrs.evolve(self, before=(*self._before, callback))

    def do_after_retry(self, callback: Callable[[RetrySignal], object]) -> Self:
        """Call *callback* after the wait, before the next attempt."""
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
        asked = getattr(failure, "retry_after", None) or 0.0
        if asked > self._retry_after_limit:
            raise failure
        done = signal.total_retries_in_a_row if self._in_a_row else signal.total_retries
        if self._limit is not None and done >= self._limit:
            raise self._exhaustion(signal, done) from failure
        return max(self._wait(done, random), asked)

    def _exhaustion(self, signal: RetrySignal, done: int) -> BaseException:
        if self._exhausted is not None:
            return self._exhausted(self, signal)
        failure = signal.failure
        error = RetryExhaustedError(f"retries exhausted: {done}/{self._limit}; the last failure: {failure}")
        if isinstance(failure, SemfluxError):
            for name in ("provider", "status", "code", "request_id", "retry_after", "partial"):
                setattr(error, name, getattr(failure, name))
        error.attempts = signal.total_retries + 1
        return error

    def _wait(self, done: int, random: Callable[[], float]) -> float:
        if self._min == 0:
            return 0.0
        top = float("inf") if self._max is None else self._max
        try:
            base = min(self._min * self._multiplier**done, top)
        except OverflowError:
            base = top
        if base == float("inf"):
            base = self._min
        offset = base * self._jitter
        low, high = max(self._min - base, -offset), min(top - base, offset)
        return base + low + random() * (high - low)

    def run_before(self, signal: RetrySignal) -> Iterable[object]:
        """What the callbacks before the wait give; an awaitable among them is to be awaited."""
        return [callback(signal) for callback in self._before]

    def run_after(self, signal: RetrySignal) -> Iterable[object]:
        """The same for those after the wait."""
        return [callback(signal) for callback in self._after]


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
    if retries < 0:
        raise ConfigurationError(f"a number of retries must not be negative: {retries}")
    return retries


__all__ = ("ErrorFilter", "Retry", "RetryBudget", "RetrySignal", "matches")
