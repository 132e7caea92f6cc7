"""`check_dialect`: what holds for every wire format, given whole recorded answers."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

import attrs

from semflux.contract import violations_of
from semflux.dialects import DIALECTS, Dialect
from semflux.dialects import dialect as find_dialect
from semflux.errors import SemfluxError, TruncatedStreamError
from semflux.events import ChatEventType
from semflux.flux.parse import parse
from semflux.response import ChatResponse
from semflux.testing.report import Findings

_CUT_SIZES = (1, 2, 3, 7, 64, 1024)
_HELD = 16  # characters that a dialect may hold back
_BYTES = bytes(range(256))


@attrs.frozen
class Parsed:
    """What a subscriber of `parse` saw."""

    events: list[Any]
    """The events."""
    errors: list[Exception]
    """What `on_error` got."""
    completed: int
    """How often `on_completed` was called."""
    raised: Exception | None
    """What came out of `subscribe`; None, as it should be."""

    @property
    def error(self) -> Exception | None:
        """The error of the stream; None if it ended well."""
        return self.raised or (self.errors[0] if self.errors else None)

    @property
    def response(self) -> ChatResponse:
        """What it came to; an empty one if there is none."""
        found = self.events[-1].response if self.events else None
        return found if isinstance(found, ChatResponse) else ChatResponse()

    @property
    def meaning(self) -> Any:
        """All that does not depend on the run."""
        error = self.error
        return (
            [
                (event, event.step, event.provider_response_id)
                for event in self.events
                if not event.is_terminal
            ],
            {**self.response.to_dict(), "response_id": ""},
            None if error is None else (type(error).__name__, str(error)),
        )


def parsed(data: bytes | list[bytes], dialect: str, *, strict: bool = False) -> Parsed:
    """Parse *data*, in the pieces that it comes in."""
    events: list[Any] = []
    errors: list[Exception] = []
    ends: list[bool] = []
    raised: Exception | None = None
    try:
        parse(data, dialect=dialect, strict=strict).subscribe(
            events.append, errors.append, lambda: ends.append(True)
        )
    except Exception as error:  # noqa: BLE001  # whatever a dialect raises is what is wrong with it
        raised = error
    return Parsed(events, errors, len(ends), raised)


@contextmanager
def _known(dialect: str | Dialect) -> Generator[str]:
    """The dialect's name, under which it is registered meanwhile."""
    if isinstance(dialect, str):
        yield find_dialect(dialect).name
        return
    before = DIALECTS.get(dialect.name)
    DIALECTS[dialect.name] = dialect
    try:
        yield dialect.name
    finally:
        if before is None:
            del DIALECTS[dialect.name]
        else:
            DIALECTS[dialect.name] = before


def check_dialect(
    dialect: str | Dialect, samples: Iterable[bytes], *, every: int = 1, mangled: int = 100, seed: int = 0
) -> None:
    """Check that a dialect keeps the contract: *samples* are whole answers in it that end well.

    *well*: each sample ends in RESPONSE_END. *one_end*: exactly one terminal event and one end signal, for
    whatever bytes. *well_formed*: the order of events is legal. *any_cutting*: the same events and ending,
    however the bytes are cut. *any_truncation*: cut off after any byte the stream fails with
    TruncatedStreamError or another SemfluxError, or ends well if the finish signal has come, and its
    text is a beginning of the whole one, but for a few characters that were held back. *only_our_errors*: nothing but a SemfluxError comes of mangled bytes, in
    strict mode too.

    *every*: check the truncation after each *every*-th byte, for samples that are long. *mangled*: variants
    of each sample with wrong bytes; *seed* chooses them.

    Raises:
        ContractError: (an AssertionError) with all rules that are broken, by name.
        ConfigurationError: if there is no dialect of this name.
    """
    with _known(dialect) as name:
        findings = Findings(f"the dialect {name!r}")
        chance = random.Random(seed)  # noqa: S311  # no secret
        for number, data in enumerate(samples):
            where = f"sample {number}"
            whole = parsed(data, name)
            _sound(findings, whole, where)
            findings.check("well", whole.error is None, f"{where} ends in {whole.error!r}")
            for size in _CUT_SIZES:
                cut = parsed([data[i : i + size] for i in range(0, len(data), size)], name)
                findings.check(
                    "any_cutting",
                    cut.meaning == whole.meaning,
                    f"{where} is another one in pieces of {size} bytes",
                )
            _truncated(findings, data, name, whole, where, every)
            _mangled(findings, data, name, where, [chance.random() for _ in range(3 * mangled)])
        findings.close()


def _sound(findings: Findings, seen: Parsed, where: str) -> None:
    """What holds for whatever bytes."""
    terminal = [event.type.value for event in seen.events if event.is_terminal]
    told = [*terminal, *["on_error"] * len(seen.errors), *["on_completed"] * seen.completed]
    findings.check("one_end", len(terminal) == 1 and len(told) == 2, f"{where} ends in {told}")
    failed = terminal == [ChatEventType.ERROR.value]
    same = not seen.events or not failed or seen.events[-1].error is seen.error
    findings.check("one_end", same and failed == bool(seen.errors), f"{where}: ERROR and on_error differ")
    violations = violations_of(seen.events)
    findings.check(
        "well_formed", not violations, f"{where}: {'; '.join([str(each) for each in violations[:3]])}"
    )
    error = seen.error
    ours = error is None or (isinstance(error, SemfluxError) and error.kind != "source")
    findings.check(
        "only_our_errors", ours, f"{where} ends in {error!r}, caused by {error and error.__cause__!r}"
    )


def _begins(whole: str, text: str) -> bool:
    """True if *text* is a beginning of *whole*, but for a few characters that were held back to see what follows
    (half a tag), and go out when nothing does."""
    return any(whole.startswith(text[: len(text) - held]) for held in range(min(len(text), _HELD) + 1))


def _truncated(findings: Findings, data: bytes, name: str, whole: Parsed, where: str, every: int) -> None:
    rule = "any_truncation"
    for length in range(0, len(data), every):
        seen = parsed(data[:length], name)
        at = f"{where}, cut off after {length} bytes,"
        _sound(findings, seen, at)
        text = seen.response.text
        findings.check(rule, _begins(whole.response.text, text), f"{at} has another text: {text[-40:]!r}")
        finished = any(event.type is ChatEventType.STEP_END and event.finish_reason for event in seen.events)
        ok = seen.error is None if finished else isinstance(seen.error, SemfluxError)
        findings.check(rule, ok, f"{at} ends in {seen.error!r}")
        if length > len(data) // 2 and not finished:
            truncated = isinstance(seen.error, TruncatedStreamError)
            findings.check(
                rule, truncated, f"{at} ends in {type(seen.error).__name__}, not TruncatedStreamError"
            )


def _mangled(findings: Findings, data: bytes, name: str, where: str, chances: list[float]) -> None:
    for first, second, third in zip(chances[::3], chances[1::3], chances[2::3], strict=True):
        place = int(first * len(data))
        wrong = _BYTES[int(second * 256)]
        cut = place + int(third * 8)
        for strict in (False, True):
            bad = data[:place] + bytes([wrong]) + data[max(cut, place) :]
            _sound(
                findings,
                parsed(bad, name, strict=strict),
                f"{where} with bytes {place}-{cut} as {wrong:#04x}",
            )


__all__ = ("Parsed", "check_dialect", "parsed")
