"""What stands on a marble: events in the notation of the docstrings, other items by a short `repr`; and back."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from semflux.errors import ERROR_CLASSES, ConfigurationError, SemfluxError
from semflux.events import EVENT_CLASSES, ChatEvent, ChatEventType, Error, Origin, StepEnd, StepStart
from semflux.messages import ToolCall
from semflux.response import ChatResponse, CitedSource, MediaBlock
from semflux.testing.signals import shown
from semflux.usage import Usage

T = ChatEventType

LONGEST = 20
"""Characters that are shown of one text."""

_MOST = 4  # items that are shown of a list
_DEEPEST = 3  # lists inside lists

NOTATION: dict[ChatEventType, str] = {
    T.RESPONSE_START: "RESP+",
    T.STATUS: "STATUS",
    T.HEARTBEAT: "HEARTBEAT",
    T.RESPONSE_END: "RESP-",
    T.ABORT: "ABORT",
    T.STEP_START: "STEP+",
    T.STEP_END: "STEP-",
    T.TEXT_START: "TEXT+",
    T.TEXT_DELTA: "TEXT~",
    T.TEXT_END: "TEXT-",
    T.THINKING_START: "THINK+",
    T.THINKING_DELTA: "THINK~",
    T.THINKING_END: "THINK-",
    T.THINKING_SIGNATURE: "SIGNATURE",
    T.THINKING_REDACTED: "REDACTED",
    T.TOOL_CALL_START: "TOOL+",
    T.TOOL_CALL_ARGS_DELTA: "TOOL~",
    T.TOOL_CALL_END: "TOOL-",
    T.TOOL_RESULT: "RESULT",
    T.SERVER_TOOL_START: "SERVER+",
    T.SERVER_TOOL_ARGS_DELTA: "SERVER~",
    T.SERVER_TOOL_RESULT: "SERVER-",
    T.CITATION: "CITATION",
    T.MEDIA_PARTIAL: "MEDIA~",
    T.MEDIA_DONE: "MEDIA-",
    T.REFUSAL_DELTA: "REFUSAL~",
    T.CONTENT_FILTER: "FILTER",
    T.USAGE: "USAGE",
    T.ERROR: "ERROR",
    T.RAW: "RAW",
    T.CUSTOM: "CUSTOM",
}
"""The word for each type of event: `GROUP+`, `GROUP~`, `GROUP-` are its START, DELTA and END."""

_TYPES = {word: type_ for type_, word in NOTATION.items()}
_RESERVED = frozenset({"X", "None", "True", "False", "inf", "nan"} | {word.rstrip("+~-") for word in _TYPES})
"""Words that mean something: a string that is one of them is quoted."""

_DETAILED = {
    T.STATUS: "sub_type",
    T.CUSTOM: "sub_type",
    T.CONTENT_FILTER: "sub_type",
    T.SERVER_TOOL_START: "sub_type",
    T.SERVER_TOOL_RESULT: "sub_type",
    T.ABORT: "reason",
}
"""What stands in parentheses after the word of a type."""

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_PIECE = rf"{_QUOTED}|\w*"
_EVENT = re.compile(
    rf"(?P<word>{'|'.join(sorted([re.escape(w) for w in _TYPES], key=len, reverse=True))})"
    rf"(?:\[(?P<id>{_PIECE})(?::(?P<name>{_PIECE}))?\])?"
    rf"(?:\((?P<detail>{_PIECE})\))?"
    rf"(?P<text>{_PIECE})"
)
_PLAIN = re.compile(rf"(?P<quoted>{_QUOTED})|(?P<number>\d+(?:\.\d+)?(?:e\+?\d+)?(?!\w))|(?P<word>\w+)")
_OPAQUE = re.compile(r"\{([^{}]*)\}")
_BARE = re.compile(
    r"\{(?:[^\W\d]|-|\d+(?:\.\d+)?e-)[^{}]*\}"
)  # no dict and no set, whose own braces these are
_CONSTANTS: dict[str, Any] = {
    "None": None,
    "True": True,
    "False": False,
    "inf": float("inf"),
    "nan": float("nan"),
}


# Writing


def clipped(text: str) -> str:
    """The beginning of *text*, if it is long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _piece(text: str) -> str:
    """A text inside an event: bare where it is a word, else quoted."""
    short = clipped(text)
    return short if re.fullmatch(r"\w*", short) else repr(short)


