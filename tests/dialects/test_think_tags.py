"""Reasoning between `<think>` tags in the text: where it counts, and how tags that are cut are put together."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semflux.dialects.think_tags import ThinkSplitter
from semflux.request import ThinkTags
from tests.frames import DONE, cc, chat

STOP = cc({}, "stop")


def split(mode: ThinkTags, *pieces: str) -> list[tuple[bool, str]]:
    splitter = ThinkSplitter(mode)
    out = [pair for piece in pieces for pair in splitter.split(piece)]
    return out + list(splitter.flush())


def joined(pairs: list[tuple[bool, str]]) -> tuple[str, str]:
    return "".join([text for inside, text in pairs if inside]), "".join(
        [text for inside, text in pairs if not inside]
    )


@pytest.mark.parametrize(
    "mode, pieces, thinking, text",
    [
        ("auto", ["<think>a</think>b"], "a", "b"),
        ("auto", ["<thi", "nk>a</th", "ink>b"], "a", "b"),
        ("auto", [" \n<think>a</think>b"], "a", "b"),
        ("auto", ["\n", " <think>", "a", "</think>", "b"], "a", "b"),
        ("auto", ["x<think>a</think>b"], "", "x<think>a</think>b"),
        ("auto", ["<think>a</think>b<think>c</think>d"], "a", "b<think>c</think>d"),
        ("auto", ["<thinking>a"], "", "<thinking>a"),
        ("auto", ["<", "b>"], "", "<b>"),
        ("auto", ["<think>a"], "a", ""),
        ("auto", ["<think>a</thi"], "a</thi", ""),
        ("auto", ["<think>", "a<", "b"], "a<b", ""),
        ("auto", ["<think></think>"], "", ""),
        ("auto", ["  "], "", "  "),
        ("auto", ["  x"], "", "  x"),
        ("auto", ["<thi"], "", "<thi"),
        ("auto", ["</think>x"], "", "</think>x"),
        ("always", ["x<think>a</think>b<thi", "nk>c</think>"], "ac", "xb"),
        ("always", ["x<", "y"], "", "x<y"),
        ("always", ["x</think>y"], "", "x</think>y"),
        ("never", ["<think>a</think>b"], "", "<think>a</think>b"),
    ],
)  # fmt: skip
def test_what_is_reasoning_and_what_is_text(
    mode: ThinkTags, pieces: list[str], thinking: str, text: str
) -> None:
    """auto: only when the tag is the first thing of the text; always: wherever it stands; never: nowhere."""
    if mode == "never":
        assert ThinkSplitter(mode).passes
    else:
        assert joined(split(mode, *pieces)) == (thinking, text)
    seen = chat(*[cc({"content": piece}) for piece in pieces], STOP, DONE, think_tags=mode)
    assert (seen.response.thinking, seen.response.text) == (thinking, text)


def test_what_cannot_be_a_tag_comes_at_once() -> None:
    """At most a tag less one character waits."""
    splitter = ThinkSplitter("always")

    assert list(splitter.split("abc<thin")) == [(False, "abc")]
    assert list(splitter.split("g")) == [(False, "<thing")]
    assert list(splitter.split("<think>abc</thin")) == [(True, "abc")]
    assert list(splitter.split("g")) == [(True, "</thing")]
    assert list(splitter.flush()) == []


def test_once_the_first_thing_is_known_text_need_not_be_looked_at() -> None:
    """Neither after plain text, nor after the end of the reasoning."""
    plain = ThinkSplitter("auto")
    assert list(plain.split("x")) == [(False, "x")]
    assert plain.passes

    tagged = ThinkSplitter("auto")
    assert list(tagged.split("<think>a")) == [(True, "a")]
    assert not tagged.passes
    assert list(tagged.split("</think>")) == []
    assert tagged.passes


def test_a_tag_is_of_the_text_not_of_other_events() -> None:
    """Reasoning of its own field, calls and usage pass while half a tag waits."""
    seen = chat(
        cc({"content": "<thi"}), cc({"reasoning_content": "r"}), cc({"content": "nk>a</think>b"}), STOP, DONE
    )

    assert (seen.response.thinking, seen.response.text) == ("ra", "b")


@given(st.text(alphabet="<>/think ab\n"), st.lists(st.integers(0, 40)), st.sampled_from(["auto", "always"]))
def test_any_cutting_gives_the_same(text: str, places: list[int], mode: Any) -> None:
    """The pieces join to the same reasoning and the same text."""
    text = f"<think>{text}" if len(places) % 2 else text
    bounds = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(bounds)]

    assert joined(split(mode, *pieces)) == joined(split(mode, text))
