"""`citations`: what the answer rests on."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc

from semflux.events import AnyChatEvent, Citation
from semflux.operators.lift import Link, lift
from semflux.response import CitedSource


class _CitationsLink(Link[AnyChatEvent, CitedSource]):
    __slots__ = ()

    def on_next(self, value: AnyChatEvent) -> None:
        if isinstance(value, Citation) and not self.stopped:
            self.below.on_next(value.citation)


def citations() -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[CitedSource]]:
    """The source of each CITATION, as it comes: one for each occurrence, so that a source that is cited twice comes
    twice. `distinct(lambda source: source.url)` after it gives each once.

    ```
    RESP+ TEXT~a CITATION TEXT~b CITATION RESP-|        citations()
    -------------source----------source--------|
    ```
    """
    return lift(_CitationsLink)


__all__ = ("citations",)
