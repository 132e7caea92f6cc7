"""Pieces of Anthropic frames as values: usage, citations, results of server tools; and its vocabulary."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Frames are untyped JSON: each value is checked where it is read, which leaves what is inside it unknown.

from __future__ import annotations

from typing import Any

from semflux.dialects.base import int_of, text_of
from semflux.response import CitedSource, FinishReason, SearchResult
from semflux.usage import Usage

FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "content_filter": "content_filter",
    "pause_turn": "other",
}
"""Anthropic's words in ours; any other is "other"."""

STATUS_REASONS = frozenset({"pause_turn", "max_tokens", "model_context_window_exceeded", "stop_sequence"})
"""Reasons that a STATUS tells as well."""


def usage_of(usage: dict[str, Any]) -> Usage:
    """The usage fields of a step, merged by presence. `input_tokens` leaves cached tokens out; ours do not."""
    uncached = int_of(usage.get("input_tokens"))
    read, write = (
        int_of(usage.get("cache_read_input_tokens")),
        int_of(usage.get("cache_creation_input_tokens")),
    )
    known = [count for count in (uncached, read, write) if count is not None]
    creation, output, server = (
        value if isinstance(value := usage.get(name), dict) else {}
        for name in ("cache_creation", "output_tokens_details", "server_tool_use")
    )
    return Usage(
        input_tokens=sum(known) if known else None,
        output_tokens=int_of(usage.get("output_tokens")),
        reasoning_tokens=int_of(output.get("thinking_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_5m_tokens=int_of(creation.get("ephemeral_5m_input_tokens")),
        cache_write_1h_tokens=int_of(creation.get("ephemeral_1h_input_tokens")),
        requests={key: count for key, value in server.items() if (count := int_of(value)) is not None},
        service_tier=text_of(usage.get("service_tier")) or None,
        region=text_of(usage.get("inference_geo")) or None,
        details=dict(usage),
    )


def citation_of(citation: dict[str, Any]) -> CitedSource:
    """A citation. Its positions are in the source, not in the answer, and stay in `raw`."""
    return CitedSource(
        url=text_of(citation.get("url")) or text_of(citation.get("source")) or None,
        title=text_of(citation.get("title")) or text_of(citation.get("document_title")) or None,
        cited_text=text_of(citation.get("cited_text")) or None,
        raw=citation,
    )


def server_tool(kind: str, name: str | None) -> str:
    """The tool of a server block: its name, or what is left of its type."""
    if kind == "mcp_tool_use":
        return "mcp"
    if name:
        return name
    for suffix in ("_tool_use", "_tool_result"):
        if kind.endswith(suffix):
            return kind.removesuffix(suffix)
    return kind


def result_of(block: dict[str, Any]) -> tuple[str | None, tuple[SearchResult, ...], bool]:
    """The readable text of a result block, its hits, and whether it is an error."""
    content = block.get("content")
    parts = content if isinstance(content, list) else [content]
    hits: list[SearchResult] = []
    lines: list[str] = []
    is_error = block.get("is_error") is True
    for part in parts:
        if isinstance(part, str) and part:
            lines.append(text_of(part))
        elif isinstance(part, dict):
            if part.get("type") == "web_search_result":
                hits.append(
                    SearchResult(
                        title=text_of(part.get("title")) or None, url=text_of(part.get("url")) or None
                    )
                )
            is_error = is_error or bool(part.get("error_code"))
            lines += _lines(part)
    return "\n".join(lines) or None, tuple(hits), is_error


def _lines(part: dict[str, Any]) -> list[str]:
    found = [
        text_of(part.get(name))
        for name in ("text", "title", "url", "stdout", "stderr", "error_code", "file_id")
    ]
    inner = part.get("content")
    for item in inner if isinstance(inner, list) else [inner]:
        if isinstance(item, dict):
            found += _lines(item)
    references = part.get("tool_references")
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, dict):
            found.append(text_of(reference.get("tool_name")))
    return [line for line in found if line]


def merge_block(block: dict[str, Any], delta: dict[str, Any]) -> None:
    """Put a delta of an unmodelled block into the block: texts grow, anything else is replaced."""
    for key, value in delta.items():
        if key == "type" or value is None:
            continue
        old = block.get(key)
        block[key] = old + value if isinstance(old, str) and isinstance(value, str) else value


__all__ = (
    "FINISH_REASONS",
    "STATUS_REASONS",
    "citation_of",
    "merge_block",
    "result_of",
    "server_tool",
    "usage_of",
)
