"""What an event costs over a socket: microseconds of the client's CPU, the server paced and in another process.

    python benchmarks/bench_loopback.py [--rounds 5] [--deltas 1000] [--streams 100] [--no-peers] [--json]

First one stream at a time, one event a write, so that a read gets about one event (how many it got is told:
an unpaced server would pin every client to its own rate). Then many paced streams at once, each kind of client
in a process of its own: CPU an event, delay from the server's write to the subscriber, memory a stream.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import importlib
import json
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import aiohttp

from benchmarks import measure
from benchmarks.limits import Splitter
from benchmarks.measure import Contestant, Goal, Result
from benchmarks.streams import STREAMS, scaled
from semflux import ChatModel, TextDelta

ROOT = Path(__file__).resolve().parent.parent
BARE = "bare aiohttp"
LIMIT = "limit: aiohttp + split + decode"
PULL = "ChatModel, async for"
PUSH = "ChatModel, subscribe, one filter"
SDK = "SDK, raw"

Stream = Callable[[], Awaitable[int]]
_ASK: Any = [{"role": "user", "content": "Why is the sky blue?"}]


@contextlib.contextmanager
def paced_server(stream: str, deltas: int, interval: float, *, stamp: bool = False) -> Iterator[str]:
    """The address of a server in another process, which ends with the block."""
    command = [sys.executable, str(ROOT / "benchmarks" / "paced_server.py"), stream]
    command += ["--deltas", str(deltas), "--interval", str(interval), *(["--stamp"] if stamp else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


def model_of(url: str, dialect: str) -> ChatModel:
    name = "openai-chat:gpt-4o-mini" if dialect == "openai-chat" else "anthropic:claude-sonnet-4-5"
    return ChatModel(name, api_key="no-key", base_url=url)


def _has_text(event: Any) -> bool:
    return event.text is not None


async def subscribe(model: ChatModel, on_next: Callable[[Any], object]) -> None:
    """Until the end of the stream; its error is raised."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    model.prompt("Why is the sky blue?").stream().filter(_has_text).subscribe(
        on_next, done.set_exception, lambda: done.set_result(None)
    )
    await done


# One stream at a time


class Single:
    """The clients, each with a connection of its own that it keeps."""

    def __init__(self, url: str, dialect: str) -> None:
        self.url = url
        self.dialect = dialect
        self.reads = 0
        """Reads that gave bytes, of the clients that count them."""
        self.session: aiohttp.ClientSession
        self.model: ChatModel

    async def __aenter__(self) -> Self:
        self.session = aiohttp.ClientSession()
        self.model = model_of(self.url, self.dialect)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.session.close()
        await self.model.aclose()

    async def bare(self) -> int:
        reads = 0
        async with self.session.post(self.url, json={}) as response:
            content = response.content
            while await content.readany():
                reads += 1
        self.reads = reads
        return reads

    async def limit(self) -> int:
        splitter = Splitter(self.dialect)
        async with self.session.post(self.url, json={}) as response:
            content = response.content
            while data := await content.readany():
                splitter.feed(data)
        return splitter.frames

    async def pull(self) -> int:
        count = 0
        async for _ in self.model.prompt("Why is the sky blue?").stream():
            count += 1
        return count

    async def push(self) -> int:
        count = 0

        def on_next(_: object) -> None:
            nonlocal count
            count += 1

        await subscribe(self.model, on_next)
        return count

    def sdk(self) -> Stream | None:
        """The vendor's SDK, asynchronous; None where it is not installed."""
        package = "openai" if self.dialect == "openai-chat" else "anthropic"
        try:
            module = importlib.import_module(package)
        except ImportError:
            return None
        made = module.AsyncOpenAI if package == "openai" else module.AsyncAnthropic
        client = made(api_key="no-key", base_url=self.url, max_retries=0)

        async def raw() -> int:
            count = 0
            if package == "openai":
                stream = await client.chat.completions.create(model="gpt-4o-mini", messages=_ASK, stream=True)
            else:
                stream = await client.messages.create(
                    model="claude-sonnet-4-5", max_tokens=4096, messages=_ASK, stream=True
                )
            async for _ in stream:
                count += 1
            return count

        return raw


def race_single(
    stream: str, args: argparse.Namespace, loop: asyncio.AbstractEventLoop
) -> tuple[dict[str, Result], dict[str, float]]:
    frames = len(scaled(stream, args.deltas / 2000))
    busy: dict[str, list[float]] = {}

    def contestant(name: str, run: Stream, *, peer: bool = False) -> Contestant:
        def turn() -> None:
            wall, cpu = time.perf_counter(), time.process_time()
            assert loop.run_until_complete(_as_coroutine(run)) > 0
            busy.setdefault(name, []).append((time.process_time() - cpu) / (time.perf_counter() - wall))

        return Contestant(name, turn, peer)

    with paced_server(stream, args.deltas, args.interval) as url:
        clients = loop.run_until_complete(Single(url, STREAMS[stream][0]).__aenter__())
        contestants = [
            contestant(BARE, clients.bare),
            contestant(LIMIT, clients.limit),
            contestant(PULL, clients.pull),
            contestant(PUSH, clients.push),
        ]
        sdk = None if args.no_peers else clients.sdk()
        if sdk is not None:
            contestants.append(contestant(SDK, sdk, peer=True))
        elif not args.no_peers:
            print(f"  {stream}: its SDK is not installed, left out", file=sys.stderr)
        results = measure.race(contestants, frames, args.rounds, peer_rounds=args.rounds)
        loop.run_until_complete(clients.__aexit__())
    figures = {f"busy, {name}": statistics.median(shares) for name, shares in busy.items()}
    return results, {"events_per_read": frames / max(1, clients.reads), **figures}


