"""Problems that left at ES with a wrong answer both attempts gave.

No card can reach the problem itself, since ES reads none. But others of its kind do climb, and what they need is known
from it: without these problems, a rule that the solver is confidently wrong about is never written down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kace.domain import place
from kace.learn.failure import Failure, wrong_attempts
from kace.learn.study import Study
from kace.learn.teacher import side_by_side
from kace.learn.verdicts import Kept
from kace.tiers import ExitPath, TierName
from kace.trace import SolveRecord
from kace.tree import Domain


class Placements(Kept):
    """Where problems belong, by their ids."""

    domains: dict[str, tuple[str, ...]]


def left_wrong(records: Iterable[SolveRecord]) -> tuple[SolveRecord, ...]:
    """The records of problems that ES answered with confidence and wrongly."""
    return tuple(record for record in records if record.exit is ExitPath.ES_UNANIMOUS and record.correct is False)


async def place_all(records: Sequence[SolveRecord], domains: Sequence[Domain], study: Study) -> Placements:
    """The domains of problems that were never placed, because no tier of theirs read a card."""
    session, config = study.practice.session, study.practice.config
    found: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(records), session.window):
        some = [study.by_id[record.problem] for record in records[start : start + session.window]]
        placed = await side_by_side(
            place(problem, domains, session.classifier, by=config.place_by, seed=config.seed) for problem in some
        )
        found |= {problem.id: placement.domains for problem, placement in zip(some, placed, strict=True)}
    return Placements(domains=found)


def confident_failures(
    records: Sequence[SolveRecord], placed: Placements, domain: str, study: Study
) -> tuple[Failure, ...]:
    """What the teacher is shown of a domain's problems among them."""
    return tuple(
        Failure(
            problem=study.by_id[record.problem],
            exit=record.exit_name,
            attempts=wrong_attempts(record, TierName.ES, study.practice.text_of),
            shown={},
        )
        for record in records
        if domain in placed.domains[record.problem]
    )
