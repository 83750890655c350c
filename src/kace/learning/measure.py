"""Measure what cards do: how often each is shown, its lift, and how probably it helps.

Attempts are compared within strata, a problem at a tier: there, chance alone decides
whether an attempt saw the card. Tiers are not pooled, because how many HS attempts there
are depends on what MS attempts saw. A stratum weighs n1 n0 / (n1 + n0).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from kace.cards.card import Card
from kace.cards.tree import EpistemicTree
from kace.errors import UsageError
from kace.ladder.ladder import Kit, classes_of, right_positions, sample
from kace.ladder.policies import Dropout
from kace.ladder.prompt import Context, Placement
from kace.ladder.record import Attempt, Outcome, RetrievedContext, Solution
from kace.ladder.relevance import Relevance
from kace.ladder.tiers import LOCKED, TierName
from kace.learning.steps import StepName, StepResult, gather_all
from kace.learning.study import BASE, RunReading, Study
from kace.problems import Problem
from kace.runs.stats import t_quantile

MIN_PROBLEMS = 5  # with fewer compared problems an interval is [-1, 1]
DOUBT = math.sqrt(0.5)
"""Added to the standard error, in attempts: as if one attempt with the card and one
without had gone the other way. Attempts that all agree would otherwise look exact."""
LEVEL = 0.95
TIERS = {tier.name: tier for tier in LOCKED}

Method = Literal["dropout", "leave_one_out"]
Floats = NDArray[np.float64]


class Fire(StepResult):
    """How often a card was shown, and how those solves ended. Not an effect."""

    card_id: str
    n_shown: int  # solves in which some tier read it
    shown_correct: int
    shown_wrong: int
    tiers: dict[TierName, int]
    problems: tuple[str, ...]


class CardVotes(StepResult):
    """The attempts at one problem and tier, made with a card and without it."""

    problem: str
    right: int
    made: int
    right_without: int
    made_without: int


class Lift(StepResult):
    """The change in the rate of right attempts that a card causes, with its interval."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    card_id: str
    method: Method
    effect: float
    low: float
    high: float
    shown: int
    hidden: int
    problems: int  # with attempts of both kinds
    votes: tuple[CardVotes, ...] = ()
    text: str = (
        ""  # the digest of the card's text: another text has other evidence
    )

    @property
    def wins(self) -> tuple[int, int]:
        """Return the numbers of problems that gained and lost attempts by the card."""
        excess = _by_problem(self.votes).excess
        return int((excess > 0).sum()), int((excess < 0).sum())


class Impact(StepResult):
    """Everything measured of a tree's cards in one epoch."""

    fires: tuple[Fire, ...] = ()
    lifts: tuple[Lift, ...] = ()
    calls: int = 0
    unmeasured: tuple[str, ...] = ()  # cards that the call budget did not reach

    @property
    def summary(self) -> str:
        """Return the number of cards measured."""
        return (
            f"{len(self.lifts)} lifts measured, {len(self.fires)} cards fired"
        )

    def of(self, card: Card) -> tuple[Fire | None, Lift | None]:
        """Return the fire statistics and the lift of a card."""
        fires = [fire for fire in self.fires if fire.card_id == card.card_id]
        lifts = [lift for lift in self.lifts if lift.card_id == card.card_id]
        return fires[0] if fires else None, lifts[0] if lifts else None


async def measure(
    epoch: int, tree: EpistemicTree, base: Sequence[Solution], study: Study
) -> Impact:
    """Return fire statistics of the base run, and lifts by the configured method."""
    fires = count_fires(base)
    method = study.settings.impact
    if method == "fires" or not fires:
        return Impact(fires=fires)
    if method == "leave_one_out":
        rerun = LeaveOneOut(
            tree,
            study.by_id,
            study.session.kit,
            max_calls=study.settings.impact_calls,
            placement=study.config.retrieval.placement,
        )
        return await rerun.measure(base)
    records = await run_dropout(epoch, tree, study)
    calls = 0
    for record in records:
        calls += record.paper_calls
    return Impact(fires=fires, lifts=dropout_lifts(records, tree), calls=calls)


# The default: dropout. One run measures all cards.


