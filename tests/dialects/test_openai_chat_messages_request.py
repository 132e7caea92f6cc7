"""Messages in the OpenAI chat format: what each part becomes, and what a vendor gets back."""

from __future__ import annotations

import pytest

from semflux.dialects.openai_chat_request import build_openai_chat
from semflux.dialects.vendors import (
    AZURE,
    DEEPSEEK,
    GROQ,
    LLAMA_CPP,
    OPENAI,
    OPENROUTER,
    VLLM,
    Vendor,
)
from semflux.messages import (
    MediaPart,
    Message,
    Part,
    RedactedThinkingPart,
    RefusalPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
    VendorPart,
)
from tests.dialects.building import HI, Built

CALL = ToolCall(id="c1", name="add", arguments_json='{"a": 1}', arguments={"a": 1})
BROKEN = ToolCall(id="c2", name="add", arguments_json='{"a":', arguments_error="cut short")
MADE = Built(build_openai_chat, OPENAI, "m")
request, body, sent, refusal = MADE.request, MADE.body, MADE.sent, MADE.refusal


@pytest.mark.parametrize(
    "part, expected",
    [
        (
            MediaPart("image", url="https://h/a.png"),
            {"type": "image_url", "image_url": {"url": "https://h/a.png"}},
        ),
        (
            MediaPart("image", "image/gif", "QQ=="),
            {"type": "image_url", "image_url": {"url": "data:image/gif;base64,QQ=="}},
        ),
        (
            MediaPart("image", data="QQ=="),
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
        ),
        (
            MediaPart("audio", "audio/mpeg", "QQ=="),
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3"}},
        ),
        (
            MediaPart("audio", data="QQ=="),
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
        ),
        (
            MediaPart("file", "application/pdf", "QQ==", name="a.pdf"),
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QQ=="}},
        ),
        (
            VendorPart("openai-chat", {"type": "file", "file": {"file_id": "f"}}),
            {"type": "file", "file": {"file_id": "f"}},
        ),
    ],
)
def test_what_a_user_shows(part: Part, expected: object) -> None:
    """Images, sounds and files beside text, and parts in the vendor's own words."""
    assert sent(Message.user([TextPart("see"), part])) == [
        {"role": "user", "content": [{"type": "text", "text": "see"}, expected]}
    ]


def test_what_only_some_vendors_take() -> None:
    """Videos, and files by address."""
    parts = [MediaPart("video", url="https://h/v"), MediaPart("file", url="https://h/f", name="f")]
    assert sent(Message.user(parts), vendor=OPENROUTER)[0]["content"] == [
        {"type": "video_url", "video_url": {"url": "https://h/v"}},
        {"type": "file", "file": {"filename": "f", "file_data": "https://h/f"}},
    ]


@pytest.mark.parametrize(
    "part, message",
    [
        (MediaPart("image"), "openai: a MediaPart of kind 'image' has neither data nor url"),
        (MediaPart("video", data="QQ=="), "openai: it takes no video"),
        (
            MediaPart("audio", url="https://h/a"),
            "openai: audio goes as data, not by url: load it and give MediaPart(data=...) base64",
        ),
        (
            MediaPart("file", url="https://h/a"),
            "openai: a file goes as data, not by url: load it and give MediaPart(data=...) base64",
        ),
        (ThinkingPart("t"), "openai: a ThinkingPart has no place in a 'user' message"),
    ],
)
def test_what_a_user_cannot_show_is_refused(part: Part, message: str) -> None:
    """With what to do instead."""
    assert refusal([Message.user([part])]) == message


def test_media_has_no_place_in_system_and_tool_messages() -> None:
    """Nor has text beside a tool's result, which would be lost."""
    image = MediaPart("image", url="https://h/a")
    assert [
        refusal([Message("system", image)]),
        refusal([Message("tool", [ToolResultPart("c", "r"), image])]),
    ] == [
        "openai: a MediaPart has no place in a 'system' message",
        "openai: a MediaPart has no place in a 'tool' message",
    ]


@pytest.mark.parametrize(
    "vendor, model, role",
    [
        (OPENAI, "gpt-4o", "system"),
        (OPENAI, "o3-mini", "developer"),
        (OPENAI, "gpt-5.1", "developer"),
        (OPENAI, "ft:o4-mini:mine", "developer"),
        (AZURE, "o3", "developer"),
        (OPENROUTER, "openai/o3", "system"),
        (DEEPSEEK, "o3", "system"),
    ],
)
def test_instructions_have_the_role_the_model_wants(vendor: Vendor, model: str, role: str) -> None:
    """OpenAI's reasoning models have developers."""
    assert sent(Message.system("s"), HI, vendor=vendor, model=model)[0] == {"role": role, "content": "s"}


