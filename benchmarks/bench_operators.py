"""What an operator costs: microseconds of CPU an item, through chains of 0 to 10 of them.

    python benchmarks/bench_operators.py [--chain 3] [--rounds 9] [--scale 1] [--no-peers] [--json]

Chains are `map` and `filter` in turns, on numbers that all pass; and one of five operators on chat events.
The limit is the same chain of plain generators, without a stream, an end that is told or a cancel.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import reactivex
from reactivex import operators as rx

from benchmarks import measure
from benchmarks.measure import Contestant, Result
from semflux import ChatStream, Flux, TextDelta, TextEnd, TextStart
from semflux.operators import EventSubject

LIMIT = "limit: plain generators"
PUSH = "subscribe"
PULL = "async for"
RXPY = "RxPY, Subject"
ASYNC = "plain async generators"
AIOSTREAM = "aiostream"
OWN = {LIMIT, PUSH, PULL}

LENGTHS = {"0": 0, "1": 1, "3": 3, "5": 5, "10": 10}
"""The chains of map and filter, with the number of their operators."""
CHAT = "chat"
"""only, coalesce, do_on_next, take_until, text."""
CHAINS = (*LENGTHS, CHAT)

_WORD, _WORDS = " light", 8

Chain = list[tuple[str, Callable[[Any], Any]]]
"""What each operator is, and its function; `join` has none."""


def add_one(number: int) -> int:
    return number + 1


def is_positive(number: int) -> bool:
    return number > 0


def is_delta(event: Any) -> bool:
    return isinstance(event, TextDelta)


def text_of(event: Any) -> str:
    text: str = event.text
    return text


def ignore(_: object) -> None:
    pass


def is_last(_: object) -> bool:
    return False


def is_not_last(item: object) -> bool:
    return not is_last(item)


def items_of(chain: str, scale: float = 1.0) -> list[Any]:
    count = max(2 * _WORDS, round(2000 * scale))
    if chain == CHAT:
        return [TextStart(), *[TextDelta(_WORD)] * count, TextEnd()]
    return list(range(count))


def steps_of(chain: str) -> Chain:
    """The chain in the terms of those who know no chat events. Eight words are one text, as ours has it by length."""
    if chain == CHAT:
        return [
            ("filter", is_delta),
            ("map", text_of),
            ("join", ignore),
            ("do", ignore),
            ("take_while", is_not_last),
        ]
    return [("filter", is_positive) if n % 2 else ("map", add_one) for n in range(LENGTHS[chain])]


# Ours


def assemble(source: Flux[Any], chain: str) -> Flux[Any]:
    if chain == CHAT:
        events = ChatStream(source.observable).only(TextDelta).coalesce(_WORDS * len(_WORD))
        return events.do_on_next(ignore).take_until(is_last).text()
    for number in range(LENGTHS[chain]):
        source = source.filter(is_positive) if number % 2 else source.map(add_one)
    return source


def run_push(items: Iterable[Any], chain: str, on_next: Callable[[Any], object] = ignore) -> None:
    subject: EventSubject[Any] = EventSubject()
    assemble(Flux(subject), chain).subscribe(on_next)
    push = subject.on_next
    for item in items:
        push(item)
    subject.on_completed()


async def run_pull(items: Iterable[Any], chain: str, on_next: Callable[[Any], object] = ignore) -> None:
    async for item in assemble(Flux.from_async_iterable(_asynchronous(items)), chain):
        on_next(item)


# The others, each as somebody would write it there


def run_rxpy(items: Iterable[Any], chain: str, on_next: Callable[[Any], object] = ignore) -> None:
    made: dict[str, Callable[[Any], list[Any]]] = {
        "map": lambda function: [rx.map(function)],
        "filter": lambda function: [rx.filter(function)],
        "join": lambda _: [rx.buffer_with_count(_WORDS), rx.map("".join)],
        "do": lambda function: [rx.do_action(function)],
        "take_while": lambda function: [rx.take_while(function)],
    }
    subject: reactivex.Subject[Any] = reactivex.Subject()
    subject.pipe(*[step for kind, function in steps_of(chain) for step in made[kind](function)]).subscribe(
        on_next
    )
    push = subject.on_next
    for item in items:
        push(item)
    subject.on_completed()


async def run_aiostream(items: Iterable[Any], chain: str, on_next: Callable[[Any], object] = ignore) -> None:
    stream, pipe = importlib.import_module("aiostream.stream"), importlib.import_module("aiostream.pipe")
    made: dict[str, Callable[[Any], list[Any]]] = {
        "map": lambda function: [pipe.map(function)],
        "filter": lambda function: [pipe.filter(function)],
        "join": lambda _: [pipe.chunks(_WORDS), pipe.map("".join)],
        "do": lambda function: [pipe.action(function)],
        "take_while": lambda function: [pipe.takewhile(function)],
    }
    source = stream.iterate(_asynchronous(items))
    for kind, function in steps_of(chain):
        for step in made[kind](function):
            source |= step
    async with source.stream() as streamer:
        async for item in streamer:
            on_next(item)


async def _asynchronous(items: Iterable[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


async def _async_map(source: AsyncIterator[Any], function: Callable[[Any], Any]) -> AsyncIterator[Any]:
    async for item in source:
        yield function(item)


async def _async_filter(source: AsyncIterator[Any], function: Callable[[Any], Any]) -> AsyncIterator[Any]:
    async for item in source:
        if function(item):
            yield item


async def _async_join(source: AsyncIterator[str], _: object) -> AsyncIterator[str]:
    held: list[str] = []
    async for text in source:
        held.append(text)
        if len(held) == _WORDS:
            yield "".join(held)
            held = []
    if held:
        yield "".join(held)


async def _async_do(source: AsyncIterator[Any], function: Callable[[Any], Any]) -> AsyncIterator[Any]:
    async for item in source:
        function(item)
        yield item


async def _async_take(source: AsyncIterator[Any], function: Callable[[Any], Any]) -> AsyncIterator[Any]:
    async for item in source:
        if not function(item):
            return
        yield item


_ASYNC = {
    "map": _async_map,
    "filter": _async_filter,
    "join": _async_join,
    "do": _async_do,
    "take_while": _async_take,
}


async def run_async(items: Iterable[Any], chain: str, on_next: Callable[[Any], object] = ignore) -> None:
    source = _asynchronous(items)
    for kind, function in steps_of(chain):
        source = _ASYNC[kind](source, function)
    async for item in source:
        on_next(item)


def _map(source: Iterator[Any], function: Callable[[Any], Any]) -> Iterator[Any]:
    for item in source:
        yield function(item)


def _filter(source: Iterator[Any], function: Callable[[Any], Any]) -> Iterator[Any]:
    for item in source:
        if function(item):
            yield item


def _join(source: Iterator[str], _: object) -> Iterator[str]:
    held: list[str] = []
    for text in source:
        held.append(text)
        if len(held) == _WORDS:
            yield "".join(held)
            held = []
    if held:
        yield "".join(held)


def _do(source: Iterator[Any], function: Callable[[Any], Any]) -> Iterator[Any]:
    for item in source:
        function(item)
        yield item


def _take(source: Iterator[Any], function: Callable[[Any], Any]) -> Iterator[Any]:
    for item in source:
        if not function(item):
            return
        yield item


_PLAIN = {"map": _map, "filter": _filter, "join": _join, "do": _do, "take_while": _take}


def run_limit(items: Iterable[Any], chain: str, on_next: Callable[[Any], object] = ignore) -> None:
    source = iter(items)
    for kind, function in steps_of(chain):
        source = _PLAIN[kind](source, function)
    for item in source:
        on_next(item)


# The races


RUNS: dict[str, Callable[..., Any]] = {
    LIMIT: run_limit,
    PUSH: run_push,
    PULL: run_pull,
    RXPY: run_rxpy,
    ASYNC: run_async,
    AIOSTREAM: run_aiostream,
}


def contestant(name: str, items: Sequence[Any], chain: str, loop: asyncio.AbstractEventLoop) -> Contestant:
    run = RUNS[name]
    if asyncio.iscoroutinefunction(run):
        return Contestant(name, lambda: loop.run_until_complete(run(items, chain)), name not in OWN)
    return Contestant(name, lambda: run(items, chain), name not in OWN)


def each_further(races: dict[str, dict[str, Result]]) -> dict[str, float]:
    """Microseconds that one more operator takes: between the shortest and the longest chain."""
    lengths = sorted(LENGTHS[chain] for chain in races if chain in LENGTHS)
    if len(lengths) < 2:
        return {}
    few, many = str(lengths[0]), str(lengths[-1])
    return {
        name: (result.median - races[few][name].median) / (lengths[-1] - lengths[0])
        for name, result in races[many].items()
        if name in races[few]
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chain", choices=CHAINS, action="append", help="only these chains")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scale", type=float, default=1.0, help="times the 2,000 items")
    parser.add_argument("--no-peers", action="store_true", help="without other libraries")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    args = parser.parse_args(argv)

    left_out: dict[str, str] = {}
    names = [name for name in RUNS if name in OWN or not args.no_peers]
    if AIOSTREAM in names:
        try:
            importlib.import_module("aiostream")
        except ImportError as error:
            left_out[AIOSTREAM] = f"not installed ({error})"
            names.remove(AIOSTREAM)
    loop = asyncio.new_event_loop()
    races: dict[str, dict[str, Result]] = {}
    for chain in args.chain or CHAINS:
        items = items_of(chain, args.scale)
        contestants = [contestant(name, items, chain, loop) for name in names]
        results = races[chain] = measure.race(contestants, len(items), args.rounds, peer_rounds=args.rounds)
        if not args.json:
            what = "five operators on chat events" if chain == CHAT else f"{chain} of map and filter"
            measure.show_race(f"{what}, {len(items):,} items", results, LIMIT, PUSH, OWN, "item")
    loop.close()
    further = each_further(races)
    if args.json:
        shown = {chain: measure.race_as_dict(results, LIMIT) for chain, results in races.items()}
        print(json.dumps({"races": shown, "each_further": further, "left_out": left_out}, indent=1))
        return 0
    if further:
        print("\neach further operator of map and filter")
        measure.table(("us CPU per item", ""), [(name, measure.number(us)) for name, us in further.items()])
    for peer, reason in left_out.items():
        print(f"  left out: {peer}: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