async def _as_coroutine(run: Stream) -> int:
    return await run()


# Many streams at once: a client's process


class Meter:
    """Counts the events of all streams; CPU, delays and memory between two counts, while all are under way."""

    def __init__(self, streams: int, deltas: int, *, memory: bool) -> None:
        self.count = 0
        self.delays: list[float] = []
        self._first, self._last = streams * deltas // 10, streams * deltas * 9 // 10
        self._cpu: dict[int, float] = {}
        self._memory = memory
        self.live = 0

    def saw(self, written: float) -> None:
        self.count += 1
        if self._first <= self.count <= self._last:
            if not self._memory:
                self.delays.append(time.perf_counter() - written)
            if self.count in (self._first, self._last):
                self._cpu[self.count] = time.process_time()
        if self._memory and self.count == (self._first + self._last) // 2:
            gc.collect()
            self.live = tracemalloc.get_traced_memory()[0]

    def us_per_event(self) -> float:
        return (self._cpu[self._last] - self._cpu[self._first]) / (self._last - self._first) * 1e6


async def client(kind: str, url: str, streams: int, meter: Meter) -> None:
    """*streams* streams at once, read as *kind* does."""
    saw = meter.saw

    def look(event: Any) -> None:
        if type(event) is TextDelta:
            saw(float(event.text[:17]))

    def find(data: bytes) -> None:
        at = data.find(b'"content":"')
        while at >= 0:
            written = data[at + 11 : at + 28]
            if written[:1].isdigit():
                saw(float(written))
            at = data.find(b'"content":"', at + 28)

    if kind == "bare" or kind == "limit":
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def read() -> None:
                splitter = Splitter("openai-chat") if kind == "limit" else None
                async with session.post(url, json={}) as response:
                    while data := await response.content.readany():
                        if splitter is not None:
                            splitter.feed(data)
                        find(data)

            await asyncio.gather(*[read() for _ in range(streams)])
        return
    async with model_of(url, "openai-chat") as model:

        async def pull() -> None:
            async for event in model.prompt("Why is the sky blue?").stream():
                look(event)

        async def push() -> None:
            await subscribe(model, look)

        await asyncio.gather(*[(pull if kind == "pull" else push)() for _ in range(streams)])


