"""Finding phrases and patterns in a text that comes in pieces.

A matcher is given the pieces and says what it has found, and up to where nothing can be found any more: what
is after that is to be held back. Any cutting of a text gives the same matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from semflux.errors import ConfigurationError


class Match(NamedTuple):
    """A stretch of the text and what is to stand in its place."""

    start: int
    """Its first character, counted from the beginning of the text."""
    end: int
    """The character after its last one."""
    text: str
    """What replaces it."""


Replacement: TypeAlias = Callable[[str], str]
"""Gives the text that stands in the place of a found one."""


class Matcher:
    """One text, piece by piece. Matches come in order, do not overlap and are not empty."""

    __slots__ = ()

    @property
    def decided(self) -> int:
        """Characters, from the beginning, of which it is known whether they belong to a match."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def feed(self, text: str) -> Iterable[Match]:
        """The matches that are certain now."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def finish(self) -> Iterable[Match]:
        """The text is over: those that were not. All is decided."""
        raise NotImplementedError  # pragma: no cover  # abstract


class Phrases:
    """Words to look for, as an automaton (Aho and Corasick): one look at each character, however many words.

    *ignore_case* compares letters by their case folding; those that fold to several ("ß") stand for themselves.
    """

    __slots__ = ("depth", "fails", "first", "ignore_case", "longest", "next")

    def __init__(self, words: Iterable[str], *, ignore_case: bool = True) -> None:
        self.ignore_case: bool = ignore_case
        self.next: list[dict[str, int]] = [{}]
        """Where a character leads from a state; 0 is the beginning."""
        self.fails: list[int] = [0]
        """The state to go on in where it leads nowhere."""
        self.depth: list[int] = [0]
        """Characters of a word that a state has seen."""
        self.longest: list[int] = [0]
        """Characters of the longest word that ends in a state; 0 where none does."""
        for word in words:
            self._add(self.folded(word))
        self._connect()
        starts = "".join(re.escape(char) for char in self.next[0])
        self.first: re.Pattern[str] = re.compile(f"[{starts}]")
        """Finds a character that begins a word."""

    def folded(self, text: str) -> str:
        """*text* as it is compared: of the same length."""
        if not self.ignore_case or (text.islower() and text.isascii()):
            return text
        folded = text.casefold()
        if len(folded) == len(text):
            return folded
        return "".join([low if len(low := char.casefold()) == 1 else char for char in text])

    def _add(self, word: str) -> None:
        state = 0
        for char in word:
            following = self.next[state].get(char)
            if following is None:
                following = len(self.next)
                self.next[state][char] = following
                self.next.append({})
                self.fails.append(0)
                self.depth.append(self.depth[state] + 1)
                self.longest.append(0)
            state = following
        self.longest[state] = len(word)

    def _connect(self) -> None:
        todo = list(self.next[0].values())
        for state in todo:  # it grows: breadth first, so that the states of shorter words are known
            for char, following in self.next[state].items():
                self.fails[following] = self.step(self.fails[state], char)
                self.longest[following] = self.longest[following] or self.longest[self.fails[following]]
                todo.append(following)

    def step(self, state: int, char: str) -> int:
        """The state after one more character."""
        following = self.next[state].get(char)
        while following is None and state:
            state = self.fails[state]
            following = self.next[state].get(char)
        return following or 0


class PhraseMatcher(Matcher):
    """Finds words: the leftmost one, of those the longest. It holds back only what can become one."""

    __slots__ = ("_base", "_found", "_kept", "_phrases", "_replace", "_state", "_text")

    def __init__(self, phrases: Phrases, replace: Replacement) -> None:
        self._phrases = phrases
        self._replace = replace
        self._text = ""
        """What is not decided, as it came."""
        self._kept = ""
        """The same, as it is compared."""
        self._base: int = 0
        """Where that begins in the whole text."""
        self._state: int = 0
        self._found: tuple[int, int] | None = None
        """A word, unless a longer one, or one that began before it, comes of what is there: where in *kept*."""

    @property
    def decided(self) -> int:
        return self._base

    def feed(self, text: str) -> Iterable[Match]:
        at = len(self._kept)
        self._text += text
        self._kept += self._phrases.folded(text)
        return self._scan(at, final=False)

    def finish(self) -> Iterable[Match]:
        matches = self._scan(len(self._kept), final=True)
        self._base += len(self._kept)
        self._text = self._kept = ""
        self._state = 0
        return matches

    def _scan(self, at: int, *, final: bool) -> list[Match]:
        phrases, kept, state, found = self._phrases, self._kept, self._state, self._found
        step, depth, longest, first = phrases.step, phrases.depth, phrases.longest, phrases.first
        size = len(kept)
        matches: list[Match] = []
        while True:
            while at < size:
                if not state:
                    start = first.search(kept, at)
                    if start is None:
                        at = size
                        break
                    at = start.start()
                state = step(state, kept[at])
                at += 1
                if found is not None and at - depth[state] > found[0]:
                    break
                length = longest[state]
                if length and (found is None or at - length <= found[0]):
                    found = (at - length, at)
            while not phrases.next[state]:
                # A word that no other one goes on from.
                state = phrases.fails[state]
            if found is None or (at - depth[state] <= found[0] and not final):
                break
            matches.append(self._match(*found))
            at, state, found = found[1], 0, None
        keep = at - depth[state] if found is None else min(found[0], at - depth[state])
        self._found = None if found is None else (found[0] - keep, found[1] - keep)
        self._state = state
        self._text = self._text[keep:]
        self._kept = kept[keep:]
        self._base += keep
        return matches

    def _match(self, start: int, end: int) -> Match:
        return Match(self._base + start, self._base + end, self._replace(self._text[start:end]))


Rule: TypeAlias = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]
"""A pattern, and what replaces its matches."""

_OFTEN = 1024
"""Characters of one growing match up to which it is looked at again with each piece."""


class PatternMatcher(Matcher):
    """Finds regular expressions: the leftmost match, of those the first rule's.

    What a pattern says of a place is taken to depend on *window* characters after it at most; longer matches are
    found if they go on to where they are looked at. So *window* characters are held back, up to a quarter more, since it
    looks once for so many, and what has begun.
    """

    __slots__ = ("_base", "_more", "_pos", "_rules", "_text", "_waiting", "_window")

    def __init__(self, rules: Sequence[Rule], window: int) -> None:
        self._rules = rules
        self._window = window
        self._text = ""
        """What is not decided, and up to *window* characters before it, for what looks back."""
        self._base: int = 0
        """Where that begins in the whole text."""
        self._pos: int = 0
        """Where in it the undecided begins."""
        self._more: list[str] = []
        """Pieces that were not looked at yet: a long match is growing."""
        self._waiting = 0
        """Characters of them that are waited for."""

    @property
    def decided(self) -> int:
        return self._base + self._pos

    def feed(self, text: str) -> Iterable[Match]:
        self._more.append(text)
        self._waiting -= len(text)
        return () if self._waiting > 0 else self._scan(final=False)

    def finish(self) -> Iterable[Match]:
        matches = self._scan(final=True)
        self._pos = len(self._text)
        return matches

    def _scan(self, *, final: bool) -> list[Match]:
        text = self._text = "".join([self._text, *self._more])
        self._more = []
        # Not at every piece: looking costs the same for one more character as for a few.
        self._waiting = self._window // 4
        size, pos = len(text), self._pos
        # A match that begins here or later may be another one when more has come.
        unseen = size if final else max(pos, size - self._window + 1)
        matches: list[Match] = []
        while (best := self._search(text, pos)) is not None:
            match, replace = best
            start, end = match.span()
            if not final and (start >= unseen or end == size):
                if end == size and size - start > _OFTEN:
                    self._waiting = (size - start) // 4
                pos = max(pos, min(start, unseen))
                break
            matches.append(Match(self._base + start, self._base + end, replace(match)))
            pos = end
        else:
            pos = max(pos, unseen)
        cut = max(0, pos - self._window)
        self._text = text[cut:]
        self._base += cut
        self._pos = pos - cut
        return matches

    def _search(self, text: str, pos: int) -> tuple[re.Match[str], Callable[[re.Match[str]], str]] | None:
        best: tuple[re.Match[str], Callable[[re.Match[str]], str]] | None = None
        for pattern, replace in self._rules:
            match = pattern.search(text, pos)
            while match is not None and match.end() == match.start():
                # Nothing is nothing to hide.
                match = pattern.search(text, match.end() + 1) if match.end() < len(text) else None
            if match is not None and (best is None or match.start() < best[0].start()):
                best = (match, replace)
        return best


def replaced(text: str, matcher: Matcher) -> str:
    """A whole text with its matches replaced; *matcher* is a new one."""
    at = 0
    out: list[str] = []
    for match in [*matcher.feed(text), *matcher.finish()]:
        out += text[at : match.start], match.text
        at = match.end
    return "".join([*out, text[at:]])


def check_window(name: str, window: int) -> None:
    """Refuse a window of the operator *name* that is none."""
    if window < 1:
        raise ConfigurationError(f"{name}(window={window}): a window has at least one character")


def matcher_of(
    name: str,
    wanted: Sequence[str | re.Pattern[str]],
    replace: str | Replacement,
    *,
    ignore_case: bool,
    window: int,
) -> Callable[[], Matcher]:
    """Makes matchers for the operator *name*: of words alone without a window, else of patterns.

    Raises:
        ConfigurationError: if one of *wanted* is neither a word nor a pattern of text, or there is none.
    """
    if not wanted:
        raise ConfigurationError(f"{name}() needs a phrase or a pattern to look for")
    for each in wanted:
        pattern: object = each.pattern if isinstance(each, re.Pattern) else each
        if not isinstance(pattern, str) or not pattern:
            raise ConfigurationError(
                f"{name}() looks for strings that are not empty and patterns of them, not for {type(each).__name__}"
                f"{' of bytes' if isinstance(each, re.Pattern) else ''}"
            )
    check_window(name, window)
    substitute: Replacement = (lambda found: replace) if isinstance(replace, str) else replace
    words = [each for each in wanted if isinstance(each, str)]
    if len(words) == len(wanted):
        phrases = Phrases(words, ignore_case=ignore_case)
        return lambda: PhraseMatcher(phrases, substitute)
    flags = re.IGNORECASE if ignore_case else 0
    rules: list[Rule] = [
        (
            each if isinstance(each, re.Pattern) else re.compile(re.escape(each), flags),
            lambda m: substitute(m[0]),
        )
        for each in sorted(wanted, key=lambda each: -len(each) if isinstance(each, str) else 0)
    ]
    width = max([window, *map(len, words)])
    return lambda: PatternMatcher(rules, width)


__all__ = (
    "Match",
    "Matcher",
    "PatternMatcher",
    "PhraseMatcher",
    "Phrases",
    "Replacement",
    "Rule",
    "check_window",
    "matcher_of",
    "replaced",
)
