"""What cards do is measured without bias, honest about doubt; only evidence changes the tree."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev

import pytest

from kace.cards.card import Card, Difficulty, Provenance, Status
from kace.cards.tree import Deprecate, Edit, EpistemicTree, applied
from kace.config import load_config
from kace.errors import KaceError
from kace.ladder.policies import Dropout
from kace.ladder.record import Outcome, Solution
from kace.ladder.tiers import TierName
from kace.learning.measure import (
    CardVotes,
    Comparison,
    Fire,
    Impact,
    Lift,
    Posterior,
    compare,
    count_fires,
    credit,
    dropout_votes,
    leave_one_out,
    lifts_of,
    retire,
    shrink,
    status_of,
)
from kace.learning.study import BASE, LearnPlan, RunReading, Settings, StepName, open_study
from kace.models.base import AttemptKey, Failure, ModelError, Reply, Request
from kace.models.scripted import Scripted
from kace.problems import Problem
from tests.card_samples import DOMAINS, a_card, named
from tests.learning.solve_records import HS, MS, a_solve, a_try
from tests.one_loop import LOOP

Rate = Callable[[str, frozenset[str]], float]
"""How often attempts at a problem that see these cards are right."""
KEEP, RETIRE = 0.8, 0.2
CONFIG = load_config({"model": "scripted/steady", "profile": "paper", "prompts": "default"}, env={})


def votes(problem: str, right: int, made: int, right_without: int, made_without: int) -> CardVotes:
    return CardVotes(problem=problem, right=right, made=made, right_without=right_without, made_without=made_without)


def dropout_run(cards: list[str], problems: int, rate: Rate, chance: random.Random) -> list[Solution]:
    """The MS records of a dropout run in a world of coin throws."""
    records = []
    dropout = Dropout(seed=chance.getrandbits(30))
    for name in (f"p{n}" for n in range(problems)):
        tries = []
        for index in range(3):
            hidden = dropout.hidden(AttemptKey(name, 0, "MS", index), cards)
            right = chance.random() < rate(name, frozenset(cards).difference(hidden))
            tries.append(a_try(right, hidden, index=index))
        records.append(a_solve(name, tries, {MS: cards}))
    return records


def plain_lift(records: list[Solution], card_id: str = "A") -> Lift:
    """The lift of one card; the figures of the tree do not matter."""
    found = [vote for vote in dropout_votes(records)[card_id] if vote.made and vote.made_without]
    shown, hidden = sum(vote.made for vote in found), sum(vote.made_without for vote in found)
    problems = len({vote.problem for vote in found})
    return Lift(effect=0, low=0, high=0, votes=tuple(found), shown=shown, hidden=hidden, problems=problems)


def test_dropout_finds_known_effects_without_bias():
    effects = {"GOOD": 0.3, "BAD": -0.2, "IDLE": 0.0}
    chance = random.Random(1)

    def rate(name: str, shown: frozenset[str]) -> float:
        return 0.25 + 0.04 * int(name[1:]) + sum(effects[card] for card in shown)

    runs = [dropout_run(list(effects), 11, rate, chance) for _ in range(150)]
    for name, effect in effects.items():
        errors = [plain_lift(records, name).plain - effect for records in runs]
        assert abs(fmean(errors)) < 3 * stdev(errors) / len(errors) ** 0.5


def test_tiers_are_compared_apart():
    # All wrong at MS, all right at HS, whatever is shown. A was shown mostly at HS: pooled, it would seem to help.
    ms = [a_try(False, ["A"]), a_try(False, ["A"]), a_try(False)]
    hs = [a_try(True, tier=HS), a_try(True, tier=HS), a_try(True, ["A"], tier=HS)]
    records = [a_solve(f"p{n}", [*ms, *hs], {MS: ["A"], HS: ["A"]}) for n in range(6)]
    assert plain_lift(records).plain == 0


def test_seeds_of_a_problem_are_compared_with_each_other():
    shown = a_solve("p", [a_try(True)] * 3, {MS: ["A"]})
    hidden = a_solve("p", [a_try(False, ["A"])] * 3, {MS: ["A"]}, seed=1)
    lift = plain_lift([shown, hidden])
    assert (lift.plain, lift.wins, lift.shown, lift.hidden, lift.problems) == (1.0, (1, 0), 3, 3, 1)


def test_only_graded_attempts_of_tiers_that_read_the_card_count():
    es = [a_try(True, tier=TierName.ES)] * 2
    failed = a_try(False, outcome=Outcome.PROVIDER_ERROR)
    timeout = a_try(False, outcome=Outcome.TIMEOUT)
    lift = plain_lift([a_solve("p", [*es, a_try(True), failed, timeout, a_try(False, ["A"])], {MS: ["A"]})])
    assert (lift.shown, lift.hidden) == (2, 1), "a timeout is the model's doing and counts as wrong"
    unlabelled = a_solve("q", [a_try(None), a_try(None, ["A"])], {MS: ["A"]}, correct=None)
    assert shrink(dropout_votes([unlabelled])) == {}
    assert shrink(dropout_votes([a_solve("p", [a_try(True)] * 3, {MS: ["A"]})])) == {}, "nothing to compare"


# How often a card was shown


def test_each_card_is_counted_once_a_solve():
    right, wrong = a_try(True), a_try(False)
    records = [
        a_solve("p1", [wrong, a_try(True, tier=HS)], {MS: ["MED", "UNI"], HS: ["UNI", "HARD"]}),
        a_solve("p2", [wrong], {MS: ["MED", "UNI"]}, correct=False),
        a_solve("p1", [right], {MS: ["UNI"]}, seed=1),
        a_solve("p3", [right], {MS: ["NEW"]}, correct=None),
    ]
    found = count_fires(records)
    assert list(found) == ["HARD", "MED", "NEW", "UNI"]
    uni = found["UNI"]
    assert (uni.n_shown, uni.shown_correct, uni.shown_wrong) == (3, 2, 1)
    assert (uni.tiers, uni.problems) == ({MS: 3, HS: 1}, ("P1", "P2"))
    assert (found["NEW"].shown_correct, found["NEW"].shown_wrong) == (0, 0)
    assert count_fires([a_solve("p1", [right])]) == {}


# What is believed of a card, given its tree


def measured(lift: float, problems: int, chance: random.Random, attempts: int = 12) -> list[CardVotes]:
    """Dropout attempts at problems of different difficulty, with a card that adds `lift`."""
    rows = []
    for number in range(problems):
        rate, counts = chance.betavariate(0.6, 0.9), [0, 0, 0, 0]
        for _ in range(attempts):
            arm = 0 if chance.random() < 0.5 else 2
            counts[arm] += chance.random() < rate + (lift if arm == 0 else 0.0)
            counts[arm + 1] += 1
        rows.append(votes(str(number), *counts))
    return rows


def believed(lift: Callable[[int], float], cards: int, problems: int, seed: int) -> dict[str, Posterior]:
    chance = random.Random(seed)
    return shrink({str(card): measured(lift(card), problems, chance) for card in range(cards)})


def test_where_no_card_does_anything_none_is_kept_and_what_harms_is_retired():
    idle = [card for seed in range(40) for card in believed(lambda _: 0.0, 20, 4, seed).values()]
    assert sum(card.helps >= KEEP for card in idle) <= 8, "of 800 idle cards, at most one in a hundred"
    bad = [card for seed in range(10) for card in believed(lambda _: -0.15, 12, 4, seed).values()]
    assert sum(card.helps <= RETIRE for card in bad) >= 0.9 * len(bad)


def test_good_cards_on_four_problems_are_found_among_idle_ones():
    runs = [believed(lambda card: 0.5 if card % 2 else 0.0, 20, 4, seed) for seed in range(10)]
    good = [card for run in runs for name, card in run.items() if int(name) % 2]
    idle = [card for run in runs for name, card in run.items() if not int(name) % 2]
    assert sum(card.helps >= KEEP for card in good) >= 0.8 * len(good)
    assert sum(card.helps >= KEEP for card in idle) <= 0.1 * len(idle)


def test_a_card_measured_on_one_problem_borrows_from_its_tree():
    chance = random.Random(3)
    helped = {str(card): measured(0.6, 6, chance) for card in range(12)}
    idle = {str(card): measured(0.0, 6, chance) for card in range(12)}
    lone = [votes("p", 2, 2, 0, 2)]
    among_good, among_idle = shrink({**helped, "lone": lone})["lone"], shrink({**idle, "lone": lone})["lone"]
    assert among_good.helps > 0.9 > among_idle.helps
    assert among_good.effect > among_idle.effect


def test_more_problems_narrow_the_interval_and_intervals_cover_the_truth():
    chance = random.Random(5)
    found = shrink({"few": measured(0.4, 2, chance), "many": measured(0.4, 40, chance)})
    assert found["many"].high - found["many"].low < found["few"].high - found["few"].low
    hits = total = 0
    for seed in range(30):
        chance = random.Random(seed)
        truth = {str(card): chance.gauss(0.2, 0.15) if card % 2 else 0.0 for card in range(16)}
        found = shrink({name: measured(lift, 5, chance) for name, lift in truth.items()})
        # A rate cannot rise past 1 or fall below 0, so the lift that can be seen is a little less than the one added.
        hits += sum(card.low - 0.05 <= truth[name] <= card.high + 0.05 for name, card in found.items())
        total += len(found)
    assert hits >= 0.9 * total


def test_problems_that_a_card_was_written_from_prove_nothing_for_others():
    own = Provenance(source="t", supporting_problems=("mine",))
    tree = EpistemicTree.of(DOMAINS, [a_card("EXACT_A_CARD", provenance=own)])
    good, none = votes("mine", 6, 6, 0, 6), votes("other", 0, 6, 0, 6)
    (alone,) = lifts_of({"EXACT_A_CARD": [good]}, tree, {}).values()
    assert alone.helps > KEEP and alone.carries == 0
    assert status_of(alone, LIKELY) is Status.EXPERIMENTAL
    (both,) = lifts_of({"EXACT_A_CARD": [good, none]}, tree, {}).values()
    assert both.problems == 2 and both.helps > both.carries
    other = [votes("other", 6, 6, 0, 6), votes("third", 6, 6, 0, 6)]
    (more,) = lifts_of({"EXACT_A_CARD": other}, tree, {}).values()
    assert status_of(more, LIKELY) is Status.VALIDATED


# Leave-one-out

HELP, IDLE, HARM, DEEP = "EXACT_HELP_CARD", "EXACT_IDLE_CARD", "EXACT_HARM_CARD", "RUBRIC_DEEP_CARD"
PROBLEMS = tuple(Problem(f"Problem number {n}?", "1", f"P{n}") for n in range(12))


def card(card_id: str, difficulty: Difficulty = Difficulty.MEDIUM) -> Card:
    return a_card(card_id, difficulty_tag=difficulty, domain_tags=("algebra",), status=Status.EXPERIMENTAL)


TREE = EpistemicTree.of(DOMAINS, [card(HELP), card(IDLE), card(HARM), card(DEEP, Difficulty.HARD)])


class Remembering(Scripted):
    """Right where the helpful card is read and the harmful one is not; half the attempts right where both are."""

    def __init__(self, broken: Exception | None = None) -> None:
        super().__init__(self.answer)
        self.asked: list[Request] = []
        self.broken = broken

    def answer(self, request: Request) -> str:
        key, text = request.attempt, request.messages[-1].content + request.messages[0].content
        if key.tier not in ("ES", "MS", "HS"):
            return named("algebra")
        right = HELP in text and (HARM not in text or key.index == 0)
        unique = 1_000 + 10 * len(key.tier) + key.index + (100 if key.tier == "HS" else 0)
        return rf"\boxed{{{1 if right else unique}}}"

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        if self.broken and len(self.asked) > 12 * 10 and request.attempt.index == 2:
            raise self.broken
        return await super().complete(request)


def left_out(folder: Path, model: Remembering) -> dict[str, Lift]:
    plan = LearnPlan(PROBLEMS, CONFIG, Settings(), folder / "tree")

    async def work() -> dict[str, Lift]:
        async with open_study(plan, model=model, teacher=model) as study:
            base = await study.run(StepName("refine", "base", 1), PROBLEMS, RunReading(TREE), BASE)
            before = len(model.asked)
            found = dropout_votes(await leave_one_out(TREE, base, study))
            assert len(model.asked) - before == len(PROBLEMS) * (3 * 3 + 5)
            again = model.asked[before:]
            assert {each.attempt for each in again} <= {each.attempt for each in model.asked[:before]}
            for request in again:
                text = "".join(message.content for message in request.messages)
                eligible = 1 if request.attempt.tier == "HS" else 3
                assert sum(name in text for name in (HARM, HELP, IDLE, DEEP)) == eligible - 1
            return lifts_of(found, TREE, {})

    return LOOP.run(work())


def test_leave_one_out_measures_every_card_beside_all_the_others(tmp_path: Path):
    lifts = left_out(tmp_path, Remembering())
    # With all cards one MS attempt in three is right; without the harmful card all are, without the helpful none.
    plain = {name: round(lift.plain, 6) for name, lift in lifts.items()}
    assert plain == {HARM: round(-2 / 3, 6), HELP: round(1 / 3, 6), IDLE: 0.0, DEEP: 0.0}
    assert {name: lift.problems for name, lift in lifts.items()} == dict.fromkeys((HARM, HELP, IDLE, DEEP), 12)


def test_an_attempt_that_the_provider_fails_is_left_out_of_the_rerun(tmp_path: Path):
    lifts = left_out(tmp_path, Remembering(ModelError(Failure.PROVIDER_ERROR, "502")))
    assert (lifts[HELP].shown, lifts[HELP].hidden) == (36, 24)


def test_what_the_operator_must_mend_is_raised_as_it_is(tmp_path: Path):
    with pytest.raises(KaceError, match="no such key"):
        left_out(tmp_path, Remembering(KaceError("no such key")))


# Which revisions are accepted

PAPER = Settings(evidence="threshold", threshold=0.05)
LIKELY = Settings()


def run(marks: str) -> list[Solution]:
    """One solve a mark: `+` right, `-` wrong, `x` failed by the provider, `?` without an expected answer."""
    failed = a_try(False, outcome=Outcome.PROVIDER_ERROR)
    right = {"+": True, "?": None}
    return [a_solve(f"p{n}", [failed] * (mark == "x"), correct=right.get(mark, False)) for n, mark in enumerate(marks)]


def seen(base: str, rerun: str) -> Comparison:
    return compare(run(base), run(rerun), PAPER.threshold)


def test_a_gain_of_the_threshold_is_accepted():
    found = seen("------++++", "++++++++++")
    assert found.accepted
    assert (found.n, found.lift, found.gained, found.lost) == (10, 0.6, tuple(f"P{n}" for n in range(6)), ())
    assert found.reason == "lift +60.0 points on 10 solves, at least the threshold of +5.0"
    below = seen("-" * 30 + "+" * 70, "++++" + "-" * 26 + "+" * 70)
    assert not below.accepted and below.reason.endswith("below the threshold of +5.0")
    assert not seen("+++++", "+++++").accepted, "also where cards were only removed"


def test_solves_that_the_provider_failed_and_unlabelled_ones_are_left_out():
    found = seen("x-+?-", "++x?-")
    assert (found.n, found.gained, found.lost) == (2, ("P1",), ())
    assert not seen("x", "+").accepted


# What is measured is written on the cards


def a_tree(*names: str) -> EpistemicTree:
    return EpistemicTree.of(DOMAINS, [card(f"EXACT_{name}_CARD") for name in names])


def a_lift(effect: float, helps: float, *rows: CardVotes) -> Lift:
    interval = {"low": effect - 0.1, "high": effect + 0.1}
    return Lift(effect=effect, **interval, helps=helps, carries=helps, shown=48, hidden=52, problems=9, votes=rows)


FIRE = Fire(n_shown=5, shown_correct=3, shown_wrong=2, tiers={MS: 5}, problems=("P1",))
GAIN, LOSS = votes("p", 3, 3, 0, 3), votes("q", 0, 3, 3, 3)


def credited(tree: EpistemicTree, impact: Impact, settings: Settings = LIKELY, epoch: int = 1) -> EpistemicTree:
    return applied(tree, *credit(tree, impact, epoch, settings))


def the(tree: EpistemicTree, name: str) -> Card:
    return tree.card(f"EXACT_{name}_CARD")


@pytest.mark.parametrize("settings", [PAPER, LIKELY])
def test_a_card_carries_its_figures_and_paired_counters(settings: Settings):
    lift = a_lift(0.125, 0.96, GAIN, GAIN, LOSS)
    impact = Impact(lifts={"EXACT_A_CARD": lift}, fires={"EXACT_A_CARD": FIRE})
    tree = credited(a_tree("A", "B"), impact, settings)
    found = the(tree, "A")
    assert (found.helpfulness_score, found.status) == (0.125, Status.VALIDATED)
    assert (found.provenance.n_uses, found.provenance.n_wins, found.provenance.n_losses) == (5, 1, 1)
    assert found.provenance.validated_lift == (
        "+12.5 points [+2.5, +22.5], 48 attempts with, 52 without, 9 problems, dropout, epoch 1; "
        "probably helps (P = 0.96)"
    )
    assert the(tree, "B") == the(a_tree("B"), "B"), "what was neither shown nor measured stays"
    assert the(credited(tree, impact, settings, 2), "A").provenance.n_uses == 10


def test_a_card_unlikely_to_help_is_retired_unless_it_was_rewritten():
    lifts = {"EXACT_A_CARD": a_lift(-0.2, 0.1, LOSS), "EXACT_B_CARD": a_lift(0.1, 0.5, GAIN)}
    impact = Impact(lifts=lifts, fires={})
    tree = a_tree("A", "B", "C")
    assert retire(tree, tree, impact, LIKELY) == (Deprecate("EXACT_A_CARD"),)
    assert retire(tree, tree, impact, PAPER) == (), "only the curator retires by the paper"
    other = a_card("EXACT_A_CARD", payload="Useful when:\n- new\n\nAnother text.", status=Status.EXPERIMENTAL)
    after = applied(tree, Edit(other))
    assert retire(after, tree, impact, LIKELY) == ()
