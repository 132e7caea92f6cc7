"""`Script`: the steps of one verification, moved on by each signal that comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from semflux.testing.signals import Signal, SignalKind
from semflux.testing.steps import Matcher, Mismatch, Step, Wait

_SHOWN_SIGNALS = 30  # the last ones, in a failure's text


class StepFailedError(AssertionError):
    """A step of a `StepVerifier` did not get what it expects. The text shows what had come."""

    def __init__(
        self, step: str, number: int, expected: str, actual: str, signals: Sequence[Signal] = ()
    ) -> None:
        self.step = step
        """The step as it was written, such as "expect_next(b)"."""
        self.number = number
        """Its place in the script, from 1."""
        self.expected = expected
        """What it wants, in words."""
        self.actual = actual
        """What came instead, in words."""
        self.signals: tuple[Signal, ...] = tuple(signals)
        """All signals that had come."""
        lines = [f'expectation "{step}" (step {number}) failed: expected {expected}, actual {actual}']
        lines.append("what had come:" if signals else "nothing had come")
        hidden = len(self.signals) - _SHOWN_SIGNALS
        if hidden > 0:
            lines.append(f"  ... {hidden} signals")
        lines += [f"  {signal}" for signal in self.signals[-_SHOWN_SIGNALS:]]
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.step, self.number, self.expected, self.actual, self.signals)


class Script:
    """Steps at work in one subscription.

    `feed` takes a signal and does at once whatever can be done: steps that expect something take it,
    functions are called, a cancel reaches the source from inside its own `on_next`. It stops at a step
    that lets time pass, and at an awaitable that a function gave: these are for who runs the script.
    """

    def __init__(
        self, steps: Sequence[Step], *, cancel: Callable[[], None], request: Callable[[int], None]
    ) -> None:
        self._steps = steps
        self._position = 0
        self._matcher: Matcher | None = None
        self._expected = ""
        self._running = False
        self.cancel = cancel
        """Cancels the subscription."""
        self.request = request
        """Asks for more items."""
        self.pending: deque[Signal] = deque()
        """What has come, and no step has taken yet."""
        self.seen: list[Signal] = []
        """What has come."""
        self.recorded: list[Any] | None = None
        """The items taken since `record_with`."""
        self.awaiting: Awaitable[Any] | None = None
        """What the function of a step gave, to be awaited."""
        self.failure: StepFailedError | None = None
        """Set when a step has failed."""

    @property
    def over(self) -> bool:
        """True once nothing is left to do."""
        return self.failure is not None or self._position >= len(self._steps)

    @property
    def step(self) -> Step:
        """The step at work."""
        return self._steps[self._position]

    @property
    def wait(self) -> Wait | None:
        """How long the step at work lets pass; None if it does something else."""
        return None if self.over else self.step.wait

    def done(self) -> None:
        """The step at work, which waits or is awaited, is done."""
        self.awaiting = None
        self._position += 1
        self.advance()

    def feed(self, signal: Signal) -> None:
        """A signal has come."""
        self.seen.append(signal)
        self.pending.append(signal)
        self.advance()

    def advance(self) -> None:
        """Do what can be done now. From inside a step's function it does nothing: that step goes on first."""
        if self._running:
            return
        self._running = True
        try:
            while not self.over and self.awaiting is None and self._go_on():
                pass
        except Mismatch as mismatch:
            self._mismatch(mismatch)
        except Exception as error:  # noqa: BLE001  # what a function of the test raises is the step's failure
            self.raised(error)
        finally:
            self._running = False

    def _go_on(self) -> bool:
        """One thing more; False if there is nothing to do before something else happens."""
        step = self.step
        if step.match is None:
            if step.action is None:
                return False
            self._expected = ""
            result = step.action(self)
            if isinstance(result, Awaitable):
                self.awaiting = result
            else:
                self._position += 1
            return True
        if self._matcher is None:
            self._matcher = step.match()
            self._send(self._matcher, None)
            return True
        if not self.pending:
            return False
        self._send(self._matcher, self.pending.popleft())
        return True

    def _send(self, matcher: Matcher, signal: Signal | None) -> None:
        left: Sequence[Signal] = ()
        try:
            self._expected = next(matcher) if signal is None else matcher.send(signal)
        except StopIteration as stop:
            left = stop.value
            self.pending.extendleft(reversed(left))
            self._matcher = None
            self._position += 1
        if (
            self.recorded is not None
            and signal is not None
            and signal.kind is SignalKind.NEXT
            and not any(each is signal for each in left)
        ):
            self.recorded.append(signal.value)

    def _mismatch(self, mismatch: Mismatch) -> None:
        actual = mismatch.actual
        cause = actual.value if isinstance(actual, Signal) and actual.kind is SignalKind.ERROR else None
        self._fail(mismatch.expected, str(actual), cause)

    def _fail(self, expected: str, actual: str, cause: Any = None) -> None:
        if self.failure is None and self._position < len(self._steps):
            self.failure = StepFailedError(self.step.name, self._position + 1, expected, actual, self.seen)
            self.failure.__cause__ = cause

    def raised(self, error: Exception) -> None:
        """A function of the step at work raised."""
        self._fail(self._expected or "no exception", f"{type(error).__name__}: {error}", error)

    def fail(self, actual: str) -> None:
        """The step at work fails: *actual* happened instead of what it expects."""
        wait = self.wait
        expected = self._expected if wait is None else f"no event for {wait.seconds} s"
        self._fail(expected, actual)


__all__ = ("Script", "StepFailedError")
