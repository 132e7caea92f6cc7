"""`redact`: the stream without what looks like a key, or like patterns of yours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from reactivex import Observable, abc

from semflux.events import AnyChatEvent
from semflux.matching import PatternMatcher, Replacement, check_window, matcher_of
from semflux.operators.hold_back import WINDOW
from semflux.operators.screening import screen
from semflux.redaction import MASK, RULES
from semflux.screen import LANES, Lane


def redact(
    *patterns: str | re.Pattern[str],
    mask: str | Replacement = MASK,
    lanes: Iterable[Lane] = LANES,
    window: int = WINDOW,
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """The stream with *mask* in the place of secrets, for logs and databases: in all that it says, the arguments and
    results of tools and the vendors' own objects included, and in the responses on its events. Texts are looked at
    joined, as `hold_back` does it, so that no cutting hides a secret.

    *patterns*: strings, compared letter by letter, and compiled patterns. Without any: what has the form of a
    key (known prefixes, `Bearer`, `api_key=...`, long random runs), as in this library's own messages; *mask* is "***"
    then. *lanes*, *window*: as for `hold_back`; the last *window* characters of a text wait.

    ```
    TEXT+ TEXT~key sk-a TEXT~bcdefg, TEXT-|        redact()
    TEXT+ ------------- TEXT~key *** TEXT~, TEXT-|
    ```

    Raises:
        ConfigurationError: if a pattern is empty or of bytes, or for an unknown lane.
    """
    if patterns:
        make = matcher_of("redact", patterns, mask, ignore_case=False, window=window)
        return screen("redact", make, lanes)
    check_window("redact", window)
    return screen("redact", lambda: PatternMatcher(RULES, window), lanes)


__all__ = ("redact",)
