"""Only checked, never run: text in steady pieces."""

from __future__ import annotations

import re
from typing import assert_type

from semflux import ChatStream


def first(buffer: str) -> int | None:
    return 1 if buffer else None


def smoothed(stream: ChatStream) -> None:
    assert_type(stream.smooth(), ChatStream)
    assert_type(stream.smooth("line", delay=0.01, max_lag=0.5, thinking=False), ChatStream)
    assert_type(stream.smooth(re.compile("[.!?]")).smooth(first, max_chars=20), ChatStream)
    stream.smooth("words")  # type: ignore[arg-type]  # one of three
    stream.smooth(re.compile(b"."))  # type: ignore[arg-type]  # text, not bytes
