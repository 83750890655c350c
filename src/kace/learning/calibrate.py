"""The gate's thresholds, from training problems alone.

Each training problem is solved again with the cards of its own technique left out and the most relevant of the others
shown, as if training had never seen its kind: what that loses against the ladder without cards is what a wrong card
costs. The threshold is the loosest at which this loss stays under the harm allowed, by the bound of conformal risk
control where there are problems enough: a new problem of a technique that the tree lacks loses at most
(losses + 1) / (problems + 1) in expectation.
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
from kace.config import PROFILE_FILE, RetrievalConfig, profile_text
from kace.files import read_plain, write_atomic
from kace.ladder.record import Solution
from kace.ladder.relevance import BackgroundScore, RelevanceScore
from kace.ladder.tiers import ExitPath
from kace.learning.steps import Kept
from kace.learning.teacher import side_by_side
from kace.problems import Problem

LEAST = 0.46
"""No threshold is looser. Down to here the training problems of four published trees, 836 together, lose at most half a
point by the bound (commit a80fb0c, `experiments/gate/floor.py`); one tree alone mostly has too few to say."""
LEAST_WORDED = 0.353
"""The same for cards with wordings, by the same trees and problems: a word counts for less there, as it is in few of
their texts."""
CHANCE = 0.5
"""Losses that are let pass with however few problems: half a problem, which runs of one problem differ by."""

Solve = Callable[
    [Sequence[Problem], RelevanceScore | None, int], Awaitable[Sequence[Solution]]
]
"""Solves problems with the cards that a score picks, ES skipped, or without cards; the number is the run's."""


class LeftOut(Kept):
    """A training problem, and what the most relevant card of another technique cost it."""

    problem: str
    card: str
    score: float
    loss: (
        float  # of accuracy, mean over runs, where the ladder escalates before it reads
    )
    skip_loss: float  # where ES is skipped


class Calibration(Kept):
    """What the thresholds of a tree's gate are, and why."""

    problems: int
    runs: int
    max_harm: float  # points of accuracy
    threshold: float
    bound: float  # points of accuracy that a new problem loses at most, in expectation
    skip_threshold: float
    skip_bound: float
    left_out: tuple[
        LeftOut, ...
    ]  # those that would read a card of another technique at the loosest threshold


async def calibrate(
    tree: EpistemicTree,
    train: Sequence[Problem],
    solve: Solve,
    *,
    runs: int,
    max_harm: float,
) -> Calibration:
    """The thresholds, from so many runs of the problems that other techniques' cards are relevant to."""
    least = LEAST_WORDED if any(card.wordings for card in tree.shown) else LEAST
    nearest = nearest_others(tree, train, least)
    problems = [problem for problem in train if problem.text in nearest]
    lost: dict[str, list[tuple[float, float]]] = {
        problem.id: [] for problem in problems
    }

    def others(problem: str, least: float = 0.0) -> Mapping[str, float]:
        return nearest[problem]

    numbers = range(1, runs + 1) if problems else ()
    solved = await side_by_side(
        solve(problems, read, number) for number in numbers for read in (None, others)
    )
    for alone, shown in zip(solved[::2], solved[1::2], strict=True):
        for before, after in zip(alone, shown, strict=True):
            loss = float(bool(before.correct)) - float(bool(after.correct))
            # A problem that left at ES never reads: MS and HS are the same samples, whether ES was skipped or failed.
            lost[before.problem].append(
                (0.0 if before.exit is ExitPath.ES_UNANIMOUS else loss, loss)
            )
    found = []
    for problem in problems:
        (card, score), *_ = nearest[problem.text].items()
        loss, skip = (sum(each) / runs for each in zip(*lost[problem.id], strict=True))
        found.append(
            LeftOut(
                problem=problem.name, card=card, score=score, loss=loss, skip_loss=skip
            )
        )
    threshold, bound = loosest(
        [(each.score, each.loss) for each in found], len(train), max_harm, least
    )
    skip, skip_bound = loosest(
        [(each.score, each.skip_loss) for each in found], len(train), max_harm, least
    )
    return Calibration(
        problems=len(train),
        runs=runs,
        max_harm=max_harm,
        threshold=threshold,
        bound=bound,
        skip_threshold=max(threshold, skip),
        skip_bound=skip_bound,
        left_out=tuple(sorted(found, key=lambda each: (-each.score, each.problem))),
    )


