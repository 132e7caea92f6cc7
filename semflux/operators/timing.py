"""The clock of a timed operator."""

from __future__ import annotations

import asyncio

from semflux.clock import Clock, LoopClock
from semflux.errors import ConfigurationError
from semflux.operators.run import Run


def clock_of(name: str, given: Clock | None, run: Run) -> Clock:
    """The clock that was *given* to the operator *name*; else that of the source, else the running loop's.

    Raises:
        ConfigurationError: if no loop is running.
    """
    clock = given or run.clock
    if clock is not None:
        return clock
    try:
        return LoopClock(asyncio.get_running_loop())
    except RuntimeError:
        raise ConfigurationError(
            f"{name} needs a running event loop to count in: use block(), or subscribe inside asyncio.run(...)"
        ) from None


__all__ = ("clock_of",)
