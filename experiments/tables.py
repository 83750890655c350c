"""Tables of the studies, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]
