"""What operators over several sources share: one signal at a time, whoever tells it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import abc

from semflux.operators.lift import Attached, subscribe_to
from semflux.operators.run import Run

T = TypeVar("T")


class Gate:
    """Calls come through one at a time and in order, from whatever thread, and however deep inside one another."""

    __slots__ = ("_busy", "_lock", "_queue")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._busy = False

    def enter(self, function: Callable[..., object], *args: Any) -> None:
        """Call it now, or after those that came before it; who is inside calls it then."""
        with self._lock:
            if self._busy:
                self._queue.append((function, args))
                return
            self._busy = True
        try:
            while True:
                function(*args)
                with self._lock:
                    if not self._queue:
                        self._busy = False
                        return
                    function, args = self._queue.popleft()
        except BaseException:
            with self._lock:
                self._busy = False
                self._queue.clear()
            raise


def unwrapped(source: abc.ObservableBase[T]) -> abc.ObservableBase[T]:
    """What a Flux or Mono is made of, without the edge that its `subscribe` puts below; others as they are."""
    found: abc.ObservableBase[T] = getattr(source, "observable", source)
    return found


class Inner(abc.ObserverBase[Any], Attached):
    """The observer of one source of several."""

    __slots__ = ("_on_completed", "_on_error", "_on_next")

    def __init__(
        self,
        on_next: Callable[[Inner, Any], object],
        on_error: Callable[[Inner, Exception], object],
        on_completed: Callable[[Inner], object],
    ) -> None:
        super().__init__()
        self._on_next = on_next
        self._on_error = on_error
        self._on_completed = on_completed

    def begin(self, source: abc.ObservableBase[Any], run: Run) -> None:
        """Subscribe to *source*, with a Run of its own on the scheduler of *run*: its demand is its own."""
        run.alone = False
        self.connect(subscribe_to(unwrapped(source), self, Run(scheduler=run.scheduler).within(run)))

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self._on_next(self, value)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self._let_go()
            self._on_error(self, error)

    def on_completed(self) -> None:
        if not self.stopped:
            self._let_go()
            self._on_completed(self)


__all__ = ("Gate", "Inner", "unwrapped")
