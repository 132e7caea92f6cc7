"""`on_error_resume`, `on_error_return`, `on_error_map`, `on_error_complete`, `fallback_to`: go on after a failure."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import reactivex
from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.events import ChatEvent, ResponseEnd, StepEnd, StepStart, TextDelta
from semflux.operators.lift import Link, lift
from semflux.operators.recover import Attempt, is_chat_source, recover
from semflux.operators.run import Run
from semflux.retry import ErrorFilter, matches

T = TypeVar("T")


class _Resuming:
    """Goes to another source, once for each."""

    def __init__(
        self,
        choose: Callable[[Exception, int], abc.ObservableBase[Any] | None],
        errors: Callable[[BaseException], object],
    ) -> None:
        self._choose = choose
        self._matches = errors
        self._done = 0

    def next(self, error: Exception, *, content: bool, progress: bool) -> Attempt | None:
        if not self._matches(error):
            return None
        source = self._choose(error, self._done)
        if source is None:
            return None
        _check_source(source)
        self._done += 1
        held: abc.ObservableBase[Any] = getattr(source, "observable", source)
        return Attempt(
            source=held,
            status="fallback",
            text=f"after {type(error).__name__}",
            foreign=not (getattr(source, "is_chat", False) and is_chat_source(held)),
        )


def _check_source(source: object) -> None:
    if isinstance(source, abc.ObservableBase):
        return
    if inspect.iscoroutine(source):
        source.close()
    raise ConfigurationError(
        f"a fallback is a stream, such as a ChatStream or a Flux, not {type(source).__name__}"
    )


def on_error_resume(
    fallback: Callable[[Exception], abc.ObservableBase[T]],
    errors: ErrorFilter | None = None,
    *,
    chat: bool = False,
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Goes on with the source that *fallback* gives for the error. That source's own error is final, and so is
    what *fallback* raises.

    *errors*: only for these. A fallback of a chat stream may come after content: what came stays.

    ```
    --1--X        on_error_resume(lambda e: other)
    --1--8--9|
    ```

    Errors: ConfigurationError, if *fallback* gives something else than a stream.
    """
    taken = matches(errors)
    return recover(
        lambda _: _Resuming(lambda error, done: None if done else fallback(error), taken), chat=chat
    )


def fallback_to(
    *sources: abc.ObservableBase[T], errors: ErrorFilter | None = None, chat: bool = False
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Goes on with the next of *sources* at each failure; the last one's error is final.

    Raises:
        ConfigurationError: if one of *sources* is no stream.
    """
    for source in sources:
        _check_source(source)
    taken = matches(errors)
    return recover(
        lambda _: _Resuming(lambda error, done: sources[done] if done < len(sources) else None, taken),
        chat=chat,
    )


def on_error_return(
    value: Any, errors: ErrorFilter | None = None, *, chat: bool = False
) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    """Ends with *value* in place of the error. On a chat stream *value* is a text: one more step says it, and the
    stream ends well.

    Raises:
        ConfigurationError: if *value* is no text, on a chat stream.
    """
    if not chat:
        return on_error_resume(lambda error: reactivex.of(value), errors)
    if not isinstance(value, str):
        raise ConfigurationError("on_error_return() of a chat stream takes a text, which one more step says")
    return on_error_resume(lambda error: reactivex.from_iterable(_says(value)), errors, chat=True)


def _says(text: str) -> tuple[ChatEvent, ...]:
    return (
        StepStart(),
        TextDelta(text),
        StepEnd(finish_reason="stop"),
        ResponseEnd(),
    )


class _Mapping:
    def __init__(
        self, change: Callable[[Exception], Exception], errors: Callable[[BaseException], object]
    ) -> None:
        self._change = change
        self._matches = errors

    def next(self, error: Exception, *, content: bool, progress: bool) -> Attempt | None:
        if not self._matches(error):
            return None
        changed = self._change(error)
        if changed is error:
            return None
        if not isinstance(changed, Exception):
            raise ConfigurationError(f"on_error_map(): the function gave no exception, but {changed!r:.80}")
        if changed.__cause__ is not None:
            raise changed
        raise changed from error


def on_error_map(
    change: Callable[[Exception], Exception], errors: ErrorFilter | None = None, *, chat: bool = False
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Puts the error that *change* gives in the place of the error. On a chat stream ERROR carries it too, wrapped
    in a SemfluxError if it is none. Its cause is the error before, if it has no other."""
    taken = matches(errors)
    return recover(lambda _: _Mapping(change, taken), chat=chat)


class _CompleteLink(Link[Any, Any]):
    __slots__ = ("_matches",)

    def __init__(
        self, below: abc.ObserverBase[Any], run: Run, errors: Callable[[BaseException], object]
    ) -> None:
        super().__init__(below, run)
        self._matches = errors

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self.below.on_next(value)

    def on_error(self, error: Exception) -> None:
        if self.stopped:
            return
        try:
            ends_well = self._matches(error)
        except Exception as raised:
            super().on_error(raised)
            return
        if ends_well:
            self.on_completed()
        else:
            super().on_error(error)


def on_error_complete(
    errors: ErrorFilter | None = None,
) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Ends well in place of an error. The ERROR event of a chat stream comes all the same."""
    taken = matches(errors)
    return lift(lambda below, run: _CompleteLink(below, run, taken))


__all__ = ("fallback_to", "on_error_complete", "on_error_map", "on_error_resume", "on_error_return")
