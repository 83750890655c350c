"""What a card is worth, measured in worlds where it is known: randomised dropout against leave-one-out.

    python benchmarks/bench_impact.py [--quick]

Attempts are coin throws: each problem has a rate, each card adds its effect. Leave-one-out makes every attempt once
with the whole block and once more without each card; dropout hides every card from every attempt with probability 1/2
and compares, for each card, those that saw it with those that did not. Both go through the estimator the learner uses.
Then worlds in which no card has an effect: how often a card is called or a revised tree is committed all the same.

The effects of section 1 add up. Where cards interact the two methods aim at different numbers: leave-one-out at a
card's effect beside all the others, dropout at its effect averaged over random choices of them.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev

from kace.cards.card import Card, Difficulty, Provenance, Status
from kace.cards.tree import Batch, EpistemicTree, applied
from kace.ladder.record import Solution
from kace.ladder.tiers import ExitPath
from kace.learning.commit import CommitRule, analyse, credit
from kace.learning.effects import MIN_PROBLEMS, CardVotes, Impact, effect_of, lift_of
from kace.learning.shrinkage import shrink
from kace.runs.stats import holm, wilson

BLOCKS = (2, 4, 8, 16)
EFFECTS = (0.10, 0.0, -0.05, 0.0)
PROBLEMS = 30
ATTEMPTS = 3
ALPHA = 0.05
EPOCHS = 3
CARDS = 8
DOMAINS = 5
LOOKS = 2

Strata = list[list[CardVotes]]
"""Comparisons by card."""


@dataclass(frozen=True, slots=True)
class World:
    """Problems with their rates, and what each card adds to them."""

    rates: tuple[float, ...]
    effects: tuple[tuple[float, ...], ...]
    """By problem, then by card."""
    attempts: int = ATTEMPTS

    @property
    def cards(self) -> int:
        """How many there are."""
        return len(self.effects[0])

    def throw(self, problem: int, shown: int, chance: random.Random) -> bool:
        """One attempt that sees the cards whose bits are set."""
        effects = self.effects[problem]
        rate = self.rates[problem] + sum(effect for card, effect in enumerate(effects) if shown >> card & 1)
        return chance.random() < rate


def constant(cards: int, chance: random.Random) -> World:
    """A world whose effects are the same on every problem and add up: both estimators aim at the same number."""
    effects = tuple(EFFECTS[card % len(EFFECTS)] for card in range(cards))
    return World(tuple(chance.uniform(0.3, 0.6) for _ in range(PROBLEMS)), (effects,) * PROBLEMS)


def by_dropout(world: World, seeds: int, chance: random.Random) -> Strata:
    """One run per seed, in which every attempt hides every card with probability 1/2."""
    found: Strata = [[] for _ in range(world.cards)]
    for problem in range(len(world.rates)):
        counts = [[0, 0, 0, 0] for _ in range(world.cards)]
        for _ in range(world.attempts * seeds):
            shown = chance.getrandbits(world.cards)
            right = world.throw(problem, shown, chance)
            for card, count in enumerate(counts):
                arm = 0 if shown >> card & 1 else 2
                count[arm] += right
                count[arm + 1] += 1
        for card, count in enumerate(counts):
            found[card].append(CardVotes.of(str(problem), count))
    return [[c for c in comparisons if c.table.weight] for comparisons in found]


def by_leaving_out(world: World, seeds: int, chance: random.Random) -> Strata:
    """A base run, and a rerun without each card."""
    found: Strata = [[] for _ in range(world.cards)]
    whole, n = (1 << world.cards) - 1, world.attempts * seeds
    for problem in range(len(world.rates)):
        base = sum(world.throw(problem, whole, chance) for _ in range(n))
        for card, comparisons in enumerate(found):
            again = sum(world.throw(problem, whole & ~(1 << card), chance) for _ in range(n))
            comparisons.append(CardVotes.of(str(problem), (base, n, again, n)))
    return found


@dataclass(frozen=True, slots=True)
class Errors:
    """Estimates less the truth: one row per world, one column per card."""

    rows: tuple[tuple[float, ...], ...]
    covered: float

    @property
    def mse(self) -> float:
        """The mean squared error."""
        return fmean(self._squares)

    @property
    def doubt(self) -> float:
        """The relative Monte Carlo standard error of that mean."""
        return stdev(self._squares) / math.sqrt(len(self.rows)) / self.mse

    @property
    def _squares(self) -> list[float]:
        return [fmean(error * error for error in row) for row in self.rows]

    def bias(self, effect: float) -> str:
        """The mean error over the cards of that effect, with its Monte Carlo interval, in points."""
        cards = [card for card in range(len(self.rows[0])) if EFFECTS[card % len(EFFECTS)] == effect]
        if not cards:
            return " " * 12
        means = [fmean(row[card] for card in cards) for row in self.rows]
        return f"{100 * fmean(means):+5.2f} ± {196 * stdev(means) / math.sqrt(len(means)):4.2f}"


Method = Callable[[World, int, random.Random], Strata]


def errors(method: Method, cards: int, seeds: int, worlds: int, *, intervals: int = 0) -> Errors:
    """What a method says of many worlds with such a block; intervals, which take time, in the first of them only."""
    chance = random.Random(f"{method.__name__} {cards} {seeds}")
    rows, covered = [], []
    for number in range(worlds):
        world = constant(cards, chance)
        found, truth = method(world, seeds, chance), world.effects[0]
        rows.append(tuple(effect_of(c) - true for c, true in zip(found, truth, strict=True)))
        if number < intervals:
            lifts = [lift_of("EXACT_BENCH_CARD", "dropout", comparisons) for comparisons in found]
            covered += [x is not None and x.low <= true <= x.high for x, true in zip(lifts, truth, strict=True)]
    return Errors(tuple(rows), fmean(covered) if covered else math.nan)


def seeds_needed(target: float, found: Sequence[tuple[int, float]]) -> float:
    """Dropout runs that reach a mean squared error: information grows by the same amount with each further run."""
    (k1, mse1), (k2, mse2) = next((pair for pair in pairwise(found) if pair[1][1] <= target), (found[-2], found[-1]))
    return k1 + (k2 - k1) * (1 / target - 1 / mse1) / (1 / mse2 - 1 / mse1)


def compare(worlds: int) -> None:
    run = PROBLEMS * ATTEMPTS
    print(
        f"\n1. Known effects of +10, 0 and -5 points; {PROBLEMS} problems, {ATTEMPTS} attempts each = {run} calls a run"
    )
    print(f"   n = {worlds:,} worlds a row; errors in points; ± is the 95 % Monte Carlo interval of a mean error\n")
    print("   block  method         calls  bias of +10     bias of 0       bias of -5     rmse  95 % interval covers")
    summary = []
    for cards in BLOCKS:
        some = worlds // 3
        paired = errors(by_leaving_out, cards, 1, worlds, intervals=some)
        runs = {k: errors(by_dropout, cards, k, worlds, intervals=some * (k == 2)) for k in (1, 2, 3, cards + 1)}
        rows = [("leave-one-out", cards + 1, paired), ("dropout", 2, runs[2]), ("dropout", cards + 1, runs[cards + 1])]
        for name, k, e in rows:
            biases = "  ".join(e.bias(effect) for effect in (0.10, 0.0, -0.05))
            covers = "" if math.isnan(e.covered) else f"{100 * e.covered:5.1f} % of {cards * some:,}"
            print(f"   {cards:5}  {name:13} {k * run:6}  {biases}  {100 * math.sqrt(e.mse):5.2f}  {covers}".rstrip())
        needed = seeds_needed(paired.mse, [(k, runs[k].mse) for k in sorted(runs)])
        doubt = 1.96 * math.hypot(paired.doubt, runs[2].doubt)
        summary.append((cards, math.sqrt(paired.mse / runs[cards + 1].mse), needed, doubt))
    print('\n   Calls for the same error; "base free" leaves out the base run, which the learner makes anyway\n')
    print("   block  rmse ratio at equal calls  leave-one-out  dropout  (runs)  ratio           base free")
    for cards, at_equal, needed, doubt in summary:
        ratio = (cards + 1) / needed
        print(
            f"   {cards:5}  {at_equal:25.2f}  {(cards + 1) * run:13}  {needed * run:7.0f}  {needed:6.2f}"
            f"  {ratio:5.2f} ± {ratio * doubt:4.2f}  {cards / needed:9.2f}"
        )


def null_worlds() -> dict[str, Callable[[int, random.Random], World]]:
    """Worlds without a mean effect, by name."""

    def alike(rate: Callable[[random.Random], float]) -> Callable[[int, random.Random], World]:
        return lambda n, chance: World(tuple(rate(chance) for _ in range(n)), ((0.0,) * CARDS,) * n)

    def mixed(n: int, chance: random.Random) -> World:
        """Every card helps half the problems and harms the others, by as much: no effect on the average."""
        effects = tuple(tuple(chance.choice((-0.06, 0.06)) for _ in range(CARDS)) for _ in range(n))
        return World((0.5,) * n, effects)

    return {
        "all rates 0.03": alike(lambda chance: 0.03),
        "all rates 0.97": alike(lambda chance: 0.97),
        "all rates 0.5": alike(lambda chance: 0.5),
        "rates near 0 or 1": alike(lambda chance: chance.betavariate(0.3, 0.3)),
        "effects that cancel": mixed,
    }


def a_tree() -> EpistemicTree:
    """As many cards as the null worlds have."""
    return EpistemicTree.of(
        (),
        (
            Card(
                card_id=f"EXACT_BENCH_{number}",
                payload="Useful when:\n- measuring\n\nDo nothing.",
                routing_conditions=(),
                difficulty_tag=Difficulty.MEDIUM,
                domain_tags=("universal",),
                helpfulness_score=0.0,
                provenance=Provenance(source="benchmark"),
            )
            for number in range(CARDS)
        ),
    )


def called(world: Callable[[], World], method: Method, chance: random.Random) -> bool:
    """Whether any card is validated or deprecated in any epoch of one run."""
    tree = a_tree()
    for epoch in range(1, EPOCHS + 1):
        found = method(world(), 1, chance)
        lifts = [lift_of(card.card_id, "dropout", c) for card, c in zip(tree, found, strict=True) if c]
        impact = Impact(lifts=tuple(lift for lift in lifts if lift))
        tree = applied(tree, Batch(credit(tree, impact, epoch=epoch, alpha=ALPHA / EPOCHS)))
        if any(card.status is not Status.EXPERIMENTAL for card in tree):
            return True
    return False


def share(hits: int, n: int) -> str:
    low, high = wilson(hits, n)
    return f"{100 * hits / n:5.2f} % [{100 * low:.2f}, {100 * high:.2f}]"


def cards_called(runs: int) -> None:
    print(f"\n2. No mean effect: runs of {EPOCHS} epochs in which any of {CARDS} cards is ever validated or deprecated")
    print(f"   alpha = {ALPHA:.0%} over the run, a third of it each epoch; n = {runs} runs a row\n")
    print("   problems  world                 dropout                  leave-one-out")
    for problems in (5, 8, 20, 45):
        for name, make in null_worlds().items():
            rates = []
            for method in (by_dropout, by_leaving_out):
                chance = random.Random(f"{name} {problems} {method.__name__}")
                hits = sum(called(lambda: make(problems, chance), method, chance) for _ in range(runs))  # noqa: B023
                rates.append(share(hits, runs))
            print(f"   {problems:8}  {name:20}  {rates[0]:23}  {rates[1]}")


BLANK = Solution(
    problem="",
    label="",
    family=None,
    domain=None,
    seed=0,
    exit=ExitPath.MS_MAJORITY,
    answer=None,
    expected="1",
    verdict=None,
    correct=False,
    paper_calls=5,
    real_calls=5,
    seconds=0.0,
    failed=False,
    classes=(),
    attempts=(),
)


def solved(rights: Sequence[bool]) -> list[Solution]:
    """Records that say only whether each problem was solved."""
    return [BLANK.model_copy(update={"problem": str(n), "correct": right}) for n, right in enumerate(rights)]


Redraw = Callable[[bool, float, random.Random], bool]


def anew(before: bool, rate: float, chance: random.Random) -> bool:
    return chance.random() < rate


def wrong_only(before: bool, rate: float, chance: random.Random) -> bool:
    return before or chance.random() < rate


def committed(rates: Sequence[float], rule: CommitRule, redraw: Redraw, chance: random.Random) -> bool:
    """Whether one interim analysis of a domain, all against the same base run, commits a candidate like the base."""
    base = [chance.random() < rate for rate in rates]
    for number in range(1, LOOKS + 1):
        again = [redraw(before, rate, chance) for before, rate in zip(base, rates, strict=True)]
        seen = analyse(solved(base), solved(again), domain="d", number=number, rule=rule, removes_only=False)
        if seen.accepted:
            return True
    return False


def commits(runs: int) -> None:
    family = LOOKS * DOMAINS * EPOCHS
    print(f"\n3. Candidates that change nothing: {DOMAINS} domains, {EPOCHS} epochs, {LOOKS} interim analyses at most")
    print(f"   threshold 1 point, alpha = {ALPHA:.0%}; n = {runs} runs of {DOMAINS * EPOCHS} domains a row\n")
    print("   problems  rule                                     a domain commits        some domain of a run commits")
    rules: tuple[tuple[str, CommitRule, Redraw], ...] = (
        ("the threshold alone (alpha 1)", CommitRule(0.01, 1.0, LOOKS), anew),
        ("alpha shared by a domain's looks", CommitRule(0.01, ALPHA, LOOKS), anew),
        ("alpha shared by all looks of a run", CommitRule(0.01, ALPHA, family), anew),
        ("the same, only wrong solves drawn anew", CommitRule(0.01, ALPHA, family), wrong_only),
    )
    for problems in (10, 30, 100):
        for name, rule, redraw in rules:
            chance = random.Random(f"{name} {problems}")
            once = runs_with = 0
            for _ in range(runs):
                rates = [[chance.betavariate(0.6, 0.6) for _ in range(problems)] for _ in range(DOMAINS * EPOCHS)]
                hits = sum(committed(domain, rule, redraw, chance) for domain in rates)
                once, runs_with = once + hits, runs_with + bool(hits)
            print(f"   {problems:8}  {name:40} {share(once, runs * DOMAINS * EPOCHS):23} {share(runs_with, runs)}")
    print("\n   The last rule breaks the test's premise: what is drawn anew must not depend on how the base run went.")


def power(worlds: int) -> None:
    """How often one good card among eight is called, where the others do nothing."""
    print(f"\n4. One card of +40 points among {CARDS}: worlds with p at most 0.1 / {CARDS}; n = {worlds} a row\n")
    print("   problems  dropout runs  validated")
    for problems in (10, 15, 20, 40):
        for seeds in (1, 2, 3):
            chance = random.Random(f"power {problems} {seeds}")
            hits = 0
            for _ in range(worlds):
                effects = ((0.4, *(0.0,) * (CARDS - 1)),) * problems
                world = World(tuple(chance.uniform(0.1, 0.5) for _ in range(problems)), effects)
                lift = lift_of("EXACT_BENCH_0", "dropout", by_dropout(world, seeds, chance)[0])
                hits += bool(lift and lift.effect > 0 and lift.p <= 0.1 / CARDS)
            print(f"   {problems:8}  {seeds:12}  {share(hits, worlds)}")


Draw = Callable[[random.Random], float]

LIFTS: dict[str, Draw] = {
    "nothing to find": lambda chance: 0.0,
    "all cards -10": lambda chance: -0.1,
    "half +40, half 0": lambda chance: 0.4 * (chance.random() < 0.5),
    "half +40, half -20": lambda chance: 0.4 if chance.random() < 0.5 else -0.2,
    "one in ten +40": lambda chance: 0.4 * (chance.random() < 0.1),
    "normal +20 ± 20": lambda chance: chance.gauss(0.2, 0.2),
    "normal 0 ± 10": lambda chance: chance.gauss(0.0, 0.1),
}
"""The true lifts of a tree's cards, by the name of the world."""
RUNS = 4
KEEP, RETIRE = 0.8, 0.2