async def run_dropout(
    epoch: int, tree: EpistemicTree, study: Study
) -> list[Solution]:
    """Solve again with each card hidden at random from each attempt.

    A problem that no card is shown to measures none, so it is left out. The first run
    shares the base run's seed: its ES attempts are the same and cost nothing.
    """
    relevance = Relevance(tree, study.config.retrieval)
    readers = [
        each
        for each in study.train
        if relevance.relevant(each.text, tree.shown)
    ]
    rate = study.settings.dropout_rate

    async def run(number: int) -> tuple[Solution, ...]:
        seed = study.seed_of(epoch, BASE + number)
        step = StepName("refine", "dropout", epoch, number=number + 1)
        reading = RunReading(tree, Dropout(rate, seed=seed))
        return await study.run(step, readers, reading, seed)

    runs = await gather_all(map(run, range(study.settings.impact_runs)))
    return [record for records in runs for record in records]


def dropout_lifts(
    records: Sequence[Solution], tree: EpistemicTree | None = None
) -> tuple[Lift, ...]:
    """Return the lift of every card that runs both showed and hid within a stratum."""
    found: defaultdict[str, dict[tuple[str, TierName], list[int]]]
    found = defaultdict(dict)
    for record in _require_uncut(records):
        for recall in record.recalls:
            place = (record.problem, recall.tier)
            for attempt in _judged(record, recall.tier):
                for card_id in recall.cards:
                    counts = found[card_id].setdefault(place, [0, 0, 0, 0])
                    arm = 2 if card_id in attempt.hidden else 0
                    counts[arm] += bool(attempt.correct)
                    counts[arm + 1] += 1
    votes = {}
    for card_id, strata in found.items():
        votes[card_id] = [
            _votes(problem, counts) for (problem, _), counts in strata.items()
        ]
    return _lifts("dropout", votes, tree)


# The paper's way: leave-one-out. One rerun a card.


@dataclass(frozen=True)
class LeaveOneOut:
    """Measure cards one by one: sample the same attempts again without the card.

    The cards shown most come first. A card is measured whole or, if its reruns do not fit
    into the calls left, not at all. Calls read from a cache count as well, so a resumed
    run measures the same cards.
    """

    tree: EpistemicTree
    problems: Mapping[str, Problem]
    kit: Kit
    max_calls: int
    placement: Placement = "instructions"

    async def measure(self, base: Sequence[Solution]) -> Impact:
        """Return the lift of each card that the base run showed, beside its neighbours.

        Raises `UsageError` if the base run stopped early or hid cards.
        """
        if any(
            attempt.hidden for record in base for attempt in record.attempts
        ):
            raise UsageError(
                "the base run hid cards at random, so there is nothing to leave one out "
                "of",
                fix="give leave-one-out a base run without dropout",
            )
        fires = count_fires(base)
        read: defaultdict[str, list[tuple[Solution, RetrievedContext]]]
        read = defaultdict(list)
        for record in _require_uncut(base):
            if record.correct is None:
                continue
            for recall in record.recalls:
                for card_id in recall.cards:
                    read[card_id].append((record, recall))
        votes: dict[str, list[CardVotes]] = {}
        calls = 0
        for fire in sorted(
            fires, key=lambda fire: (-fire.n_shown, fire.card_id)
        ):
            solves = read[fire.card_id]
            cost = sum(TIERS[recall.tier].attempts for _, recall in solves)
            if calls + cost > self.max_calls:
                continue
            found = await self._compare(fire.card_id, solves)
            if any(map(_is_fair, found)):
                votes[fire.card_id] = found
                calls += cost
        missing = [fire.card_id for fire in fires if fire.card_id not in votes]
        return Impact(
            fires=fires,
            lifts=_lifts("leave_one_out", votes, self.tree),
            calls=calls,
            unmeasured=tuple(missing),
        )

    async def _compare(
        self, card_id: str, solves: Sequence[tuple[Solution, RetrievedContext]]
    ) -> list[CardVotes]:
        """Return the votes on a card: recorded attempts with it, new ones without it."""
        after = await gather_all(
            self._sample_without(card_id, record, recall)
            for record, recall in solves
        )
        found = []
        for (record, recall), without in zip(solves, after, strict=True):
            right = [
                bool(each.correct) for each in _judged(record, recall.tier)
            ]
            counts = (sum(right), len(right), sum(without), len(without))
            found.append(_votes(record.problem, counts))
        return found

    async def _sample_without(
        self, card_id: str, record: Solution, recall: RetrievedContext
    ) -> list[bool]:
        """Return right or wrong for a tier's attempts made again on the same keys."""
        others = [
            self.tree.card(name) for name in recall.cards if name != card_id
        ]
        context = Context(tuple(others), placement=self.placement)
        kit = replace(self.kit, seed=record.seed)
        problem = self.problems[record.problem]
        attempts = await sample(problem, TIERS[recall.tier], context, kit)
        classes = await classes_of(problem, attempts, kit)
        right = await right_positions(problem, classes, kit)
        found = []
        for place, attempt in enumerate(attempts):
            if attempt.outcome is not Outcome.PROVIDER_ERROR:
                found.append(place in right)
        return found


