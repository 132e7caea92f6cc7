"""What a dialect is: a framing, a parser for one stream, and a builder of requests.

A dialect is one file. Its parser turns frames into drafts through an `Out`, which fills in what all
events of the step share. It keeps all state across frames itself, and it does no ordering: starts
and ends that the wire format does not have are the normalizer's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast, overload

import attrs

from semflux.errors import BadFrameError, NotAStreamError
from semflux.events import (
    EVENT_CLASSES,
    ChatEventType,
    Citation,
    Heartbeat,
    Origin,
    Raw,
    StepEnd,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageEvent,
)
from semflux.frozen import EMPTY, FrozenDict, freeze
from semflux.normalize import SEAL
from semflux.request import ThinkTags
from semflux.response import CitedSource, FinishReason
from semflux.state import Boundaries, RunState
from semflux.usage import Usage
from semflux.wire.json import replace_surrogates


@attrs.frozen(kw_only=True)
class ParserOptions:
    """What a parser cannot know from the bytes."""

    think_tags: ThinkTags = "auto"
    """Whether `<think>` in the text is reasoning: "auto" when it is the first thing of a step's text,
    "always" wherever it stands, or "never"."""
    provider: str | None = None
    """The provider's name, for errors; None: the dialect's."""


class Out:
    """Makes the drafts of one step. What is passed is what the frame says; the rest is filled in."""

    __slots__ = ("_dialect", "end", "identified", "origin", "raw_type", "state")

    def __init__(self, state: RunState, dialect: str) -> None:
        self.state: RunState = state
        self._dialect = dialect
        self.identified: bool = False
        """True once both its id and its model are known."""
        self.origin: Origin = Origin(response_id=state.response_id, step=max(state.step, 0), dialect=dialect)
        state.origin = self.origin
        self.raw_type: str | None = None
        """The vendor's name of the event that is being decoded."""
        self.end: Any = None
        """The held STEP_END, once the finish signal has come."""

    def identify(self, provider_response_id: Any, model: Any) -> None:
        """The provider says who it is. The first answer counts; an empty one is none."""
        if self.identified:
            return
        origin = self.origin
        known_id = origin.provider_response_id or text_of(provider_response_id) or None
        known_model = origin.model or text_of(model) or None
        self.identified = known_id is not None and known_model is not None
        if known_id != origin.provider_response_id or known_model != origin.model:
            self.origin = Origin(
                response_id=origin.response_id,
                provider_response_id=known_id,
                step=origin.step,
                dialect=origin.dialect,
                model=known_model,
            )
            self.state.origin = self.origin

    def text(
        self,
        text: str,
        index: int | None = None,
        item_id: str | None = None,
        attributes: FrozenDict[str, Any] = EMPTY,
    ) -> Any:
        """A piece of the answer's text."""
        return _TEXT(text, self.origin, item_id, index, self.raw_type, attributes)

    def thinking(self, text: str, index: int | None = None, item_id: str | None = None) -> Any:
        """A piece of reasoning."""
        return _THINKING(text, self.origin, item_id, index, self.raw_type, EMPTY)

    def text_start(self, index: int | None = None, item_id: str | None = None) -> Any:
        """A block of text begins."""
        return _TEXT_START(self.origin, item_id, index, self.raw_type, EMPTY)

    def text_end(self, index: int | None = None, item_id: str | None = None) -> Any:
        """A block of text is whole."""
        return _TEXT_END(self.origin, item_id, index, self.raw_type, EMPTY)

    def thinking_start(self, index: int | None = None, item_id: str | None = None) -> Any:
        """A block of reasoning begins."""
        return _THINKING_START(self.origin, item_id, index, self.raw_type, EMPTY)

    def thinking_end(self, index: int | None = None, item_id: str | None = None) -> Any:
        """A block of reasoning is whole."""
        return _THINKING_END(self.origin, item_id, index, self.raw_type, EMPTY)

    def tool_start(
        self, id: str | None, name: str | None, index: int | None = None, item_id: str | None = None
    ) -> Any:
        """A call begins, by a frame of its own."""
        return _TOOL_START(id, name, self.origin, item_id, index, self.raw_type, EMPTY)

    def tool_args(
        self,
        fragment: str,
        index: int | None = None,
        id: str | None = None,
        name: str | None = None,
        item_id: str | None = None,
    ) -> Any:
        """A piece of a call: of its arguments, of its identity, or of both."""
        return _TOOL_ARGS(fragment, id, name, self.origin, item_id, index, self.raw_type, EMPTY)

    def tool_end(self, id: str | None = None, index: int | None = None, item_id: str | None = None) -> Any:
        """A call is whole, by a frame of its own."""
        return _TOOL_END(id, None, None, self.origin, item_id, index, self.raw_type, EMPTY)

    def usage(self, usage: Usage) -> Any:
        """What the frame says of usage."""
        return _USAGE(usage, self.origin, raw_type=self.raw_type)

    def citation(self, source: CitedSource, index: int | None = None, item_id: str | None = None) -> Any:
        """A source of the answer."""
        return _CITATION(source, self.origin, item_id, index, self.raw_type)

    def heartbeat(self) -> Any:
        """A sign of life."""
        return _HEARTBEAT(self.origin, raw_type=self.raw_type)

    def raw(self, value: Any, index: int | None = None, block: Any = None) -> Any:
        """Something nobody modelled. *block*: the whole content block, where it must be sent back."""
        attributes: FrozenDict[str, Any] = EMPTY if block is None else FrozenDict(block=freeze(block))
        return _RAW(freeze(value), self.origin, None, index, self.raw_type, attributes)

    def event(self, type: ChatEventType, *values: Any, **fields: Any) -> Any:
        """Any other event: its own fields in order, the common ones by name."""
        fields.setdefault("origin", self.origin)
        fields.setdefault("raw_type", self.raw_type)
        return EVENT_CLASSES[type].draft_class(*values, **fields)

    def finish(self, reason: FinishReason, provider_reason: str | None) -> Any:
        """The finish signal: all blocks and calls end here; the end of the step is held.

        A second signal changes nothing but what the first one left open.
        """
        if self.end is None:
            self.end = _STEP_END(None, None, reason, provider_reason, self.origin, raw_type=self.raw_type)
        return SEAL

    def repair(self, kind: str, what: str) -> None:
        """Count a departure of the provider from its format; raises RepairError in strict mode."""
        self.state.ledger.repair(kind, what)

    def note(self, kind: str) -> None:
        """Count something that is no departure."""
        self.state.ledger.note(kind)


