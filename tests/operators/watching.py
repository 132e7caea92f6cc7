"""What the tests of operators look through: a source that counts, and a subscriber that writes all down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import reactivex
from reactivex import Observable, abc, operators
from reactivex.disposable import Disposable

from semflux.operators.hooks import Hooks

END = ("end",)

plain: Any = reactivex
rx: Any = operators
"""RxPY as it is run: its types say little about lambdas, and do not know a Flux for an observable."""


def item(value: Any) -> tuple[str, Any]:
    return ("item", value)


def error(value: Exception) -> tuple[str, Any]:
    return ("error", value)


failed = error


class Probe:
    """A cold, synchronous RxPY source that minds its disposal, and what was done to it."""

    def __init__(self, *items: Any, fails: Exception | None = None, ends: bool = True) -> None:
        self.items = items
        self.fails = fails
        self.ends = ends
        self.subscribed = 0
        self.disposed = 0
        self.emitted: list[Any] = []
        self.log: list[Any] | None = None
        """Where a disposal is written down too."""

    @property
    def source(self) -> Observable[Any]:
        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            self.subscribed += 1
            state = {"open": True}

            def emit(*_: Any) -> None:
                for each in self.items:
                    if not state["open"]:
                        return
                    self.emitted.append(each)
                    observer.on_next(each)
                if not state["open"]:
                    return
                if self.fails is not None:
                    observer.on_error(self.fails)
                elif self.ends:
                    observer.on_completed()

            def dispose() -> None:
                if state["open"]:
                    state["open"] = False
                    self.disposed += 1
                    if self.log is not None:
                        self.log.append("source disposed")

            assert scheduler is not None
            scheduler.schedule(emit)
            return Disposable(dispose)

        return reactivex.create(subscribe)


def leaving(stream: Any, at: int = 1) -> list[Any]:
    """What a subscriber is told that leaves at its item number *at*; the end, too, should it come."""
    told: list[Any] = []
    kept: list[Any] = []

    def leave(value: Any) -> None:
        told.append(value)
        if len(told) == at:
            kept[0].dispose()

    kept.append(stream.subscribe(leave, on_completed=lambda: told.append(END)))
    return told


class Watcher(abc.ObserverBase[Any]):
    """A subscriber that keeps all signals."""

    def __init__(self) -> None:
        self.signals: list[Any] = []

    def on_next(self, value: Any) -> None:
        self.signals.append(item(value))

    def on_error(self, error: Exception) -> None:
        self.signals.append(failed(error))

    def on_completed(self) -> None:
        self.signals.append(END)

    @property
    def items(self) -> list[Any]:
        return [signal[1] for signal in self.signals if signal[0] == "item"]

    @property
    def error(self) -> Any:
        return next((signal[1] for signal in self.signals if signal[0] == "error"), None)


def watch(source: Any) -> Watcher:
    """Subscribe, as anybody does, with three functions."""
    watcher = Watcher()
    source.subscribe(watcher.on_next, watcher.on_error, watcher.on_completed)
    return watcher


def signals(source: Any) -> list[Any]:
    """What a synchronous source gives."""
    return watch(source).signals


class Dropped:
    """What the hooks got."""

    def __init__(self) -> None:
        self.errors: list[Any] = []
        self.items: list[Any] = []


@contextmanager
def hooked() -> Iterator[Dropped]:
    """Catch what is dropped."""
    dropped = Dropped()
    Hooks.on_error_dropped(dropped.errors.append)
    Hooks.on_next_dropped(dropped.items.append)
    try:
        yield dropped
    finally:
        Hooks.on_error_dropped(None)
        Hooks.on_next_dropped(None)


def raising(raised: Exception, at: Any = None) -> Callable[..., Any]:
    """A function that raises; *at* one argument only, if it is given."""

    def function(*args: Any) -> Any:
        if at is None or args == (at,):
            raise raised
        return args[0] if args else None

    return function


def numbers(count: int) -> Iterable[int]:
    return range(1, count + 1)
