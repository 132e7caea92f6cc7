"""Requests in the OpenAI chat format: whole bodies, for OpenAI and for those who differ from it."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from semflux.dialects.openai_chat_request import build_openai_chat
from semflux.dialects.vendors import (
    AZURE,
    DEEPSEEK,
    GROQ,
    LLAMA_CPP,
    LOCAL,
    OPENAI,
    OPENROUTER,
    VENDORS,
    VLLM,
    Vendor,
)
from semflux.errors import ConfigurationError
from semflux.request import ChatRequest, JsonSchema, NamedTool, Reasoning
from semflux.secret import Secret
from tests.dialects.building import OTHER, TOOL, Built

MADE = Built(build_openai_chat, OPENAI, "m")
request, body, sent, refusal = MADE.request, MADE.body, MADE.sent, MADE.refusal


def test_the_plain_request() -> None:
    """Everything about it."""
    made = request("hi", model="gpt-4o")
    assert (made.url, made.method, made.headers, json.loads(made.body)) == (
        "https://api.openai.com/v1/chat/completions",
        "POST",
        (
            ("content-type", "application/json"),
            ("accept", "text/event-stream"),
            ("authorization", Secret("Bearer k")),
        ),
        {
            "model": "gpt-4o",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        },
    )


def test_a_whole_answer_asks_for_json() -> None:
    """Without stream options; so does a stream without usage."""
    made = request("hi", stream=False)
    assert (dict(made.headers)["accept"], json.loads(made.body)) == (
        "application/json",
        {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": False},
    )
    assert body("hi", include_usage=False) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
    }


def test_all_options() -> None:
    """Under their names in this format."""
    assert body(
        "hi",
        stream=False,
        temperature=0.5,
        top_p=0.9,
        max_tokens=10,
        stop=["a", "b"],
        seed=7,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        reasoning="low",
        response_format=JsonSchema(schema={"type": "object"}, name="n", description="d"),
        user="u",
        metadata={"k": "v"},
        extra={"service_tier": "flex", "seed": 8},
    ) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_completion_tokens": 10,
        "stop": ["a", "b"],
        "seed": 8,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "reasoning_effort": "low",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}, "description": "d", "strict": True},
        },
        "user": "u",
        "metadata": {"k": "v"},
        "service_tier": "flex",
        "stream": False,
    }


def test_headers_of_the_user_are_sent() -> None:
    """They replace those of the same name."""
    headers = dict(request("hi", headers={"OpenAI-Organization": "o", "Authorization": "Bearer k2"}).headers)
    assert (headers["openai-organization"], headers["authorization"]) == ("o", Secret("Bearer k2"))


ADD: dict[str, Any] = {
    "type": "function",
    "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}, "strict": True},
}
NOW: dict[str, Any] = {
    "type": "function",
    "function": {"name": "now", "parameters": {"type": "object", "properties": {}}},
}


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, {}),
        ({"tool_choice": "auto"}, {"tool_choice": "auto"}),
        (
            {"tool_choice": "required", "parallel_tool_calls": False},
            {"tool_choice": "required", "parallel_tool_calls": False},
        ),
        (
            {"tool_choice": NamedTool("add")},
            {"tool_choice": {"type": "function", "function": {"name": "add"}}},
        ),
    ],
)
def test_tools_and_the_choice_among_them(options: dict[str, Any], expected: dict[str, Any]) -> None:
    """Description and strictness only where there are any."""
    assert body("hi", tools=(TOOL, OTHER), stream=False, **options) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [ADD, NOW],
        **expected,
        "stream": False,
    }


def test_a_server_that_knows_no_named_choice_is_offered_that_tool_alone() -> None:
    """llama.cpp reads the object as "auto"."""
    fields = body("hi", tools=(TOOL, OTHER), vendor=LLAMA_CPP, tool_choice=NamedTool("now"))
    assert (fields["tools"], fields["tool_choice"]) == ([NOW], "required")


def test_without_tools_there_is_no_choice() -> None:
    """One that asks for nothing is left out, since OpenAI refuses the field; one that asks for a call is refused."""
    plain = body("hi")
    assert [
        body("hi", tool_choice="auto", parallel_tool_calls=True),
        body("hi", tool_choice="none"),
        refusal("hi", tool_choice="required"),
        refusal("hi", tool_choice=NamedTool("f")),
        refusal("hi", tools=(TOOL,), tool_choice=NamedTool("f")),
    ] == [
        plain,
        plain,
        "openai: tool_choice asks for a call, but no tools are offered",
        "openai: tool_choice asks for a call, but no tools are offered",
        "openai: tool_choice asks for 'f', which is not among the tools",
    ]


@pytest.mark.parametrize(
    "vendor, model, field",
    [
        (OPENAI, "gpt-4o", "max_completion_tokens"),
        (OPENAI, "o3", "max_completion_tokens"),
        (AZURE, "gpt-4o", "max_tokens"),
        (AZURE, "o3-mini", "max_completion_tokens"),
        (GROQ, "m", "max_completion_tokens"),
        (DEEPSEEK, "m", "max_tokens"),
        (OPENROUTER, "m", "max_tokens"),
        (VLLM, "m", "max_tokens"),
        (LLAMA_CPP, "m", "max_tokens"),
    ],
)
def test_the_limit_of_tokens_has_the_vendors_name(vendor: Vendor, model: str, field: str) -> None:
    """OpenAI has renamed it; Azure's older versions know the new name for reasoning models alone."""
    fields = body("hi", vendor=vendor, model=model, max_tokens=5)
    assert {name: value for name, value in fields.items() if name.startswith("max_")} == {field: 5}


