"""A `ChatRequest` as an OpenAI chat completion request, for OpenAI and all who speak like it.

What a user asks for and the format or vendor cannot carry is refused with a `ConfigurationError`. What a
model said before and cannot be said here (thinking a vendor does not take back, media, other dialects'
blocks) is left out: a conversation may go on with another vendor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, cast
from urllib.parse import urlsplit

from semflux.dialects.vendors import Vendor, auth_headers, starts_with
from semflux.errors import ConfigurationError
from semflux.frozen import thaw
from semflux.http import HttpRequest, check_base_url, join_url, json_request, quote_segment
from semflux.messages import (
    MediaPart,
    Message,
    Part,
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

_DIALECT = "openai-chat"


def _refuse(vendor: Vendor, what: str) -> NoReturn:
    raise ConfigurationError(f"{vendor.name}: {what}", provider=vendor.name)


def _data_url(part: MediaPart, default: str) -> str:
    return f"data:{part.mime_type or default};base64,{part.data}"


_AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}


def _media(part: MediaPart, vendor: Vendor) -> dict[str, Any]:
    if part.data is None and part.url is None:
        _refuse(vendor, f"a MediaPart of kind {part.kind!r} has neither data nor url")
    if part.kind == "image":
        return {"type": "image_url", "image_url": {"url": part.url or _data_url(part, "image/png")}}
    if part.kind == "audio":
        if part.data is None:
            _refuse(vendor, "audio goes as data, not by url: load it and give MediaPart(data=...) base64")
        subtype = (part.mime_type or "audio/wav").partition("/")[2]
        return {
            "type": "input_audio",
            "input_audio": {"data": part.data, "format": _AUDIO_FORMATS.get(subtype, subtype)},
        }
    if part.kind == "video":
        if not vendor.video:
            _refuse(vendor, "it takes no video")
        return {"type": "video_url", "video_url": {"url": part.url or _data_url(part, "video/mp4")}}
    if part.data is None and not vendor.file_urls:
        _refuse(vendor, "a file goes as data, not by url: load it and give MediaPart(data=...) base64")
    file = {"filename": part.name or "file", "file_data": part.url or _data_url(part, "application/pdf")}
    return {"type": "file", "file": file}


def _content(parts: Sequence[Part], role: str, vendor: Vendor) -> str | list[dict[str, Any]]:
    """What a system or user message says: a string where it is one text, else a list of parts."""
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, TextPart):
            content.append({"type": "text", "text": part.text})
        elif isinstance(part, MediaPart) and role == "user":
            content.append(_media(part, vendor))
        elif isinstance(part, VendorPart):
            if part.dialect == _DIALECT:
                content.append(thaw(part.raw))
        else:
            _refuse(vendor, f"a {type(part).__name__} has no place in a {role!r} message")
    if len(content) == 1 and content[0].get("type") == "text" and len(content[0]) == 2:
        text: str = content[0]["text"]
        return text
    return content or ""


def _call(call: ToolCall, vendor: Vendor) -> dict[str, Any]:
    if call.kind == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments_json}}
    broken = call.arguments_error is not None and not vendor.raw_arguments
    arguments = "{}" if broken or not call.arguments_json else call.arguments_json
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _is_detail(block: Any) -> bool:
    """True for an entry of OpenRouter's `reasoning_details`."""
    fields: dict[str, Any] = cast("dict[str, Any]", block) if isinstance(block, dict) else {}
    return str(fields.get("type")).startswith("reasoning.")


def _assistant(parts: Sequence[Part], vendor: Vendor, *, thinking: bool) -> dict[str, Any]:
    said = "".join([part.text for part in parts if isinstance(part, TextPart)])
    refusal = "".join([part.text for part in parts if isinstance(part, RefusalPart)])
    calls = [_call(part.call, vendor) for part in parts if isinstance(part, ToolCallPart)]
    thought = "".join([part.text for part in parts if isinstance(part, ThinkingPart)])
    blocks: list[Any] = [
        part.raw for part in parts if isinstance(part, VendorPart) and part.dialect == _DIALECT
    ]
    details = [thaw(block) for block in blocks if _is_detail(block)]
    message: dict[str, Any] = {"role": "assistant", "content": said or (None if calls or refusal else "")}
    if refusal:
        message["refusal"] = refusal
    if thought and thinking:
        message[vendor.thinking_field] = thought
    if details and vendor.reasoning_details:
        message["reasoning_details"] = details
    if calls:
        message["tool_calls"] = calls
    return message


def _results(parts: Iterable[Part]) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.text}
        for part in parts
        if isinstance(part, ToolResultPart)
    ]


def _tool_turns(messages: Sequence[Message]) -> frozenset[int]:
    """The places of messages in turns, from one user message to the next, in which a tool was called."""
    found: set[int] = set()
    turn: list[int] = []
    called = False
    for i, message in enumerate(messages):
        if message.role == "user" and any(not isinstance(part, ToolResultPart) for part in message.parts):
            turn, called = [], False
        turn.append(i)
        called = called or bool(message.tool_calls)
        if called:
            found.update(turn)
    return frozenset(found)


