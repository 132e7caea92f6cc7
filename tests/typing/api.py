"""Only checked, never run: what mypy and pyright know about the fluent API, and what they refuse.

`assert_type` says what is inferred; each `type: ignore` with its code is a call that must be refused
(both checkers complain about one that is not needed).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, assert_never, assert_type

import reactivex
from reactivex import Observable
from reactivex import operators as rx

import semflux
from semflux import ChatEventFilter, ChatEventGroup, ChatEventType, ChatModel, Hooks, SignalType
from semflux.errors import SemfluxError
from semflux.events import (
    Abort,
    AnyChatEvent,
    Error,
    ResponseEnd,
    TextDelta,
    ThinkingDelta,
    ToolCallEnd,
)
from semflux.flux import ChatStream, EventIterator, Flux, Mono
from semflux.operators import (
    EventSubject,
    Signal,
    aggregate,
    collect_list,
    do_finally,
    do_on_next,
    filter_,
    filter_events,
    in_group,
    map_,
    normalize,
    only,
    pipeline,
    single,
    take,
    take_until,
    take_while,
    terminate,
    text,
)
from semflux.response import ChatResponse
from semflux.usage import Usage

T, G = ChatEventType, ChatEventGroup


def text_of(event: AnyChatEvent) -> str | None:
    return event.text


# Sources


def sources(
    file: IO[bytes], chunks: Iterable[bytes], source: AsyncIterator[bytes], observable: Observable[bytes]
) -> None:
    """All that parse() reads, and what it does not."""
    assert_type(semflux.parse(b"", dialect="openai-chat"), ChatStream)
    for each in (
        b"",
        bytearray(),
        memoryview(b""),
        "capture.sse",
        Path("capture.sse"),
        file,
        chunks,
        source,
        observable,
    ):
        assert_type(semflux.parse(each, dialect="anthropic", strict=True), ChatStream)
    semflux.parse(Flux.just(b"a"), dialect="anthropic")
    semflux.parse(7, dialect="anthropic")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    semflux.parse(["text"], dialect="anthropic")  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


# Reading


async def reading(stream: ChatStream) -> None:
    """The three ways of reading, typed."""
    async for event in stream:
        assert_type(event, AnyChatEvent)
    async for piece in stream.text():
        assert_type(piece, str)
    async with aiter(stream) as events:
        assert_type(events, EventIterator[AnyChatEvent])
        assert_type(await anext(events), AnyChatEvent)
    events.dispose()
    subscription = stream.subscribe(lambda e: print(e.seq), lambda error: print(error.args), lambda: None)
    subscription.dispose()
    stream.subscribe(EventSubject[AnyChatEvent]())
    assert_type(stream.block(), AnyChatEvent | None)
    assert_type(stream.block_first(1.0), AnyChatEvent | None)
    assert_type(stream.block_last(timeout=1), AnyChatEvent | None)
    assert_type(stream.response().block(), ChatResponse)


# Chains


def chains(stream: ChatStream) -> None:
    """Operators that keep events keep the type; the others say what they make."""
    assert_type(stream.only(T.TEXT_DELTA), ChatStream)
    assert_type(stream.only(TextDelta, ThinkingDelta, T.USAGE), ChatStream)
    assert_type(stream.in_group(G.TEXT, G.THINKING), ChatStream)
    assert_type(stream.filter(lambda e: e.is_(T.RESPONSE_END)), ChatStream)
    assert_type(stream.filter_events(ChatEventFilter.DEFAULT | ChatEventFilter.of(T.RAW)), ChatStream)
    assert_type(
        stream.take(1).take_while(lambda e: e.has_text).take_until(lambda e: e.is_terminal), ChatStream
    )
    assert_type(
        stream.do_on_next(lambda e: print(e.step))
        .do_on_error(lambda e: print(e.args))
        .do_on_complete(lambda: print())
        .do_on_cancel(lambda: print())
        .do_finally(lambda signal: print(signal.lower())),
        ChatStream,
    )
    assert_type(stream.only(T.TEXT_DELTA).map(text_of), Flux[str | None])
    assert_type(stream.only(T.TEXT_DELTA).map(lambda e: e.text), Flux[str | None])
    assert_type(stream.map(lambda e: e.text or "").filter(bool).take(2).do_on_next(print), Flux[str])
    assert_type(stream.text().map(len).collect_list(), Mono[list[int]])
    assert_type(stream.text().single(), Mono[str])
    assert_type(stream.next(), Mono[AnyChatEvent])
    assert_type(stream.collect_list(), Mono[list[AnyChatEvent]])
    assert_type(stream.response(), Mono[ChatResponse])
    assert_type(stream.response().map(lambda r: r.text).filter(bool).do_on_next(print), Mono[str])
    assert_type(stream.map(lambda e: e.usage).block_first(), Usage | None)

    stream.only("TEXT")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    stream.in_group(T.TEXT_DELTA)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    stream.take("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def border(stream: ChatStream, plain: Observable[int]) -> None:
    """Through `pipe` and back."""
    assert_type(stream.pipe(rx.map(text_of)), Flux[str | None])
    assert_type(stream.text().pipe(rx.map(len), rx.filter(odd_number)), Flux[int])
    assert_type(stream.text().pipe(rx.map(len), rx.take(2), rx.map(str)), Flux[str])
    assert_type(stream.text().pipe(), Flux[str])
    assert_type(stream.text().pipe(map_(len), take(2), collect_list()), Flux[list[int]])
    assert_type(stream.to_observable(), Observable[AnyChatEvent])
    assert_type(stream.next().to_observable(), Observable[AnyChatEvent])
    assert_type(Flux.from_(plain), Flux[int])
    assert_type(Flux.from_(stream.text()), Flux[str])
    assert_type(Flux.just(1, 2), Flux[int])
    assert_type(Flux.from_iterable(["a"]), Flux[str])
    assert_type(Flux.empty(), Flux[Any])
    assert_type(Flux.error(ValueError()), Flux[Any])


def plain_operators(drafts: Observable[AnyChatEvent], numbers: Observable[int]) -> None:
    """Ours in a plain RxPY pipe."""
    assert_type(drafts.pipe(normalize(), aggregate(), terminate()), Observable[AnyChatEvent])
    assert_type(drafts.pipe(pipeline(), filter_events(ChatEventFilter.DEFAULT)), Observable[AnyChatEvent])
    assert_type(drafts.pipe(only(T.TEXT_DELTA), in_group(G.TEXT), text()), Observable[str])
    assert_type(numbers.pipe(take(3), single()), Observable[int])
    assert_type(numbers.pipe(map_(str), collect_list()), Observable[list[str]])
    odd = filter_(odd_number)
    assert_type(numbers.pipe(odd, take_while(odd_number), take_until(odd_number)), Observable[int])
    assert_type(numbers.pipe(do_on_next(print_number), do_finally(print)), Observable[int])


def odd_number(value: int) -> bool:
    return value % 2 == 1


def print_number(value: int) -> None:
    print(value)


# Values


async def values(model: ChatModel, stream: ChatStream) -> None:
    """A Mono is awaited for its item."""
    assert_type(model.prompt("hi").stream(), ChatStream)
    assert_type(model.prompt("hi").call(), Mono[ChatResponse])
    response = await model.prompt("hi").system("be brief").options(temperature=0).call()
    assert_type(response, ChatResponse)
    assert_type(response.text, str)
    assert_type(response.usage, Usage | None)
    assert_type(await stream.text().collect_list(), list[str])
    assert_type(await stream.next(), AnyChatEvent)
    assert_type(model.prompt("hi").call().block(), ChatResponse)
    assert_type(
        model.prompt("hi")
        .stream()
        .filter(lambda e: e.is_(T.RESPONSE_END))
        .map(lambda e: e.response)
        .block_first(),
        ChatResponse | semflux.StepResponse | None,
    )


def signals(signal: SignalType) -> str:
    """The three ways of ending, exhaustively."""
    match signal:
        case SignalType.ON_COMPLETE | SignalType.ON_ERROR:
            return "ended"
        case SignalType.CANCEL:
            return "cancelled"
        case _:
            assert_never(signal)


async def matching(stream: ChatStream) -> None:
    """A `match` narrows an event to its class."""
    async for event in stream:
        match event:
            case TextDelta(text=piece):
                assert_type(piece, str)
            case ToolCallEnd(tool_call=call) if call is not None:
                assert_type(call.name, str)
            case ResponseEnd(response=response):
                assert_type(response, ChatResponse | None)
            case Error(error=error):
                assert_type(error, SemfluxError)
            case Abort(reason=reason):
                assert_type(reason, str | None)
            case _:
                pass


def hooks() -> None:
    """Receivers of what is dropped."""
    Hooks.on_error_dropped(lambda error: print(error.args))
    Hooks.on_next_dropped(print)
    Hooks.on_error_dropped(None)


def inner(stream: ChatStream) -> None:
    """A Flux is an observable to RxPY's functions; type checkers want the border crossed."""
    merged: Observable[str] = reactivex.merge(stream.text().to_observable(), reactivex.of("a"))
    assert_type(Flux.from_(merged), Flux[str])