def run_client(args: argparse.Namespace) -> dict[str, float]:
    """What a client's process does and tells."""
    meter = Meter(args.streams[0], args.deltas, memory=args.memory)
    main = client(args.client, args.url, args.streams[0], meter)
    if args.memory:
        # All that is made once, and is not of a stream, is there before the count begins.
        asyncio.run(client(args.client, args.url, 1, Meter(1, args.deltas, memory=False)))
        gc.collect()
        tracemalloc.start()
    base = tracemalloc.get_traced_memory()[0] if args.memory else 0
    started = time.perf_counter()
    if args.uvloop:
        importlib.import_module("uvloop").run(main)
    else:
        asyncio.run(main)
    seconds = time.perf_counter() - started
    if args.memory:
        return {"kb_per_stream": (meter.live - base) / args.streams[0] / 1024}
    meter.delays.sort()
    return {
        "us_per_event": meter.us_per_event(),
        "p50_ms": meter.delays[len(meter.delays) // 2] * 1e3,
        "p99_ms": meter.delays[int(len(meter.delays) * 0.99)] * 1e3,
        "events": float(meter.count),
        "seconds": seconds,
    }


KINDS = {"bare": BARE, "limit": LIMIT, "pull": PULL, "push": PUSH}


def many(streams: int, args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Each kind of client in turn, in fresh processes, *rounds* times; medians."""
    told: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    memory: dict[str, float] = {}
    with paced_server("chat_text", args.each, args.pace, stamp=True) as url:
        for number in range(args.rounds):
            for kind in list(KINDS) if number % 2 == 0 else reversed(list(KINDS)):
                told[kind].append(_client(kind, url, streams, args))
    with paced_server("chat_text", 20, 5 * args.pace, stamp=True) as url:
        for kind in KINDS:
            quick = argparse.Namespace(**{**vars(args), "each": 20})
            memory[kind] = _client(kind, url, streams, quick, "--memory")["kb_per_stream"]
    results: dict[str, dict[str, float]] = {}
    for kind, runs in told.items():
        results[kind] = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        results[kind]["to_bare"] = statistics.median(
            run["us_per_event"] / bare["us_per_event"] for run, bare in zip(runs, told["bare"], strict=True)
        )
        results[kind]["lost"] = max(streams * args.each - run["events"] for run in runs)
        results[kind]["kb_per_stream"] = memory[kind]
    return results


def _client(kind: str, url: str, streams: int, args: argparse.Namespace, *more: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--client", kind, "--url", url, "--streams", str(streams)]
    command += ["--deltas", str(args.each), *(["--uvloop"] if args.uvloop else []), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    if done.returncode != 0:
        raise RuntimeError(f"the client {kind} failed: {done.stderr[-2000:]}")
    told: dict[str, float] = json.loads(done.stdout)
    return told


def goals_of_many(streams: int, results: dict[str, dict[str, float]], args: argparse.Namespace) -> list[Goal]:
    bare, what = results["bare"], f"{streams} streams"
    goals: list[Goal] = []
    for kind in ("pull", "push"):
        got, name = results[kind], f"{what}, {KINDS[kind]}"
        if streams < 1000:
            goals += [
                Goal.at_most(f"{name}: CPU to bare aiohttp", got["to_bare"], 1.3),
                Goal.at_most(f"{name}: p99 added", got["p99_ms"] - bare["p99_ms"], 5, unit=" ms"),
                Goal.at_most(
                    f"{name}: memory added", got["kb_per_stream"] - bare["kb_per_stream"], 20, unit=" KB"
                ),
            ]
        else:
            nominal = (args.each + 4) * args.pace
            goals.append(
                Goal.at_most(
                    f"{name}: time to nominal", got["seconds"] / nominal, 1.1 if args.uvloop else 1.3
                )
            )
        goals.append(Goal.at_most(f"{name}: events lost", got["lost"], 0))
    return goals


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--stream", choices=sorted(STREAMS), action="append", help="only these, one at a time"
    )
    parser.add_argument("--deltas", type=int, default=1000, help="of a single stream")
    parser.add_argument(
        "--interval", type=float, default=0.0001, help="seconds between events of a single stream"
    )
    parser.add_argument(
        "--streams", type=int, nargs="*", default=[100], help="how many at once; none: leave out"
    )
    parser.add_argument("--each", type=int, default=150, help="deltas of each of many streams")
    parser.add_argument("--pace", type=float, default=0.02, help="seconds between events of each of them")
    parser.add_argument("--uvloop", action="store_true", help="clients on uvloop")
    parser.add_argument("--no-peers", action="store_true", help="without the vendors' SDKs")
    parser.add_argument("--no-single", action="store_true", help="only many streams at once")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--client", choices=sorted(KINDS), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.client:
        print(json.dumps(run_client(args)))
        return 0

    report: dict[str, Any] = {"single": {}, "many": {}}
    goals: list[Goal] = []
    loop = importlib.import_module("uvloop").new_event_loop() if args.uvloop else asyncio.new_event_loop()
    for stream in () if args.no_single else args.stream or ("chat_text", "anthropic"):
        results, figures = race_single(stream, args, loop)
        limit = results[LIMIT]
        goals += [
            Goal.at_most(
                f"{stream}, loopback: async for, to the limit", results[PULL].ratio(limit), 1.5, 1.25
            ),
            Goal.at_most(
                f"{stream}, loopback: Rx, one filter, to the limit", results[PUSH].ratio(limit), 1.9, 1.5
            ),
        ]
        report["single"][stream] = {
            **figures,
            **{
                r.name: {"median": r.median, "best": r.best, "to_limit": r.ratio(limit)}
                for r in results.values()
            },
        }
        if not args.json:
            _show_single(stream, results, figures)
    loop.close()
    for streams in args.streams:
        told = report["many"][streams] = many(streams, args)
        goals += goals_of_many(streams, told, args)
        if not args.json:
            _show_many(streams, told, args)
    report["goals"] = measure.goals_as_dicts(goals)
    if args.json:
        print(json.dumps(report, indent=1))
    else:
        measure.show_goals(goals)
    return 0


def _show_single(stream: str, results: dict[str, Result], figures: dict[str, float]) -> None:
    print(f"\n{stream}, one stream at a time, {figures['events_per_read']:.2f} events a read")
    measure.table(
        ("us CPU per event", "median", "best", "to limit", "busy"),
        [
            (
                r.name,
                measure.number(r.median),
                measure.number(r.best),
                measure.number(r.ratio(results[LIMIT])),
                f"{figures['busy, ' + r.name]:.0%}",
            )
            for r in results.values()
        ],
    )


def _show_many(streams: int, told: dict[str, dict[str, float]], args: argparse.Namespace) -> None:
    print(f"\n{streams} streams at {1 / args.pace:.0f} events/s{', uvloop' if args.uvloop else ''}")
    measure.table(
        ("", "us CPU/event", "to bare", "p50 ms", "p99 ms", "KB/stream", "lost", "s"),
        [
            (
                KINDS[kind],
                measure.number(t["us_per_event"]),
                measure.number(t["to_bare"]),
                measure.number(t["p50_ms"]),
                measure.number(t["p99_ms"]),
                f"{t['kb_per_stream']:.1f}",
                f"{t['lost']:.0f}",
                f"{t['seconds']:.2f}",
            )
            for kind, t in told.items()
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
