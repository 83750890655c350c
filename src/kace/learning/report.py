"""What a learning run did and what it came to, read from the folder of its tree. An unfinished run has a report too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from kace.cards.card import UNIVERSAL, Card, Difficulty, Status
from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import EpistemicTree
from kace.errors import DataError, one_line
from kace.files import inside
from kace.ladder.record import Solution, read_trace
from kace.ladder.retrieve import estimate
from kace.learning.admit import Demonstrations, Rulings
from kace.learning.blocks import CardRefusal
from kace.learning.commit import InterimAnalysis, Merge, Merges
from kace.learning.costs import RoleBill, read_costs
from kace.learning.effects import Fire, Impact, Lift, LiftBySource, lift_by_source
from kace.learning.propose import Proposals, wrong_at_es
from kace.learning.revise import Revisions
from kace.learning.steps import DoneSteps, LearnManifest, StepName, read_steps
from kace.learning.study import RunTotals
from kace.runs.stats import Interval, wilson

EMPTY = EpistemicTree.of((), ())
TITLES = {
    "run": "before {0.place} cards",
    "base": "with the cards",
    "rebase": "after retirements",
    "dropout": "cards hidden at random",
    "verify": "rerun {0.number} of {0.place}",
}
"""The steps that are tiered runs, and what each is for."""


class RunScore(RunTotals):
    """A tiered run on training problems, finished or under way. Its accuracy has the 95 % Wilson interval."""

    step: StepName
    title: str
    accuracy: float | None
    interval: Interval

    @classmethod
    def scored(cls, step: StepName, run: RunTotals) -> RunScore:
        """The totals of a run, and what it was for; there is no accuracy where nothing was solved."""
        title = TITLES.get(step.what, "{0.what}").format(step)
        share = run.correct / run.problems if run.problems else None
        interval = wilson(run.correct, run.problems)
        return cls(
            **dict(run), step=step, title=title, accuracy=share, interval=interval
        )


def is_shown(card: Card) -> bool:
    """Whether a solve may read the card."""
    return card.status is not Status.DEPRECATED


@dataclass(frozen=True, slots=True)
class CardTotals:
    """How many cards there are, perhaps of one difficulty: those a solve may read, with their tokens, and others."""

    shown: int
    validated: int
    retired: int
    tokens: int
    difficulty: Difficulty | None = None

    @classmethod
    def of(
        cls, cards: Iterable[Card], difficulty: Difficulty | None = None
    ) -> CardTotals:
        """The totals of some cards, or of those of one difficulty among them."""
        every = [card for card in cards if difficulty in (None, card.difficulty_tag)]
        shown = [card for card in every if is_shown(card)]
        validated = sum(card.status is Status.VALIDATED for card in shown)
        return cls(
            len(shown),
            validated,
            len(every) - len(shown),
            sum(map(estimate, shown)),
            difficulty,
        )


@dataclass(frozen=True, slots=True)
class ReportedRefusal:
    """What the teacher wrote and did not enter the tree: a `card`, or an `example` or a `revision` of one."""

    epoch: int
    place: str
    what: str
    refused: CardRefusal


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
    """One round of growing, measuring and revising, with the tree's size at its end."""

    number: int
    scores: tuple[RunScore, ...]
    proposed: int
    waiting: int  # not ruled on yet
    admitted: int
    merged: tuple[Merge, ...]
    refused: tuple[ReportedRefusal, ...]
    revised: tuple[Revised, ...]
    looks: tuple[InterimAnalysis, ...]
    gaps: tuple[
        tuple[str, str], ...
    ]  # a domain, and what no card could be edited to cover
    beyond: tuple[
        tuple[str, str, str], ...
    ]  # wrong at ES: the problem, its answer, and the right one
    size: CardTotals | None


@dataclass(frozen=True, slots=True)
class CardStory:
    """A card of the tree with all that is known of what it does."""

    card: Card
    fire: Fire | None
    lifts: tuple[
        tuple[int, Lift], ...
    ]  # with the epochs that measured them, the oldest first
    lift: Lift | None  # the newest
    outdated: (
        bool  # whether the card was rewritten or moved after the newest measurement
    )
    earned: (
        float | None
    )  # right attempts that it is credited with: lift times attempts that saw it, over all epochs
    place: str
    revisions: tuple[Revised, ...] = ()


@dataclass(frozen=True, slots=True)
class DomainCards:
    """A domain, its share of the training problems (`universal` has none), and its cards by difficulty."""

    name: str
    description: str
    share: float | None
    leaves: tuple[CardTotals, ...]


class Funnel(NamedTuple):
    """What became of everything the teacher proposed."""

    proposed: int
    waiting: int
    admitted: int
    merged: int
    refused: int
    kept: int
    validated: int
    retired: int


