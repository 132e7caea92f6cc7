"""Every dialect keeps the contract of dialects, and the contract finds those that don't."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest

from semflux.dialects import DIALECTS, Dialect, Out, Parser, ParserOptions
from semflux.errors import ConfigurationError
from semflux.testing import ContractError, check_dialect
from tests.frames import DONE, cc, cu
from tests.golden import GOLDEN

TEXT = cc({"content": "Hel"}) + cc({"content": "lo"}) + cc({}, "stop") + cu(3, 4) + DONE


def samples(name: str) -> list[bytes]:
    return [b"".join(frames) for dialect, _, frames in GOLDEN if dialect == name]


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_keeps_the_contract(name: str) -> None:
    found = samples(name)
    assert found, f"tests/golden.py has no sample of {name}"

    check_dialect(name, found, every=3, mangled=25)


def test_a_dialect_that_is_not_registered_is_while_it_is_checked() -> None:
    mine = attrs.evolve(DIALECTS["openai-chat"], name="mine")
    check_dialect(mine, [TEXT], every=20, mangled=5)
    assert "mine" not in DIALECTS

    ours = DIALECTS["openai-chat"]
    check_dialect(attrs.evolve(ours), [TEXT], every=50, mangled=1)
    assert DIALECTS["openai-chat"] is ours
    with pytest.raises(ConfigurationError, match="unknown dialect"):
        check_dialect("minne", [TEXT])


def faulty(change: Callable[[Any, bytes, Iterable[Any]], Iterable[Any]]) -> Dialect:
    """OpenAI chat, but for what *change* makes of each frame's drafts."""
    ours = DIALECTS["openai-chat"]

    def parser(out: Out, options: ParserOptions) -> Parser:
        made = ours.parser(out, options)
        decode = made.decode
        made.decode = lambda event, data: change(made, data, decode(event, data))  # type: ignore[method-assign]
        return made

    return attrs.evolve(ours, name="faulty", parser=parser)


def crashes(parser: Any, data: bytes, drafts: Iterable[Any]) -> Iterable[Any]:
    if b"lo" not in data and b"content" in data and b"Hel" not in data:
        raise KeyError("content")
    return drafts


def never_ends(parser: Any, data: bytes, drafts: Iterable[Any]) -> Iterable[Any]:
    yield from drafts
    parser.out.end = None
    parser.ended = False


calls = 0


def differs(parser: Any, data: bytes, drafts: Iterable[Any]) -> Iterable[Any]:
    global calls
    calls += 1
    yield from drafts
    if b"Hel" in data:
        yield parser.out.text(str(calls) * 20)


@pytest.mark.parametrize(
    "change, rules",
    [
        (crashes, {"only_our_errors"}),
        (never_ends, {"well"}),
        (differs, {"any_cutting", "any_truncation"}),
    ],
)
def test_a_broken_rule_is_found_and_named(change: Any, rules: set[str]) -> None:
    with pytest.raises(ContractError, match="the dialect 'faulty' breaks") as caught:
        check_dialect(faulty(change), [TEXT], every=5)

    assert rules - set(caught.value.broken) == set()


def test_what_comes_out_of_subscribe_is_found() -> None:
    class Breaks(BaseException):
        pass

    def makes_none(out: Out, options: ParserOptions) -> Parser:
        raise ValueError("no parser")

    with pytest.raises(ContractError) as caught:
        check_dialect(attrs.evolve(DIALECTS["openai-chat"], name="none", parser=makes_none), [TEXT], every=50)
    assert {"well", "only_our_errors"} <= set(caught.value.broken)
