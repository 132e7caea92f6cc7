"""`Connectable`: a shared stream that waits until it is told to start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from reactivex import abc

from semflux.clock import Clock
from semflux.flux.base import Base
from semflux.operators.auto_connect import AutoConnect
from semflux.operators.publish import Publication
from semflux.operators.ref_count import RefCount

F = TypeVar("F", bound=Base[Any])


class Connectable(Generic[F]):
    """What `publish()` and `replay()` give: Reactor's ConnectableFlux.

    `stream` is what subscribers take, a ChatStream if the source is one; nothing is sent until `connect()`.

    ```
    shared = model.prompt("hello").stream().publish()
    shared.stream.subscribe(print)
    shared.stream.subscribe(log)
    shared.connect()
    ```
    """

    __slots__ = ("_make", "_publication", "stream")

    def __init__(
        self, stream: F, publication: Publication, make: Callable[[abc.ObservableBase[Any]], F]
    ) -> None:
        self.stream: F = stream
        """The shared stream."""
        self._publication = publication
        self._make = make

    def connect(self) -> abc.DisposableBase:
        """Start the source, if it is not running. Disposing of what this gives cancels it, and ends the stream for all
        subscribers: with ABORT where it is a chat stream, else with OperatorError."""
        return self._publication.connect()

    def auto_connect(self, count: int = 1) -> F:
        """Start it with the *count*-th subscriber (0: now), once; it goes on whoever leaves.

        Raises:
            ConfigurationError: if *count* is negative.
        """
        return self._make(AutoConnect(self._publication, count))

    def ref_count(self, count: int = 1, *, grace: float = 0.0, clock: Clock | None = None) -> F:
        """Start it with the *count*-th subscriber; cancel it when the last one has left, and none came within *grace*
        seconds of *clock*, default: the running loop's.

        Raises:
            ConfigurationError: if *count* is below 1, or *grace* is negative.
        """
        return self._make(RefCount(self._publication, count, grace, clock))


__all__ = ("Connectable",)
