"""Golden streams of our own: each is whole, ends well, and shows what its wire format can."""

from __future__ import annotations

from typing import Any

from tests.frames import DONE, STOP, an, blk, cc, chunk, cu, dl, end, md, start, tc, text_block

CHAT: dict[str, list[bytes]] = {
    "text": [
        cc({"role": "assistant", "content": ""}),
        cc({"content": "Grüße 🌧"}),
        cc({"content": " ok"}),
        cc({}, "stop"),
        cu(3, 4),
        DONE,
    ],
    "reasoning and calls": [
        cc({"reasoning_content": "hm"}),
        cc({"content": "Let me."}),
        cc(tc(0, "a", "f", '{"x":')),
        cc(tc(1, "b", "g", '{"y":')),
        cc(tc(0, None, None, "1}")),
        cc(tc(1, None, None, "2}")),
        cc({}, "tool_calls"),
        DONE,
    ],
    "tags and sources": [
        b": comment\n\n",
        cc({"content": "<thi"}),
        cc({"content": "nk>why</think>See"}),
        chunk(
            {"delta": {"content": " A."}, "logprobs": {"content": [{"token": "A"}]}},
            citations=["https://a.example/"],
        ),
        cc({"x": 1}),
        cc({"content": "b"}, index=1),
        cc({"content": "!"}, "stop"),
        cu(1, 2),
        DONE,
    ],
    "refusal": [cc({"refusal": "I "}), cc({"refusal": "won't"}), cc({}, "stop"), DONE],
}
CLAUDE: dict[str, list[bytes]] = {
    "text": [start(), an("ping"), text_block(0, "Grüße 🌧", " ok"), md("end_turn"), STOP],
    "thinking and calls": [
        start(),
        blk(0, "thinking", thinking="", signature=""),
        dl(0, "thinking_delta", thinking="hm"),
        dl(0, "signature_delta", signature="SIG"),
        end(0),
        blk(1, "redacted_thinking", data="R"),
        end(1),
        text_block(2, "Let me."),
        blk(3, "tool_use", id="a", name="f", input={}),
        dl(3, "input_json_delta", partial_json='{"x":'),
        dl(3, "input_json_delta", partial_json="1}"),
        end(3),
        blk(4, "tool_use", id="b", name="g", input={"y": 2}),
        end(4),
        md("tool_use"),
        STOP,
    ],
    "server tools": [
        start(),
        blk(0, "server_tool_use", id="s", name="web_search", input={}),
        dl(0, "input_json_delta", partial_json='{"q":1}'),
        end(0),
        blk(
            1,
            "web_search_tool_result",
            tool_use_id="s",
            content=[{"type": "web_search_result", "url": "u", "title": "A"}],
        ),
        end(1),
        blk(2, "text", text=""),
        dl(2, "citations_delta", citation={"url": "u"}),
        dl(2, "text_delta", text="A"),
        end(2),
        blk(3, "hologram", x=1),
        dl(3, "hologram_delta", y=2),
        end(3),
        an("brand_new"),
        md("max_tokens"),
        STOP,
    ],
}
GOLDEN: list[tuple[str, str, list[bytes]]] = [
    *[("openai-chat", name, frames) for name, frames in CHAT.items()],
    *[("anthropic", name, frames) for name, frames in CLAUDE.items()],
]
"""(dialect, name, frames)."""

IDS = [f"{dialect} {name}" for dialect, name, _ in GOLDEN]


def finish_at(dialect: str, frames: list[bytes]) -> int:
    """Bytes up to the first place where the finish signal can have been read: its JSON is whole."""
    size = 0
    for frame in frames:
        signal = b"message_stop" if dialect == "anthropic" else b'"finish_reason": "'
        if signal in frame and (dialect == "anthropic" or b'"index": 0' in frame):
            return size + len(frame) - 2
        size += len(frame)
    raise AssertionError


def response_of(seen: Any) -> dict[str, Any]:
    """What a stream came to, without the run's id."""
    return {**seen.response.to_dict(), "response_id": ""}
