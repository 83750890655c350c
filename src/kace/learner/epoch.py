"""One epoch of a learning run, put together from the steps it kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kace.evaluation.stats import Interval, wilson
from kace.learner.admit import Demonstrations, Rulings
from kace.learner.blocks import CardRefusal
from kace.learner.commit import InterimAnalysis
from kace.learner.consolidate import Merge, Merges
from kace.learner.propose import Proposals, wrong_at_es
from kace.learner.resources import RunTotals
from kace.learner.revise import Revisions
from kace.learner.steps import DoneSteps, StepName
from kace.retrieval.selector import estimate
from kace.solver.records import Solution
from kace.solver.trace import read_trace
from kace.tree.card import Card, Difficulty, Status
from kace.tree.store import TreeStore, open_tree

VERIFY, DROPOUT = "verify", "dropout"
TITLES = {
    "run": "before {0.place} cards",
    "base": "with the cards",
    "rebase": "after retirements",
    DROPOUT: "cards hidden at random",
    VERIFY: "rerun {0.number} of {0.place}",
}
"""The steps that are tiered runs, and what each is for."""


class RunScore(RunTotals):
    """A tiered run on training problems, finished or under way."""

    step: StepName

    @property
    def accuracy(self) -> float | None:
        """The share answered correctly; nothing where nothing was solved."""
        return self.correct / self.problems if self.problems else None

    @property
    def interval(self) -> Interval:
        """The 95 % Wilson interval of the accuracy."""
        return wilson(self.correct, self.problems)

    @property
    def whole(self) -> bool:
        """Whether the run is over all training problems, so that it may be compared with others."""
        return self.step.what != VERIFY

    @property
    def title(self) -> str:
        """What the run was for, in a few words."""
        return TITLES[self.step.what].format(self.step) if self.step.what in TITLES else self.step.what


@dataclass(frozen=True, slots=True)
class CardTotals:
    """How many cards there are: those that a solve may read, and those retired."""

    shown: int
    validated: int
    retired: int
    tokens: int
    """Of the cards that may be shown, estimated from their length."""
    difficulty: Difficulty | None = None
    """Of the cards counted, where others were left out."""

    @classmethod
    def of(cls, cards: Iterable[Card], difficulty: Difficulty | None = None) -> CardTotals:
        """The totals of some cards, or of those of one difficulty among them."""
        every = [card for card in cards if difficulty in (None, card.difficulty_tag)]
        shown = [card for card in every if is_shown(card)]
        validated = sum(card.status is Status.VALIDATED for card in shown)
        return cls(len(shown), validated, len(every) - len(shown), sum(map(estimate, shown)), difficulty)


Refusing = Proposals | Rulings | Demonstrations | Revisions


@dataclass(frozen=True, slots=True)
class ReportedRefusal:
    """Something the teacher wrote that did not enter the tree, and where it would have gone."""

    epoch: int
    place: str
    what: str
    """`card`; `revision` where a card stayed as it was, `example` where it stayed without."""
    refused: CardRefusal


@dataclass(frozen=True, slots=True)
class Gap:
    """Something no card could be edited to cover, as the curator put it."""

    domain: str
    text: str


@dataclass(frozen=True, slots=True)
class Beyond:
    """A problem that left at ES with a wrong answer: ES reads no card, so no tree can mend it."""

    label: str
    answer: str
    expected: str


@dataclass(frozen=True, slots=True)
class Revised:
    """What the curator would do with a card, and whether a rerun bore it out."""

    epoch: int
    card_id: str
    action: str
    reason: str
    domain: str
    number: int
    accepted: bool


@dataclass(frozen=True, slots=True)
class Epoch:
    """One round of growing, measuring and revising."""

    number: int
    scores: tuple[RunScore, ...]
    proposed: int
    waiting: int
    """Proposed, but not ruled on yet."""
    admitted: int
    merged: tuple[Merge, ...]
    refused: tuple[ReportedRefusal, ...]
    revised: tuple[Revised, ...]
    looks: tuple[InterimAnalysis, ...]
    gaps: tuple[Gap, ...]
    beyond: tuple[Beyond, ...]
    size: CardTotals | None
    """Of the tree at the epoch's end."""


