"""A real model behind a real socket: `ChatModel("local")`, in both dialects, against the one llama.cpp server."""

from __future__ import annotations

import asyncio

import pytest

from semflux import ChatModel, ChatResponse, ToolSpec
from semflux.errors import AuthenticationError, BlockingInLoopError, ConfigurationError, ProviderError
from semflux.events import AnyChatEvent
from semflux.local import LocalServer
from tests.model.asking import acquired, read, types, until

pytestmark = pytest.mark.xdist_group("local")

SHORT = {"max_tokens": 12, "temperature": 0.0}
DIALECTS = ("openai-chat", "anthropic")


def looks_right(response: ChatResponse, dialect: str) -> None:
    assert response.text
    assert response.usage is not None
    assert response.usage.input_tokens is not None
    assert response.usage.input_tokens > 0
    assert response.usage.output_tokens is not None
    assert response.usage.output_tokens > 0
    assert not response.repairs
    assert response.provider_response_id


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_local_model_answers(local_server: LocalServer, dialect: str) -> None:
    async with ChatModel("local", dialect=dialect) as model:
        seen = await read(model.prompt("Say hello.").options(max_tokens=60, temperature=0.0).stream())
    assert seen.error is None
    assert types(seen)[:2] == ["RESPONSE_START", "STEP_START"]
    assert types(seen)[-2:] == ["STEP_END", "RESPONSE_END"]
    assert types(seen).count("TEXT_DELTA") > 1
    assert seen.response.finish_reason == "stop"
    looks_right(seen.response, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_local_model_stops_by_length(local_server: LocalServer, dialect: str) -> None:
    async with ChatModel("local", dialect=dialect) as model:
        response = await model.prompt("Count from one to one hundred.").options(**SHORT).call()
    assert response.finish_reason == "length"
    looks_right(response, dialect)
    assert response.usage is not None
    assert response.usage.output_tokens == 12


async def test_both_dialects_say_the_same(local_server: LocalServer) -> None:
    """One model, greedy: the words do not depend on the wire."""
    texts: list[str] = []
    for dialect in DIALECTS:
        async with ChatModel("local", dialect=dialect) as model:
            prompt = model.prompt("Name a colour.").system("You are brief.").options(**SHORT)
            texts.append((await prompt.call()).text)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_local_model_may_be_left_in_the_middle(local_server: LocalServer, dialect: str) -> None:
    """And answers the next one."""
    async with ChatModel("local", dialect=dialect) as model:
        events: list[AnyChatEvent] = []
        async for event in model.prompt("Count from one to one thousand.").options(max_tokens=500).stream():
            events.append(event)
            if event.type == "TEXT_DELTA":
                break
        await until(lambda: acquired(model) == 0)
        assert events[-1].type == "TEXT_DELTA"
        response = await model.prompt("Say hello.").options(**SHORT).call()
        assert response.text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_local_model_answers_plain_code(local_server: LocalServer, dialect: str) -> None:
    model = ChatModel("local", dialect=dialect)
    prompt = model.prompt("Say hello.").options(**SHORT)
    response = prompt.call().block(timeout=60)
    assert response.text
    first = prompt.stream().text().block_first(timeout=60)
    assert first is not None
    assert response.text.startswith(first)


async def test_a_local_model_is_not_blocked_on_inside_a_loop(local_server: LocalServer) -> None:
    with pytest.raises(BlockingInLoopError):
        ChatModel("local").prompt("hi").call().block()


async def test_several_streams_of_a_local_model_run_at_once(local_server: LocalServer) -> None:
    async with ChatModel("local") as model:

        async def ask(n: int) -> str:
            return (await model.prompt(f"Say the number {n}.").options(**SHORT).call()).text

        texts = await asyncio.gather(*[ask(n) for n in range(4)])
    assert all(texts)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_one_call_after_another_finds_a_local_model_there(
    local_server: LocalServer, dialect: str
) -> None:
    """llama.cpp says "Keep-Alive" and closes the connection after a stream: a fifth of all calls was lost on it."""
    async with ChatModel("local", dialect=dialect) as model:
        for _ in range(30):
            await model.prompt("Say hello.").options(max_tokens=2).call()


async def test_a_local_model_by_its_file_is_the_same_server(local_server: LocalServer) -> None:
    async with ChatModel(f"local:{local_server.model}") as model:
        assert (await model.prompt("Say hello.").options(**SHORT).call()).text


async def test_a_key_is_asked_for(local_server: LocalServer) -> None:
    """Whoever knows the port only is refused."""
    async with ChatModel("llama.cpp:x", base_url=local_server.base_url, api_key="wrong") as model:
        with pytest.raises(AuthenticationError):
            await model.prompt("hi").call()
    async with ChatModel(
        "llama.cpp:x", base_url=local_server.base_url, api_key=local_server.api_key
    ) as model:
        assert (await model.prompt("Say hello.").options(**SHORT).call()).text


async def test_an_answer_that_a_local_model_cannot_give_is_an_error(local_server: LocalServer) -> None:
    """The prompt is longer than its context."""
    async with ChatModel("local") as model:
        with pytest.raises(ProviderError) as caught:
            await model.prompt("word " * 20_000).call()
    assert caught.value.provider == "local"
    assert caught.value.attempts == 1


async def test_what_is_wrong_with_a_request_to_a_local_model_is_the_streams_error(
    local_server: LocalServer,
) -> None:
    """Its address is only known once it runs, so the request is built then."""
    async with ChatModel("local", dialect="anthropic") as model:
        seen = await read(model.prompt("hi").options(seed=1).stream())
    assert isinstance(seen.error, ConfigurationError)
    assert seen.error.attempts == 0
    assert types(seen) == ["RESPONSE_START", "ERROR"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_local_model_may_be_offered_tools(local_server: LocalServer, dialect: str) -> None:
    """It is too small to be sure of a call; whatever it does keeps to the rules."""
    weather = ToolSpec(
        name="weather",
        description="The weather of a place.",
        parameters={"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    )
    async with ChatModel("local", dialect=dialect) as model:
        seen = await read(
            model.prompt("Weather in Rome?").tools(weather).options(max_tokens=40, temperature=0.0).stream()
        )
    assert seen.error is None
