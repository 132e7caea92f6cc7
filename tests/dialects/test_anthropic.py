"""Anthropic messages: blocks, deltas, calls, server tools, usage and citations."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.dialects.anthropic_parts import citation_of, merge_block, server_tool, usage_of
from semflux.events import ChatEventType
from semflux.response import CitedSource
from semflux.usage import Usage
from tests.frames import STOP, an, blk, claude, dl, end, md, sse, start, text_block

T = ChatEventType
TURN = md("end_turn")


def test_text_comes_in_blocks_of_the_vendors_own() -> None:
    """START, DELTA and END each from its frame, with its index; ping is a sign of life."""
    seen = claude(start(), an("ping"), text_block(0, "Hel", "lo"), TURN, STOP)

    assert [(str(e.type), e.index) for e in seen.events] == [
        ("RESPONSE_START", None), ("STEP_START", None), ("USAGE", None), ("HEARTBEAT", None), ("TEXT_START", 0),
        ("TEXT_DELTA", 0), ("TEXT_DELTA", 0), ("TEXT_END", 0), ("USAGE", None), ("STEP_END", None), ("RESPONSE_END", None),
    ]  # fmt: skip
    assert [e.raw_type for e in seen.events[3:8]] == [
        "ping", "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop",
    ]  # fmt: skip
    assert (seen.response.text, seen.response.finish_reason, seen.response.provider_finish_reason) == (
        "Hello",
        "stop",
        "end_turn",
    )
    assert (seen.response.provider_response_id, seen.response.model, seen.repairs) == ("m1", "claude", {})


def test_blocks_may_start_with_content() -> None:
    """Text, its citations, thinking and its signature."""
    citation = {"type": "web_search_result_location", "url": "https://a.example/", "cited_text": "words"}
    seen = claude(
        start(),
        blk(0, "thinking", thinking="hm", signature="SIG"), end(0),
        blk(1, "text", text="a", citations=[citation, 5]), dl(1, "text_delta", text="b"), end(1),
        TURN, STOP,
    )  # fmt: skip

    assert (seen.response.thinking, seen.response.text) == ("hm", "ab")
    assert seen.texts(T.THINKING_SIGNATURE) == ["SIG"]
    assert [(c.url, c.cited_text, c.raw) for c in seen.response.citations] == [
        ("https://a.example/", "words", citation)
    ]


def test_a_turn_is_kept_for_the_next_request() -> None:
    """Thinking with its signature (which replaces), redacted data, calls, in the order of the stream."""
    seen = claude(
        start(),
        blk(0, "thinking", thinking="", signature=""),
        dl(0, "thinking_delta", thinking="t"), dl(0, "signature_delta", signature="OLD"),
        dl(0, "signature_delta", signature="SIG=="), end(0),
        blk(1, "redacted_thinking", data="R=="), end(1),
        blk(2, "tool_use", id="u", name="f", input={}), end(2),
        md("tool_use"), STOP,
    )  # fmt: skip

    assert seen.texts(T.THINKING_SIGNATURE) == ["OLD", "SIG=="]
    assert seen.texts(T.THINKING_REDACTED) == ["R=="]
    parts = seen.response.message.to_dict()["parts"]
    assert [part["type"] for part in parts] == ["thinking", "redacted_thinking", "tool_call"]
    assert (parts[0]["text"], parts[0]["signature"], parts[1]["data"]) == ("t", "SIG==", "R==")
    assert (parts[2]["call"]["id"], parts[2]["call"]["arguments"]) == ("u", {})
    assert (seen.response.finish_reason, seen.repairs) == ("tool_calls", {})


@pytest.mark.parametrize("kind", ["text", "redacted_thinking", "tool_use"])
def test_a_signature_outside_thinking_is_raw(kind: str) -> None:
    """Nobody knows what it would sign."""
    seen = claude(
        start(), blk(0, kind, id="u", name="f"), dl(0, "signature_delta", signature="S"), end(0), TURN, STOP
    )

    assert [event.raw for event in seen.of(T.RAW)] == [
        {"delta": {"type": "signature_delta", "signature": "S"}}
    ]
    assert seen.of(T.THINKING_SIGNATURE) == []


# Calls.


@pytest.mark.parametrize(
    "initial, deltas, args",
    [
        ({}, ['{"a"', ": 1}"], ['{"a"', ": 1}"]),
        ({}, ["", "{}"], ["{}"]),
        ({}, [], []),
        ({"a": 1}, [], ['{"a":1}']),
        ({"a": 1}, ['{"a"', ": 2}"], ['{"a": 2}']),
        ({"a": 1}, ['{"a"'], ['{"a":1}']),
        ({"a": 1}, ["[2]"], ['{"a":1}']),
        ({"a": "\ud800"}, [], ['{"a":"\ufffd"}']),
        (None, [], []),
        ([1], ["{}"], ["{}"]),
    ],
)  # fmt: skip
def test_the_input_of_a_call(initial: Any, deltas: list[str], args: list[str]) -> None:
    """Normally {} and ignored; one that is not empty waits for the stop, and deltas that are a whole object win."""
    frames = [dl(0, "input_json_delta", partial_json=delta) for delta in deltas]
    seen = claude(
        start(), blk(0, "tool_use", id="u", name="f", input=initial), *frames, end(0), md("tool_use"), STOP
    )

    assert seen.texts(T.TOOL_CALL_ARGS_DELTA) == args
    assert [(c.id, c.name, c.arguments_json) for c in seen.response.tool_calls] == [("u", "f", "".join(args))]
    assert seen.repairs == {}


def test_the_stop_of_its_block_ends_a_call() -> None:
    """And neither text nor another call does."""
    seen = claude(
        start(),
        blk(0, "text", text=""), dl(0, "text_delta", text="a"),
        blk(1, "tool_use", id="u", name="f"), blk(2, "tool_use", id="v", name="g"),
        dl(1, "input_json_delta", partial_json="{"), dl(0, "text_delta", text="b"), dl(2, "input_json_delta", partial_json="{}"),
        dl(1, "input_json_delta", partial_json="}"), end(2), end(0), end(1),
        md("tool_use"), STOP,
    )  # fmt: skip

    assert seen.calls == [("u", "f", "{}"), ("v", "g", "{}")]
    assert [(str(e.type), e.index) for e in seen.of(T.TEXT_END, T.TOOL_CALL_END)] == [
        ("TOOL_CALL_END", 2), ("TEXT_END", 0), ("TOOL_CALL_END", 1),
    ]  # fmt: skip
    assert (seen.response.text, seen.repairs) == ("ab", {})


def test_deltas_under_another_events_name_are_the_same() -> None:
    """The type says what a frame is; text, thinking and input, on the general way."""
    deltas = [
        (0, {"type": "text_delta", "text": "a"}),
        (1, {"type": "input_json_delta", "partial_json": "{}"}),
        (2, {"type": "thinking_delta", "thinking": "t"}),
    ]
    frames = [
        sse({"type": "content_block_delta", "index": i, "delta": delta}, "other") for i, delta in deltas
    ]
    blocks = [
        blk(0, "text", text=""),
        end(0),
        blk(1, "tool_use", id="u", name="f"),
        end(1),
        blk(2, "thinking", thinking=""),
        end(2),
    ]
    seen = claude(
        start(), blocks[0], frames[0], *blocks[1:3], frames[1], *blocks[3:5], frames[2], blocks[5], TURN, STOP
    )

    assert (seen.response.text, seen.response.thinking, seen.calls) == ("a", "t", [("u", "f", "{}")])
    assert seen.repairs == {}


def test_a_call_without_id_gets_one() -> None:
    """Counted: every call of this format has one."""
    seen = claude(start(), blk(0, "tool_use", name="f"), end(0), md("tool_use"), STOP)

    assert (seen.calls, seen.repairs) == ([("call_0_0", "f", "")], {"made_up_id": 1})


# Server tools and blocks that nobody modelled.


def test_server_tools_are_told_and_kept_verbatim() -> None:
    """START with its block, input, RESULT with hits; the message has both blocks, the input put in."""
    results = [
        {"type": "web_search_result", "url": "https://a.example/", "title": "A", "encrypted_content": "X"},
        {"type": "web_search_result", "url": "https://b.example/", "title": "B"},
    ]
    seen = claude(
        start(),
        blk(0, "server_tool_use", id="s1", name="web_search", input={}),
        dl(0, "input_json_delta", partial_json='{"query":'), dl(0, "input_json_delta", partial_json='"q"}'), end(0),
        blk(1, "web_search_tool_result", tool_use_id="s1", content=results), end(1),
        text_block(2, "done"), TURN, STOP,
    )  # fmt: skip

    assert seen.types == [
        "USAGE", "SERVER_TOOL_START", "SERVER_TOOL_ARGS_DELTA", "SERVER_TOOL_ARGS_DELTA", "SERVER_TOOL_RESULT", "TEXT_DELTA", "USAGE",
    ]  # fmt: skip
    assert {event.item_id for event in seen.events if event.group == "SERVER_TOOL"} == {"s1"}
    assert {event.sub_type for event in seen.events if event.group == "SERVER_TOOL"} == {"web_search"}
    result = seen.of(T.SERVER_TOOL_RESULT)[0]
    assert result.text == "A\nhttps://a.example/\nB\nhttps://b.example/"
    assert [(hit.title, hit.url) for hit in result.results] == [
        ("A", "https://a.example/"),
        ("B", "https://b.example/"),
    ]
    parts = seen.response.message.to_dict()["parts"]
    assert [part["type"] for part in parts] == ["vendor", "vendor", "text"]
    assert parts[0]["raw"] == {
        "type": "server_tool_use",
        "id": "s1",
        "name": "web_search",
        "input": {"query": "q"},
    }
    assert parts[1]["raw"] == {"type": "web_search_tool_result", "tool_use_id": "s1", "content": results}
    assert seen.response.tool_calls == ()
    assert seen.repairs == {}


@pytest.mark.parametrize(
    "content, text, is_error",
    [
        ({"type": "x_error", "error_code": "max_uses_exceeded"}, "max_uses_exceeded", True),
        ({"type": "code_execution_result", "stdout": "1\n", "stderr": "w", "content": [{"file_id": "f1"}]}, "1\n\nw\nf1", False),
        ([{"type": "text", "text": "a"}, "b", 5], "a\nb", False),
        ("plain", "plain", False),
        ({"type": "document", "content": {"title": "T", "url": "u"}}, "T\nu", False),
        ({"tool_references": [{"tool_name": "f"}, 5]}, "f", False),
        ({"tool_references": 5}, None, False),
        ([], None, False),
        (None, None, False),
    ],
)  # fmt: skip
def test_results_have_a_readable_text(content: Any, text: str | None, is_error: bool) -> None:
    """Built from titles, addresses, output, error codes and file ids."""
    seen = claude(start(), blk(0, "any_tool_result", tool_use_id="s", content=content), end(0), TURN, STOP)

    result = seen.of(T.SERVER_TOOL_RESULT)[0]
    assert (result.text, result.is_error, result.sub_type) == (text, is_error, "any")
    # A server call may have been made in an earlier answer: its start is implied.
    assert seen.of(T.SERVER_TOOL_START)[0].attributes == {"implied": True}
    assert seen.repairs == {}


def test_a_server_call_may_be_answered_later() -> None:
    """Its missing result is implied, and an initial input is sent at the stop."""
    seen = claude(
        start(), blk(0, "mcp_tool_use", id="s", name="f", input={"q": 1}), end(0), md("pause_turn"), STOP
    )

    result = seen.of(T.SERVER_TOOL_RESULT)[0]
    assert (result.attributes, result.raw, result.sub_type) == ({"implied": True}, None, "mcp")
    assert seen.texts(T.SERVER_TOOL_ARGS_DELTA) == ['{"q":1}']
    assert seen.response.message.to_dict()["parts"][0]["raw"]["input"] == {"q": 1}
    assert seen.repairs == {}


@pytest.mark.parametrize(
    "kind, name, tool",
    [
        ("server_tool_use", "web_search", "web_search"), ("mcp_tool_use", "x", "mcp"), ("x_tool_use", None, "x"),
        ("mcp_tool_result", None, "mcp"), ("odd", None, "odd"),
    ],
)  # fmt: skip
def test_the_name_of_a_server_tool(kind: str, name: str | None, tool: str) -> None:
    """Its own, or what is left of the block's type."""
    assert server_tool(kind, name) == tool


