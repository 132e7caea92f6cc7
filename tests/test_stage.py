"""Stages in a chain: the same results as by hand, one item at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semflux.errors import BadFrameError
from semflux.stage import Chain, Stage, chain


class Repeat(Stage[int, int]):
    """Each item *times* times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def push(self, item: int) -> Iterable[int]:
        return (item,) * self.times


class Hold(Stage[int, int]):
    """Every item one later; the last one at the end, after an error as its negative."""

    def __init__(self) -> None:
        self.held: list[int] = []

    def push(self, item: int) -> Iterable[int]:
        out, self.held = self.held, [item]
        return out

    def finish(self, error: BaseException | None = None) -> Iterable[int]:
        return self.held if error is None else [-item for item in self.held]


class Count(Stage[int, tuple[int, int]]):
    """Numbers the items, lazily, and notes what it has been asked for so far."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def push(self, item: int) -> Iterator[tuple[int, int]]:
        self.seen.append(item)
        yield (len(self.seen), item)


class Refuse(Stage[int, int]):
    """Lets items below ten pass."""

    def push(self, item: int) -> Iterator[int]:
        if item >= 10:
            raise BadFrameError("ten or more")
        yield item


STAGES = st.lists(st.integers(0, 3).map(Repeat) | st.builds(Hold), min_size=1, max_size=5)


def by_hand(stages: list[Stage[int, int]], items: list[int], error: BaseException | None) -> list[int]:
    """What a chain gives, computed stage after stage over whole lists."""
    for stage in stages:
        out = [result for item in items for result in stage.push(item)]
        items = [*out, *stage.finish(error)]
    return items


@given(STAGES, st.lists(st.integers()), st.sampled_from([None, BadFrameError("bad")]))
def test_a_chain_gives_what_its_stages_give_one_after_the_other(
    stages: list[Stage[int, int]], items: list[int], error: BaseException | None
) -> None:
    twins: list[Stage[int, int]] = [Repeat(s.times) if isinstance(s, Repeat) else Hold() for s in stages]
    whole = chain(*stages)
    got = [result for item in items for result in whole.push(item)]
    assert by_hand(twins, items, error) == [*got, *whole.finish(error)]


def test_the_first_result_is_out_before_the_second_item_enters() -> None:
    count = Count()
    results = iter(chain(Repeat(3), count).push(7))
    assert count.seen == []
    assert next(results) == (1, 7)
    assert count.seen == [7]
    assert list(results) == [(2, 7), (3, 7)]


def test_what_is_good_before_a_fault_comes_out_and_then_the_error() -> None:
    class Parts(Stage[list[int], int]):
        def push(self, item: list[int]) -> Iterable[int]:
            return item

    results = iter(chain(Parts(), Refuse()).push([1, 2, 10, 3]))
    assert (next(results), next(results)) == (1, 2)
    with pytest.raises(BadFrameError):
        next(results)


def test_a_chain_of_one_is_that_stage() -> None:
    stage = Repeat(2)
    assert chain(stage) is stage


def test_chains_may_be_chained() -> None:
    nested = chain(chain(Repeat(2), Hold()), chain(Hold(), Repeat(2)))
    assert isinstance(nested, Chain)
    assert [*nested.push(1), *nested.push(2), *nested.finish()] == [1, 1, 1, 1, 2, 2, 2, 2]


def test_a_stage_holds_nothing_back_unless_it_says_so() -> None:
    assert list(Repeat(1).finish()) == []
    assert list(Repeat(1).finish(BadFrameError("bad"))) == []


def test_a_deep_chain_needs_no_deep_stack() -> None:
    """A thousand stages: nested generators would meet the recursion limit."""
    assert list(chain(*[Repeat(1) for _ in range(1000)]).push(1)) == [1]
