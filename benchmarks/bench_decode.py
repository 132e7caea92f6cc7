"""What a frame costs in process: microseconds of CPU, against the limit and against other libraries.

    python benchmarks/bench_decode.py [--stream chat_text] [--rounds 9] [--scale 1] [--no-peers] [--json]

The limit is the least that anyone must do with the bytes: split into events, decode into typed structs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import limits, measure, peers, streams
from benchmarks.measure import Contestant, Goal, Result
from semflux import ChatEventFilter, ChatEventType, Limits, parse
from semflux.decoder import Decoder
from semflux.dialects import dialect as find_dialect
from semflux.events import EVENT_CLASSES
from semflux.flux.flux import Flux
from semflux.operators import EventSubject, Run, aggregate, filter_, filter_events, normalize, terminate
from semflux.wire.framing import framer

ROOT = Path(__file__).resolve().parent.parent
LIMIT = "limit: split + typed decode"
FRAMER = "framer"
DECODER = "decoder, drafts"
PULL = "async for"
PUSH = "subscribe"
PUSH_FILTER = "subscribe, one filter"
FOUR = "four operators one by one, one filter"

T = ChatEventType


def _ignore(_: object) -> None:
    pass


def _has_text(event: Any) -> bool:
    return event.text is not None


def run_framer(chunks: Iterable[bytes]) -> int:
    made, count = framer("sse", eof="vendor"), 0
    for chunk in chunks:
        made.receive(chunk)
        for _ in made.frames():
            count += 1
    for _ in made.close():
        count += 1
    return count


def run_decoder(chunks: Iterable[bytes], dialect: str) -> int:
    decoder, count = Decoder(find_dialect(dialect), Run().state), 0
    for chunk in chunks:
        decoder.receive(chunk)
        for _ in decoder.events():
            count += 1
    for _ in decoder.close():
        count += 1
    return count


async def run_pull(chunks: Iterable[bytes], dialect: str) -> int:
    count = 0
    async for _ in parse(chunks, dialect=dialect):
        count += 1
    return count


def run_push(chunks: Iterable[bytes], dialect: str) -> None:
    parse(chunks, dialect=dialect).subscribe(_ignore)


def run_push_filter(chunks: Iterable[bytes], dialect: str) -> None:
    parse(chunks, dialect=dialect).filter(_has_text).subscribe(_ignore)


def run_four(chunks: Iterable[bytes], dialect: str, on_next: Callable[[Any], object] = _ignore) -> None:
    """The public operators on our Subject, as somebody would write them who drives the decoder himself."""
    run = Run()
    state = run.state
    subject: EventSubject[Any] = EventSubject()
    events = subject.pipe(
        normalize(), aggregate(), terminate(), filter_events(ChatEventFilter.DEFAULT), filter_(_has_text)
    )
    Flux(events).subscribe(on_next, scheduler=run.scheduler)
    push = subject.on_next
    push(_draft(T.RESPONSE_START, origin=state.origin))
    state.step += 1
    decoder = Decoder(find_dialect(dialect), state)
    push(_draft(T.STEP_START, None, 1, origin=state.origin))
    for chunk in chunks:
        decoder.receive(chunk)
        for draft in decoder.events():
            push(draft)
    for draft in decoder.close():
        push(draft)
    push(_draft(T.RESPONSE_END, None, None, None, origin=state.origin))


def _draft(type: ChatEventType, *values: Any, **fields: Any) -> Any:
    return EVENT_CLASSES[type].draft_class(*values, **fields)


def ours(chunks: Sequence[bytes], dialect: str, loop: asyncio.AbstractEventLoop) -> list[Contestant]:
    return [
        Contestant(LIMIT, lambda: limits.split_and_decode(chunks, dialect)),
        Contestant(FRAMER, lambda: run_framer(chunks)),
        Contestant(DECODER, lambda: run_decoder(chunks, dialect)),
        Contestant(PULL, lambda: loop.run_until_complete(run_pull(chunks, dialect))),
        Contestant(PUSH, lambda: run_push(chunks, dialect)),
        Contestant(PUSH_FILTER, lambda: run_push_filter(chunks, dialect)),
        Contestant(FOUR, lambda: run_four(chunks, dialect)),
    ]


# The races


def race_stream(
    name: str, cut: str, args: argparse.Namespace, loop: asyncio.AbstractEventLoop, left_out: dict[str, str]
) -> dict[str, Result]:
    dialect = streams.STREAMS[name][0]
    frames = streams.scaled(name, args.scale)
    chunks = streams.CUTS[cut](frames)
    contestants = ours(chunks, dialect, loop)
    if not args.no_peers and cut == "16 KiB":
        contestants += peers.contestants(chunks, dialect, left_out)
    if not args.no_peers and cut == "7 bytes" and name == "anthropic":
        contestants += [c for c in peers.contestants(chunks, dialect, left_out) if "SDK, helper" in c.name]
    return measure.race(contestants, len(frames), args.rounds)


OURS = {LIMIT, FRAMER, DECODER, PULL, PUSH, PUSH_FILTER, FOUR}

_PEER_GOALS = (
    ("openai SDK, helper", 40, 50),
    ("anthropic SDK, helper", 12, 20),
    ("anthropic SDK, raw events", 4, None),
    ("pydantic-ai, model stream", 25, 40),
    ("langchain, astream", 25, 40),
    ("litellm, completion", 80, 100),
)


def goals_of_race(name: str, results: dict[str, Result]) -> list[Goal]:
    limit, rx = results[LIMIT], results[PUSH_FILTER]
    goals = [
        Goal.at_most(f"{name}: async for, to the limit", results[PULL].ratio(limit), 2.5, 1.8),
        Goal.at_most(f"{name}: subscribe, to the limit", results[PUSH].ratio(limit), 3.5, 2.5),
        Goal.at_most(f"{name}: four operators, to the limit", results[FOUR].ratio(limit), 3.5, 2.5),
    ]
    for peer, goal, aim in _PEER_GOALS:
        if peer in results:
            goals.append(Goal.at_least(f"{name}: {peer}, to ours by Rx", results[peer].ratio(rx), goal, aim))
    return goals


# What else the goals name


def growth(args: argparse.Namespace) -> tuple[dict[str, float], list[Goal]]:
    """Microseconds per frame at very many deltas to those at few, interleaved; and what stays in memory."""
    scale: float = args.scale
    few, many = 2000, max(4000, round(1_000_000 * scale) // 2000 * 2000)
    short = [list(streams.long_chat(few))] * max(1, many // few // 10)

    def cost_of_few() -> float:
        start = time.process_time()
        for chunks in short:
            run_long(chunks)
        seconds = time.process_time() - start
        return seconds / len(short) / few

    def cost_of_many() -> float:
        start = time.process_time()
        run_long(streams.long_chat(many))
        seconds = time.process_time() - start
        return seconds / many

    pairs = []
    for _ in range(max(1, min(args.rounds, 5))):
        before, long, after = cost_of_few(), cost_of_many(), cost_of_few()
        pairs.append((long / ((before + after) / 2), long * 1e6))
    ratio = statistics.median(r for r, _ in pairs)
    memory = live_memory(max(2000, many // 4 // 2000 * 2000))
    figures = {
        "deltas": float(many),
        "us_per_frame": statistics.median(us for _, us in pairs),
        "ratio": ratio,
        **memory,
    }
    return figures, [
        Goal.at_most(f"us per frame at {many:,} deltas, to {few:,}", ratio, 1.15),
        Goal.at_most(
            "live memory beside the pieces of the text, growth", memory["growth_kb"], 256, unit=" KB"
        ),
    ]


def run_long(chunks: Iterable[bytes], on_next: Callable[[Any], object] = _ignore) -> None:
    """With room for a response of any size; the default ends one at 256 MiB."""
    failures: list[Exception] = []
    limits = Limits(max_response_bytes=1 << 40, max_text_chars=1 << 40)
    parse(chunks, dialect="openai-chat", limits=limits).subscribe(on_next, failures.append)
    assert not failures, failures[0]


def live_memory(deltas: int) -> dict[str, float]:
    """Bytes that are live inside the stream at a tenth and at the end of *deltas*, less the text's pieces."""
    marks: list[tuple[int, int, int]] = []
    seen = pieces = 0
    wanted = {deltas // 10, deltas}

    def look(event: Any) -> None:
        nonlocal seen, pieces
        if event.type is T.TEXT_DELTA:
            seen += 1
            pieces += sys.getsizeof(event.text)
            if seen in wanted:
                marks.append((seen, tracemalloc.get_traced_memory()[0] - base, pieces))

    chunks = streams.long_chat(deltas)
    tracemalloc.start()
    base = tracemalloc.get_traced_memory()[0]
    run_long(chunks, look)
    tracemalloc.stop()
    # Two lists hold each piece; a list is up to an eighth longer than its items.
    (few, low, low_pieces), (many, high, high_pieces) = marks
    rest_low, rest_high = low - low_pieces - few * 17, high - high_pieces - many * 17
    return {
        "traced_deltas": float(many),
        "live_bytes_per_delta": (high - low) / (many - few),
        "pieces_bytes_per_delta": (high_pieces - low_pieces) / (many - few) + 16,
        "growth_kb": (rest_high - rest_low) / 1024,
    }


def linear(args: argparse.Namespace) -> Goal:
    """Tiny chunks cost the same per byte in a stream ten times as long."""
    short = streams.CUTS["7 bytes"](streams.chat_text(max(20, round(200 * args.scale))))
    long = streams.CUTS["7 bytes"](streams.chat_text(max(200, round(2000 * args.scale))))

    def ten_short() -> None:
        for _ in range(10):
            run_push(short, "openai-chat")

    results = measure.race(
        [
            Contestant("short", ten_short),
            Contestant("long", lambda: run_push(long, "openai-chat")),
        ],
        len(long),
        args.rounds,
    )
    ratio = results["long"].ratio(results["short"]) * len(short) * 10 / len(long)
    return Goal.at_most("7-byte chunks: cost per byte, ten times as long a stream", ratio, 1.15)


_IMPORT = """
import reactivex, sys, time
start, cpu = time.perf_counter(), time.process_time()
import semflux
print((time.perf_counter() - start) * 1e3, (time.process_time() - cpu) * 1e3)
print(*sorted({"aiohttp", "uvloop", "xllamacpp"} & set(sys.modules)))
"""


def import_time(runs: int) -> tuple[dict[str, float], list[Goal]]:
    """Milliseconds that `import semflux` takes after `import reactivex`, in fresh interpreters."""
    wall, cpu, loaded = [], [], ""
    with tempfile.TemporaryDirectory() as cache:
        # With compiled files, as an installed package has them; the first run makes them.
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environ["PYTHONPYCACHEPREFIX"] = cache
        for number in range(runs + 1):
            done = subprocess.run(
                [sys.executable, "-c", _IMPORT],
                cwd=ROOT,
                env=environ,
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            times, loaded = done.stdout.split("\n")[:2]
            if number:
                wall.append(float(times.split()[0]))
                cpu.append(float(times.split()[1]))
    figures = {"wall_ms": statistics.median(wall), "cpu_ms": statistics.median(cpu)}
    return figures, [
        Goal.at_most("import semflux above import reactivex", figures["cpu_ms"], 100, unit=" ms"),
        Goal.at_most("optional packages that it loads", float(len(loaded.split())), 0),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--stream", choices=sorted(streams.STREAMS), action="append", help="only these streams"
    )
    parser.add_argument("--cut", choices=list(streams.CUTS), action="append", help="only these cuts")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scale", type=float, default=1.0, help="times the deltas of the streams")
    parser.add_argument("--no-peers", action="store_true", help="without other libraries")
    parser.add_argument("--only-races", action="store_true", help="without growth, memory and import time")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    args = parser.parse_args(argv)

    loop = asyncio.new_event_loop()
    left_out: dict[str, str] = {"vercel": "runs on Node, so it cannot take turns in this process"}
    goals: list[Goal] = []
    report: dict[str, Any] = {"races": {}}
    for name in args.stream or streams.STREAMS:
        races: dict[str, dict[str, Result]] = {}
        frames = len(streams.scaled(name, args.scale))
        for cut in args.cut or streams.CUTS:
            results = races[cut] = race_stream(name, cut, args, loop, left_out)
            if not args.json:
                title = f"{name}, {frames:,} frames, cut: {cut}"
                measure.show_race(title, results, LIMIT, PUSH_FILTER, OURS, "frame")
        report["races"][name] = {cut: measure.race_as_dict(results, LIMIT) for cut, results in races.items()}
        if "16 KiB" in races:
            goals += goals_of_race(name, races["16 KiB"])
        helper = races.get("7 bytes", {}).get("anthropic SDK, helper")
        if helper is not None:
            got = helper.ratio(races["7 bytes"][PUSH_FILTER])
            goals.append(Goal.at_least(f"{name}, 7 bytes: anthropic SDK, helper, to ours by Rx", got, 4))
    if not args.only_races:
        goals.append(linear(args))
        report["growth"], more = growth(args)
        goals += more
        report["import"], more = import_time(max(1, min(args.rounds, 7)))
        goals += more
    report["goals"] = measure.goals_as_dicts(goals)
    report["left_out"] = left_out
    loop.close()
    if args.json:
        print(json.dumps(report, indent=1))
        return 0
    if not args.only_races:
        print("\ngrowth: " + ", ".join(f"{key} {value:,.4g}" for key, value in report["growth"].items()))
        print("import: " + ", ".join(f"{key} {value:.1f}" for key, value in report["import"].items()))
    measure.show_goals(goals)
    if not args.no_peers:
        for peer, reason in left_out.items():
            print(f"  left out: {peer}: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
