"""Choose an epoch of a learned tree: try every snapshot, and the ladder alone, on problems the learner never saw."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
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
        first = self.config.seed
        return tuple(range(first, first + self.seeds))

    def run_folder(self, epoch: EpochTree) -> Path:
        """Return the folder of an epoch's run: the same for the same first seed."""
        seed = f"-seed-{self.config.seed}" if self.config.seed else ""
        return inside(self.folder, f"epoch-{epoch.epoch}{seed}")


class SelectObserver(Observer, Protocol):
    """Receives the progress of the runs."""

    def run_started(
        self,
        epoch: EpochTree,
        solves: int,
        done: Sequence[Solution],
    ) -> None:
        """Called when a run begins, with the solves made before."""

    def run_done(
        self,
        epoch: EpochTree,
        arm: Table,
    ) -> None:
        """Called when a run is complete."""


class Against(StepResult):
    """One epoch against another, solve by solve."""

    gained: int
    lost: int
    p: float  # two-sided and exact; the solves of a cluster flip together

    @classmethod
    def of(
        cls,
        base: Table,
        other: Table,
        found: Comparison,
    ) -> Against:
        """Return what the other run gained and lost over the base."""
        before = {(row.problem, row.seed): bool(row.correct) for row in base}
        gained = 0
        lost = 0
        for row in other:
            change = bool(row.correct) - before[row.problem, row.seed]
            gained += change > 0
            lost += change < 0
        return cls(
            gained=gained,
            lost=lost,
            p=found.p,
        )


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
    calls: float  # per problem, by the paper's count
    card_tokens: float  # read of the tree, per solve
    failed: int  # solves that lost a call to the provider

    @property
    def accuracy(self) -> float:
        """The share of solves with the right answer."""
        return self.right / self.n


class Selection(StepResult):
    """The decision, with everything it rests on."""

    v: Literal[1] = 1
    epoch: int
    tree: str | None  # the chosen snapshot; `None` if the ladder alone did best
    p: (
        float | None
    )  # against the ladder alone, adjusted for the choice among epochs
    said: str  # the decision in a sentence
    rows: tuple[EpochRow, ...]
    seeds: tuple[int, ...]
    validation: ProblemSet
    config: dict[str, JsonValue]


def read_learned(tree: Path) -> LearnManifest:
    """Read the learner's record in a tree that `kace learn` made."""
    path = inside(tree, "learn") / "learn.json"
    wrong = ""
    try:
        learned = LearnManifest.model_validate_json(read_plain(path))
        if learned.train.ids is None:
            wrong = "train.ids: field required"
    except OSError:
        raise UsageError(
            f"{tree} is no tree that kace learn made",
            fix="name the --out of kace learn",
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        wrong = f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}"
    if wrong:
        raise DataError(
            f"{path}: {wrong}", fix="was it edited? learn the tree again"
        )
    return learned


def epochs_of(tree: Path) -> tuple[EpochTree, ...]:
    """Return the ladder alone, then every epoch with a snapshot."""
    numbers = []
    for path in inside(tree, SNAPSHOTS).glob("epoch-*"):
        match = re.fullmatch(r"epoch-([1-9][0-9]*)\.jsonl", path.name)
        if match:
            numbers.append(int(match[1]))
    if not numbers:
        raise UsageError(
            f"{tree} has no snapshot of an epoch",
            fix="finish an epoch first: kace learn --out TREE",
        )
    epochs = [EpochTree(0, None)]
    for number in sorted(numbers):
        snapshot = open_tree(tree / SNAPSHOTS / f"epoch-{number}.jsonl")
        epochs.append(EpochTree(number, snapshot))
    return tuple(epochs)


def solver_settings(
    learned: LearnManifest,
    given: Mapping[str, object],
    ambient: Config,
) -> dict[str, object]:
    """Return the learner's settings of the solver, overridden by those given now."""
    kept = dict(learned.config)
    for name in kept:
        if name not in Config.model_fields:
            raise DataError(
                f"learn.json has the setting '{name}', which this kace does not know",
                fix="upgrade kace",
            )
    for name in URLS:
        # A manifest has no credentials, so the same address from the environment is preferred.
        here = getattr(ambient, name)
        if here is not None and first_url(here) == kept.get(name):
            del kept[name]
    wanted = {name: value for name, value in given.items() if value is not None}
    if wanted.get("model", kept.get("model")) != kept.get("model"):
        kept.pop("base_url", None)  # another model has another server
    return {**kept, **wanted}


def check_validation(
    problems: Sequence[Problem], learned: LearnManifest
) -> None:
    """Refuse problems that cannot be graded, and any that the tree was learned from."""
    require_answers(problems, "validation")
    trained = frozenset(learned.train.ids or ())
    shared = [problem.name for problem in problems if problem.id in trained]
    if shared:
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
    """Solve the problems with every epoch, under one budget. What was solved before is read."""
    arms = []
    with ExitStack() as held:
        held.callback(os.close, lock_folder(validation.folder))
        calls = CallStore(inside(validation.folder, "calls"))
        held.callback(calls.close)
        opening = open_session(
            validation.config,
            calls=calls,
            model=model,
            observer=observer,
        )
        async with opening as session:
            for epoch in epochs:
                arm = await _solve_epoch(
                    epoch, validation, session, calls, observer
                )
                arms.append(arm)
    return tuple(arms)


