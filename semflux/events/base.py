"""`ChatEvent`: what every event has, and the drafts that events are made from.

An event is frozen. Making a frozen object with a dozen fields is the dearest thing on the way of a
chunk, so the pipeline works on *drafts*: each event class has one subclass of the same memory
layout whose fields can be set. The last stage stamps a draft and turns it into its frozen class, in
place, before anybody else has seen it.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Self

import attrs

from semflux.errors import SemfluxError
from semflux.events.types import ChatEventGroup, ChatEventPhase, ChatEventType
from semflux.frozen import EMPTY, FrozenDict, clip, freeze
from semflux.messages import ToolCall
from semflux.response import ChatResponse, CitedSource, MediaBlock, StepResponse
from semflux.usage import Usage

if TYPE_CHECKING:
    from semflux.events import AnyChatEvent

SCHEMA_VERSION = 1
"""The version that `to_dict` writes; it changes when a reader of the old form would misread."""


@attrs.frozen(kw_only=True)
class Origin:
    """What all events of one step share; they point to the same object."""

    response_id: str = ""
    """Our id of the stream, one per subscription."""
    provider_response_id: str | None = None
    """The vendor's id of the answer; None until it is known."""
    step: int = 0
    """The number of the model call in the stream, from 0."""
    dialect: str | None = None
    """The wire format it came in; None for events that were made by hand."""
    model: str | None = None
    """The model as the provider names it; None until it is known."""


NO_ORIGIN = Origin()
"""The origin of events that have none: made by hand, and not delivered yet."""


@attrs.frozen(repr=False, eq=False)
class ChatEvent:
    """The base of the 31 event classes. Fields that a class does not have answer None.

    Events compare by meaning: *seq*, *time* and *origin* are left out.
    """

    type: ClassVar[ChatEventType]
    group: ClassVar[ChatEventGroup]
    phase: ClassVar[ChatEventPhase]
    is_draft: ClassVar[bool] = False
    draft_class: ClassVar[builtins.type[Any]]
    frozen_class: ClassVar[builtins.type[Any]]

    origin: Origin = attrs.field(default=NO_ORIGIN, kw_only=True, eq=False)
    """What the events of its step share."""
    item_id: str | None = attrs.field(default=None, kw_only=True)
    """The vendor's id of the block; None when unknown."""
    index: int | None = attrs.field(default=None, kw_only=True)
    """The vendor's index of the block; None when unknown."""
    raw_type: str | None = attrs.field(default=None, kw_only=True)
    """The vendor's own name of the event; None where no frame stands behind it."""
    attributes: FrozenDict[str, Any] = attrs.field(default=EMPTY, kw_only=True, converter=freeze)
    """Further facts by name, such as "implied", "repaired", "made_up_id" or "logprobs"."""
    seq: int = attrs.field(default=-1, kw_only=True, eq=False)
    """Its place in the order of delivery, from 0; -1 until it is delivered."""
    time: float = attrs.field(default=0.0, kw_only=True, eq=False)
    """When it was delivered, in seconds since 1970; 0.0 until then."""

    @property
    def response_id(self) -> str:
        """Our id of the stream, one per subscription."""
        return self.origin.response_id

    @property
    def provider_response_id(self) -> str | None:
        """The vendor's id of the answer; None until it is known."""
        return self.origin.provider_response_id

    @property
    def step(self) -> int:
        """The number of the model call in the stream, from 0."""
        return self.origin.step

    @property
    def timestamp(self) -> datetime:
        """When it was delivered, in UTC."""
        return datetime.fromtimestamp(self.time, UTC)

    @property
    def text(self) -> str | None:
        """Its text; None where the type has none."""
        return None

    @property
    def sub_type(self) -> str | None:
        """What kind of its type it is; None where the type has no kinds."""
        return None

    @property
    def name(self) -> str | None:
        """The name of the tool; None where there is none."""
        return None

    @property
    def tool_call_id(self) -> str | None:
        """The id of the call it belongs to; None where there is none."""
        return None

    @property
    def tool_call(self) -> ToolCall | None:
        """The complete call; None where the type has none."""
        return None

    @property
    def block(self) -> MediaBlock | None:
        """The media; None where the type has none."""
        return None

    @property
    def citation(self) -> CitedSource | None:
        """The source; None where the type has none."""
        return None

    @property
    def usage(self) -> Usage | None:
        """Usage; None where the type has none, or the provider gave none."""
        return None

    @property
    def response(self) -> ChatResponse | StepResponse | None:
        """The response so far; None where the type has none."""
        return None

    @property
    def error(self) -> SemfluxError | None:
        """The failure; None where the type has none."""
        return None

    @property
    def raw(self) -> Any:
        """The vendor's own object, deeply immutable; None where the type has none."""
        return None

    @property
    def is_terminal(self) -> bool:
        """True for RESPONSE_END, ABORT and ERROR: nothing follows."""
        return False

    @property
    def is_delta(self) -> bool:
        """True if it is a piece of something: text, thinking, arguments, media, refusal."""
        return self.phase is ChatEventPhase.DELTA

    @property
    def is_content(self) -> bool:
        """True outside LIFECYCLE, STEP and META: something the model said or did."""
        return self.type.is_content

    @property
    def has_text(self) -> bool:
        """True if *text* is there and not empty."""
        return bool(self.text)

    def is_(self, *types: ChatEventType) -> bool:
        """True if it is of one of *types*."""
        return self.type in types

    def in_group(self, *groups: ChatEventGroup) -> bool:
        """True if it belongs to one of *groups*."""
        return self.group in groups

    def to_dict(self) -> dict[str, Any]:
        """The event as a JSON-able object; `from_dict` gives an equal event back."""
        return _codec.encode(self)

    @staticmethod
    def from_dict(fields: dict[str, Any]) -> AnyChatEvent:
        """The event that `to_dict` wrote.

        Raises:
            ConfigurationError: if *fields* is no event, or of a later version than this library reads.
        """
        return _codec.decode(fields)

    @classmethod
    def draft(cls) -> builtins.type[Self]:
        """The class of its drafts: same fields, all positional, and they can be set."""
        draft: builtins.type[Self] = cls.draft_class
        return draft

    # Written once, not by attrs for each of 31 classes: that would be a fifth of the time to import them.

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._meaning() == other._meaning()

    def __hash__(self) -> int:
        return hash((self.frozen_class, self._meaning()))

    def _meaning(self) -> tuple[Any, ...]:
        """What it is compared by."""
        return tuple(
            [
                getattr(self, field.name) if field.eq_key is None else field.eq_key(getattr(self, field.name))
                for field in attrs.fields(self.frozen_class)
                if field.eq
            ]
        )

    def __repr__(self) -> str:
        parts = [
            f"{field.name}={clip(value)}"
            for field in attrs.fields(self.frozen_class)
            if field.name not in _UNSHOWN and (value := getattr(self, field.name)) != field.default
        ]
        return f"{self.frozen_class.__name__}({', '.join(parts)})"


