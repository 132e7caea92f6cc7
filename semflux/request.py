"""What we ask: the tools offered, the options and the `ChatRequest` that a dialect turns into HTTP.

An option that is None is not sent: the provider's own default holds. An option that a dialect or vendor
cannot carry is refused with a `ConfigurationError`, never dropped in silence; what none of these fields
says goes into *extra*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias, get_args

import attrs

from semflux.errors import ConfigurationError
from semflux.frozen import EMPTY, FrozenDict, freeze
from semflux.messages import Message
from semflux.secret import Secret

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How hard a model is to think. Vendors know some of these words; "none" switches thinking off."""
Summary: TypeAlias = Literal["auto", "concise", "detailed"]
"""How much of its thinking a model is to show."""
ThinkTags: TypeAlias = Literal["auto", "always", "never"]
"""Where `<think>` in a text is thinking: where it comes first, always, or never."""
ToolMode: TypeAlias = Literal["auto", "none", "required"]
"""The model decides, must not call, must call a tool."""
HeaderValue: TypeAlias = str | Secret
"""The value of a header; a key is a `Secret`."""


def _check_word(where: str, value: object, words: tuple[str, ...], otherwise: str) -> None:
    if value is None or value in words:
        return
    close = get_close_matches(str(value), words, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ConfigurationError(f"{where} is one of {', '.join(words)}; {hint}{otherwise}")


def _one_of(alias: Any, otherwise: str) -> Any:
    words: tuple[str, ...] = get_args(alias)

    def check(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        _check_word(attribute.name, value, words, otherwise)

    return check


def _number(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigurationError(f"{attribute.name} is a finite number, or None for the provider's default")


def _count(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(
            f"{attribute.name} is a whole number of at least 1, or None for no say in it"
        )


def _object(value: Mapping[str, object]) -> Mapping[str, object]:
    frozen: FrozenDict[str, Any] = freeze(dict(value))
    return frozen


def _show_keys(value: Mapping[str, object]) -> str:
    return f"<{', '.join(value)}>"


@attrs.frozen(kw_only=True)
class ToolSpec:
    """A tool that the model may call; running it is the caller's business."""

    name: str
    """The name the model calls it by; vendors take letters, digits, "_" and "-", up to 64 characters."""
    description: str = ""
    """What it does and when to use it, for the model; "" to say nothing."""
    parameters: Mapping[str, object] = attrs.field(
        default=FrozenDict({"type": "object", "properties": EMPTY}), converter=_object, repr=False
    )
    """The JSON Schema of its arguments, an object's; default: no arguments."""
    strict: bool | None = None
    """True to have the vendor hold the model to the schema; None for the vendor's default."""

    def __attrs_post_init__(self) -> None:
        if not self.name:
            raise ConfigurationError("a tool needs a name: ToolSpec(name=..., parameters=...)")


@attrs.frozen
class NamedTool:
    """A tool choice: the model must call the tool *name*."""

    name: str
    """The name of one of the tools offered."""


@attrs.frozen(kw_only=True)
class JsonSchema:
    """A response format: the answer is JSON that keeps to *schema*."""

    schema: Mapping[str, object] = attrs.field(converter=_object, repr=False)
    """The JSON Schema of the answer."""
    name: str = "response"
    """A name for it, which some vendors show to the model: letters, digits, "_" and "-"."""
    description: str | None = None
    """What the answer is for; None to say nothing."""
    strict: bool | None = True
    """True to have the vendor hold the model to the schema; None for the vendor's default."""


@attrs.frozen(kw_only=True)
class Reasoning:
    """How the model is to think. Each vendor takes *effort*, *budget_tokens*, or both."""

    effort: Effort | None = attrs.field(
        default=None, validator=_one_of(Effort, "send a vendor's own word by extra={...}")
    )
    """How hard; "none" for not at all; None for the vendor's default."""
    budget_tokens: int | None = attrs.field(default=None, validator=_count)
    """Tokens it may spend on thinking; None for no limit of its own."""
    summary: Summary | None = attrs.field(
        default=None, validator=_one_of(Summary, "send a vendor's own word by extra={...}")
    )
    """How much of the thinking to show, where the vendor can choose; None for its default."""


def _reasoning(value: Reasoning | Effort | None) -> Reasoning | None:
    return Reasoning(effort=value) if isinstance(value, str) else value


def _stop(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _headers(value: Mapping[str, HeaderValue]) -> Mapping[str, HeaderValue]:
    return FrozenDict(value)


def _check_tool_choice(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, NamedTool):
        _check_word("tool_choice", value, get_args(ToolMode), 'write NamedTool("...") for one certain tool')


def _check_format(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, JsonSchema):
        _check_word(
            "response_format", value, ("text", "json_object"), "write JsonSchema(schema=...) for a schema"
        )


@attrs.frozen(kw_only=True)
class Options:
    """How the model is to answer."""

    temperature: float | None = attrs.field(default=None, validator=_number)
    """How freely to sample, 0 for the likeliest words; reasoning models often refuse it."""
    top_p: float | None = attrs.field(default=None, validator=_number)
    """Sample only from the likeliest words that make up this share of probability, 0 to 1."""
    top_k: int | None = attrs.field(default=None, validator=_count)
    """Sample only from this many of the likeliest words."""
    max_tokens: int | None = attrs.field(default=None, validator=_count)
    """Tokens the answer may have, thinking included; None for the vendor's limit (where a vendor demands
    a number, the dialect has a documented default)."""
    stop: tuple[str, ...] = attrs.field(default=(), converter=_stop, repr=lambda stop: f"<{len(stop)} texts>")
    """Texts before which the answer ends; one string stands for a tuple of it."""
    seed: int | None = None
    """Makes sampling repeatable, as far as the vendor can."""
    presence_penalty: float | None = attrs.field(default=None, validator=_number)
    """Less of what has been said at all, -2 to 2."""
    frequency_penalty: float | None = attrs.field(default=None, validator=_number)
    """Less of what has been said often, -2 to 2."""
    reasoning: Reasoning | None = attrs.field(default=None, converter=_reasoning)
    """How to think; a plain string is an effort."""
    tool_choice: ToolMode | NamedTool | None = attrs.field(default=None, validator=_check_tool_choice)
    """Whether to call tools, or which one; None for the vendor's default ("auto" with tools)."""
    parallel_tool_calls: bool | None = None
    """False for one call at a time; None for the vendor's default."""
    response_format: Literal["text", "json_object"] | JsonSchema | None = attrs.field(
        default=None, validator=_check_format
    )
    """What the answer's text is; None for the vendor's default, which is text."""
    include_usage: bool = True
    """Ask for token counts at the end of a stream, where one has to ask."""
    think_tags: ThinkTags = attrs.field(default="auto", validator=_one_of(ThinkTags, "the default is 'auto'"))
    """Whether `<think>` in the text is thinking: where it comes first, always, or never. Not sent; the
    dialect's parser reads it."""
    user: str | None = attrs.field(default=None, repr=False)
    """An id of the end user, for the vendor's abuse detection: no name, no address."""
    metadata: Mapping[str, object] = attrs.field(default=EMPTY, converter=_object, repr=_show_keys)
    """Labels the vendor keeps with the request."""
    extra: Mapping[str, object] = attrs.field(default=EMPTY, converter=_object, repr=_show_keys)
    """Fields of the vendor's own. They go into the body last, each in place of a field of the same name."""
    headers: Mapping[str, HeaderValue] = attrs.field(default=EMPTY, converter=_headers, repr=_show_keys)
    """HTTP headers to send besides; one replaces the dialect's own of the same name."""


def _messages(value: str | Message | Iterable[Message]) -> tuple[Message, ...]:
    if isinstance(value, str):
        return (Message.user(value),)
    return (value,) if isinstance(value, Message) else tuple(value)


@attrs.frozen(kw_only=True)
class ChatRequest:
    """One model call, independent of who answers it."""

    model: str
    """The model's name as its vendor knows it; "" where the server has only one."""
    messages: tuple[Message, ...] = attrs.field(
        converter=_messages, repr=lambda messages: f"<{len(messages)} messages>"
    )
    """The conversation so far, in order; a plain string is one user message."""
    tools: tuple[ToolSpec, ...] = attrs.field(default=(), converter=tuple[ToolSpec, ...])
    """The tools offered."""
    options: Options = attrs.field(factory=Options)
    """How to answer."""
    stream: bool = True
    """True for an answer piece by piece, False for one JSON document."""


__all__ = (
    "ChatRequest",
    "Effort",
    "HeaderValue",
    "JsonSchema",
    "NamedTool",
    "Options",
    "Reasoning",
    "Summary",
    "ThinkTags",
    "ToolMode",
    "ToolSpec",
)
