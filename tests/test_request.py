"""Requests: options are checked when they are made, and nothing in them shows itself."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.errors import ConfigurationError
from semflux.frozen import FrozenDict
from semflux.messages import Message
from semflux.request import ChatRequest, JsonSchema, NamedTool, Options, Reasoning, ToolSpec
from semflux.secret import Secret


def test_a_request_takes_a_string_a_message_or_several() -> None:
    """A string is one user message."""
    one = Message.user("hi")
    assert [ChatRequest(model="m", messages=given).messages for given in ("hi", one, [one, one])] == [
        (one,),
        (one,),
        (one, one),
    ]


def test_a_request_is_a_value() -> None:
    """Two requests with the same content are equal and hash alike."""
    make = lambda: ChatRequest(  # noqa: E731  # twice the same
        model="m", messages="hi", tools=[ToolSpec(name="f")], options=Options(extra={"a": [1]}, stop="x")
    )
    assert (make(), hash(make())) == (make(), hash(make()))


def test_a_plain_string_is_an_effort() -> None:
    """`reasoning="high"` for the common case."""
    assert Options(reasoning="high") == Options(reasoning=Reasoning(effort="high"))


def test_a_plain_string_is_one_stop_text() -> None:
    """Not a tuple of its letters."""
    assert [Options(stop="END").stop, Options(stop=["a", "b"]).stop] == [("END",), ("a", "b")]


def test_mappings_are_frozen_when_they_come_in() -> None:
    """A later change of the caller's dict changes no request."""
    mine: dict[str, object] = {"a": [1]}
    options = Options(extra=mine)
    mine["a"] = 2
    assert (options.extra, type(options.extra)) == ({"a": (1,)}, FrozenDict)


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    """The default schema."""
    assert ToolSpec(name="now").parameters == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"temperature": float("nan")}, "temperature is a finite number, or None for the provider's default"),
        ({"temperature": True}, "temperature is a finite number, or None for the provider's default"),
        ({"top_p": "1"}, "top_p is a finite number, or None for the provider's default"),
        ({"max_tokens": 0}, "max_tokens is a whole number of at least 1, or None for no say in it"),
        ({"top_k": 1.5}, "top_k is a whole number of at least 1, or None for no say in it"),
        ({"max_tokens": True}, "max_tokens is a whole number of at least 1, or None for no say in it"),
        (
            {"tool_choice": "get_weather"},
            'tool_choice is one of auto, none, required; write NamedTool("...") for one certain tool',
        ),
        (
            {"tool_choice": "require"},
            (
                """tool_choice is one of auto, none, required; did you mean 'required'? """
                """write NamedTool("...") for one certain tool"""
            ),
        ),
        (
            {"response_format": "json"},
            "response_format is one of text, json_object; write JsonSchema(schema=...) for a schema",
        ),
        (
            {"think_tags": "allways"},
            "think_tags is one of auto, always, never; did you mean 'always'? the default is 'auto'",
        ),
        (
            {"reasoning": "hihg"},
            (
                "effort is one of none, minimal, low, medium, high, xhigh, max; did you mean 'high'? "
                "send a vendor's own word by extra={...}"
            ),
        ),
    ],
)
def test_a_wrong_option_says_what_to_write(fields: dict[str, Any], message: str) -> None:
    """The error comes where the options are made, and names the option."""
    with pytest.raises(ConfigurationError) as caught:
        Options(**fields)
    assert str(caught.value) == message


def test_a_wrong_summary_says_what_to_write() -> None:
    """Like an effort."""
    wrong: Any = "full"
    with pytest.raises(ConfigurationError, match="summary is one of auto, concise, detailed"):
        Reasoning(summary=wrong)


def test_a_tool_needs_a_name() -> None:
    """An empty name cannot be called."""
    with pytest.raises(ConfigurationError, match="a tool needs a name"):
        ToolSpec(name="")


def test_named_tools_and_schemas_are_taken() -> None:
    """The two that are no words."""
    options = Options(tool_choice=NamedTool("f"), response_format=JsonSchema(schema={"type": "object"}))
    assert (options.tool_choice, options.response_format) == (
        NamedTool("f"),
        JsonSchema(schema={"type": "object"}, name="response", description=None, strict=True),
    )


def test_no_repr_shows_a_prompt_a_key_or_a_header() -> None:
    """A request in a log tells its shape alone."""
    request = ChatRequest(
        model="m",
        messages="canary",
        tools=(ToolSpec(name="f", parameters={"x": "canary"}),),
        options=Options(
            stop="canary",
            user="canary",
            metadata={"label": "canary"},
            extra={"field": "canary"},
            headers={"x-one": "canary", "x-two": Secret("canary")},
            response_format=JsonSchema(schema={"x": "canary"}),
        ),
    )
    shown = repr(request)
    assert ("canary" in shown, "<1 messages>" in shown, "extra=<field>" in shown) == (False, True, True)