async def _solve_epoch(
    epoch: EpochTree,
    validation: Validation,
    session: Session,
    calls: CallStore,
    observer: SelectObserver | None,
) -> Table:
    problems = validation.problems
    digest = problems_hash(problems)
    data = Dataset(
        "validation", ALL, problems, digest, "the validation problems"
    )
    system = "tiered" if epoch.tree is None else "kace"
    trial = Trial(system, data, validation.config, validation.seeds, epoch.tree)
    wanted = {problem.id for problem in problems}
    rows = []
    with _open_run(epoch, validation, calls) as run:
        if observer:
            done = []
            for seed in validation.drawn:
                done += [run.finished(problem, seed) for problem in problems]
            known = [solution for solution in done if solution]
            observer.run_started(epoch, len(done), known)
        await solve_trial(trial, run, session)
        for record in run.records():
            if record.problem in wanted and record.seed in validation.drawn:
                rows.append(row_of(record))
    arm = Table.of(rows, name=f"epoch {epoch.epoch}")
    if observer:
        observer.run_done(epoch, arm)
    return arm


def _open_run(
    epoch: EpochTree,
    validation: Validation,
    calls: CallStore,
) -> Run:
    """Open an epoch's run, which depends on solver and tree alone: problems and seeds may be added."""
    folder = validation.run_folder(epoch)
    try:
        return Run(
            folder, manifest_of(validation.config, epoch.tree), calls=calls
        )
    except UsageError as error:
        fix = f"repeat those settings, or remove {validation.folder} to select with others"
        raise UsageError(error.message, fix=fix) from None


def selection_of(
    validation: Validation,
    epochs: Sequence[EpochTree],
    arms: Sequence[Table],
) -> Selection:
    """Choose the epoch with the highest accuracy, the smaller of equals. The first arm is the ladder alone."""
    ladder = compare_all(arms[0], arms[1:])
    rows = [_row(epochs[0], arms[0], None, None)]
    for place, found in enumerate(ladder, 1):
        arm = arms[place]
        before = arms[place - 1]
        against = Against.of(arms[0], arm, found)
        previous = Against.of(before, arm, compare(before, arm))
        rows.append(_row(epochs[place], arm, against, previous))
    ranked = sorted(rows, key=lambda row: (-row.right, row.epoch))
    best = ranked[0]
    tree = None
    chosen = None
    if best.epoch:
        tree = f"{SNAPSHOTS}/epoch-{best.epoch}.jsonl"
        chosen = ladder[rows.index(best) - 1]
    config = json.dumps(manifest_of(validation.config)["config"])
    return Selection(
        epoch=best.epoch,
        tree=tree,
        p=chosen.adjusted if chosen else None,
        said=_explain(best if chosen else ranked[1], chosen, ladder[0].size),
        rows=tuple(rows),
        seeds=validation.drawn,
        validation=ProblemSet.of(validation.problems),
        config=json.loads(config),
    )


def tree_to_keep(chosen: int, epochs: Sequence[EpochTree]) -> EpistemicTree:
    """Return the chosen epoch's tree. For epoch 0 it is the last one's domains without a card."""
    for epoch in epochs:
        if epoch.epoch == chosen and epoch.tree is not None:
            return epoch.tree
    last = epochs[-1].tree
    return EpistemicTree.of(last.domains if last is not None else (), ())


def keep_tree(
    out: Path,
    tree: EpistemicTree,
    note: str,
) -> str:
    """Write a tree to a store of its own, frozen, and return its content hash. Repeating it changes nothing."""
    if not TreeStore(out).cards_path.exists():
        TreeStore.create(out, tree.domains, tree, author=AUTHOR, note=note)
    store = TreeStore.open(out)
    if store.load() != tree:
        raise UsageError(
            f"{out} already holds another tree", fix="choose another --out"
        )
    return store.freeze(author=AUTHOR)


def _row(
    epoch: EpochTree,
    arm: Table,
    ladder: Against | None,
    previous: Against | None,
) -> EpochRow:
    metrics = metrics_of(arm)
    assert metrics.wilson is not None, "every validation problem has its answer"
    tree = epoch.tree
    return EpochRow(
        epoch=epoch.epoch,
        tree=None if tree is None else tree.content_hash(),
        cards=0 if tree is None else len(tree.shown),
        right=sum(seed.right for seed in metrics.seeds),
        n=metrics.solves,
        low=metrics.wilson.low,
        high=metrics.wilson.high,
        ladder=ladder,
        previous=previous,
        calls=metrics.paper_calls,
        card_tokens=metrics.card_tokens.read if metrics.card_tokens else 0.0,
        failed=metrics.failed,
    )


def _explain(
    row: EpochRow,
    found: Comparison | None,
    size: str,
) -> str:
    """Return the chosen epoch against no tree; or that no epoch did better, with the nearest one."""
    gained = row.ladder.gained if row.ladder else 0
    lost = row.ladder.lost if row.ladder else 0
    if found is None:
        return (
            f"No epoch did better than the ladder alone on these {size} (the nearest, epoch {row.epoch},"
            f" gained {gained} and lost {lost}): solve without a tree."
        )
    figures = f"{gained} gained, {lost} lost, {found.test} {p_text(found.p)}"
    if found.compared > 1:
        choice = f"after the choice among {found.compared} epochs"
        figures += f", {p_text(found.adjusted)} {choice}"
    if found.distinguishable:
        return f"Epoch {row.epoch} is better than no tree on these {size}: {figures}."
    return f"Epoch {row.epoch} did best, but is indistinguishable from no tree on {size}: {figures}."
