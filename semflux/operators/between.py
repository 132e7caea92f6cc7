"""`Between`: the driver of a run between two attempts. There is nothing to push then, but there is time to wait
for and callbacks to await, and the stream can be failed, aborted and cancelled meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias

from semflux.clock import Clock, Timer
from semflux.errors import ConfigurationError, OperatorError
from semflux.operators.hooks import Hooks
from semflux.operators.run import running_loop
from semflux.operators.waking import until_done

Steps: TypeAlias = Generator[float | Awaitable[Any], None, None]
"""What has to be waited for, one after another: seconds, or an awaitable."""


class Between:
    """Goes through *steps*, then calls *done*; without anything to wait for, before `go_on` returns.

    What a step raises goes to *failed*, as does the error of an operator that fails the stream
    meanwhile. Once it is `over` none of the three is called any more. `end` may come from any thread
    and from inside a step; it cancels the timer, or the one task that there is. *what*, in errors, gave
    what is awaited.
    """

    def __init__(
        self,
        steps: Steps,
        clock: Clock | None,
        done: Callable[[], None],
        failed: Callable[[Exception], None],
        aborted: Callable[[str], None],
        *,
        what: str = "a callback of a retry",
    ) -> None:
        self.over: bool = False
        self._what = what
        self._steps = steps
        self._clock = clock
        self._done = done
        self._failed = failed
        self._aborted = aborted
        self._stepping = False
        self._timer: Timer | None = None
        self._task: asyncio.Future[Any] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._thread = threading.get_ident()
        self._loop = running_loop()

    def go_on(self) -> None:
        """On to the next step that has to be waited for."""
        self._timer = None
        if self.over:
            return
        self._stepping = True
        try:
            step = next(self._steps, None)
        except Exception as error:
            self.fail(error)
            return
        finally:
            self._stepping = False
        if self.over:
            # Ended by the callback itself.
            _discard(step)
            self._steps.close()
        elif step is None:
            self.end()
            self._done()
        elif isinstance(step, (int, float)):
            assert self._clock is not None  # asked for before, where there is a time to wait
            self._timer = self._clock.call_later(step, self.go_on)
        else:
            self._await(step)

    def _await(self, step: Awaitable[Any]) -> None:
        if self._loop is None:
            _discard(step)
            self.fail(
                ConfigurationError(
                    f"{self._what} gave an awaitable, and no event loop is running to await it in: use "
                    "block(), or subscribe inside asyncio.run(...)"
                )
            )
            return
        self._task = asyncio.ensure_future(step)
        self._task.add_done_callback(self._awaited)

    def _awaited(self, task: asyncio.Future[Any]) -> None:
        self._task = None
        error = None if task.cancelled() else task.exception()
        if self.over:
            if error is not None:
                Hooks.drop_error(error)
        elif isinstance(error, Exception):
            self.fail(error)
        elif task.cancelled() or error is not None:
            self.fail(OperatorError(f"what {self._what} had given to await was cancelled"))
        else:
            self.go_on()

    # As a driver

    def pump(self) -> bool:
        """Nothing to push."""
        return self.over

    def fill(self) -> Awaitable[None] | None:
        """Until it is over."""
        return self._fill()

    async def _fill(self) -> None:
        if self.over:
            return
        self._ended = asyncio.get_running_loop().create_future()
        try:
            await self._ended
        except asyncio.CancelledError:
            self.end()
            await self.released()
            raise

    def start_task(self) -> None:
        """It goes on by itself."""

    async def released(self) -> None:
        """Wait until a callback that was cancelled is over."""
        if self._task is not None:
            await until_done(self._task)

    def fail(self, error: Exception) -> None:
        """The stream fails: by a step, or by a limit for the whole of it."""
        if not self.over:
            self.end()
            self._failed(error)

    def abort(self, reason: str) -> None:
        """The stream is aborted."""
        if not self.over:
            self.end()
            self._aborted(reason)

    def end(self) -> None:
        """Wait no longer. Idempotent."""
        if self.over:
            return
        self.over = True
        if self._loop is not None and threading.get_ident() != self._thread:
            with contextlib.suppress(RuntimeError):  # the loop, and with it all that waited, is gone
                self._loop.call_soon_threadsafe(self._let_go)
        else:
            self._let_go()

    def _let_go(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
        if not self._stepping:
            self._steps.close()


def _discard(step: object) -> None:
    """A coroutine that nobody will await says so when it is freed, unless it is closed."""
    if inspect.iscoroutine(step):
        step.close()


__all__ = ("Between", "Steps")