def test_unknown_events_and_blocks_are_raw_and_their_blocks_are_kept() -> None:
    """Every frame of them; at the end the whole block, deltas put in, for the next request."""
    seen = claude(
        start(),
        an("brand_new", foo=1),
        blk(0, "hologram", data="a"), dl(0, "hologram_delta", data="b", x=1, none=None), dl(0, "input_json_delta", partial_json="{"), end(0),
        text_block(1, "ok"), sse("[DONE]"), TURN, STOP,
    )  # fmt: skip

    assert [event.raw if isinstance(event.raw, str) else event.raw.get("type") for event in seen.of(T.RAW)] == [
        "brand_new", "content_block_start", "content_block_delta", None, "content_block_stop", "[DONE]",
    ]  # fmt: skip
    parts = seen.response.message.to_dict()["parts"]
    assert parts[0] == {
        "type": "vendor",
        "dialect": "anthropic",
        "raw": {"type": "hologram", "data": "ab", "x": 1},
    }
    assert (seen.response.text, seen.repairs) == ("ok", {})


def test_an_unmodelled_block_without_its_stop_is_kept_too() -> None:
    """As the message ends."""
    seen = claude(
        start(), blk(0, "compaction", content="a"), dl(0, "compaction_delta", content="b"), TURN, STOP
    )

    assert seen.response.message.to_dict()["parts"][0]["raw"] == {"type": "compaction", "content": "ab"}


