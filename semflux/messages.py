"""What we ask: messages and their parts, and the tool calls that come back in them.

A `Message` that a model gave (`ChatResponse.message`) holds everything the next request must carry
verbatim: thinking with its signature, redacted thinking, server-tool blocks and blocks of a vendor
that nobody modelled, in stream order.
"""

# pyright does not know what a field with a converter holds, though it is declared.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, cast

import attrs

from semflux.frozen import EMPTY, FrozenDict, clip, clip_url, freeze, thaw

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
"""Who says a message."""


def _size(text: str | None) -> str:
    return "None" if text is None else f"<{len(text)} characters>"


@attrs.frozen(kw_only=True)
class ToolCall:
    """A call of a client-side tool that a model has asked for, complete."""

    id: str = attrs.field(repr=clip)
    """The call's id; made up as `call_{step}_{n}` where the provider gave none."""
    name: str = attrs.field(default="", repr=clip)
    """The tool's name; "" where the provider never sent one."""
    arguments_json: str = attrs.field(default="", repr=clip)
    """The argument text exactly as it came: the joined TOOL_CALL_ARGS_DELTAs. "" when none came."""
    arguments: Any = attrs.field(default=None, converter=freeze, repr=False)
    """The parsed arguments, deeply immutable: `{}` when no fragment came, None when they cannot be
    parsed. Valid JSON that is no object stays as it is; the tool's schema decides about it."""
    arguments_error: str | None = attrs.field(default=None, repr=clip)
    """Why *arguments* is None; None when it is not, or for free text (*kind* "custom")."""
    kind: Literal["function", "custom"] = "function"
    """"custom" for a tool that takes free text: *arguments_json* is that text, never parsed."""

    @property
    def is_complete(self) -> bool:
        """True if the arguments are one whole JSON object, or free text of a custom tool."""
        return self.kind == "custom" or (self.arguments_error is None and isinstance(self.arguments, dict))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able fields; *kind* only where it is not "function"."""
        fields: dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "arguments": thaw(self.arguments),
            "arguments_json": self.arguments_json,
            "arguments_error": self.arguments_error,
        }
        if self.kind != "function":
            fields["kind"] = self.kind
        return fields


@attrs.frozen
class TextPart:
    """Text."""

    text: str = attrs.field(repr=clip)
    """The text itself."""


@attrs.frozen
class ThinkingPart:
    """Reasoning of the model, with the signature that proves it to its provider."""

    text: str = attrs.field(repr=clip)
    """The reasoning as far as the vendor shows it; "" where it shows only a signature."""
    signature: str | None = attrs.field(default=None, repr=_size)
    """The vendor's signature or encrypted content; None when there is none."""
    item_id: str | None = None
    """The vendor's id of the block; None when it has none."""


@attrs.frozen
class RedactedThinkingPart:
    """Reasoning that the provider shows only in encrypted form."""

    data: str = attrs.field(repr=_size)
    """The opaque data, sent back as it came."""


@attrs.frozen
class RefusalPart:
    """The model's words of refusal."""

    text: str = attrs.field(repr=clip)
    """The words."""


@attrs.frozen
class ToolCallPart:
    """A tool call."""

    call: ToolCall
    """The call, complete."""


@attrs.frozen
class ToolResultPart:
    """What a tool gave back."""

    tool_call_id: str
    """The id of the call it answers."""
    text: str = attrs.field(repr=clip)
    """The result as the model is to read it."""
    is_error: bool = False
    """True if the tool failed and *text* says why."""
    name: str | None = None
    """The tool's name; None when unknown (few vendors ask for it)."""


@attrs.frozen
class MediaPart:
    """An image, a sound, a video or a file, by its bytes in base64 or by its address."""

    kind: Literal["image", "audio", "video", "file"]
    """What it is."""
    mime_type: str | None = None
    """Its media type, such as "image/png"; None when unknown."""
    data: str | None = attrs.field(default=None, repr=_size)
    """The content in base64; None when it is given by *url*."""
    url: str | None = attrs.field(default=None, repr=clip_url)
    """Where the content is; None when it is given by *data*."""
    name: str | None = None
    """A file name; None when there is none."""


