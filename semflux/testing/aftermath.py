"""What a verification left behind: dropped signals, and how long it took."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from semflux.operators.hooks import Hooks
from semflux.testing.signals import called, shown


class Aftermath:
    """What was dropped during a verification, and assertions about it; each gives itself back."""

    def __init__(self) -> None:
        self.dropped_items: list[Any] = []
        """Items that came after an end."""
        self.dropped_errors: list[BaseException] = []
        """Errors without a receiver."""
        self.seconds: float = 0.0
        """How long it took: in virtual time, where that was used."""

    def has_dropped(self, *items: Any) -> Aftermath:
        """Exactly these items were dropped, in this order; without arguments: at least one was."""
        if items and list(items) != self.dropped_items:
            raise AssertionError(f"expected the dropped items {shown(list(items))}, actual {self._items()}")
        if not self.dropped_items:
            raise AssertionError("expected that an item was dropped, and none was")
        return self

    def has_not_dropped_items(self) -> Aftermath:
        """No item was dropped."""
        if self.dropped_items:
            raise AssertionError(f"expected that no item was dropped, actual {self._items()}")
        return self

    def has_dropped_errors(self, count: int | None = None) -> Aftermath:
        """So many errors were dropped; None: at least one."""
        if not self.dropped_errors if count is None else len(self.dropped_errors) != count:
            wanted = "at least 1" if count is None else str(count)
            raise AssertionError(f"expected {wanted} dropped errors, actual {self._errors()}")
        return self

    def has_not_dropped_errors(self) -> Aftermath:
        """No error was dropped."""
        return self.has_dropped_errors(0)

    def has_dropped_error(
        self, matches: Callable[[BaseException], object] | type[BaseException]
    ) -> Aftermath:
        """An error of this type, or for which *matches* is true, was dropped."""
        for error in self.dropped_errors:
            if isinstance(error, matches) if isinstance(matches, type) else matches(error):
                return self
        raise AssertionError(f"expected a dropped error like {called(matches)}, actual {self._errors()}")

    def took_less_than(self, seconds: float) -> Aftermath:
        """It took less than so long."""
        if self.seconds >= seconds:
            raise AssertionError(f"expected less than {seconds:g} s, actual {self.seconds:g} s")
        return self

    def took_more_than(self, seconds: float) -> Aftermath:
        """It took longer than that."""
        if self.seconds <= seconds:
            raise AssertionError(f"expected more than {seconds:g} s, actual {self.seconds:g} s")
        return self

    def _items(self) -> str:
        return shown(self.dropped_items)

    def _errors(self) -> str:
        return shown(self.dropped_errors)


@contextmanager
def watching() -> Generator[Aftermath]:
    """Collect what is dropped meanwhile, in place of the receivers that `Hooks` has, which get their place back."""
    aftermath = Aftermath()
    before = {name: vars(Hooks)[name].__func__ for name in ("_on_error", "_on_next")}
    Hooks.on_error_dropped(aftermath.dropped_errors.append)
    Hooks.on_next_dropped(aftermath.dropped_items.append)
    try:
        yield aftermath
    finally:
        Hooks.on_error_dropped(before["_on_error"])
        Hooks.on_next_dropped(before["_on_next"])


__all__ = ("Aftermath", "watching")
