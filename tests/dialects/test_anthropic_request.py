"""Requests in Anthropic's messages format: whole bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from semflux.dialects.anthropic_request import build_anthropic
from semflux.dialects.vendors import ANTHROPIC, LOCAL
from semflux.errors import ConfigurationError
from semflux.messages import (
    Message,
)
from semflux.request import ChatRequest, JsonSchema, NamedTool, Reasoning
from semflux.secret import Secret
from tests.dialects.building import HI, OTHER, TOOL, Built

MADE = Built(build_anthropic, ANTHROPIC, "claude-new")
request, body, sent, refusal = MADE.request, MADE.body, MADE.sent, MADE.refusal


def test_the_plain_request() -> None:
    """Everything about it; the format demands a number of tokens."""
    made = request("hi")
    assert (made.url, made.method, made.headers, json.loads(made.body)) == (
        "https://api.anthropic.com/v1/messages",
        "POST",
        (
            ("content-type", "application/json"),
            ("accept", "text/event-stream"),
            ("anthropic-version", "2023-06-01"),
            ("x-api-key", Secret("k")),
        ),
        {
            "model": "claude-new",
            "messages": [{"role": "user", "content": "hi"}],
            "max_tokens": 8192,
            "stream": True,
        },
    )


def test_all_options() -> None:
    """Under their names in this format."""
    assert body(
        [Message.system("s"), HI],
        stream=False,
        temperature=0.5,
        top_p=0.9,
        top_k=5,
        max_tokens=10,
        stop="END",
        reasoning="high",
        response_format=JsonSchema(schema={"type": "object"}),
        user="u",
        metadata={"k": "v"},
        extra={"service_tier": "auto", "top_k": 6},
    ) == {
        "model": "claude-new",
        "system": "s",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 10,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 6,
        "stop_sequences": ["END"],
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "metadata": {"k": "v", "user_id": "u"},
        "stream": False,
        "service_tier": "auto",
    }


def test_beta_features_are_headers() -> None:
    """The user's own; they may replace the version too."""
    headers = dict(request("hi", headers={"anthropic-beta": "b", "Anthropic-Version": "2099"}).headers)
    assert (headers["anthropic-beta"], headers["anthropic-version"]) == ("b", "2099")


@pytest.mark.parametrize(
    "base_url, expected",
    [
        ("https://api.anthropic.com/", "https://api.anthropic.com/v1/messages"),
        ("https://h/anthropic", "https://h/anthropic/v1/messages"),
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1/messages"),
    ],
)
def test_the_address(base_url: str, expected: str) -> None:
    """`/v1` is added unless it is there."""
    assert request("hi", base_url=base_url).url == expected


def test_the_local_server_speaks_it_too() -> None:
    """Without key and model; its name is the vendor's."""
    request = build_anthropic(
        ChatRequest(model="", messages="hi"), base_url="http://127.0.0.1:9/v1", api_key=None, vendor=LOCAL
    )
    assert (request.url, "x-api-key" in dict(request.headers), json.loads(request.body)) == (
        "http://127.0.0.1:9/v1/messages",
        False,
        {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 8192, "stream": True},
    )


def test_a_missing_key_is_refused() -> None:
    """With what to do."""
    with pytest.raises(ConfigurationError) as caught:
        build_anthropic(
            ChatRequest(model="m", messages="hi"), base_url="https://h", api_key=None, vendor=ANTHROPIC
        )
    assert str(caught.value) == (
        "anthropic needs an API key: pass api_key=..., or set ANTHROPIC_API_KEY and make the model with "
        "ChatModel.from_env(...)"
    )


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, {}),
        ({"parallel_tool_calls": True}, {}),
        ({"tool_choice": "auto"}, {"tool_choice": {"type": "auto"}}),
        ({"tool_choice": "none"}, {"tool_choice": {"type": "none"}}),
        ({"tool_choice": "required"}, {"tool_choice": {"type": "any"}}),
        ({"tool_choice": NamedTool("now")}, {"tool_choice": {"type": "tool", "name": "now"}}),
        (
            {"parallel_tool_calls": False},
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        ),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"tool_choice": {"type": "none"}}),
        (
            {"tool_choice": NamedTool("add"), "parallel_tool_calls": False},
            {"tool_choice": {"type": "tool", "name": "add", "disable_parallel_tool_use": True}},
        ),
    ],
)
def test_tools_and_the_choice_among_them(options: dict[str, Any], expected: dict[str, Any]) -> None:
    """Description and strictness only where there are any."""
    assert body("hi", tools=(TOOL, OTHER), **options) == {
        "model": "claude-new",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [
            {"name": "add", "description": "Adds.", "input_schema": {"type": "object"}, "strict": True},
            {"name": "now", "input_schema": {"type": "object", "properties": {}}},
        ],
        **expected,
        "max_tokens": 8192,
        "stream": True,
    }


