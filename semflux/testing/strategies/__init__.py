"""Hypothesis strategies: streams of events, providers' bytes, ways to cut and to break them.

answers.py    what a model may say, as parts that are in no format yet
events.py     event_streams: as a subscriber sees them; wild_events: in any order
providers.py  provider_streams: the bytes of a dialect, with the answer that is in them
cutting.py    cuttings: the same bytes in other chunks; faults: bytes that something happened to

This module needs hypothesis, which `pip install 'semflux[testing]'` brings; the rest of `semflux.testing` does not.
"""

from importlib.util import find_spec

if find_spec("hypothesis") is None:
    raise ImportError("semflux.testing.strategies needs hypothesis: pip install 'semflux[testing]'")

# what is asked for above is needed by all of these
from semflux.testing.strategies.answers import Answer, CallPart, TextPiece, ThoughtPart, answers
from semflux.testing.strategies.cutting import Fault, cuttings, faults
from semflux.testing.strategies.events import event_streams, wild_events
from semflux.testing.strategies.providers import ProviderStream, provider_streams, register_renderer

__all__ = (
    "Answer",
    "CallPart",
    "Fault",
    "ProviderStream",
    "TextPiece",
    "ThoughtPart",
    "answers",
    "cuttings",
    "event_streams",
    "faults",
    "provider_streams",
    "register_renderer",
    "wild_events",
)
