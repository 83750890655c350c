"""The pages, a module for each area: `ROUTES` and `FORMS` name its views."""

from importlib import import_module
from types import ModuleType

AREAS = (
    "home",
    "tree",
    "card",
    "diff",
    "run",
    "compare",
    "problem",
    "learner",
    "inbox",
)


def areas() -> list[ModuleType]:
    """The modules."""
    return [import_module(f"kace.report.pages.{name}") for name in AREAS]
