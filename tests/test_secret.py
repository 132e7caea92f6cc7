"""A `Secret` shows itself to `reveal()` only."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback

import pytest

from semflux.secret import Secret

CANARY = "sk-canary-0123456789"


@pytest.mark.parametrize(
    "show",
    [
        repr,
        str,
        lambda secret: f"{secret}",
        lambda secret: f"{secret:>40}",
        lambda secret: f"{secret!r}",
        lambda secret: f"{secret!s}",
        lambda secret: "%s %r" % (secret, secret),  # noqa: UP031  # the old form is one of the ways
        lambda secret: repr([secret, {"key": secret}]),
        ascii,
    ],
)
def test_no_way_of_formatting_shows_it(show) -> None:
    shown = show(Secret(CANARY))
    assert CANARY not in shown
    assert "***" in shown


def test_a_log_record_does_not_show_it(caplog) -> None:
    logging.getLogger("test").warning("key %s", Secret(CANARY))
    assert caplog.text.strip().endswith("key ***")


def test_a_traceback_with_locals_does_not_show_it() -> None:
    def fail(key: Secret) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError) as raised:
        fail(Secret(CANARY))
    report = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    assert CANARY not in "".join(report.format())


def test_reveal_gives_it() -> None:
    assert Secret(CANARY).reveal() == CANARY


def test_a_secret_of_a_secret_is_the_same() -> None:
    assert Secret(Secret(CANARY)).reveal() == CANARY


def test_equality_is_by_value_and_only_among_secrets() -> None:
    assert Secret(CANARY) == Secret(CANARY)
    assert Secret(CANARY) != Secret("other")
    assert Secret(CANARY) != CANARY
    assert hash(Secret(CANARY)) == hash(Secret(CANARY))
    assert hash(Secret(CANARY)) != hash(CANARY)


def test_an_empty_secret_is_false() -> None:
    assert not Secret("")
    assert Secret(CANARY)


def test_it_cannot_be_pickled_or_dumped() -> None:
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Secret(CANARY))
    with pytest.raises(TypeError):
        json.dumps(Secret(CANARY))


def test_it_is_its_own_copy() -> None:
    """A deep copy of what holds a key is harmless: the key stays where it was."""
    secret = Secret(CANARY)
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret


def test_it_cannot_be_joined_to_a_string_by_accident() -> None:
    with pytest.raises(TypeError):
        "Bearer " + Secret(CANARY)  # type: ignore[operator]  # that is the test
