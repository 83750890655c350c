"""What an arm's solves add up to: every figure a table or a plot of one system needs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kace.evaluation.arm import Arm, Row
from kace.evaluation.bootstrap import cluster_interval
from kace.evaluation.concordance import BucketRow, Concordance, bucket_rows, by_problem, concordance_of, exit_counts
from kace.evaluation.cost import Cost, cost_of
from kace.evaluation.stats import Interval, wilson_of_share
from kace.models.budget import Price, free_price
from kace.solver.tiers import ExitPath

WHOLE = Interval(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class SeedScore:
    """One seed's accuracy; a failed call is a wrong answer."""

    seed: int
    right: int
    n: int

    @property
    def accuracy(self) -> float:
        """The share that is right."""
        return self.right / self.n


@dataclass(frozen=True, slots=True)
class CardTokens:
    """Tokens of learned text that solves read."""

    mean: float
    """Of the fullest prompt of a solve, over all solves; one that left at ES read nothing."""
    mean_when_read: float
    """The same over the solves that read anything."""
    most: int
    read: float
    """Over all tiers of a solve, over all solves."""
    solves: int
    """Solves that read anything."""
    estimated: bool
    """Whether some of it is an estimate from the length of the text."""


@dataclass(frozen=True, slots=True)
class TreeSize:
    """The tree an arm read from."""

    hash: str
    cards: int
    tokens: int | None
    """Of the whole tree, where the run recorded it."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """One arm in figures. Shares are between 0 and 1; those over labelled solves are `None` where there are none."""

    name: str
    model: str
    problems: int
    """Different problems."""
    solves: int
    """Problems times seeds, where the arm is complete."""
    labelled: int
    """Solves whose answer is known."""
    complete: bool
    """Whether every problem was solved on every seed."""
    seeds: tuple[SeedScore, ...]
    """Of labelled solves, by seed."""
    accuracy: float | None
    """The mean over problems of the share of seeds that were right; for a complete arm, the mean over the seeds."""
    wilson: Interval | None
    """95 %, each problem counted once: several seeds of a problem say little about other problems."""
    interval: Interval | None
    """95 %, cluster bootstrap by problem."""
    failed: int
    """Solves that lost a call to the provider; in `accuracy` they stand as they are."""
    accuracy_without_failed: float | None
    """The accuracy over the other solves, which is a selection and never the headline."""
    damaged: int
    """Lines of the trace that could not be read."""
    retried: int
    """Solves made again after a failure."""
    paper_calls: float
    """A solve, by the paper's count."""
    real_calls: float
    """A solve, as they really ran to an end."""
    classifier_calls: float
    """A solve, counted apart from the solver's."""
    input: float
    """The solver's prompt tokens a solve, cached ones included."""
    cached: float
    output: float
    seconds: float
    """Wall time a solve, waiting included."""
    cost: Cost
    """Over all solves."""
    exits: Mapping[ExitPath, int]
    """Solves by exit, every path in order; empty for a system without a ladder."""
    buckets: tuple[BucketRow, ...]
    """All five, easiest first; empty where nothing is labelled."""
    concordance: Concordance | None
    """`None` without a ladder or without labels."""
    card_tokens: CardTokens | None
    """`None` for an arm that read nothing."""
    tree: TreeSize | None


def metrics_of(arm: Arm, price: Price | None = None) -> Metrics:
    """Every figure of an arm. Without a price, cost is known only for models that nobody sends a bill for."""
    rows = arm.rows
    clusters = _clusters(rows)
    accuracy = _mean_of(clusters)
    return Metrics(
        name=arm.name,
        model=arm.model,
        problems=len({row.problem for row in rows}),
        solves=len(rows),
        labelled=sum(row.correct is not None for row in rows),
        complete=_complete(rows),
        seeds=_seeds(rows),
        accuracy=accuracy,
        wilson=None if accuracy is None else wilson_of_share(accuracy, len(clusters)),
        interval=cluster_interval(clusters, WHOLE) if clusters else None,
        failed=sum(row.failed for row in rows),
        accuracy_without_failed=_mean_of(_clusters([row for row in rows if not row.failed])),
        damaged=len(arm.damage),
        retried=arm.retried,
        paper_calls=_each(rows, [row.paper_calls for row in rows]),
        real_calls=_each(rows, [row.real_calls for row in rows]),
        classifier_calls=_each(rows, [row.classifier_calls for row in rows]),
        input=_each(rows, [row.input for row in rows]),
        cached=_each(rows, [row.cached for row in rows]),
        output=_each(rows, [row.output for row in rows]),
        seconds=_each(rows, [row.seconds for row in rows]),
        cost=cost_of(rows, price or free_price(arm.model)),
        exits=exit_counts(rows),
        buckets=bucket_rows(rows),
        concordance=concordance_of(rows),
        card_tokens=_card_tokens(rows),
        tree=_tree(arm),
    )


def _clusters(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Of every labelled problem, how many of its solves are right, and how many there are."""
    return [(sum(bool(row.correct) for row in solves), len(solves)) for solves in by_problem(rows).values()]


def _mean_of(clusters: Sequence[tuple[int, int]]) -> float | None:
    return math.fsum(right / n for right, n in clusters) / len(clusters) if clusters else None


def _complete(rows: Sequence[Row]) -> bool:
    return len(rows) == len({row.problem for row in rows}) * len({row.seed for row in rows})


def _seeds(rows: Sequence[Row]) -> tuple[SeedScore, ...]:
    found: defaultdict[int, list[bool]] = defaultdict(list)
    for row in rows:
        if row.correct is not None:
            found[row.seed].append(row.correct)
    return tuple(SeedScore(seed, sum(found[seed]), len(found[seed])) for seed in sorted(found))


def _each(rows: Sequence[Row], values: Sequence[float]) -> float:
    return math.fsum(values) / len(rows) if rows else 0.0


def _card_tokens(rows: Sequence[Row]) -> CardTokens | None:
    read = [row for row in rows if row.read_tokens]
    if not read:
        return None
    active = sum(row.card_tokens for row in read)
    return CardTokens(
        mean=active / len(rows),
        mean_when_read=active / len(read),
        most=max(row.card_tokens for row in read),
        read=sum(row.read_tokens for row in read) / len(rows),
        solves=len(read),
        estimated=any(row.estimated for row in read),
    )


def _tree(arm: Arm) -> TreeSize | None:
    tree = arm.manifest.get("tree")
    if not isinstance(tree, dict):
        return None
    digest, cards, tokens = tree.get("hash"), tree.get("cards"), tree.get("tokens")
    if not isinstance(digest, str) or not isinstance(cards, int):
        return None
    return TreeSize(digest, cards, tokens if isinstance(tokens, int) else None)
