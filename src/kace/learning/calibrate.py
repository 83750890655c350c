"""Choose on problems: a tree's relevance thresholds, and the epoch to keep.

Thresholds come from training problems alone. Each is scored by a regression that was
trained without its technique, so every card that reaches the threshold is a wrong one. At
worst such a card breaks whatever the ladder solves without cards. The threshold is the
loosest at which this loss stays under the harm allowed, by the bound of conformal risk
control where there are enough problems: a new problem of a technique that the tree lacks
loses at most (losses + 1) / (problems + 1) in expectation. An epoch is chosen on
validation problems that the learner never saw.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, ValidationError

from kace.cards.store import CALIBRATION, TreeStore, open_tree
from kace.cards.tree import EpistemicTree, cards_by_source
from kace.config import Config, RetrievalConfig
from kace.errors import DataError, UsageError
from kace.files import inside, read_plain, write_atomic
from kace.ladder.record import Solution
from kace.ladder.relevance import TextTable, best_encoder
from kace.ladder.tiers import ExitPath
from kace.learning import StepResult
from kace.learning.study import (
    LearnManifest,
    ProblemSet,
    RunReading,
    StepName,
    StepObserver,
    open_workbench,
    require_answers,
    write_profile,
)
from kace.models.base import ChatModel
from kace.problems import Problem, problems_hash
from kace.runs.compare import compare_all
from kace.runs.manifest import manifest_of
from kace.runs.metrics import metrics_of
from kace.runs.table import SolveRow, Table, row_of

LEAST = 0.3
"""No threshold is looser. On the retest of the technique set, cards shown from 0.3 on cost
unseen kinds nothing, and from 0.2 on a point."""
FOLDS = 8  # times that a regression is trained, each without an eighth of techniques
CHANCE = 0.5
"""Losses allowed with however few problems: runs of one problem differ by half a one."""
SELECTOR = "kace learn select"
SNAPSHOTS = "snapshots"


class Calibration(StepResult):
    """The thresholds of a tree, and the harm that they bound."""

    model_config = ConfigDict(extra="ignore")

    problems: int
    max_harm: float  # points of accuracy
    shown: int = 0  # problems that a card of another technique is shown to
    threshold: float
    bound: float  # the most points that a new problem loses, in expectation
    skip_threshold: float
    skip_bound: float


def calibrate(
    tree: EpistemicTree,
    train: Sequence[Problem],
    alone: Sequence[Solution],
    max_harm: float,
) -> Calibration:
    """Return the thresholds of a tree, from what the ladder solves without cards."""
    scores = nearest_others(tree, train)
    losses = []
    skip_losses = []
    for record in alone:
        score = scores.get(record.problem, 0.0)
        right = bool(record.correct)
        # A problem that leaves at ES never reads, unless ES is skipped.
        reads = record.exit is not ExitPath.ES_UNANIMOUS
        if score:
            losses.append((score, float(right and reads)))
            skip_losses.append((score, float(right)))
    size = len(train)
    threshold, bound = loosest(losses, size, max_harm)
    skip, skip_bound = loosest(skip_losses, size, max_harm)
    return Calibration(
        problems=size,
        max_harm=max_harm,
        shown=sum(score >= threshold for score in scores.values()),
        threshold=threshold,
        bound=bound,
        skip_threshold=max(threshold, skip),
        skip_bound=skip_bound,
    )


def loosest(
    losses: Sequence[tuple[float, float]],
    problems: int,
    max_harm: float,
) -> tuple[float, float]:
    """Return the loosest threshold at which no stricter one loses too much, and its bound.

    Losses are (score, loss) pairs; the bound is in points. If the problems are too few to
    lose even one under the bound, the losses seen must stay under the harm allowed.
    """
    share = max_harm / 100
    bounded = share * (problems + 1) - 1
    allowed = bounded if bounded >= 1 else max(CHANCE, share * problems)
    threshold = LEAST
    lost = 0.0
    most = 0.0
    ordered = sorted(losses, reverse=True)
    for score, same in groupby(ordered, key=lambda each: each[0]):
        for _, loss in same:
            lost += max(0.0, loss)  # what a wrong card gains is luck
        if lost > allowed:
            threshold = math.floor(score * 1000 + 1) / 1000
            break
        most = max(most, lost)
    return threshold, round(100 * (most + 1) / (problems + 1), 2)


def nearest_others(
    tree: EpistemicTree, train: Sequence[Problem]
) -> dict[str, float]:
    """Return the best score of a card of another technique, by problem id."""
    own = own_cards(tree, train)
    table = TextTable(tree, train, best_encoder())
    found = {}
    for fold in folds_of(train, own):
        gave = set[str]().union(*(own[problem.id] for problem in fold))
        for problem, scores in table.without(fold, gave).items():
            best = max(scores.values(), default=0.0)
            if best >= LEAST:
                found[problem] = best
    return found


def folds_of(
    train: Sequence[Problem], own: Mapping[str, frozenset[str]]
) -> list[list[Problem]]:
    """Return the problems in parts, those of one technique together."""
    techniques: dict[frozenset[str] | str, list[Problem]] = {}
    for problem in train:
        key = own[problem.id] or problem.family or problem.id
        techniques.setdefault(key, []).append(problem)
    folds: list[list[Problem]] = [[] for _ in range(FOLDS)]
    for problems in sorted(techniques.values(), key=len, reverse=True):
        min(folds, key=len).extend(problems)
    return [fold for fold in folds if fold]


def write_index(
    tree: EpistemicTree, train: Sequence[Problem], path: Path
) -> None:
    """Train what finds the cards of a tree, and keep it beside the tree."""
    TextTable(tree, train, best_encoder()).index().save(path)


def own_cards(
    tree: EpistemicTree, train: Sequence[Problem]
) -> Mapping[str, frozenset[str]]:
    """Return the cards of each problem's technique.

    These are the cards that the problem, its family, or a problem that shares a card with
    it gave. Cards of the same technique that came from elsewhere stay, and help: losses
    are counted net.
    """
    gave = cards_by_source(tree)
    families: dict[str, set[str]] = {}
    for problem in train:
        cards = families.setdefault(problem.family or problem.name, set())
        cards.update(gave.get(problem.name, ()))
    found = {}
    for problem in train:
        own = set(families[problem.family or problem.name])
        for card in tuple(own):
            for name in tree.card(card).provenance.supporting_problems:
                own.update(gave[name])
        found[problem.id] = frozenset(own)
    return found


def keep_calibration(
    folder: Path,
    found: Calibration,
    retrieval: RetrievalConfig,
    learned: Mapping[str, object],
) -> None:
    """Write a tree's thresholds to its profile, and their reasons beside it."""
    thresholds = {
        "relevance_threshold": found.threshold,
        "skip_threshold": found.skip_threshold,
    }
    write_profile(folder, retrieval.model_copy(update=thresholds), learned)
    text = json.dumps(found.model_dump(mode="json"), indent=1) + "\n"
    write_atomic(folder / CALIBRATION, text)


