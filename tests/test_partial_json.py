"""The reader of JSON that is still coming: what json.loads says, at each path, however the text is cut."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semflux.errors import ConfigurationError, JsonTooDeepError, PartialJsonError
from semflux.frozen import FrozenDict, freeze
from semflux.json_paths import Growth, JsonMatch, Key, Segment, parse_path, write_path
from semflux.partial_json import PartialJsonReader
from semflux.wire.limits import Limits


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def read(text: str, *paths: str, size: int = 0, **options: Any) -> list[JsonMatch]:
    reader = PartialJsonReader([parse_path(path) for path in paths], **options)
    found: list[JsonMatch] = []
    for piece in pieces(text, size or len(text) or 1):
        found += reader.feed(piece)
    return [*found, *reader.finish()]


def values(text: str, *paths: str, size: int = 0, **options: Any) -> list[Any]:
    return [match.value for match in read(text, *paths, size=size, **options)]


def error_of(text: str, *paths: str, size: int = 0, **options: Any) -> str:
    with pytest.raises(PartialJsonError) as caught:
        read(text, *(paths or ("$",)), size=size, **options)
    return f"{caught.value.kind}: {caught.value}"


def walk(value: Any, keys: tuple[Key, ...] = ()) -> Iterator[tuple[tuple[Key, ...], Any]]:
    """Each value of a document with its keys, what is inside first."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, (*keys, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from walk(item, (*keys, index))
    yield keys, value


def stands_at(keys: tuple[Key, ...], path: tuple[Segment, ...]) -> bool:
    return len(keys) == len(path) and all(
        want is None or want == key for want, key in zip(path, keys, strict=True)
    )


NAMES = st.sampled_from(["a", "b", "it's", ""]) | st.text(max_size=3)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)
PATHS = st.lists(st.none() | st.sampled_from(["a", "b", "it's", 0, 1, 2]), max_size=4).map(tuple)
CUTS = st.integers(1, 9)


@given(DOCUMENTS, st.lists(PATHS, min_size=1, max_size=3), CUTS, st.booleans(), st.sampled_from([None, 1]))
def test_each_value_is_what_json_loads_says(
    document: Any, paths: list[tuple[Segment, ...]], size: int, ascii: bool, indent: int | None
) -> None:
    """In the order in which they are whole, once each."""
    text = json.dumps(document, ensure_ascii=ascii, indent=indent)
    expected = [
        (keys, freeze(value))
        for keys, value in walk(json.loads(text))
        if any(stands_at(keys, path) for path in paths)
    ]
    reader = PartialJsonReader(paths)
    found = [match for piece in pieces(text, size) for match in reader.feed(piece)]
    found += reader.finish()
    assert expected == [(match.keys, match.value) for match in found]
    assert all(match.complete and match.delta is None for match in found)
    assert [type(value) for _, value in expected] == [type(match.value) for match in found]


@given(DOCUMENTS, CUTS)
def test_growing_strings_come_to_the_whole(document: Any, size: int) -> None:
    """Each growth begins with the one before it; the deltas joined are the value."""
    text = json.dumps([document, "Zoë 👍\n"])
    so_far: dict[tuple[Key, ...], str] = {}
    for match in read(text, "$[*]", "$[*][*]", "$[*].*", size=size, partial=True):
        if isinstance(match.value, str):
            assert match.delta is not None
            so_far[match.keys] = so_far.get(match.keys, "") + match.delta
            assert so_far[match.keys] == match.value
        else:
            assert (True, None) == (match.complete, match.delta)
    assert "Zoë 👍\n" == so_far[1,]


@given(st.text(alphabet='{}[]",:\\u12dDeE+-.tfnaul \n', max_size=20), CUTS)
def test_what_is_no_json_is_refused(text: str, size: int) -> None:
    """The same texts as json.loads refuses."""
    try:
        expected: Any = [freeze(json.loads(text))]
    except ValueError:
        expected = None
    try:
        found: Any = values(text, "$", size=size)
    except PartialJsonError:
        found = None
    assert expected == found


@given(DOCUMENTS, st.data())
def test_what_is_cut_short_says_so(document: Any, data: st.DataObject) -> None:
    text = json.dumps([document])
    cut = data.draw(st.integers(1, len(text) - 1))
    assert error_of(text[:cut]).startswith(
        f"cut_short: the JSON is cut short: the text ends at character {cut}"
    )


