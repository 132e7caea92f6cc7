"""Cutting: the pieces of a text, and where none may end."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semflux.cutting import CutBy, cutter_of
from semflux.errors import ConfigurationError

TEXTS = st.text(
    st.sampled_from(
        "ab \n\r\u0301\u200d\u2764\ufe0f\U0001f1e9\U0001f469\u6211\u0e01\u0e31\ud55c\u1100\u1161\u0915\u094d"
    )
)


def cut(by: CutBy, *texts: str, max_chars: int = 1000) -> list[str]:
    cutter = cutter_of(by, max_chars)()
    pieces = [piece for text in texts for piece in cutter.feed(text)]
    rest = cutter.finish()
    return [*pieces, rest] if rest else pieces


def nothing_yet(buffer: str) -> int | None:
    return None


@pytest.mark.parametrize(
    "text, pieces",
    [
        ("Hello you,  and\n\nme ", ["Hello", " you,", "  and", "\n\nme", " "]),
        ("\u6211\u4eec go\u5440\u3002", ["\u6211", "\u4eec", " go", "\u5440", "\u3002"]),
        ("\ud55c\uad6d \ub9d0", ["\ud55c\uad6d", " \ub9d0"]),
        ("\u0e01\u0e31\u0e19", ["\u0e01\u0e31", "\u0e19"]),
    ],
)
def test_a_word_has_the_space_before_it(text: str, pieces: list[str]) -> None:
    """A character where there are no spaces."""
    assert pieces == cut("word", text)


@pytest.mark.parametrize(
    "grapheme",
    [
        "e\u0301",
        "\r\n",
        "\u2764\ufe0f",
        "\U0001f469\u200d\U0001f4bb",
        "\U0001f44d\U0001f3fd",
        "\U0001f1e9\U0001f1ea",
        "\U0001f3f4\U000e0067\U000e007f",
        "\u1100\u1161\u11a8",
        "\uac00\u11a8",
        "\uac01\u11a8",
        "\ua960\ud7b0\ud7cb",
        "\u0915\u094d\u0937",
        "\u06dd\u0661",
        "\ud83d\ude00",
        "\u0e01\u0e33",
    ],
)
def test_a_grapheme_is_one_piece(grapheme: str) -> None:
    """However it comes."""
    assert [grapheme, grapheme, "x"] == cut("grapheme", *grapheme, *grapheme, "x")
    assert [grapheme, "x"] == cut(lambda buffer: 1, *grapheme, "x")


def test_flags_are_pairs() -> None:
    """The third letter begins another one."""
    letter = "\U0001f1e9"
    assert [letter * 2, letter * 2, letter] == cut("grapheme", letter * 5)
    assert [letter * 2, letter * 2, letter] == cut(lambda buffer: 1, letter * 5)


def test_lines_have_their_ends() -> None:
    """One that is there ends at once; CR waits for its LF."""
    assert ["a\n", "b\r\n", "c\r", "d"] == cut("line", "a\nb\r", "\nc\rd")
    assert ["a\n"] == cutter_of("line", 9)().feed("a\n")


def test_a_pattern_ends_a_piece() -> None:
    """An empty match at its beginning is none."""
    assert ["a.", "b.", "c"] == cut(re.compile(r"\."), "a", ".b.c")
    assert ["a", ".b"] == cut(re.compile(r"(?=\.)"), "a.b")
    assert ["a\n"] == cutter_of(re.compile(r"\n"), 9)().feed("a\n")


@pytest.mark.parametrize("by", ["word", "line", nothing_yet])
def test_a_long_piece_is_cut_between_graphemes(by: Any) -> None:
    """One grapheme that is longer than that is cut all the same."""
    assert ["abc", "e\u0301d"] == cut(by, "abce\u0301d", max_chars=3)
    assert ["abc", "e\u0301d"] == cut(by, "abce\u0301d", max_chars=4)
    long = "e" + "\u0301" * 50
    assert max(map(len, cut(by, long, max_chars=3))) <= 6
    assert long == "".join(cut(by, long, max_chars=3))


@pytest.mark.parametrize("wrong", [0, -1, 3, "a", True, 1.0])
def test_a_wrong_length_is_told(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="length of the first piece"):
        cut(lambda buffer: wrong, "ab")


@pytest.mark.parametrize("by", ["words", 3, re.compile(b"a")])
def test_there_is_something_to_cut_by(by: Any) -> None:
    with pytest.raises(ConfigurationError, match="smooth"):
        cutter_of(by, 9)


def test_a_piece_has_a_character() -> None:
    with pytest.raises(ConfigurationError, match="max_chars"):
        cutter_of("word", 0)


@given(TEXTS, st.lists(st.integers(1, 5), max_size=9), st.sampled_from(["word", "line", "grapheme"]))
def test_the_pieces_do_not_depend_on_how_the_text_comes(text: str, sizes: list[int], by: Any) -> None:
    """And joined they are the text."""
    parts: list[str] = []
    at = 0
    for size in sizes:
        parts.append(text[at : at + size])
        at += size
    pieces = cut(by, text)
    assert pieces == cut(by, *parts, text[at:])
    assert text == "".join(pieces)


@pytest.mark.parametrize("texts", [["x" * 1_000_000], ["x"] * 1_000_000], ids=["whole", "single"])
def test_a_function_is_asked_in_proportion(texts: list[str]) -> None:
    """Once for each delta and each piece, about, and never about more than max_chars."""
    seen = [0, 0]

    def ask(buffer: str) -> int | None:
        seen[0] += 1
        seen[1] += len(buffer)
        return 10 if len(buffer) >= 10 else None

    cutter = cutter_of(ask, 20)()
    for text in texts:
        cutter.feed(text)
    assert seen[0] <= 1_200_001
    assert seen[1] <= 20 * seen[0]