def _messages(request: ChatRequest, vendor: Vendor) -> list[dict[str, Any]]:
    developer = starts_with(request.model.removeprefix("ft:"), vendor.reasoning_models)
    turns: frozenset[int] = frozenset()
    if vendor.thinking_back == "tool_turns":
        turns = _tool_turns(request.messages)
    out: list[dict[str, Any]] = []
    for i, message in enumerate(request.messages):
        if message.role == "system":
            role = "developer" if developer else "system"
            out.append({"role": role, "content": _content(message.parts, "system", vendor)})
        elif message.role == "assistant":
            out.append(_assistant(message.parts, vendor, thinking=i in turns))
        else:
            out.extend(_results(message.parts))
            rest = [part for part in message.parts if not isinstance(part, ToolResultPart)]
            if rest or not message.parts:
                out.append({"role": "user", "content": _content(rest, message.role, vendor)})
    return out


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _tools(tools: Sequence[ToolSpec], options: Options, vendor: Vendor) -> dict[str, Any]:
    choice = options.tool_choice
    fields: dict[str, Any] = {}
    if not tools:
        if choice not in (None, "auto", "none"):
            _refuse(vendor, "tool_choice asks for a call, but no tools are offered")
        return fields
    wanted: Any = choice
    if isinstance(choice, NamedTool):
        chosen = [tool for tool in tools if tool.name == choice.name]
        if not chosen:
            _refuse(vendor, f"tool_choice asks for {choice.name!r}, which is not among the tools")
        wanted = {"type": "function", "function": {"name": choice.name}}
        if not vendor.named_tool_choice:
            tools, wanted = chosen, "required"
    fields["tools"] = [_tool(tool) for tool in tools]
    if wanted is not None:
        fields["tool_choice"] = wanted
    if options.parallel_tool_calls is not None:
        fields["parallel_tool_calls"] = options.parallel_tool_calls
    return fields


def _put(fields: dict[str, Any], path: str, value: object) -> None:
    *parents, last = path.split(".")
    for parent in parents:
        fields = fields.setdefault(parent, {})
    fields[last] = value


def _reasoning(reasoning: Reasoning, vendor: Vendor) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if reasoning.summary is not None:
        _refuse(vendor, "the chat format has no reasoning summary: leave it out")
    if reasoning.budget_tokens is not None:
        if vendor.budget_field is None:
            _refuse(vendor, "it takes no budget_tokens: give Reasoning(effort=...)")
        _put(fields, vendor.budget_field, reasoning.budget_tokens)
    if reasoning.effort is not None:
        if vendor.effort_field is None:
            _refuse(vendor, "it takes no reasoning effort: leave it out")
        off = vendor.thinking_switch and reasoning.effort == "none"
        if vendor.thinking_switch:
            fields["thinking"] = {"type": "disabled" if off else "enabled"}
        if not off:
            _put(fields, vendor.effort_field, reasoning.effort)
    return fields


def _format(wanted: str | JsonSchema, vendor: Vendor) -> dict[str, Any]:
    if isinstance(wanted, str):
        return {"type": wanted}
    if not vendor.json_schema:
        _refuse(
            vendor,
            'it holds no answer to a schema: write response_format="json_object" and say it in the prompt',
        )
    fields: dict[str, Any] = {"name": wanted.name, "schema": wanted.schema}
    if wanted.description is not None:
        fields["description"] = wanted.description
    if wanted.strict is not None:
        fields["strict"] = wanted.strict
    return {"type": "json_schema", "json_schema": fields}


_AS_THEY_ARE = ("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "user")


def _options(request: ChatRequest, vendor: Vendor) -> dict[str, Any]:
    options = request.options
    fields: dict[str, Any] = {
        name: value for name in _AS_THEY_ARE if (value := getattr(options, name)) is not None
    }
    if options.top_k is not None:
        if not vendor.top_k:
            _refuse(vendor, "it takes no top_k: leave it out")
        fields["top_k"] = options.top_k
    if options.max_tokens is not None:
        field = vendor.max_tokens_field
        if starts_with(request.model.removeprefix("ft:"), vendor.reasoning_models):
            field = vendor.reasoning_max_tokens_field or field
        fields[field] = options.max_tokens
    if options.stop:
        fields["stop"] = options.stop
    if options.reasoning is not None:
        fields.update(_reasoning(options.reasoning, vendor))
    if options.response_format is not None:
        fields["response_format"] = _format(options.response_format, vendor)
    if options.metadata:
        fields["metadata"] = options.metadata
    return fields


def _url(base_url: str, model: str, vendor: Vendor) -> str:
    base_url = check_base_url(base_url, plain_http=vendor.plain_http)
    path = urlsplit(base_url).path
    start = "" if path else vendor.root_path
    if not vendor.deployments or path.endswith("/v1"):
        return join_url(base_url, f"{start}/chat/completions")
    if "/deployments/" not in path:
        start = f"{start}/deployments/{quote_segment(model)}"
    query = {} if vendor.api_version is None else {"api-version": vendor.api_version}
    return join_url(base_url, f"{start}/chat/completions", query)


def build_openai_chat(
    request: ChatRequest, *, base_url: str, api_key: Secret | None, vendor: Vendor
) -> HttpRequest:
    """The HTTP request that puts *request* to *vendor* at *base_url*.

    Raises: `ConfigurationError` for a missing key, an address that may not be asked, and options or parts
    that the vendor cannot carry.
    """
    options = request.options
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    body["messages"] = _messages(request, vendor)
    body.update(_tools(request.tools, options, vendor))
    body.update(_options(request, vendor))
    body["stream"] = request.stream
    if request.stream and options.include_usage:
        body["stream_options"] = {"include_usage": True}
    body.update(options.extra)
    return json_request(
        _url(base_url, request.model, vendor),
        body,
        headers=auth_headers(vendor, api_key),
        extra_headers=options.headers,
        stream=request.stream,
    )


__all__ = ("build_openai_chat",)
