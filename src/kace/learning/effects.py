"""What cards do: how often each was shown, and its lift, from a dropout run or from paired reruns without it.

Attempts are compared within strata, a problem at a tier: there, whether an attempt saw the card is chance alone. Tiers
are not pooled, because how many HS attempts there are depends on what MS attempts saw. A stratum weighs n1 n0 / (n1 +
n0). The interval is a jackknife over problems. The p-value is the larger of its t test's, which asks whether the effect
carries over to other problems, and of the exact randomisation test's, which holds at any size and any rate.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from kace.cards.card import Card
from kace.cards.tree import EpistemicTree
from kace.errors import UsageError
from kace.ladder.ladder import Kit, classes_of, right_positions, sample
from kace.ladder.prompt import Context, Placement
from kace.ladder.record import Attempt, Outcome, RetrievedContext, Solution
from kace.ladder.tiers import LOCKED, TierName
from kace.learning.steps import Kept
from kace.learning.teacher import side_by_side
from kace.problems import Problem
from kace.runs.stats import Table, stratified_exact, t_p_value, t_quantile

MIN_PROBLEMS = 5  # below this many compared problems an effect is reported, but nothing is claimed of it
DOUBT = math.sqrt(0.5)
"""Joins the standard error of the successes a card adds, in attempts: as if one attempt with it and one without it
had gone the other way. Attempts that all agree would otherwise look exact, and rates near 0 or 1 too sure."""
LEVEL = 0.95
TIERS = {tier.name: tier for tier in LOCKED}

Method = Literal["dropout", "leave_one_out"]


class Fire(Kept):
    """How often a card was shown, and how those solves ended. An observation, not an effect."""

    card_id: str
    n_shown: int  # solves in which some tier read it
    shown_correct: int
    shown_wrong: int
    tiers: dict[TierName, int]
    problems: tuple[str, ...]


class CardVotes(Kept):
    """The attempts at one problem and tier: right and made with the card, right and made without it."""

    problem: str
    right: int
    made: int
    right_without: int
    made_without: int

    @classmethod
    def of(cls, problem: str, counts: Iterable[int]) -> CardVotes:
        """The attempts at a problem by their four counts."""
        names = ("right", "made", "right_without", "made_without")
        return cls(problem=problem, **dict(zip(names, counts, strict=True)))

    @property
    def table(self) -> Table:
        """The same as a table."""
        return Table(self.right, self.made, self.right_without, self.made_without)


class ProblemVotes(NamedTuple):
    """What all strata of a problem say together."""

    excess: float
    weight: float
    chance: float  # the variance within them, weighed


def by_problem(votes: Iterable[CardVotes]) -> dict[str, ProblemVotes]:
    """The strata of each problem together."""
    found: dict[str, ProblemVotes] = {}
    for vote in votes:
        table = vote.table
        before = found.get(vote.problem, ProblemVotes(0.0, 0.0, 0.0))
        # The variance of one attempt, both arms together, pulled away from 0 and 1.
        rate = (table.hits + table.other_hits + 1) / (table.n + table.other_n + 2)
        more = (table.excess, table.weight, table.weight * (rate * (1 - rate)))
        found[vote.problem] = ProblemVotes(
            *(one + other for one, other in zip(before, more, strict=True))
        )
    return found


class Lift(Kept):
    """The change in the rate of right attempts that a card causes, from those that saw it and those that did not."""

    card_id: str
    method: Method
    effect: float
    low: float
    high: float
    p: float  # two-sided, against no effect at all
    shown: int
    hidden: int
    problems: int  # problems with attempts of both kinds
    votes: tuple[CardVotes, ...] = ()
    says: str = ""  # the digest of the card's text: another text has other evidence

    @property
    def wins(self) -> tuple[int, int]:
        """Problems on which attempts were right more often with the card, and those on which they were less so."""
        excess = [each.excess for each in by_problem(self.votes).values()]
        return sum(each > 0 for each in excess), sum(each < 0 for each in excess)


class Impact(Kept):
    """Everything measured of a tree's cards in one epoch."""

    fires: tuple[Fire, ...] = ()
    lifts: tuple[Lift, ...] = ()
    calls: int = 0
    unmeasured: tuple[str, ...] = ()  # cards the call budget did not reach

    @property
    def by_card(self) -> tuple[dict[str, Fire], dict[str, Lift]]:
        """What was seen and measured of each card."""
        return {fire.card_id: fire for fire in self.fires}, {
            lift.card_id: lift for lift in self.lifts
        }


