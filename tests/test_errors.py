"""The error tree: its shape, its fields, and that it survives the ways errors travel."""

from __future__ import annotations

import copy
import json
import pickle
import re

import pytest

from semflux import errors
from semflux.errors import (
    ERROR_CLASSES,
    BadFrameError,
    ConnectError,
    ConnectionLostError,
    ConnectTimeoutError,
    FirstEventTimeoutError,
    IdleTimeoutError,
    PoolTimeoutError,
    RateLimitError,
    SemfluxError,
    TlsError,
    TotalTimeoutError,
)

ALL = sorted(ERROR_CLASSES.values(), key=lambda cls: cls.__name__)


def drawn_tree() -> dict[str, str | None]:
    """Class to parent, as the module's docstring draws it; the root has none."""
    drawing = str(errors.__doc__).split("```")[1]
    parents: dict[str, str | None] = {}
    open_at: list[tuple[int, str]] = []
    for line in drawing.splitlines():
        names = re.findall(r"\w+Error\b", re.split(r"\s{3,}", line.strip())[0])
        if not names:
            continue
        indent = len(line) - len(line.lstrip())
        open_at = [(depth, name) for depth, name in open_at if depth < indent]
        for name in names:
            parents[name] = open_at[-1][1] if open_at else None
        open_at.append((indent, names[-1]))
    return parents


def test_the_drawing_is_the_tree() -> None:
    """Every class stands in the module's docstring, under its own parent."""
    real = {
        cls.__name__: None if cls is SemfluxError else cls.__bases__[0].__name__
        for cls in ERROR_CLASSES.values()
    }
    assert real == drawn_tree()


def test_every_class_of_the_tree_is_public() -> None:
    assert set(ERROR_CLASSES) <= set(errors.__all__)
    assert all(name == cls.__name__ for name, cls in ERROR_CLASSES.items())


@pytest.mark.parametrize("cls", ALL)
def test_an_error_has_its_class_s_defaults(cls: type[SemfluxError]) -> None:
    error = cls("what happened")
    assert str(error) == error.message == "what happened"
    assert (error.kind, error.phase, error.retryable) == (
        cls.default_kind,
        cls.default_phase,
        cls.default_retryable,
    )
    assert (error.provider, error.status, error.code, error.request_id) == (None, None, None, None)
    assert (error.retry_after, error.attempts, error.partial) == (None, 0, None)


@pytest.mark.parametrize("cls", ALL)
def test_an_error_keeps_what_it_was_given(cls: type[SemfluxError]) -> None:
    """Also the classes that are built-in errors at the same time, whose constructors differ."""
    error = make(cls)
    assert fields(error) == {
        "class": cls.__name__,
        "message": "no",
        "kind": "special",
        "phase": "eof",
        "provider": "acme",
        "status": 418,
        "code": "teapot",
        "request_id": "req_1",
        "retryable": not cls.default_retryable,
        "retry_after": 1.5,
        "attempts": 2,
    }


def make(cls: type[SemfluxError]) -> SemfluxError:
    return cls(
        "no",
        kind="special",
        phase="eof",
        provider="acme",
        status=418,
        code="teapot",
        request_id="req_1",
        retryable=not cls.default_retryable,
        retry_after=1.5,
        attempts=2,
    )


def fields(error: SemfluxError) -> dict[str, object]:
    """What the error describes itself as, after a trip through JSON."""
    described: dict[str, object] = json.loads(json.dumps(error.describe()))
    return described


@pytest.mark.parametrize("cls", ALL)
def test_an_error_survives_pickling_and_copying(cls: type[SemfluxError]) -> None:
    error = make(cls)
    error.add_note("seen in a test")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is cls
        assert fields(twin) == fields(error)
        assert twin.__notes__ == ["seen in a test"]


def test_an_error_without_a_message_is_empty() -> None:
    assert str(SemfluxError()) == ""


@pytest.mark.parametrize(
    "cls",
    [ConnectTimeoutError, PoolTimeoutError, FirstEventTimeoutError, IdleTimeoutError, TotalTimeoutError],
)
def test_a_limit_that_passed_is_a_timeout_error(cls: type[SemfluxError]) -> None:
    with pytest.raises(TimeoutError):
        raise cls("too late")


def test_a_lost_connection_is_a_connection_error() -> None:
    with pytest.raises(ConnectionError):
        raise ConnectionLostError("gone")


def test_waiting_may_help_or_not() -> None:
    """A refused connection may be made later; a certificate stays bad."""
    assert ConnectError("refused").retryable
    assert not TlsError("expired").retryable
    assert RateLimitError("slow down", retry_after=3).retryable
    assert not BadFrameError("damaged").retryable
