"""Which epoch to use: every snapshot, and the ladder alone, tried on problems that the learner never saw."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from pydantic import JsonValue, ValidationError

from kace.baselines.evaluate import Trial, solve_trial
from kace.cards.store import TreeStore, open_tree
from kace.cards.tree import EpistemicTree
from kace.config import Config, first_url
from kace.errors import DataError, UsageError
from kace.files import inside, lock_folder, read_plain
from kace.ladder.ladder import Observer
from kace.ladder.record import Solution
from kace.ladder.session import Session, open_session
from kace.learning.steps import ProblemSet, StepResult
from kace.learning.study import LearnManifest, require_answers
from kace.models.base import ChatModel
from kace.models.cache import CallStore
from kace.problems import ALL, Dataset, Problem, problems_hash
from kace.runs.compare import Comparison, compare, compare_all, p_text
from kace.runs.manifest import manifest_of
from kace.runs.metrics import metrics_of
from kace.runs.run import Run
from kace.runs.table import Table, row_of

AUTHOR = "kace learn select"
URLS = ("base_url", "anthropic_base_url", "teacher_base_url")
SNAPSHOTS = "snapshots"


class EpochTree(NamedTuple):
    """An epoch and its tree; epoch 0 has none: it is the ladder alone."""

    epoch: int
    tree: EpistemicTree | None


@dataclass(frozen=True, slots=True)
class Validation:
    """What every epoch solves, and where the runs are kept."""

    folder: Path
    problems: tuple[Problem, ...]
    config: Config
    seeds: int = 1

    @property
    def drawn(self) -> tuple[int, ...]:
        """The seeds, from the configured one on."""
        return tuple(range(self.config.seed, self.config.seed + self.seeds))

    def run_folder(self, epoch: EpochTree) -> Path:
        """Where an epoch's run is kept: the same for the same first seed, however many seeds are asked for."""
        return inside(
            self.folder,
            f"epoch-{epoch.epoch}"
            + (f"-seed-{self.config.seed}" if self.config.seed else ""),
        )


class SelectObserver(Observer, Protocol):
    """Hears how the runs go."""

    def run_started(
        self, epoch: EpochTree, solves: int, done: Sequence[Solution]
    ) -> None:
        """A run begins, with some of its solves made before."""

    def run_done(self, epoch: EpochTree, arm: Table) -> None:
        """A run is complete."""


class Against(StepResult):
    """One epoch against another, solve by solve. p is two-sided and exact; a cluster's solves flip together."""

    gained: int
    lost: int
    p: float

    @classmethod
    def of(cls, base: Table, other: Table, found: Comparison) -> Against:
        """What the other arm gained and lost over the base."""
        before = {(row.problem, row.seed): bool(row.correct) for row in base}
        changes = [bool(row.correct) - before[row.problem, row.seed] for row in other]
        return cls(gained=changes.count(1), lost=changes.count(-1), p=found.p)


class EpochRow(StepResult):
    """One epoch, its tree by content hash, and how it did against the ladder alone and the epoch before."""

    epoch: int
    tree: str | None
    cards: int
    right: int
    n: int
    low: float
    high: float
    ladder: Against | None
    previous: Against | None
    calls: float  # a problem, by the paper's count
    card_tokens: (
        float  # a solve, over all it read of the tree; one that left at ES read nothing
    )
    failed: int  # solves that lost a call to the provider

    @property
    def accuracy(self) -> float:
        """The share of solves with the right answer."""
        return self.right / self.n


class Selection(StepResult):
    """The decision, with everything it rests on."""

    v: Literal[1] = 1
    epoch: int
    tree: (
        str | None
    )  # where the chosen tree lies inside the learned one; nothing where the ladder alone did best
    p: (
        float | None
    )  # against the ladder alone, adjusted for the choice among the epochs
    said: str
    rows: tuple[EpochRow, ...]
    seeds: tuple[int, ...]
    validation: ProblemSet
    config: dict[str, JsonValue]


