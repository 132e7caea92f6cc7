"""A server on loopback, in a process of its own, that writes one event at a time at a steady pace.

    python benchmarks/paced_server.py chat_text --deltas 1000 --interval 0.0002

It prints its port, then answers every request with the whole stream, one HTTP chunk an event. A late event
moves the later ones: there are never two in a row without the pause between them. With --stamp each text
delta holds the time at which it was written, by `time.perf_counter()`, which all processes of Linux share.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import itertools
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import streams

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_STAMP = b"@@@@@@@@@@@@@@@@@"
_SLEEP = 0.0001
"""Seconds of a nap; waits that are shorter are spun away, so the server wants a core of its own."""


def stamp_frames(deltas: int) -> list[bytes]:
    """`chat_text` with a place for the time in each delta."""
    frames = streams.chat_text(deltas)
    template = frames[1].replace(b'"content":"', b'"content":"' + _STAMP + b" ", 1)
    return [frames[0], *([template] * deltas), *frames[deltas + 1 :]]


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Answer:
    """An answer on its way: which frame is next, and when."""

    __slots__ = ("done", "due", "frames", "socket")

    def __init__(self, connection: socket.socket, frames: Iterator[bytes], due: float) -> None:
        self.socket = connection
        self.frames = frames
        self.due = due
        self.done = threading.Event()

    def __lt__(self, other: Answer) -> bool:
        return self.due < other.due


class Pacer:
    """One thread that writes all answers, each frame at its time: no timer of an event loop, which would
    round to milliseconds and so write the events of many streams in one go."""

    def __init__(self, frames: list[bytes], interval: float) -> None:
        self._frames = [*map(_chunk, frames), b"0\r\n\r\n"]
        self._interval = interval
        self._new: deque[Answer] = deque()

    def answer(self, connection: socket.socket, number: int) -> None:
        """Write a whole answer to *connection*; returns when that is done."""
        # Spread over the interval, as many clients of a real server are.
        offset = self._interval * (number * 0.618 % 1)
        connection.sendall(_HEAD)
        answer = Answer(connection, iter(self._frames), time.perf_counter() + self._interval + offset)
        self._new.append(answer)
        answer.done.wait()

    def run(self) -> None:
        heap: list[Answer] = []
        clock = time.perf_counter
        while True:
            while self._new:
                heapq.heappush(heap, self._new.popleft())
            wait = heap[0].due - clock() if heap else _SLEEP
            if wait > 0:
                if wait > 2 * _SLEEP or not heap:
                    time.sleep(_SLEEP)
                continue
            answer = heap[0]
            frame = next(answer.frames, None)
            if frame is not None and self._write(answer.socket, frame):
                # A late frame moves the later ones, so that there are never two at once.
                answer.due = max(answer.due, clock() - self._interval / 2) + self._interval
                heapq.heapreplace(heap, answer)
            else:
                heapq.heappop(heap)
                answer.done.set()

    @staticmethod
    def _write(connection: socket.socket, frame: bytes) -> bool:
        if _STAMP in frame:
            frame = frame.replace(_STAMP, b"%017.6f" % time.perf_counter())
        try:
            connection.sendall(frame)
        except OSError:
            return False
        return True


def serve(connection: socket.socket, number: int, pacer: Pacer) -> None:
    """Answer the requests of one connection."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection, connection.makefile("rb") as reader, contextlib.suppress(OSError):
        while line := reader.readline():
            length = 0
            while line not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                line = reader.readline()
            reader.read(length)
            pacer.answer(connection, number)


def run(frames: list[bytes], interval: float) -> None:
    pacer = Pacer(frames, interval)
    threading.Thread(target=pacer.run, daemon=True).start()
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(listener.getsockname()[1], flush=True)
    for number in itertools.count():
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, number, pacer), daemon=True).start()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stream", choices=sorted(streams.STREAMS))
    parser.add_argument("--deltas", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=0.0002, help="seconds from one event to the next")
    parser.add_argument("--stamp", action="store_true", help="with the time in each delta; chat_text only")
    args = parser.parse_args(argv)
    frames = stamp_frames(args.deltas) if args.stamp else streams.scaled(args.stream, args.deltas / 2000)
    with contextlib.suppress(KeyboardInterrupt):
        run(frames, args.interval)
    return 0


if __name__ == "__main__":
    sys.exit(main())
