"""`do_on_request`: see how much the subscriber asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from semflux.operators.lift import NOTHING, Lifted, PassLink, subscribe_to
from semflux.operators.one_reader import no_link
from semflux.operators.run import UNBOUNDED, Run, run_of

T = TypeVar("T")


class _DoOnRequestLink(PassLink):
    __slots__ = ("_all", "_callback")

    def __init__(self, below: abc.ObserverBase[Any], run: Run, callback: Callable[[int], object]) -> None:
        super().__init__(below, run)
        self._callback = callback
        self._all = False
        run.asked.append(self.ask)

    def ask(self, more: int) -> None:
        """The subscriber wants *more* items."""
        if self.stopped or self._all:
            return
        # Who has asked for all has nothing more to ask for.
        self._all = self.run.demand >= UNBOUNDED
        try:
            self._callback(UNBOUNDED if self._all else more)
        except Exception as error:
            self.fail(error)

    def on_error(self, error: Exception) -> None:
        self._forget()
        super().on_error(error)

    def on_completed(self) -> None:
        self._forget()
        super().on_completed()

    def dispose(self) -> None:
        self._forget()
        super().dispose()

    def _forget(self) -> None:
        if self.ask in self.run.asked:
            self.run.asked.remove(self.ask)


class _DoOnRequest(Lifted[T]):
    def __init__(self, source: abc.ObservableBase[T], callback: Callable[[int], object]) -> None:
        super().__init__(source, no_link)
        self._callback = callback

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        link = _DoOnRequestLink(observer, run, self._callback)
        if run.demand > 0:
            link.ask(run.demand)
        if link.stopped:
            return NOTHING
        link.connect(subscribe_to(self.source, link, run))
        return link


def do_on_request(callback: Callable[[int], object]) -> Callable[[abc.ObservableBase[T]], Observable[T]]:
    """Calls *callback* with how many more items the subscriber wants, before the source learns of it. If it raises, the
    source is cancelled and that is the error.

    A subscription has one demand, that of its last subscriber: what operators in between leave out or put together
    is not counted anew. A callback subscriber wants all at once: one call, with `sys.maxsize`. `async for` wants
    64 items when it begins, and when all that it had are taken, as many as will make it 64 again. Operators that ask
    by themselves (`limit_rate`, `share`, a merge) have a demand of their own: what is above them sees theirs.

    ```
    --1--2--|        do_on_request(print), with async for
    64 --1--2--|
    ```
    """
    return lambda source: _DoOnRequest(source, callback)


__all__ = ("do_on_request",)
