"""What the tests of recovery share: answers, sources that give another one each time, and `walk`.

`walk` takes a stream in, in one of four ways, and holds what came to what is always true: one response id, and
ERROR is the error of the stream. `Walk.table` is what came, one line an event, for a test to write down.
"""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import reactivex
from reactivex.disposable import Disposable

import semflux
from semflux import ChatModel, ChatStream, Flux, violations_of
from semflux.clock import VirtualClock
from semflux.errors import SemfluxError, TransportError
from semflux.events import AnyChatEvent, ChatEvent
from semflux.operators.run import Run
from semflux.transport import Recording, ReplayTransport
from tests.frames import DONE, cc, cu, sse, tc
from tests.operators.watching import Watcher

HEL, LO = cc({"content": "Hel"}), cc({"content": "lo"})
OK = (HEL, LO, cc(finish="stop"), cu(3, 2), DONE)
"""A whole answer, "Hello", that used 3 and 2 tokens."""
CUT = (cc({"content": "par"}), cu(3, 1))
"""It breaks off after a piece of text, with 3 and 1 tokens used."""
BEGUN = (cc({"role": "assistant", "content": ""}),)
"""It breaks off before any content."""
REFUSED = (sse({"error": {"message": "no such model", "code": 404}}),)
"""An error in the stream that is not worth trying again."""
BUSY = (sse({"error": {"message": "busy", "code": 503}}),)
"""One that is."""
TOOL = (cc(tc(0, "c1", "f", '{"a":')),)
"""It breaks off inside a tool call."""

WAYS = ("pull", "push", "await", "parse")
"""How a stream is taken in; "parse" is a synchronous source, pushed without an event loop."""
WAITING = ("pull", "push", "await")
"""Those with time."""


def answer(*body: Any, **fields: Any) -> Recording:
    return Recording(body=body, **fields)


def status(code: int, **headers: str) -> Recording:
    """A refusal before any stream."""
    return Recording(
        status=code,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        body=(b'{"error": {"message": "busy"}}',),
    )


class Turns:
    """An iterable of bytes that is another one each time."""

    def __init__(self, *turns: Sequence[bytes]) -> None:
        self._turns = list(turns)
        self.taken = 0

    def __iter__(self) -> Iterator[bytes]:
        self.taken += 1
        return iter(self._turns.pop(0))


def model_of(*answers: Any, clock: VirtualClock | None = None, **settings: Any) -> ChatModel:
    """A model that gives one of *answers* after the other: frames, a Recording, or an error."""
    recordings = [a if isinstance(a, (Recording, TransportError)) else answer(*a) for a in answers]
    settings.setdefault("max_retries", 0)
    transport = ReplayTransport(*recordings, clock=clock)
    return ChatModel("openai-chat:m", api_key="key", transport=transport, clock=clock, **settings)


def source(way: str, *answers: Any, clock: VirtualClock | None = None, **settings: Any) -> ChatStream:
    """A stream that gives one of *answers* after the other."""
    keep = settings.pop("event_filter", None)
    if way == "parse":
        return semflux.parse(Turns(*answers), dialect="openai-chat", event_filter=keep, **settings)
    return model_of(*answers, clock=clock, **settings).prompt("hi").event_filter(keep).stream()


@attrs.frozen
class Walk:
    """What came of a stream."""

    events: list[AnyChatEvent]
    error: Exception | None

    @property
    def response(self) -> Any:
        return self.events[-1].response

    @property
    def types(self) -> list[str]:
        return [event.type.value for event in self.events]

    @property
    def table(self) -> str:
        """seq, step, type, and what it says."""
        return "\n".join([row(event) for event in self.events])

    def check(self, *, seq: Any = "exact") -> Walk:
        """Hold it to the rules of order."""
        assert violations_of(self.events, seq=seq) == (), self.table
        return self


def row(event: ChatEvent) -> str:
    parts = [str(event.seq), str(event.step), event.type.value]
    if event.is_delta:
        parts.append(repr(event.text))
    elif event.sub_type is not None:
        parts += [event.sub_type, repr(event.text)]
    elif event.tool_call_id is not None:
        parts.append(event.tool_call_id)
    if event.error is not None:
        parts.append(type(event.error).__name__)
    if event.response is not None:
        parts.append("partial" if event.response.partial else "whole")
    if event.usage is not None:
        parts.append(f"{event.usage.input_tokens}+{event.usage.output_tokens}")
    return " ".join(parts)


def rows(text: str) -> str:
    """What a test writes down as a table."""
    return textwrap.dedent(text).strip()


HELLO = """
    {0} {1} STEP_START
    {2} {1} TEXT_START
    {3} {1} TEXT_DELTA 'Hel'
    {4} {1} TEXT_DELTA 'lo'
    {5} {1} TEXT_END
    {6} {1} USAGE 3+2
    {7} {1} STEP_END whole 3+2
    {8} {1} RESPONSE_END whole {9}
"""


def hello(seq: int, step: int, usage: str) -> str:
    """The lines of a last step that says "Hello"; *usage* is that of the stream."""
    return rows(HELLO.format(seq, step, *range(seq + 1, seq + 8), usage))


