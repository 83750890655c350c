"""What a card is worth: fire statistics, and the lift that a randomised or paired comparison measured."""

from __future__ import annotations

from typing import Literal

from kace.learner.verdicts import Kept
from kace.solver.tiers import TierName

Method = Literal["dropout", "leave_one_out"]


class Fire(Kept):
    """How often a card was shown, and how those solves ended. An observation, not an effect."""

    card_id: str
    n_shown: int
    """Solves in which some tier read it."""
    shown_correct: int
    shown_wrong: int
    tiers: dict[TierName, int]
    problems: tuple[str, ...]
    """Labels of the problems, in order."""


class Lift(Kept):
    """The change in the rate of right attempts that a card causes, with its interval."""

    card_id: str
    method: Method
    effect: float
    low: float
    high: float
    p: float
    """Two-sided, against no effect at all."""
    shown: int
    """Attempts that saw the card."""
    hidden: int
    """Attempts that did not."""
    problems: int
    """Problems with attempts of both kinds."""


class Impact(Kept):
    """Everything measured of a tree's cards in one epoch."""

    fires: tuple[Fire, ...] = ()
    lifts: tuple[Lift, ...] = ()
    calls: int = 0
    """Solver calls made for the lifts."""
    unmeasured: tuple[str, ...] = ()
    """Cards the call budget did not reach."""
