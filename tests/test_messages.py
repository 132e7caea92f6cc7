"""Messages and their parts: values that survive JSON and do not show prompts."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

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
    part_from_dict,
    part_tag,
    part_to_dict,
)

CALL = ToolCall(id="c1", name="add", arguments_json='{"a":[1]}', arguments={"a": [1]})
PARTS: tuple[Part, ...] = (
    TextPart("hi"),
    ThinkingPart("hm", "sig", "item"),
    RedactedThinkingPart("opaque"),
    RefusalPart("no"),
    ToolCallPart(CALL),
    ToolCallPart(ToolCall(id="c2", name="sh", arguments_json="ls", kind="custom")),
    ToolResultPart("c1", "2", True, "add"),
    MediaPart("image", "image/png", "QUJD", None, "a.png"),
    VendorPart("anthropic", {"type": "x", "list": [1, {"y": None}]}),
)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_part_comes_back_from_json_as_it_was(part: Part) -> None:
    """Every part round-trips through JSON text, under its tag."""
    assert part_to_dict(part)["type"] == part_tag(type(part))
    assert part_from_dict(json.loads(json.dumps(part_to_dict(part)))) == part


def test_a_message_comes_back_from_json_as_it_was() -> None:
    """Role, parts and the caller's own notes, which have a field only where there are any."""
    messages = [Message("assistant", PARTS, attributes={"note": "mine"}), Message("assistant", PARTS)]
    written = [message.to_dict() for message in messages]
    assert [Message.from_dict(fields) for fields in json.loads(json.dumps(written))] == messages
    assert ["attributes" in fields for fields in written] == [True, False]


def test_a_message_pickles_and_copies() -> None:
    """Values hold no handles."""
    message = Message("assistant", PARTS)
    assert (pickle.loads(pickle.dumps(message)), copy.deepcopy(message)) == (message, message)


def test_a_message_takes_a_string_a_part_or_several() -> None:
    """A string stands for one text part."""
    text = TextPart("hi")
    assert [Message.user(content).parts for content in ("hi", text, [text, text], ())] == [
        (text,),
        (text,),
        (text, text),
        (),
    ]


def test_the_shortcuts_make_messages_of_their_role() -> None:
    """One for each role."""
    assert [
        Message.system("s"),
        Message.user("u"),
        Message.assistant("a"),
        Message.tool("c1", "r", is_error=True, name="add"),
    ] == [
        Message("system", (TextPart("s"),)),
        Message("user", (TextPart("u"),)),
        Message("assistant", (TextPart("a"),)),
        Message("tool", (ToolResultPart("c1", "r", True, "add"),)),
    ]


def test_a_message_gives_its_text_and_its_calls() -> None:
    """Text parts joined; calls in order; all else passed over."""
    message = Message.assistant([TextPart("a"), ThinkingPart("t"), ToolCallPart(CALL), TextPart("b")])
    assert (message.text, message.tool_calls) == ("ab", (CALL,))


def test_a_call_is_complete_with_an_object_or_free_text() -> None:
    """A parse error or a JSON value that is no object is not complete."""
    assert [
        CALL.is_complete,
        ToolCall(id="c", arguments_json="ls", kind="custom").is_complete,
        ToolCall(id="c", arguments_json="{", arguments_error="cut short").is_complete,
        ToolCall(id="c", arguments_json="[1]", arguments=[1]).is_complete,
    ] == [True, True, False, False]


def test_arguments_are_deeply_immutable() -> None:
    """Objects refuse changes and arrays are tuples."""
    assert CALL.arguments["a"] == (1,)
    with pytest.raises(TypeError, match="immutable"):
        CALL.arguments["a"] = 2


def test_no_repr_shows_more_than_eighty_characters_of_text() -> None:
    """Prompts, answers, media and signatures do not belong into logs."""
    long = "x" * 200
    shown = [
        repr(part)
        for part in (
            TextPart(long),
            ThinkingPart(long, long),
            RedactedThinkingPart(long),
            RefusalPart(long),
            ToolCallPart(ToolCall(id="c", arguments_json=long, arguments={"x": long})),
            ToolResultPart("c", long),
            MediaPart("image", data=long),
            MediaPart("image", url="data:image/png;base64," + long),
            VendorPart("d", {"x": long}),
        )
    ]
    assert [text for text in shown if "x" * 81 in text] == []


def test_a_repr_shows_short_text_and_addresses_without_their_query() -> None:
    """A signed address keeps its signature to itself."""
    assert [repr(TextPart("hi")), repr(MediaPart("image", url="https://h/a.png?sig=1"))] == [
        "TextPart(text='hi')",
        "MediaPart(kind='image', mime_type=None, data=None, url='https://h/a.png', name=None)",
    ]
