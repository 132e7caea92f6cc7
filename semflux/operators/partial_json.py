"""`partial_json`: values out of JSON that the model writes, as soon as each is whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

import msgspec
import msgspec.inspect
from reactivex import Observable, abc

from semflux.errors import ConfigurationError, PartialJsonError, SemfluxError, ToolArgumentsError
from semflux.events import (
    Abort,
    AnyChatEvent,
    Error,
    StepEnd,
    TextDelta,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolCallStart,
)
from semflux.frozen import clip
from semflux.json_paths import JsonMatch, parse_path
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.partial_json import PartialJsonReader
from semflux.wire.limits import DEFAULT_LIMITS, Limits

T = TypeVar("T")

# What msgspec says of types alone; its other messages may quote the value.
_OF_TYPES = re.compile(
    r"(?:Expected `[^`]*`, got `[^`]*`|Object missing required field `[^`]*`)(?: - at `[^`]*`)?"
).fullmatch


class _PartialJsonLink(Link[AnyChatEvent, Any]):
    __slots__ = ("_calls", "_convert", "_failed", "_make", "_reader", "_tool")

    def __init__(
        self,
        below: abc.ObserverBase[Any],
        run: Run,
        make: Callable[[str | None], PartialJsonReader],
        tool: str | None,
        convert: Callable[[JsonMatch], Any] | None,
    ) -> None:
        super().__init__(below, run)
        self._make = make
        self._tool = tool
        self._convert = convert
        self._reader: PartialJsonReader | None = None
        """Reads the text of the step; None before there is any."""
        self._calls: dict[str | None, PartialJsonReader] = {}
        """What reads the arguments of each open call of the tool; for the answer's text, the calls of the step."""
        self._failed = False

    def on_next(self, value: AnyChatEvent) -> None:
        if self.stopped or self._failed:
            return
        error = self._read_text(value) if self._tool is None else self._read_call(value, self._tool)
        if error is None:
            return
        self._failed = True
        self._forget()
        if isinstance(error, SemfluxError):
            self.fail_in_order(error)
        else:
            self.fail(error)

    def on_completed(self) -> None:
        error = None if self._failed or self.stopped else self._end_text()
        if error is None:
            super().on_completed()
        else:
            super().on_error(error)

    def dispose(self) -> None:
        self._forget()
        super().dispose()

    def _read_text(self, event: AnyChatEvent) -> Exception | None:
        if isinstance(event, TextDelta):
            if self._reader is None:
                self._reader = self._make(None)
            return self._give(self._reader.feed(event.text))
        if isinstance(event, ToolCallStart):
            self._calls[event.tool_call_id] = self._make(None)
        elif isinstance(event, StepEnd) and not event.attributes.get("partial"):
            return self._end_text()
        elif isinstance(event, (StepEnd, Abort, Error)):
            # It ended because the stream does, which says why by itself.
            self._forget()
        return None

    def _end_text(self) -> Exception | None:
        reader, has_calls = self._reader, bool(self._calls)
        self._forget()
        if reader is None or reader.is_blank:
            return None
        error = self._give(reader.finish())
        # What a model says before it calls tools is no JSON.
        return (
            None if has_calls and isinstance(error, PartialJsonError) and error.kind == "no_json" else error
        )

    def _forget(self) -> None:
        self._reader = None
        self._calls = {}

    def _read_call(self, event: AnyChatEvent, tool: str) -> Exception | None:
        error: Exception | None = None
        if isinstance(event, ToolCallStart):
            if event.name == tool:
                self._calls[event.tool_call_id] = self._make(event.tool_call_id)
        elif isinstance(event, ToolCallArgsDelta):
            reader = self._calls.get(event.tool_call_id)
            if reader is not None:
                error = self._give(reader.feed(event.text))
        elif isinstance(event, ToolCallEnd):
            reader = self._calls.pop(event.tool_call_id, None)
            if reader is None or event.attributes.get("partial"):
                return None
            # No arguments at all are the empty object.
            error = self._give(reader.feed("{}")) if reader.is_blank else None
            error = error or self._give(reader.finish())
        if isinstance(error, PartialJsonError):
            return ToolArgumentsError(
                f"the arguments of {clip(tool)} cannot be used: {error}", kind=error.kind
            )
        return error

    def _give(self, matches: Iterator[JsonMatch]) -> Exception | None:
        """Deliver them; what is wrong, if anything is."""
        convert = self._convert
        while not self.stopped:
            try:
                match = next(matches, None)
                if match is None:
                    return None
                item = match if convert is None else convert(match)
            except Exception as error:
                # Of the reader, or of what the type does when one is made.
                return error
            self.below.on_next(item)
        return None


