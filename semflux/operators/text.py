"""`text` and `thinking`: the pieces of the answer, and of the reasoning before it."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc

from semflux.events import AnyChatEvent, ChatEventType
from semflux.operators.lift import Link, lift
from semflux.operators.run import Run


class _PiecesLink(Link[AnyChatEvent, str]):
    __slots__ = ("_type",)

    def __init__(self, below: abc.ObserverBase[str], run: Run, type_: ChatEventType) -> None:
        super().__init__(below, run)
        self._type = type_

    def on_next(self, value: AnyChatEvent) -> None:
        if value.type is self._type and not self.stopped:
            self.below.on_next(value.text or "")


def text() -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[str]]:
    """The text of each TEXT_DELTA.

    ```
    RESP+ TEXT+ TEXT~a TEXT~b TEXT- RESP-|        text()
    ------------"a"----"b"---------------|
    ```
    """
    return lift(lambda below, run: _PiecesLink(below, run, ChatEventType.TEXT_DELTA))


def thinking() -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[str]]:
    """The text of each THINKING_DELTA.

    ```
    RESP+ THINK~t THINK~u TEXT~a RESP-|        thinking()
    ------"t"-----"u"-----------------|
    ```
    """
    return lift(lambda below, run: _PiecesLink(below, run, ChatEventType.THINKING_DELTA))


__all__ = ("text", "thinking")
