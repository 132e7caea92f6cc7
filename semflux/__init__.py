# The map, in the order in which a chunk travels:
#
#   transport/    bytes from a socket, or from a recording
#   wire/         bytes to frames: sse, ndjson, and JSON
#   dialects/     frames to events, and requests to HTTP
#   decoder.py    framer and dialect as one thing, without I/O
#   normalize.py  any order becomes a legal one (blocks.py, calls.py); contract.py says which is legal
#   aggregate.py  what it came to (fold.py makes response.py)
#   terminate.py  one terminal event, then the end
#   operators/    these stages, and Reactor's operators, on RxPY
#   flux/         Flux, Mono, ChatStream, parse
#   model.py      ChatModel.prompt(...).stream()
#
# Values: events/, messages.py, request.py, usage.py, errors.py. Only what stands below `decoder.py` in this
# list knows RxPY or an event loop.
"""LLM streams as semantic events: one vocabulary for every provider, with Reactor's operators on RxPY."""

from semflux import operators


from semflux.errors import *  # noqa: F403  # the tree is public as a whole; its __all__ says what it is
from semflux.errors import __all__ as _errors
from semflux.events import (
    Abort,
    AnyChatEvent,
    ChatEvent,
    ChatEventGroup,
    ChatEventPhase,
    ChatEventType,
    Citation,
    ContentFilter,
    Custom,
    Error,
    Heartbeat,
    MediaDone,
    MediaPartial,
    Origin,
    Raw,
    RefusalDelta,
    ResponseEnd,
    ResponseStart,
    ServerToolArgsDelta,
    ServerToolResult,
    ServerToolStart,
    Status,
    StepEnd,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingRedacted,
    ThinkingSignature,
    ThinkingStart,
    ToolCallArgsDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    UsageEvent,
)
from semflux.filters import ChatEventFilter
from semflux.flux import ByteSource, ChatStream, EventIterator, Flux, Mono, SignalType, parse
from semflux.frozen import FrozenDict
