"""One run of a `StepVerifier`: subscribes, lets time pass, waits, and says what went wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from reactivex import abc

from semflux.errors import BlockingInLoopError, ConfigurationError
from semflux.operators.run import UNBOUNDED, Run
from semflux.testing.clocks import ClockScheduler, SteppedClock
from semflux.testing.script import Script, StepFailedError
from semflux.testing.signals import Signal
from semflux.testing.steps import Step, Wait
from semflux.testing.subscriptions import PullSubscription, PushSubscription, bare

R = TypeVar("R")

SETTLE_TURNS = 30
"""Turns of the loop that what needs no time is given, before and after each step of virtual time."""


async def settle() -> None:
    """Let everything happen that needs no time."""
    for _ in range(SETTLE_TURNS):
        await asyncio.sleep(0)


class Verification:
    """A script against a source, once."""

    def __init__(
        self,
        source_of: Callable[[Any], abc.ObservableBase[Any]],
        steps: Sequence[Step],
        *,
        demand: int | None,
        timeout: float,
        virtual: bool,
    ) -> None:
        self._source_of = source_of
        self._demand = demand
        self._timeout = timeout
        self._clock = SteppedClock() if virtual else None
        self._script = Script(steps, cancel=self._cancel, request=self._request)
        self._subscription: PushSubscription | PullSubscription | None = None
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deadline = 0.0

    def _cancel(self) -> None:
        if self._subscription is not None:
            self._subscription.dispose()

    def _request(self, count: int) -> None:
        if isinstance(self._subscription, PullSubscription):
            self._subscription.request(count)

    def _feed(self, signal: Signal) -> None:
        self._script.feed(signal)
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has gone, and with it who waited
                loop.call_soon_threadsafe(self._woken.set)

    async def run(self) -> float:
        """The seconds it took: of virtual time, where that is used.

        Raises:
            StepFailedError: if a step did not get what it expects.
        """
        self._loop = loop = asyncio.get_running_loop()
        began = time.perf_counter()
        self._deadline = loop.time() + self._timeout
        source = bare(self._source_of(self._clock))
        scheduler = None if self._clock is None else ClockScheduler(self._clock)
        run = Run(
            demand=UNBOUNDED if self._demand is None else self._demand,
            pull=self._demand is not None,
            scheduler=scheduler,
        )
        run.clock = self._clock
        if self._demand is None:
            subscription: PushSubscription | PullSubscription
            subscription = PushSubscription(source, self._feed, run)
        else:
            subscription = PullSubscription(source, self._feed, run)
        self._subscription = subscription
        try:
            subscription.start()
            await self._follow()
        finally:
            subscription.dispose()
        await subscription.released()
        self._judge(subscription)
        return time.perf_counter() - began if self._clock is None else self._clock.monotonic()

    def _judge(self, subscription: PushSubscription | PullSubscription) -> None:
        script = self._script
        if script.failure is not None:
            # Without the frames in which it was made: they are ours.
            raise script.failure.with_traceback(None)
        if subscription.breaches:
            raise StepFailedError(
                "one end, and nothing after it",
                len(script.seen),
                "nothing",
                subscription.breaches[0],
                script.seen,
            )

    async def _follow(self) -> None:
        script = self._script
        script.advance()
        while not script.over:
            if script.awaiting is not None:
                try:
                    await script.awaiting
                except Exception as error:  # noqa: BLE001  # a function of the test's: the step's failure
                    script.raised(error)
                else:
                    script.done()
            elif script.wait is not None:
                await self._pass(script.wait)
            else:
                await self._signal()

    async def _signal(self) -> None:
        """Until something has come, for a step that waits for it."""
        script, subscription = self._script, self._subscription
        if isinstance(subscription, PullSubscription) and subscription.demand == 0:
            if not script.step.terminal:
                script.fail("none: no demand is left, and then_request(...) comes later or not at all")
                return
            # The end needs no demand, but whether it is the next thing shows only by asking for more.
            subscription.request(1)
            if script.over:
                return
        assert self._loop is not None
        try:
            async with asyncio.timeout_at(self._deadline):
                await self._woken.wait()
        except TimeoutError:
            clock = self._clock
            hint = (
                ""
                if clock is None
                else f" (virtual time is {clock.monotonic():g} s: then_await(...) moves it)"
            )
            script.fail(f"nothing for {self._timeout:g} s{hint}")
        self._woken.clear()

    async def _pass(self, wait: Wait) -> None:
        """Let time pass, for a step that says so."""
        script = self._script
        if wait.silent and not self._is_silent():
            return
        if self._clock is None:
            assert self._loop is not None
            end = self._loop.time() + wait.seconds
            # A wait that the test asks for is not one that the timeout is for.
            self._deadline += wait.seconds
            while self._loop.time() < end:
                self._woken.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(end):
                        await self._woken.wait()
                if wait.silent and not self._is_silent():
                    return
        elif not await self._pass_virtually(self._clock, wait):
            return
        script.done()

    async def _pass_virtually(self, clock: SteppedClock, wait: Wait) -> bool:
        end = clock.monotonic() + wait.seconds
        while True:
            await settle()
            if wait.silent and not self._is_silent():
                return False
            due = clock.next_due
            if due is None or due > end:
                break
            clock.advance_to(due)
        clock.advance_to(end)
        await settle()
        return not wait.silent or self._is_silent()

    def _is_silent(self) -> bool:
        """True if nothing has come that no step has taken; else the step at work fails."""
        pending = self._script.pending
        if pending:
            self._script.fail(str(pending[0]))
        return not pending


def run_here(coroutine: Coroutine[Any, Any, R], name: str = "verify", instead: str = "verify_async") -> R:
    """Run what *name* does in plain code, on a loop of its own; or inside a running loop, if it need not wait.

    Raises:
        BlockingInLoopError: inside a running loop, if it has to wait.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: R = stop.value
        return result
    coroutine.close()
    raise BlockingInLoopError(
        f"{name}() would have to wait, and an event loop is running in this thread: use `await {instead}()`"
    )


def checked_steps(steps: Sequence[Step], closed: bool) -> Sequence[Step]:
    """*steps*, if they say how they end.

    Raises:
        ConfigurationError: if they don't.
    """
    if not closed:
        raise ConfigurationError(
            "this verifier does not say how the stream ends: add expect_complete(), expect_error(...), "
            "expect_timeout(...) or then_cancel()"
        )
    return steps


__all__ = ("SETTLE_TURNS", "Verification", "checked_steps", "run_here", "settle")