def _opaque(text: str) -> str:
    inside = text[1:-1] if text[:1] + text[-1:] in {"{}", "<>"} else text
    printable = "".join(["?" if each in "{}" or not each.isprintable() else each for each in inside])
    return f"{{{clipped(printable)}}}"


def _event_token(event: ChatEvent) -> str:
    token = NOTATION[event.type]
    if event.tool_call_id:
        name = event.name if event.type is T.TOOL_CALL_START else None
        token += f"[{_piece(event.tool_call_id)}{f':{_piece(name)}' if name else ''}]"
    detail = getattr(event, _DETAILED.get(event.type, ""), None)
    if event.error is not None:
        detail = type(event.error).__name__
    if detail:
        token += f"({_piece(detail)})"
    if isinstance(event, StepStart | StepEnd):
        return f"{token}{event.step or ''}"
    return token + (_piece(event.text) if event.is_delta and event.text else "")


def token_of(value: object, depth: int = 0) -> str:
    """*value* as texts of marbles have it: `TEXT~a`, `word`, `'two words'`, `1`, `[1, 2]`, `<a, b>` for a tuple,
    `{...}` for what is shown by the beginning of its `repr`. At most 20 characters of any text."""
    if isinstance(value, ChatEvent):
        return _event_token(value)
    if isinstance(value, str):
        short = clipped(value)
        return short if short.isidentifier() and short not in _RESERVED else repr(short)
    if isinstance(value, BaseException):
        return _opaque(type(value).__name__)
    if type(value) in {list, tuple}:
        items = cast("Sequence[object]", value)
        inside = [token_of(item, depth + 1) for item in items[:_MOST]] if depth < _DEEPEST else ["..."]
        if len(items) > _MOST and depth < _DEEPEST:
            inside.append(f"+{len(items) - _MOST}")
        text = ", ".join(inside)
        return f"[{text}]" if isinstance(value, list) else f"<{text}>"
    if isinstance(value, ChatResponse):
        return _opaque(f"Response {clipped(value.text)!r}" if value.text else "Response")
    text = shown(value)
    if value is None or type(value) in {bool, int, float}:
        return text if "-" not in text and len(text) <= LONGEST else _opaque(text)
    return _opaque(text)


def label_of(token: str) -> str:
    """*token* as pictures have it, where nothing is to be told apart from dashes."""
    if _BARE.fullmatch(token):
        return token[1:-1]
    return f"({token[1:-1]})" if token[:1] + token[-1:] == "<>" else token


# Reading