def fires(records: Sequence[Solution]) -> tuple[Fire, ...]:
    """How often each card was shown, by id. A card that a dropout run hid from every attempt of a tier was not."""
    seen: defaultdict[str, dict[int, set[TierName]]] = defaultdict(dict)
    for place, record in enumerate(records):
        for recall in record.recalls:
            made = [
                a
                for a in record.attempts
                if a.tier is recall.tier and a.outcome is not Outcome.CANCELLED
            ]
            for card_id in recall.cards:
                if any(card_id not in attempt.hidden for attempt in made):
                    seen[card_id].setdefault(place, set()).add(recall.tier)
    found = []
    for card_id, at in sorted(seen.items()):
        solves = [records[place] for place in at]
        counts = Counter(tier for tiers in at.values() for tier in tiers)
        fire = Fire(
            card_id=card_id,
            n_shown=len(solves),
            shown_correct=sum(record.correct is True for record in solves),
            shown_wrong=sum(record.correct is False for record in solves),
            tiers={tier: counts[tier] for tier in TierName if counts[tier]},
            problems=tuple(dict.fromkeys(record.name for record in solves)),
        )
        found.append(fire)
    return tuple(found)


def lift_of(
    card_id: str, method: Method, strata: Iterable[CardVotes], says: str = ""
) -> Lift | None:
    """The weighted difference over all strata, with its interval; `None` where nothing can be compared."""
    fair = tuple(vote for vote in strata if vote.table.weight)
    if not fair:
        return None
    effect = effect_of(fair)
    low = -1.0
    high = 1.0
    p = 1.0
    problems = len({vote.problem for vote in fair})
    if problems >= MIN_PROBLEMS:
        error = _standard_error(fair)
        df = problems - 1
        half = error * t_quantile(0.5 + LEVEL / 2, df)
        low = max(-1.0, effect - half)
        high = min(1.0, effect + half)
        p = max(
            t_p_value(effect / error, df), stratified_exact(vote.table for vote in fair)
        )
    measured = {"effect": effect, "low": low, "high": high, "p": p}
    counts = {
        "shown": sum(v.made for v in fair),
        "hidden": sum(v.made_without for v in fair),
        "problems": problems,
    }
    return Lift(
        card_id=card_id, method=method, **measured, **counts, votes=fair, says=says
    )


def evidence(
    tree: EpistemicTree, impacts: Iterable[Impact]
) -> dict[str, list[CardVotes]]:
    """Every vote on the cards of a tree as they read now, from all epochs."""
    found: defaultdict[str, list[CardVotes]] = defaultdict(list)
    for lift in (
        lift for impact in impacts for lift in impact.lifts if lift.card_id in tree
    ):
        if lift.says == text_digest(tree.card(lift.card_id)):
            found[lift.card_id] += lift.votes
    return found


@dataclass(frozen=True, slots=True)
class LiftBySource:
    """What all cards together do to problems that they were written from, and to others: whether it carries over."""

    own: Lift | None
    others: Lift | None


def lift_by_source(
    tree: EpistemicTree, impacts: Iterable[Impact], names: Mapping[str, str]
) -> LiftBySource:
    """The votes of all lifts, split by whether the card names the problem as its source. Names are by problem id."""
    votes: dict[bool, list[CardVotes]] = {True: [], False: []}
    for lift in (
        lift for impact in impacts for lift in impact.lifts if lift.card_id in tree
    ):
        sources = tree.card(lift.card_id).provenance.supporting_problems
        for vote in lift.votes:
            votes[names.get(vote.problem, vote.problem) in sources].append(vote)
    found = (lift_of("", "dropout", votes[own]) for own in (True, False))
    return LiftBySource(
        *(lift and lift.model_copy(update={"votes": ()}) for lift in found)
    )


def text_digest(card: Card) -> str:
    """What a card says, in short."""
    return hashlib.sha256(card.payload.encode()).hexdigest()[:12]


def effect_of(votes: Sequence[CardVotes]) -> float:
    """The weighted difference of the rates with and without the card."""
    return math.fsum(v.table.excess for v in votes) / math.fsum(
        v.table.weight for v in votes
    )


def _standard_error(votes: Sequence[CardVotes]) -> float:
    """Of the weighted difference, by leaving out one problem at a time."""
    problems = by_problem(votes).values()
    gained = math.fsum(p.excess for p in problems)
    total = math.fsum(p.weight for p in problems)
    n = len(problems)
    left_out = (
        ((gained - p.excess) / (total - p.weight) - gained / total) ** 2
        for p in problems
    )
    return math.hypot(math.sqrt((n - 1) / n * math.fsum(left_out)), DOUBT / total)


def dropout_lifts(
    records: Sequence[Solution], tree: EpistemicTree | None = None
) -> tuple[Lift, ...]:
    """The lift of every card that a dropout run both showed and hid within a stratum, averaged over its neighbours."""
    found: defaultdict[str, defaultdict[tuple[str, TierName], list[int]]]
    found = defaultdict(lambda: defaultdict(lambda: [0, 0, 0, 0]))
    for record in _uncut(records):
        for recall in record.recalls:
            for attempt in _judged(record, recall.tier):
                for card_id in recall.cards:
                    counts = found[card_id][record.problem, recall.tier]
                    arm = 2 if card_id in attempt.hidden else 0
                    counts[arm] += bool(attempt.correct)
                    counts[arm + 1] += 1
    votes = {
        name: [CardVotes.of(at, n) for (at, _), n in counts.items()]
        for name, counts in found.items()
    }
    return _lifts("dropout", votes, tree)


