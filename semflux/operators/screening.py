"""`ScreenLink`: a screen at work; `hold_back`, `guard` and `redact` are made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.events import AnyChatEvent
from semflux.fold import Fold
from semflux.matching import Matcher
from semflux.operators.lift import Link, Owned
from semflux.operators.run import Run
from semflux.refold import Refold
from semflux.screen import LANES, Lane, Screen, Stop
from semflux.wire.limits import BOUNDED_BEFORE


class ScreenLink(Link[AnyChatEvent, AnyChatEvent]):
    """Lets events through a screen, and ends the stream where that says so."""

    __slots__ = ("_key", "_lanes", "_make", "_refold", "_screen", "_stops")

    def __init__(
        self,
        below: abc.ObserverBase[AnyChatEvent],
        run: Run,
        make: Callable[[], Matcher],
        lanes: Iterable[Lane],
        stop: Stop | None,
        key: object,
    ) -> None:
        super().__init__(below, run)
        self._make = make
        self._lanes = lanes
        self._stops = stop
        self._key = key
        """Its operator's: each attempt of a recovery below has a link of its own, and they share one fold."""
        self._refold: Refold | None = None
        self._screen: Screen | None = None

    def _screened(self) -> tuple[Screen, Refold]:
        if self._screen is None or self._refold is None:
            self._refold = refold_of(self.run, self._key)
            self._screen = Screen(self._make, self._lanes, self._refold, self._stops)
        return self._screen, self._refold

    def on_next(self, value: AnyChatEvent) -> None:
        if self.stopped:
            return
        screen, refold = self._screened()
        try:
            screen.take(value)
        except Exception as error:
            self.fail(refold.failure(error))
            return
        self._deliver(screen)

    def _deliver(self, screen: Screen) -> None:
        was = screen.stopped
        down = self.below.on_next
        for event in screen.ready():
            down(event)
            if self.stopped:
                return
        if screen.stopped and not was and not screen.over and self._stops is not None:
            self._stop_stream(self._stops)

    def _stop_stream(self, stop: Stop) -> None:
        run = self.run
        if run.ends_in_order:
            if stop.fails:
                run.fail(stop.error(None), self)
            else:
                run.abort(stop.reason)
        elif run.driver is None:
            # Events by hand: there is no stream of ours to end in order.
            self.fail(stop.error(None))
        # Else the end is on its way, and becomes another one here.

    def _finish(self) -> None:
        """Let out what waits, at the end of the source."""
        screen, _ = self._screened()
        screen.finish()
        self._deliver(screen)

    def on_error(self, error: Exception) -> None:
        if self.stopped:
            return
        _, refold = self._screened()
        try:
            self._finish()
        except Exception as raised:
            raised.__context__ = error
            error = raised
        refold.amend(self.run.state.fold)
        self._forget()
        super().on_error(refold.failure(error))

    def on_completed(self) -> None:
        if self.stopped:
            return
        screen, refold = self._screened()
        try:
            self._finish()
        except Exception as raised:
            self.fail(refold.failure(raised))
            return
        self._forget()
        error = screen.error
        if error is None and self._stops is not None and screen.stopped and not screen.over:
            # An operator above has ended the stream without its terminal event.
            error = self._stops.error(None)
        if error is None:
            super().on_completed()
        else:
            super().on_error(error)

    def _forget(self) -> None:
        self._screen = None
        self._refold = None

    def dispose(self) -> None:
        self._forget()
        super().dispose()


def refold_of(run: Run, key: object) -> Refold:
    """What folds anew for the operator *key*, in *run*."""
    state = run.state
    fold = state.folds.get(key)
    if fold is None:
        fold = state.folds[key] = Fold(state.response_id, BOUNDED_BEFORE)
    return Refold(fold)


def screen(
    name: str, make: Callable[[], Matcher], lanes: Iterable[Lane], stop: Stop | None = None
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """The operator *name*, of a screen.

    Raises:
        ConfigurationError: if *lanes* names something else than what there is.
    """
    chosen: frozenset[Lane] = frozenset(lanes)
    unknown = chosen - set(LANES)
    if unknown or not chosen:
        raise ConfigurationError(
            f"{name}(lanes=...): {min(unknown)!r} is none of {', '.join(LANES)}"
            if unknown
            else f"{name}(lanes=...) needs one of {', '.join(LANES)}"
        )

    def screened(source: abc.ObservableBase[AnyChatEvent]) -> Observable[AnyChatEvent]:
        key = object()
        return Owned(source, lambda below, run: ScreenLink(below, run, make, chosen, stop, key))

    return screened


__all__ = ("ScreenLink", "refold_of", "screen")
