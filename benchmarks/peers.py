"""Other libraries, fed the same bytes without a network: their own client on a transport that answers from memory.

Each is optional. The vendors' SDKs come with `make bench`; for the others
`pip install "pydantic-ai-slim[openai,anthropic]" langchain-openai langchain-anthropic litellm`.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from benchmarks.measure import Contestant

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no download of a price list
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
os.environ.setdefault("LANGSMITH_TRACING", "false")

_HEADERS = {"content-type": "text/event-stream", "request-id": "r", "x-request-id": "r"}
_ASK: Any = [{"role": "user", "content": "Why is the sky blue?"}]
_KEY = "no-key"


def _httpx() -> Any:
    """The httpx that the installed SDKs use."""
    try:
        return importlib.import_module("httpx2")
    except ImportError:
        return importlib.import_module("httpx")


def _client(chunks: Sequence[bytes]) -> Any:
    """A client of httpx that answers every request with *chunks*."""
    httpx = _httpx()

    def answer(request: Any) -> Any:
        def body() -> Iterator[bytes]:
            yield from chunks

        return httpx.Response(200, headers=_HEADERS, content=body())

    return httpx.Client(transport=httpx.MockTransport(answer))


def _async_client(chunks: Sequence[bytes]) -> Any:
    httpx = _httpx()

    async def answer(request: Any) -> Any:
        async def body() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        return httpx.Response(200, headers=_HEADERS, content=body())

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


def _count(items: Any) -> int:
    return sum(1 for _ in items)


# The vendors' SDKs, each in its synchronous form, which is the cheaper one.


def openai_sdk(chunks: Sequence[bytes], dialect: str) -> Iterator[Contestant]:
    if dialect != "openai-chat":
        return
    openai = importlib.import_module("openai")
    client = openai.OpenAI(api_key=_KEY, http_client=_client(chunks), max_retries=0)

    def raw() -> int:
        return _count(client.chat.completions.create(model="gpt-4o-mini", messages=_ASK, stream=True))

    def helper() -> int:
        with client.chat.completions.stream(model="gpt-4o-mini", messages=_ASK) as stream:
            count = _count(stream)
            stream.get_final_completion()
        return count

    yield Contestant("openai SDK, raw chunks", raw, peer=True)
    yield Contestant("openai SDK, helper", helper, peer=True)


def anthropic_sdk(chunks: Sequence[bytes], dialect: str) -> Iterator[Contestant]:
    if dialect != "anthropic":
        return
    anthropic = importlib.import_module("anthropic")
    client = anthropic.Anthropic(api_key=_KEY, http_client=_client(chunks), max_retries=0)
    ask = {"model": "claude-sonnet-4-5", "max_tokens": 4096, "messages": _ASK}

    def raw() -> int:
        return _count(client.messages.create(**ask, stream=True))

    def helper() -> int:
        with client.messages.stream(**ask) as stream:
            count = _count(stream)
            stream.get_final_message()
        return count

    yield Contestant("anthropic SDK, raw events", raw, peer=True)
    yield Contestant("anthropic SDK, helper", helper, peer=True)


def pydantic_ai(chunks: Sequence[bytes], dialect: str) -> Iterator[Contestant]:
    messages = importlib.import_module("pydantic_ai.messages")
    models = importlib.import_module("pydantic_ai.models")
    ask = [messages.ModelRequest(parts=[messages.UserPromptPart("Why is the sky blue?")])]
    model: Any
    if dialect == "openai-chat":
        client = importlib.import_module("openai").AsyncOpenAI(
            api_key=_KEY, http_client=_async_client(chunks), max_retries=0
        )
        provider = importlib.import_module("pydantic_ai.providers.openai").OpenAIProvider(
            openai_client=client
        )
        model = importlib.import_module("pydantic_ai.models.openai").OpenAIChatModel(
            "gpt-4o-mini", provider=provider
        )
    else:
        client = importlib.import_module("anthropic").AsyncAnthropic(
            api_key=_KEY, http_client=_async_client(chunks), max_retries=0
        )
        provider = importlib.import_module("pydantic_ai.providers.anthropic").AnthropicProvider(
            anthropic_client=client
        )
        model = importlib.import_module("pydantic_ai.models.anthropic").AnthropicModel(
            "claude-sonnet-4-5", provider=provider
        )

    async def stream() -> int:
        count = 0
        async with model.request_stream(ask, None, models.ModelRequestParameters()) as response:
            async for _ in response:
                count += 1
            response.get()
        return count

    yield Contestant("pydantic-ai, model stream", _in_loop(stream), peer=True)


def langchain(chunks: Sequence[bytes], dialect: str) -> Iterator[Contestant]:
    model: Any
    if dialect == "openai-chat":
        made = importlib.import_module("langchain_openai").ChatOpenAI
        client = importlib.import_module("openai").AsyncOpenAI(
            api_key=_KEY, http_client=_async_client(chunks), max_retries=0
        )
        model = made(model="gpt-4o-mini", api_key=_KEY, async_client=client.chat.completions)
    else:
        made = importlib.import_module("langchain_anthropic").ChatAnthropic
        client = importlib.import_module("anthropic").AsyncAnthropic(
            api_key=_KEY, http_client=_async_client(chunks), max_retries=0
        )
        model = made(model="claude-sonnet-4-5", api_key=_KEY)
        model.__dict__["_async_client"] = client  # a cached property: it has no other door

    async def stream() -> int:
        count = 0
        async for _ in model.astream("Why is the sky blue?"):
            count += 1
        return count

    yield Contestant("langchain, astream", _in_loop(stream), peer=True)


def litellm(chunks: Sequence[bytes], dialect: str) -> Iterator[Contestant]:
    if dialect != "openai-chat":
        return  # its anthropic client takes no transport of ours
    module: Any = importlib.import_module("litellm")
    module.suppress_debug_info = True
    client = importlib.import_module("openai").OpenAI(
        api_key=_KEY, http_client=_client(chunks), max_retries=0
    )

    def stream() -> int:
        return _count(
            module.completion(model="openai/gpt-4o-mini", messages=_ASK, stream=True, client=client)
        )

    yield Contestant("litellm, completion", stream, peer=True)


def _in_loop(stream: Callable[[], Any]) -> Callable[[], object]:
    return lambda: asyncio.run(stream())


PEERS: dict[str, Callable[[Sequence[bytes], str], Iterator[Contestant]]] = {
    "openai": openai_sdk,
    "anthropic": anthropic_sdk,
    "pydantic-ai": pydantic_ai,
    "langchain": langchain,
    "litellm": litellm,
}


def contestants(chunks: Sequence[bytes], dialect: str, left_out: dict[str, str]) -> list[Contestant]:
    """What can take part; the reasons of the others go into *left_out*."""
    found: list[Contestant] = []
    for name, make in PEERS.items():
        try:
            found += make(chunks, dialect)
        except ImportError as error:
            left_out[name] = f"not installed ({error})"
        except Exception as error:  # noqa: BLE001  # other versions have other interfaces
            left_out[name] = f"cannot be set up here ({type(error).__name__}: {error})"
    return found
