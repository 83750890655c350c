"""How a tree is learned: everything that is not the solver's configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kace.learner.verdicts import Kept
from kace.tree.card_text import MAX_EXAMPLES

ImpactMethod = Literal["dropout", "leave_one_out", "fires"]


class Settings(Kept):
    """The learner's dials, with the defaults that `kace learn` uses."""

    epochs: Annotated[int, Field(ge=1, le=20)] = 2
    cards_per_problem: Annotated[int, Field(ge=1, le=3)] = 2
    """Cards the teacher may propose for each failed problem of a cell."""
    add_runs: Annotated[int, Field(ge=1, le=2)] = 2
    """Runs that an epoch's new cards are written from: one a tier, the second reading the first one's cards, or one
    for both tiers, which spares a solver run and a wait for the teacher."""
    confident: bool = False
    """Learn also from problems that ES got wrong with both attempts agreed. They stay out of reach themselves; others
    of their kind may not be."""
    refine: Annotated[int, Field(ge=0, le=2)] = 2
    """Looks at a domain's candidate in an epoch: the first revision, then refinements of it. 0: cards are measured, and
    not rewritten."""
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.01
    """The least accuracy that a rewritten block must gain on its training problems."""
    alpha: Annotated[float, Field(gt=0, le=1)] = 0.1
    """How often chance alone may keep something in the whole run, shared out over its looks, and over its cards. 1 asks
    for no evidence."""
    impact: ImpactMethod = "dropout"
    impact_runs: Annotated[int, Field(ge=1, le=50)] = 2
    """Dropout runs an epoch, each on other seeds."""
    impact_calls: Annotated[int, Field(ge=1)] = 1_000
    """Solver calls an epoch that leave-one-out may use."""
    dropout_rate: Annotated[float, Field(gt=0, lt=1)] = 0.5
    keep: Literal["all", "validated"] = "all"
    """Which cards the frozen tree shows: all that were not deprecated, or only those with a validated lift."""
    examples: Annotated[int, Field(ge=0, le=MAX_EXAMPLES)] = 2
    """Worked examples that the teacher writes for each new card, to be shown as turns. 0: none are asked for."""
    imagine: bool = False
    """Ask for cards beside those that failures called for. Off: it overfitted where it was published."""
