"""Calibrate a tree's relevance thresholds.

Thresholds come from training problems alone. Each is scored by a regression that was
trained without its technique, so every card that reaches the threshold is a wrong one. At
worst such a card breaks whatever the ladder solves without cards. The threshold is the
loosest at which this loss stays under the harm allowed, by the bound of conformal risk
control where there are enough problems: a new problem of a technique that the tree lacks
loses at most (losses + 1) / (problems + 1) in expectation.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from kace.cards.tree import EpistemicTree, cards_by_source
from kace.ladder.record import Solution
from kace.ladder.relevance import TextTable
from kace.ladder.tiers import ExitPath
from kace.learning import StepResult
from kace.problems import Problem

LEAST = 0.3
"""No threshold is looser. On the retest of the technique set, cards shown from 0.3 on cost
unseen kinds nothing, and from 0.2 on a point."""
FOLDS = 8  # times that a regression is trained, each without an eighth of techniques


class Calibration(StepResult):
    """The thresholds of a tree, and the harm that they bound."""

    problems: int
    max_harm: float  # points of accuracy
    threshold: float
    bound: float  # the most points that a new problem loses, in expectation
    skip_threshold: float
    skip_bound: float


def calibrate(
    table: TextTable,
    train: Sequence[Problem],
    alone: Sequence[Solution],
    max_harm: float,
) -> Calibration:
    """Return the thresholds of a tree, from what the ladder solves without cards."""
    scores = nearest_others(table, train)
    lost = []
    skip_lost = []
    for record in alone:
        if record.correct and record.problem in scores:
            skip_lost.append(scores[record.problem])
            # A problem that leaves at ES never reads, unless ES is skipped.
            if record.exit is not ExitPath.ES_UNANIMOUS:
                lost.append(scores[record.problem])
    threshold, bound = loosest(lost, len(train), max_harm)
    skip, skip_bound = loosest(skip_lost, len(train), max_harm)
    return Calibration(
        problems=len(train),
        max_harm=max_harm,
        threshold=threshold,
        bound=bound,
        skip_threshold=max(threshold, skip),
        skip_bound=skip_bound,
    )


def loosest(
    lost: Sequence[float], problems: int, max_harm: float
) -> tuple[float, float]:
    """Return the loosest threshold that loses too few problems, and its bound in points.

    `lost` are the scores at which problems would be lost. If the problems are too few to
    lose even one under the bound, the losses seen must stay under the harm allowed.
    """
    share = max_harm / 100
    allowed = share * (problems + 1) - 1
    if allowed < 1:
        allowed = share * problems
    too_many = sorted(lost, reverse=True)[int(allowed) :]
    threshold = LEAST
    if too_many:
        threshold = math.floor(too_many[0] * 1000 + 1) / 1000
    left = sum(score >= threshold for score in lost)
    return threshold, round(100 * (left + 1) / (problems + 1), 2)


def nearest_others(
    table: TextTable, train: Sequence[Problem]
) -> dict[str, float]:
    """Return the best score of a card of another technique, by problem id."""
    own = own_cards(table.tree, train)
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
    techniques = defaultdict[frozenset[str] | str, list[Problem]](list)
    for problem in train:
        key = own[problem.id] or problem.family or problem.id
        techniques[key].append(problem)
    folds: list[list[Problem]] = [[] for _ in range(FOLDS)]
    for problems in sorted(techniques.values(), key=len, reverse=True):
        min(folds, key=len).extend(problems)
    return [fold for fold in folds if fold]


def own_cards(
    tree: EpistemicTree, train: Sequence[Problem]
) -> Mapping[str, frozenset[str]]:
    """Return the cards of each problem's technique.

    These are the cards that the problem, its family, or a problem that shares a card with
    it gave. Cards of the same technique that came from elsewhere stay, and help.
    """
    gave = cards_by_source(tree)
    families = defaultdict[str, set[str]](set)
    for problem in train:
        cards = gave.get(problem.name, set())
        families[problem.family or problem.name] |= cards
    found = {}
    for problem in train:
        first = families[problem.family or problem.name]
        sources = set[str]()
        for card in map(tree.card, first):
            sources.update(card.provenance.supporting_problems)
        every = map(gave.__getitem__, sources)
        found[problem.id] = frozenset(first).union(*every)
    return found