def _lifts(
    method: Method, votes: Mapping[str, Sequence[CardVotes]], tree: EpistemicTree | None
) -> tuple[Lift, ...]:
    says = {card.card_id: text_digest(card) for card in tree or ()}
    found = (
        lift_of(name, method, votes[name], says=says.get(name, ""))
        for name in sorted(votes)
    )
    return tuple(filter(None, found))


def paired(
    with_card: Sequence[Sequence[bool]],
    without: Sequence[Sequence[bool]],
    problems: Sequence[str] = (),
) -> list[CardVotes]:
    """Strata of attempts with a card and without it, paired by position; without `problems`, one each."""
    rows = zip(
        problems or map(str, range(len(with_card))), with_card, without, strict=True
    )
    return [
        CardVotes.of(name, (sum(one), len(one), sum(other), len(other)))
        for name, one, other in rows
    ]


async def leave_one_out(
    base: Sequence[Solution],
    tree: EpistemicTree,
    problems: Mapping[str, Problem],
    kit: Kit,
    *,
    max_calls: int,
    placement: Placement = "instructions",
) -> Impact:
    """The lift of each card that the base run showed, beside all its neighbours; most shown first.

    A card is measured whole or, where its reruns no longer fit into the calls left, not at all. Calls read from a cache
    count as well, so that a resumed run measures the same cards. Raises where the base run stopped early or hid cards.
    """
    if any(a.hidden for record in base for a in record.attempts):
        raise UsageError(
            "the base run hid cards at random, so there is nothing to leave one out of",
            fix="give leave-one-out a base run without dropout",
        )
    shown = fires(base)
    read = defaultdict[str, list[tuple[Solution, RetrievedContext]]](list)
    for record in _uncut(base):
        for recall in record.recalls if record.correct is not None else ():
            for card_id in recall.cards:
                read[card_id].append((record, recall))

    def others(recall: RetrievedContext, without: str) -> Context:
        """What an attempt read, less one card, in the same place of the prompt."""
        return Context(
            tuple(tree.card(n) for n in recall.cards if n != without),
            placement=placement,
        )

    votes: dict[str, list[CardVotes]] = {}
    calls = 0
    for fire in sorted(shown, key=lambda fire: (-fire.n_shown, fire.card_id)):
        here = read[fire.card_id]
        cost = sum(TIERS[recall.tier].attempts for _, recall in here)
        if calls + cost > max_calls:
            continue
        before = [
            [bool(a.correct) for a in _judged(record, recall.tier)]
            for record, recall in here
        ]
        after = await side_by_side(
            _again(
                problems[record.problem],
                recall.tier,
                others(recall, fire.card_id),
                replace(kit, seed=record.seed),
            )
            for record, recall in here
        )
        found = paired(before, after, [record.problem for record, _ in here])
        if any(vote.table.weight for vote in found):
            votes[fire.card_id] = found
            calls += cost
    unmeasured = tuple(fire.card_id for fire in shown if fire.card_id not in votes)
    return Impact(
        fires=shown,
        lifts=_lifts("leave_one_out", votes, tree),
        calls=calls,
        unmeasured=unmeasured,
    )


async def _again(
    problem: Problem, tier: TierName, context: Context, kit: Kit
) -> list[bool]:
    """Right or wrong, for a tier's attempts made again on the same keys; without those that the provider failed."""
    same = replace(kit, early_stop=False)
    attempts = await sample(problem, TIERS[tier], context, (), same)
    classes = await classes_of(problem, attempts, kit)
    right = await right_positions(problem, classes, kit)
    return [
        place in right
        for place, a in enumerate(attempts)
        if a.outcome is not Outcome.PROVIDER_ERROR
    ]


def _judged(record: Solution, tier: TierName) -> list[Attempt]:
    """The tier's attempts that say something of the cards they saw: not those that the provider failed."""
    made = (
        a
        for a in record.attempts
        if a.tier is tier and a.outcome is not Outcome.PROVIDER_ERROR
    )
    return [a for a in made if a.correct is not None]


def _uncut(records: Sequence[Solution]) -> Sequence[Solution]:
    """The records, if every attempt ran to its end: early stop keeps those that agree, which is no fair sample."""
    for record in records:
        if any(a.outcome is Outcome.CANCELLED for a in record.attempts):
            raise UsageError(
                f"early stop cut off attempts at {record.name}, so no card can be measured",
                fix="learn without early stop",
            )
    return records
