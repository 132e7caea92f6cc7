"""`redact`: a text of someone else's without what looks like a key.

A provider's error message may echo the request: the key, a header, a URL. The rules run over the whole
text, before it is cut, and prefer to hide a harmless word over showing a key. Not handled: a key in an
encoding of its own (base64, percent) and fewer than 8 characters of it in a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from string import ascii_lowercase, ascii_uppercase

from semflux.secret import Secret

MASK = "***"
"""What stands in the place of a hidden text."""

_FRAGMENT = 8
_MIN_SECRET = 4
# Host names come in lower case. Not str.lower(): it changes the length of some letters.
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)

_VALUE = r"""[^\s"'<>,;&(){}\[\]]"""

# In this order: what is half hidden already is hidden whole first, so that later masks are not swallowed.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # sk-proj-********wxyz, as OpenAI echoes a wrong key.
    (re.compile(rf"{_VALUE}{{0,80}}\*{{3,}}{_VALUE}{{0,80}}"), MASK),
    (re.compile(r"\bsk[-_][\w.-]{6,}"), MASK),
    (
        re.compile(
            r"\b(?:pk|rk|gsk|xai|hf|r8|gh[opsu]|github_pat|glpat|pplx|nvapi|csk|tgp|fw|xox[abprs])[-_]"
            r"(?=[\w.-]*\d)[\w.-]{6,}"
        ),
        MASK,
    ),
    (
        re.compile(r"\b(?:AIza[\w-]{10,}|ya29\.[\w.-]{6,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|eyJ[\w-]{8,}[\w.-]*)"),
        MASK,
    ),
    (
        re.compile(
            r"\b(bearer|basic)\s+(?!(?:auth\w*|tokens?|headers?|schemes?|credentials?|is|was|and|or)\b)"
            rf"{_VALUE}{{4,}}",
            re.IGNORECASE,
        ),
        rf"\1 {MASK}",
    ),
    (re.compile(rf"([?&](?:key|sig|code|auth)=){_VALUE}+", re.IGNORECASE), rf"\1{MASK}"),
    # x-api-key: value, "api_key"="value", token=value, Incorrect API key provided: value. After a colon
    # a plain word is prose ("invalid API key: check it"), and a short number is a count of tokens.
    (
        re.compile(
            r"""\b([\w-]{0,40}(?:api[-_ ]?key|token|authorization|secret|password|signature)"""
            r"""(?: \w{1,20}){0,2}["']?\s{0,4}(?:=|:(?!//)(?=\s{0,4}["']?(?!\d{1,9}\b)"""
            rf"""(?:{_VALUE}*[\d_-]|{_VALUE}{{16,}})))\s{{0,4}}["']?)(?:(?:bearer|basic)\s+)?{_VALUE}+""",
            re.IGNORECASE,
        ),
        rf"\1{MASK}",
    ),
)
_RUN = re.compile(r"[A-Za-z0-9]{20,}")
_HAS_DIGIT = re.compile(r"[0-9]")
_HAS_LETTER = re.compile(r"[A-Za-z]")
_MIXED = 32


def _mask_run(match: re.Match[str]) -> str:
    run = match.group()
    letters = _HAS_LETTER.search(run) is not None
    random = letters and _HAS_DIGIT.search(run) is not None
    mixed = len(run) >= _MIXED and run.lower() != run and run.upper() != run
    return MASK if random or mixed else run


def _mask_secret(text: str, secret: str) -> str:
    """*text* without *secret* and without any 8 characters of it in a row, in either letter case."""
    if len(secret) < _MIN_SECRET:
        return text
    secret, low = secret.translate(_LOWER), text.translate(_LOWER)
    size = min(len(secret), _FRAGMENT)
    pieces = {secret[i : i + size] for i in range(len(secret) - size + 1)}
    out: list[str] = []
    hidden = 0  # where the last hidden stretch ends
    for i in range(len(text)):
        if low[i : i + size] in pieces:
            if i >= hidden:
                out.append(MASK)
            hidden = i + size
        elif i >= hidden:
            out.append(text[i])
    return "".join(out)


def mask_secrets(text: str, secrets: Iterable[Secret | str] = ()) -> str:
    """*text* without *secrets* and what has the form of a key; long ids of other kinds stay.

    For short values such as request ids and codes.
    """
    for secret in secrets:
        text = _mask_secret(text, secret.reveal() if isinstance(secret, Secret) else secret)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def _expanded(replacement: str) -> Callable[[re.Match[str]], str]:
    return lambda match: match.expand(replacement)


RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    *[(pattern, _expanded(replacement)) for pattern, replacement in _RULES[1:]],
    (_RUN, _mask_run),
)
"""The same for texts that come in pieces: each pattern with what replaces its matches. Without the first one, which would
take Markdown's `***` for stars in a key."""


def redact(text: str, secrets: Iterable[Secret | str] = ()) -> str:
    """*text* without *secrets*, what has the form of a key, and long random runs of letters and digits."""
    return _RUN.sub(_mask_run, mask_secrets(text, secrets))


__all__ = ("MASK", "RULES", "mask_secrets", "redact")