# What both share.


def count_fires(records: Sequence[Solution]) -> tuple[Fire, ...]:
    """Return how often each card was shown, by id.

    A card that a dropout run hid from every attempt of a tier was not shown there.
    """
    solves: defaultdict[str, dict[int, Solution]] = defaultdict(dict)
    tiers: defaultdict[str, Counter[TierName]] = defaultdict(Counter)
    for place, record in enumerate(records):
        for recall in record.recalls:
            for card_id in _shown_cards(record, recall):
                solves[card_id][place] = record
                tiers[card_id][recall.tier] += 1
    found = []
    for card_id in sorted(solves):
        shown = list(solves[card_id].values())
        counts = Counter(record.correct for record in shown)
        fire = Fire(
            card_id=card_id,
            n_shown=len(shown),
            shown_correct=counts[True],
            shown_wrong=counts[False],
            tiers=dict(tiers[card_id]),
            problems=tuple(dict.fromkeys(record.name for record in shown)),
        )
        found.append(fire)
    return tuple(found)


def _shown_cards(record: Solution, recall: RetrievedContext) -> list[str]:
    """Return the cards of a tier that some attempt saw."""
    hidden = set(recall.cards)
    for attempt in record.attempts:
        cancelled = attempt.outcome is Outcome.CANCELLED
        if attempt.tier is recall.tier and not cancelled:
            hidden.intersection_update(attempt.hidden)
    return [card_id for card_id in recall.cards if card_id not in hidden]


def lift_of(
    card_id: str, method: Method, strata: Iterable[CardVotes], text: str = ""
) -> Lift | None:
    """Return the weighted difference over all strata; `None` if nothing compares."""
    votes = tuple(filter(_is_fair, strata))
    if not votes:
        return None
    sums = _by_problem(votes)
    low = -1.0
    high = 1.0
    problems = len(sums.weight)
    if problems >= MIN_PROBLEMS:
        half = sums.standard_error() * t_quantile(0.5 + LEVEL / 2, problems - 1)
        low = max(low, sums.effect - half)
        high = min(high, sums.effect + half)
    shown = 0
    hidden = 0
    for vote in votes:
        shown += vote.made
        hidden += vote.made_without
    return Lift(
        card_id=card_id,
        method=method,
        effect=sums.effect,
        low=low,
        high=high,
        shown=shown,
        hidden=hidden,
        problems=problems,
        votes=votes,
        text=text,
    )


def text_digest(card: Card) -> str:
    """Return a short digest of a card's text."""
    return hashlib.sha256(card.payload.encode()).hexdigest()[:12]


def current_lifts(tree: EpistemicTree, impacts: Iterable[Impact]) -> list[Lift]:
    """Return the lifts of all epochs for the cards of a tree as they read now."""
    found = []
    for impact in impacts:
        for lift in impact.lifts:
            if lift.card_id in tree and lift.text == text_digest(
                tree.card(lift.card_id)
            ):
                found.append(lift)
    return found


def lifts_by_source(
    tree: EpistemicTree, impacts: Iterable[Impact], names: Mapping[str, str]
) -> tuple[Lift | None, Lift | None]:
    """Return the lift of all cards on problems they were written from, and on others.

    The difference shows whether what was learned carries over. Names are by problem id.
    """
    own: list[CardVotes] = []
    others: list[CardVotes] = []
    for impact in impacts:
        for lift in impact.lifts:
            if lift.card_id not in tree:
                continue
            sources = tree.card(lift.card_id).provenance.supporting_problems
            for vote in lift.votes:
                name = names.get(vote.problem, vote.problem)
                (own if name in sources else others).append(vote)
    return _without_votes(own), _without_votes(others)


