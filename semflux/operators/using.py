"""`using`: a resource for each subscription, cleaned up with its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.hooks import Hooks
from semflux.operators.inner import unwrapped
from semflux.operators.lift import NOTHING, Direct, PassLink, subscribe_to
from semflux.operators.run import Run, run_of

T = TypeVar("T")
R = TypeVar("R")


class _UsingLink(PassLink):
    """Calls the clean-up exactly once, whatever comes first."""

    __slots__ = ("_cleanup", "_eager")

    def __init__(
        self, below: abc.ObserverBase[Any], run: Run, cleanup: Callable[[], object], *, eager: bool
    ) -> None:
        super().__init__(below, run)
        self._cleanup: Callable[[], object] | None = cleanup
        self._eager = eager

    def on_error(self, error: Exception) -> None:
        if self.stopped:
            return
        if self._eager:
            raised = self._clean()
            if raised is not None:
                raised.__context__ = error
            super().on_error(raised or error)
            return
        try:
            super().on_error(error)
        finally:
            self._clean_late()

    def on_completed(self) -> None:
        if self.stopped:
            return
        if self._eager:
            raised = self._clean()
            if raised is None:
                super().on_completed()
            else:
                super().on_error(raised)
            return
        try:
            super().on_completed()
        finally:
            self._clean_late()

    def dispose(self) -> None:
        super().dispose()
        self._clean_late()

    def _clean(self) -> Exception | None:
        cleanup, self._cleanup = self._cleanup, None
        if cleanup is not None:
            try:
                cleanup()
            except Exception as raised:
                return raised
        return None

    def _clean_late(self) -> None:
        """Nobody listens to how it went."""
        raised = self._clean()
        if raised is not None:
            Hooks.drop_error(raised)


class _Using(Direct[T]):
    def __init__(
        self,
        resource: Callable[[], Any],
        make: Callable[[Any], abc.ObservableBase[T]],
        cleanup: Callable[[Any], object],
        *,
        eager: bool,
    ) -> None:
        super().__init__()
        self._resource = resource
        self._make = make
        self._cleanup = cleanup
        self._eager = eager

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        try:
            resource = self._resource()
        except Exception as error:
            observer.on_error(error)
            return NOTHING
        link = _UsingLink(observer, run, lambda: self._cleanup(resource), eager=self._eager)
        try:
            source = self._make(resource)
        except Exception as error:
            link.on_error(error)
            return NOTHING
        # The Run goes on to the source: it is pulled as it would be without a resource.
        link.connect(subscribe_to(unwrapped(source), link, run))
        return link


def using(
    resource: Callable[[], R],
    make: Callable[[R], abc.ObservableBase[T]],
    cleanup: Callable[[R], object],
    *,
    eager: bool = True,
) -> Observable[T]:
    """The stream that *make* gives for what *resource* gives, both called for each subscription; *cleanup* gets the
    resource exactly once.

    *eager*: before the end or the error goes down; what *cleanup* raises is the error then, with that of the stream as
    its `__context__`. Else after it, and after a cancel, when the source is cancelled: what it raises goes to
    `Hooks.on_error_dropped`. What *resource* raises is the error; what *make* raises too, after the clean-up.

    ```
    resource() --1--2--|              using(resource, make, cleanup)
               --1--2--cleanup() |
    ```
    """
    return _Using(resource, make, cleanup, eager=eager)


__all__ = ("using",)