def read_learned(tree: Path) -> LearnManifest:
    """The learner's record in a tree that `kace learn` made."""
    path = inside(tree, "learn") / "learn.json"
    try:
        learned = LearnManifest.model_validate_json(read_plain(path))
    except OSError:
        raise UsageError(
            f"{tree} is no tree that kace learn made",
            fix="name the --out of kace learn",
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        wrong = f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}"
    else:
        wrong = "train.ids: field required" if learned.train.ids is None else ""
    if wrong:
        raise DataError(f"{path}: {wrong}", fix="was it edited? learn the tree again")
    return learned


def epochs_of(tree: Path) -> tuple[EpochTree, ...]:
    """The ladder alone, then every epoch there is a snapshot of."""
    kept = inside(tree, SNAPSHOTS).glob("epoch-*")
    matches = (re.fullmatch(r"epoch-([1-9][0-9]*)\.jsonl", path.name) for path in kept)
    names = {int(match[1]): match[0] for match in matches if match}
    if not names:
        raise UsageError(
            f"{tree} has no snapshot of an epoch",
            fix="finish an epoch first: kace learn --out TREE",
        )
    found = (
        EpochTree(epoch, open_tree(tree / SNAPSHOTS / name))
        for epoch, name in sorted(names.items())
    )
    return (EpochTree(0, None), *found)


def solver_settings(
    learned: LearnManifest, given: Mapping[str, object], ambient: Config
) -> dict[str, object]:
    """The learner's settings of the solver, and over them those given now."""
    kept = dict(learned.config)
    if unknown := next((name for name in kept if name not in Config.model_fields), ""):
        raise DataError(
            f"learn.json has the setting '{unknown}', which this kace does not know",
            fix="upgrade kace",
        )
    for name in URLS:
        # A manifest has no credentials: the same address where they are at hand is the better one.
        here = getattr(ambient, name)
        if here is not None and first_url(here) == kept.get(name):
            del kept[name]
    wanted = {name: value for name, value in given.items() if value is not None}
    if wanted.get("model", kept.get("model")) != kept.get("model"):
        kept.pop("base_url", None)  # another model is not asked at that one's server
    return {**kept, **wanted}


def check_validation(problems: Sequence[Problem], learned: LearnManifest) -> None:
    """Refuse problems that cannot be graded, and any that the tree was learned from."""
    require_answers(problems, "validation")
    trained = frozenset(learned.train.ids or ())
    if shared := [problem.name for problem in problems if problem.id in trained]:
        raise DataError(
            f"{len(shared)} of {len(problems)} validation problems appear in the training set, such as {shared[0]!r}",
            fix="remove them: a tree looks better on what it was learned from",
        )


async def try_epochs(
    validation: Validation,
    epochs: Sequence[EpochTree],
    *,
    model: ChatModel | None = None,
    observer: SelectObserver | None = None,
) -> tuple[Table, ...]:
    """Every epoch's solves. What was solved before is read, no call is paid for twice, and one budget holds for all."""
    with ExitStack() as held:
        held.callback(os.close, lock_folder(validation.folder))
        calls = CallStore(inside(validation.folder, "calls"))
        held.callback(calls.close)
        async with open_session(
            validation.config, calls=calls, model=model, observer=observer
        ) as session:
            return tuple(
                [
                    await _arm(epoch, validation, session, calls, observer)
                    for epoch in epochs
                ]
            )


async def _arm(
    epoch: EpochTree,
    validation: Validation,
    session: Session,
    calls: CallStore,
    observer: SelectObserver | None,
) -> Table:
    problems = validation.problems
    config = validation.config
    data = Dataset(
        "validation", ALL, problems, problems_hash(problems), "the validation problems"
    )
    trial = Trial(
        "tiered" if epoch.tree is None else "kace",
        data,
        config,
        validation.seeds,
        epoch.tree,
    )
    wanted = {
        (problem.id, seed): problem for seed in validation.drawn for problem in problems
    }
    try:  # held to the solver and the tree alone: further problems and seeds may join
        opened = Run(
            validation.run_folder(epoch), manifest_of(config, trial.tree), calls=calls
        )
    except UsageError as error:
        fix = f"repeat those settings, or remove {validation.folder} to select with others"
        raise UsageError(error.message, fix=fix) from None
    with opened as run:
        if observer:
            done = (
                run.finished(problem, seed) for (_, seed), problem in wanted.items()
            )
            observer.run_started(epoch, len(wanted), list(filter(None, done)))
        await solve_trial(trial, run, session)
        rows = (
            row_of(record)
            for record in run.records()
            if (record.problem, record.seed) in wanted
        )
        arm = Table.of(rows, name=f"epoch {epoch.epoch}")
    if observer:
        observer.run_done(epoch, arm)
    return arm


