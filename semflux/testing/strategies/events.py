"""Streams of events: as a subscriber sees them, and in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st

from semflux.aggregate import Aggregator
from semflux.errors import ConnectionLostError
from semflux.events import (
    Abort,
    AnyChatEvent,
    ChatEventGroup,
    Citation,
    ContentFilter,
    Custom,
    Heartbeat,
    MediaDone,
    MediaPartial,
    Origin,
    Raw,
    RefusalDelta,
    ResponseEnd,
    ResponseStart,
    ServerToolArgsDelta,
    ServerToolResult,
    ServerToolStart,
    Status,
    StepEnd,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingRedacted,
    ThinkingSignature,
    ThinkingStart,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    UsageEvent,
)
from semflux.messages import ToolCall
from semflux.normalize import Normalizer
from semflux.response import CitedSource, MediaBlock, SearchResult
from semflux.stage import chain
from semflux.state import RunState
from semflux.terminate import Terminator
from semflux.testing.strategies.answers import CallPart, calls, pieces, words
from semflux.usage import Usage

G = ChatEventGroup

End: TypeAlias = Literal["RESPONSE_END", "ABORT", "ERROR"]
"""How a stream ends."""

Draft: TypeAlias = Callable[[Origin], Any]
"""Makes an event that nobody has seen yet."""


def _of(cls: Any, *values: Any, **fields: Any) -> Draft:
    return lambda origin: cls.draft_class(*values, origin=origin, **fields)


_small = st.integers(0, 9)
_usage = st.builds(Usage, input_tokens=_small, output_tokens=st.none() | _small)
_urls = st.sampled_from(["https://a.example/1", "https://b.example/2"])


@st.composite
def _texts(draw: st.DrawFn) -> list[Draft]:
    """One block of text, or two that overlap."""
    count = draw(st.sampled_from([1, 1, 2]))
    blocks = [[(index, piece) for piece in draw(pieces)] for index in range(count)]
    said = draw(_merged(blocks))
    starts = [_of(TextStart, index=index) for index in range(count)]
    ends = [_of(TextEnd, index=index) for index in range(count)]
    deltas = [_of(TextDelta, piece, index=index) for index, piece in said]
    if draw(st.booleans()):
        cited = CitedSource(url=draw(_urls), cited_text=draw(words))
        deltas.insert(draw(st.integers(0, len(deltas))), _of(Citation, cited))
    return [*starts, *deltas, *ends]


@st.composite
def _thoughts(draw: st.DrawFn) -> list[Draft]:
    if draw(st.integers(0, 4)) == 0:
        return [_of(ThinkingRedacted, "b3BhcXVl")]
    signed = [_of(ThinkingSignature, "c2ln")] if draw(st.booleans()) else []
    return [
        _of(ThinkingStart),
        *[_of(ThinkingDelta, piece) for piece in draw(pieces)],
        *signed,
        _of(ThinkingEnd),
    ]


@st.composite
def _calls(draw: st.DrawFn, names: Callable[[], int]) -> list[Draft]:
    """One call or two, their pieces interleaved; some have been carried out."""
    made = [draw(calls(names())) for _ in range(draw(st.sampled_from([1, 1, 2])))]
    said = draw(_merged([[(call, piece) for piece in call.pieces] for call in made]))
    starts = [_of(ToolCallStart, call.id, call.name) for call in made]
    ends = [_of(ToolCallEnd, call.id, call.name) for call in made]
    results = [
        _of(ToolResult, _call(call), draw(words), draw(st.booleans())) for call in made if draw(st.booleans())
    ]
    return [*starts, *[_of(ToolCallArgsDelta, piece, call.id, None) for call, piece in said], *ends, *results]


def _call(call: CallPart) -> ToolCall:
    return ToolCall(id=call.id, name=call.name, arguments=call.arguments, arguments_json="".join(call.pieces))


@st.composite
def _server(draw: st.DrawFn, names: Callable[[], int]) -> list[Draft]:
    item = f"server_{names()}"
    kind = draw(st.sampled_from(["web_search", "mcp"]))
    hits = [SearchResult(title=draw(words), url=draw(_urls)) for _ in range(draw(st.integers(0, 2)))]
    return [
        _of(ServerToolStart, kind, item_id=item),
        *[_of(ServerToolArgsDelta, piece, kind, item_id=item) for piece in draw(pieces)],
        _of(ServerToolResult, kind, draw(words), tuple(hits), item_id=item),
    ]


def _merged(lists: Sequence[list[Any]]) -> st.SearchStrategy[list[Any]]:
    """Their items, those of each in their order."""
    owners = [index for index, items in enumerate(lists) for _ in items]

    def merge(order: list[int]) -> list[Any]:
        left = [iter(items) for items in lists]
        return [next(left[owner]) for owner in order]

    return st.permutations(owners).map(merge)


def _told(usage: Usage) -> list[Draft]:
    return [_of(UsageEvent, usage)]


_single: dict[ChatEventGroup, st.SearchStrategy[list[Draft]]] = {
    G.TEXT: _texts(),
    G.THINKING: _thoughts(),
    G.MEDIA: st.sampled_from(
        [
            [
                _of(MediaPartial, MediaBlock(kind="image", data="aGk=")),
                _of(MediaDone, MediaBlock(kind="image", data="aGk=")),
            ],
            [_of(MediaDone, MediaBlock(kind="audio", url="https://a.example/1", transcript="hi"))],
        ]
    ),
    G.SAFETY: st.sampled_from(
        [[_of(RefusalDelta, "I "), _of(RefusalDelta, "won't")], [_of(ContentFilter, "violence", None, False)]]
    ),
    G.META: st.one_of(
        _usage.map(_told),
        st.just([_of(Raw, {"unknown": (1, None)})]),
        st.just([_of(Custom, "choice", {"index": 1})]),
    ),
    G.LIFECYCLE: st.sampled_from([[_of(Heartbeat)], [_of(Status, "in_progress", None)]]),
}


@st.composite
def event_streams(
    draw: st.DrawFn,
    *,
    ends: Iterable[End] = ("RESPONSE_END", "ABORT", "ERROR"),
    groups: Iterable[ChatEventGroup] | None = None,
    max_steps: int = 2,
    max_parts: int = 4,
) -> list[AnyChatEvent]:
    """Whole streams as a subscriber sees them, from RESPONSE_START to the terminal event: legal, numbered, with what they came
    to on STEP_END and at the end.

    *ends*: the terminal events that may come. *groups*: what a step may have in it; default: every group. *max_steps*,
    *max_parts*: how many steps, and how many blocks, calls and the like in one.

    They are made by the stages that every stream of this library runs through.
    """
    allowed = sorted(G if groups is None else set(groups))
    inside = [group for group in allowed if group is not G.STEP]
    state = RunState(response_id="sf_test", time=lambda: 1_700_000_000.0)
    pipe = chain(Normalizer(state), Aggregator(state), Terminator(state))
    events: list[AnyChatEvent] = []
    count = 0

    def name() -> int:
        nonlocal count
        count += 1
        return count

    def push(draft: Draft) -> None:
        events.extend(pipe.push(draft(state.origin)))

    push(_of(ResponseStart))
    end = draw(st.sampled_from(sorted(ends)))
    steps = draw(st.integers(0 if end == "ERROR" else 1, max_steps))
    for step in range(steps):
        state.step += 1
        state.origin = Origin(
            response_id=state.response_id,
            provider_response_id=f"msg_{step}",
            step=step,
            dialect="test",
            model="m",
        )
        push(_of(StepStart, "m"))
        for group in draw(st.lists(st.sampled_from(inside), max_size=max_parts)) if inside else ():
            if group is G.TOOL_CALL:
                drafts = draw(_calls(name))
            elif group is G.SERVER_TOOL:
                drafts = draw(_server(name))
            else:
                drafts = draw(_single[group])
            for draft in drafts:
                push(draft)
        if step < steps - 1 or end == "RESPONSE_END" or draw(st.booleans()):
            push(_of(StepEnd, None, None, "stop"))
    if end == "RESPONSE_END":
        push(_of(ResponseEnd))
    elif end == "ABORT":
        push(_of(Abort, "stopped"))
    else:
        events.extend(pipe.finish(ConnectionLostError("the connection broke", kind="reset")))
    return events


_identities: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"item_id": "a", "index": 0}, {"item_id": "b", "index": 1}, {"index": 0}, {"item_id": "a"}]
)
_halves = st.sampled_from(["a", "bc", "ü", "\ud83d", "\ude00"])
_call_ids = st.sampled_from([(None, None), ("c1", None), ("c2", "f"), (None, "g")])


@st.composite
def _wild(draw: st.DrawFn) -> Draft:
    at = draw(_identities)
    kind = draw(st.integers(0, 7))
    if kind == 0:
        return _of(draw(st.sampled_from([TextStart, TextEnd, ThinkingStart, ThinkingEnd])), **at)
    if kind == 1:
        return _of(draw(st.sampled_from([TextDelta, ThinkingDelta])), draw(_halves), **at)
    if kind == 2:
        return _of(draw(st.sampled_from([ToolCallStart, ToolCallEnd])), *draw(_call_ids), **at)
    if kind == 3:
        return _of(ToolCallArgsDelta, draw(_halves), *draw(_call_ids), **at)
    if kind == 4:
        return _of(draw(st.sampled_from([ServerToolStart, ServerToolResult])), "mcp", **at)
    if kind == 5:
        return _of(ServerToolArgsDelta, draw(_halves), "mcp", **at)
    if kind == 6:
        return _of(RefusalDelta, draw(_halves))
    return draw(st.sampled_from(_ASIDE))


_ASIDE: list[Draft] = [
    _of(UsageEvent, Usage(output_tokens=1)),
    _of(Heartbeat),
    _of(Raw, {"x": 1}),
    _of(Citation, CitedSource(url="https://a.example/1")),
    _of(ThinkingSignature, "s"),
    _of(ThinkingRedacted, "s"),
]


_ORIGIN = Origin(response_id="sf_test")


def wild_events(
    *, max_size: int = 25, also: st.SearchStrategy[Any] | None = None, origin: Origin = _ORIGIN
) -> st.SearchStrategy[list[Any]]:
    """Drafts of content in any order, with starts and ends that are missing, halves of letters and unknown calls: what
    a normalizer must make a stream of. None is a step, or an end. *also*: others, to be mixed in, made anew each time.
    *origin*: that of all of them."""

    def made(draft: Draft) -> Any:
        return draft(origin)

    ours: st.SearchStrategy[Any] = _wild().map(made)
    return st.lists(ours if also is None else ours | also, max_size=max_size)


__all__ = ("Draft", "End", "event_streams", "wild_events")
