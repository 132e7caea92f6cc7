"""The benchmarks: what they measure on is what they say, and each of them runs. Figures are not judged here."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bench_decode, bench_operators, limits, streams
from benchmarks.measure import Result
from semflux import ChatResponse, parse

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", streams.STREAMS)
def test_a_stream_is_the_same_each_time(name):
    """Figures of two days are about the same bytes."""
    assert streams.scaled(name) == streams.STREAMS[name][1]() == streams.scaled(name)


@pytest.mark.parametrize(
    "name, frames, size", [("chat_text", 2004, 326), ("chat_tools", 2007, 365), ("anthropic", 2020, 127)]
)
def test_streams_have_the_frames_and_sizes_that_are_documented(name, frames, size):
    """Within two in a hundred of the mean size of a frame."""
    made = streams.scaled(name)
    assert frames == len(made)
    assert size == pytest.approx(len(b"".join(made)) / frames, rel=0.02)


@pytest.mark.parametrize("name", streams.STREAMS)
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_each_stream_is_a_whole_answer(name, scale):
    """No repair, and arguments that are JSON: what is measured is the usual way, not the mending."""
    dialect = streams.STREAMS[name][0]
    response = parse(streams.scaled(name, scale), dialect=dialect, strict=True).response().block()
    assert isinstance(response, ChatResponse)
    assert [None] * len(response.tool_calls) == [call.arguments_error for call in response.tool_calls]
    assert {"chat_text": 0, "chat_tools": 3, "anthropic": 1}[name] == len(response.tool_calls)


@pytest.mark.parametrize("cut", streams.CUTS)
@pytest.mark.parametrize("name", streams.STREAMS)
def test_the_limit_reads_every_frame_however_it_is_cut(name, cut):
    """Both forms of it, so that they are limits of the same work."""
    dialect, frames = streams.STREAMS[name][0], streams.scaled(name, 0.02)
    chunks = streams.CUTS[cut](frames)
    splitter = limits.Splitter(dialect)
    for chunk in chunks:
        splitter.feed(chunk)
    assert b"".join(frames) == b"".join(chunks)
    assert len(frames) == limits.split_and_decode(chunks, dialect) == splitter.frames


def test_a_long_stream_is_the_short_one_with_its_deltas_repeated():
    """Its chunks are made while they are read: a million deltas are not in memory at once."""
    assert b"".join(streams.chat_text(2000)) == b"".join(streams.long_chat(2000))
    assert 4004 == b"".join(streams.long_chat(4000)).count(b"\n\n")


@pytest.mark.parametrize("name", streams.STREAMS)
def test_all_ways_that_are_raced_deliver_the_same(name):
    """The operators one by one give what the library's own stream gives, less what has no text."""
    dialect, frames = streams.STREAMS[name][0], streams.scaled(name, 0.02)
    wanted: list[Any] = []
    found: list[Any] = []
    parse(frames, dialect=dialect).filter(lambda event: event.text is not None).subscribe(wanted.append)
    bench_decode.run_four(frames, dialect, found.append)
    assert wanted
    assert wanted == found
    assert len(frames) == bench_decode.run_framer(frames)


@pytest.mark.parametrize("chain", bench_operators.CHAINS)
async def test_all_ways_of_chaining_operators_deliver_the_same(chain):
    """Whoever they are of: the same items come out of the same chain."""
    items = bench_operators.items_of(chain, 0.01)
    found: dict[str, list[Any]] = {}
    for name, run in bench_operators.RUNS.items():
        if name == bench_operators.AIOSTREAM and not importlib.util.find_spec("aiostream"):
            continue  # comes with `make bench`
        found[name] = []
        done = run(items, chain, found[name].append)
        if done is not None:
            await done
    wanted = found[bench_operators.LIMIT]
    assert (3 if chain == bench_operators.CHAT else 20) == len(wanted)
    assert dict.fromkeys(found, wanted) == found


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds():
    """A machine that is twice as slow in one round is so for both."""
    ours, limit = Result("ours", [2.0, 40.0, 6.0]), Result("limit", [1.0, 10.0, 2.0])
    assert 3.0 == ours.ratio(limit)


def run(script: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "benchmarks" / script), *arguments, "--rounds", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_bench_decode_runs():
    """Every stream, every cut, and what else the goals name."""
    report = run("bench_decode.py", "--scale", "0.005", "--no-peers")
    assert list(streams.STREAMS) == list(report["races"])
    for races in report["races"].values():
        assert list(streams.CUTS) == list(races)
        for results in races.values():
            assert set(results) == bench_decode.OURS
    assert {"deltas", "us_per_frame", "ratio", "growth_kb"} <= set(report["growth"])
    assert 0 < report["import"]["cpu_ms"]
    assert 12 <= len(report["goals"])


def test_bench_decode_goes_on_without_the_peers_that_are_not_there():
    """Each is in the race, or in the list of what was left out, with its reason."""
    report = run(
        "bench_decode.py", "--scale", "0.005", "--stream", "chat_text", "--cut", "16 KiB", "--only-races"
    )
    raced = " ".join(report["races"]["chat_text"]["16 KiB"])
    for name in ("openai", "pydantic-ai", "langchain", "litellm", "vercel"):
        assert name in raced or report["left_out"][name]


def test_bench_operators_runs():
    """Every chain; the peer that may be missing is in the race or in the list of what was left out."""
    report = run("bench_operators.py", "--scale", "0.005")
    assert list(bench_operators.CHAINS) == list(report["races"])
    everybody = set(bench_operators.RUNS)
    for results in report["races"].values():
        assert everybody == set(results) | set(report["left_out"])
    assert everybody == set(report["each_further"]) | set(report["left_out"])


def test_bench_loopback_runs():
    """One stream at a time, and several at once, each client in a process of its own."""
    report = run(
        "bench_loopback.py",
        "--deltas",
        "20",
        "--streams",
        "3",
        "--each",
        "30",
        "--pace",
        "0.003",
        "--no-peers",
    )
    assert {"chat_text", "anthropic"} == set(report["single"])
    assert {"bare", "limit", "pull", "push"} == set(report["many"]["3"])
    assert [0] * 4 == [client["lost"] for client in report["many"]["3"].values()]