def joined(so_far: str, number: int) -> str:
    return f"{so_far}{number}"


def tier_one(stream: ChatStream, numbers: Flux[int], words: Flux[str]) -> None:
    """Reactor's operators: those that keep events keep the type."""
    assert_type(
        stream.skip(1).skip_while(lambda e: e.has_text).skip_until(lambda e: e.is_terminal), ChatStream
    )
    assert_type(stream.coalesce(200, 0.05).distinct(lambda e: e.seq).distinct_until_changed(), ChatStream)
    assert_type(stream.take_until_other(numbers).do_first(print).do_on_subscribe(print), ChatStream)
    assert_type(stream.do_on_terminate(print).do_after_terminate(print).log().name("a"), ChatStream)
    assert_type(stream.do_on_each(lambda s: print(s.value and s.value.seq)).checkpoint("b"), ChatStream)
    assert_type(stream.snapshots(), Flux[ChatResponse])
    assert_type(stream.map_not_none(text_of), Flux[str])
    assert_type(words.concat_map_iterable(lambda word: word.split()), Flux[str])
    assert_type(numbers.scan(lambda a, b: a + b), Flux[int])
    assert_type(numbers.scan_with(lambda: "", joined), Flux[str])
    assert_type(words.index(), Flux[tuple[int, str]])
    assert_type(words.buffer(2), Flux[list[str]])
    assert_type(words.buffer_timeout(2, 0.5), Flux[list[str]])
    assert_type(words.flat_map(lambda word: Flux.just(len(word))), Flux[int])
    assert_type(words.concat_map(lambda word: Flux.just(len(word))), Flux[int])
    assert_type(words.materialize(), Flux[Signal[str]])
    assert_type(words.materialize().dematerialize(), Flux[str])
    assert_type(words.transform(lambda s: s.map(len)), Flux[int])
    assert_type(words.start_with("a"), Flux[str])
    assert_type(words.concat_with(numbers), Flux[str | int])
    assert_type(words.merge_with(numbers), Flux[str | int])
    assert_type(words.default_if_empty("a").switch_if_empty(words), Flux[str])
    assert_type(words.to_iterable(), Iterator[str])


