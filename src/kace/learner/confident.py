"""Problems that left at ES with a wrong answer both attempts gave.

No card can reach the problem itself, since ES reads none. But others of its kind do climb, and what they need is known
from it: without these problems, a rule that the solver is confidently wrong about is never written down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kace.learner.failure import Failure, wrong_attempts
from kace.learner.placements import Placements
from kace.learner.study import Study
from kace.solver.tiers import ExitPath, TierName
from kace.solver.trace import SolveRecord


def left_wrong(records: Iterable[SolveRecord]) -> tuple[SolveRecord, ...]:
    """The records of problems that ES answered with confidence and wrongly."""
    return tuple(record for record in records if record.exit is ExitPath.ES_UNANIMOUS and record.correct is False)


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