def _without_votes(votes: Sequence[CardVotes]) -> Lift | None:
    lift = lift_of("", "dropout", votes)
    return lift.model_copy(update={"votes": ()}) if lift else None


def _lifts(
    method: Method,
    votes: Mapping[str, Sequence[CardVotes]],
    tree: EpistemicTree | None,
) -> tuple[Lift, ...]:
    digests = {card.card_id: text_digest(card) for card in tree or ()}
    found = []
    for name in sorted(votes):
        lift = lift_of(name, method, votes[name], text=digests.get(name, ""))
        if lift:
            found.append(lift)
    return tuple(found)


def _votes(problem: str, counts: Sequence[int]) -> CardVotes:
    right, made, right_without, made_without = counts
    return CardVotes(
        problem=problem,
        right=right,
        made=made,
        right_without=right_without,
        made_without=made_without,
    )


def _is_fair(votes: CardVotes) -> bool:
    """Whether attempts were made both with the card and without it."""
    return votes.made > 0 and votes.made_without > 0


class _ProblemSums(NamedTuple):
    """The strata of a card, summed by problem."""

    excess: Floats  # the weight times the difference of the two rates
    weight: Floats
    chance: Floats  # the variance within problems, weighed

    @property
    def effect(self) -> float:
        """Return the weighted difference of the rates with and without the card."""
        return float(self.excess.sum() / self.weight.sum())

    def standard_error(self) -> float:
        """Return that of the effect, a jackknife over problems."""
        total = self.weight.sum()
        left_out = (self.excess.sum() - self.excess) / (total - self.weight)
        n = len(self.weight)
        spread = (n - 1) / n * ((left_out - self.effect) ** 2).sum()
        return math.hypot(math.sqrt(spread), DOUBT / total)


def _by_problem(votes: Sequence[CardVotes]) -> _ProblemSums:
    places: dict[str, int] = {}
    index = [places.setdefault(vote.problem, len(places)) for vote in votes]
    rows = [(v.right, v.made, v.right_without, v.made_without) for v in votes]
    right, made, right_without, without = (
        np.array(rows, dtype=float).reshape(-1, 4).T
    )
    both = made + without
    weight = made * without / both
    excess = (right * without - right_without * made) / both
    # The rate of one attempt, both arms together, pulled away from 0 and 1.
    rate = (right + right_without + 1) / (both + 2)
    chance = weight * rate * (1 - rate)
    return _ProblemSums(
        np.bincount(index, excess).astype(float),
        np.bincount(index, weight).astype(float),
        np.bincount(index, chance).astype(float),
    )


def _judged(record: Solution, tier: TierName) -> list[Attempt]:
    """Return the tier's graded attempts, without those that the provider failed."""
    found = []
    for attempt in record.attempts:
        failed = attempt.outcome is Outcome.PROVIDER_ERROR
        if attempt.tier is tier and not failed and attempt.correct is not None:
            found.append(attempt)
    return found


def _require_uncut(records: Sequence[Solution]) -> Sequence[Solution]:
    """Return the records; refuse a run that stopped early.

    Early stop keeps the attempts that agree, which is no fair sample.
    """
    for record in records:
        if any(each.outcome is Outcome.CANCELLED for each in record.attempts):
            raise UsageError(
                f"early stop cut off attempts at {record.name}, so no card can be "
                "measured",
                fix="learn without early stop",
            )
    return records


# The posterior: what few problems show of a card, given all cards of its tree.
#
# A card does nothing (with probability `idle`), or its lift is drawn from a normal
# distribution. The three numbers that describe the tree (idle share, mean, spread) are
# unknown too: all their combinations on a grid are weighed by how well they explain every
# measured lift. So cards measured on two problems borrow from the others, and where no
# card of a tree does anything, the idle share takes them all.

IDLE = np.linspace(0.05, 0.95, 10)
MEANS = np.linspace(-0.6, 0.9, 31)
SPREADS = np.array([0.03, 0.06, 0.12, 0.2, 0.3, 0.45])
PRIOR_SCALE = 0.3  # before any data, lifts of more than 60 points are rare
NORMAL_95 = 1.959964
DIGITS = 4
"""The last bits of a sum differ between machines; a resumed run must give the identical
tree."""


class Posterior(NamedTuple):
    """The belief about a card's lift after measuring the whole tree."""

    effect: float
    low: float  # with `high` the middle 95 %, by mean and standard deviation
    high: float
    helps: float  # the probability that the lift is above zero
    harms: float