# The work


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("find", [False, True])
def test_the_work_is_linear(partial: bool, find: bool) -> None:
    """Twice the text, in pieces of one character, is twice the calls of functions, C's included; not four times."""

    def work(size: int) -> int:
        text = json.dumps({"items": [{"name": "x" * 50, "n": 12345}] * (size // 100), "t": "y" * size})
        reader = PartialJsonReader(
            [parse_path("$.t"), parse_path("$.items[*].name")], partial=partial, find=find
        )
        calls = 0

        def count(frame: Any, event: str, arg: Any) -> None:
            nonlocal calls
            calls += 1

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            for char in text:
                for match in reader.feed(char):
                    assert match.keys
        finally:
            sys.setprofile(before)
        assert reader._told <= len(text)
        return calls

    once, twice = work(1_000), work(2_000)
    assert once * 1.8 < twice < once * 2.2


def test_a_million_characters_one_by_one() -> None:
    text = '{"a": "' + "x" * 999_980 + '", "b": 1}'
    reader = PartialJsonReader([parse_path("$.a"), parse_path("$.b")], partial=True)
    grown = 0
    last: list[JsonMatch] = []
    for char in text:
        for match in reader.feed(char):
            grown += len(match.delta or "")
            last = [*last[-1:], match]
    assert (999_980, 1) == (grown, last[-1].value)
    assert "x" * 999_980 == last[0].value
    assert [] == list(reader.finish())


# What it takes


def test_names_given_twice_are_told_twice_and_the_last_counts() -> None:
    assert [1, 2, {"a": 2}] == values('{"a": 1, "a": 2}', "$.a", "$")


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    "text",
    [
        r'"\ud83d\ude00"', r'"\ud83d"', r'"\ud83dx"', r'"\ud83d\ud83d\ude00"', r'"\ude00\n\/\b\f\r\t\"\\"', r'"\ud83d\u0041"',
        r'"\ud83d\n"', r'{"\ud83d\ude00\ud83d": 1}', "-0", "1E+2", "10", " \t\r\n[ ] ", "{ }",
    ],
)  # fmt: skip
def test_escapes_and_numbers_cut_anywhere(text: str, size: int) -> None:
    assert [freeze(json.loads(text))] == values(text, "$", size=size)


def test_the_other_half_of_a_pair_is_waited_for() -> None:
    reader = PartialJsonReader([()], partial=True)
    assert [["a"], [], ["a😀"]] == [
        [match.value for match in reader.feed(piece)] for piece in ('"a', r"\ud83d", r"\ude00")
    ]


def test_values_are_told_where_they_are_whole() -> None:
    reader = PartialJsonReader([parse_path("$.items[*].name")])
    assert [[], ["$.items[0].name"], [], ["$.items[1].name"]] == [
        [match.path for match in reader.feed(piece)]
        for piece in ('{"items": [{"name": "a', '"', ', "x": {"name": 1}}, {"name": 1', ",")
    ]
    assert not reader.is_blank


# What it refuses


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    "text, says",
    [
        ("[1, NaN]", "json: invalid JSON at character 4: expected a value"),
        ("Infinity", "json: invalid JSON at character 0: expected a value"),
        ("-Infinity", "json: invalid JSON at character 0: expected a number"),
        ("[nule]", "json: invalid JSON at character 4: expected null"),
        ("[1e999]", "json: invalid JSON at character 1: a number is too large for a float"),
        ("[01]", "json: invalid JSON at character 1: expected a number"),
        ('{"a" 1}', "json: invalid JSON at character 5: expected ':'"),
        ("[1 2]", "json: invalid JSON at character 3: expected ',' or ']'"),
        ('{"a": 1]', "json: invalid JSON at character 7: expected ',' or '}'"),
        ("{1", "json: invalid JSON at character 1: expected a name or '}'"),
        ('{"a": 1,}', "json: invalid JSON at character 8: expected a name"),
        ("[1,]", "json: invalid JSON at character 3: expected a value"),
        ("[}", "json: invalid JSON at character 1: expected a value or ']'"),
        ('"\\x"', "json: invalid JSON at character 2: expected the rest of an escape"),
        ('"\\u12g4"', "json: invalid JSON at character 5: expected four hexadecimal digits"),
        ('"a\nb"', "json: invalid JSON at character 2: expected no control character in a string"),
        ("{} secret", "json: invalid JSON at character 3: expected nothing more"),
        ("", "no_json: there is no JSON: the text is empty"),
        (" \n", "no_json: there is no JSON: the text is empty"),
        ('{"a"', "cut_short: the JSON is cut short: the text ends at character 4, where ':' is expected"),
        ("-", "json: invalid JSON at character 0: expected a number"),
        (
            "9" * 401,
            "json: invalid JSON at character 0: a whole number has more than max_int_digits (400) digits",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, says: str, size: int) -> None:
    """And nothing of the text."""
    assert says == error_of(text, size=size)


def test_bounds() -> None:
    assert [freeze([[1]])] == values("[[1]]", "$", limits=Limits(max_json_depth=2))
    with pytest.raises(JsonTooDeepError, match=r"max_json_depth \(2\)"):
        read("[[[1]]]", "$[1]", limits=Limits(max_json_depth=2))
    limit = sys.get_int_max_str_digits()
    assert "more digits than this interpreter" in error_of(
        "1" * (limit + 1), limits=Limits(max_int_digits=limit + 9)
    )


# Text around it


@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize(
    "text, expected",
    [
        ('Here it is:\n```json\n{"a": 1}\n```\nAs you see, [it] is {short', [1]),
        ('As [1] says [sic] of {it}, [-x] and [ ], ["\\x: {"b": 2} but {"a": 3}', [3]),
        ('{"b": [1]} and [', []),
        ('{"b": 1} is all', []),
        ('{"a": "x"}', ["x"]),
        ('[{"a": 1}]', []),
    ],
)
def test_the_document_is_found(text: str, expected: list[Any], size: int) -> None:
    assert expected == values(text, "$.a", size=size, find=True)


@pytest.mark.parametrize(
    "text, says",
    [
        ("I cannot.", "no_json: there is no JSON in the text"),
        ("{'a': 1}", "no_json: there is no JSON in the text: at character 1, expected a name or '}'"),
        ("[1.2.3]", "no_json: there is no JSON in the text: at character 1, expected a number"),
        ("[sic] [sic] it", "no_json: there is no JSON in the text: at character 1, expected a value or ']'"),
        ('{"a": 1, x {"a": 2}', "json: invalid JSON at character 9: expected a name"),
        ('{"b": {}} {"a": [', "cut_short: the JSON is cut short: the text ends at character 17, where a value or ']' is expected"),
        ("{", "cut_short: the JSON is cut short: the text ends at character 1, where a name or '}' is expected"),
        (" ", "no_json: there is no JSON in the text"),
    ],
)  # fmt: skip
def test_what_is_not_found_is_told(text: str, says: str) -> None:
    assert says == error_of(text, "$.a", find=True)


def test_what_has_been_told_is_surely_json() -> None:
    assert "json: invalid JSON at character 2: expected no control character in a string" == error_of(
        '["\n', "$[0]", find=False
    )
    reader = PartialJsonReader([(0,)], partial=True, find=True)
    assert ["ab"] == [match.value for match in reader.feed('["ab')]
    with pytest.raises(PartialJsonError, match="character 4"):
        list(reader.feed("\n"))


# Paths


@pytest.mark.parametrize(
    "path, segments",
    [
        ("$", ()),
        ("$.a.b_1", ("a", "b_1")),
        ("$['a.b'][0].*[*]", ("a.b", 0, None, None)),
        ('$["it\'s"].größe', ("it's", "größe")),
        (r"$['it\'s \\']", ("it's \\",)),
        (r'$["\""]', ('"',)),
        ("$['']", ("",)),
    ],
)
def test_a_path_is_understood(path: str, segments: tuple[Segment, ...]) -> None:
    assert segments == parse_path(path)


@pytest.mark.parametrize(
    "path", ["", "a", ".a", "$..a", "$.a-b", "$[-1]", "$[1:2]", "$[?(@.a)]", "$[0,1]", "$.", "$.1", "$[01]", "$ .a", "@", None]
)  # fmt: skip
def test_any_other_path_is_refused(path: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Supported are \$, \.name"):
        parse_path(path)


@given(st.lists(st.text(max_size=4) | st.integers(0, 99), max_size=4).map(tuple))
def test_a_written_path_leads_to_the_same(keys: tuple[Key, ...]) -> None:
    assert keys == parse_path(write_path(keys))


# Matches


def test_a_match_is_a_frozen_value() -> None:
    (match,) = read('{"a": {"b": [1]}}', "$.a")
    assert JsonMatch(("a",), FrozenDict({"b": (1,)})) == match
    assert ("$.a", FrozenDict, tuple) == (match.path, type(match.value), type(match.value["b"]))  # type: ignore[index,call-overload]  # an object
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        match.complete = False  # type: ignore[misc]  # that is the point


def test_a_growing_match_compares_pickles_and_copies_by_its_text() -> None:
    first, second = read('"ab"', "$", size=2, partial=True)
    for same in (pickle.loads(pickle.dumps(first)), copy.deepcopy(first), JsonMatch((), "a", False, "a")):
        assert (first, hash(first), "a") == (same, hash(same), same.value)
    assert first != second
    assert Growth(["a", "b"], 1) != 1
    assert repr("a") == repr(Growth(["a", "b"], 1))
    long = JsonMatch(("k" * 200,), "v" * 200, True, "d" * 200)
    assert len(repr(long)) < 500
