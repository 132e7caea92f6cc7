"""`text`: the pieces of the answer's text."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc

from semflux.events import AnyChatEvent, ChatEventType
from semflux.operators.lift import Link, lift


class _TextLink(Link[AnyChatEvent, str]):
    __slots__ = ()

    def on_next(self, value: AnyChatEvent) -> None:
        if value.type is ChatEventType.TEXT_DELTA and not self.stopped:
            self.below.on_next(value.text or "")


def text() -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[str]]:
    """The text of each TEXT_DELTA.

    ```
    RESP+ TEXT+ TEXT~a TEXT~b TEXT- RESP-|        text()
    ------------"a"----"b"---------------|
    ```
    """
    return lift(_TextLink)


__all__ = ("text",)
