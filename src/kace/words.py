"""Figures as people read them."""

from __future__ import annotations


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
