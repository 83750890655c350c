"""Measure what cards do, and decide by it what stays.

Attempts are compared within strata, a problem at a tier: there, chance alone decides
whether an attempt saw the card. Tiers are not pooled, because how many HS attempts there
are depends on what MS attempts saw. A stratum weighs n1 n0 / (n1 + n0).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from itertools import chain, product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from pydantic import Field

from kace.cards.card import (
    CardLift,
    LiftMark,
    Status,
    plain_points,
)
from kace.cards.tree import Change, Deprecate, Edit, EpistemicTree
from kace.errors import counted, one_line
from kace.ladder.ladder import classes_of, mark, sample
from kace.ladder.policies import Dropout
from kace.ladder.prompt import Context
from kace.ladder.record import Outcome, RetrievedContext, Solution
from kace.ladder.relevance import (
    Floats,
    Relevance,
    RelevanceScore,
    TextTable,
    best_encoder,
    softmax,
)
from kace.ladder.tiers import LOCKED, TierName
from kace.learning import StepResult
from kace.learning.study import (
    BASE,
    RunReading,
    Settings,
    StepName,
    Study,
    gather_all,
)
from kace.problems import Problem

DROPOUT_RATE = 0.5
MOST_OWN = 6  # problems a card was written from that it is shown to
NEAREST = 4  # other problems that it is shown to whatever the gate says
FORCED = 1.0  # the score of a card that is shown so
TIERS = {tier.name: tier for tier in LOCKED}


class Fire(StepResult):
    """How often a card was shown, and how those solves ended. Not an effect."""

    n_shown: int  # solves in which some tier read it
    shown_correct: int
    shown_wrong: int
    tiers: dict[str, int] = Field(default_factory=dict)
    """How often each tier read it."""
    problems: tuple[str, ...] = ()


class CardVotes(StepResult):
    """The attempts at one problem and tier, made with a card and without it."""

    problem: str  # its id
    right: int = 0
    made: int = 0
    right_without: int = 0
    made_without: int = 0

    @property
    def fair(self) -> bool:
        """Whether attempts were made both with the card and without it."""
        return self.made > 0 and self.made_without > 0


class Lift(StepResult):
    """The change in the rate of right attempts that a card causes.

    The figures are the belief given all cards of the tree.
    """

    effect: float
    low: float  # with `high` the middle 95 %
    high: float
    helps: float = 0.0  # the probability that the lift is above zero
    carries: float = 0.0
    """The same on problems that the card was not written from; 0 without any."""
    shown: int  # attempts with the card, in this epoch
    hidden: int
    problems: int  # with attempts of both kinds
    votes: tuple[CardVotes, ...] = ()

    @property
    def wins(self) -> tuple[int, int]:
        """Return the numbers of problems that gained and lost attempts by the card."""
        excess = _by_problem(self.votes).excess
        return int((excess > 0).sum()), int((excess < 0).sum())

    @property
    def plain(self) -> float:
        """Return the difference of the rates as measured, whatever other cards do."""
        return _by_problem(self.votes).effect


class Impact(StepResult):
    """Everything measured of a tree's cards in one epoch, by card id."""

    fires: dict[str, Fire]
    lifts: dict[str, Lift]

    @property
    def summary(self) -> str:
        """Return the number of cards measured."""
        return f"{len(self.lifts)} cards measured"


Votes = Mapping[str, Sequence[CardVotes]]
"""The votes on each card."""


async def measure(
    epoch: int,
    tree: EpistemicTree,
    base: Sequence[Solution],
    study: Study,
) -> Impact:
    """Return fire statistics of the base run, and lifts by the configured method."""
    if study.settings.impact == "leave_one_out":
        records = await leave_one_out(tree, base, study)
    else:
        records = await run_dropout(epoch, tree, study)
    names = {problem.id: one_line(problem.name) for problem in study.train}
    lifts = lifts_of(dropout_votes(records), tree, names)
    return Impact(fires=count_fires(base or records), lifts=lifts)


def count_fires(records: Sequence[Solution]) -> dict[str, Fire]:
    """Return how often each card was shown, by id."""
    solves = defaultdict[str, list[Solution]](list)
    tiers = defaultdict[str, Counter[str]](Counter)
    for record in records:
        for recall in record.recalls:
            for card_id in recall.cards:
                tiers[card_id][recall.tier] += 1
                if record not in solves[card_id][-1:]:
                    solves[card_id].append(record)
    found = {}
    for card_id, shown in sorted(solves.items()):
        correct = [record.correct for record in shown]
        found[card_id] = Fire(
            n_shown=len(shown),
            shown_correct=correct.count(True),
            shown_wrong=correct.count(False),
            tiers=tiers[card_id],
            problems=tuple(dict.fromkeys(record.name for record in shown)),
        )
    return found