def epoch_of(number: int, steps: DoneSteps, store: TreeStore) -> Epoch:
    """Everything that an epoch did, as far as it came."""
    proposals = list(steps.of(Proposals, "propose", "imagine", epoch=number))
    rulings = {step.place: ruling for step, ruling in steps.of(Rulings, "admit", epoch=number)}
    looks = tuple(look for _, look in steps.of(InterimAnalysis, "look", epoch=number))
    curated = list(steps.of(Revisions, "revise", epoch=number))
    accepted = {(look.domain, look.number) for look in looks if look.accepted}
    snapshot = store.folder / "snapshots" / f"epoch-{number}.jsonl"

    def refused(what: str, found: Iterable[tuple[str, Refusing]]) -> Iterator[ReportedRefusal]:
        return (ReportedRefusal(number, place, what, each) for place, value in found for each in value.refused)

    # By cell: first what could not be read as a card, then what was ruled out.
    by_cell: list[tuple[str, Refusing]] = []
    for cell in dict.fromkeys(step.place for step, _ in proposals):
        by_cell += [(cell, found) for step, found in proposals if step.place == cell]
        by_cell += [(cell, rulings[cell])] if cell in rulings else []
    illustrated = steps.of(Demonstrations, "illustrate", epoch=number)
    return Epoch(
        number=number,
        scores=tuple(RunScore(step=step, **dict(run)) for step, run in steps.of(RunTotals, *TITLES, epoch=number)),
        proposed=sum(len(found.cards) + len(found.refused) for _, found in proposals),
        waiting=sum(len(found.cards) for step, found in proposals if step.place not in rulings),
        admitted=sum(len(ruling.admitted) for ruling in rulings.values()),
        merged=tuple(merge for _, merges in steps.of(Merges, "merge", epoch=number) for merge in merges.merged),
        refused=(
            *refused("card", by_cell),
            *refused("example", ((step.place, found) for step, found in illustrated)),
            *refused("revision", ((step.place, found) for step, found in curated)),
        ),
        revised=tuple(
            Revised(number, each.card_id, each.action.value, each.reason, *at, accepted=at in accepted)
            for at, found in (((step.place, step.number), found) for step, found in curated)
            for each in found.revisions
        ),
        looks=looks,
        gaps=tuple(dict.fromkeys(Gap(step.place, text) for step, found in curated for text in found.gaps)),
        beyond=tuple(_beyond(number, steps)),
        size=CardTotals.of(open_tree(snapshot)) if snapshot.exists() else None,
    )


def is_shown(card: Card) -> bool:
    """Whether a solve may read the card."""
    return card.status is not Status.DEPRECATED


def records_of(folder: Path) -> tuple[Solution, ...]:
    """The last word on every problem of a run, damaged lines left out; also while the run is under way."""
    path = folder / "traces.jsonl"
    lines = read_trace(path) if path.exists() else ()
    found = [line.content for line in lines if isinstance(line.content, Solution)]
    return tuple({(record.problem, record.seed): record for record in found}.values())


def _beyond(number: int, steps: DoneSteps) -> Iterator[Beyond]:
    """From the run that tells how the epoch's tree does, or from the newest before there is one."""
    runs = {step.what: run for step, run in steps.of(RunTotals, "run", "base", "rebase", epoch=number)}
    run = runs.get("rebase") or runs.get("base") or runs.get("run")
    # The name is read from a file: it may lead into the learner's folder only.
    for record in records_of(steps.folder / Path(run.folder).name) if run else ():
        if wrong_at_es(record):
            yield Beyond(record.label or record.problem[:8], record.answer or "", record.expected or "")
