"""Events as JSON: `encode`, `decode`, and the JSON Schema; all three are made from the classes.

```
{"v": 1, "type": "TEXT_DELTA", "seq": 4, "timestamp": "2026-01-02T03:04:05.678901+00:00",
 "response_id": "r1", "step": 0, "provider_response_id": ..., "dialect": ..., "provider_model": ...,
 "item_id": ..., "index": 0, "raw_type": ..., "attributes": {...},
 "text": "Hel"}
```

The keys are the names of the event's attributes. Two come from its origin alone: "dialect", and
"provider_model" (`Origin.model`; STEP_START has a "model" of its own: the one that was asked for).
Common keys are left out where they say nothing (but for "step"); the class's own are always there.

Nothing is lost, to the microsecond: `decode(encode(event))` is equal to *event* and encodes to the
same object. An error comes back as its own class where this library knows it, else as
`SemfluxError`, with the event's response as its *partial*. Numbers that are not finite, and lone
surrogates, stay what they are in Python; whether they survive the text of JSON is up to the writer.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, cast

import attrs

from semflux.errors import ConfigurationError
from semflux.events.base import NO_ORIGIN, SCHEMA_VERSION, ChatEvent, Origin, freeze_event, install_codec
from semflux.events.classes import EVENT_CLASSES, Error
from semflux.events.shapes import (
    DEFINITIONS,
    WHOLE,
    Field,
    MisfitError,
    Shape,
    as_object,
    fields_of,
    must_be,
    object_schema,
    read_fields,
    shape_of,
)
from semflux.events.types import ChatEventType
from semflux.frozen import clip, thaw

if TYPE_CHECKING:
    from collections.abc import Callable

    from semflux.events import AnyChatEvent

_MICROSECOND = 1e-6


@attrs.frozen
class _Form:
    """What the codec knows of one event class."""

    cls: type[ChatEvent]
    fields: tuple[Field, ...]
    """Its own fields."""
    writers: tuple[tuple[str, Callable[[Any], Any] | None], ...]
    """The same, ready for writing."""


@cache
def _form(type_: ChatEventType) -> _Form:
    """Made when it is first needed: to make all 31 takes longer than to import the rest of the room."""
    cls = EVENT_CLASSES[type_]
    own = fields_of(cls, but={field.name for field in attrs.fields(ChatEvent)})
    return _Form(cls, own, tuple([(field.name, field.shape.write) for field in own]))


def _read_version(value: Any) -> Any:
    version = WHOLE.read(value)
    if version > SCHEMA_VERSION:
        raise MisfitError(
            f"is from a later version of semflux; this one reads up to {SCHEMA_VERSION}: upgrade it"
        )
    if version < SCHEMA_VERSION:
        raise MisfitError(f"must be {SCHEMA_VERSION}")
    return version


def _read_type(value: Any) -> Any:
    if not isinstance(value, str):
        raise must_be("a string", value)
    try:
        return ChatEventType(value)
    except ValueError:
        raise MisfitError(f"is {clip(value)}, which is no event type") from None


def _read_timestamp(value: Any) -> Any:
    if not isinstance(value, str):
        raise must_be("a string", value)
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise MisfitError("must say its offset from UTC")
        return datetime.fromtimestamp(moment.timestamp(), UTC).timestamp()
    except (ValueError, OverflowError):
        raise MisfitError("must be a date and time in ISO 8601") from None


_HEAD = (
    Field("v", Shape({"const": SCHEMA_VERSION}, _read_version), required=True),
    Field("type", Shape({"enum": [type_.value for type_ in ChatEventType]}, _read_type), required=True),
)
_STAMP = (
    Field("seq", WHOLE, required=False),
    Field("timestamp", Shape({"type": "string", "format": "date-time"}, _read_timestamp), required=False),
)
_ORIGIN = (
    Field("response_id", shape_of(str), required=False),
    Field("step", WHOLE, required=False),
    Field("provider_response_id", shape_of(str | None), required=False),
    Field("dialect", shape_of(str | None), required=False),
    Field("provider_model", shape_of(str | None), required=False),
)
_BLOCK = fields_of(ChatEvent, but={"origin", "seq", "time"})


def encode(event: ChatEvent) -> dict[str, Any]:
    """*event* as a JSON-able object."""
    fields: dict[str, Any] = {"v": SCHEMA_VERSION, "type": event.type.value}
    if event.seq >= 0:
        fields["seq"] = event.seq
    if not -_MICROSECOND < event.time < _MICROSECOND:
        fields["timestamp"] = event.timestamp.isoformat(timespec="microseconds")
    origin = event.origin
    if origin.response_id:
        fields["response_id"] = origin.response_id
    fields["step"] = origin.step
    if origin.provider_response_id is not None:
        fields["provider_response_id"] = origin.provider_response_id
    if origin.dialect is not None:
        fields["dialect"] = origin.dialect
    if origin.model is not None:
        fields["provider_model"] = origin.model
    if event.item_id is not None:
        fields["item_id"] = event.item_id
    if event.index is not None:
        fields["index"] = event.index
    if event.raw_type is not None:
        fields["raw_type"] = event.raw_type
    if event.attributes:
        fields["attributes"] = thaw(event.attributes)
    for name, write in _form(event.type).writers:
        value = getattr(event, name)
        fields[name] = value if write is None or value is None else write(value)
    return fields


def decode(fields: dict[str, Any]) -> AnyChatEvent:
    """The event that `encode` wrote as *fields*; keys that it does not know are ignored.

    Raises:
        ConfigurationError: if *fields* is no event, or of a later version than this library reads;
            it names the field.
    """
    try:
        return _decode(fields)
    except MisfitError as misfit:
        subject = f"event field {misfit.where}" if misfit.path else "an event"
        raise ConfigurationError(f"{subject} {misfit}", kind="event") from None


def _decode(fields: dict[str, Any]) -> AnyChatEvent:
    source = as_object(fields)
    form = _form(read_fields(source, _HEAD)["type"])
    stamp = read_fields(source, _STAMP)
    values = read_fields(source, _BLOCK)
    values.update(read_fields(source, form.fields))
    values["origin"] = _origin(**read_fields(source, _ORIGIN))
    draft = form.cls.draft()(**values)
    if form.cls is Error:
        # The stream's last response and the error's are the same object; it is written only once.
        values["error"].partial = values.get("response")
    draft.seq = stamp.get("seq", -1)  # type: ignore[misc]  # drafts can be set
    draft.time = stamp.get("timestamp", 0.0)  # type: ignore[misc]  # as above
    return cast("AnyChatEvent", freeze_event(draft))


@lru_cache(maxsize=64)
def _origin(
    response_id: str = "",
    step: int = 0,
    provider_response_id: str | None = None,
    dialect: str | None = None,
    provider_model: str | None = None,
) -> Origin:
    """The origin of these values; events of one step share it, as they did when they were written."""
    origin = Origin(
        response_id=response_id,
        provider_response_id=provider_response_id,
        step=step,
        dialect=dialect,
        model=provider_model,
    )
    return NO_ORIGIN if origin == NO_ORIGIN else origin


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of `encode`'s objects: one of 31 event types, told apart by "type".

    It is published as `docs/chat-event.schema.json`.
    """
    definitions: dict[str, Any] = {
        "ChatEvent": object_schema(ChatEvent, (*_HEAD, *_STAMP, *_ORIGIN, *_BLOCK))
    }
    forms = [_form(type_) for type_ in ChatEventType]
    for form in forms:
        own = object_schema(form.cls, form.fields)
        own["properties"] = {"type": {"const": form.cls.type.value}, **own["properties"]}
        definitions[form.cls.__name__] = {"allOf": [{"$ref": "#/$defs/ChatEvent"}], **own}
    definitions.update(sorted(DEFINITIONS.items()))
    refs = {form.cls.type.value: f"#/$defs/{form.cls.__name__}" for form in forms}
    whole: dict[str, Any] = thaw(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "semflux chat event",
            "description": "One event of a chat stream, as written by ChatEvent.to_dict().",
            "oneOf": [{"$ref": ref} for ref in refs.values()],
            "discriminator": {"propertyName": "type", "mapping": refs},
            "$defs": definitions,
        }
    )
    return whole


install_codec(encode, decode)

__all__ = ("decode", "encode", "schema")
