"""What a learning run did and what it came to, read from the folder of its tree. An unfinished run has a report too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from kace.errors import DataError
from kace.learner.costs import RoleBill, read_costs
from kace.learner.effects import Fire, Impact, Lift
from kace.learner.epoch import CardTotals, Epoch, ReportedRefusal, Revised, RunScore, epoch_of, records_of
from kace.learner.resources import RunTotals
from kace.learner.steps import DoneSteps, LearnManifest, StepName, read_steps
from kace.tree.card import UNIVERSAL, Card, Difficulty
from kace.tree.store import TreeStore
from kace.tree.tree import EpistemicTree
from kace.words import counted

EMPTY = EpistemicTree.of((), ())


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
    lifts: tuple[Measured, ...]
    """Oldest first."""
    revisions: tuple[Revised, ...] = ()

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
class DomainCards:
    """A domain, and its cards by difficulty."""

    name: str
    description: str
    share: float | None
    """The part of the training problems it holds; nothing for `universal`, which is read with every domain."""
    leaves: tuple[CardTotals, ...]


class Funnel(NamedTuple):
    """What became of everything the teacher proposed, in the words of an epoch and of a tree's size."""

    proposed: int
    waiting: int
    refused: int
    admitted: int
    merged: int
    retired: int
    kept: int
    validated: int


@dataclass(frozen=True, slots=True)
class Report:
    """A learning run, as far as it came: training problems, the frozen tree's hash, the last step, unreadable steps."""

    name: str
    solver: str
    teacher: str
    train: int
    planned: int
    """Epochs asked for; 0 where that is not known."""
    settings: tuple[tuple[str, str], ...]
    finished: bool
    frozen: str | None
    last: str
    under_way: tuple[RunScore, ...]
    """Runs that were begun and not finished, with what is done of them."""
    size: CardTotals
    epochs: tuple[Epoch, ...]
    branches: tuple[DomainCards, ...]
    cards: tuple[CardStory, ...]
    """Those with the highest lift first, then those not measured."""
    costs: tuple[RoleBill, ...]
    unread: tuple[str, ...]

    @property
    def scores(self) -> tuple[RunScore, ...]:
        """Every run over all training problems, in order."""
        return tuple(score for epoch in self.epochs for score in epoch.scores if score.whole)

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
        return Funnel(
            proposed=sum(epoch.proposed for epoch in self.epochs),
            waiting=sum(epoch.waiting for epoch in self.epochs),
            refused=sum(refusal.what == "card" for refusal in self.refused),
            admitted=sum(epoch.admitted for epoch in self.epochs),
            merged=sum(len(epoch.merged) for epoch in self.epochs),
            retired=self.size.retired,
            kept=self.size.shown,
            validated=self.size.validated,
        )

    @property
    def usd(self) -> float | None:
        """What the whole run cost; nothing where some price is not known."""
        known = [cost.usd for cost in self.costs if cost.usd is not None]
        return sum(known) if known and len(known) == len(self.costs) else None


def report_of(tree_folder: Path) -> Report:
    """The report of the learning run that made, or is making, a tree. Reads only, and takes no lock."""
    folder = tree_folder / "learn"
    if not (folder / "learn.json").is_file():
        raise DataError(f"{tree_folder} holds no learning run", fix="name the --out folder of a `kace learn` command")
    try:
        manifest = LearnManifest.model_validate_json((folder / "learn.json").read_bytes())
    except (OSError, ValidationError):
        manifest = LearnManifest()
    steps = DoneSteps(folder, read_steps(folder / "steps.jsonl"))
    store = TreeStore(tree_folder)
    planted = store.cards_path.exists()
    tree = store.load() if planted else EMPTY
    epochs = tuple(epoch_of(number, steps, store) for number in steps.epochs)
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
        cards=_stories(tree, steps, epochs),
        costs=read_costs(folder),
        unread=tuple(steps.unread),
    )


def summary(report: Report) -> str:
    """What came of the run, in a few sentences."""
    found = report.funnel
    if not found.proposed:
        return "The teacher proposed no card." if report.finished else "No card has been proposed yet."
    return (
        f"From {counted(report.train, 'training problem')} the teacher wrote {counted(found.proposed, 'card')}. "
        f"{found.admitted} passed the gate; {found.kept} {'is' if found.kept == 1 else 'are'} in the tree, "
        f"{found.validated or 'none'} of them with a lift beyond chance."
    )


def progress(report: Report) -> str:
    """How far an unfinished run came."""
    planned = f" of {report.planned}" if report.planned else ""
    epoch = f", in epoch {report.epochs[-1].number}{planned}" if report.epochs else ""
    reached = f"The last step done: {report.last}." if report.last else "No step is done yet."
    running = [f"Under way: {score.step}, {counted(score.problems, 'problem')} done." for score in report.under_way]
    return " ".join((f"Not finished{epoch}.", reached, *running, "The same command resumes it."))


def report_json(report: Report) -> str:
    """The report as one line of JSON, cards and all."""
    return TypeAdapter(Report).dump_json(report).decode()


def _under_way(steps: DoneSteps) -> Iterator[RunScore]:
    done = {line.step.folder for line in steps.lines}
    for folder in sorted(path.parent for path in steps.folder.glob("*/traces.jsonl")):
        if folder.name not in done:
            totals = RunTotals.of(records_of(folder), folder.name)
            yield RunScore(step=StepName("", folder.name.replace("-", " ")), **dict(totals))


def _domains(tree: EpistemicTree) -> Iterator[DomainCards]:
    """The tree by domain, `universal` last. A card of two domains is in both."""
    named = [(domain.name, domain.description, domain.share) for domain in tree.domains]
    for name, about, share in [*named, (UNIVERSAL, "read with every domain", None)] if named else ():
        here = [card for card in tree if name in card.domain_tags]
        yield DomainCards(name, about, share, tuple(CardTotals.of(here, kind) for kind in Difficulty))


def _stories(tree: EpistemicTree, steps: DoneSteps, epochs: Sequence[Epoch]) -> tuple[CardStory, ...]:
    fires: dict[str, Fire] = {}
    lifts: dict[str, list[Measured]] = {}
    for epoch in steps.epochs:
        for _, impact in steps.of(Impact, "impact", epoch=epoch):
            fires |= {fire.card_id: fire for fire in impact.fires}
            for lift in impact.lifts:
                lifts.setdefault(lift.card_id, []).append(Measured(epoch, lift))
    revised = [each for epoch in epochs for each in epoch.revised]
    stories = []
    for card in tree:
        name, wanted = card.card_id, tuple(each for each in revised if each.card_id == card.card_id)
        stories.append(CardStory(card, fires.get(name), tuple(lifts.get(name, ())), wanted))
    return tuple(sorted(stories, key=lambda s: (-s.lift.lift.effect if s.lift else math.inf, s.card.card_id)))
