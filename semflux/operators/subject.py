"""`EventSubject`: RxPY's Subject without a lock on the hot path, with one order for all observers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Subject, abc

from semflux.operators.hooks import Hooks
from semflux.operators.lift import NOTHING, Direct

T = TypeVar("T")

_NEXT, _ERROR, _COMPLETED = 0, 1, 2


class _Subscription(abc.DisposableBase):
    __slots__ = ("_observer", "_remove")

    def __init__(
        self, remove: Callable[[abc.ObserverBase[Any]], None], observer: abc.ObserverBase[Any]
    ) -> None:
        self._remove = remove
        self._observer: abc.ObserverBase[Any] | None = observer

    def dispose(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            self._remove(observer)


class EventSubject(Subject[T], Direct[T]):
    """A subject for one producer at a time.

    Guarantees: all observers see the same order, an emission from inside an emission comes after it;
    an observer that raises is removed, and the others see nothing of it; its exception goes to its own
    `on_error`, or to the hooks if it has ended itself. Signals after the end go to the hooks. Whoever
    subscribes after the end is told how it ended; `dispose` drops all observers, without a word.
    The observers are a tuple that is replaced, so emitting takes no lock and no copy.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sinks: tuple[abc.ObserverBase[T], ...] = ()
        self._busy = False
        self._waiting: deque[tuple[int, Any]] = deque()
        self._over = False

    @property
    def has_observers(self) -> bool:
        """True while somebody listens."""
        return bool(self._sinks)

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        if self._over:
            if self.exception is not None:
                observer.on_error(self.exception)
            else:
                observer.on_completed()
            return NOTHING
        self._sinks = (*self._sinks, observer)
        return _Subscription(self._remove, observer)

    def _remove(self, observer: abc.ObserverBase[T]) -> None:
        self._sinks = tuple([sink for sink in self._sinks if sink is not observer])

    def on_next(self, value: T) -> None:
        if self._busy or self._over:
            self._later(_NEXT, value)
            return
        self._busy = True
        sinks = self._sinks
        try:
            if len(sinks) == 1:
                sinks[0].on_next(value)
            else:
                for sink in sinks:
                    try:
                        sink.on_next(value)
                    except Exception as error:
                        self._drop(sink, error)
        except Exception as error:
            self._drop(sinks[0], error)
        finally:
            self._busy = False
        if self._waiting:
            self._drain()

    def on_error(self, error: Exception) -> None:
        if self._busy or self._over:
            self._later(_ERROR, error)
            return
        self._end(_ERROR, error)

    def on_completed(self) -> None:
        if self._busy or self._over:
            self._later(_COMPLETED, None)
            return
        self._end(_COMPLETED, None)

    def _later(self, kind: int, value: Any) -> None:
        if not self._over:
            self._waiting.append((kind, value))
        elif kind == _NEXT:
            Hooks.drop_next(value)
        elif kind == _ERROR:
            Hooks.drop_error(value)

    def _drop(self, sink: abc.ObserverBase[T], error: Exception) -> None:
        self._remove(sink)
        if getattr(sink, "stopped", False) or getattr(sink, "is_stopped", False):
            # A subscriber of RxPY's that raised: it has let go of everything, and would not listen.
            Hooks.drop_error(error)
            return
        try:
            sink.on_error(error)
        except Exception as again:
            Hooks.drop_error(again)

    def _end(self, kind: int, error: Exception | None) -> None:
        self._over = True
        self.is_stopped = True
        self.exception = error
        sinks, self._sinks = self._sinks, ()
        late = list(self._waiting)
        self._waiting.clear()
        for sink in sinks:
            try:
                if kind == _ERROR and error is not None:
                    sink.on_error(error)
                else:
                    sink.on_completed()
            except Exception as raised:
                Hooks.drop_error(raised)
        for signal in late:
            self._later(*signal)

    def _drain(self) -> None:
        # A loop, not a call of `on_next`, which would come back here: any number may be waiting.
        while self._waiting and not self._over:
            kind, value = self._waiting.popleft()
            if kind != _NEXT:
                self._end(kind, value)
                return
            self._busy = True
            try:
                for sink in self._sinks:
                    try:
                        sink.on_next(value)
                    except Exception as error:
                        self._drop(sink, error)
            finally:
                self._busy = False

    def dispose(self) -> None:
        self._over = True
        self.is_disposed = True
        self._sinks = ()
        self._waiting.clear()


__all__ = ("EventSubject",)
