"""Only checked, never run: the operators that take values out of a chat stream, or change what it says."""

from __future__ import annotations

import re
from typing import assert_type

import semflux
from semflux import ChatStream, CitedSource, Flux, Mono, ToolCall, ToolSpec


def values(stream: ChatStream, tool: ToolSpec) -> None:
    assert_type(stream.thinking(), Flux[str])
    assert_type(stream.citations(), Flux[CitedSource])
    assert_type(
        stream.citations().distinct(lambda source: source.url).collect_list(), Mono[list[CitedSource]]
    )
    assert_type(stream.tool_calls(), Flux[ToolCall])
    assert_type(stream.tool_calls(tool, invalid="keep").map(lambda call: call.name), Flux[str])
    stream.tool_calls(invalid="ignore")  # type: ignore[arg-type]  # one of three words
    stream.tool_calls("weather")  # type: ignore[arg-type]  # a tool, not its name


def screens(stream: ChatStream) -> None:
    assert_type(stream.hold_back("a", re.compile("b"), replace=str.upper).text(), Flux[str])
    assert_type(stream.guard("a", reason="no", fail=True, lanes=["text", "tool_args"]), ChatStream)
    assert_type(stream.redact(), ChatStream)
    assert_type(stream.redact(re.compile("b"), mask="[x]").dedupe_snapshots(), ChatStream)
    stream.hold_back(b"a")  # type: ignore[arg-type]  # text, not bytes
    stream.guard("a", lanes=["texts"])  # type: ignore[list-item]  # no such lane


def parsed() -> None:
    assert_type(semflux.parse(b"", dialect="openai-chat").guard("a").thinking(), Flux[str])