@dataclass(frozen=True, slots=True)
class Report:
    """A learning run, as far as it came."""

    name: str
    solver: str
    teacher: str
    train: int
    planned: int  # epochs asked for; 0 where that is not known
    settings: tuple[tuple[str, str], ...]
    finished: bool
    frozen: str | None
    last: str
    under_way: tuple[
        RunScore, ...
    ]  # runs that were begun and not finished, with what is done of them
    size: CardTotals
    epochs: tuple[Epoch, ...]
    branches: tuple[DomainCards, ...]
    cards: tuple[
        CardStory, ...
    ]  # those with the highest lift first, then those not measured
    carried: LiftBySource
    costs: tuple[RoleBill, ...]
    unread: tuple[str, ...]

    @property
    def scores(self) -> tuple[RunScore, ...]:
        """Every run over all training problems, in order: these may be compared."""
        runs = [
            score
            for epoch in self.epochs
            for score in epoch.scores
            if score.step.what != "verify"
        ]
        every = max((score.problems for score in runs), default=0)
        return tuple(score for score in runs if score.problems == every)

    @property
    def refused(self) -> tuple[ReportedRefusal, ...]:
        """Everything refused, in order."""
        return tuple(refusal for epoch in self.epochs for refusal in epoch.refused)

    @property
    def measured(self) -> tuple[CardStory, ...]:
        """The cards whose lift is known, highest first."""
        return tuple(story for story in self.cards if story.lifts)

    @property
    def funnel(self) -> Funnel:
        """From what was proposed to what was kept."""
        names = ("proposed", "waiting", "admitted")
        proposed, waiting, admitted = (
            sum(getattr(epoch, name) for epoch in self.epochs) for name in names
        )
        merged = sum(len(epoch.merged) for epoch in self.epochs)
        size = self.size
        refused = sum(refusal.what == "card" for refusal in self.refused)
        return Funnel(
            proposed,
            waiting,
            admitted,
            merged,
            refused,
            size.shown,
            size.validated,
            size.retired,
        )

    @property
    def usd(self) -> float | None:
        """What the whole run cost; nothing where some price is not known."""
        known = [cost.usd for cost in self.costs if cost.usd is not None]
        return sum(known) if known and len(known) == len(self.costs) else None


def report_of(tree_folder: Path) -> Report:
    """The report of the learning run that made, or is making, a tree. Reads only, and takes no lock."""
    folder = inside(tree_folder, "learn")
    store = TreeStore(tree_folder)
    if not (folder / "learn.json").is_file():
        raise DataError(
            f"{tree_folder} holds no learning run",
            fix="name the --out folder of a `kace learn` command",
        )
    manifest = LearnManifest.kept_in(folder)
    steps = DoneSteps(folder, read_steps(folder / "steps.jsonl"))
    tree = store.load() if (planted := store.cards_path.exists()) else EMPTY
    epochs = tuple(_epoch(number, steps, tree_folder) for number in steps.epochs)
    impacts = [
        (epoch, impact)
        for epoch in steps.epochs
        for _, impact in steps.of(Impact, "impact", epoch=epoch)
    ]
    planned = manifest.settings.get("epochs")
    return Report(
        name=tree_folder.resolve().name,
        solver=str(manifest.config.get("model", "")),
        teacher=manifest.teacher or "",
        train=manifest.train.problems,
        planned=planned if isinstance(planned, int) else 0,
        settings=tuple((name, str(value)) for name, value in manifest.settings.items()),
        finished=any(line.what == "freeze" for line in steps.lines),
        frozen=store.frozen_hash if planted else None,
        last=str(steps.lines[-1].step) if steps.lines else "",
        under_way=tuple(_under_way(steps)),
        size=CardTotals.of(tree),
        epochs=epochs,
        branches=tuple(_domains(tree)),
        cards=_stories(tree, impacts, epochs),
        carried=lift_by_source(tree, (impact for _, impact in impacts), _names(steps)),
        costs=read_costs(folder),
        unread=tuple(steps.unread),
    )


def report_json(report: Report) -> str:
    """The report as one line of JSON, cards and all."""
    return TypeAdapter(Report).dump_json(report).decode()


