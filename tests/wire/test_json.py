"""The JSON codec: what it takes, what it mends and what it refuses."""

from __future__ import annotations

import json
import math
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semflux.errors import BadFrameError, JsonTooDeepError
from semflux.frozen import FrozenDict
from semflux.wire import Limits, TypedDecoder, decode, encode, replace_surrogates
from semflux.wire.json import _too_deep, join_surrogates


class Delta(msgspec.Struct):
    text: str | None = None
    index: int = 0
    score: float = 0.0


def reason(data: bytes | str, limits: Limits | None = None) -> str:
    """What the refusal of *data* says."""
    with pytest.raises(BadFrameError) as caught:
        decode(data, limits or Limits())
    assert caught.value.kind == "json"
    return str(caught.value)


@pytest.mark.parametrize(
    "text", ['{"a": [1, -2.5, true, null, "\u20ac"]}', "1", '"x"', " [] \r\n", "-0", "1e308"]
)
def test_json_is_decoded(text: str) -> None:
    """From bytes as from text."""
    assert json.loads(text) == decode(text.encode())
    assert json.loads(text) == decode(text)


def test_the_last_of_equal_names_counts() -> None:
    """As nearly all parsers have it."""
    assert decode(b'{"a":1,"a":2}') == {"a": 2}
    assert decode(b'{"a":1,"a":"\\ud800"}') == {"a": "\ud800"}


def test_lone_surrogates_are_taken_and_pairs_joined() -> None:
    """A lone one stays in the string: its other half may be in the next frame."""
    assert decode(b'{"a":"\\ud83d"}') == {"a": "\ud83d"}
    assert decode(b'["\\ud83d\\ude00", "\\ude00\\ud83d"]') == ["\U0001f600", "\ude00\ud83d"]
    assert decode('["\ud83d"]') == ["\ud83d"]
    assert decode('["\ud83d\ude00", "\\ud83d"]') == ["\U0001f600", "\ud83d"]


def test_what_is_no_utf8_becomes_a_replacement_character() -> None:
    """As in the rest of the stream."""
    assert decode(b'{"a":"x\xffy"}') == {"a": "x\ufffdy"}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "[0.5, 1e400]"])
@pytest.mark.parametrize("lenient", [False, True])
def test_numbers_that_are_none_are_refused(number: str, lenient: bool) -> None:
    """Also where a surrogate in the same text sends it to the lenient parser."""
    text = f'[{number}, "\\ud800"]' if lenient else f"[{number}]"
    assert reason(text).startswith("invalid JSON")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "{}x",
        "{} {}",
        "nul",
        "'a'",
        "{a:1}",
        "[1,]",
        "01",
        "\ufeff1",
        '"\x00"',
        '"\t"',
        "\x0b1",
        '"\\x"',
    ],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    """Among it: nothing at all, trailing text, control characters in strings, a BOM."""
    assert reason(text).startswith("invalid JSON")
    assert reason(text.encode()).startswith("invalid JSON")


def test_an_error_tells_the_place_but_never_the_data() -> None:
    """Neither in its text nor in any exception behind it: it may hold a prompt."""
    with pytest.raises(BadFrameError) as caught:
        decode(b'{"secret": "canary", oops}')
    assert str(caught.value) == (
        "invalid JSON: Expecting property name enclosed in double quotes at character 21"
    )
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert reason(b'["canary", NaN]') == "invalid JSON: NaN is no JSON number"


def test_whole_numbers_have_a_bound_on_their_digits() -> None:
    """400 by default, its sign not counted; digits in strings and fractions are no whole numbers."""
    for sign in ("", "-"):
        good = f"[{sign}{'9' * 400}]"
        assert json.loads(good) == decode(good)
        assert "max_int_digits (400)" in reason(f"[{sign}{'9' * 401}]")
        assert "max_int_digits (400)" in reason(f'{{"a":{sign}{"9" * 5000},"b":"\\ud800"}}')
    text = f'["{"9" * 5000}", 1.{"5" * 5000}]'
    assert json.loads(text) == decode(text)
    assert "max_int_digits (3)" in reason(b"[1234]", Limits(max_int_digits=3))
    assert decode(b"[123]", Limits(max_int_digits=3)) == [123]
    assert "than this interpreter takes" in reason(b"9" * 5000, Limits(max_int_digits=10_000))


