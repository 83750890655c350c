"""KACE: knowledge-adaptive context engineering for frozen language models.

>>> import kace
>>> solution = kace.solve("What is 6 times 7?", model="scripted/steady")
>>> solution.answer, solution.exit.value
('42', 'es_unanimous')
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kace.api import (
        Tree,
        asolve,
        asolve_many,
        compare,
        evaluate,
        learn,
        solve,
        solve_many,
    )
    from kace.cards.card import Card
    from kace.cards.tree import Domain
    from kace.config import Config, load_config
    from kace.errors import BudgetExceeded, DataError, KaceError, UsageError
    from kace.ladder.record import Attempt, Outcome, Solution
    from kace.ladder.tiers import LOCKED, ExitPath
    from kace.models.base import ChatModel, Reply, Request
    from kace.problems import Problem, load_problems
    from kace.runs.table import RecordedRun, load_run

# Where the public names live, light modules first.
_HOMES = (
    "errors",
    "problems",
    "models.base",
    "config",
    "ladder.tiers",
    "ladder.record",
    "cards.card",
    "cards.tree",
    "api",
    "runs.table",
)

__all__ = [
    "LOCKED",
    "Attempt",
    "BudgetExceeded",
    "Card",
    "ChatModel",
    "Config",
    "DataError",
    "Domain",
    "ExitPath",
    "KaceError",
    "Outcome",
    "Problem",
    "RecordedRun",
    "Reply",
    "Request",
    "Solution",
    "Tree",
    "UsageError",
    "asolve",
    "asolve_many",
    "compare",
    "evaluate",
    "learn",
    "load_config",
    "load_problems",
    "load_run",
    "solve",
    "solve_many",
]


def __getattr__(name: str) -> object:
    """Load a public name on first use, so that `import kace` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'kace' has no attribute '{name}'")
    homes = (vars(import_module(f"kace.{home}")) for home in _HOMES)
    value: object = next(home[name] for home in homes if name in home)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
