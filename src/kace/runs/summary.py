"""What a set of solves adds up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kace.ladder.record import Outcome, Solution
from kace.ladder.tiers import ExitPath
from kace.models.base import Usage
from kace.runs.stats import Interval, wilson


@dataclass(slots=True)
class Summary:
    """Running totals; add records one at a time and read the figures at any moment."""

    problems: int = 0
    labelled: int = 0
    correct: int = 0
    exits: Counter[ExitPath] = field(default_factory=Counter)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    paper_calls: int = 0
    real_calls: int = 0
    cached_calls: int = 0
    ahead_calls: int = 0  # sent ahead and not needed
    usage: Usage = field(default_factory=Usage)
    fresh_output: int = 0  # output tokens of calls really made now, which is what a speed may be computed from
    finished: int = 0  # problems whose answer is that of an attempt from common facts
    finished_right: int = 0

    @classmethod
    def of(cls, records: Iterable[Solution]) -> Summary:
        """The totals of many records."""
        summary = cls()
        for record in records:
            summary.add(record)
        return summary

    def add(self, record: Solution) -> None:
        """Count one solve."""
        self.problems += 1
        self.labelled += record.correct is not None
        self.correct += bool(record.correct)
        if record.exit:
            self.exits[record.exit] += 1
        self.paper_calls += record.paper_calls
        self.real_calls += record.real_calls
        self.ahead_calls += record.ahead_calls
        if record.synthesis and record.synthesis.answer is not None:
            self.finished += 1
            self.finished_right += bool(record.synthesis.correct)
        for attempt in record.made:
            self.outcomes[attempt.outcome] += 1
            self.cached_calls += attempt.from_cache
            self.usage += attempt.usage
            self.fresh_output += 0 if attempt.from_cache else attempt.output

    @property
    def accuracy(self) -> float | None:
        """The share of labelled problems answered correctly; failures count as wrong."""
        return self.correct / self.labelled if self.labelled else None

    @property
    def interval(self) -> Interval:
        """The 95 % Wilson interval of the accuracy."""
        return wilson(self.correct, self.labelled)
