"""The wire formats: each one file, each one line in this registry.

base.py              what a dialect is; `Out`, which makes drafts
openai_chat.py       OpenAI chat completions and compatible servers
anthropic.py         Anthropic messages
*_parts.py           pieces of their frames as values
*_request.py         requests to them
vendors.py           who speaks what, as data
think_tags.py        reasoning inside the text; reasoning_details.py: OpenRouter's proofs of it
"""

from __future__ import annotations

import difflib

from semflux.dialects.anthropic import ANTHROPIC
from semflux.dialects.base import Dialect, Out, Parser, ParserOptions
from semflux.dialects.openai_chat import OPENAI_CHAT
from semflux.errors import ConfigurationError

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (OPENAI_CHAT, ANTHROPIC)}
"""Every dialect by its name."""


def dialect(name: str) -> Dialect:
    """The dialect *name*.

    Raises:
        ConfigurationError: if there is none of this name; the message lists those that exist.
    """
    found = DIALECTS.get(name)
    if found is None:
        close = difflib.get_close_matches(str(name).replace("_", "-"), DIALECTS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        known = ", ".join(DIALECTS)
        shown = repr(name) if isinstance(name, str) else f"a {type(name).__name__}, not a name"
        raise ConfigurationError(f"unknown dialect {shown}{hint} (known: {known})")
    return found


__all__ = ("DIALECTS", "Dialect", "Out", "Parser", "ParserOptions", "dialect")
