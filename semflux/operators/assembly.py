"""`assembled`: an operator as the `Hooks` want it, that look at each one that is put on a stream."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from reactivex import abc

from semflux.operators.hooks import Hooks
from semflux.operators.lift import Lifted
from semflux.operators.noting import checkpoint

_PACKAGE = str(Path(__file__).parent.parent)


def _site() -> str:
    """The line of the user's that called this library."""
    frame = inspect.currentframe()
    assert frame is not None  # CPython has them
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_name}, {frame.f_code.co_filename}:{frame.f_lineno}"


def assembled(observable: abc.ObservableBase[Any]) -> abc.ObservableBase[Any]:
    """*observable*, wrapped and noted where it is an operator."""
    if not isinstance(observable, Lifted):
        return observable
    made: abc.ObservableBase[Any] = observable
    if Hooks.debug:
        made = checkpoint(f"assembled in {_site()}")(made)
    return made if Hooks.wrap is None else Hooks.wrap(made)


__all__ = ("assembled",)
