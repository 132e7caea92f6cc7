"""`Closing`: a clean-up that may have to be awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from semflux.errors import ConfigurationError, OperatorError
from semflux.operators.hooks import Hooks
from semflux.operators.run import Driver, running_loop
from semflux.operators.waking import until_done

T = TypeVar("T")

_at_work: set[asyncio.Task[Any]] = set()
"""Clean-ups that wait: a loop refers to its tasks weakly."""


class Closing:
    """A clean-up at work: the driver of its run, so that who leaves can wait for it.

    Nothing cancels it. It is told to *done* how it went: what the clean-up gave, or what it raised.
    """

    over = True
    """Nothing comes of it but an end."""

    def __init__(
        self,
        before: Driver | None,
        clean: Callable[[], Any],
        done: Callable[[Any, Exception | None], None],
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        self._before = before
        self._clean: Callable[[], Any] | None = clean
        self._done = done
        self._failed = failed
        self._task: asyncio.Task[Any] | None = None

    def start(self) -> None:
        """Call the clean-up: at once, unless the source has something to close before. Idempotent."""
        clean, self._clean = self._clean, None
        if clean is None:
            return
        loop = running_loop()
        if loop is not None and self._before is not None:
            self._wait_for(loop, self._whole(self._before, clean))
            return
        try:
            result = clean()
        except Exception as error:
            self._end(None, error)
            return
        if not inspect.isawaitable(result):
            self._end(result, None)
        elif loop is not None:
            self._wait_for(loop, _outcome(result))
        else:
            if inspect.iscoroutine(result):
                result.close()
            self._end(
                None,
                ConfigurationError(
                    "using_when(): a clean-up gave an awaitable, and no event loop is running to await it in: "
                    "use block(), or subscribe inside asyncio.run(...)"
                ),
            )

    def _wait_for(self, loop: asyncio.AbstractEventLoop, work: Any) -> None:
        self._task = task = loop.create_task(work, name="semflux-cleanup")
        _at_work.add(task)
        task.add_done_callback(self._ended)

    @staticmethod
    async def _whole(before: Driver, clean: Callable[[], Any]) -> Any:
        await before.released()
        result = clean()
        return await result if inspect.isawaitable(result) else result

    def _ended(self, task: asyncio.Task[Any]) -> None:
        _at_work.discard(task)
        self._task = None
        error = None if task.cancelled() else task.exception()
        if error is None and not task.cancelled():
            self._end(task.result(), None)
        elif isinstance(error, Exception):
            self._end(None, error)
        else:
            self._end(None, OperatorError("using_when(): the clean-up was cancelled before it had ended"))

    def _end(self, result: Any, error: Exception | None) -> None:
        done, self._done, self._failed, self._before = self._done, dropped, None, None
        done(result, error)

    # As a driver

    def pump(self) -> bool:
        """Nothing to push."""
        return True

    def fill(self) -> Awaitable[None] | None:
        """Nothing to get."""

    def start_task(self) -> None:
        """It goes on by itself."""

    async def released(self) -> None:
        """Wait until it has ended."""
        self.start()
        if self._task is not None:
            await until_done(self._task)

    def fail(self, error: Exception) -> None:
        """A limit of the whole stream passes: it ends now, and the clean-up goes on."""
        if self._failed is not None:
            self._failed(error)

    def abort(self, reason: str) -> None:
        """The stream is over."""


def dropped(result: Any, raised: Exception | None) -> None:
    """Nobody is told how a clean-up went."""
    if raised is not None:
        Hooks.drop_error(raised)


async def _outcome(result: Awaitable[T]) -> T:
    return await result


__all__ = ("Closing", "dropped")
