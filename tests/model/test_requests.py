"""What goes over the wire when a prompt is asked, byte for byte, at each vendor."""

from __future__ import annotations

from typing import Any

import pytest

from semflux import ChatModel, ChatRequest, Message, Options, Prompt, Secret, ToolSpec, Vendor
from semflux.errors import ConfigurationError
from semflux.events import ChatEventType
from semflux.filters import ChatEventFilter
from tests.faultserver import REQUEST, FaultServer, answer
from tests.frames import DONE, an, cc
from tests.model.asking import (
    BODIES,
    CANARY,
    CHAT,
    FINISH,
    HELLO,
    JSON,
    SSE,
    WHOLE,
    asking,
    read,
    request_of,
    streamed,
    types,
)

WEATHER = ToolSpec(name="weather", description="Of a place.", parameters={"type": "object"})


async def asked(model: str, *, path: str = "", **settings: Any) -> tuple[str, dict[str, str], Any]:
    """The request that *model* sends for "hi", with the system text "be kind", to a server at *path*."""
    dialect = settings.get("dialect") or ("anthropic" if model.startswith("anthropic") else "openai-chat")
    async with FaultServer([REQUEST, streamed(BODIES[dialect])]) as server:
        url = f"http://127.0.0.1:{server.port}{path}"
        async with ChatModel(model, base_url=url, **settings) as chat:
            response = await chat.prompt("hi").system("be kind").call()
        assert response.text == "Hello"
        assert len(server.requests) == 1
        return request_of(server.requests[0])


@pytest.mark.parametrize(
    "model, path, line, header, value",
    [
        ("openai-chat:gpt-4o", "", "/v1/chat/completions", "authorization", f"Bearer {CANARY}"),
        ("openai-chat:gpt-4o", "/x/v1", "/x/v1/chat/completions", "authorization", f"Bearer {CANARY}"),
        (
            "azure:my-4o",
            "",
            "/openai/deployments/my-4o/chat/completions?api-version=2024-10-21",
            "api-key",
            CANARY,
        ),
        ("azure:my-4o", "/openai/v1", "/openai/v1/chat/completions", "api-key", CANARY),
        ("deepseek:deepseek-chat", "", "/v1/chat/completions", "authorization", f"Bearer {CANARY}"),
        ("openrouter:a/b", "", "/api/v1/chat/completions", "authorization", f"Bearer {CANARY}"),
        ("groq:llama-3", "", "/openai/v1/chat/completions", "authorization", f"Bearer {CANARY}"),
        ("vllm:qwen", "", "/v1/chat/completions", "authorization", f"Bearer {CANARY}"),
        ("llama.cpp:qwen", "", "/v1/chat/completions", "authorization", f"Bearer {CANARY}"),
        ("anthropic:claude-sonnet-4-5", "", "/v1/messages", "x-api-key", CANARY),
        ("anthropic:claude-sonnet-4-5", "/v1", "/v1/messages", "x-api-key", CANARY),
    ],
)
async def test_each_vendor_gets_its_path_and_its_key_in_its_header(
    model: str, path: str, line: str, header: str, value: str
) -> None:
    request, headers, body = await asked(model, path=path, api_key=CANARY)
    assert request == f"POST {line} HTTP/1.1"
    assert headers[header] == value
    assert headers["content-type"] == "application/json"
    assert headers["accept"] == "text/event-stream"
    assert headers["accept-encoding"] == "identity"
    assert [name for name, text in headers.items() if CANARY in text] == [header]
    assert body["model"] == model.partition(":")[2]
    assert body["stream"] is True
    assert CANARY not in str(body)


