"""What a learning run did and what it came to, read from the folder of its tree. An unfinished run has a report too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from kace.errors import DataError
from kace.learner.epoch import Epoch, Steps, epoch_of, records_of, size_of
from kace.learner.findings import Branch, CardStory, Cost, Funnel, Leaf, Measured, Refusal, Score, Size, is_shown
from kace.learner.lift import Fire, Impact
from kace.learner.notebook import Step, read_steps
from kace.retrieval.retriever import estimate
from kace.tree.card import UNIVERSAL, Card, Difficulty, Status
from kace.tree.store import TreeStore
from kace.tree.tree import EpistemicTree
from kace.words import counted

EMPTY = EpistemicTree.of((), ())


@dataclass(frozen=True, slots=True)
class Report:
    """A learning run, as far as it came."""

    name: str
    solver: str
    teacher: str
    train: int
    """Training problems."""
    planned: int
    """Epochs asked for; 0 where that is not known."""
    settings: tuple[tuple[str, str], ...]
    finished: bool
    frozen: str | None
    """The content hash of the frozen tree."""
    last: str
    """The last step done; empty where none was."""
    under_way: tuple[Score, ...]
    """Runs that were begun and not finished, with what is done of them."""
    size: Size
    epochs: tuple[Epoch, ...]
    branches: tuple[Branch, ...]
    cards: tuple[CardStory, ...]
    """Those with the highest lift first, then those not measured."""
    costs: tuple[Cost, ...]
    unread: tuple[str, ...]
    """Steps that this version cannot read."""

    @property
    def scores(self) -> tuple[Score, ...]:
        """Every run over all training problems, in order."""
        return tuple(score for epoch in self.epochs for score in epoch.scores if score.whole)

    @property
    def refused(self) -> tuple[Refusal, ...]:
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
            validated=sum(story.card.status is Status.VALIDATED for story in self.cards),
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
    manifest = _lenient(folder / "learn.json", _Manifest)
    steps = Steps(folder, read_steps(folder / "steps.jsonl"))
    store = TreeStore(tree_folder)
    planted = store.cards_path.exists()
    tree = store.load() if planted else EMPTY
    epochs = tuple(epoch_of(number, steps, store) for number in steps.epochs)
    return Report(
        name=tree_folder.resolve().name,
        solver=manifest.config.model,
        teacher=manifest.teacher or "",
        train=manifest.train.problems,
        planned=_planned(manifest),
        settings=tuple((name, str(value)) for name, value in manifest.settings.items()),
        finished=any(line.what == "freeze" for line in steps.lines),
        frozen=store.frozen_hash if planted else None,
        last=str(steps.lines[-1].step) if steps.lines else "",
        under_way=tuple(_under_way(steps)),
        size=size_of(tree),
        epochs=epochs,
        branches=_branches(tree),
        cards=_stories(tree, steps, epochs),
        costs=_costs(folder),
        unread=tuple(steps.unread),
    )


def summary(report: Report) -> str:
    """What came of the run, in a few sentences."""
    found = report.funnel
    if not found.proposed:
        return "The teacher proposed no card." if report.finished else "No card has been proposed yet."
    proven = f"{found.validated} of them with" if found.validated else "none of them with"
    return (
        f"From {counted(report.train, 'training problem')} the teacher wrote {counted(found.proposed, 'card')}. "
        f"{found.admitted} passed the gate; {found.kept} {'is' if found.kept == 1 else 'are'} in the tree, "
        f"{proven} a lift beyond chance."
    )


def progress(report: Report) -> str:
    """How far an unfinished run came."""
    planned = f" of {report.planned}" if report.planned else ""
    epoch = f", in epoch {report.epochs[-1].number}{planned}" if report.epochs else ""
    reached = f"The last step done: {report.last}." if report.last else "No step is done yet."
    running = [f"Under way: {score.step}, {counted(score.problems, 'problem')} done." for score in report.under_way]
    return " ".join((f"Not finished{epoch}.", reached, *running, "The same command goes on from here."))


def report_json(report: Report) -> str:
    """The report as one line of JSON, cards and all."""
    return TypeAdapter(Report).dump_json(report).decode()


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Config(_Lenient):
    model: str = ""


class _Train(_Lenient):
    problems: int = 0


class _Manifest(_Lenient):
    config: _Config = _Config()
    teacher: str | None = None
    train: _Train = _Train()
    settings: dict[str, JsonValue] = {}


class _RoleBill(_Lenient):
    calls: int = 0
    failed: int | None = None
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    usd: float | None = None


class _Bill(_Lenient):
    roles: dict[str, _RoleBill] = {}


L = TypeVar("L", bound=_Lenient)


def _lenient(path: Path, kind: type[L]) -> L:
    """What a file says, as far as it can be read."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return kind()


