"""Reactor's Flux and Mono on RxPY, and the chat stream that is one.

pump.py      moves a stream on: bytes to Subject, as far as the subscriber wants
source.py    pump, Subject and pipeline as one cold observable
edge.py      where a stream meets its subscriber; iterate.py: the pull side; blocking.py: plain code
flux.py, mono.py, chat.py, grouped.py, parse.py   what users hold
making.py, sources.py, mono_making.py how else it is made; creating.py: sources made of functions
connectable.py, sinks.py              a shared stream that is started by hand; a stream that is fed by hand
"""

from semflux.flux.chat import ChatStream
from semflux.flux.connectable import Connectable
from semflux.flux.flux import Flux
from semflux.flux.grouped import GroupedFlux
from semflux.flux.iterate import EventIterator
from semflux.flux.mono import Mono
from semflux.flux.parse import ByteSource, parse
from semflux.flux.sinks import EmitResult, Sink, Sinks
from semflux.operators.do_finally import SignalType

__all__ = (
    "ByteSource",
    "ChatStream",
    "Connectable",
    "EmitResult",
    "EventIterator",
    "Flux",
    "GroupedFlux",
    "Mono",
    "SignalType",
    "Sink",
    "Sinks",
    "parse",
)