def _epoch(number: int, steps: DoneSteps, tree: Path) -> Epoch:
    """Everything that an epoch did, as far as it came."""
    proposals = list(steps.of(Proposals, "propose", "imagine", epoch=number))
    ruled = list(steps.of(Rulings, "admit", epoch=number))
    curated = list(steps.of(Revisions, "revise", epoch=number))
    looks = tuple(look for _, look in steps.of(InterimAnalysis, "look", epoch=number))
    accepted = {(look.domain, look.number) for look in looks if look.accepted}
    ruled_on = {step.place for step, _ in ruled}
    snapshot = inside(tree, "snapshots") / f"epoch-{number}.jsonl"
    # The run with the epoch's tree, or the newest before there is one. A name from a file leads into our folder only.
    runs = {
        step.what: run
        for step, run in steps.of(RunTotals, "run", "base", "rebase", epoch=number)
    }
    newest = next(
        (
            Path(runs[what].folder).name
            for what in ("rebase", "base", "run")
            if what in runs
        ),
        "",
    )
    # By cell: first what could not be read as a card, then what was ruled out.
    cards = [(step, found.refused) for step, found in proposals] + [
        (step, found.refused) for step, found in ruled
    ]
    cells = dict.fromkeys(step.place for step, _ in proposals)
    unfit = [
        ("card", step, refused)
        for cell in cells
        for step, refused in cards
        if step.place == cell
    ]
    examples = steps.of(Demonstrations, "illustrate", epoch=number)
    unfit += [("example", step, found.refused) for step, found in examples]
    unfit += [("revision", step, found.refused) for step, found in curated]
    return Epoch(
        number=number,
        scores=tuple(
            RunScore.scored(*done)
            for done in steps.of(RunTotals, *TITLES, epoch=number)
        ),
        proposed=sum(len(found.cards) + len(found.refused) for _, found in proposals),
        waiting=sum(
            len(found.cards) for step, found in proposals if step.place not in ruled_on
        ),
        admitted=sum(len(ruling.admitted) for _, ruling in ruled),
        merged=tuple(
            merge
            for _, merges in steps.of(Merges, "merge", epoch=number)
            for merge in merges.merged
        ),
        refused=tuple(
            ReportedRefusal(number, step.place, what, r)
            for what, step, some in unfit
            for r in some
        ),
        revised=tuple(
            Revised(
                number,
                each.card_id,
                each.action.value,
                each.reason,
                *at,
                accepted=at in accepted,
            )
            for at, found in (
                ((step.place, step.number), found) for step, found in curated
            )
            for each in found.revisions
        ),
        looks=looks,
        gaps=tuple(
            dict.fromkeys(
                (step.place, text) for step, found in curated for text in found.gaps
            )
        ),
        beyond=tuple(
            (each.name, each.answer or "", each.expected or "")
            for each in (_records(steps.folder / newest) if newest else ())
            if wrong_at_es(each)
        ),
        size=CardTotals.of(open_tree(snapshot)) if snapshot.exists() else None,
    )


def _records(folder: Path) -> tuple[Solution, ...]:
    """The last word on every problem of a run, damaged lines left out; also while the run is under way."""
    path = folder / "traces.jsonl"
    found = [line.content for line in (read_trace(path) if path.exists() else ())]
    return tuple(
        {
            (each.problem, each.seed): each
            for each in found
            if isinstance(each, Solution)
        }.values()
    )


def _under_way(steps: DoneSteps) -> Iterator[RunScore]:
    done = {line.step.folder for line in steps.lines}
    for folder in sorted(path.parent for path in steps.folder.glob("*/traces.jsonl")):
        if folder.name not in done:
            step = StepName("", folder.name.replace("-", " "))
            yield RunScore.scored(step, RunTotals.of(_records(folder), folder.name))


def _domains(tree: EpistemicTree) -> Iterator[DomainCards]:
    """The tree by domain, `universal` last. A card of two domains is in both."""
    named = [(domain.name, domain.description, domain.share) for domain in tree.domains]
    for name, about, share in (
        [*named, (UNIVERSAL, "read with every domain", None)] if named else ()
    ):
        here = [card for card in tree if name in card.domain_tags]
        yield DomainCards(
            name, about, share, tuple(CardTotals.of(here, kind) for kind in Difficulty)
        )


def _names(steps: DoneSteps) -> dict[str, str]:
    """What the training problems are called, by their ids: the first base run solved them all."""
    runs = [
        run
        for epoch in steps.epochs
        for _, run in steps.of(RunTotals, "base", epoch=epoch)
    ]
    solved = (
        each
        for run in runs[:1]
        for each in _records(steps.folder / Path(run.folder).name)
    )
    return {each.problem: one_line(each.name) for each in solved}


def _stories(
    tree: EpistemicTree, impacts: Sequence[tuple[int, Impact]], epochs: Sequence[Epoch]
) -> tuple[CardStory, ...]:
    fires = {fire.card_id: fire for _, impact in impacts for fire in impact.fires}
    stories = []
    for name, card in tree.cards.items():
        lifts = tuple(
            (epoch, lift)
            for epoch, found in impacts
            for lift in found.lifts
            if lift.card_id == name
        )
        wanted = tuple(
            each for epoch in epochs for each in epoch.revised if each.card_id == name
        )
        changed = [
            each.epoch
            for each in wanted
            if each.accepted and each.action in ("EDIT", "RELOCATE")
        ]
        measured, newest = lifts[-1] if lifts else (math.inf, None)
        earned = sum(lift.effect * lift.shown for _, lift in lifts) if lifts else None
        place = f"{card.difficulty_tag.value} / {', '.join(card.domain_tags)}"
        outdated = max(changed, default=0) >= measured
        stories.append(
            CardStory(
                card, fires.get(name), lifts, newest, outdated, earned, place, wanted
            )
        )
    return tuple(
        sorted(
            stories,
            key=lambda s: (-s.lift.effect if s.lift else math.inf, s.card.card_id),
        )
    )