def test_merging_a_delta_into_a_block() -> None:
    """Texts grow, anything else is replaced, null is absent."""
    block: dict[str, Any] = {"type": "x", "a": "1", "b": 1, "c": "k"}
    merge_block(block, {"type": "x_delta", "a": "2", "b": "z", "c": None, "d": [1]})

    assert block == {"type": "x", "a": "12", "b": "z", "c": "k", "d": [1]}


# Usage.


def test_a_later_usage_replaces_field_by_field() -> None:
    """The snapshot at the start says 100 uncached; the end says 4, and 96 from the cache: 100 in all."""
    seen = claude(
        start(input_tokens=100, output_tokens=0),
        text_block(0, "hi"),
        md(
            "end_turn",
            {
                "input_tokens": 4,
                "output_tokens": 7,
                "cache_read_input_tokens": 96,
                "cache_creation_input_tokens": 0,
            },
        ),
        STOP,
    )

    usage = seen.response.usage
    assert usage is not None
    assert (usage.input_tokens, usage.uncached_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (
        100,
        4,
        96,
        0,
    )
    assert (usage.output_tokens, usage.total_tokens) == (7, 107)


def test_a_null_in_a_later_usage_is_absent() -> None:
    """It unsets nothing."""
    seen = claude(
        start(input_tokens=10, cache_read_input_tokens=5),
        md("end_turn", {"input_tokens": None, "output_tokens": 2}),
        STOP,
    )

    usage = seen.response.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (15, 5, 2)


def test_every_field_of_usage_has_its_place() -> None:
    """Caches by time to live, server tools by kind, thinking, labels, and the vendor's own object."""
    said = {
        "input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 7, "output_tokens": 9,
        "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4},
        "output_tokens_details": {"thinking_tokens": 5}, "server_tool_use": {"web_search_requests": 2, "x": None},
        "service_tier": "standard", "inference_geo": "eu",
    }  # fmt: skip

    assert usage_of(said) == Usage(
        input_tokens=10, output_tokens=9, reasoning_tokens=5, cache_read_tokens=2, cache_write_tokens=7,
        cache_write_5m_tokens=3, cache_write_1h_tokens=4, requests={"web_search_requests": 2}, service_tier="standard",
        region="eu", details=said,
    )  # fmt: skip
    assert usage_of({"output_tokens": 1}) == Usage(output_tokens=1, details={"output_tokens": 1})
    assert usage_of({"server_tool_use": [1], "cache_creation": 3}).requests == {}


@pytest.mark.parametrize(
    "said, means",
    [
        ({"url": "u", "title": "T", "cited_text": "w"}, CitedSource(url="u", title="T", cited_text="w")),
        ({"source": "s", "document_title": "D", "start_char_index": 3}, CitedSource(url="s", title="D")),
        ({}, CitedSource()),
    ],
)  # fmt: skip
def test_citations_have_positions_in_their_source_not_in_the_answer(
    said: dict[str, Any], means: CitedSource
) -> None:
    """Those stay in `raw`."""
    found = citation_of(said)

    assert (found.url, found.title, found.cited_text, found.start) == (
        means.url,
        means.title,
        means.cited_text,
        None,
    )
    assert found.raw == said


def test_citations_come_by_delta_too() -> None:
    """Bound to the block by its index; a null one is none."""
    seen = claude(
        start(), blk(0, "text", text=""), dl(0, "citations_delta", citation={"url": "u"}), dl(0, "citations_delta", citation=None),
        end(0), TURN, STOP,
    )  # fmt: skip

    assert [(event.index, event.citation.url) for event in seen.of(T.CITATION)] == [(0, "u")]