class Reader:
    """A text of marbles, read from left to right."""

    def __init__(self, text: str, values: Mapping[str, Any]) -> None:
        self.text = text
        """All of it."""
        self.at: int = 0
        """How far it is read."""
        self._values = values

    def sees(self, start: str) -> bool:
        """Whether *start* comes next."""
        return self.text.startswith(start, self.at)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What of *pattern* comes next, and is read with it; None: something else does."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def wrong(self, problem: str) -> ConfigurationError:
        """The error that says where it is."""
        return ConfigurationError(f"the marbles {clipped(self.text)!r}, at character {self.at}: {problem}")

    def item(self) -> Any:
        """The item that comes next."""
        start = self.at
        value = self._item()
        return self._values.get(self.text[start : self.at], value)

    def _item(self) -> Any:
        if self.sees("[") or self.sees("<"):
            return self._items()
        if (opaque := self.match(_OPAQUE)) is not None:
            return self._literal(opaque)
        event = _EVENT.match(self.text, self.at)
        if event is not None and (event["word"][-1] in "+~-" or event["text"] == ""):
            self.at = event.end()
            return self._event(event)
        plain = self.match(_PLAIN)
        if plain is None:
            raise self.wrong(
                "a word, a number, a text in quotes, [items], <items> or an event such as TEXT~a is to come here"
            )
        if plain["word"] is not None:
            return _CONSTANTS.get(plain["word"], plain["word"])
        return ast.literal_eval(plain[0])

    def _items(self) -> Any:
        close = "]" if self.text[self.at] == "[" else ">"
        self.at += 1
        items: list[Any] = []
        while not self.sees(close):
            items.append(self.item())
            if self.sees(","):
                self.at += 2 if self.sees(", ") else 1
            elif not self.sees(close):
                raise self.wrong(f"a comma or {close} is to come here")
        self.at += 1
        return items if close == "]" else tuple(items)

    def _literal(self, opaque: re.Match[str]) -> Any:
        for source in (opaque[1], opaque[0]):
            try:
                return ast.literal_eval(source)
            except (ValueError, SyntaxError):
                continue
        if opaque[0] in self._values:
            return None  # `item` puts the value there
        self.at = opaque.start()
        raise self.wrong(
            f"what {opaque[0]} was is not in the text: say it with values={{{opaque[0]!r}: ...}}"
        )

    def _event(self, found: re.Match[str]) -> ChatEvent:
        type_ = _TYPES[found["word"]]
        parts = {name: _unquoted(text) for name, text in found.groupdict().items()}
        text, id_, detail = parts["text"] or "", parts["id"], parts["detail"]
        fields: dict[str, Any] = {}
        if type_ in {T.STEP_START, T.STEP_END}:
            fields["origin"] = Origin(step=int(text or 0))
        elif type_.group is T.TOOL_CALL_START.group and type_ is not T.TOOL_RESULT:
            fields["tool_call_id"] = id_
            if type_ is T.TOOL_CALL_START:
                fields["name"] = parts["name"]
        if type_ in _DETAILED:
            fields[_DETAILED[type_]] = detail
        if type_ in _TEXTS:
            fields["text"] = text
        if type_ is T.TOOL_RESULT:
            fields["tool_call"] = ToolCall(id=id_ or "")
        if type_ is T.ERROR:
            error = error_named(detail or "SemfluxError")
            return Error(error if isinstance(error, SemfluxError) else SemfluxError("as in the marbles"))
        return EVENT_CLASSES[type_](**{**_EMPTY.get(type_, {}), **fields})


_TEXTS = frozenset(
    {
        T.TEXT_DELTA,
        T.THINKING_DELTA,
        T.TOOL_CALL_ARGS_DELTA,
        T.SERVER_TOOL_ARGS_DELTA,
        T.REFUSAL_DELTA,
        T.THINKING_SIGNATURE,
        T.THINKING_REDACTED,
    }
)
_EMPTY: dict[ChatEventType, dict[str, Any]] = {
    T.USAGE: {"usage": Usage()},
    T.CITATION: {"citation": CitedSource()},
    T.MEDIA_PARTIAL: {"block": MediaBlock(kind="image")},
    T.MEDIA_DONE: {"block": MediaBlock(kind="image")},
    T.RAW: {"raw": None},
}
"""The fields that a class needs, and a text does not tell."""


def _unquoted(text: str | None) -> str | None:
    return ast.literal_eval(text) if text is not None and text[:1] in {"'", '"'} else text


def error_named(name: str) -> Exception:
    """An error of this class: one of ours, or of Python.

    Raises:
        ConfigurationError: if there is none.
    """
    cls: Any = ERROR_CLASSES.get(name) or getattr(builtins, name, None)
    if not (isinstance(cls, type) and issubclass(cls, Exception)):
        raise ConfigurationError(f"marbles: no error class is called {clipped(name)}: give one by error=...")
    return cls("as in the marbles")


__all__ = ("LONGEST", "NOTATION", "Reader", "clipped", "error_named", "label_of", "token_of")
