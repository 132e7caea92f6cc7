"""What operators over several sources share: one signal at a time, whoever tells it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import abc

from semflux.operators.lift import Attached, Link, subscribe_to
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


class OneThread(Gate):
    """A gate without a lock, for calls from one thread at a time."""

    __slots__ = ()

    def enter(self, function: Callable[..., object], *args: Any) -> None:
        if self._busy:
            self._queue.append((function, args))
            return
        self._busy = True
        try:
            function(*args)
            while self._queue:
                function, args = self._queue.popleft()
                function(*args)
        finally:
            self._busy = False
            self._queue.clear()


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
        """Subscribe to *source*, with a Run of its own on the scheduler of *run*, in its time: its demand is its own."""
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


class Sequel(Link[Any, Any]):
    """Hands its Run to one source after another, so that each is pulled as the first one is."""

    __slots__ = ("_gate", "_seen")

    stopped: bool
    upstream: abc.DisposableBase | None

    def __init__(self, below: abc.ObserverBase[Any], run: Run) -> None:
        super().__init__(below, run)
        self._gate = Gate()
        self._seen = False
        """True once the source that it is at has had an item."""

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self._seen = True
            self.below.on_next(value)

    def on_completed(self) -> None:
        if not self.stopped:
            # Not from inside the end of a source: a thousand of them would be a thousand deep.
            self._gate.enter(self._ended)

    def _ended(self) -> None:
        """A source has ended; inside the gate."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def follow(self, source: abc.ObservableBase[Any]) -> None:
        """Subscribe to the next one."""
        self.run.go_on()
        self.connect(subscribe_to(source, self, self.run))


class Holding(Inner):
    """One of several whose items come in some order, and what came of it before its turn."""

    __slots__ = ("items", "over")

    def __init__(
        self,
        on_next: Callable[[Any, Any], object],
        on_error: Callable[[Any, Exception], object],
        on_completed: Callable[[Any], object],
    ) -> None:
        super().__init__(on_next, on_error, on_completed)
        self.items: deque[Any] = deque()
        """What waits."""
        self.over: bool = False
        """True once it has ended."""


class MapLink(Link[Any, Any]):
    """Makes a source of each item. All signals, of the source and of the inner ones, come through one gate."""

    __slots__ = ("_function", "_gate")

    stopped: bool
    upstream: abc.DisposableBase | None

    def __init__(self, below: abc.ObserverBase[Any], run: Run, function: Callable[[Any], Any]) -> None:
        super().__init__(below, run)
        run.alone = False
        self._function = function
        self._gate = Gate()

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self._gate.enter(self._take, value)

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self.upstream = None
            self._gate.enter(self._source_failed, error)

    def on_completed(self) -> None:
        if not self.stopped:
            self.upstream = None
            self._gate.enter(self._source_ended)

    def _inner_next(self, inner: Inner, value: Any) -> None:
        self._gate.enter(self._inner_gave, inner, value)

    def _inner_error(self, inner: Inner, error: Exception) -> None:
        self._gate.enter(self._inner_failed, inner, error)

    def _inner_completed(self, inner: Inner) -> None:
        self._gate.enter(self._inner_ended, inner)

    def new_inner(self) -> Inner:
        """The observer of another source."""
        return Inner(self._inner_next, self._inner_error, self._inner_completed)

    def source_of(self, value: Any) -> Any:
        """What the function gives for *value*; None if it raised, and the stream has failed."""
        try:
            return self._function(value)
        except Exception as error:
            self.fail(error)
            return None

    def begin(self, inner: Inner, source: Any) -> None:
        """Subscribe *inner* to *source*."""
        inner.begin(source, self.run)
        if self.stopped:
            inner.dispose()

    # Inside the gate

    def _take(self, value: Any) -> None:
        """The next item of the source."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def _source_failed(self, error: Exception) -> None:
        self.cut(error)

    def _source_ended(self) -> None:
        raise NotImplementedError  # pragma: no cover  # abstract

    def _inner_gave(self, inner: Any, value: Any) -> None:
        """The next item of an inner source."""
        if not self.stopped:
            self.below.on_next(value)

    def _inner_failed(self, inner: Any, error: Exception) -> None:
        self.cut(error)

    def _inner_ended(self, inner: Any) -> None:
        raise NotImplementedError  # pragma: no cover  # abstract


__all__ = ("Gate", "Holding", "Inner", "MapLink", "OneThread", "Sequel", "unwrapped")
