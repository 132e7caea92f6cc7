"""`Secret`: a key that does not show itself."""

from __future__ import annotations

from typing import NoReturn


class Secret:
    """A string that `repr`, `str`, f-strings, logs and pickles never show; `reveal()` gives it.

    Two secrets are equal when their values are.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str | Secret) -> None:
        self._value: str = value._value if isinstance(value, Secret) else value

    def reveal(self) -> str:
        """The string itself. Call it where it is sent, and nowhere else."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return "***"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Secret):
            return self._value == other._value
        return NotImplemented

    def __hash__(self) -> int:
        return hash(("semflux.Secret", self._value))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled: pass the key to the other process another way")


__all__ = ("Secret",)