def test_instructions_in_two_texts_stay_two() -> None:
    """Nothing is joined that was apart; blocks of other dialects are left out, and nothing is an empty text."""
    parts: list[Part] = [TextPart("a"), TextPart("b"), VendorPart("anthropic", {"type": "x"})]
    assert sent(Message("system", parts), Message("user", ())) == [
        {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "user", "content": ""},
    ]


def test_a_tool_turn_goes_back() -> None:
    """Calls with their argument text, results by the call's id."""
    custom = ToolCall(id="c3", name="sh", arguments_json="ls", kind="custom")
    empty = ToolCall(id="c4", name="now", arguments={})
    assert sent(
        HI,
        Message.assistant(
            [ThinkingPart("hm", "sig"), RedactedThinkingPart("x"), *map(ToolCallPart, [CALL, BROKEN])]
        ),
        Message("tool", [ToolResultPart("c1", "2"), ToolResultPart("c2", "bad arguments", True)]),
        Message.assistant([TextPart("so"), ToolCallPart(custom), ToolCallPart(empty)]),
        Message.user([ToolResultPart("c3", "a"), TextPart("and now?"), ToolResultPart("c4", "b")]),
    ) == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
                {"id": "c2", "type": "function", "function": {"name": "add", "arguments": '{"a":'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
        {"role": "tool", "tool_call_id": "c2", "content": "bad arguments"},
        {
            "role": "assistant",
            "content": "so",
            "tool_calls": [
                {"id": "c3", "type": "custom", "custom": {"name": "sh", "input": "ls"}},
                {"id": "c4", "type": "function", "function": {"name": "now", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c3", "content": "a"},
        {"role": "tool", "tool_call_id": "c4", "content": "b"},
        {"role": "user", "content": "and now?"},
    ]


def test_broken_arguments_are_not_sent_to_servers_that_parse_them() -> None:
    """They would fail the whole conversation."""
    (message,) = sent(Message.assistant(ToolCallPart(BROKEN)), vendor=VLLM)
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_what_a_model_said_goes_back_without_what_cannot_be_said_here() -> None:
    """Refusals have a field; thinking, media and other dialects' blocks are left out."""
    assert sent(
        Message.assistant([RefusalPart("no"), RefusalPart("!")]),
        Message.assistant(
            [ThinkingPart("t"), MediaPart("image", data="QQ=="), VendorPart("anthropic", {"type": "x"})]
        ),
        Message.assistant([TextPart("a"), VendorPart("openai-chat", ["odd"]), TextPart("b")]),
    ) == [
        {"role": "assistant", "content": None, "refusal": "no!"},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "ab"},
    ]


TURNS = (
    HI,
    Message.assistant([ThinkingPart("t1"), TextPart("a1")]),
    HI,
    Message.assistant([ThinkingPart("t2"), ToolCallPart(CALL)]),
    Message.user(ToolResultPart("c1", "2")),
    Message.assistant([ThinkingPart("t3"), TextPart("a3")]),
    HI,
    Message.assistant([ThinkingPart("t4"), TextPart("a4")]),
)


@pytest.mark.parametrize(
    "vendor, field, expected",
    [
        (OPENAI, "reasoning_content", []),
        (GROQ, "reasoning", []),
        (DEEPSEEK, "reasoning_content", ["t2", "t3"]),
        (LLAMA_CPP, "reasoning_content", ["t2", "t3"]),
        (OPENROUTER, "reasoning", ["t2", "t3"]),
        (VLLM, "reasoning", ["t2", "t3"]),
    ],
    ids=lambda value: value.name if isinstance(value, Vendor) else None,
)
def test_thinking_goes_back_where_the_vendor_wants_it(
    vendor: Vendor, field: str, expected: list[str]
) -> None:
    """In the whole of a turn in which a tool was called; DeepSeek fails a request without it."""
    assert [message[field] for message in sent(*TURNS, vendor=vendor) if field in message] == expected


def test_details_of_reasoning_go_back_verbatim_to_openrouter() -> None:
    """And to nobody else."""
    detail = {"type": "reasoning.encrypted", "data": "x", "index": 0}
    message = Message.assistant([VendorPart("openai-chat", detail), TextPart("a")])
    assert [sent(message, vendor=OPENROUTER), sent(message)] == [
        [{"role": "assistant", "content": "a", "reasoning_details": [detail]}],
        [{"role": "assistant", "content": "a"}],
    ]
