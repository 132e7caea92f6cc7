"""Who speaks which dialect, and how each differs: `Vendor` objects, and model strings to find them.

A vendor that speaks a known dialect is one constant here. What varies between vendors is a field of
`Vendor`, with the usual answer as its default, so that a constant lists only what is special.

A key is never looked up here: *env_keys* names the variables that `ChatModel.from_env` reads, the one place
that reads the environment, and only when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal, NamedTuple

import attrs

from semflux.errors import ConfigurationError
from semflux.secret import Secret


@attrs.frozen(kw_only=True)
class Vendor:
    """A provider or server, as data."""

    name: str
    """Its name, as errors and events give it."""
    dialect: str
    """The dialect it speaks, unless a model is asked to speak another: "openai-chat" or "anthropic"."""
    base_url: str | None = None
    """Where it is; None where everyone has an address of their own."""
    plain_http: bool = False
    """True where an address without https may be asked though it is not on this machine: for a network that
    you trust with the key and the prompts."""
    root_path: str = "/v1"
    """The path a *base_url* gets that has none of its own (http://127.0.0.1:8000)."""
    env_keys: tuple[str, ...] = ()
    """Environment variables that may hold the key, the first one set counts; read by `from_env` alone."""
    env_base_urls: tuple[str, ...] = ()
    """Environment variables that may hold the base_url; read by `from_env` alone."""
    key_required: bool = True
    """False for servers that need no key."""
    model_required: bool = True
    """False where the server has one model and needs no name for it."""
    auth: Literal["bearer", "api-key", "x-api-key"] = "bearer"
    """The header that carries the key: `authorization: Bearer KEY`, `api-key` or `x-api-key`."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers to send with every request; no secrets."""

    # OpenAI chat
    deployments: bool = False
    """True for Azure's addresses: /openai/deployments/MODEL/chat/completions?api-version=..., unless the
    base_url ends in /v1, Azure's newer form."""
    api_version: str | None = None
    """The `api-version` of such an address, unless the base_url has one; None for none."""
    reasoning_models: tuple[str, ...] = ()
    """Beginnings of the names of models that want the role "developer" in place of "system"."""
    max_tokens_field: str = "max_tokens"
    """The field for *max_tokens*."""
    reasoning_max_tokens_field: str | None = None
    """The same for *reasoning_models*; None for no difference."""
    effort_field: str | None = "reasoning_effort"
    """Where a reasoning effort goes, dots for levels; None where it cannot be told."""
    budget_field: str | None = None
    """Where a limit of thinking tokens goes, dots for levels; None where it cannot be told."""
    thinking_switch: bool = False
    """True where an effort goes with `thinking: {type: "enabled"}`, and "none" is `"disabled"` alone."""
    thinking_back: Literal["never", "tool_turns"] = "never"
    """Whether thinking goes back with the history: never, or in turns (from one user message to the next) in
    which a tool was called. Some refuse it, some refuse a tool turn without it."""
    thinking_field: str = "reasoning_content"
    """The field of an assistant message that it goes back in."""
    reasoning_details: bool = False
    """True where kept vendor parts of a type that begins with "reasoning." go back as `reasoning_details`."""
    raw_arguments: bool = False
    """True where a call's argument text may go back broken, as the model sent it; servers that parse it
    fail, so they get "{}" in its place."""
    top_k: bool = False
    """True where *top_k* is known."""
    named_tool_choice: bool = True
    """False where the choice of one certain tool is read as "auto": that tool alone is offered then, and a
    call required."""
    json_schema: bool = True
    """False where an answer can be JSON but not held to a schema."""
    file_urls: bool = False
    """True where a file may be given by its address."""
    video: bool = False
    """True where a user message may hold a video."""

    # Anthropic
    budget_models: tuple[str, ...] = ()
    """Beginnings of the names of models whose thinking has a budget and no effort: an effort becomes a budget."""


OPENAI = Vendor(
    name="openai",
    dialect="openai-chat",
    base_url="https://api.openai.com/v1",
    env_keys=("OPENAI_API_KEY",),
    env_base_urls=("OPENAI_BASE_URL",),
    reasoning_models=("o1", "o3", "o4", "gpt-5"),
    max_tokens_field="max_completion_tokens",
    raw_arguments=True,
)
"""OpenAI, chat completions."""
AZURE = Vendor(
    name="azure",
    dialect="openai-chat",
    env_keys=("AZURE_OPENAI_API_KEY",),
    env_base_urls=("AZURE_OPENAI_ENDPOINT",),
    root_path="/openai",
    auth="api-key",
    deployments=True,
    api_version="2024-10-21",
    reasoning_models=OPENAI.reasoning_models,
    reasoning_max_tokens_field="max_completion_tokens",
    raw_arguments=True,
)
"""OpenAI's models on Azure: the model is the deployment's name. A deployment of a reasoning model under
another name than the model's is not known as one: say so by `extra`."""
DEEPSEEK = Vendor(
    name="deepseek",
    dialect="openai-chat",
    base_url="https://api.deepseek.com/v1",
    env_keys=("DEEPSEEK_API_KEY",),
    thinking_switch=True,
    thinking_back="tool_turns",
    json_schema=False,
)
"""DeepSeek. In thinking mode a tool turn without its thinking is refused."""
OPENROUTER = Vendor(
    name="openrouter",
    dialect="openai-chat",
    base_url="https://openrouter.ai/api/v1",
    env_keys=("OPENROUTER_API_KEY",),
    root_path="/api/v1",
    effort_field="reasoning.effort",
    budget_field="reasoning.max_tokens",
    thinking_back="tool_turns",
    thinking_field="reasoning",
    reasoning_details=True,
    top_k=True,
    file_urls=True,
    video=True,
)
"""OpenRouter."""
GROQ = Vendor(
    name="groq",
    dialect="openai-chat",
    base_url="https://api.groq.com/openai/v1",
    env_keys=("GROQ_API_KEY",),
    root_path="/openai/v1",
    max_tokens_field="max_completion_tokens",
)
"""Groq. It refuses thinking that comes back."""
VLLM = Vendor(
    name="vllm",
    dialect="openai-chat",
    base_url="http://127.0.0.1:8000/v1",
    env_keys=("VLLM_API_KEY",),
    env_base_urls=("VLLM_BASE_URL",),
    key_required=False,
    budget_field="thinking_token_budget",
    thinking_back="tool_turns",
    thinking_field="reasoning",
    top_k=True,
    video=True,
)
"""A vLLM server; without a base_url the one on this machine."""
LLAMA_CPP = Vendor(
    name="llama.cpp",
    dialect="openai-chat",
    base_url="http://127.0.0.1:8080/v1",
    env_keys=("LLAMA_API_KEY",),
    key_required=False,
    # It closes the connection after each streamed answer while it says "Keep-Alive" (measured): the next request
    # on it would be lost now and then. Asked to close, it says so.
    headers=(("connection", "close"),),
    budget_field="thinking_budget_tokens",
    thinking_back="tool_turns",
    top_k=True,
    named_tool_choice=False,
)
"""A llama.cpp server; without a base_url the one on this machine."""
LOCAL = attrs.evolve(LLAMA_CPP, name="local", base_url=None, env_keys=(), model_required=False)
"""The embedded model: a llama.cpp server that `semflux.local` starts and whose address it knows. It speaks
the Anthropic dialect too."""
ANTHROPIC = Vendor(
    name="anthropic",
    dialect="anthropic",
    base_url="https://api.anthropic.com",
    env_keys=("ANTHROPIC_API_KEY",),
    env_base_urls=("ANTHROPIC_BASE_URL",),
    auth="x-api-key",
    top_k=True,
    budget_models=(
        "claude-3",
        "claude-opus-4-0",
        "claude-opus-4-1",
        "claude-opus-4-2025",
        "claude-opus-4-5",
        "claude-sonnet-4-0",
        "claude-sonnet-4-2025",
        "claude-sonnet-4-5",
        "claude-haiku-4-5",
    ),
)
"""Anthropic."""

VENDORS: Mapping[str, Vendor] = {
    "openai-chat": OPENAI,
    "azure": AZURE,
    "deepseek": DEEPSEEK,
    "openrouter": OPENROUTER,
    "groq": GROQ,
    "vllm": VLLM,
    "llama.cpp": LLAMA_CPP,
    "anthropic": ANTHROPIC,
    "local": LOCAL,
}
"""Vendors by the prefix of their model strings."""

# Beginnings of model names, to guess the prefix that was left out.
_GUESSES: tuple[tuple[str, str], ...] = (
    ("gpt-", "openai-chat"),
    ("chatgpt-", "openai-chat"),
    ("o1", "openai-chat"),
    ("o3", "openai-chat"),
    ("o4", "openai-chat"),
    ("claude", "anthropic"),
    ("deepseek", "deepseek"),
)


class Target(NamedTuple):
    """What a model string stands for."""

    vendor: Vendor
    """Who answers."""
    dialect: str
    """The dialect to speak with it."""
    model: str
    """The model's name as the vendor knows it; "" where it needs none. For "local", a GGUF file or ""."""


def _known() -> str:
    return ", ".join([f'"{prefix}:..."' for prefix in VENDORS if prefix != "local"]) + ', "local"'


def resolve(model: str) -> Target:
    """Who *model* is: "openai-chat:gpt-4o", "anthropic:claude-...", "azure:DEPLOYMENT", "local", "local:FILE.gguf".

    Raises: `ConfigurationError`, which says what to write.
    """
    prefix, colon, name = model.partition(":")
    vendor = VENDORS.get(prefix)
    if vendor is not None and (name or not vendor.model_required):
        return Target(vendor, vendor.dialect, name)
    if vendor is not None:
        raise ConfigurationError(f'the model\'s name is missing: write "{prefix}:NAME"')
    if prefix == "openai":
        raise ConfigurationError(
            f'"openai:" is kept for the Responses dialect, which is not there yet; write "openai-chat:{name or "NAME"}"'
        )
    guess = next((vendor for start, vendor in _GUESSES if prefix.startswith(start)), None)
    if not colon and guess is not None:
        raise ConfigurationError(f'a model is written "VENDOR:NAME"; did you mean "{guess}:{model}"?')
    close = get_close_matches(prefix.lower(), VENDORS, n=1)
    hint = f'; did you mean "{close[0]}:{name}"?' if close else ""
    wrong = "unknown vendor in the model's name" if colon else 'a model is written "VENDOR:NAME"'
    raise ConfigurationError(f"{wrong}{hint} (known: {_known()})")


def auth_headers(vendor: Vendor, api_key: Secret | None) -> tuple[tuple[str, str | Secret], ...]:
    """The header that carries *api_key* the way *vendor* wants it, and the vendor's own headers.

    Raises: `ConfigurationError` where a key is needed and there is none.
    """
    if not api_key:
        if vendor.key_required:
            names = " or ".join(vendor.env_keys)
            wanted = f", or set {names} and make the model with ChatModel.from_env(...)" if names else ""
            raise ConfigurationError(
                f"{vendor.name} needs an API key: pass api_key=...{wanted}", provider=vendor.name
            )
        return vendor.headers
    if vendor.auth == "bearer":
        # Made in one expression: no local variable holds the revealed key.
        return (("authorization", Secret(f"Bearer {api_key.reveal()}")), *vendor.headers)
    return ((vendor.auth, api_key), *vendor.headers)


def starts_with(model: str, beginnings: tuple[str, ...]) -> bool:
    """True if *model* begins with one of *beginnings*, taken as whole: "o1-mini" with "o1", not "o1nline"."""
    return any(
        model.startswith(start) and not model[len(start) : len(start) + 1].isalpha() for start in beginnings
    )


__all__ = (
    "ANTHROPIC",
    "AZURE",
    "DEEPSEEK",
    "GROQ",
    "LLAMA_CPP",
    "LOCAL",
    "OPENAI",
    "OPENROUTER",
    "VENDORS",
    "VLLM",
    "Target",
    "Vendor",
    "auth_headers",
    "resolve",
    "starts_with",
)
