"""Frozen JSON values: nothing in them can be changed, and they behave as what they were made of."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semflux.frozen import EMPTY, FrozenDict, clip, freeze, thaw

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def set_item(mapping: Any) -> None:
    mapping["a"] = 2


def del_item(mapping: Any) -> None:
    del mapping["a"]


def unite(mapping: Any) -> None:
    mapping |= {"b": 2}


MUTATIONS: list[Callable[[Any], object]] = [
    set_item,
    del_item,
    unite,
    lambda mapping: mapping.clear(),
    lambda mapping: mapping.pop("a"),
    lambda mapping: mapping.popitem(),
    lambda mapping: mapping.setdefault("b", 2),
    lambda mapping: mapping.update(b=2),
]


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_frozen_dict_refuses_every_change(mutate: Callable[[Any], object]) -> None:
    mapping = FrozenDict({"a": 1})
    with pytest.raises(TypeError, match="immutable"):
        mutate(mapping)
    assert mapping == {"a": 1}


def test_a_frozen_dict_has_no_attributes_to_set() -> None:
    with pytest.raises(AttributeError):
        setattr(FrozenDict({"a": 1}), "note", 1)  # noqa: B010  # the type checker forbids it as well


def test_a_frozen_dict_is_a_dict_to_its_users() -> None:
    """It compares, dumps, prints and iterates as one; a union is a plain dict again."""
    mapping = FrozenDict({"a": 1, "b": (2,)})
    assert mapping == {"a": 1, "b": (2,)}
    assert json.dumps(mapping) == '{"a": 1, "b": [2]}'
    assert mapping | {"c": 3} == {"a": 1, "b": (2,), "c": 3}
    assert EMPTY == {}


def test_a_frozen_dict_is_hashable_by_content() -> None:
    assert hash(FrozenDict({"a": 1, "b": 2})) == hash(FrozenDict({"b": 2, "a": 1}))
    assert len({FrozenDict({"a": 1}), FrozenDict({"a": 1})}) == 1
    with pytest.raises(TypeError):
        hash(FrozenDict({"a": [1]}))


def test_a_frozen_dict_is_its_own_copy() -> None:
    mapping = FrozenDict({"a": FrozenDict({"b": 1})})
    assert copy.copy(mapping) is mapping
    assert copy.deepcopy(mapping) is mapping


def test_a_frozen_dict_survives_pickling() -> None:
    mapping = FrozenDict({"a": FrozenDict({"b": 1})})
    twin = pickle.loads(pickle.dumps(mapping))
    assert twin == mapping
    assert type(twin) is type(twin["a"]) is FrozenDict


@given(JSON)
def test_freezing_and_thawing_gives_the_same_json(value: Any) -> None:
    assert thaw(freeze(value)) == value


@given(JSON)
def test_what_is_frozen_is_immutable_to_the_bottom(value: Any) -> None:
    """Hashable is what a value of JSON only is when no list or dict is left in it."""
    frozen = freeze(value)
    hash(frozen)
    assert freeze(frozen) == frozen


def test_freezing_takes_no_copy_of_what_is_frozen() -> None:
    mapping = freeze({"a": [1, {"b": 2}]})
    assert freeze(mapping) is mapping


def test_other_values_stay_as_they_are() -> None:
    """Tuples are frozen inside; what is not JSON is not looked into."""
    thing = object()
    assert freeze(([1],)) == ((1,),)
    assert freeze(thing) is thing
    assert thaw(thing) is thing


def test_clip_shows_short_values_whole() -> None:
    value = FrozenDict({"a": (1, "b"), "c": None, "d": ("e",), "f": {"g": ()}})
    assert clip(value) == "{'a': (1, 'b'), 'c': None, 'd': ('e',), 'f': {'g': ()}}"


def test_clip_cuts_long_texts_wherever_they_are() -> None:
    long = "x" * 81
    cut = f"'{'x' * 80}'... (81 characters)"
    assert clip("x" * 80) == repr("x" * 80)
    assert clip(long) == cut
    assert clip({long: (long,)}) == f"{{{cut}: ({cut},)}}"
    assert clip(ValueError(long)) == f"ValueError({cut})"
