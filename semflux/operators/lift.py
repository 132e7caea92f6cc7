"""How an operator is made: a slim observer between two, and an observable that puts it there.

RxPY wraps each step of a chain in an observer of its own, with locks and checks: between two
operators of ours there is none. Towards anything else an operator of ours behaves as an RxPY one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from semflux.errors import SemfluxError
from semflux.operators.hooks import Hooks
from semflux.operators.run import Run, run_of
from semflux.stage import Stage

In = TypeVar("In")
Out = TypeVar("Out")

NOTHING = Disposable()
"""A disposable of nothing, for what has ended already."""


class Direct(Observable[Out]):
    """An observable that may be subscribed to without RxPY's wrapper: its observers are ours."""

    def subscribe_link(self, observer: abc.ObserverBase[Out], run: Run) -> abc.DisposableBase:
        """Subscribe an observer of ours, which minds by itself what comes after an end."""
        return self._subscribe_core(observer, run.scheduler)


def _subscribe(
    source: abc.ObservableBase[In], observer: abc.ObserverBase[In], run: Run
) -> abc.DisposableBase:
    if isinstance(source, Direct):
        direct: Direct[In] = source
        return direct.subscribe_link(observer, run)
    run.alone = False
    return source.subscribe(observer, scheduler=run.scheduler)


def subscribe_to(
    source: abc.ObservableBase[In], observer: abc.ObserverBase[In], run: Run
) -> abc.DisposableBase:
    """Subscribe *observer* on behalf of *run*. What goes wrong in doing so is its `on_error`."""
    try:
        if run.variables is not None:
            return run.inside(_subscribe, source, observer, run)
        return _subscribe(source, observer, run)
    except Exception as error:
        # RxPY hands what a subscribe function raises back to the caller; here it is the stream's error.
        observer.on_error(error)
        return NOTHING


class Attached(abc.DisposableBase):
    """Holds the subscription to what is above it, for as long as it is not over."""

    __slots__ = ("stopped", "upstream")

    def __init__(self) -> None:
        self.stopped: bool = False
        """True once nothing more will come."""
        self.upstream: abc.DisposableBase | None = None

    def connect(self, upstream: abc.DisposableBase) -> None:
        """What to dispose of; at once if it is over already."""
        if self.stopped:
            upstream.dispose()
        else:
            self.upstream = upstream

    def _stop(self) -> None:
        """It is over."""
        self.stopped = True

    def _let_go(self) -> abc.DisposableBase | None:
        """It is over, and holds nothing any more, whoever holds the subscription. What was above it."""
        self.stopped = True
        upstream, self.upstream = self.upstream, None
        return upstream

    def dispose(self) -> None:
        """It is over, and so is what is above it."""
        upstream = self._let_go()
        if upstream is not None:
            upstream.dispose()


class Link(abc.ObserverBase[In], Attached, Generic[In, Out]):
    """One operator at work in one subscription: an observer of what is above it.

    Guarantees to what is below: nothing after an end, nothing after `dispose`; `dispose` is
    idempotent, may come from inside `on_next`, and reaches the source before it returns.
    """

    __slots__ = ("below", "run")

    def __init__(self, below: abc.ObserverBase[Out], run: Run) -> None:
        super().__init__()
        self.below: abc.ObserverBase[Out] = below
        self.run: Run = run

    def on_next(self, value: In) -> None:
        raise NotImplementedError  # pragma: no cover  # abstract

    def on_error(self, error: Exception) -> None:
        if not self.stopped:
            self._stop()
            self.below.on_error(error)

    def on_completed(self) -> None:
        if not self.stopped:
            self._stop()
            self.below.on_completed()

    def fail(self, error: Exception) -> None:
        """A function of the user raised: stop what is above, then tell what is below."""
        if not self.stopped:
            self.cut(Hooks.operator_error(error))

    def cut(self, error: Exception) -> None:
        """Another source failed: stop what is above, then tell what is below."""
        if not self.stopped:
            self.dispose()
            self.below.on_error(error)

    def fail_in_order(self, error: SemfluxError) -> None:
        """Fail a stream of ours at its first stage: what is open is ended, and *error* comes back with what had
        arrived. Another one as `fail` does."""
        if self.run.ends_in_order:
            self.run.fail(error, self)
        else:
            self.fail(error)

    def complete(self) -> None:
        """It is over before the source is: stop what is above, then tell what is below."""
        if not self.stopped:
            self.dispose()
            self.below.on_completed()