def one_value(words: Flux[str]) -> None:
    """Monos."""
    assert_type(words.first_or_none(), Mono[str])
    assert_type(words.single_or_empty(), Mono[str])
    assert_type(words.last(), Mono[str])
    assert_type(words.last(None), Mono[str | None])
    assert_type(words.element_at(1, None), Mono[str | None])
    assert_type(words.count(), Mono[int])
    assert_type(words.any(str.isupper), Mono[bool])
    assert_type(words.has_elements(), Mono[bool])
    assert_type(words.collect_map(len), Mono[dict[int, str]])
    assert_type(words.collect_map(len, str.upper), Mono[dict[int, str]])
    assert_type(words.reduce(lambda a, b: a + b), Mono[str])
    assert_type(words.reduce_with(int, lambda a, b: a + len(b)), Mono[int])
    assert_type(words.then(words.count()), Mono[int])


def factories(words: Flux[str], numbers: Flux[int], items: AsyncIterator[str]) -> None:
    """Streams out of streams and functions."""
    assert_type(Flux.concat(words, words), Flux[str])
    assert_type(Flux.merge(words, words), Flux[str])
    assert_type(Flux.zip(words, numbers), Flux[tuple[str, int]])
    assert_type(Flux.combine_latest(words, numbers), Flux[tuple[str, int]])
    assert_type(Flux.first_with_value(words, words), Flux[str])
    assert_type(Flux.defer(lambda: words), Flux[str])
    assert_type(Flux.from_async_iterable(items), Flux[str])
    words.skip("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
