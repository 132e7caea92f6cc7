"""Pieces of OpenAI chat chunks as values: usage, citations, filters, images; and its vocabulary."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Frames are untyped JSON: each value is checked where it is read, which leaves what is inside it unknown.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from semflux.dialects.base import Out, int_of, text_of
from semflux.events import ChatEventType
from semflux.response import CitedSource, FinishReason, MediaBlock
from semflux.usage import Usage

FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "refusal": "refusal",
}
"""The words of OpenAI and of compatible servers, in ours; any other is "other"."""

KNOWN_DELTA = frozenset(
    {
        "role",
        "content",
        "reasoning_content",
        "reasoning",
        "reasoning_details",
        "refusal",
        "tool_calls",
        "function_call",
        "annotations",
        "audio",
        "images",
        "channel",
        "name",
    }
)
"""Fields of a delta that are read, or say nothing; any other becomes RAW."""


def usage_of(usage: dict[str, Any], service_tier: str | None = None) -> Usage:
    """A usage object. `prompt_tokens` counts cached tokens and `completion_tokens` reasoning ones."""
    prompt = _details(usage, "prompt_tokens_details", "input_tokens_details")
    completion = _details(usage, "completion_tokens_details", "output_tokens_details")
    cached = _first(
        prompt.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens")
    )
    return Usage(
        input_tokens=_first(usage.get("prompt_tokens"), usage.get("input_tokens")),
        output_tokens=_first(usage.get("completion_tokens"), usage.get("output_tokens")),
        reasoning_tokens=_first(
            completion.get("reasoning_tokens"), completion.get("think_tokens"), usage.get("reasoning_tokens")
        ),
        cache_read_tokens=cached,
        cache_write_tokens=_first(prompt.get("cache_write_tokens"), prompt.get("cache_creation_tokens")),
        audio_input_tokens=int_of(prompt.get("audio_tokens")),
        audio_output_tokens=int_of(completion.get("audio_tokens")),
        total_tokens=int_of(usage.get("total_tokens")),
        service_tier=service_tier,
        details=usage,
    )


def _details(usage: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        value = usage.get(name)
        if isinstance(value, dict):
            return value
    return {}


def _first(*values: Any) -> int | None:
    for value in values:
        number = int_of(value)
        if number is not None:
            return number
    return None


def citations_of(values: Any) -> Iterator[tuple[CitedSource, Any]]:
    """Each source with what tells it from others: its span and address."""
    if not isinstance(values, list):
        return
    for value in values:
        if isinstance(value, str):
            yield CitedSource(url=value), (None, None, value)
        elif isinstance(value, dict):
            inner = value.get("url_citation")
            found = inner if isinstance(inner, dict) else value
            url = text_of(found.get("url")) or None
            start, end = int_of(found.get("start_index")), int_of(found.get("end_index"))
            source = CitedSource(
                url=url,
                title=text_of(found.get("title")) or None,
                cited_text=text_of(found.get("content")) or None,
                start=start,
                end=end,
                raw=value,
            )
            yield source, (start, end, url or source.title)


def filter_events(out: Out, results: Any) -> Iterator[Any]:
    """Azure's filter: CONTENT_FILTER for each category that was filtered, else one RAW."""
    if not isinstance(results, dict) or not results:
        return
    filtered = False
    for category, verdict in results.items():
        if isinstance(verdict, dict) and verdict.get("filtered") is True:
            filtered = True
            severity = text_of(verdict.get("severity")) or None
            yield out.event(ChatEventType.CONTENT_FILTER, text_of(category), severity, True)
    if not filtered:
        yield out.raw({"content_filter_results": results})


def image_of(image: Any) -> MediaBlock | None:
    """A finished image (OpenRouter); None if its shape is unknown."""
    url = image.get("image_url") if isinstance(image, dict) else None
    address = text_of(url.get("url") if isinstance(url, dict) else url)
    if not address:
        return None
    head, comma, data = address.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return MediaBlock(kind="image", mime_type=head[5:-7] or None, data=data)
    return MediaBlock(kind="image", url=address)


__all__ = ("FINISH_REASONS", "KNOWN_DELTA", "citations_of", "filter_events", "image_of", "usage_of")
