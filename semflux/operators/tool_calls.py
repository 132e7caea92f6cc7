"""`tool_calls`: the calls of the model, complete and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs
from reactivex import Observable, abc

from semflux.errors import ConfigurationError
from semflux.events import AnyChatEvent, ToolCallEnd
from semflux.messages import ToolCall
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run
from semflux.request import ToolSpec
from semflux.tool_checks import Check, check_of

Invalid: TypeAlias = Literal["error", "keep", "drop"]
"""What becomes of a call that must not be run."""


class _ToolCallsLink(Link[AnyChatEvent, ToolCall]):
    __slots__ = ("_check", "_invalid")

    def __init__(self, below: abc.ObserverBase[ToolCall], run: Run, check: Check, invalid: Invalid) -> None:
        super().__init__(below, run)
        self._check = check
        self._invalid: Invalid = invalid

    def on_next(self, value: AnyChatEvent) -> None:
        if self.stopped or not isinstance(value, ToolCallEnd):
            return
        call = value.tool_call
        if call is None or value.attributes.get("partial"):
            # It ended because the stream does, which says why by itself.
            return
        try:
            wrong = self._check(call)
        except ConfigurationError as error:
            self.fail(error)
            return
        if wrong is None:
            self.below.on_next(call)
        elif self._invalid == "keep":
            why = call.arguments_error or str(wrong)
            self.below.on_next(attrs.evolve(call, arguments_error=why))
        elif self._invalid == "error":
            self.fail_in_order(wrong)


def tool_calls(
    *tools: ToolSpec, invalid: Invalid = "error"
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[ToolCall]]:
    """Each call when it is complete, in the order in which they are. Its arguments are one whole JSON object; with
    *tools* its name is one of theirs, and its arguments keep to that one's JSON Schema (by `jsonschema`, of the extra
    `schema`). A call that the end of a failing stream cut short does not come.

    *invalid*, for other calls: "error" fails the stream with ToolArgumentsError or ToolNotFoundError; "keep" gives them with
    `arguments_error`, which says what is wrong, for an answer to the model; "drop" leaves them out.

    ```
    RESP+ TOOL+[c] TOOL~[c]{} TOOL-[c] RESP-|        tool_calls()
    ---------------------------call[c]------|
    ```

    Raises:
        ConfigurationError: if a schema is none, two tools have one name, or `jsonschema` is missing.
    """
    if invalid not in ("error", "keep", "drop"):
        raise ConfigurationError(f"tool_calls(invalid={invalid!r}): it is 'error', 'keep' or 'drop'")
    check = check_of(tools)
    return lift(lambda below, run: _ToolCallsLink(below, run, check, invalid))


__all__ = ("Invalid", "tool_calls")