def thresholds_of(folder: Path) -> dict[str, float] | None:
    """Return the calibrated thresholds of a tree with their bounds, if recorded."""
    try:
        found = Calibration.model_validate_json(
            read_plain(folder / CALIBRATION)
        )
    except (OSError, ValidationError):
        return None
    names = {"threshold", "bound", "skip_threshold", "skip_bound", "max_harm"}
    return found.model_dump(include=names)


# The epoch to keep.


class EpochRow(StepResult):
    """One epoch on the validation problems, against the ladder without cards."""

    epoch: int  # 0 is the ladder without cards
    tree: str | None  # the content hash
    cards: int
    right: int
    n: int
    low: float  # the 95 % Wilson interval of the accuracy
    high: float
    gained: int  # problems
    lost: int
    p: float | None  # adjusted for the choice among epochs
    calls: float  # per problem, by the paper's count


class Selection(StepResult):
    """The decision, with everything it rests on."""

    v: Literal[1] = 1
    epoch: int
    tree: str | None  # the chosen snapshot; `None` if the ladder alone did best
    said: str  # the decision in a sentence
    rows: tuple[EpochRow, ...]
    seeds: tuple[int, ...]
    validation: ProblemSet


def read_learned(tree: Path) -> LearnManifest:
    """Read the learner's record in a tree that `kace learn` made."""
    path = inside(tree, "learn") / "learn.json"
    try:
        learned = LearnManifest.model_validate_json(read_plain(path))
    except OSError:
        raise UsageError(
            f"{tree} is no tree that kace learn made",
            fix="name the --out of kace learn",
        ) from None
    except ValidationError as error:
        reason = error.errors()[0]["msg"].lower()
        raise DataError(
            f"{path}: {reason}", fix="was it edited? learn the tree again"
        ) from None
    if learned.train.ids is None:
        raise DataError(
            f"{path}: train.ids is missing", fix="learn the tree again"
        )
    return learned