def test_without_tools_there_is_no_choice() -> None:
    """One that asks for nothing is left out; one that asks for a call is refused."""
    assert [
        body("hi", tool_choice="auto", parallel_tool_calls=False),
        refusal("hi", tool_choice="required"),
        refusal("hi", tools=(TOOL,), tool_choice=NamedTool("f")),
    ] == [
        body("hi"),
        "anthropic: tool_choice asks for a call, but no tools are offered",
        "anthropic: tool_choice asks for 'f', which is not among the tools",
    ]


ADAPTIVE: dict[str, Any] = {"type": "adaptive"}


@pytest.mark.parametrize(
    "model, reasoning, expected",
    [
        ("claude-opus-4-7", Reasoning(), {}),
        (
            "claude-opus-4-7",
            Reasoning(effort="low"),
            {"thinking": ADAPTIVE, "output_config": {"effort": "low"}},
        ),
        (
            "claude-opus-4-7",
            Reasoning(effort="minimal"),
            {"thinking": ADAPTIVE, "output_config": {"effort": "low"}},
        ),
        ("claude-opus-4-7", Reasoning(effort="none"), {"thinking": {"type": "disabled"}}),
        (
            "claude-opus-4-7",
            Reasoning(summary="auto"),
            {"thinking": {"type": "adaptive", "display": "summarized"}},
        ),
        (
            "claude-sonnet-4-6",
            Reasoning(budget_tokens=2000, effort="high"),
            {
                "thinking": {"type": "enabled", "budget_tokens": 2000},
                "output_config": {"effort": "high"},
                "max_tokens": 10_192,
            },
        ),
        (
            "claude-sonnet-4-5-20250929",
            Reasoning(effort="medium"),
            {"thinking": {"type": "enabled", "budget_tokens": 8192}, "max_tokens": 16_384},
        ),
        (
            "claude-sonnet-4-5",
            Reasoning(budget_tokens=3000, effort="max", summary="detailed"),
            {
                "thinking": {"type": "enabled", "budget_tokens": 3000, "display": "summarized"},
                "max_tokens": 11_192,
            },
        ),
        ("claude-3-7-sonnet-latest", Reasoning(effort="none"), {"thinking": {"type": "disabled"}}),
    ],
)
def test_reasoning_is_asked_for_as_the_model_knows_it(
    model: str, reasoning: Reasoning, expected: dict[str, Any]
) -> None:
    """Newer models take an effort, older ones a budget, for which the answer's tokens make room."""
    assert body("hi", model=model, reasoning=reasoning) == {**body("hi", model=model), **expected}


@pytest.mark.parametrize("max_tokens, budget", [(20_000, 16_384), (4000, 3999), (100, 1024)])
def test_a_budget_made_from_an_effort_fits_into_the_answers_tokens(max_tokens: int, budget: int) -> None:
    """It must be less than them; below the format's least the provider decides."""
    fields = body("hi", model="claude-opus-4-1", reasoning="high", max_tokens=max_tokens)
    assert (fields["max_tokens"], fields["thinking"]) == (
        max_tokens,
        {"type": "enabled", "budget_tokens": budget},
    )


@pytest.mark.parametrize(
    "options, message",
    [
        ({"seed": 1}, "anthropic: the messages format has no seed: leave it out"),
        ({"presence_penalty": 1.0}, "anthropic: the messages format has no presence_penalty: leave it out"),
        ({"frequency_penalty": 1.0}, "anthropic: the messages format has no frequency_penalty: leave it out"),
        (
            {"response_format": "json_object"},
            "anthropic: it has no JSON without a schema: write response_format=JsonSchema(schema=...)",
        ),
    ],
)
def test_what_the_format_cannot_carry_is_refused(options: dict[str, Any], message: str) -> None:
    """Never dropped in silence."""
    assert refusal("hi", **options) == message


def test_text_is_the_format_anyway() -> None:
    """Asking for it changes nothing."""
    assert body("hi", response_format="text") == body("hi")
