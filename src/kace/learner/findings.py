"""What a learning run came to, as plain values: runs, cards, refusals, sizes and costs."""

from __future__ import annotations

from dataclasses import dataclass

from kace.evaluation.stats import Interval, wilson
from kace.learner.lift import Fire, Lift
from kace.learner.notebook import Step
from kace.learner.practice import Exercised
from kace.learner.verdicts import Refused
from kace.tree.card import Card, Difficulty, Status

RUNS = ("run", "base", "rebase", "dropout", "verify")
"""The steps that are tiered runs."""
VERIFY = "verify"
DROPOUT = "dropout"
_TITLES = {"base": "with the cards", "rebase": "after retirements", DROPOUT: "cards hidden at random"}


@dataclass(frozen=True, slots=True)
class Score:
    """A tiered run on training problems, finished or under way."""

    step: Step
    problems: int
    """Those done so far, where the run is not finished."""
    correct: int
    escalated: int
    """Problems that went past ES, where the tree can help."""
    paper_calls: int

    @classmethod
    def of(cls, step: Step, run: Exercised) -> Score:
        """The score of a finished run."""
        return cls(step, run.problems, run.correct, run.escalated, run.paper_calls)

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
        if self.step.what == VERIFY:
            return f"rerun {self.step.number} of {self.step.place}"
        if self.step.what == "run":
            return f"before {self.step.place} cards"
        return _TITLES.get(self.step.what, self.step.what)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a tree is."""

    shown: int
    """Cards that may be shown."""
    retired: int
    tokens: int
    """Of the cards that may be shown, estimated from their length."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something the teacher wrote that did not enter the tree, and where it would have gone."""

    epoch: int
    place: str
    what: str
    """`card`; `revision` where a card stayed as it was, `example` where it stayed without."""
    refused: Refused


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
class Measured:
    """A card's lift, and the epoch that measured it."""

    epoch: int
    lift: Lift


@dataclass(frozen=True, slots=True)
class CardStory:
    """A card of the tree with all that is known of what it does."""

    card: Card
    fire: Fire | None
    """How often it was shown when that was last counted; nothing where it never was."""
    lifts: tuple[Measured, ...]
    """Oldest first."""
    revisions: tuple[Revised, ...] = ()
    """What the curator wanted with it, epoch by epoch."""

    @property
    def lift(self) -> Measured | None:
        """The newest measurement."""
        return self.lifts[-1] if self.lifts else None

    @property
    def outdated(self) -> bool:
        """Whether the card was rewritten or moved after the newest measurement."""
        changed = [each.epoch for each in self.revisions if each.accepted and each.action in ("EDIT", "RELOCATE")]
        return self.lift is not None and max(changed, default=0) >= self.lift.epoch

    @property
    def earned(self) -> float | None:
        """Right attempts that the card is credited with: its lift times the attempts that saw it, over all epochs."""
        return sum(m.lift.effect * m.lift.shown for m in self.lifts) if self.lifts else None

    @property
    def place(self) -> str:
        """Where the card lives."""
        return f"{self.card.difficulty_tag.value} / {', '.join(self.card.domain_tags)}"


@dataclass(frozen=True, slots=True)
class Leaf:
    """The cards of one difficulty in one domain."""

    difficulty: Difficulty
    shown: int
    validated: int
    retired: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A domain and its leaves, one for each difficulty."""

    name: str
    description: str
    share: float | None
    """The part of the training problems it holds; nothing for `universal`, which is read with every domain."""
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class Funnel:
    """What became of everything the teacher proposed."""

    proposed: int
    waiting: int
    """Proposed, but not ruled on yet."""
    refused: int
    admitted: int
    merged: int
    """Admitted, but the same as another card."""
    retired: int
    kept: int
    """Cards that the tree shows."""
    validated: int
    """Of those, the ones whose lift is beyond chance."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one role used, over every time the command was run."""

    role: str
    calls: int
    failed: int | None
    """`None` where failures were not counted."""
    input: int
    cached: int
    written: int
    output: int
    usd: float | None
    """`None` where the price is not known."""


def is_shown(card: Card) -> bool:
    """Whether a solve may read the card."""
    return card.status is not Status.DEPRECATED