def epochs_of(tree: Path) -> dict[int, EpistemicTree | None]:
    """Return the tree of every epoch with a snapshot; epoch 0 has none."""
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
    epochs: dict[int, EpistemicTree | None] = {0: None}
    for number in sorted(numbers):
        epochs[number] = open_tree(tree / SNAPSHOTS / f"epoch-{number}.jsonl")
    return epochs


def solver_settings(
    learned: LearnManifest, given: Mapping[str, object]
) -> dict[str, object]:
    """Return the learner's settings of the solver, overridden by those given now."""
    kept: dict[str, object] = dict(learned.config)
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
            f"{len(shared)} of {len(problems)} validation problems appear in the "
            f"training set, such as {shared[0]!r}",
            fix="remove them: a tree looks better on what it was learned from",
        )


async def select_epoch(
    tree: Path,
    problems: Sequence[Problem],
    config: Config,
    seeds: int = 1,
    *,
    model: ChatModel | None = None,
    observer: StepObserver | None = None,
) -> Selection:
    """Solve the problems with every epoch's tree, and choose the most accurate.

    Of equals the smaller is chosen. What was solved before is read.
    """
    digest = problems_hash(problems)
    folder = inside(tree, "learn", "select", digest[:12])
    drawn = range(config.seed, config.seed + seeds)
    epochs = epochs_of(tree)
    arms = []
    opening = open_workbench(
        folder, config, manifest_of(config), model=model, observer=observer
    )
    async with opening as work:
        for number, snapshot in epochs.items():
            rows: list[SolveRow] = []
            for seed in drawn:
                step = StepName("select", "run", number, f"seed {seed}")
                reading = RunReading(snapshot)
                records = await work.run(step, problems, reading, seed)
                rows += map(row_of, records)
            name = f"epoch {number}" if number else "no tree"
            arms.append(Table.of(rows, name=name))
    return selection_of(epochs, arms, problems, tuple(drawn))


def selection_of(
    epochs: Mapping[int, EpistemicTree | None],
    arms: Sequence[Table],
    problems: Sequence[Problem],
    seeds: tuple[int, ...],
) -> Selection:
    """Choose among arms, the first of which is the ladder without cards."""
    against = (None, *compare_all(arms[0], arms[1:]))
    rows = []
    for number, arm, found in zip(epochs, arms, against, strict=True):
        tree = epochs[number]
        metrics = metrics_of(arm)
        assert metrics.wilson is not None, "every problem has its answer"
        row = EpochRow(
            epoch=number,
            tree=tree.content_hash() if tree else None,
            cards=len(tree.shown) if tree else 0,
            right=sum(seed.right for seed in metrics.seeds),
            n=metrics.solves,
            low=metrics.wilson.low,
            high=metrics.wilson.high,
            gained=len(found.gained) if found else 0,
            lost=len(found.lost) if found else 0,
            p=found.adjusted if found else None,
            calls=metrics.paper_calls,
        )
        rows.append(row)
    ranked = sorted(rows, key=lambda row: (-row.right, row.epoch))
    best = ranked[0]
    chosen = against[rows.index(best)]
    if chosen:
        said = f"Epoch {best.epoch} did best. {chosen.sentence}"
    else:
        nearest = against[rows.index(ranked[1])]
        assert nearest is not None, "there is an epoch beside the ladder"
        said = (
            "No epoch did better than the ladder alone: solve without a tree. "
            f"{nearest.sentence}"
        )
    snapshot = f"{SNAPSHOTS}/epoch-{best.epoch}.jsonl"
    return Selection(
        epoch=best.epoch,
        tree=snapshot if best.epoch else None,
        said=said,
        rows=tuple(rows),
        seeds=seeds,
        validation=ProblemSet.of(problems),
    )


def keep_tree(out: Path, tree: EpistemicTree, note: str) -> str:
    """Write a tree to a store of its own, frozen, and return its content hash.

    Repeating it changes nothing.
    """
    if not TreeStore(out).cards_path.exists():
        TreeStore.create(out, tree.domains, tree, author=SELECTOR, note=note)
    store = TreeStore.open(out)
    if store.load() != tree:
        raise UsageError(
            f"{out} already holds another tree", fix="choose another --out"
        )
    return store.freeze(author=SELECTOR)
