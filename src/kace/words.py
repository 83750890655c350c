"""Figures and foreign text as people read them."""

from __future__ import annotations

import re

# Controls, lone surrogates, and marks that hide or reorder what is on the page. Newline
# and tab stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def seen(value: str) -> str:
    """Return a text without what nothing shows of it."""
    return _UNSEEN.sub("", value)


def counted(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """More than one of it."""
    return (
        f"{noun[:-1]}ies"
        if noun[-1:] == "y" and noun[-2:-1] not in "aeou"
        else f"{noun}s"
    )


def points(share: float, digits: int = 1) -> str:
    """A difference of shares in percentage points, with its sign; zero has none."""
    value = f"{100 * share:+.{digits}f}"
    return value[1:] if float(value) == 0 else value.replace("-", "−")


def signed(value: float) -> str:
    """A figure with its sign, one digit after the point."""
    return f"{value + 0.0:+.1f}".replace("-", "−")