# The default: dropout. One run measures all cards.


async def run_dropout(
    epoch: int, tree: EpistemicTree, study: Study
) -> list[Solution]:
    """Solve again with each card hidden at random from each attempt.

    A card is shown where the gate shows it, to the problems it was written from, and to
    those nearest to it: otherwise cards that the gate misses are never measured. A
    problem that no card is shown to measures none, so it is left out.
    """
    relevance = Relevance(tree, study.config.retrieval)
    placed: Placed = {}
    if relevance.threshold:  # without one, the whole block is read
        table = TextTable(tree, study.train, best_encoder())
        relevance.scores = table.index()
        placed = measured_on(tree, relevance.scores, study.train)
    readers = [
        problem
        for problem in study.train
        if relevance.relevant(problem.text, tree.shown)
        or placed.get(problem.text)
    ]

    async def run(number: int) -> tuple[Solution, ...]:
        def score(problem: str) -> Mapping[str, float]:
            found = dict(relevance.scores(problem))
            groups = list(placed[problem].values())
            if groups:
                # A solve reads one domain, so runs take turns.
                names = groups[number % len(groups)]
                found.update(dict.fromkeys(names, FORCED))
            return found

        seed = study.seed_of(epoch, BASE + number)
        step = StepName("refine", "dropout", epoch, number=number + 1)
        dropout = Dropout(DROPOUT_RATE, seed=seed)
        reading = RunReading(tree, dropout, score if placed else None)
        return await study.run(step, readers, reading, seed)

    runs = await gather_all(map(run, range(study.settings.impact_runs)))
    return list(chain.from_iterable(runs))


Placed = dict[str, defaultdict[str, list[str]]]
"""Cards by the text of a problem and by their domain."""


def measured_on(
    tree: EpistemicTree, scores: RelevanceScore, train: Sequence[Problem]
) -> Placed:
    """Return the cards that each problem is shown whatever the gate says.

    They are those written from it, and those that it is among the nearest others of.
    """
    found: Placed = {}
    scored = {}
    for problem in train:
        found[problem.text] = defaultdict(list)
        scored[problem.text] = scores(problem.text)
    for card in tree.shown:
        own = []
        others = []
        for problem in train:
            text = problem.text
            if one_line(problem.name) in card.provenance.supporting_problems:
                own.append(text)
            elif card.card_id in scored[text]:
                others.append((scored[text][card.card_id], text))
        nearest = [text for _, text in nlargest(NEAREST, others)]
        for text in (*own[:MOST_OWN], *nearest):
            found[text][card.domain_tags[0]].append(card.card_id)
    return found


def dropout_votes(records: Iterable[Solution]) -> Votes:
    """Return the votes on every card that runs showed or hid."""
    counts = defaultdict[tuple[str, str, TierName], Counter[str]](Counter)
    for record in records:
        for recall, attempt in product(record.recalls, record.attempts):
            failed = attempt.outcome is Outcome.PROVIDER_ERROR
            right = attempt.correct
            if attempt.tier is not recall.tier or failed or right is None:
                continue
            for card_id in recall.cards:
                count = counts[card_id, record.problem, recall.tier]
                arm = "_without" if card_id in attempt.hidden else ""
                count[f"right{arm}"] += right
                count[f"made{arm}"] += 1
    votes = defaultdict[str, list[CardVotes]](list)
    for (card_id, problem, _), count in counts.items():
        votes[card_id].append(CardVotes(problem=problem, **count))
    return votes


# The paper's way: leave-one-out. One rerun a card.


async def leave_one_out(
    tree: EpistemicTree, base: Sequence[Solution], study: Study
) -> list[Solution]:
    """Return the base run's solves with attempts added that miss one card.

    The same attempts are sampled again without each card that they read.
    """

    async def leave_out(
        card_id: str, recall: RetrievedContext, record: Solution
    ) -> Solution:
        context = Context(
            tuple(map(tree.card, recall.cards)),
            placement=study.config.retrieval.placement,
            hide=lambda key, names: (card_id,),
        )
        kit = replace(study.session.kit, seed=record.seed)
        problem = study.by_id[record.problem]
        attempts = await sample(problem, TIERS[recall.tier], context, kit)
        classes = await classes_of(problem, attempts, kit)
        again = await mark(problem, attempts, classes, kit)
        alone = recall.model_copy(update={"cards": (card_id,)})
        change = {"recalls": (alone,), "attempts": (*record.attempts, *again)}
        return record.model_copy(update=change)

    work = []
    for record in base:
        if record.correct is not None:
            for recall in record.recalls:
                for card_id in recall.cards:
                    work.append(leave_out(card_id, recall, record))
    return await gather_all(work)