def selection_of(
    validation: Validation, epochs: Sequence[EpochTree], arms: Sequence[Table]
) -> Selection:
    """The epoch with the highest accuracy, the smaller one where two are equal. The first arm is the ladder alone."""
    ladder = compare_all(arms[0], arms[1:])
    rows = [_row(epochs[0], arms[0], None, None)]
    for (before, arm), epoch, found in zip(
        pairwise(arms), epochs[1:], ladder, strict=True
    ):
        last = Against.of(before, arm, compare(before, arm))
        rows.append(_row(epoch, arm, Against.of(arms[0], arm, found), last))
    ranked = sorted(rows, key=lambda row: (-row.right, row.epoch))
    best = ranked[0]
    problems = validation.problems
    chosen = ladder[rows.index(best) - 1] if best.epoch else None
    return Selection(
        epoch=best.epoch,
        tree=f"{SNAPSHOTS}/epoch-{best.epoch}.jsonl" if best.epoch else None,
        p=chosen.adjusted if chosen else None,
        said=_said(best if chosen else ranked[1], chosen, ladder[0].size),
        rows=tuple(rows),
        seeds=validation.drawn,
        validation=ProblemSet.of(problems),
        config=json.loads(json.dumps(manifest_of(validation.config)["config"])),
    )


def tree_to_keep(chosen: int, epochs: Sequence[EpochTree]) -> EpistemicTree:
    """The chosen epoch's tree. Of epoch 0, the last one's domains without a card: it solves as the ladder alone."""
    found = next(epoch.tree for epoch in epochs if epoch.epoch == chosen)
    last = epochs[-1].tree
    return (
        EpistemicTree.of(last.domains if last is not None else (), ())
        if found is None
        else found
    )


def keep_tree(out: Path, tree: EpistemicTree, note: str) -> str:
    """Put a tree into a store of its own, frozen, and return its content hash. Doing it again changes nothing."""
    if not TreeStore(out).cards_path.exists():
        TreeStore.create(out, tree.domains, tree, author=AUTHOR, note=note)
    store = TreeStore.open(out)
    if store.load() != tree:
        raise UsageError(
            f"{out} already holds another tree", fix="choose another --out"
        )
    return store.freeze(author=AUTHOR)


def _row(
    epoch: EpochTree, arm: Table, ladder: Against | None, previous: Against | None
) -> EpochRow:
    found = metrics_of(arm)
    assert found.wilson is not None, "every validation problem has its answer"
    return EpochRow(
        epoch=epoch.epoch,
        tree=None if epoch.tree is None else epoch.tree.content_hash(),
        cards=len(epoch.tree.shown) if epoch.tree is not None else 0,
        right=sum(seed.right for seed in found.seeds),
        n=found.solves,
        low=found.wilson.low,
        high=found.wilson.high,
        ladder=ladder,
        previous=previous,
        calls=found.paper_calls,
        card_tokens=found.card_tokens.read if found.card_tokens else 0.0,
        failed=found.failed,
    )


def _said(row: EpochRow, found: Comparison | None, size: str) -> str:
    """The chosen epoch against no tree; or that no epoch did better, with the nearest one."""
    gained, lost = (row.ladder.gained, row.ladder.lost) if row.ladder else (0, 0)
    if found is None:
        return (
            f"No epoch did better than the ladder alone on these {size} (the nearest, epoch {row.epoch},"
            f" gained {gained} and lost {lost}): solve without a tree."
        )
    figures = f"{gained} gained, {lost} lost, {found.test} {p_text(found.p)}"
    if found.compared > 1:
        figures += (
            f", {p_text(found.adjusted)} after the choice among {found.compared} epochs"
        )
    if found.distinguishable:
        return f"Epoch {row.epoch} is better than no tree on these {size}: {figures}."
    return f"Epoch {row.epoch} did best, but {size} cannot tell it from no tree: {figures}."
