"""`any_`, `all_`, `has_elements`, `has_element`, `element_at`: one answer, as soon as it is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.errors import ConfigurationError, EmptySequenceError
from semflux.operators.lift import EndingLink, lift
from semflux.operators.run import Run

T = TypeVar("T")
_UNDECIDED: Any = object()
_FAILS: Any = object()


class _DecideLink(EndingLink[Any, Any]):
    __slots__ = ("_at_end", "_decide")

    def __init__(
        self, below: abc.ObserverBase[Any], run: Run, decide: Callable[[Any], Any], at_end: Callable[[], Any]
    ) -> None:
        super().__init__(below, run)
        self._decide = decide
        self._at_end = at_end

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        try:
            answer = self._decide(value)
        except Exception as error:
            self.fail(error)
            return
        if answer is not _UNDECIDED:
            self.end_with(answer)

    def on_completed(self) -> None:
        if self.stopped:
            return
        try:
            answer = self._at_end()
        except Exception as error:
            self.on_error(error)
            return
        self.below.on_next(answer)
        super().on_completed()


def _decided(
    make: Callable[[], Callable[[Any], Any]], at_end: Callable[[], Any]
) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    return lift(lambda below, run: _DecideLink(below, run, make(), at_end))


def any_(predicate: Callable[[T], object]) -> Callable[[abc.ObservableBase[T]], Observable[bool]]:
    """True at the first item for which *predicate* is true, and the source is cancelled; False at the end.

    ```
    --1--2--3--|        any_(lambda x: x == 2)
    -----True|
    ```
    """
    return _decided(lambda: lambda item: True if predicate(item) else _UNDECIDED, lambda: False)


def all_(predicate: Callable[[T], object]) -> Callable[[abc.ObservableBase[T]], Observable[bool]]:
    """False at the first item for which *predicate* is false, and the source is cancelled; True at the end.

    ```
    --1--2--3--|        all_(lambda x: x < 2)
    -----False|
    ```
    """
    return _decided(lambda: lambda item: _UNDECIDED if predicate(item) else False, lambda: True)


def has_elements() -> Callable[[abc.ObservableBase[Any]], Observable[bool]]:
    """True at the first item, and the source is cancelled; False for an empty stream.

    ```
    --1--2--|        has_elements()
    --True|
    ```
    """
    return any_(lambda item: True)


def has_element(value: T) -> Callable[[abc.ObservableBase[T]], Observable[bool]]:
    """True at the first item that equals *value*, and the source is cancelled; False at the end.

    ```
    --1--2--|        has_element(3)
    --------False|
    ```
    """
    return any_(lambda item: item == value)


def element_at(index: int, default: Any = _FAILS) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """The item at *index*, from 0; the source is cancelled first. Where the stream is shorter: *default*.

    Errors:
        EmptySequenceError: if the stream is shorter, and there is no *default*.

    ```
    --1--2--3--|        element_at(1)
    -----2|
    ```

    Raises:
        ConfigurationError: if *index* is negative.
    """
    if index < 0:
        raise ConfigurationError(f"element_at({index}): the index must not be negative")

    def make() -> Callable[[Any], Any]:
        left = index

        def decide(item: Any) -> Any:
            nonlocal left
            left -= 1
            return item if left < 0 else _UNDECIDED

        return decide

    def at_end() -> Any:
        if default is _FAILS:
            raise EmptySequenceError(f"element_at({index}): the stream is shorter")
        return default

    return _decided(make, at_end)


__all__ = ("all_", "any_", "element_at", "has_element", "has_elements")
