"""Matchers: the same matches however a text is cut, and nothing held back that cannot become one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semflux.errors import ConfigurationError
from semflux.matching import Matcher, PatternMatcher, PhraseMatcher, Phrases, Rule, matcher_of, replaced


def mark(found: str) -> str:
    return f"[{found}]"


def rule(pattern: str) -> Rule:
    return re.compile(pattern), lambda match: mark(match[0])


def words(*wanted: str, ignore_case: bool = True) -> PhraseMatcher:
    return PhraseMatcher(Phrases(wanted, ignore_case=ignore_case), mark)


def through(matcher: Matcher, pieces: list[str]) -> str:
    """The joined pieces with the matches replaced; each match is told once it is decided, and not before."""
    text, at, out = "", 0, ""
    decided = 0
    found: list[Any] = []
    for piece in [*pieces, None]:
        text += piece or ""
        new = list(matcher.finish() if piece is None else matcher.feed(piece))
        assert decided <= matcher.decided <= len(text)
        decided = matcher.decided
        assert all(match.end <= decided for match in new)
        found += new
    assert decided == len(text)
    for start, end, shown in found:
        assert at <= start < end
        out += text[at:start] + shown
        at = end
    return out + text[at:]


pieces = st.lists(st.text("abcC", max_size=4), max_size=8)


@given(st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=4), pieces)
def test_phrases_are_found_as_the_leftmost_longest_ones(wanted: list[str], cut: list[str]) -> None:
    """As a regular expression of all of them, the longest first, finds them in the whole text."""
    longest_first = "|".join(sorted(wanted, key=len, reverse=True))
    expected = re.sub(longest_first, lambda m: mark(m[0]), "".join(cut), flags=re.IGNORECASE)
    assert expected == through(words(*wanted), cut)


RULES = [
    rule(r"a+b"),
    rule(r"\bab"),
    rule(r"(?<=c)a"),
    rule(r"b{2,5}c?"),
    rule("ab|abab|abc"),
    rule(r"c(?!a)|x*"),
]


@given(st.lists(st.sampled_from(RULES), min_size=1, max_size=3), pieces)
def test_any_cutting_gives_the_same_matches_of_patterns(rules: list[Rule], cut: list[str]) -> None:
    """And one pattern alone those of `re.sub`, but for empty ones."""
    whole = "".join(cut)
    assert through(PatternMatcher(rules, 8), [whole]) == through(PatternMatcher(rules, 8), cut)
    pattern, replace = rules[0]
    expected = pattern.sub(lambda m: replace(m) if m[0] else "", whole)
    assert expected == through(PatternMatcher(rules[:1], 8), cut)


def test_phrases_hold_back_only_what_can_become_one() -> None:
    matcher = words("password", "pass over")
    decided = [
        (piece, list(matcher.feed(piece)), matcher.decided)
        for piece in ("the p", "ass", "age", " pass", "word")
    ]
    assert [("the p", [], 4), ("ass", [], 4), ("age", [], 11), (" pass", [], 12)] == decided[:-1]
    assert [(12, 20, "[password]")] == decided[-1][1]
    assert 20 == matcher.decided


def test_a_longer_phrase_is_waited_for_and_the_shorter_one_found_without_it() -> None:
    """At the end, too."""
    assert "x[ab]d" == through(words("ab", "abc"), ["xa", "b", "d"])
    assert "x[abc]" == through(words("ab", "abc"), ["xa", "b", "c"])
    assert "x[ab]" == through(words("ab", "abc"), ["xa", "b"])


@pytest.mark.parametrize(
    "phrase, text, expected",
    [
        ("straße", "STRAßE Straße", "[STRAßE] [Straße]"),
        ("ΣΑΣ", "σας", "[σας]"),
        ("İ", "İi̇", "[İ]i̇"),
        ("I", "\u0131iI", "\u0131[i][I]"),
        ("秘密", "这是秘密。", "这是[秘密]。"),
        ("^a]-", "x^A]-", "x[^A]-]"),
    ],
)
def test_letters_are_compared_one_by_one(phrase: str, text: str, expected: str) -> None:
    """A final sigma is a sigma, and a letter that folds to two stands for itself, wherever the text is cut."""
    assert expected == through(words(phrase), [text])
    assert expected == through(words(phrase), list(text))


def test_letters_of_the_same_case_alone() -> None:
    assert "Ab[ab]" == through(words("ab", ignore_case=False), ["Abab"])


def test_a_pattern_is_decided_when_all_that_it_looks_at_is_there() -> None:
    """*window* characters after a place; so no more than that are held back."""
    matcher = PatternMatcher([rule("abc?")], 4)
    assert ([], 1) == (list(matcher.feed("xxxx")), matcher.decided)
    assert ([], 3) == (list(matcher.feed("ab")), matcher.decided)
    assert ([(4, 6, "[ab]")], 6) == (list(matcher.feed("dd")), matcher.decided)


def test_a_match_that_grows_past_the_window_is_one_match() -> None:
    """It is held back until it ends; looking at it again costs little, however long it is."""
    looks = 0

    class Counted:
        def search(self, text: str, pos: int) -> re.Match[str] | None:
            nonlocal looks
            looks += len(text) - pos
            return re.compile("k[0-9]+").search(text, pos)

    counted: Any = Counted()
    matcher = PatternMatcher([(counted, lambda match: "[key]")], 8)
    size = 50_000
    told = [match for _ in range(size) for match in matcher.feed("7")]
    assert ([], True) == (told, size - matcher.decided <= 8 + 8 // 4)
    for piece in ("k", *["1" * 10] * (size // 10)):
        assert [] == list(matcher.feed(piece))
    assert [(size, 2 * size + 1, "[key]")] == list(matcher.feed("." * size))
    assert looks < 40 * size


def test_the_first_rule_wins_where_two_begin() -> None:
    assert "[ab]c" == through(PatternMatcher([rule("ab"), rule("abc")], 4), ["abc"])


def test_a_whole_text() -> None:
    assert "a[b]c" == replaced("abc", words("b"))
    assert "" == replaced("", words("b"))


def test_a_matcher_of_words_alone_has_no_window() -> None:
    """One pattern among them, and all have it; then words keep to the case that was asked for."""
    make = matcher_of("x", ["ab", "b"], mark, ignore_case=True, window=9)
    assert isinstance(make(), PhraseMatcher)
    assert make() is not make()
    mixed = matcher_of("x", ["B", re.compile("c+")], "*", ignore_case=True, window=1)
    assert ("a**C", "a**C") == (through(mixed(), ["abccC"]), through(mixed(), list("abccC")))
    strict = matcher_of("x", ["B", re.compile("c")], "*", ignore_case=False, window=1)
    assert "ab*" == through(strict(), ["abc"])


@pytest.mark.parametrize(
    "wanted, says",
    [
        ([], "needs a phrase"),
        ([""], "not empty"),
        ([re.compile(b"a")], "of bytes"),
        ([re.compile("")], "not empty"),
    ],
)
def test_what_cannot_be_looked_for_is_refused(wanted: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        matcher_of("hold_back", wanted, "*", ignore_case=True, window=1)


def test_other_things_than_text_are_named_by_their_type() -> None:
    wrong: Any = [7]
    with pytest.raises(ConfigurationError, match="not for int"):
        matcher_of("hold_back", wrong, "*", ignore_case=True, window=1)
    with pytest.raises(ConfigurationError, match="window=0"):
        matcher_of("hold_back", ["a"], "*", ignore_case=True, window=0)
