"""How many calls each exit of the paper's ladder takes."""

from __future__ import annotations

from kace.ladder.tiers import ExitPath

PAPER_CALLS = dict(zip(ExitPath, (2, 5, 10, 10, 10), strict=True))
