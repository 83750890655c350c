"""Set the relevance thresholds of a tree from training problems alone.

Each training problem is solved again with the cards of its own technique left out and
the most relevant of the others shown, as if training had never seen its kind. What that
loses against the ladder without cards is the cost of a wrong card. The threshold is the
loosest at which this loss stays under the harm allowed, by the bound of conformal risk
control where there are enough problems: a new problem of a technique that the tree lacks
loses at most (losses + 1) / (problems + 1) in expectation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from pydantic import ValidationError

from kace.cards.store import CALIBRATION
from kace.cards.tree import EpistemicTree, cards_by_source
from kace.config import RetrievalConfig
from kace.files import read_plain, write_atomic
from kace.ladder.record import Solution
from kace.ladder.relevance import BackgroundScore, RelevanceScore
from kace.ladder.tiers import ExitPath
from kace.learning.steps import StepName, StepResult, gather_all
from kace.learning.study import RunReading, Settings, Workbench, write_profile
from kace.problems import Problem

LEAST = 0.46
"""No threshold is looser. Down to here the training problems of four published trees, 836
together, lose at most half a point by the bound; one tree alone has too few."""
LEAST_WORDED = 0.353
"""The same for cards with wordings: a word counts for less there."""
CHANCE = 0.5
"""Losses allowed with however few problems: runs of one problem differ by half a one."""

Solve = Callable[
    [Sequence[Problem], RelevanceScore | None, int],
    Awaitable[Sequence[Solution]],
]
"""Solves problems with the cards that a score picks, ES skipped, or without cards; the
number is the run's."""


class LeftOut(StepResult):
    """A training problem, and the cost of the most relevant card of another technique."""

    problem: str
    card: str
    score: float
    loss: float  # of accuracy, mean over runs, if the ladder escalates before it reads
    skip_loss: float  # if ES is skipped


class Calibration(StepResult):
    """The thresholds of a tree, and the losses that they come from."""

    problems: int
    runs: int
    max_harm: float  # points of accuracy
    threshold: float
    bound: float  # the most points that a new problem loses, in expectation
    skip_threshold: float
    skip_bound: float
    left_out: tuple[
        LeftOut, ...
    ]  # problems that read a card at the loosest threshold


async def set_thresholds(
    tree: EpistemicTree,
    train: Sequence[Problem],
    work: Workbench,
    settings: Settings,
) -> Calibration:
    """Return the thresholds of a tree, measured once."""

    async def solve(
        problems: Sequence[Problem],
        relevance: RelevanceScore | None,
        number: int,
    ) -> Sequence[Solution]:
        what = "left out" if relevance else "alone"
        step = StepName("calibrate", what, number=number)
        read = tree if relevance else EpistemicTree.of(tree.domains, ())
        reading = RunReading(read, relevance=relevance)
        return await work.run(step, problems, reading, work.seed_of(0, number))

    async def measure() -> Calibration:
        return await calibrate(
            tree,
            train,
            solve,
            runs=settings.calibration_runs,
            max_harm=settings.max_harm,
        )

    return await work.log.once(
        StepName("close", "calibrate"), Calibration, measure
    )


async def calibrate(
    tree: EpistemicTree,
    train: Sequence[Problem],
    solve: Solve,
    *,
    runs: int,
    max_harm: float,
) -> Calibration:
    """Return the thresholds, from runs of the problems that another's card is near."""
    worded = any(card.wordings for card in tree.shown)
    least = LEAST_WORDED if worded else LEAST
    nearest = nearest_others(tree, train, least)
    problems = [problem for problem in train if problem.text in nearest]

    def others(problem: str, least: float = 0.0) -> Mapping[str, float]:
        return nearest[problem]

    requests = []
    for number in range(1, runs + 1) if problems else ():
        requests.append(solve(problems, None, number))
        requests.append(solve(problems, others, number))
    solved = await gather_all(requests)
    losses = dict.fromkeys((problem.id for problem in problems), 0.0)
    skip_losses = dict(losses)
    for alone, shown in zip(solved[::2], solved[1::2], strict=True):
        for before, after in zip(alone, shown, strict=True):
            loss = float(bool(before.correct)) - float(bool(after.correct))
            skip_losses[before.problem] += loss / runs
            # A problem that leaves at ES never reads. MS and HS are the same samples,
            # whether ES was skipped or failed.
            if before.exit is not ExitPath.ES_UNANIMOUS:
                losses[before.problem] += loss / runs
    found = []
    for problem in problems:
        card, score = next(iter(nearest[problem.text].items()))
        left_out = LeftOut(
            problem=problem.name,
            card=card,
            score=score,
            loss=losses[problem.id],
            skip_loss=skip_losses[problem.id],
        )
        found.append(left_out)
    shown_losses = [(each.score, each.loss) for each in found]
    skipped_losses = [(each.score, each.skip_loss) for each in found]
    threshold, bound = loosest(shown_losses, len(train), max_harm, least)
    skip, skip_bound = loosest(skipped_losses, len(train), max_harm, least)
    found.sort(key=lambda each: (-each.score, each.problem))
    return Calibration(
        problems=len(train),
        runs=runs,
        max_harm=max_harm,
        threshold=threshold,
        bound=bound,
        skip_threshold=max(threshold, skip),
        skip_bound=skip_bound,
        left_out=tuple(found),
    )


def loosest(
    losses: Sequence[tuple[float, float]],
    problems: int,
    max_harm: float,
    least: float = LEAST,
) -> tuple[float, float]:
    """Return the loosest threshold at which no stricter one loses too much, and its bound.

    Losses are (score, loss) pairs; the bound is in points. If the problems are too few to
    lose even one under the bound, the losses seen must stay under the harm allowed.
    """
    share = max_harm / 100
    bounded = share * (problems + 1) - 1
    allowed = bounded if bounded >= 1 else max(CHANCE, share * problems)
    threshold = least
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
    tree: EpistemicTree, train: Sequence[Problem], least: float = LEAST
) -> Mapping[str, Mapping[str, float]]:
    """Return the most relevant card of another technique with its score, by problem text.

    Problems whose nearest card does not reach `least` are left out.
    """
    own = own_cards(tree, train)
    score = BackgroundScore(tree)
    shown = {card.card_id for card in tree.shown}
    found = {}
    for problem in train:
        best: tuple[float, str] | None = None
        for card, near in score(problem.text, least).items():
            other = card in shown and card not in own[problem.id]
            if other and (best is None or (near, card) > best):
                best = (near, card)
        if best:
            found[problem.text] = {best[1]: best[0]}
    return found


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