async def test_openai_chat_is_asked_with_roles_and_for_usage() -> None:
    _, _, body = await asked("openai-chat:gpt-4o", api_key=CANARY)
    assert body == {
        "model": "gpt-4o",
        "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_a_reasoning_model_is_asked_as_a_developer() -> None:
    _, _, body = await asked("openai-chat:o3-mini", api_key=CANARY)
    assert body["messages"][0] == {"role": "developer", "content": "be kind"}


async def test_anthropic_is_asked_with_its_version_and_the_system_text_on_top() -> None:
    _, headers, body = await asked("anthropic:claude-sonnet-4-5", api_key=CANARY)
    assert headers["anthropic-version"] == "2023-06-01"
    assert body["system"] == "be kind"
    assert body["messages"] == [{"role": "user", "content": "hi"}]
    assert body["max_tokens"] > 0


@pytest.mark.parametrize("model", ["vllm:qwen", "llama.cpp:qwen"])
async def test_a_server_that_needs_no_key_is_asked_without_one(model: str) -> None:
    _, headers, _ = await asked(model)
    assert "authorization" not in headers


async def test_a_vendor_can_be_asked_in_another_dialect() -> None:
    line, headers, body = await asked("llama.cpp:qwen", dialect="anthropic")
    assert line == "POST /v1/messages HTTP/1.1"
    assert headers["anthropic-version"] == "2023-06-01"
    assert body["system"] == "be kind"


@pytest.mark.parametrize("model", ["acme:fast-1", "openai-chat:fast-1"])
async def test_a_vendor_of_ones_own_is_named_by_its_own_name_or_by_another(model: str) -> None:
    acme = Vendor(name="acme", dialect="openai-chat", root_path="/api", auth="x-api-key")
    line, headers, body = await asked(model, vendor=acme, api_key=Secret(CANARY))
    assert line == "POST /api/chat/completions HTTP/1.1"
    assert headers["x-api-key"] == CANARY
    assert body["model"] == "fast-1"


async def test_options_tools_and_messages_reach_the_body() -> None:
    async with asking([REQUEST, streamed(CHAT)], options=Options(temperature=0.5, seed=1)) as (model, server):
        prompt = (
            model.prompt([Message.user("a"), Message.assistant("b"), Message.user("c")])
            .tools(WEATHER)
            .options(max_tokens=7, temperature=0)
        )
        await prompt.call()
        _, _, body = request_of(server.requests[0])
    assert [message["content"] for message in body["messages"]] == ["a", "b", "c"]
    assert body["temperature"] == 0
    assert body["seed"] == 1
    assert body["max_completion_tokens"] == 7
    assert body["tools"][0]["function"]["name"] == "weather"


async def test_each_step_of_a_prompt_is_a_new_prompt() -> None:
    """The ones before stay as they are and may be sent as well."""
    async with asking([REQUEST, streamed(CHAT)] * 2) as (model, server):
        first = model.prompt("hi")
        second = first.system("be kind").options(Options(top_p=0.5), seed=2).event_filter(None)
        assert isinstance(second, Prompt)
        await first.call()
        await second.call()
        bodies = [request_of(request)[2] for request in server.requests]
    assert [len(body["messages"]) for body in bodies] == [1, 2]
    assert "seed" not in bodies[0]
    assert (bodies[1]["seed"], bodies[1]["top_p"]) == (2, 0.5)
    assert first.request.options == Options()


async def test_a_stream_is_cold_each_subscription_sends_the_request() -> None:
    async with asking([REQUEST, streamed(CHAT)] * 3) as (model, server):
        stream = model.prompt("hi").stream()
        assert server.seen == []
        seen = [await read(stream) for _ in range(3)]
        assert len(server.requests) == 3
    assert len({event.response_id for one in seen for event in one.events}) == 3
    assert [types(one) for one in seen] == [types(seen[0])] * 3
    assert [[event.seq for event in one.events] for one in seen] == [list(range(len(seen[0].events)))] * 3


async def test_the_filter_hides_events_and_never_the_frame_of_the_stream() -> None:
    only = ChatEventFilter.of(ChatEventType.TEXT_DELTA)
    async with asking([REQUEST, streamed(CHAT)]) as (model, _):
        shown = [event async for event in model.prompt("hi").event_filter(only).stream()]
    assert [event.type.value for event in shown] == [
        "RESPONSE_START",
        "STEP_START",
        "TEXT_DELTA",
        "TEXT_DELTA",
        "STEP_END",
        "RESPONSE_END",
    ]
    assert shown[-1].usage is not None


@pytest.mark.parametrize("keep, shown", [(ChatEventFilter.DEFAULT, False), (None, True)])
async def test_raw_and_heartbeats_are_shown_only_where_the_filter_lets_them_through(
    keep: ChatEventFilter | None, shown: bool
) -> None:
    body = BODIES["anthropic"].replace(
        b"event: message_delta", an("ping") + an("novelty", x=1) + b"event: message_delta"
    )
    async with asking([REQUEST, streamed(body)], dialect="anthropic") as (model, _):
        seen = await read(model.prompt("hi").event_filter(keep).stream())
    assert ({"HEARTBEAT", "RAW"} <= set(types(seen))) is shown


async def test_think_tags_are_an_option_of_the_parser_and_never_sent() -> None:
    body = cc({"content": "a<think>b</think>c"}) + FINISH + DONE
    async with asking([REQUEST, streamed(body)]) as (model, server):
        response = await model.prompt("hi").options(think_tags="always").call()
        assert b"think" not in server.requests[0]
    assert (response.text, response.thinking) == ("ac", "b")


async def test_a_call_is_folded_from_the_same_stream() -> None:
    async with asking([REQUEST, streamed(CHAT)]) as (model, _):
        prompt = model.prompt("hi")
        seen, response = await read(prompt.stream()), await prompt.call()
    ours, theirs = seen.response.to_dict(), response.to_dict()
    assert {**ours, "response_id": ""} == {**theirs, "response_id": ""}
    assert (response.text, response.finish_reason) == ("Hello", "stop")
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (3, 2)


async def test_a_call_that_names_no_stream_type_still_streams() -> None:
    """The request of `call` is the one of `stream`."""
    async with asking([REQUEST, streamed(HELLO + FINISH + DONE, SSE)]) as (model, server):
        await model.prompt("hi").call()
        assert request_of(server.requests[0])[2]["stream"] is True


async def test_a_request_of_ones_own_may_ask_for_one_document() -> None:
    """Then that is what comes; the events are those of a stream."""
    request = ChatRequest(model="gpt-4o", messages="hi", stream=False)
    async with asking([REQUEST, answer(WHOLE["openai-chat"], JSON)]) as (model, server):
        seen = await read(model.stream(request))
        _, headers, body = request_of(server.requests[0])
    assert (headers["accept"], body["stream"]) == ("application/json", False)
    assert "stream_options" not in body
    assert seen.response.text == "Hello"


async def test_what_is_wrong_with_a_request_is_told_where_it_is_written() -> None:
    """Before anything is subscribed to, let alone sent."""
    model = ChatModel("openai-chat:gpt-4o", api_key=CANARY)
    with pytest.raises(ConfigurationError, match="top_k"):
        model.prompt("hi").options(top_k=3).stream()


async def test_the_name_of_a_model_is_the_vendors() -> None:
    assert ChatModel("openrouter:a/b:free", api_key=CANARY).name == "a/b:free"
    assert ChatModel("local").name == ""