def _planned(manifest: _Manifest) -> int:
    epochs = manifest.settings.get("epochs")
    return epochs if isinstance(epochs, int) else 0


def _under_way(steps: Steps) -> Iterator[Score]:
    done = {str(line.step).replace(" ", "-") for line in steps.lines}
    for path in sorted(steps.folder.glob("*/traces.jsonl")):
        name = path.parent.name
        if name not in done:
            records = records_of(path.parent)
            right = sum(bool(record.correct) for record in records)
            past = sum(bool(record.recalls) for record in records)
            calls = sum(record.paper_calls for record in records)
            yield Score(Step("", name.replace("-", " ")), len(records), right, past, calls)


def _branches(tree: EpistemicTree) -> tuple[Branch, ...]:
    """The tree by domain, `universal` last. A card of two domains is in both."""
    named = [(domain.name, domain.description, domain.share) for domain in tree.domains]
    every = [*named, (UNIVERSAL, "read with every domain", None)] if named else []
    return tuple(Branch(name, about, share, _leaves(name, tree)) for name, about, share in every)


def _leaves(domain: str, tree: EpistemicTree) -> tuple[Leaf, ...]:
    here = [card for card in tree if domain in card.domain_tags]
    return tuple(_leaf(kind, [card for card in here if card.difficulty_tag is kind]) for kind in Difficulty)


def _leaf(difficulty: Difficulty, cards: list[Card]) -> Leaf:
    shown = [card for card in cards if is_shown(card)]
    return Leaf(
        difficulty=difficulty,
        shown=len(shown),
        validated=sum(card.status is Status.VALIDATED for card in shown),
        retired=len(cards) - len(shown),
        tokens=sum(map(estimate, shown)),
    )


def _stories(tree: EpistemicTree, steps: Steps, epochs: Sequence[Epoch]) -> tuple[CardStory, ...]:
    fires: dict[str, Fire] = {}
    lifts: dict[str, list[Measured]] = {}
    for epoch in steps.epochs:
        for _, impact in steps.of(Impact, "impact", epoch=epoch):
            fires |= {fire.card_id: fire for fire in impact.fires}
            for lift in impact.lifts:
                lifts.setdefault(lift.card_id, []).append(Measured(epoch, lift))
    revised = [each for epoch in epochs for each in epoch.revised]
    told = [
        CardStory(
            card=card,
            fire=fires.get(card.card_id),
            lifts=tuple(lifts.get(card.card_id, ())),
            revisions=tuple(each for each in revised if each.card_id == card.card_id),
        )
        for card in tree
    ]
    return tuple(sorted(told, key=_worth))


def _worth(story: CardStory) -> tuple[bool, float, str]:
    return story.lift is None, -story.lift.lift.effect if story.lift else 0.0, story.card.card_id


def _costs(folder: Path) -> tuple[Cost, ...]:
    kept = next((path for name in ("bill.json", "ledger.json") if (path := folder / name).exists()), None)
    roles = _lenient(kept, _Bill).roles if kept else {}
    return tuple(Cost(role=role, **dict(used)) for role, used in roles.items())
