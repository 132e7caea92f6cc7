"""Only checked, never run: `partial_json`."""

from __future__ import annotations

from typing import TypedDict, assert_type

import msgspec
from reactivex import Observable

from semflux import AnyChatEvent, ChatStream, Flux, JsonMatch, Mono
from semflux import operators as ops


class Item(msgspec.Struct):
    name: str


class Row(TypedDict):
    name: str


def values(stream: ChatStream) -> None:
    assert_type(stream.partial_json("$.items[*].name"), Flux[JsonMatch])
    assert_type(stream.partial_json("$.a", "$.b", tool="add", partial=True), Flux[JsonMatch])
    assert_type(stream.partial_json("$.items[*]", type=Item), Flux[Item])
    assert_type(stream.partial_json("$.items[*]", type=Row, find=False), Flux[Row])
    assert_type(stream.partial_json("$.tags", type=list[str]).collect_list(), Mono[list[list[str]]])
    assert_type(stream.partial_json("$.a", type=int, tool="add").map(lambda n: n + 1), Flux[int])
    assert_type(stream.partial_json("$.a").map(lambda match: match.path), Flux[str])
    stream.partial_json("$.a", type=int, partial=True)  # type: ignore[call-overload]  # half a value has no type
    stream.partial_json()  # type: ignore[call-overload]  # a path is needed


def by_pipe(source: Observable[AnyChatEvent]) -> None:
    assert_type(source.pipe(ops.partial_json("$.a")), Observable[JsonMatch])
    assert_type(source.pipe(ops.partial_json("$.a", type=Item)), Observable[Item])
