"""`on_error_resume`, `on_error_return`, `on_error_map`, `on_error_complete`, `fallback_to`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import reactivex

from semflux import Flux
from semflux import operators as ops
from semflux.errors import (
    ConfigurationError,
    OverloadedError,
    RateLimitError,
    SemfluxError,
    ServerError,
    TruncatedStreamError,
)
from tests.operators.watching import END, Probe, failed, item, signals
from tests.recovering import BUSY, CUT, OK, WAYS, source, walk

ERROR = ValueError("x")


def failing(*items: Any, error: Exception = ERROR) -> Flux[Any]:
    return Flux(reactivex.concat(reactivex.from_iterable(items), reactivex.throw(error)))


def values(*items: Any) -> list[Any]:
    return [item(each) for each in items]


# Plain streams


def test_resume_goes_on_with_what_the_function_gives() -> None:
    seen: list[Exception] = []

    def fallback(error: Exception) -> Flux[int]:
        seen.append(error)
        return Flux.just(8, 9)

    assert [*values(1, 8, 9), END] == signals(failing(1).on_error_resume(fallback))
    assert [ERROR] == seen


def test_resume_subscribes_anew_each_time() -> None:
    stream = failing(1).on_error_resume(lambda error: Flux.just(8))
    assert signals(stream) == signals(stream) == [*values(1, 8), END]


def test_the_error_of_the_fallback_is_final() -> None:
    other = KeyError("other")
    assert [*values(1), failed(other)] == signals(
        failing(1).on_error_resume(lambda error: failing(error=other))
    )


def test_a_stream_that_does_not_fail_has_no_fallback() -> None:
    assert [*values(1), END] == signals(Flux.just(1).on_error_resume(lambda error: Flux.just(2)))
    assert [*values(1), END] == signals(Flux.just(1).fallback_to(Flux.just(2)))


@pytest.mark.parametrize(
    "errors,taken",
    [
        (ValueError, True),
        (KeyError, False),
        ((KeyError, ValueError), True),
        ((), False),
        (lambda error: error.args == ("x",), True),
        (lambda error: False, False),
        (None, True),
    ],
)
def test_only_the_errors_of_the_filter_are_taken(errors: Any, taken: bool) -> None:
    rest = [*values(7), END] if taken else [failed(ERROR)]
    assert rest == signals(failing().on_error_resume(lambda error: Flux.just(7), errors))
    assert rest == signals(failing().on_error_return(7, errors))
    assert rest == signals(failing().fallback_to(Flux.just(7), errors=errors))
    assert rest[-1:] == signals(failing().on_error_complete(errors))
    mapped = KeyError("mapped")
    assert [failed(mapped if taken else ERROR)] == signals(
        failing().on_error_map(lambda error: mapped, errors)
    )


def test_a_filter_or_a_function_that_raises_takes_the_place_of_the_error() -> None:
    mine = KeyError("mine")

    def raising(error: BaseException) -> Any:
        raise mine

    for stream in (
        failing().on_error_resume(raising),
        failing().on_error_resume(lambda error: Flux.just(1), raising),
        failing().on_error_return(1, raising),
        failing().fallback_to(Flux.just(1), errors=raising),
        failing().on_error_map(raising),
        failing().on_error_map(lambda error: error, raising),
        failing().on_error_complete(raising),
    ):
        mine.__context__ = None
        assert [failed(mine)] == signals(stream)
    mine.__context__ = None
    signals(failing().on_error_resume(raising))
    assert mine.__context__ is ERROR


def test_fallback_to_goes_through_its_sources() -> None:
    a, b = KeyError("a"), KeyError("b")
    assert [*values(1, 2, 3), END] == signals(
        failing(1).fallback_to(failing(2, error=a), Flux.just(3), Flux.just(4))
    )
    assert [*values(1, 2, 3), failed(b)] == signals(
        failing(1).fallback_to(failing(2, error=a), failing(3, error=b))
    )
    assert [failed(ERROR)] == signals(failing().fallback_to())


def test_a_filter_holds_for_each_failure() -> None:
    other = KeyError("other")
    stream = failing().fallback_to(failing(error=other), Flux.just(3), errors=ValueError)
    assert [failed(other)] == signals(stream)


def test_no_fallback_for_this_one() -> None:
    nothing: Any = None
    assert [failed(ERROR)] == signals(failing().on_error_resume(lambda error: nothing))


async def test_what_is_no_stream_is_a_wrong_call() -> None:
    async def ask() -> None:
        """Never run: a coroutine is no stream."""

    for wrong in (lambda error: 7, lambda error: ask()):
        fallback: Any = wrong
        (signal,) = signals(failing().on_error_resume(fallback))
        assert isinstance(signal[1], ConfigurationError)
    seven: Any = 7
    with pytest.raises(ConfigurationError, match="int"):
        failing().fallback_to(Flux.just(1), seven)


def test_on_error_return_gives_any_value() -> None:
    assert [*values(1, None), END] == signals(failing(1).on_error_return(None))
    assert [*values(1, [2]), END] == signals(failing(1).on_error_return([2]))


def test_on_error_map_keeps_the_error_before_as_the_cause() -> None:
    mapped = KeyError("mapped")
    signals(failing().on_error_map(lambda error: mapped))
    assert mapped.__cause__ is ERROR
    cause = OSError()
    own = KeyError("own")
    own.__cause__ = cause
    assert [failed(own)] == signals(failing().on_error_map(lambda error: own))
    assert own.__cause__ is cause


def test_on_error_map_may_leave_the_error_as_it_is() -> None:
    error = ValueError("same")
    assert [failed(error)] == signals(failing(error=error).on_error_map(lambda each: each))
    assert error.__cause__ is None


def test_on_error_map_must_give_an_exception() -> None:
    wrong: Any = "oops"
    (signal,) = signals(failing().on_error_map(lambda error: wrong))
    assert isinstance(signal[1], ConfigurationError)


def test_on_error_complete_ends_well() -> None:
    assert [*values(1, 2), END] == signals(failing(1, 2).on_error_complete())
    assert [*values(1), END] == signals(Flux.just(1).on_error_complete())


def test_a_cancel_reaches_the_fallback() -> None:
    second = Probe(5, 6, 7, ends=False)
    stream = failing(1).on_error_resume(lambda error: Flux(second.source)).take(2)
    assert [*values(1, 5), END] == signals(stream)
    assert (1, 1) == (second.subscribed, second.disposed)


def test_all_work_in_a_pipe_of_rxpy() -> None:
    plain: Any = reactivex
    other: Any = plain.of(7)
    for operator in (
        ops.on_error_resume(lambda error: other),
        ops.fallback_to(other),
        ops.on_error_return(7),
    ):
        assert [*values(1, 7), END] == signals(failing(1).to_observable().pipe(operator))


# Streams of events


@pytest.mark.parametrize("way", WAYS)
def test_a_fallback_may_come_after_content(way: str) -> None:
    """What came stays: whether content came is only asked for a retry."""
    for stream in (
        source(way, CUT).fallback_to(source(way, OK)),
        source(way, CUT).on_error_resume(lambda error: source(way, OK), TruncatedStreamError),
    ):
        seen = walk(way, stream).check()
        assert ["par", "Hel", "lo"] == [e.text for e in seen.events if e.type.value == "TEXT_DELTA"]


@pytest.mark.parametrize("way", WAYS)
def test_a_filter_that_does_not_take_the_error_shows_it(way: str) -> None:
    for stream in (
        source(way, CUT).fallback_to(source(way, OK), errors=RateLimitError),
        source(way, CUT).on_error_return("sorry", (RateLimitError, ServerError)),
    ):
        seen = walk(way, stream).check()
        assert isinstance(seen.error, TruncatedStreamError)
        assert seen.error.partial is seen.response


@pytest.mark.parametrize("way", WAYS)
def test_a_handler_that_raises_is_told_by_error(way: str) -> None:
    """With the response so far, and on the failure as its context."""

    def handler(error: Exception) -> Any:
        raise KeyError("mine")

    seen = walk(way, source(way, CUT).on_error_resume(handler)).check()
    assert "ERROR" == seen.types[-1]
    assert isinstance(seen.error, SemfluxError)
    assert isinstance(seen.error.__cause__, KeyError)
    assert isinstance(seen.error.__cause__.__context__, TruncatedStreamError)
    assert seen.error.partial is not None
    assert "par" == seen.error.partial.text


@pytest.mark.parametrize("way", WAYS)
def test_a_mapped_error_is_the_same_in_both_places(way: str) -> None:
    mapped = OverloadedError("mapped")
    seen = walk(way, source(way, CUT).on_error_map(lambda error: mapped)).check()
    assert seen.error is mapped
    assert mapped.partial is seen.response
    assert isinstance(mapped.__cause__, TruncatedStreamError)
    seen = walk(way, source(way, CUT).on_error_map(lambda error: LookupError("mine"))).check()
    assert isinstance(seen.error, SemfluxError)
    assert isinstance(seen.error.__cause__, LookupError)


@pytest.mark.parametrize("way", WAYS)
def test_a_mapped_error_can_be_recovered_from(way: str) -> None:
    stream = source(way, BUSY).on_error_map(lambda error: LookupError("mine"))
    seen = walk(way, stream.fallback_to(source(way, OK))).check()
    assert "Hello" == seen.response.text


def test_only_a_text_can_be_said_in_place_of_an_error() -> None:
    number: Any = 7
    with pytest.raises(ConfigurationError, match="text"):
        source("parse", OK).on_error_return(number)


@pytest.mark.parametrize("way", WAYS)
def test_an_empty_text_may_be_said(way: str) -> None:
    seen = walk(way, source(way, CUT).on_error_return("")).check()
    assert ("", "stop") == (seen.response.text, seen.response.finish_reason)


async def test_a_fallback_is_not_asked_before_it_is_needed() -> None:
    """A cold stream sends nothing until then."""
    from tests.recovering import model_of

    spare = model_of(OK)
    seen = [e async for e in model_of(OK).prompt("hi").stream().fallback_to(spare.prompt("hi").stream())]
    await asyncio.sleep(0)
    assert "RESPONSE_END" == seen[-1].type.value
    assert [] == spare._transport.requests  # type: ignore[attr-defined]
