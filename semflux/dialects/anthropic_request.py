"""A `ChatRequest` as an Anthropic messages request.

Roles alternate there: neighbours of one role become one message, tool results are blocks of a user message
and come first in it. System messages go to the top, wherever they stood. What a user asks for and the format
cannot carry is refused with a `ConfigurationError`; what another vendor's model said before and cannot be
said here (unsigned thinking, other dialects' blocks) is left out.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, assert_never, cast
from urllib.parse import urlsplit

from semflux.dialects.vendors import Vendor, auth_headers, starts_with
from semflux.errors import ConfigurationError
from semflux.frozen import thaw
from semflux.http import HttpRequest, check_base_url, join_url, json_request
from semflux.messages import (
    MediaPart,
    Part,
    RedactedThinkingPart,
    RefusalPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
    VendorPart,
)
from semflux.request import ChatRequest, JsonSchema, NamedTool, Options, Reasoning, ToolSpec
from semflux.secret import Secret

_DIALECT = "anthropic"
ANTHROPIC_VERSION = "2023-06-01"
"""The version of the API, sent as a header."""
DEFAULT_MAX_TOKENS = 8192
"""Tokens of an answer where the options do not say, since the format demands a number; a budget for
thinking comes on top."""
EFFORT_BUDGETS = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 32_768,
}
"""Thinking tokens for an effort, for models that take no effort."""

_Block = dict[str, Any]


def _refuse(vendor: Vendor, what: str) -> NoReturn:
    raise ConfigurationError(f"{vendor.name}: {what}", provider=vendor.name)


def _tool_id(call_id: str) -> str:
    """*call_id* in the letters the format takes; other vendors' ids hold dots and colons."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)


def _decoded(data: str) -> str | None:
    """The text that *data* is in base64; None where it is none."""
    try:
        return b64decode("".join(data.split()), validate=True).decode()
    except ValueError:
        return None


def _media(part: MediaPart, vendor: Vendor) -> _Block:
    if part.data is None and part.url is None:
        _refuse(vendor, f"a MediaPart of kind {part.kind!r} has neither data nor url")
    if part.kind == "image":
        kind, default = "image", "image/png"
    elif part.kind == "file":
        kind, default = "document", "application/pdf"
    else:
        _refuse(vendor, f"it takes no {part.kind}")
    media_type = part.mime_type or default
    source: _Block
    if part.data is None:
        source = {"type": "url", "url": part.url}
    elif kind == "document" and media_type.startswith("text/"):
        text = _decoded(part.data)
        if text is None:
            _refuse(vendor, "a text file's data must be UTF-8 in base64")
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        source = {"type": "base64", "media_type": media_type, "data": part.data}
    block: _Block = {"type": kind, "source": source}
    if kind == "document" and part.name is not None:
        block["title"] = part.name
    return block


def _result(part: ToolResultPart) -> _Block:
    block: _Block = {"type": "tool_result", "tool_use_id": _tool_id(part.tool_call_id), "content": part.text}
    if part.is_error:
        block["is_error"] = True
    return block


def _input(call: ToolCall) -> Any:
    if call.kind == "custom":
        return {"input": call.arguments_json}
    # Only an object may stand here; the result that follows tells the model what was wrong.
    arguments: Any = call.arguments
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}


def _asked(part: Part, role: str, vendor: Vendor) -> _Block | None:
    """A part of a system, user or tool message as a block; None for nothing."""
    match part:
        case TextPart(text):
            return {"type": "text", "text": text} if text.strip() else None  # blank texts are refused there
        case VendorPart():
            return thaw(part.raw) if part.dialect == _DIALECT else None
        case MediaPart() if role != "system":
            return _media(part, vendor)
        case ToolResultPart() if role != "system":
            return _result(part)
        case _:
            _refuse(vendor, f"a {type(part).__name__} has no place in a {role!r} message")


def _said(part: Part) -> _Block | None:
    """A part of an assistant message as a block; None for nothing."""
    match part:
        case TextPart(text) | RefusalPart(text):
            return {"type": "text", "text": text} if text.strip() else None
        case ThinkingPart(text, signature):
            # Thinking without a signature is refused: it is another vendor's.
            return (
                None if signature is None else {"type": "thinking", "thinking": text, "signature": signature}
            )
        case RedactedThinkingPart(data):
            return {"type": "redacted_thinking", "data": data}
        case ToolCallPart(call):
            return {"type": "tool_use", "id": _tool_id(call.id), "name": call.name, "input": _input(call)}
        case VendorPart():
            return thaw(part.raw) if part.dialect == _DIALECT else None
        case ToolResultPart() | MediaPart():
            return None
        case _:
            assert_never(part)


