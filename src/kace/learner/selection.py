"""What a selection found: a row for each epoch, the one to use, and whether it can be told from the ladder alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from kace.evaluation.stats import holm, sign_flip, wilson
from kace.learner.verdicts import Kept
from kace.solver.trace import SolveRecord
from kace.tree.card import Status
from kace.tree.tree import EpistemicTree

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Outing:
    """How one epoch's tree fared: the same problems and seeds, in the same order, for every epoch."""

    epoch: int
    tree: EpistemicTree | None
    records: tuple[SolveRecord, ...]

    @property
    def right(self) -> int:
        """Solves with the right answer; a failed call is a wrong one."""
        return sum(bool(record.correct) for record in self.records)

    @property
    def cards(self) -> int:
        """Cards that may be shown."""
        return sum(card.status is not Status.DEPRECATED for card in self.tree or ())


class Against(Kept):
    """One epoch against another, solve by solve."""

    gained: int
    lost: int
    p: float
    """Two-sided and exact: McNemar's test with one seed; with several, a problem's seeds flip sign together."""


class Row(Kept):
    """One epoch."""

    epoch: int
    tree: str | None
    """The content hash of its tree."""
    cards: int
    right: int
    n: int
    low: float
    high: float
    ladder: Against | None
    """Against the ladder alone."""
    previous: Against | None
    """Against the epoch before."""
    calls: float
    """A problem, by the paper's count."""
    card_tokens: float
    """A solve, over all it read of the tree; one that left at ES read nothing."""
    failed: int
    """Solves that lost a call to the provider."""

    @property
    def accuracy(self) -> float:
        """The share of solves with the right answer."""
        return self.right / self.n


class ValidationSet(Kept):
    """The problems it was decided on, known by content."""

    problems: int
    hash: str
    ids: tuple[str, ...]


class Selection(Kept):
    """The decision, with everything it rests on."""

    v: Literal[1] = 1
    epoch: int
    tree: str | None
    """Where the chosen tree lies inside the learned one; nothing where the ladder alone did best."""
    p: float | None
    """Against the ladder alone, adjusted for the choice among the epochs; nothing where that is what was chosen."""
    said: str
    rows: tuple[Row, ...]
    seeds: tuple[int, ...]
    validation: ValidationSet
    config: dict[str, JsonValue]
    """The solver's settings."""

    @property
    def chosen(self) -> Row:
        """The row of the chosen epoch."""
        return next(row for row in self.rows if row.epoch == self.epoch)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which epoch, how sure, and the sentence that says so."""

    epoch: int
    p: float | None
    said: str


def rows_of(outings: Sequence[Outing]) -> tuple[Row, ...]:
    """The figures of every epoch, in order."""
    first = outings[0]
    return tuple(
        _row(outing, first if place else None, outings[place - 1] if place else None)
        for place, outing in enumerate(outings)
    )


def decide(rows: Sequence[Row], problems: int) -> Verdict:
    """The epoch with the highest accuracy, the smaller one where two are equal."""
    best = max(rows, key=lambda row: (row.right, -row.epoch))
    learned = [row for row in rows if row.ladder is not None]
    adjusted = dict(
        zip((row.epoch for row in learned), holm([row.ladder.p for row in learned if row.ladder]), strict=True)
    )
    if best.ladder is None:
        return Verdict(best.epoch, None, _no_tree(max(learned, key=lambda row: (row.right, -row.epoch)), problems))
    p = adjusted[best.epoch]
    test = "exact McNemar" if best.n == problems else "exact sign-flip over problems"
    found = f"{best.ladder.gained} gained, {best.ladder.lost} lost, {test} p = {_p(best.ladder.p)}"
    if len(learned) > 1:
        found += f", {_p(p)} after the choice among {len(learned)} epochs"
    if p <= ALPHA:
        return Verdict(
            best.epoch, p, f"Epoch {best.epoch} is better than no tree on these {problems} problems: {found}."
        )
    return Verdict(
        best.epoch,
        p,
        f"Epoch {best.epoch} did best, but {problems} problems cannot tell it from no tree: {found}.",
    )


def against(ours: Sequence[SolveRecord], theirs: Sequence[SolveRecord]) -> Against:
    """Paired by problem and seed; the test is over problems, since the seeds of one are no independent evidence."""
    gained = lost = 0
    by_problem: defaultdict[str, int] = defaultdict(int)
    for mine, other in zip(ours, theirs, strict=True):
        change = bool(mine.correct) - bool(other.correct)
        gained += change > 0
        lost += change < 0
        by_problem[mine.problem] += change
    up = sign_flip(by_problem.values())
    down = sign_flip(-change for change in by_problem.values())
    return Against(gained=gained, lost=lost, p=min(1.0, 2 * min(up, down)))


def _row(outing: Outing, ladder: Outing | None, previous: Outing | None) -> Row:
    records, n = outing.records, len(outing.records)
    problems = len({record.problem for record in records})
    # Several seeds of a problem say hardly more about other problems than one: the interval counts each problem once.
    low, high = wilson(round(outing.right * problems / n), problems)
    return Row(
        epoch=outing.epoch,
        tree=None if outing.tree is None else outing.tree.content_hash(),
        cards=outing.cards,
        right=outing.right,
        n=n,
        low=low,
        high=high,
        ladder=against(records, ladder.records) if ladder else None,
        previous=against(records, previous.records) if previous else None,
        calls=sum(record.paper_calls for record in records) / n,
        card_tokens=sum(recall.tokens for record in records for recall in record.recalls) / n,
        failed=sum(record.failed for record in records),
    )


def _no_tree(nearest: Row, problems: int) -> str:
    gained, lost = (nearest.ladder.gained, nearest.ladder.lost) if nearest.ladder else (0, 0)
    return (
        f"No epoch did better than the ladder alone on these {problems} problems (the nearest, epoch {nearest.epoch},"
        f" gained {gained} and lost {lost}): solve without a tree."
    )


def _p(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}" if value >= 0.001 else "under 0.001"