def nested(depth: int) -> bytes:
    return b'[{"a":' * (depth // 2) + b"[" * (depth % 2) + b"]" * (depth % 2) + b"}]" * (depth // 2)


def test_nesting_has_a_bound() -> None:
    """128 by default, found before anything is parsed, so that hostile depth cannot hurt the parser."""
    good = b"[" * 128 + b"]" * 128
    assert json.loads(good) == decode(good)
    for bad in (b"[" * 129 + b"]" * 129, b"[" * 100_000, b'{"a":' * 129, b"[{" * 3000):
        with pytest.raises(JsonTooDeepError):
            decode(bad)
    with pytest.raises(JsonTooDeepError):
        decode("[[[]]]", Limits(max_json_depth=2))


def test_brackets_side_by_side_or_in_strings_are_no_depth() -> None:
    """Whatever is escaped around them."""
    wide: list[Any] = [{"a": []}] * 500
    text = ["[" * 500, '"' + "{" * 500, "\\" + "[" * 500, '\\"' + "[" * 500 + "\\\\"]
    for value in (wide, text, [wide, *text]):
        data = json.dumps(value).encode()
        assert value == decode(data)


def test_a_string_that_never_ends_is_refused_in_time() -> None:
    """The exact look at the depth takes one pass over any input."""
    for data in (
        b'"' + b"[" * 200_000,
        b'["' + b'\\"[' * 100_000,
        b'"' * 200_001 + b"[" * 129,
        b"\\" * 200_000,
    ):
        with pytest.raises(BadFrameError):
            decode(data)


def test_a_bound_beyond_the_interpreter_still_ends_in_our_error() -> None:
    """A RecursionError never gets out."""
    with pytest.raises(JsonTooDeepError, match="interpreter"):
        decode(b"[" * 200_000, Limits(max_json_depth=1_000_000))


def test_a_typed_decoder_gives_its_type() -> None:
    """Unknown fields are skipped."""
    decoder = TypedDecoder(Delta)
    assert decoder.decode(b'{"text":"a","index":1,"new":[1]}') == Delta(text="a", index=1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"text":1}',
        b'{"text":"\\ud800"}',
        b'{"text":"\xff"}',
        b'{"score":1e999}',
        b'{"a":' + b"[" * 100_000,
        b'{"a":' + b"[" * 129 + b"]" * 129 + b"}",
        b'{"index":' + b"1" * 401 + b"}",
    ],
)
def test_a_typed_decoder_gives_none_for_what_it_cannot_take(data: bytes) -> None:
    """Whatever the reason: `decode` then mends it or says what is wrong."""
    assert TypedDecoder(Delta).decode(data) is None


def test_a_typed_decoder_tells_an_interpreter_too_shallow_by_none() -> None:
    """Also where the bound on depth would allow it."""
    assert TypedDecoder(Delta, Limits(max_json_depth=10**6)).decode(b'{"a":' + b"[" * 100_000) is None


def test_values_are_written_as_one_line() -> None:
    """Frozen mappings, tuples, structs and attrs classes too."""

    @attrs.frozen
    class Point:
        x: int

    value = {"a": FrozenDict(b=(1, None, True)), "c": Delta("\n\u2028"), "p": Point(1), "n": 10**30}
    line = encode(value)
    assert b"\n" not in line
    assert decode(line) == {
        "a": {"b": [1, None, True]},
        "c": {"text": "\n\u2028", "index": 0, "score": 0.0},
        "p": {"x": 1},
        "n": 10**30,
    }


def test_surrogates_are_mended_where_they_are_written() -> None:
    """In keys, in values and inside of structs."""
    value = {"\ud800": ["a\ude00", ("\ud83d\ude00", 1.5, None)], "s": Delta("\ud800")}
    assert decode(encode(value)) == {
        "\ufffd": ["a\ufffd", ["\U0001f600", 1.5, None]],
        "s": {"text": "\ufffd", "index": 0, "score": 0.0},
    }


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinities_are_not_written(number: float) -> None:
    """msgspec alone would write null, which reads as something else."""
    for value in (number, {"a": [1.0, number]}, Delta(score=number), ("\ud800", {"b": number})):
        with pytest.raises(ValueError, match="has no JSON form"):
            encode(value)
    assert encode([None, "null", {"a": 1.5}]) == b'[null,"null",{"a":1.5}]'


def test_what_cannot_be_written_is_refused_clearly() -> None:
    """A circle is a ValueError, a foreign type a TypeError."""
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="holds itself"):
        encode(circle)
    with pytest.raises(TypeError):
        encode({"a": object()})


@pytest.mark.parametrize(
    "text, replaced, joined",
    [
        ("plain", "plain", "plain"),
        ("\u20ac\U0001f600", "\u20ac\U0001f600", "\u20ac\U0001f600"),
        ("a\ud800", "a\ufffd", "a\ud800"),
        ("\ude00b", "\ufffdb", "\ude00b"),
        ("\ud83d\ude00", "\U0001f600", "\U0001f600"),
        ("\ud83d\ud83d\ude00\u20ac", "\ufffd\U0001f600\u20ac", "\ud83d\U0001f600\u20ac"),
    ],
)
def test_surrogates_are_joined_and_replaced(text: str, replaced: str, joined: str) -> None:
    """Text without any is given back as it is."""
    assert replaced == replace_surrogates(text)
    assert joined == join_surrogates(text)
    if text == replaced:
        assert replace_surrogates(text) is text


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(values)
def test_what_is_written_is_read_back(value: Any) -> None:
    """For all JSON values, and as the standard library reads it."""
    line = encode(value)
    assert value == decode(line)
    assert value == json.loads(line)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\ud8eE+-.01naN \t', max_size=60))
def test_no_input_raises_anything_but_ours(data: bytes | str) -> None:
    """And what is taken can be written again."""
    try:
        value = decode(data, Limits(max_json_depth=4, max_int_digits=9))
    except BadFrameError as error:
        assert len(str(error)) < 200
    else:
        encode(value)
    if isinstance(data, bytes):
        TypedDecoder(Delta, Limits(max_json_depth=4)).decode(data)


pieces = st.lists(
    st.sampled_from("{}[]") | st.text(alphabet='[{\\"a', max_size=20).map(json.dumps), max_size=40
)


@given(pieces, st.integers(1, 6))
def test_depth_counts_the_brackets_outside_of_strings(texts: list[str], bound: int) -> None:
    """Too deep exactly where brackets taken one by one say so."""
    depth = deepest = 0
    for text in texts:
        depth += (text in "[{") - (text in "]}")
        deepest = max(deepest, depth)
    assert _too_deep("".join(texts).encode(), bound) == (deepest > bound)