_TEXT = TextDelta.draft_class
_TEXT_START = TextStart.draft_class
_TEXT_END = TextEnd.draft_class
_THINKING = ThinkingDelta.draft_class
_THINKING_START = ThinkingStart.draft_class
_THINKING_END = ThinkingEnd.draft_class
_TOOL_START = ToolCallStart.draft_class
_TOOL_ARGS = ToolCallArgsDelta.draft_class
_TOOL_END = ToolCallEnd.draft_class
_USAGE = UsageEvent.draft_class
_CITATION = Citation.draft_class
_HEARTBEAT = Heartbeat.draft_class
_RAW = Raw.draft_class
_STEP_END = StepEnd.draft_class


class Parser:
    """Frames of one step in, drafts out. An instance belongs to one step.

    `finished` becomes true with the provider's finish signal, `ended` with its end marker: nothing
    is read after that.

    Raises: `ProviderError` for an error that the provider reports in the stream, `BadFrameError` for
    a frame that cannot be understood.
    """

    def __init__(self, out: Out, options: ParserOptions) -> None:
        self.out = out
        self.options = options
        self.ended = False

    @property
    def finished(self) -> bool:
        """True once the provider's finish signal has come."""
        return self.out.end is not None

    def decode(self, event: str | None, data: bytes) -> Iterable[Any]:
        """What the frame *data*, named *event* by its framing (None: unnamed), says."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def decode_whole(self, data: bytes) -> Iterable[Any]:
        """What a whole, unstreamed answer says: the same events as its stream would give."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def finish(self) -> Iterator[Any]:
        """What was held back, when the bytes have ended."""
        yield from ()

    def missing_end(self) -> None:
        """The bytes ended after the finish signal, but without the end marker."""


@attrs.frozen(kw_only=True)
class Dialect:
    """A wire format, as data."""

    name: str
    """What `dialect=` takes, such as "openai-chat"."""
    title: str
    """What it is, in a few words, for `semflux dialects`."""
    framing: Literal["sse", "ndjson"]
    boundaries: Boundaries
    """Which boundaries the format has."""
    parser: Callable[[Out, ParserOptions], Parser]
    """Makes the parser of one step."""
    end_marker: bytes | None = None
    """Data of the frame that ends the stream and is no JSON; None when there is no such frame."""


@overload
def require(value: Any, kind: type[dict[Any, Any]], where: str) -> dict[str, Any] | None: ...
@overload
def require(value: Any, kind: type[list[Any]], where: str) -> list[Any] | None: ...
@overload
def require(value: Any, kind: type[str], where: str) -> str | None: ...
def require(value: Any, kind: type[Any], where: str) -> Any:
    """*value* if it is a *kind*, None if it is absent.

    Raises:
        BadFrameError: if it is something else; the message names *where*, never the value.
    """
    if value is None or isinstance(value, kind):
        return value
    raise BadFrameError(
        f"{where} is {type(value).__name__}, not {_NAMES[kind]}: the provider's frame has a wrong shape",
        kind="shape",
    )


_NAMES: dict[type[Any], str] = {dict: "an object", list: "an array", str: "a string"}


def whole_object(value: Any) -> dict[str, Any]:
    """The object of a whole answer.

    Raises:
        NotAStreamError: if it is JSON but no object.
    """
    only = list_of(value)
    found = only[0] if len(only) == 1 else value
    if not isinstance(found, dict):
        raise NotAStreamError("the answer is JSON, but neither a stream nor an object")
    return object_of(found)


def object_of(value: Any) -> dict[str, Any]:
    """*value* if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """*value* if it is an array, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """*value* if it is a string, without lone surrogates; else "". For ids, names and whole texts."""
    return replace_surrogates(value) if isinstance(value, str) else ""


def string_of(value: Any) -> str:
    """*value* as it is if it is a string, else "". For pieces, whose surrogates may be half a pair."""
    return value if isinstance(value, str) else ""


def int_of(value: Any) -> int | None:
    """*value* as a whole number; None if it is none. Some vendors send counts as floats."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and math.isfinite(value) and abs(value) < 2**63:
        return int(value)
    return None


__all__ = (
    "Dialect",
    "Out",
    "Parser",
    "ParserOptions",
    "int_of",
    "list_of",
    "object_of",
    "require",
    "string_of",
    "text_of",
    "whole_object",
)
