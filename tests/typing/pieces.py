"""What type checkers make of smooth."""

from __future__ import annotations

import re
from typing import assert_type

from semflux import ChatStream


def pieces(stream: ChatStream) -> None:
    assert_type(stream.smooth(), ChatStream)
    assert_type(stream.smooth(re.compile(r"\.\s"), delay=0.02), ChatStream)
    assert_type(stream.smooth(lambda held: len(held) or None, thinking=False), ChatStream)
