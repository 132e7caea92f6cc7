"""`Hooks`: where signals go that nobody can receive any more."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar

from semflux.errors import ConfigurationError

_log = logging.getLogger("semflux")


def _log_error(error: BaseException) -> None:
    # Only the class: the text may quote a provider, the traceback a prompt. A receiver gets it all. What this
    # library says of a wrong call is its own words, and tells what to do.
    text = f": {error}" if isinstance(error, ConfigurationError) else ""
    _log.error("an error had no receiver: %s%s", type(error).__name__, text)


def _log_next(item: Any) -> None:
    _log.debug("an item came after the end: %s", type(item).__name__)


class Hooks:
    """Process-wide receivers of dropped signals. The defaults log to "semflux": errors as errors, items
    for debugging, both by their class alone."""

    _on_error: ClassVar[Callable[[BaseException], None]] = staticmethod(_log_error)
    _on_next: ClassVar[Callable[[Any], None]] = staticmethod(_log_next)

    @classmethod
    def on_error_dropped(cls, receiver: Callable[[BaseException], None] | None) -> None:
        """Send errors without a receiver to *receiver*; None brings the default back."""
        cls._on_error = staticmethod(receiver or _log_error)

    @classmethod
    def on_next_dropped(cls, receiver: Callable[[Any], None] | None) -> None:
        """Send items that came after an end to *receiver*; None brings the default back."""
        cls._on_next = staticmethod(receiver or _log_next)

    @classmethod
    def drop_error(cls, error: BaseException) -> None:
        """Hand over an error that nobody receives. Never raises."""
        try:
            cls._on_error(error)
        except Exception as raised:
            _log.error("a hook for dropped errors raised %s", type(raised).__name__)

    @classmethod
    def drop_next(cls, item: Any) -> None:
        """Hand over an item that nobody receives. Never raises."""
        try:
            cls._on_next(item)
        except Exception as raised:
            _log.error("a hook for dropped items raised %s", type(raised).__name__)


__all__ = ("Hooks",)
