"""A walk: a shared stream with one slow reader, event by event for both."""

from __future__ import annotations

import asyncio
from typing import Any

from semflux.contract import violations_of
from semflux.usage import Usage
from tests.flux.answers import Reads, chat
from tests.frames import DONE, cc

USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}\n\n'
FRAMES = [cc({"role": "assistant", "content": "Hel"}), cc({"content": "lo"}), cc(finish="stop"), USAGE, DONE]
SEVEN = Usage(input_tokens=5, output_tokens=2, total_tokens=7)

WALK: list[tuple[str, int, int, str | None, Usage | None, bool | None]] = [
    ("RESPONSE_START", 0, 0, None, None, None),
    ("STEP_START", 1, 0, None, None, None),
    ("TEXT_START", 2, 0, None, None, None),
    ("TEXT_DELTA", 3, 0, "Hel", None, None),
    ("TEXT_DELTA", 4, 0, "lo", None, None),
    ("TEXT_END", 5, 0, None, None, None),
    ("USAGE", 6, 0, None, SEVEN, None),
    ("STEP_END", 7, 0, None, SEVEN, False),
    ("RESPONSE_END", 8, 0, None, SEVEN, False),
]
"""Type, seq, step, text, usage, and whether the response that an event carries is partial."""


def told(events: list[Any]) -> list[Any]:
    return [
        (
            str(event.type),
            event.seq,
            event.step,
            event.text,
            event.usage
            and Usage(
                **{n: getattr(event.usage, n) for n in ("input_tokens", "output_tokens", "total_tokens")}
            ),
            None if event.response is None else event.response.partial,
        )
        for event in events
    ]


async def test_share_with_one_slow_reader() -> None:
    """Both see the same events, the slow one later; the source is read once."""
    reads = Reads(FRAMES)
    shared = chat(reads).share()
    fast: list[Any] = []
    slow: list[Any] = []
    behind: list[int] = []

    async def read(into: list[Any], turns: int) -> None:
        async for event in shared:
            into.append(event)
            for _ in range(turns):
                await asyncio.sleep(0)
            behind.append(len(fast) - len(slow))

    await asyncio.gather(read(fast, 0), read(slow, 20))
    assert WALK == told(fast)
    assert WALK == told(slow)
    assert all(a is b for a, b in zip(fast, slow, strict=True))
    assert 1 == len({event.response_id for event in fast})
    assert () == violations_of(slow)
    assert len(FRAMES) == reads.asked
    assert max(behind) > 5


async def test_share_with_one_slow_reader_of_a_stream_that_is_cut() -> None:
    """Both get the partial answer and the same error, each after what it had still to read."""
    shared = chat(Reads(FRAMES[:2])).share()
    fast: list[Any] = []
    slow: list[Any] = []
    errors: list[Exception] = []

    async def read(into: list[Any], turns: int) -> None:
        try:
            async for event in shared:
                into.append(event)
                for _ in range(turns):
                    await asyncio.sleep(0)
        except Exception as error:
            errors.append(error)

    await asyncio.gather(read(fast, 0), read(slow, 20))
    assert (
        [
            *WALK[:6],
            ("STEP_END", 6, 0, None, None, True),
            ("ERROR", 7, 0, None, None, True),
        ]
        == told(fast)
        == told(slow)
    )
    assert errors[0] is errors[1] is fast[-1].error is slow[-1].error
    assert "Hello" == slow[-1].response.text
