"""Vendors as data, and the model strings that name them."""

from __future__ import annotations

import attrs
import pytest

from semflux.dialects.vendors import (
    ANTHROPIC,
    AZURE,
    DEEPSEEK,
    GROQ,
    LLAMA_CPP,
    LOCAL,
    OPENAI,
    OPENROUTER,
    VENDORS,
    VLLM,
    Target,
    Vendor,
    auth_headers,
    resolve,
    starts_with,
)
from semflux.errors import ConfigurationError
from semflux.http import check_base_url
from semflux.secret import Secret


@pytest.mark.parametrize(
    "model, expected",
    [
        ("openai-chat:gpt-4o", Target(OPENAI, "openai-chat", "gpt-4o")),
        ("anthropic:claude-sonnet-4-5", Target(ANTHROPIC, "anthropic", "claude-sonnet-4-5")),
        ("deepseek:deepseek-chat", Target(DEEPSEEK, "openai-chat", "deepseek-chat")),
        ("groq:qwen/qwen3-32b", Target(GROQ, "openai-chat", "qwen/qwen3-32b")),
        ("openrouter:a/b:free", Target(OPENROUTER, "openai-chat", "a/b:free")),
        ("azure:prod", Target(AZURE, "openai-chat", "prod")),
        ("vllm:m", Target(VLLM, "openai-chat", "m")),
        ("llama.cpp:m", Target(LLAMA_CPP, "openai-chat", "m")),
        ("local", Target(LOCAL, "openai-chat", "")),
        ("local:", Target(LOCAL, "openai-chat", "")),
        ("local:C:/m/x.gguf", Target(LOCAL, "openai-chat", "C:/m/x.gguf")),
    ],
)
def test_a_model_string_names_vendor_dialect_and_model(model: str, expected: Target) -> None:
    """The first colon parts them; the rest is the vendor's own name of the model."""
    assert resolve(model) == expected


KNOWN = (
    '(known: "openai-chat:...", "azure:...", "deepseek:...", "openrouter:...", "groq:...", "vllm:...", '
    '"llama.cpp:...", "anthropic:...", "local")'
)


@pytest.mark.parametrize(
    "model, message",
    [
        (
            "openai:gpt-4o",
            '"openai:" is kept for the Responses dialect, which is not there yet; write "openai-chat:gpt-4o"',
        ),
        (
            "openai",
            '"openai:" is kept for the Responses dialect, which is not there yet; write "openai-chat:NAME"',
        ),
        ("groq:", 'the model\'s name is missing: write "groq:NAME"'),
        ("groq", 'the model\'s name is missing: write "groq:NAME"'),
        ("gpt-4o", 'a model is written "VENDOR:NAME"; did you mean "openai-chat:gpt-4o"?'),
        ("claude-opus-4-1", 'a model is written "VENDOR:NAME"; did you mean "anthropic:claude-opus-4-1"?'),
        ("mystery", f'a model is written "VENDOR:NAME" {KNOWN}'),
        ("", f'a model is written "VENDOR:NAME" {KNOWN}'),
        ("Grok:m", f'unknown vendor in the model\'s name; did you mean "groq:m"? {KNOWN}'),
        ("zzz:m", f"unknown vendor in the model's name {KNOWN}"),
        ("gpt-4o:m", f"unknown vendor in the model's name {KNOWN}"),
    ],
)
def test_a_wrong_model_string_says_what_to_write(model: str, message: str) -> None:
    """With the nearest known one, where one is near."""
    with pytest.raises(ConfigurationError) as caught:
        resolve(model)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "vendor, expected",
    [
        (OPENAI, (("authorization", Secret("Bearer k")),)),
        (AZURE, (("api-key", Secret("k")),)),
        (ANTHROPIC, (("x-api-key", Secret("k")),)),
        (
            attrs.evolve(OPENAI, headers=(("x-a", "b"),)),
            (("authorization", Secret("Bearer k")), ("x-a", "b")),
        ),
    ],
    ids=["bearer", "api-key", "x-api-key", "own headers"],
)
def test_the_key_goes_into_the_vendors_header(vendor: Vendor, expected: object) -> None:
    """As a Secret in each."""
    assert auth_headers(vendor, Secret("k")) == expected


@pytest.mark.parametrize("key", [None, Secret("")])
def test_a_missing_key_is_told_with_its_variable(key: Secret | None) -> None:
    """And with the argument; a vendor without a variable names the argument alone."""
    messages: list[str] = []
    for vendor in (OPENAI, attrs.evolve(OPENAI, env_keys=())):
        with pytest.raises(ConfigurationError) as caught:
            auth_headers(vendor, key)
        messages.append(str(caught.value))
    assert messages == [
        "openai needs an API key: pass api_key=..., or set OPENAI_API_KEY and make the model with "
        "ChatModel.from_env(...)",
        "openai needs an API key: pass api_key=...",
    ]


@pytest.mark.parametrize("vendor", [VLLM, LLAMA_CPP, LOCAL], ids=lambda vendor: vendor.name)
def test_a_server_of_ones_own_needs_no_key(vendor: Vendor) -> None:
    """It may have one."""
    assert (auth_headers(vendor, None), auth_headers(vendor, Secret("k"))) == (
        vendor.headers,
        (("authorization", Secret("Bearer k")), *vendor.headers),
    )


@pytest.mark.parametrize("prefix", VENDORS)
def test_every_vendor_is_whole(prefix: str) -> None:
    """A known dialect, an address that may be asked or none, and a variable wherever a key is needed."""
    vendor = VENDORS[prefix]
    assert vendor.dialect in ("openai-chat", "anthropic")
    assert vendor.base_url is None or check_base_url(vendor.base_url) == vendor.base_url
    assert vendor.env_keys or not vendor.key_required


@pytest.mark.parametrize(
    "model, expected",
    [
        ("o1", True),
        ("o1-mini", True),
        ("o3-pro-2025-06-10", True),
        ("gpt-5", True),
        ("gpt-5.1", True),
        ("gpt-5-mini", True),
        ("gpt-4o", False),
        ("o1nline", False),
        ("openai/o3", False),
        ("", False),
    ],
)
def test_a_family_of_models_is_told_by_the_beginning_of_the_name(model: str, expected: bool) -> None:
    """Up to a sign that is no letter."""
    assert starts_with(model, OPENAI.reasoning_models) is expected