class PassLink(Link[Any, Any]):
    """A link that passes on what comes."""

    __slots__ = ()

    def on_next(self, value: Any) -> None:
        if not self.stopped:
            self.below.on_next(value)


class EndingLink(Link[In, Out]):
    """A link that ends the stream with one of its items."""

    __slots__ = ("_cancelled",)

    def __init__(self, below: abc.ObserverBase[Out], run: Run) -> None:
        super().__init__(below, run)
        self._cancelled = False

    def end_with(self, value: Out, error: Exception | None = None) -> None:
        """Cancel what is above, deliver *value*, then tell the end, or *error*, to a subscriber that is still
        there after it."""
        super().dispose()
        self.below.on_next(value)
        if self._cancelled:
            return
        if error is None:
            self.below.on_completed()
        else:
            self.below.on_error(error)

    def dispose(self) -> None:
        self._cancelled = True
        super().dispose()


class Lifted(Direct[Out]):
    """A source with an operator on it."""

    def __init__(
        self, source: abc.ObservableBase[Any], make: Callable[[abc.ObserverBase[Out], Run], Link[Any, Out]]
    ) -> None:
        super().__init__()
        self.source = source
        """What it is put on."""
        self._make = make

    def _subscribe_core(
        self, observer: abc.ObserverBase[Out], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler)
        link = self._make(observer, run)
        link.connect(subscribe_to(self.source, link, run))
        return link


class Owned(Lifted[Out]):
    """A source with an operator on it that has to do with its run: fails it, or drives it on.

    Where another source of the subscription (of a merge, of a concat) is the driver of the run already, the
    operator and its source get a run of their own, which is pushed to.
    """

    def _subscribe_core(
        self, observer: abc.ObserverBase[Out], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        return super()._subscribe_core(observer, run_of(scheduler).undriven().scheduler)


def lift(
    make: Callable[[abc.ObserverBase[Out], Run], Link[Any, Out]],
) -> Callable[[abc.ObservableBase[Any]], Observable[Out]]:
    """The RxPY operator whose links *make* makes."""
    return lambda source: Lifted(source, make)


class StageLink(Link[Any, Any]):
    """A stage at work.

    A failure of the stage enters the stream at its first stage, so that what is open is ended in
    order. A stage that says that it has `ended` ends the stream with its `error`.
    """

    __slots__ = ("stage",)

    def __init__(self, stage: Stage[Any, Any], below: abc.ObserverBase[Any], run: Run) -> None:
        super().__init__(below, run)
        self.stage: Stage[Any, Any] = stage
        run.head = self

    def on_next(self, value: Any) -> None:
        if self.stopped:
            return
        try:
            self._emit(self.stage.push(value))
        except SemfluxError as error:
            if self.stopped:
                # Not the stage's: what is below has left, and then raised.
                raise
            self.run.fail(error)

    def _emit(self, items: Any) -> None:
        below = self.below
        for item in items:
            below.on_next(item)
            if self.stopped:
                return
        stage = self.stage
        if getattr(stage, "ended", False):
            self._end(cast("Any", stage).error)

    def _end(self, error: Exception | None) -> None:
        if self.stopped:
            return
        self.dispose()
        if error is None:
            self.below.on_completed()
        else:
            self.below.on_error(error)

    def on_error(self, error: Exception) -> None:
        if self.stopped:
            return
        self._emit(self.stage.finish(error))
        self._end(getattr(self.stage, "error", None) or error)

    def on_completed(self) -> None:
        if self.stopped:
            return
        try:
            self._emit(self.stage.finish())
        except SemfluxError as error:
            self.on_error(error)
        self._end(None)


def stage_operator(
    make: Callable[[Run], Stage[Any, Any]],
) -> Callable[[abc.ObservableBase[Any]], Observable[Any]]:
    """The RxPY operator of a stage; *make* gives one for each subscription."""
    return lift(lambda below, run: StageLink(make(run), below, run))


__all__ = (
    "NOTHING",
    "Attached",
    "Direct",
    "EndingLink",
    "Lifted",
    "Link",
    "Owned",
    "PassLink",
    "StageLink",
    "lift",
    "stage_operator",
    "subscribe_to",
)
