"""Redaction: what looks like a key goes, what a user needs to read stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semflux.redaction import mask_secrets, redact
from semflux.secret import Secret

KEY = "canary-Q7xV2mP9sLkR4tZ8"


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            "Incorrect API key provided: sk-proj-****wxyz. See the docs.",
            "Incorrect API key provided: *** See the docs.",
        ),
        ("key sk-ant-api03-abcdef is wrong", "key *** is wrong"),
        ("gsk_abc123DEF is revoked", "*** is revoked"),
        ("AIzaSyA-1234567890 and AKIAABCDEFGHIJKLMNOP", "*** and ***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln", "***"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("authorization=Bearer abc.def", "authorization=***"),
        ("xx-api-key: 9f8e7d", "xx-api-key: ***"),
        ('{"api_key": "0a1b2c"}', '{"api_key": "***"}'),
        ("https://h/v1?key=abcdef&x=1", "https://h/v1?key=***&x=1"),
        ("token=hunter", "token=***"),
        ("owner 0123456789abcdef0123456789abcdef", "owner ***"),
        ("AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh", "***"),
    ],
)
def test_what_looks_like_a_key_is_hidden(text: str, expected: str) -> None:
    """By prefix, by the name before it, by stars in it, or by being long and random."""
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 8192 tokens.",
        "The model claude-sonnet-4-5-20250929 was not found at https://api.example.com/v1/chat/completions.",
        "Invalid API key: check your settings",
        "Bearer authentication required",
        "token: 4096 of 8192",
        "You can find your API key at https://platform.example.com/account/api-keys.",
        "pneumonoultramicroscopic 12345678901234567890123",
        "INTERNATIONALIZATIONINTERNATIONALIZATION",
    ],
)
def test_prose_numbers_and_model_names_stay(text: str) -> None:
    """A message that says nothing any more helps nobody."""
    assert redact(text) == text


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_known_secret_is_hidden_wherever_it_stands(before: str, after: str) -> None:
    """Whatever is around it."""
    assert KEY not in redact(before + KEY + after, [Secret(KEY)])


@pytest.mark.parametrize("length", range(8, len(KEY)))
def test_a_piece_of_a_known_secret_is_hidden_too(length: int) -> None:
    """Eight characters of it in a row are enough."""
    assert mask_secrets(f"got ({KEY[:length]}) and ({KEY[-length:]})", [KEY]) == "got (***) and (***)"


def test_a_secret_of_three_letters_hides_nothing() -> None:
    """Placeholders like "x" would make every message unreadable."""
    assert redact("the box", [Secret("x"), ""]) == "the box"


def test_a_short_secret_is_hidden_whole() -> None:
    """Too short for pieces."""
    assert redact("was EMPTY now", ["EMPTY"]) == "was *** now"


def test_ids_stay_where_only_keys_are_hidden() -> None:
    """A request id is long and random as well."""
    assert mask_secrets("req_0123456789abcdef0123456789") == "req_0123456789abcdef0123456789"