def _converter(type_: type[T]) -> Callable[[JsonMatch], T]:
    try:
        msgspec.json.Decoder(type_)
        known = not isinstance(msgspec.inspect.type_info(type_), msgspec.inspect.CustomType)
    except (TypeError, NameError) as error:
        raise ConfigurationError(f"partial_json(type=...): msgspec cannot make this type: {error}") from None
    if not known:
        raise ConfigurationError(
            f"partial_json(type=...): msgspec cannot make {clip(type_)}; it makes a Struct, a dataclass, an attrs class, a "
            "TypedDict, an Enum, and builtins such as list[str]. Leave type out and make yours of each match's value"
        )

    def convert(match: JsonMatch) -> T:
        try:
            return msgspec.convert(match.value, type_)
        except msgspec.ValidationError as error:
            says = str(error)
        why = f": {says}" if _OF_TYPES(says) else ""
        raise PartialJsonError(
            f"what stands at {clip(match.path)} does not fit the type asked for{why}", kind="type"
        )

    return convert


@overload
def partial_json(
    path: str,
    *more: str,
    tool: str | None = None,
    partial: bool = False,
    find: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[JsonMatch]]: ...
@overload
def partial_json(
    path: str,
    *more: str,
    type: type[T],
    tool: str | None = None,
    find: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[T]]: ...
def partial_json(
    path: str,
    *more: str,
    type: type[Any] | None = None,
    tool: str | None = None,
    partial: bool = False,
    find: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[Any]]:
    """The values at *path*, or at one of *more*, of the JSON that the model writes: each as soon as it is whole, long
    before the document is. What is inside another match comes before it; a value at several paths comes once.

    A path begins with `$`, the document, and goes on with `.name`, `['any name']`, `[0]`, and `.*` or `[*]` for all
    members or elements. The text of each step is a document, over the ends of its blocks; with *tool*, the arguments of
    each call of the tool of that name are.

    *type*: what each value is made into by msgspec (a Struct, a dataclass, `list[str]` ...); default: a `JsonMatch`, with
    its path. *partial*: strings at the paths also come as they grow, with *complete* False and *delta*, the new
    piece; `value` is then put together where it is asked for. *find*: text around the JSON is passed over (prose, a
    Markdown fence): the document is the first array or object in which something stands at a path. False: the text is
    JSON and nothing else, which may be a string or a number. Arguments are never looked for so. *limits*: bounds on depth
    and on the digits of whole numbers.

    ```
    RESP+ TEXT~{"a":[1 TEXT~, TEXT~2]} RESP-|        partial_json("$.a[*]")
    -------------------------1--------2-----|
    ```

    A stream whose text is no JSON, is cut short or does not fit *type* fails with PartialJsonError, one whose arguments are
    so with ToolArgumentsError; JSON nested too deep is a JsonTooDeepError. A step without text, or one that calls tools
    and whose text holds no JSON, is none of these.

    Raises:
        ConfigurationError: if a path is none, *type* is not known to msgspec, or *type* and *partial* meet.
    """
    paths = [parse_path(each) for each in (path, *more)]
    if tool is not None and not (isinstance(tool, str) and tool):
        raise ConfigurationError(
            f"partial_json(tool={clip(tool)}): it is the name of a tool, or None for the text"
        )
    if type is not None and partial:
        raise ConfigurationError(
            "partial_json(type=..., partial=True): half a value has no type; leave out one of them"
        )
    convert = None if type is None else _converter(type)

    def make(tool_call_id: str | None) -> PartialJsonReader:
        return PartialJsonReader(
            paths, partial=partial, find=find and tool is None, limits=limits, tool_call_id=tool_call_id
        )

    return lift(lambda below, run: _PartialJsonLink(below, run, make, tool, convert))


__all__ = ("partial_json",)
