"""Where problems belong, asked for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

from kace.config import Config
from kace.learner.teacher import side_by_side
from kace.learner.verdicts import Kept
from kace.problem import Problem
from kace.retrieval.router import place
from kace.solver.session import Session
from kace.tree.tree import Domain


class Placements(Kept):
    """The domains of problems, by their ids."""

    domains: dict[str, tuple[str, ...]]


async def place_all(
    problems: Sequence[Problem], domains: Sequence[Domain], session: Session, config: Config
) -> Placements:
    """Place every problem as the configuration says, as many side by side as the session takes."""
    found: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(problems), session.window):
        some = problems[start : start + session.window]
        placed = await side_by_side(
            place(problem, domains, session.classifier, by=config.place_by, seed=config.seed) for problem in some
        )
        found |= {problem.id: placement.domains for problem, placement in zip(some, placed, strict=True)}
    return Placements(domains=found)
