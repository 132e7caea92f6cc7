"""`log`, `tap`, `name`, `checkpoint`: what is seen of a stream from outside, and said of it in errors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

from reactivex import Observable, abc

from semflux.operators.hooks import Hooks
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run

T = TypeVar("T")

LogLevel = Literal["meta", "full"]
"""What `log` tells of an item: "meta": its class, or its type where it is an event. "full": its repr, text included."""

_log = logging.getLogger("semflux.stream")


class SignalListener(Generic[T]):
    """What `tap` tells of one subscription. Override what is wanted. What a method raises is the error of the stream,
    after the source is cancelled; after an end, and at a cancel, it goes to `Hooks.on_error_dropped`."""

    def on_subscribe(self) -> None:
        """The source is about to be subscribed to."""

    def on_next(self, item: T) -> None:
        """An item is about to go down."""

    def on_error(self, error: Exception) -> None:
        """An error is about to go down."""

    def on_complete(self) -> None:
        """The end is about to go down."""

    def on_cancel(self) -> None:
        """What is below has cancelled; the source is about to be told."""


class _TapLink(Link[Any, Any]):
    __slots__ = ("_listener",)

    def __init__(
        self, below: abc.ObserverBase[Any], run: Run, make: Callable[[], SignalListener[Any]]
    ) -> None:
        super().__init__(below, run)
        self._listener: SignalListener[Any] | None = None
        try:
            self._listener = make()
            self._listener.on_subscribe()
        except Exception as error:
            self.stopped = True
            below.on_error(error)

    def on_next(self, value: Any) -> None:
        if self.stopped or self._listener is None:
            return
        try:
            self._listener.on_next(value)
        except Exception as error:
            self.fail(error)
        else:
            self.below.on_next(value)

    def on_error(self, error: Exception) -> None:
        listener = self._listener
        if self.stopped or listener is None:
            return
        try:
            listener.on_error(error)
        except Exception as raised:
            raised.__context__ = error
            error = raised
        super().on_error(error)

    def on_completed(self) -> None:
        listener = self._listener
        if self.stopped or listener is None:
            return
        try:
            listener.on_complete()
        except Exception as error:
            super().on_error(error)
        else:
            super().on_completed()

    def cut(self, error: Exception) -> None:
        # Not a cancel of what is below.
        self.stopped = True
        self.dispose()
        self.below.on_error(error)

    def dispose(self) -> None:
        if not self.stopped and self._listener is not None:
            self.stopped = True
            try:
                self._listener.on_cancel()
            except Exception as error:
                Hooks.drop_error(error)
        super().dispose()


def tap(
    make: Callable[[], SignalListener[T]],
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Tells each signal to the listener that *make* gives for each subscription: a class of listeners will do.

    ```
    --1--2--|        tap(Counter)
    --1--2--|
    ```
    """
    return lift(lambda below, run: _TapLink(below, run, make))


class _Logger(SignalListener[Any]):
    def __init__(self, name: str, level: LogLevel, logger: logging.Logger) -> None:
        self._name = name
        self._full = level == "full"
        self._logger = logger

    def _say(self, what: str) -> None:
        self._logger.info("%s: %s", self._name, what)

    def on_subscribe(self) -> None:
        self._say("subscribed")

    def on_next(self, item: Any) -> None:
        # A text may be anybody's secret: by default only what kind of a thing it is.
        told = repr(item) if self._full else str(getattr(item, "type", type(item).__name__))
        self._say(f"next {told}")

    def on_error(self, error: Exception) -> None:
        self._say(f"error {error!r}" if self._full else f"error {type(error).__name__}")

    def on_complete(self) -> None:
        self._say("complete")

    def on_cancel(self) -> None:
        self._say("cancelled")


def log(
    name: str = "stream", level: LogLevel = "meta", *, logger: logging.Logger | None = None
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Logs each signal, as information, to *logger*; default: "semflux.stream". *level*: "meta" tells classes, and
    types of events, and never texts; "full" tells all.

    ```
    --1--2--|        log("numbers")
    --1--2--|
    ```
    """
    found = logger or _log
    return tap(lambda: _Logger(name, level, found))


class _NoteLink(Link[Any, Any]):
    __slots__ = ("_note",)

    def __init__(self, below: abc.ObserverBase[Any], run: Run, note: str) -> None:
        super().__init__(below, run)
        self._note = note

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self.below.on_next(value)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            # One that is told to several subscribers, or comes again, says it once.
            if self._note not in getattr(error, "__notes__", ()):
                error.add_note(self._note)
            super().on_error(error)


def checkpoint(description: str) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Adds a note to an error that passes: which part of the chain it came through.

    ```
    --1--X        checkpoint("after the parser")
    --1--X(with a note)
    ```
    """
    return lift(lambda below, run: _NoteLink(below, run, f"semflux: passed the checkpoint {description!r}"))


def name(text: str) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Gives what is above a name, which an error that passes says in a note.

    ```
    --1--X        name("answers")
    --1--X(with a note)
    ```
    """
    return lift(lambda below, run: _NoteLink(below, run, f"semflux: in the stream {text!r}"))


__all__ = ("LogLevel", "SignalListener", "checkpoint", "log", "name", "tap")
