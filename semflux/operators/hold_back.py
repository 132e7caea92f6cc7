"""`hold_back` and `guard`: a blocked phrase is never seen, not even half of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from reactivex import Observable, abc

from semflux.events import AnyChatEvent
from semflux.matching import Replacement, matcher_of
from semflux.operators.screening import screen
from semflux.redaction import MASK
from semflux.screen import PROSE, Lane, Stop

WINDOW = 128
"""Characters after a place that decide what a pattern finds there, unless it is said."""


def hold_back(
    *phrases: str | re.Pattern[str],
    replace: str | Replacement = MASK,
    lanes: Iterable[Lane] = PROSE,
    ignore_case: bool = True,
    window: int = WINDOW,
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """The stream with *replace* in the place of each of *phrases*, however the text is cut, over the ends of blocks
    too; the responses on its events tell the same.

    A piece that may be the beginning of a phrase waits until that is decided, and what comes after it waits
    behind it. With strings alone nothing else waits. With a pattern the last *window* characters of a text always
    do, until another kind of content or the end of the step: what it says of a place may depend on *window*
    characters after it.

    *phrases*: strings, of which the longest of those that begin first is taken, and compiled patterns, of which
    the first is. *ignore_case*: strings are compared by their letters; a pattern has flags of its own. *replace*: a
    text, or a function of what was found. *lanes*: where to look, of "text", "thinking", "refusal", "tool_args",
    "other". Unicode is compared as it comes, not normalized.

    Put it below recovery and above filters: what a filter leaves out above it is not in its responses.

    ```
    TEXT+ TEXT~a pass TEXT~word! TEXT-|        hold_back("password")
    TEXT+ ----------- TEXT~a *** TEXT~! TEXT-|
    ```

    Raises:
        ConfigurationError: without a phrase, or if one is empty or of bytes, or for an unknown lane.
    """
    make = matcher_of("hold_back", phrases, replace, ignore_case=ignore_case, window=window)
    return screen("hold_back", make, lanes)


def guard(
    *phrases: str | re.Pattern[str],
    reason: str = "blocked",
    fail: bool = False,
    lanes: Iterable[Lane] = PROSE,
    ignore_case: bool = True,
    window: int = WINDOW,
) -> Callable[[abc.ObservableBase[AnyChatEvent]], Observable[AnyChatEvent]]:
    """Ends the stream at the first of *phrases*: what came before it is shown, then what is open is ended and ABORT
    with *reason* comes. *fail*: BlockedContentError instead, with its ERROR, which recovery can answer. The
    provider's connection is closed at once. All else as `hold_back`, and as there, nothing of a phrase is seen; not
    in the partial response either.

    ```
    TEXT+ TEXT~a pass TEXT~word! ------        guard("password")
    TEXT+ ----------- TEXT~a_ TEXT- STEP- ABORT|
    ```

    Raises:
        ConfigurationError: without a phrase, or if one is empty or of bytes, or for an unknown lane.
    """
    make = matcher_of("guard", phrases, "", ignore_case=ignore_case, window=window)
    return screen("guard", make, lanes, Stop(reason, fail))


__all__ = ("WINDOW", "guard", "hold_back")