_UNSHOWN = frozenset({"origin", "time", "raw"})


class Codec:
    """How events become JSON; set by `codec.py`, which knows the classes that come after this one."""

    encode: Callable[[ChatEvent], dict[str, Any]]
    decode: Callable[[dict[str, Any]], AnyChatEvent]


_codec = Codec()


def install_codec(
    encode: Callable[[ChatEvent], dict[str, Any]], decode: Callable[[dict[str, Any]], AnyChatEvent]
) -> None:
    """Say how `to_dict` and `from_dict` work."""
    _codec.encode = encode
    _codec.decode = decode


def define_draft(cls: type[ChatEvent]) -> None:
    """Make the draft class of *cls*.

    Its `__init__` is written out, as attrs does it, since a loop over the fields would cost more than
    all else on the way of an event. Own fields come first, in their order, then the common ones.
    """
    fields = attrs.fields(cls)
    own = [f for f in fields if f.name not in _COMMON]
    parameters = ["self"]
    namespace: dict[str, Any] = {}
    for field in (*own, *(f for f in fields if f.name in _PASSED)):
        namespace[f"_d_{field.name}"] = None if field.default is attrs.NOTHING else field.default
        parameters.append(f"{field.name}=_d_{field.name}")
    body = [f"    self.{p.split('=')[0]} = {p.split('=')[0]}" for p in parameters[1:]]
    source = "\n".join(
        [f"def __init__({', '.join(parameters)}):", *body, "    self.seq = -1", "    self.time = 0.0"]
    )
    scope: dict[str, Any] = {}
    exec(source, namespace, scope)  # noqa: S102  # field names of our own classes, nothing from outside
    draft = type(
        cls.__name__,
        (cls,),
        {
            "__slots__": (),
            "__module__": cls.__module__,
            "__qualname__": f"{cls.__name__}.draft",
            "__init__": scope["__init__"],
            # Both, or setting a field goes through Python: the two share one slot of the type.
            "__setattr__": object.__setattr__,
            "__delattr__": object.__delattr__,
            "__hash__": None,
            "is_draft": True,
        },
    )
    cls.draft_class = draft
    cls.frozen_class = cls


_PASSED = frozenset({"origin", "item_id", "index", "raw_type", "attributes"})
_COMMON = _PASSED | {"seq", "time"}

_set = object.__setattr__


def thaw_event(event: Any) -> Any:
    """*event* as a draft: itself if it is one, else a copy, since a frozen one may have been seen."""
    if event.is_draft:
        return event
    cls: Any = event.__class__
    copy: Any = object.__new__(cls.draft_class)
    for field in attrs.fields(cls):
        _set(copy, field.name, getattr(event, field.name))
    return copy


def change_event(event: Any, **fields: Any) -> Any:
    """A copy of *event*, which has been delivered, with other *fields*; all else, its place and time too, is the same."""
    draft = thaw_event(event)
    for name, value in fields.items():
        setattr(draft, name, value)
    return freeze_event(draft)


def freeze_event(draft: Any) -> Any:
    """The draft itself, frozen from now on."""
    draft.__class__ = draft.frozen_class
    return draft


__all__ = (
    "NO_ORIGIN",
    "SCHEMA_VERSION",
    "ChatEvent",
    "Codec",
    "Origin",
    "change_event",
    "define_draft",
    "freeze_event",
    "install_codec",
    "thaw_event",
)
