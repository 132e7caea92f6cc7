"""`Hooks`: where signals go that nobody can receive any more, and what looks at every operator."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar

from reactivex import abc

from semflux.errors import ConfigurationError, SemfluxError

_log = logging.getLogger("semflux")


def _log_error(error: BaseException) -> None:
    # Only the class: the text may quote a provider, the traceback a prompt. A receiver gets it all. What this
    # library says of a wrong call is its own words, and tells what to do.
    text = f": {error}" if isinstance(error, ConfigurationError) else ""
    _log.error("an error had no receiver: %s%s", type(error).__name__, text)


def _log_next(item: Any) -> None:
    _log.debug("an item came after the end: %s", type(item).__name__)


class Hooks:
    """Process-wide receivers of dropped signals, and of what is made and fails. The defaults log what is dropped to
    "semflux": errors as errors, items for debugging, both by their class alone. `reset` brings all defaults back."""

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

    _on_operator_error: ClassVar[Callable[[Exception], Exception | None] | None] = None
    wrap: ClassVar[Callable[[abc.ObservableBase[Any]], abc.ObservableBase[Any]] | None] = None
    """What `on_each_operator` was given."""
    debug: ClassVar[bool] = False
    """True after `on_operator_debug`."""

    @classmethod
    def on_operator_error(cls, receiver: Callable[[Exception], Exception | None] | None) -> None:
        """Call *receiver* with what a user's function raised in an operator, before it becomes the error of the stream.
        It may give another exception in its place; None leaves it as it is. SemfluxErrors are left alone."""
        cls._on_operator_error = None if receiver is None else staticmethod(receiver)

    @classmethod
    def on_each_operator(
        cls, wrap: Callable[[abc.ObservableBase[Any]], abc.ObservableBase[Any]] | None
    ) -> None:
        """Call *wrap* with the observable of each operator that a method of Flux, Mono or ChatStream puts on a stream
        from now on; what it gives takes its place. None ends that."""
        cls.wrap = None if wrap is None else staticmethod(wrap)

    @classmethod
    def on_operator_debug(cls) -> None:
        """From now on an error says in a note at which line each operator was put on the stream that it came through.
        That looks at the stack for each: for debugging."""
        cls.debug = True

    @classmethod
    def reset(cls) -> None:
        """Bring all defaults back. Streams that were made keep what they have."""
        cls.on_error_dropped(None)
        cls.on_next_dropped(None)
        cls.on_operator_error(None)
        cls.on_each_operator(None)
        cls.debug = False

    @classmethod
    def operator_error(cls, error: Exception) -> Exception:
        """What an operator tells where a user's function raised *error*. Never raises."""
        receiver = cls._on_operator_error
        if receiver is None or isinstance(error, SemfluxError):
            return error
        try:
            return receiver(error) or error
        except Exception as raised:
            _log.error("a hook for operators' errors raised %s", type(raised).__name__)
            return error

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