def _plain(blocks: list[_Block]) -> str | list[_Block]:
    """*blocks* as a string where they are one text."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        text: str = blocks[0]["text"]
        return text
    return blocks


def _system(request: ChatRequest, vendor: Vendor) -> str | list[_Block]:
    parts = [part for message in request.messages if message.role == "system" for part in message.parts]
    blocks = [block for part in parts if (block := _asked(part, "system", vendor)) is not None]
    if all(isinstance(part, TextPart) for part in parts):
        return "\n\n".join([block["text"] for block in blocks])
    return blocks


def _messages(request: ChatRequest, vendor: Vendor) -> list[dict[str, Any]]:
    turns: list[tuple[str, list[_Block]]] = []
    for message in request.messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        made = [
            _said(part) if role == "assistant" else _asked(part, message.role, vendor)
            for part in message.parts
        ]
        blocks = [block for block in made if block is not None]
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    out: list[dict[str, Any]] = []
    for role, blocks in turns:
        results_first = (
            sorted(blocks, key=lambda block: block.get("type") != "tool_result") if role == "user" else blocks
        )
        out.append({"role": role, "content": _plain(results_first)})
    return out


def _tool(tool: ToolSpec) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": tool.name}
    if tool.description:
        fields["description"] = tool.description
    fields["input_schema"] = tool.parameters
    if tool.strict is not None:
        fields["strict"] = tool.strict
    return fields


_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def _tools(tools: Sequence[ToolSpec], options: Options, vendor: Vendor) -> dict[str, Any]:
    choice = options.tool_choice
    if not tools:
        if choice not in (None, "auto", "none"):
            _refuse(vendor, "tool_choice asks for a call, but no tools are offered")
        return {}
    wanted: dict[str, Any] = {}
    if isinstance(choice, NamedTool):
        if all(tool.name != choice.name for tool in tools):
            _refuse(vendor, f"tool_choice asks for {choice.name!r}, which is not among the tools")
        wanted = {"type": "tool", "name": choice.name}
    elif choice is not None:
        wanted = {"type": _CHOICES[choice]}
    if options.parallel_tool_calls is False and choice != "none":
        wanted = {"type": "auto", **wanted, "disable_parallel_tool_use": True}
    fields: dict[str, Any] = {"tools": [_tool(tool) for tool in tools]}
    if wanted:
        fields["tool_choice"] = wanted
    return fields


def _thinking(
    reasoning: Reasoning, request: ChatRequest, vendor: Vendor
) -> tuple[dict[str, Any], str | None]:
    """The `thinking` field ({} for none), and the effort to send."""
    effort, budget = reasoning.effort, reasoning.budget_tokens
    if effort == "none":
        return {"type": "disabled"}, None
    if starts_with(request.model, vendor.budget_models):
        if budget is None and effort is not None:
            budget = EFFORT_BUDGETS[effort]
            if request.options.max_tokens is not None:
                # A budget the user did not give must fit; 1,024 is the least the format takes.
                budget = max(min(budget, request.options.max_tokens - 1), 1024)
        effort = None
    thinking: dict[str, Any] = {}
    if budget is not None:
        thinking = {"type": "enabled", "budget_tokens": budget}
    elif effort is not None or reasoning.summary is not None:
        thinking = {"type": "adaptive"}
    if thinking and reasoning.summary is not None:
        thinking["display"] = "summarized"
    return thinking, "low" if effort == "minimal" else effort


def _output_config(wanted: str | JsonSchema | None, effort: str | None, vendor: Vendor) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if effort is not None:
        config["effort"] = effort
    if isinstance(wanted, JsonSchema):
        config["format"] = {"type": "json_schema", "schema": wanted.schema}
    elif wanted == "json_object":
        _refuse(vendor, "it has no JSON without a schema: write response_format=JsonSchema(schema=...)")
    return config


_REFUSED = ("seed", "presence_penalty", "frequency_penalty")
_AS_THEY_ARE = ("temperature", "top_p", "top_k")


def _options(request: ChatRequest, vendor: Vendor) -> dict[str, Any]:
    options = request.options
    for name in _REFUSED:
        if getattr(options, name) is not None:
            _refuse(vendor, f"the messages format has no {name}: leave it out")
    thinking, effort = (
        ({}, None) if options.reasoning is None else _thinking(options.reasoning, request, vendor)
    )
    fields: dict[str, Any] = {
        "max_tokens": options.max_tokens or DEFAULT_MAX_TOKENS + thinking.get("budget_tokens", 0)
    }
    fields.update({name: value for name in _AS_THEY_ARE if (value := getattr(options, name)) is not None})
    if options.stop:
        fields["stop_sequences"] = options.stop
    if thinking:
        fields["thinking"] = thinking
    if config := _output_config(options.response_format, effort, vendor):
        fields["output_config"] = config
    user = {} if options.user is None else {"user_id": options.user}
    if metadata := {**options.metadata, **user}:
        fields["metadata"] = metadata
    return fields


def _url(base_url: str, vendor: Vendor) -> str:
    base_url = check_base_url(base_url, plain_http=vendor.plain_http)
    return join_url(base_url, "/messages" if urlsplit(base_url).path.endswith("/v1") else "/v1/messages")


def _headers(vendor: Vendor, api_key: Secret | None) -> Iterable[tuple[str, str | Secret]]:
    return (("anthropic-version", ANTHROPIC_VERSION), *auth_headers(vendor, api_key))


def build_anthropic(
    request: ChatRequest, *, base_url: str, api_key: Secret | None, vendor: Vendor
) -> HttpRequest:
    """The HTTP request that puts *request* to *vendor* at *base_url*.

    Raises: `ConfigurationError` for a missing key, an address that may not be asked, and options or parts
    that the format cannot carry.
    """
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    if system := _system(request, vendor):
        body["system"] = system
    body["messages"] = _messages(request, vendor)
    body.update(_tools(request.tools, request.options, vendor))
    body.update(_options(request, vendor))
    body["stream"] = request.stream
    body.update(request.options.extra)
    return json_request(
        _url(base_url, vendor),
        body,
        headers=_headers(vendor, api_key),
        extra_headers=request.options.headers,
        stream=request.stream,
    )


__all__ = ("ANTHROPIC_VERSION", "DEFAULT_MAX_TOKENS", "EFFORT_BUDGETS", "build_anthropic")