# What both share.


def lifts_of(
    votes: Votes, tree: EpistemicTree, names: Mapping[str, str]
) -> dict[str, Lift]:
    """Return the lift of each card measured, given all cards.

    Problems that a card was written from prove little about others, so both kinds of
    evidence are weighed apart. `names` are those of the training problems, by id.
    """
    others = defaultdict[str, list[CardVotes]](list)
    for name, rows in votes.items():
        sources = tree.card(name).provenance.supporting_problems
        for vote in rows:
            if names.get(vote.problem, vote.problem) not in sources:
                others[name].append(vote)
    elsewhere = shrink(others)
    found = {}
    for name, belief in sorted(shrink(votes).items()):
        fair = tuple(vote for vote in votes[name] if vote.fair)
        found[name] = Lift(
            **belief._asdict(),
            carries=elsewhere[name].helps if name in elsewhere else 0.0,
            shown=sum(vote.made for vote in fair),
            hidden=sum(vote.made_without for vote in fair),
            problems=len({vote.problem for vote in fair}),
            votes=fair,
        )
    return found


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


class _Sums(NamedTuple):
    """The strata of a card, summed by problem."""

    excess: Floats  # the weight times the difference of the two rates
    weight: Floats
    chance: Floats  # the variance within problems, weighed

    @property
    def effect(self) -> float:
        """Return the weighted difference of the rates with and without the card."""
        return float(self.excess.sum() / self.weight.sum())

    def variance(self, between: float) -> float:
        """Return that of the effect: chance within problems, and between problems."""
        variance = self.chance.sum() + between * (self.weight**2).sum()
        return float(variance / self.weight.sum() ** 2)


def _by_problem(votes: Iterable[CardVotes]) -> _Sums:
    sums = defaultdict[str, Floats](lambda: np.zeros(3))
    for vote in votes:
        if vote.fair:
            both = vote.made + vote.made_without
            weight = vote.made * vote.made_without / both
            gained = vote.right * vote.made_without
            lost = vote.right_without * vote.made
            # The rate of one attempt, both arms together, pulled away from 0 and 1.
            rate = (vote.right + vote.right_without + 1) / (both + 2)
            chance = weight * rate * (1 - rate)
            sums[vote.problem] += ((gained - lost) / both, weight, chance)
    return _Sums(*np.array(list(sums.values())).reshape(-1, 3).T)


def shrink(measured: Votes) -> dict[str, Posterior]:
    """Return the posterior of every card with a fair comparison."""
    cards = {}
    for name, votes in measured.items():
        sums = _by_problem(votes)
        if len(sums.weight):
            cards[name] = sums
    if not cards:
        return {}
    between = _between_problems(list(cards.values()))
    lifts = np.array([sums.effect for sums in cards.values()])
    errors = np.array([sums.variance(between) for sums in cards.values()])
    grid = np.array(list(product(IDLE, MEANS, SPREADS)))
    idle, mean, spread = grid.T[:, :, None]
    total = spread**2 + errors
    none = np.log(idle) + _log_normal(lifts, 0.0, errors)
    some = np.log1p(-idle) + _log_normal(lifts, mean, total)
    both = np.logaddexp(none, some)
    prior = _log_normal(grid[:, 1:], 0.0, PRIOR_SCALE**2).sum(axis=1)
    weight = softmax(prior + both.sum(axis=1))
    share = weight[:, None] * np.exp(some - both)
    centre = (mean * errors + lifts * spread**2) / total
    variance = spread**2 * errors / total
    above = np.vectorize(NormalDist().cdf, otypes=[float])
    # Moments and the share above zero, averaged over the grid.
    effect, square, helps = (
        (share * figure).sum(axis=0)
        for figure in (
            centre,
            centre**2 + variance,
            above(centre / np.sqrt(variance)),
        )
    )
    half = NORMAL_95 * np.sqrt(np.maximum(square - effect**2, 0.0))
    rows = np.stack([effect, effect - half, effect + half, helps], axis=1)
    rows = rows.clip(-1, 1).round(DIGITS) + 0.0
    return {
        name: Posterior(*row)
        for name, row in zip(cards, rows.tolist(), strict=True)
    }