def loosest(
    losses: Sequence[tuple[float, float]],
    problems: int,
    max_harm: float,
    least: float = LEAST,
) -> tuple[float, float]:
    """The loosest threshold at which no stricter one loses too much, of (score, loss) pairs; and the bound, in points.

    Where the problems are too few to lose even one under the bound, what is seen to be lost must stay under the harm
    allowed, and the bound says what that is worth.
    """
    share = max_harm / 100
    bounded = share * (problems + 1) - 1
    allowed = bounded if bounded >= 1 else max(CHANCE, share * problems)
    threshold = least
    lost = 0.0
    most = 0.0
    for score, same in groupby(sorted(losses, reverse=True), key=lambda each: each[0]):
        lost += sum(
            max(0.0, loss) for _, loss in same
        )  # what a wrong card gains is luck, and no bound holds with it
        if lost > allowed:
            threshold = math.floor(score * 1000 + 1) / 1000
            break
        most = max(most, lost)
    return threshold, round(100 * (most + 1) / (problems + 1), 2)


def nearest_others(
    tree: EpistemicTree, train: Sequence[Problem], least: float = LEAST
) -> Mapping[str, Mapping[str, float]]:
    """By problem text, the most relevant card of another technique with its score, where that reaches the least."""
    own = own_cards(tree, train)
    score = BackgroundScore(tree)
    found = {}
    shown = {card.card_id for card in tree.shown}
    for problem in train:
        scores = score(problem.text, least)
        others = {
            card: near
            for card, near in scores.items()
            if card in shown and card not in own[problem.id]
        }
        if others:
            best = max(others, key=lambda card: (others[card], card))
            found[problem.text] = {best: others[best]}
    return found


def own_cards(
    tree: EpistemicTree, train: Sequence[Problem]
) -> Mapping[str, frozenset[str]]:
    """The cards of each problem's technique: those that it, its family, or a problem that shares a card with it gave.

    Cards of the same technique that came from elsewhere stay, and help: what is lost is counted net.
    """
    gave = cards_by_source(tree)
    families: dict[str, set[str]] = {}
    for problem in train:
        families.setdefault(problem.family or problem.name, set()).update(
            gave.get(problem.name, ())
        )
    found = {}
    for problem in train:
        cards = families[problem.family or problem.name]
        kin = (
            name
            for card in cards
            for name in tree.card(card).provenance.supporting_problems
        )
        found[problem.id] = frozenset(cards.union(*(gave[name] for name in kin)))
    return found


def keep_calibration(
    folder: Path,
    found: Calibration,
    retrieval: RetrievalConfig,
    learned: Mapping[str, object],
) -> None:
    """Have a tree remember its thresholds, and keep beside it why they are what they are."""
    thresholds = {
        "relevance_threshold": found.threshold,
        "skip_threshold": found.skip_threshold,
    }
    remember(folder, retrieval.model_copy(update=thresholds), learned)
    write_atomic(
        folder / CALIBRATION, json.dumps(found.model_dump(mode="json"), indent=1) + "\n"
    )


def thresholds_of(folder: Path) -> dict[str, float] | None:
    """The thresholds that a tree was calibrated to, with their bounds; none without a record that can be read."""
    try:
        found = Calibration.model_validate_json(read_plain(folder / CALIBRATION))
    except (OSError, ValidationError):
        return None
    return found.model_dump(
        include={"threshold", "bound", "skip_threshold", "skip_bound", "max_harm"}
    )


def remember(
    folder: Path, retrieval: RetrievalConfig, learned: Mapping[str, object]
) -> None:
    """Have a tree remember how it was learned: it is read that way."""
    write_atomic(
        folder / PROFILE_FILE, profile_text(retrieval.model_dump(mode="json"), learned)
    )
