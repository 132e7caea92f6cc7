"""Contracts that every operator, dialect and transport keeps, ours and yours, as functions to be called in a test.

```python
check_operator(lambda source: source.map(str))
check_dialect("openai-chat", [recorded_bytes])
await check_transport(make)
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reactivex import abc

from semflux.errors import ConfigurationError
from semflux.testing.dialect_contract import check_dialect
from semflux.testing.operator_case import Broken, OperatorCase
from semflux.testing.operator_rules import RULES
from semflux.testing.report import ContractError, Findings
from semflux.testing.transport_contract import TransportMaker, check_transport


class SourceFailure(Exception):  # noqa: N818  # what a source fails with, and no failure of the contract
    """The error that the sources of `check_operator` fail with, unless told otherwise."""


def _failure() -> Exception:
    return SourceFailure("of the source")


def check_operator(
    make: Callable[[Any], abc.ObservableBase[Any]],
    *,
    items: Sequence[Any] | Callable[[], Iterable[Any]] = (1, 2, 3),
    failure: Callable[[], Exception] = _failure,
    ends_early: bool = False,
    holds_items: bool = False,
    recovers: bool = False,
    maps_errors: bool = False,
    takes_none: bool = True,
    own_run: bool = False,
    skip: Iterable[str] = (),
) -> None:
    """Check that an operator keeps the contract: `RULES` of `semflux.testing.operator_rules` has it.

    *make* gets a source and gives the stream with the operator on it. It is an operator itself, ours or
    RxPY's (`check_operator(ops.skip(1))`), or a function that calls a method (`lambda s: s.take(2)`): the
    source is a `ChatStream` with all methods of it. It runs in the calling thread, without an event loop
    of its own; give timed operators a `VirtualClock`.

    It ends once; passes errors on, the same object; tells nothing after its end or after a dispose; a
    dispose reaches the source exactly once and before it returns, also from inside `on_next`, and a second
    one does nothing; it lets go of its source and of its subscriber; works twice; is serial; isolates a
    subscriber that raises; takes 10,000 items at once, and None.

    Where an operator differs, say so. *items*: what it can take, or a function that makes them afresh.
    *failure*: makes an error that it can pass on. *ends_early*: it may end before its source does.
    *holds_items*: an item may come out later than it went in, or not at all. *recovers*: it may go on after an
    error. *maps_errors*: it may give another error. *takes_none*: whether None is an item for it.
    *own_run*: it subscribes with a Run of its own. *skip*: names of rules that don't apply.

    Raises:
        ContractError: (an AssertionError) with all rules that are broken, by name.
        ConfigurationError: if *skip* names no rule.
    """
    skipped = set(skip)
    unknown = skipped - {rule.__name__ for rule in RULES}
    if unknown:
        known = ", ".join([rule.__name__ for rule in RULES])
        raise ConfigurationError(f"skip: no rule is called {', '.join(sorted(unknown))}. Known: {known}")
    fixed = items
    case = OperatorCase(
        make=make,
        items=fixed if callable(fixed) else lambda: fixed,
        failure=failure,
        ends_early=ends_early,
        holds_items=holds_items,
        recovers=recovers,
        maps_errors=maps_errors,
        takes_none=takes_none,
        own_run=own_run,
    )
    findings = Findings("this operator")
    for rule in RULES:
        if rule.__name__ in skipped:
            continue
        try:
            rule(case)
        except Broken as broken:
            findings.add(rule.__name__, str(broken))
        except Exception as error:  # noqa: BLE001  # whatever an operator raises is what is wrong with it
            findings.add(rule.__name__, f"raised {type(error).__name__}: {error}", error)
    findings.close()


__all__ = (
    "ContractError",
    "SourceFailure",
    "TransportMaker",
    "check_dialect",
    "check_operator",
    "check_transport",
)
