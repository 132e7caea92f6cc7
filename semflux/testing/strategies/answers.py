"""What a model may say, as parts that are in no format yet."""

from __future__ import annotations

import json
from typing import Any

import attrs
from hypothesis import strategies as st

from semflux.response import FinishReason
from semflux.usage import Usage

# Whole words as one draw each: a stream is a large tree, and shrinks by its parts.
WORDS = ("a", "Hello", " world", "\n", "ü", "日本", "😀", "e\u0301", "\\", '"', "```", "\u2028", "0", " ")
"""What texts are made of: among it letters of two to four bytes, marks, and what JSON escapes."""

words: st.SearchStrategy[str] = st.sampled_from(WORDS)
"""One of them."""
pieces: st.SearchStrategy[list[str]] = st.lists(st.lists(words, max_size=3).map("".join), max_size=4)
"""A text in the pieces in which it comes; some of them may be empty."""

arguments: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["city", "n", "ü", ""]),
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 10**12) | st.sampled_from([0.5, -1e9]) | words,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
        max_leaves=3,
    ),
    max_size=2,
)
"""The arguments of a call."""


@attrs.frozen
class TextPiece:
    """A stretch of the answer's text."""

    pieces: tuple[str, ...]
    """As it comes."""


@attrs.frozen
class ThoughtPart:
    """A stretch of reasoning."""

    pieces: tuple[str, ...]
    """As it comes."""
    signature: str | None = None
    """What proves it; None where there is none."""


@attrs.frozen
class CallPart:
    """A call of a tool."""

    id: str
    name: str
    pieces: tuple[str, ...]
    """The argument text as it comes; joined, it is one JSON object, or nothing."""

    @property
    def arguments(self) -> Any:
        """What it stands for."""
        text = "".join(self.pieces)
        return json.loads(text) if text else {}


@attrs.frozen
class Answer:
    """One answer of a model."""

    parts: tuple[TextPiece | ThoughtPart | CallPart, ...]
    """In order; calls that stand side by side may come interleaved."""
    usage: Usage | None = None
    finish_reason: FinishReason = "stop"
    """Why it ended: "tool_calls" if there are calls, and it was not cut short by its length."""

    @property
    def text(self) -> str:
        """All text, joined."""
        return "".join([piece for part in self.parts if isinstance(part, TextPiece) for piece in part.pieces])

    @property
    def thinking(self) -> str:
        """All reasoning, joined."""
        return "".join(
            [piece for part in self.parts if isinstance(part, ThoughtPart) for piece in part.pieces]
        )

    @property
    def calls(self) -> tuple[CallPart, ...]:
        """The calls, in order."""
        return tuple([part for part in self.parts if isinstance(part, CallPart)])


def cut_text(text: str) -> st.SearchStrategy[tuple[str, ...]]:
    """*text* in up to four pieces, some perhaps empty."""
    places = st.lists(st.integers(0, len(text)), max_size=3).map(sorted)
    return places.map(lambda at: tuple([text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]))


@st.composite
def calls(draw: st.DrawFn, number: int) -> CallPart:
    """A call; *number* makes its id its own."""
    value = draw(arguments)
    empty = not value and draw(st.booleans())
    text = "" if empty else json.dumps(value, ensure_ascii=draw(st.booleans()))
    return CallPart(f"call_{number}", draw(st.sampled_from(["weather", "f"])), draw(cut_text(text)))


@st.composite
def answers(draw: st.DrawFn, *, thinking: bool = True, tools: bool = True, max_parts: int = 4) -> Answer:
    """Answers with up to *max_parts* parts. *thinking*, *tools*: whether there may be such parts."""
    kinds = ["text", *(["thinking"] if thinking else []), *(["call"] if tools else [])]
    parts: list[TextPiece | ThoughtPart | CallPart] = []
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=max_parts)):
        if kind == "text":
            parts.append(TextPiece(tuple(draw(pieces))))
        elif kind == "thinking":
            parts.append(ThoughtPart(tuple(draw(pieces)), draw(st.sampled_from([None, "c2ln"]))))
        else:
            parts.append(draw(calls(len(parts))))
    counts = st.integers(0, 9)
    usage = draw(st.none() | st.builds(Usage, input_tokens=counts, output_tokens=counts))
    has_calls = any(isinstance(part, CallPart) for part in parts)
    short = not has_calls and draw(st.booleans())
    return Answer(tuple(parts), usage, "length" if short else "tool_calls" if has_calls else "stop")


__all__ = (
    "WORDS",
    "Answer",
    "CallPart",
    "TextPiece",
    "ThoughtPart",
    "answers",
    "arguments",
    "calls",
    "cut_text",
    "pieces",
    "words",
)
