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
    from kace.api import asolve, asolve_many, compare, evaluate, learn, solve, solve_many
    from kace.config import Config, load_config
    from kace.errors import BudgetExceeded, DataError, KaceError, UsageError
    from kace.handles import RecordedRun, Tree, load_run
    from kace.models.base import ChatModel, Reply, Request
    from kace.problem import Problem, load_problems
    from kace.solver.records import Attempt, Outcome, Solution
    from kace.solver.tiers import LOCKED, ExitPath
    from kace.tree.card import Card
    from kace.tree.tree import Domain

# Where the public names live, light modules first.
_HOMES = (
    "errors",
    "problem",
    "models.base",
    "config",
    "solver.tiers",
    "solver.records",
    "tree.card",
    "tree.tree",
    "api",
    "handles",
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
