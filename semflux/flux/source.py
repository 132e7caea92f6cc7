"""`ChatSource`: a pump, its Subject and the pipeline as one cold observable."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from reactivex import abc
from reactivex.scheduler import CurrentThreadScheduler

from semflux.errors import ConfigurationError
from semflux.events import AnyChatEvent, ChatEvent
from semflux.flux.pump import Pump
from semflux.operators.lift import Direct
from semflux.operators.pipeline import PipelineLink
from semflux.operators.run import Run, run_of


class ChatSource(Direct[AnyChatEvent]):
    """Each subscription gets a pump of its own, so a request of its own."""

    is_chat = True
    """Another attempt of it can go on in the same `Run`."""

    def __init__(
        self,
        make_pump: Callable[[Run], Pump],
        keep: Callable[[ChatEvent], object] | None = None,
        prepare: Callable[[Run], None] | None = None,
    ) -> None:
        super().__init__()
        self._make_pump = make_pump
        self._keep = keep
        self._prepare = prepare
        self.runs: weakref.WeakSet[Run] = weakref.WeakSet()
        """The subscriptions that there are."""

    def _subscribe_core(
        self, observer: abc.ObserverBase[AnyChatEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        run = run_of(scheduler).undriven()
        if self._prepare is not None and not run.state.started:
            self._prepare(run)
        self.runs.add(run)
        pump = self._make_pump(run)
        link = PipelineLink(observer, run, self._keep)
        pump.subject.subscribe_link(link, run)
        link.connect(pump)
        run.drive(pump)
        if not run.pull:
            # From the trampoline, so that a disposable exists before the first event.
            start = _start_task if pump.waits else Pump.run_now

            def begin(scheduler: abc.SchedulerBase, state: object = None) -> None:
                run.inside(start, pump)

            CurrentThreadScheduler.singleton().schedule(begin)
        return link


def _start_task(pump: Pump) -> None:
    if pump.over:
        return
    try:
        pump.start_task()
    except RuntimeError:
        pump.fail(
            ConfigurationError(
                "this stream waits for its bytes and no event loop is running here: subscribe inside "
                "asyncio.run(...), or use block(), block_first() or block_last()"
            )
        )


__all__ = ("ChatSource",)