RESTARTED = rows("""
    0 0 RESPONSE_START
    1 0 STEP_START
    2 0 TEXT_START
    3 0 TEXT_DELTA 'par'
    4 0 USAGE 3+1
    5 0 TEXT_END
    6 0 STEP_END partial 3+1
    7 0 STATUS {} '{}after TruncatedStreamError'
""")
"""The lines of CUT, and of what is told after it."""


def raise_at(text: str) -> Any:
    def function(event: AnyChatEvent) -> None:
        if event.text == text:
            raise KeyError(text)

    return function


def walk(way: str, stream: ChatStream, clock: VirtualClock | None = None) -> Walk:
    """All of *stream*, in time of *clock* where one is given."""
    seen = Walk([], None) if way == "parse" else asyncio.run(_walk(way, stream, clock))
    if way == "parse":
        seen = _pushed(stream)
    ids = {event.response_id for event in seen.events}
    assert len(ids) == 1, ids
    last = seen.events[-1]
    if last.is_terminal:
        assert last.error is seen.error
        assert isinstance(last.response, semflux.ChatResponse)
        assert {last.response.response_id} == ids
        if isinstance(seen.error, SemfluxError):
            assert seen.error.partial is not None
    return seen


def _pushed(stream: ChatStream) -> Walk:
    events: list[AnyChatEvent] = []
    ends: list[Exception | None] = []
    stream.subscribe(events.append, ends.append, lambda: ends.append(None))
    assert len(ends) == 1
    return Walk(events, ends[0])


async def _walk(way: str, stream: ChatStream, clock: VirtualClock | None) -> Walk:
    events: list[AnyChatEvent] = []
    task = asyncio.ensure_future(_TAKE[way](stream, events))
    if clock is not None:
        await until_done(task, clock)
    async with asyncio.timeout(5):
        return Walk(events, await task)


async def until_done(task: asyncio.Future[Any], clock: VirtualClock, step: float = 0.25) -> None:
    """Let time pass until *task* is done."""
    for _ in range(4000):
        await settle()
        if task.done():
            return
        clock.advance(step)
    raise AssertionError("still not done")


async def settle(turns: int = 20) -> None:
    """Let everything happen that needs no time."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def pull(stream: ChatStream, events: list[AnyChatEvent]) -> Exception | None:
    try:
        async for event in stream:
            events.append(event)  # noqa: PERF401  # those before an error count too
    except Exception as error:
        return error
    return None


async def push(stream: ChatStream, events: list[AnyChatEvent]) -> Exception | None:
    end: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    stream.subscribe(events.append, end.set_result, lambda: end.set_result(None))
    return await end


async def _await(stream: ChatStream, events: list[AnyChatEvent]) -> Exception | None:
    try:
        await stream.do_on_next(events.append).collect_list()
    except Exception as error:
        return error
    return None


async def collected(stream: ChatStream) -> list[AnyChatEvent]:
    """All events, pulled."""
    return [event async for event in stream]


class Failing:
    """A cold source that fails so many times, after so many items; asynchronous where a clock is given."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.subscribed = 0
        self.disposed = 0
        self.times: list[float] = []

    def flux(self, clock: VirtualClock | None = None) -> Flux[Any]:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            self.subscribed += 1
            if clock is not None:
                self.times.append(clock.monotonic())
            outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
            *items, end = outcome if isinstance(outcome, tuple) else (outcome,)
            for item in items:
                observer.on_next(item)
            if isinstance(end, Exception):
                observer.on_error(end)
            elif end is not None:
                observer.on_next(end)
                observer.on_completed()
            return Disposable(self._dispose)

        return Flux(reactivex.create(subscribe))

    def _dispose(self) -> None:
        self.disposed += 1


def watch(stream: Any) -> Watcher:
    watcher = Watcher()
    stream.subscribe(watcher.on_next, watcher.on_error, watcher.on_completed)
    return watcher


def virtual(stream: Flux[Any], clock: VirtualClock) -> Watcher:
    """Subscribed to in time of *clock*, without an event loop."""
    watcher = Watcher()
    run = Run()
    run.clock = clock
    watcher.subscription = stream.to_observable().subscribe(  # type: ignore[attr-defined]
        watcher.on_next, watcher.on_error, watcher.on_completed, scheduler=run.scheduler
    )
    return watcher


_TAKE: dict[str, Callable[..., Any]] = {"pull": pull, "push": push, "await": _await}

__all__ = (
    "BEGUN",
    "BUSY",
    "CUT",
    "HEL",
    "LO",
    "OK",
    "REFUSED",
    "RESTARTED",
    "TOOL",
    "WAITING",
    "WAYS",
    "Failing",
    "Turns",
    "Walk",
    "answer",
    "collected",
    "hello",
    "model_of",
    "pull",
    "push",
    "raise_at",
    "row",
    "rows",
    "settle",
    "source",
    "status",
    "until_done",
    "virtual",
    "walk",
    "watch",
)
