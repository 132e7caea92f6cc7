"""`after_item`: the source that is made of the one item of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import reactivex
from reactivex import Observable, abc

from semflux.operators.concat import concat
from semflux.operators.deferred import deferred, transform_deferred
from semflux.operators.do_on import do_on_next
from semflux.operators.ignore_elements import ignore_elements

T = TypeVar("T")
U = TypeVar("U")


def after_item(
    function: Callable[[T], abc.ObservableBase[U]],
) -> Callable[[abc.ObservableBase[T]], Observable[U]]:
    """For a source of one item at most: the stream that *function* gives for it, once the source has completed; the end
    where there is no item. It is pulled as the source is, where `flat_map` gives what it subscribes to a demand of its
    own.

    ```
    --1|        after_item(lambda x: of(x, x))
    ----1-1|
    ```
    """

    def for_one(source: abc.ObservableBase[T]) -> Observable[U]:
        kept: list[T] = []

        def go_on() -> abc.ObservableBase[U]:
            return function(kept.pop()) if kept else reactivex.empty()

        first: Any = ignore_elements()(do_on_next(kept.append)(source))
        return concat(first, deferred(go_on))

    return transform_deferred(for_one)


__all__ = ("after_item",)
