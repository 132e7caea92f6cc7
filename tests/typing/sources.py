"""Only checked, never run: what the sources, the repeats and Mono infer, and what they refuse. See api.py."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, assert_type

import reactivex
from reactivex import Observable

import semflux
from semflux.events import AnyChatEvent
from semflux.flux import ChatStream, Flux, Mono
from semflux.operators import do_on_request, map_, or_else, repeat, repeat_when, transform_deferred
from semflux.response import ChatResponse


class Session:
    """A resource."""

    def close(self) -> None: ...
    async def aclose(self) -> None: ...
    async def roll_back(self, error: Exception) -> None: ...


async def opened() -> Session:
    return Session()


@asynccontextmanager
async def connected() -> AsyncGenerator[Session]:
    yield Session()


def chat(session: Session) -> ChatStream:
    return semflux.parse(b"", dialect="openai-chat")


def answer(session: Session) -> Mono[ChatResponse]:
    return chat(session).response()


# Sources


def resources() -> None:
    """What the function gives is what the stream has."""
    assert_type(Flux.using(Session, chat, Session.close), Flux[AnyChatEvent])
    assert_type(Flux.using(Session, lambda s: chat(s).text(), lambda s: s.close(), eager=False), Flux[str])
    assert_type(Flux.using_when(opened, chat, Session.aclose), Flux[AnyChatEvent])
    assert_type(
        Flux.using_when(opened, chat, Session.aclose, Session.roll_back, lambda s: s.close()),
        Flux[AnyChatEvent],
    )
    assert_type(Flux.using_when(connected, chat), Flux[AnyChatEvent])
    assert_type(
        Flux.using_when(Mono.just(Session()), chat, cancel=Session.aclose, complete=Session.aclose),
        Flux[AnyChatEvent],
    )
    assert_type(Mono.using(Session, answer, Session.close), Mono[ChatResponse])
    assert_type(Mono.using_when(opened, answer, Session.aclose), Mono[ChatResponse])
    assert_type(Mono.using_when(connected, answer), Mono[ChatResponse])
    Flux.using(Session, chat, str.upper)  # type: ignore[misc]  # pyright: ignore[reportArgumentType]
    Flux.using_when(opened, chat)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    Mono.using(Session, chat, Session.close)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def number() -> int:
    return 1


def sources(one: Flux[int], two: Observable[int]) -> None:
    """Of functions, of time, of others."""
    assert_type(Flux.range(1, 2), Flux[int])
    assert_type(Flux.interval(1.0), Flux[int])
    assert_type(Flux.never(), Flux[Any])
    assert_type(Flux.from_awaitable(number), Flux[int])
    assert_type(Flux.first_with_signal(one, two), Flux[int])
    assert_type(Flux.defer(lambda: one), Flux[int])
    assert_type(one.or_else(two), Flux[int])
    Flux.from_awaitable(number())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# Operators


def operators(stream: ChatStream, numbers: Flux[int]) -> None:
    """A repeat of a chat stream is several of them: a Flux."""
    assert_type(stream.repeat(2), Flux[AnyChatEvent])
    assert_type(stream.repeat_when(lambda ends: ends.filter(lambda count: count > 1)), Flux[AnyChatEvent])
    assert_type(stream.do_on_request(print), ChatStream)
    assert_type(stream.or_else(stream), ChatStream)
    assert_type(stream.transform_deferred(lambda s: s.text()), Flux[str])
    assert_type(numbers.transform_deferred(lambda n: n.map(str)), Flux[str])
    plain = reactivex.of(1, 2)
    assert_type(plain.pipe(repeat(1)), Observable[int])
    assert_type(plain.pipe(do_on_request(print)), Observable[int])
    assert_type(plain.pipe(or_else(reactivex.of(3))), Observable[int])
    assert_type(repeat_when(lambda ends: ends)(plain), Observable[int])
    assert_type(transform_deferred(text_of)(plain), Observable[str])


def text_of(numbers: Observable[int]) -> Observable[str]:
    return numbers.pipe(map_(str))


# Mono


def monos(word: Mono[str], size: Mono[int], found: str | None) -> None:
    """At most one item, and what follows it."""
    assert_type(Mono.just("a"), Mono[str])
    assert_type(Mono.just_or_empty(found), Mono[str])
    assert_type(Mono.empty(), Mono[Any])
    assert_type(Mono.error(ValueError()), Mono[Any])
    assert_type(Mono.never(), Mono[Any])
    assert_type(Mono.defer(lambda: word), Mono[str])
    assert_type(Mono.from_(Flux.just(1)), Mono[int])
    assert_type(Mono.from_awaitable(number), Mono[int])
    assert_type(Mono.from_callable(lambda: 1), Mono[int])
    assert_type(Mono.zip(word, size), Mono[tuple[str, int]])
    assert_type(Mono.zip(word, size, word), Mono[tuple[str, int, str]])
    assert_type(Mono.zip(word, size, word, size), Mono[tuple[str, int, str, int]])
    assert_type(Mono.zip(word, word, word, word, word), Mono[tuple[str, ...]])
    assert_type(Mono.when(word, size), Mono[Any])
    assert_type(Mono.first_with_value(word, word), Mono[str])
    assert_type(Mono.first_with_signal(word, word), Mono[str])
    assert_type(word.flat_map(lambda w: Mono.just(len(w))), Mono[int])
    assert_type(word.flat_map_many(lambda w: Flux.just(w, w)), Flux[str])
    assert_type(word.flat_map_many(lambda w: chat(Session())), Flux[AnyChatEvent])
    assert_type(word.default_if_empty("b"), Mono[str])
    assert_type(word.switch_if_empty(Mono.just("b")), Mono[str])
    assert_type(word.or_else(Mono.just("b")), Mono[str])
    assert_type(word.zip_with(size), Mono[tuple[str, int]])
    assert_type(word.then(), Mono[Any])
    assert_type(word.then(size), Mono[int])
    assert_type(word.then_many(Flux.just(1)), Flux[int])
    assert_type(word.then_return(1), Mono[int])
    assert_type(word.has_element(), Mono[bool])
    assert_type(word.flux(), Flux[str])
    assert_type(word.concat_with(size), Flux[str | int])
    assert_type(word.repeat(2), Flux[str])
    assert_type(word.repeat_when(lambda ends: ends.take(2)), Flux[str])
    assert_type(word.cache(), Mono[str])
    assert_type(word.map_not_none(lambda w: w or None), Mono[str])
    assert_type(word.transform(lambda m: m.map(len)), Mono[int])
    assert_type(word.transform_deferred(lambda m: m.map(len)), Mono[int])
    word.flat_map(lambda w: len(w))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
    word.then(Flux.just(1))  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
