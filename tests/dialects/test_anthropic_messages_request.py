"""Messages in Anthropic's format: roles alternate, and what a model said goes back verbatim."""

from __future__ import annotations

from base64 import b64encode

import pytest

from semflux.dialects.anthropic_request import build_anthropic
from semflux.dialects.vendors import ANTHROPIC
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

CALL = ToolCall(id="toolu_1", name="add", arguments_json='{"a": 1}', arguments={"a": 1})
SERVER_BLOCK = {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": "q"}}
MADE = Built(build_anthropic, ANTHROPIC, "claude-new")
request, body, sent, refusal = MADE.request, MADE.body, MADE.sent, MADE.refusal


def test_instructions_go_to_the_top() -> None:
    """Wherever they stood; blank ones and other dialects' blocks are left out."""
    messages = [Message.system("a"), HI, Message("system", [TextPart(" "), TextPart("b")])]
    assert (body(messages)["system"], sent(*messages)) == ("a\n\nb", [{"role": "user", "content": "hi"}])


def test_instructions_with_blocks_of_the_vendors_own_stay_blocks() -> None:
    """As for a place where the cache ends."""
    cached = {"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}
    parts: list[Part] = [
        VendorPart("anthropic", cached),
        VendorPart("openai-chat", {"type": "x"}),
        TextPart("b"),
    ]
    assert body([Message("system", parts), HI])["system"] == [cached, {"type": "text", "text": "b"}]


def test_neighbours_of_one_role_become_one_message() -> None:
    """Roles alternate; a message with nothing in it vanishes."""
    assert sent(
        Message.user(""),
        HI,
        Message.user("there"),
        Message.assistant("a"),
        Message.assistant([ThinkingPart("unsigned")]),
        Message.assistant("b"),
        HI,
    ) == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "there"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "user", "content": "hi"},
    ]


def test_a_tool_turn_goes_back() -> None:
    """Results of several messages in one user message, before what the user says with them."""
    broken = ToolCall(id="call_0_1", name="add", arguments_json="{", arguments_error="cut short")
    custom = ToolCall(id="functions.sh:2", name="sh", arguments_json="ls", kind="custom")
    listed = ToolCall(id="c4", name="add", arguments_json="[1]", arguments=[1])
    assert sent(
        HI,
        Message.assistant([TextPart("let me"), *map(ToolCallPart, [CALL, broken, custom, listed])]),
        Message.tool("toolu_1", "2"),
        Message.user("and then?"),
        Message("tool", [ToolResultPart("call_0_1", "bad", True), ToolResultPart("functions.sh:2", "x")]),
        Message.tool("c4", "no"),
    ) == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "let me"},
                {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}},
                {"type": "tool_use", "id": "call_0_1", "name": "add", "input": {}},
                {"type": "tool_use", "id": "functions_sh_2", "name": "sh", "input": {"input": "ls"}},
                {"type": "tool_use", "id": "c4", "name": "add", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "2"},
                {"type": "tool_result", "tool_use_id": "call_0_1", "content": "bad", "is_error": True},
                {"type": "tool_result", "tool_use_id": "functions_sh_2", "content": "x"},
                {"type": "tool_result", "tool_use_id": "c4", "content": "no"},
                {"type": "text", "text": "and then?"},
            ],
        },
    ]


def test_what_a_model_said_goes_back_verbatim_and_in_order() -> None:
    """Signed thinking, redacted thinking and the vendor's own blocks; what is not its own is left out."""
    assert sent(
        HI,
        Message.assistant(
            [
                ThinkingPart("hm", "sig"),
                ThinkingPart("unsigned"),
                ThinkingPart("", "sig2"),
                RedactedThinkingPart("opaque"),
                VendorPart("anthropic", SERVER_BLOCK),
                VendorPart("openai-chat", {"type": "x"}),
                MediaPart("image", data="QQ=="),
                ToolResultPart("x", "y"),
                TextPart(""),
                RefusalPart("no"),
            ]
        ),
    )[1] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "thinking", "thinking": "", "signature": "sig2"},
            {"type": "redacted_thinking", "data": "opaque"},
            SERVER_BLOCK,
            {"type": "text", "text": "no"},
        ],
    }


@pytest.mark.parametrize(
    "part, expected",
    [
        (
            MediaPart("image", url="https://h/a"),
            {"type": "image", "source": {"type": "url", "url": "https://h/a"}},
        ),
        (
            MediaPart("image", "image/gif", "QQ=="),
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "QQ=="}},
        ),
        (
            MediaPart("file", data="QQ==", name="a.pdf"),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "QQ=="},
                "title": "a.pdf",
            },
        ),
        (
            MediaPart("file", url="https://h/a"),
            {"type": "document", "source": {"type": "url", "url": "https://h/a"}},
        ),
        (
            MediaPart("file", "text/markdown", b64encode("é".encode()).decode()),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "é"}},
        ),
        (
            VendorPart("anthropic", {"type": "container_upload", "file_id": "f"}),
            {"type": "container_upload", "file_id": "f"},
        ),
    ],
)
def test_what_a_user_shows(part: Part, expected: object) -> None:
    """Images and documents beside text, and blocks in the vendor's own words."""
    assert sent(Message.user([TextPart("see"), part])) == [
        {"role": "user", "content": [{"type": "text", "text": "see"}, expected]}
    ]


@pytest.mark.parametrize(
    "part, message",
    [
        (MediaPart("image"), "anthropic: a MediaPart of kind 'image' has neither data nor url"),
        (MediaPart("audio", data="QQ=="), "anthropic: it takes no audio"),
        (MediaPart("video", data="QQ=="), "anthropic: it takes no video"),
        (MediaPart("file", "text/plain", "!"), "anthropic: a text file's data must be UTF-8 in base64"),
        (MediaPart("file", "text/plain", "/w=="), "anthropic: a text file's data must be UTF-8 in base64"),
        (ThinkingPart("t"), "anthropic: a ThinkingPart has no place in a 'user' message"),
    ],
)
def test_what_a_user_cannot_show_is_refused(part: Part, message: str) -> None:
    """With what to do instead."""
    assert refusal([Message.user([part])]) == message


def test_media_and_results_have_no_place_in_instructions() -> None:
    """They would be lost."""
    assert [
        refusal([Message("system", part)])
        for part in (MediaPart("image", url="https://h"), ToolResultPart("c", "r"))
    ] == [
        "anthropic: a MediaPart has no place in a 'system' message",
        "anthropic: a ToolResultPart has no place in a 'system' message",
    ]
