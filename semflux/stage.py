"""Stages: pure, per-stream transformers that make up the pipeline, and the loop that runs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)


class Stage(Generic[In, Out]):
    """One step of a pipeline; an instance belongs to one stream.

    Guarantees: no I/O, no clock but one that was passed in, no reference to what comes before or
    after it. `push` and `finish` give what follows from their argument, in order. After `finish`
    neither is called again.

    Raises: a stage raises only `SemfluxError`s; the runner hands one to `finish` of the first stage.
    """

    __slots__ = ()

    def push(self, item: In) -> Iterable[Out]:
        """What follows from *item*, in order; may be empty."""
        raise NotImplementedError  # pragma: no cover  # abstract

    def finish(self, error: BaseException | None = None) -> Iterable[Out]:
        """What was held back, when the input has ended, well (*error* is None) or badly."""
        return ()


class Chain(Stage[Any, Any]):
    """Several stages as one: what one gives goes into the next.

    Items go through one at a time, so that the first result is out before the second item enters.
    """

    __slots__ = ("_stages",)

    def __init__(self, stages: tuple[Stage[Any, Any], ...]) -> None:
        self._stages = stages

    def push(self, item: Any) -> Iterator[Any]:
        return self._run(0, item)

    def _run(self, start: int, item: Any) -> Iterator[Any]:
        # A stack of iterators, not nested `yield from`: each level of those costs every item again.
        stages = self._stages
        last = len(stages) - 1
        stack: list[Iterator[Any]] = [iter(stages[start].push(item))]
        while stack:
            depth = start + len(stack) - 1
            for out in stack[-1]:
                if depth == last:
                    yield out
                else:
                    stack.append(iter(stages[depth + 1].push(out)))
                    break
            else:
                stack.pop()

    def finish(self, error: BaseException | None = None) -> Iterator[Any]:
        for i, stage in enumerate(self._stages):
            for out in stage.finish(error):
                if i + 1 < len(self._stages):
                    yield from self._run(i + 1, out)
                else:
                    yield out


def chain(*stages: Stage[Any, Any]) -> Stage[Any, Any]:
    """*stages* in this order as one stage; a single one is given back as it is."""
    return stages[0] if len(stages) == 1 else Chain(stages)


__all__ = ("Chain", "Stage", "chain")