@pytest.mark.parametrize(
    "vendor, reasoning, expected",
    [
        (OPENAI, Reasoning(), {}),
        (OPENAI, Reasoning(effort="high"), {"reasoning_effort": "high"}),
        (GROQ, Reasoning(effort="none"), {"reasoning_effort": "none"}),
        (OPENROUTER, Reasoning(effort="high"), {"reasoning": {"effort": "high"}}),
        (OPENROUTER, Reasoning(budget_tokens=99), {"reasoning": {"max_tokens": 99}}),
        (
            OPENROUTER,
            Reasoning(effort="low", budget_tokens=99),
            {"reasoning": {"effort": "low", "max_tokens": 99}},
        ),
        (DEEPSEEK, Reasoning(effort="high"), {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        (DEEPSEEK, Reasoning(effort="none"), {"thinking": {"type": "disabled"}}),
        (
            VLLM,
            Reasoning(effort="low", budget_tokens=99),
            {"reasoning_effort": "low", "thinking_token_budget": 99},
        ),
        (LLAMA_CPP, Reasoning(budget_tokens=99), {"thinking_budget_tokens": 99}),
    ],
)
def test_reasoning_is_asked_for_in_the_vendors_words(
    vendor: Vendor, reasoning: Reasoning, expected: dict[str, Any]
) -> None:
    """Effort, budget, a switch, or an object of them."""
    fields = body("hi", vendor=vendor, reasoning=reasoning)
    plain = body("hi", vendor=vendor)
    assert fields == {**plain, **expected}


@pytest.mark.parametrize(
    "vendor, options, message",
    [
        (OPENAI, {"top_k": 5}, "openai: it takes no top_k: leave it out"),
        (
            OPENAI,
            {"reasoning": Reasoning(budget_tokens=9)},
            "openai: it takes no budget_tokens: give Reasoning(effort=...)",
        ),
        (
            OPENAI,
            {"reasoning": Reasoning(summary="auto")},
            "openai: the chat format has no reasoning summary: leave it out",
        ),
        (
            attrs.evolve(OPENAI, effort_field=None),
            {"reasoning": "low"},
            "openai: it takes no reasoning effort: leave it out",
        ),
        (
            DEEPSEEK,
            {"response_format": JsonSchema(schema={})},
            'deepseek: it holds no answer to a schema: write response_format="json_object" and say it in the prompt',
        ),
    ],
)
def test_what_a_vendor_cannot_carry_is_refused(vendor: Vendor, options: dict[str, Any], message: str) -> None:
    """Never dropped in silence."""
    assert refusal("hi", vendor=vendor, **options) == message


def test_formats_that_are_no_schema() -> None:
    """By their names; a schema without strictness leaves it to the vendor."""
    schema = JsonSchema(schema={"type": "object"}, strict=None)
    assert [
        body("hi", response_format=wanted)["response_format"] for wanted in ("text", "json_object", schema)
    ] == [
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "response", "schema": {"type": "object"}}},
    ]


def test_open_servers_take_top_k_and_a_local_one_needs_no_name() -> None:
    """The model's field is left out then."""
    assert body("hi", vendor=LOCAL, model="", top_k=5, include_usage=False) == {
        "messages": [{"role": "user", "content": "hi"}],
        "top_k": 5,
        "stream": True,
    }


@pytest.mark.parametrize(
    "vendor, base_url, expected",
    [
        (VLLM, "http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/chat/completions"),
        (VLLM, "http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1/chat/completions"),
        (OPENAI, "https://proxy.example/a/b", "https://proxy.example/a/b/chat/completions"),
        (OPENROUTER, "https://openrouter.ai", "https://openrouter.ai/api/v1/chat/completions"),
        (
            AZURE,
            "https://r.example",
            "https://r.example/openai/deployments/my%20o3/chat/completions?api-version=2024-10-21",
        ),
        (
            AZURE,
            "https://r.example/openai?api-version=2025-04-01-preview",
            "https://r.example/openai/deployments/my%20o3/chat/completions?api-version=2025-04-01-preview",
        ),
        (
            AZURE,
            "https://r.example/openai/deployments/d",
            "https://r.example/openai/deployments/d/chat/completions?api-version=2024-10-21",
        ),
        (AZURE, "https://r.example/openai/v1", "https://r.example/openai/v1/chat/completions"),
        (
            attrs.evolve(AZURE, api_version=None),
            "https://r.example",
            "https://r.example/openai/deployments/my%20o3/chat/completions",
        ),
    ],
)
def test_the_address(vendor: Vendor, base_url: str, expected: str) -> None:
    """A base URL without a path gets the vendor's; Azure has the deployment in it."""
    assert request("hi", vendor=vendor, base_url=base_url, model="my o3").url == expected


def test_azure_has_its_key_in_its_own_header() -> None:
    """`api-key`, and no authorization."""
    headers = dict(request("hi", vendor=AZURE, base_url="https://r.example").headers)
    assert (headers.get("api-key"), "authorization" in headers) == (Secret("k"), False)


@pytest.mark.parametrize(
    "vendor", [vendor for vendor in VENDORS.values() if vendor.dialect == "openai-chat"], ids=lambda v: v.name
)
def test_a_missing_key_is_refused_only_where_one_is_needed(vendor: Vendor) -> None:
    """Before anything is sent."""
    request = ChatRequest(model="m", messages="hi")
    url = vendor.base_url or "https://h"
    if not vendor.key_required:
        assert "authorization" not in dict(
            build_openai_chat(request, base_url=url, api_key=None, vendor=vendor).headers
        )
        return
    with pytest.raises(ConfigurationError, match=f"{vendor.name} needs an API key") as caught:
        build_openai_chat(request, base_url=url, api_key=None, vendor=vendor)
    assert caught.value.provider == vendor.name