def one_card(lift: float, problems: int, chance: random.Random) -> list[CardVotes]:
    """A card on problems of its own, in dropout runs of the learner's size."""
    found = []
    for number in range(problems):
        rate, counts = chance.betavariate(0.6, 0.9), [0, 0, 0, 0]
        for _ in range(ATTEMPTS * RUNS):
            arm = 0 if chance.random() < 0.5 else 2
            counts[arm] += chance.random() < rate + (lift if arm == 0 else 0.0)
            counts[arm + 1] += 1
        found.append(CardVotes.of(str(number), counts))
    return found


def few_problems(worlds: int) -> None:
    """Which cards each rule keeps, and what the kept ones are truly worth."""
    print(f"\n5. Few problems a card: {RUNS} dropout runs, trees of 30 cards; n = {worlds} trees a row")
    print(f"   posterior: kept at P(lift > 0) >= {KEEP}, retired at <= {RETIRE}; Holm: {MIN_PROBLEMS} problems, 10 %")
    print(
        "   gain: the true lift of the kept cards, in points a card of the tree; best: of all cards with a true gain\n"
    )
    print("   problems  world                 kept: posterior  Holm    retired  gain: posterior  Holm    all     best")
    for problems in (4, 10):
        for name, draw in LIFTS.items():
            chance = random.Random(f"few {problems} {name}")
            sums = [0.0] * 7
            for _ in range(worlds):
                truth = {f"EXACT_BENCH_{card}": draw(chance) for card in range(30)}
                found = {card: one_card(lift, problems, chance) for card, lift in truth.items()}
                posteriors = shrink(found)
                kept = [card for card, seen in posteriors.items() if seen.helps >= KEEP]
                retired = [card for card, seen in posteriors.items() if seen.helps <= RETIRE]
                lifts = [lift for card, c in found.items() if (lift := lift_of(card, "dropout", c))]
                family = [lift for lift in lifts if lift.problems >= MIN_PROBLEMS]
                sure = holm([lift.p for lift in family])
                strict = [x.card_id for x, p in zip(family, sure, strict=True) if p <= 0.1 and x.effect > 0]
                gains = [sum(truth[card] for card in cards) for cards in (kept, strict, truth)]
                best = sum(max(0.0, lift) for lift in truth.values())
                row = (len(kept), len(strict), len(retired), *gains, best)
                sums = [total + value / 30 for total, value in zip(sums, row, strict=True)]
            means = [100 * total / worlds for total in sums]
            print(
                f"   {problems:8}  {name:20}  {means[0]:13.1f} %  {means[1]:4.1f} %  {means[2]:5.1f} %"
                f"  {means[3]:+15.2f}  {means[4]:+6.2f}  {means[5]:+6.2f}  {means[6]:+6.2f}"
            )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="a tenth of the worlds")
    part = 10 if options.parse_args().quick else 1
    compare(worlds=3_000 // part)
    cards_called(runs=400 // part)
    commits(runs=400 // part)
    power(worlds=300 // part)
    few_problems(worlds=200 // part)


if __name__ == "__main__":
    main()
