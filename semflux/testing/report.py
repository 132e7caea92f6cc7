"""What a contract found: all of it in one error."""

from __future__ import annotations

from collections.abc import Mapping


class ContractError(AssertionError):
    """A contract is broken. The text lists the rules by name, each with what is wrong."""

    def __init__(self, subject: str, broken: Mapping[str, str]) -> None:
        self.subject = subject
        """What was checked."""
        self.broken: dict[str, str] = dict(broken)
        """What is wrong, by the name of the rule."""
        count = f"{len(broken)} rule{'' if len(broken) == 1 else 's'}"
        lines = [f"{subject} breaks {count} of its contract:"]
        lines += [f"  {name}: {what}" for name, what in broken.items()]
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[ContractError], tuple[str, dict[str, str]]]:
        return type(self), (self.subject, self.broken)


class Findings:
    """Collects what is wrong, one text a rule: the first."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._broken: dict[str, str] = {}
        self._cause: BaseException | None = None

    def add(self, rule: str, what: str, cause: BaseException | None = None) -> None:
        """*rule* is broken."""
        self._broken.setdefault(rule, what)
        self._cause = self._cause or cause

    def check(self, rule: str, holds: object, what: str) -> None:
        """*rule* is broken unless it *holds*."""
        if not holds:
            self.add(rule, what)

    def close(self) -> None:
        """Raise ContractError if anything is wrong."""
        if self._broken:
            raise ContractError(self._subject, self._broken) from self._cause


__all__ = ("ContractError", "Findings")
