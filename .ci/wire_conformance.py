"""Checks `semflux.wire` against the shared cases: every case, every cut in two, none late, linear time.

Reads `$SEMFLUX_SHARED/conformance/{sse,ndjson}.jsonl` (default: `../shared` beside the repository),
prints "N of M cases pass" and exits with 1 if one fails.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from semflux.errors import FrameError  # noqa: E402  # the path is set above
from semflux.wire import Limits, NdjsonFramer, SseFramer, decode, frames  # noqa: E402

SHARED = Path(os.environ.get("SEMFLUX_SHARED", ROOT.parent / "shared"))
MAX_SPLIT_BYTES = 4096
SECONDS = {"big_line_10mb": 0.3, "million_comments": 1.5, "million_blank_lines": 1.5}
"""CPU seconds that the whole input, as one chunk and in 16 KiB chunks, may take."""

Event = tuple[str, str, str]


def rows(name: str) -> Iterator[dict[str, Any]]:
    with (SHARED / "conformance" / name).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def body(row: dict[str, Any]) -> bytes:
    if "input_b64" in row:
        return base64.b64decode(row["input_b64"])
    return b"".join(text.encode() * times for text, times in row["input_recipe"])


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


class Reader:
    """Drives an `SseFramer`, keeping what it gives."""

    def __init__(self, eof: Any = "strict", limits: Limits | None = None) -> None:
        self.framer = SseFramer(limits or Limits(), eof)
        self.events: list[Event] = []
        self.flags: list[bool] = []

    def feed(self, chunks: Iterable[bytes]) -> Reader:
        for chunk in chunks:
            self.framer.receive(chunk)
            self._take(self.framer.frames())
        return self

    def close(self) -> Reader:
        self._take(self.framer.close())
        return self

    def _take(self, raw: Iterator[tuple[str | None, bytes, bool]]) -> None:
        for event, data, complete in raw:
            self.events.append(
                (event or "message", data.decode("utf-8", "replace"), self.framer.frame_id or "")
            )
            self.flags.append(complete)


def digest(events: list[Event]) -> str:
    return hashlib.sha256("\x1e".join(f"{e}\x1f{d}\x1f{i}" for e, d, i in events).encode()).hexdigest()


def check_sse(row: dict[str, Any]) -> Iterator[str]:
    data = body(row)
    if hashlib.sha256(data).hexdigest() != row["sha256"]:
        yield "the input is not the one described"
    ways: dict[str, Iterable[bytes]] = {"whole": [data], "16 KiB": pieces(data, 16384)}
    if len(data) <= 100_000:
        ways |= {"byte by byte": pieces(data, 1), "7 bytes": pieces(data, 7)}
    for way, chunks in ways.items():
        start = time.process_time()
        reader = Reader().feed(chunks).close()
        spent = time.process_time() - start
        if spent > SECONDS.get(row["name"], 10):
            yield f"{way}: took {spent:.2f} s"
        yield from (f"{way}: {problem}" for problem in _compare(row, reader))
    yield from _check_splits(row, data)
    yield from _check_lenient(row, data)
    if row["name"].startswith("endless"):
        yield from _check_endless(data)


def _compare(row: dict[str, Any], reader: Reader) -> Iterator[str]:
    if "expected" in row:
        if reader.events != [(e["event"], e["data"], e["id"]) for e in row["expected"]]:
            yield f"gave {reader.events!r:.200}"
    elif (len(reader.events), digest(reader.events)) != (row["expected_count"], row["expected_sha256"]):
        yield f"gave {len(reader.events)} other events"
    if not all(reader.flags):
        yield "a complete event is flagged as incomplete"
    if reader.framer.last_event_id != row["last_event_id_at_eof"]:
        yield f"last event id {reader.framer.last_event_id!r}"
    last = row["retry"][-1] if row["retry"] else None
    if reader.framer.retry != (3_600_000 if last == "huge" else last):
        yield f"retry {reader.framer.retry}"


def _check_splits(row: dict[str, Any], data: bytes) -> Iterator[str]:
    if "ready_at" not in row:
        return
    whole = Reader().feed([data]).close().events
    small = len(data) <= MAX_SPLIT_BYTES
    at, by = row["ready_at"], row["ready_by"]
    near = {k + d for k in (*at, *by) for d in (-2, -1, 0, 1)} | {0, 1, len(data) // 2, len(data)}
    ideal = row["split"].get("emitted_after_first_chunk")
    for k in range(len(data) + 1) if small else sorted(k for k in near if 0 <= k <= len(data)):
        reader = Reader().feed([data[:k]])
        count = len(reader.events)
        if not sum(n <= k for n in by) <= count <= sum(n <= k for n in at):
            yield f"cut at {k}: {count} events after the first part"
        if ideal is not None and count < ideal[k]:
            yield f"cut at {k}: late, {count} of {ideal[k]} events"
        if reader.feed([data[k:]]).close().events != whole:
            yield f"cut at {k}: other events"


def _check_lenient(row: dict[str, Any], data: bytes) -> Iterator[str]:
    want = row.get("lenient_eof")
    for chunks in ([data], pieces(data, 1)) if len(data) <= 100_000 else ([data], pieces(data, 16384)):
        reader = Reader("vendor").feed(chunks).close()
        loose = [event for event, whole in zip(reader.events, reader.flags, strict=True) if not whole]
        if want is None:
            if loose:
                yield f"vendor eof: gave {loose!r:.200}"
            continue
        text = want["data"]["len"] * "w" if isinstance(want["data"], dict) else want["data"]
        if loose != [(want["event"], text, want["id"])]:
            yield f"vendor eof: gave {loose!r:.200}"
        if reader.framer.unterminated != want["unterminated_line"]:
            yield f"vendor eof: unterminated is {reader.framer.unterminated}"


def _check_endless(data: bytes) -> Iterator[str]:
    bound = 1 << 20
    reader = Reader(limits=Limits(max_line_bytes=bound))
    try:
        reader.feed(pieces(data, 7))
    except FrameError:
        if reader.framer.bytes_seen > bound + 7:
            yield f"raised only after {reader.framer.bytes_seen} bytes"
    else:
        yield "no FrameTooLargeError"


def check_ndjson(row: dict[str, Any]) -> Iterator[str]:
    data = body(row)
    cuts: list[list[bytes]] = [[data], pieces(data, 16384)]
    if len(data) <= MAX_SPLIT_BYTES * 2:
        cuts += [pieces(data, 1), *([data[:k], data[k:]] for k in range(len(data) + 1))]
    for chunks in cuts:
        yield from _check_lines(row, chunks)


def _check_lines(row: dict[str, Any], chunks: list[bytes]) -> Iterator[str]:
    framer = NdjsonFramer()
    raw: list[bytes] = []
    for chunk in chunks:
        framer.receive(chunk)
        raw += [line for _, line, _ in framer.frames()]
    raw += [line for _, line, _ in framer.close()]
    lines = [line.decode("utf-8", "replace") for line in raw]
    if len(lines) != row.get("expected_count", len(lines)) or lines != row.get("expected_lines", lines):
        yield f"gave {lines!r:.200}"
    bad: list[int] = []
    for i, line in enumerate(raw):
        try:
            decode(line)
        except FrameError:
            bad.append(i)
    if bad != row["json_error_lines"]:
        yield f"lines {bad} fail as JSON"


def main() -> int:
    passed = total = 0
    suites: list[tuple[str, Callable[[dict[str, Any]], Iterator[str]]]] = [
        ("sse.jsonl", check_sse),
        ("ndjson.jsonl", check_ndjson),
    ]
    for name, check in suites:
        for row in rows(name):
            problems = list(check(row))
            total += 1
            passed += not problems
            for problem in problems[:5]:
                print(f"{name} {row['name']}: {problem}")
    if [frame.data for frame in frames(b"data: a\n\n", "sse")] != ["a"]:
        print("frames() does not give the frames")
        return 1
    print(f"{passed} of {total} cases pass")
    return 0 if passed == total > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
