"""Bytes to frames, and JSON to values. No meaning, no I/O.

In stream order: `limits` (the bounds), `intake` (bytes come in and wait for their line), `sse` and
`ndjson` (the framers), `framing` (`frames`, `framer`, `Frame`), `json` (the codec of what is in them).
"""

from semflux.wire.framing import Frame, Framer, Frames, Framing, framer, frames
from semflux.wire.intake import RawFrame
from semflux.wire.json import TypedDecoder, decode, encode, replace_surrogates
from semflux.wire.limits import DEFAULT_LIMITS, Limits
from semflux.wire.ndjson import NdjsonFramer
from semflux.wire.sse import Eof, SseFramer

__all__ = (
    "DEFAULT_LIMITS",
    "Eof",
    "Frame",
    "Framer",
    "Frames",
    "Framing",
    "Limits",
    "NdjsonFramer",
    "RawFrame",
    "SseFramer",
    "TypedDecoder",
    "decode",
    "encode",
    "framer",
    "frames",
    "replace_surrogates",
)