@attrs.frozen
class VendorPart:
    """A block of one vendor's own, kept and sent back verbatim; other dialects leave it out."""

    dialect: str
    """The dialect whose block it is, such as "anthropic"."""
    raw: Any = attrs.field(converter=freeze, repr=False)
    """The block as it came."""


Part: TypeAlias = (
    TextPart
    | ThinkingPart
    | RedactedThinkingPart
    | RefusalPart
    | ToolCallPart
    | ToolResultPart
    | MediaPart
    | VendorPart
)
"""What a message is made of."""

_PART_NAMES: dict[type[Any], str] = {
    TextPart: "text",
    ThinkingPart: "thinking",
    RedactedThinkingPart: "redacted_thinking",
    RefusalPart: "refusal",
    ToolCallPart: "tool_call",
    ToolResultPart: "tool_result",
    MediaPart: "media",
    VendorPart: "vendor",
}
_PART_CLASSES: dict[str, type[Any]] = {name: cls for cls, name in _PART_NAMES.items()}


def part_tag(cls: type[Part]) -> str:
    """The `type` that parts of class *cls* have in JSON."""
    return _PART_NAMES[cls]


def part_to_dict(part: Part) -> dict[str, Any]:
    """*part* as a JSON-able object with its `type`."""
    fields: dict[str, Any] = {"type": _PART_NAMES[type(part)]}
    for field in attrs.fields(type(part)):
        value = getattr(part, field.name)
        fields[field.name] = value.to_dict() if isinstance(value, ToolCall) else thaw(value)
    return fields


def part_from_dict(fields: dict[str, Any]) -> Part:
    """The part that `part_to_dict` wrote."""
    values = {key: value for key, value in fields.items() if key != "type"}
    if "call" in values:
        values["call"] = ToolCall(**values["call"])
    part: Part = _PART_CLASSES[fields["type"]](**values)
    return part


def _parts(value: str | Part | Iterable[Part]) -> tuple[Part, ...]:
    if isinstance(value, str):
        return (TextPart(value),)
    if isinstance(value, tuple(_PART_NAMES)):
        return (cast("Part", value),)
    return tuple(cast("Iterable[Part]", value))


@attrs.frozen
class Message:
    """One turn of a conversation."""

    role: Role
    """Who says it."""
    parts: tuple[Part, ...] = attrs.field(converter=_parts, default=())
    """Its content in order; a plain string stands for one `TextPart`."""
    attributes: FrozenDict[str, Any] = attrs.field(default=EMPTY, converter=freeze, kw_only=True, repr=False)
    """Notes of the caller's own, never sent."""

    @classmethod
    def system(cls, text: str) -> Message:
        """Instructions to the model."""
        return cls("system", text)

    @classmethod
    def user(cls, content: str | Part | Iterable[Part]) -> Message:
        """What the user says, as text or parts."""
        return cls("user", content)

    @classmethod
    def assistant(cls, content: str | Part | Iterable[Part]) -> Message:
        """What the model said."""
        return cls("assistant", content)

    @classmethod
    def tool(
        cls, tool_call_id: str, text: str, *, is_error: bool = False, name: str | None = None
    ) -> Message:
        """What a tool gave back for the call *tool_call_id*."""
        return cls("tool", ToolResultPart(tool_call_id, text, is_error, name))

    @property
    def text(self) -> str:
        """Its text parts joined."""
        return "".join([part.text for part in self.parts if isinstance(part, TextPart)])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in it, in order."""
        return tuple([part.call for part in self.parts if isinstance(part, ToolCallPart)])

    def to_dict(self) -> dict[str, Any]:
        """JSON-able fields: role, parts, and *attributes* where there are any."""
        fields: dict[str, Any] = {"role": self.role, "parts": [part_to_dict(part) for part in self.parts]}
        if self.attributes:
            fields["attributes"] = thaw(self.attributes)
        return fields

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Message:
        """The message that `to_dict` wrote."""
        parts = [part_from_dict(part) for part in fields["parts"]]
        return cls(fields["role"], parts, attributes=fields.get("attributes", EMPTY))


__all__ = (
    "MediaPart",
    "Message",
    "Part",
    "RedactedThinkingPart",
    "RefusalPart",
    "Role",
    "TextPart",
    "ThinkingPart",
    "ToolCall",
    "ToolCallPart",
    "ToolResultPart",
    "VendorPart",
    "part_from_dict",
    "part_tag",
    "part_to_dict",
)