def posteriors(
    tree: EpistemicTree, impacts: Sequence[Impact]
) -> dict[str, Posterior]:
    """Return the posterior of every card that may be shown; empty if none is measured."""
    votes: defaultdict[str, list[CardVotes]] = defaultdict(list)
    for lift in current_lifts(tree, impacts):
        votes[lift.card_id] += lift.votes
    if not votes:
        return {}
    return shrink(votes, [card.card_id for card in tree.shown])


def shrink(
    measured: Mapping[str, Iterable[CardVotes]], also: Sequence[str] = ()
) -> dict[str, Posterior]:
    """Return the posterior of every measured card, and of the unmeasured in `also`."""
    cards: dict[str, _ProblemSums] = {}
    for name, votes in measured.items():
        fair = list(filter(_is_fair, votes))
        if fair:
            cards[name] = _by_problem(fair)
    between = _between_problems(list(cards.values()))
    lifts = np.array([sums.effect for sums in cards.values()])
    errors = np.array([_variance(sums, between) for sums in cards.values()])
    grid = np.array(list(product(IDLE, MEANS, SPREADS)))
    idle, mean, spread = grid.T[:, :, None]
    total = spread**2 + errors
    none = np.log(idle) + _log_normal(lifts, 0.0, errors)
    some = np.log1p(-idle) + _log_normal(lifts, mean, total)
    both = np.logaddexp(none, some)
    prior = _log_normal(grid[:, 1:], 0.0, PRIOR_SCALE**2).sum(axis=1)
    weight = prior + both.sum(axis=1)
    weight = np.exp(weight - weight.max())
    weight = (weight / weight.sum())[:, None]
    active = np.exp(some - both)
    centre = (mean * errors + lifts * spread**2) / total
    variance = spread**2 * errors / total
    found = dict.fromkeys(also, _unmeasured(weight, idle, mean, spread))
    summaries = _summaries(weight, active, centre, variance)
    found.update(zip(cards, summaries, strict=True))
    return found


def _unmeasured(
    weight: Floats, idle: Floats, mean: Floats, spread: Floats
) -> Posterior:
    """Return the posterior of a card known by its tree alone."""
    [found] = _summaries(weight, 1 - idle, mean, spread**2)
    return found


def _summaries(
    weight: Floats, active: Floats, centre: Floats, variance: Floats
) -> list[Posterior]:
    """Return moments and the share above zero by column, averaged over the grid."""
    mean = (weight * active * centre).sum(axis=0)
    square = (weight * active * (centre**2 + variance)).sum(axis=0)
    half = NORMAL_95 * np.sqrt(np.maximum(square - mean**2, 0.0))
    above = np.vectorize(_normal_above, otypes=[float])(
        centre / np.sqrt(variance)
    )
    helps = (weight * active * above).sum(axis=0)
    harms = (weight * active * (1 - above)).sum(axis=0)
    low = np.maximum(mean - half, -1)
    high = np.minimum(mean + half, 1)
    rows = np.stack([mean, low, high, helps, harms], axis=1).round(DIGITS)
    return [Posterior(*(float(value) + 0.0 for value in row)) for row in rows]


def _normal_above(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def _log_normal(
    x: Floats, mean: Floats | float, variance: Floats | float
) -> Floats:
    found: Floats = -0.5 * (np.log(variance) + (x - mean) ** 2 / variance)
    return found


def _variance(sums: _ProblemSums, between: float) -> float:
    """Return that of a card's lift: chance within problems, and between problems."""
    weight = sums.weight
    variance = sums.chance.sum() + between * (weight**2).sum()
    return float(variance / weight.sum() ** 2)


def _between_problems(cards: Sequence[_ProblemSums]) -> float:
    """Return how much a lift varies from problem to problem beyond chance, by moments."""
    spread = 0.0
    scale = 0.0
    for sums in cards:
        weight = sums.weight
        # To first order, E[w (d - centre)^2] is
        # (chance / w) (1 - w / total) + between w (1 - w / total).
        rest = 1 - weight / weight.sum()
        apart = weight * (sums.excess / weight - sums.effect) ** 2
        spread += (apart - sums.chance / weight * rest).sum()
        scale += (weight * rest).sum()
    return max(0.0, float(spread / scale)) if scale else 0.0