def _log_normal(
    x: Floats, mean: Floats | float, variance: Floats | float
) -> Floats:
    found: Floats = -0.5 * (np.log(variance) + (x - mean) ** 2 / variance)
    return found


def _between_problems(cards: Sequence[_Sums]) -> float:
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


# Decisions. A revision stays if it gains enough. By default a card stays if it probably
# helps. By the paper's threshold, no card is retired by code.


def credit(
    tree: EpistemicTree, impact: Impact, epoch: int, settings: Settings
) -> tuple[Change, ...]:
    """Return edits that write on the cards what was measured, and their status."""
    changes: list[Change] = []
    for card in tree.shown:
        fire = impact.fires.get(card.card_id)
        lift = impact.lifts.get(card.card_id)
        if not fire and not lift:
            continue
        known = dict(card.provenance)
        known["n_uses"] += fire.n_shown if fire else 0
        score = card.helpfulness_score
        if lift:
            won, lost = lift.wins
            known["n_wins"] += won
            known["n_losses"] += lost
            known["promotion_status"] = status_of(lift, settings)
            known["validated_lift"] = lift_text(lift, epoch, settings)
            score = lift.effect
        after = card.revised(provenance=known, helpfulness_score=score)
        changes.append(Edit(after))
    return tuple(changes)


def status_of(lift: Lift, settings: Settings) -> Status:
    """Return the status that a card has earned; other problems must bear it out."""
    helps = min(lift.helps, lift.carries) >= settings.keep_above
    if settings.evidence == "threshold":
        helps = lift.plain > 0
    return Status.VALIDATED if helps else Status.EXPERIMENTAL


def lift_text(lift: Lift, epoch: int, settings: Settings) -> str:
    """Return a lift in words, as its card holds it."""
    noted = CardLift(
        LiftMark(lift.effect, lift.low, lift.high),
        lift.shown,
        lift.hidden,
        lift.problems,
        settings.impact.replace("_", "-"),
        epoch,
    )
    word = "not known to help on other problems"
    if status_of(lift, settings) is Status.VALIDATED:
        word = "probably helps"
    elif lift.helps <= 1 - settings.keep_above:
        word = "probably does not help"
    return f"{noted.line}; {word} (P = {lift.helps:.2f})"


def retire(
    tree: EpistemicTree,
    measured: EpistemicTree,
    impact: Impact,
    settings: Settings,
) -> tuple[Change, ...]:
    """Return deprecations of cards unlikely to help that no curator has rewritten.

    `measured` is the tree before its revision: another text has other evidence.
    """
    changes: list[Change] = []
    for name, lift in impact.lifts.items():
        unlikely = lift.helps <= 1 - settings.keep_above
        same = tree.card(name) == measured.card(name)
        if unlikely and same and settings.evidence == "posterior":
            changes.append(Deprecate(name))
    return tuple(changes)


class Comparison(StepResult):
    """A candidate tree compared with the base run, by problem and seed."""

    n: int
    lift: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    accepted: bool
    reason: str

    @property
    def summary(self) -> str:
        """Return the decision and its reason."""
        return f"{'kept' if self.accepted else 'not kept'}: {self.reason}"


def compare(
    base: Sequence[Solution],
    rerun: Sequence[Solution],
    threshold: float,
) -> Comparison:
    """Compare a rerun with the base run, pair by pair, and decide."""
    again = {record.problem: record for record in rerun}
    gained: list[str] = []
    lost: list[str] = []
    n = 0
    for before in base:
        after = again[before.problem]
        if before.correct is not None and not (before.failed or after.failed):
            n += 1
            change = bool(after.correct) - before.correct
            if change:
                (gained if change > 0 else lost).append(before.name)
    lift = (len(gained) - len(lost)) / max(1, n)
    accepted = n > 0 and lift >= threshold
    enough = "at least" if accepted else "below"
    return Comparison(
        n=n,
        lift=lift,
        gained=tuple(gained),
        lost=tuple(lost),
        accepted=accepted,
        reason=f"lift {plain_points(lift)} points on {counted(n, 'solve')}, "
        f"{enough} the threshold of {plain_points(threshold)}",
    )
