"""Thresholds of the gate: what other techniques' cards cost, and the loosest threshold that costs little enough."""

from __future__ import annotations

import random

import pytest

from kace.cards.card import Card, Example, Provenance, Status
from kace.cards.tree import Domain, EpistemicTree
from kace.ladder.record import Solution
from kace.ladder.relevance import TextTable, best_encoder
from kace.ladder.tiers import ExitPath
from kace.learning.calibrate import LEAST, calibrate, loosest, nearest_others, own_cards
from kace.problems import Problem
from tests.card_samples import card as sample

FERRY = "A ferry crosses the fjord with {} crates of herring, and every gull steals {} crates. How many crates land?"
LOOM = "A weaver threads a loom with {} spools of crimson yarn, and each shuttle tangles {}. How many spools hold?"


def card(name: str, told: str, *sources: str) -> Card:
    own = Provenance(source="test", supporting_problems=sources)
    made = sample(f"EXACT_{name}_RULE", domain_tags=("taking",), provenance=own)
    return made.illustrated([Example(told.format(9, 4), "9 - 4 = 5, so \\boxed{5}")])


TREE = EpistemicTree.of(
    [Domain(name="taking", description="what is left")], [card("FERRY", FERRY, "ferry-1"), card("LOOM", LOOM, "loom-1")]
)
TRAIN = tuple(
    Problem(told.format(20 + n, 3), str(17 + n), f"{name}-{n}", family=family)
    for name, told, family in (("ferry", FERRY, "subtracting"), ("loom", LOOM, None))
    for n in (1, 2, 3)
)
TABLE = TextTable(TREE, TRAIN, best_encoder())


def test_a_loss_at_a_high_score_closes_the_gate_above_it():
    assert loosest([], 1000, 0.5) == (LEAST, pytest.approx(0.1))
    assert loosest([0.6, 0.5, 0.4], 100, 0.5)[0] == 0.601
    assert loosest([0.5], 999, 0.5) == (LEAST, 0.2), "one of a thousand is allowed"


def test_few_problems_may_lose_what_is_allowed_and_many_what_the_bound_allows():
    lost = [0.8, 0.7, 0.6]
    assert loosest(lost, 199, 0.5) == (0.801, 0.5) and loosest(lost, 200, 0.5) == (0.701, 1.0)
    assert loosest(lost, 399, 0.5) == (0.701, 0.5) and loosest(lost, 599, 0.5) == (0.601, 0.5)


def test_the_bound_holds_where_cards_break_at_random():
    """Drawn anew many times: the mean loss of a fresh problem at the threshold found stays under the harm allowed."""
    draw, allowed, size, lost = random.Random(5), 2.0, 200, []
    for _ in range(400):
        scores = [draw.random() for _ in range(size + 1)]
        broken = [score for score in scores[:-1] if draw.random() < 0.3 * score]  # nearer cards break more
        threshold, bound = loosest(broken, size, allowed)
        lost.append(draw.random() < 0.3 * scores[-1] and scores[-1] >= threshold)
        assert bound <= allowed
    assert 100 * sum(lost) / len(lost) <= allowed + 1.4, "two standard errors of 400 draws"


def test_the_cards_of_a_technique_are_those_of_its_family_and_of_whoever_shares_a_card():
    own = own_cards(TREE, TRAIN)
    by_name = {problem.name: own[problem.id] for problem in TRAIN}
    assert by_name["ferry-1"] == by_name["ferry-2"] == {"EXACT_FERRY_RULE"}, "one family"
    assert by_name["loom-1"] == {"EXACT_LOOM_RULE"} and by_name["loom-2"] == frozenset()
    shared = EpistemicTree.of(TREE.domains, [card("FERRY", FERRY, "ferry-1", "loom-1"), card("LOOM", LOOM, "loom-1")])
    assert own_cards(shared, TRAIN)[TRAIN[0].id] == {"EXACT_FERRY_RULE", "EXACT_LOOM_RULE"}


def test_a_problem_is_left_with_the_most_relevant_card_of_another_technique():
    nearest = nearest_others(TABLE, TRAIN)
    assert set(nearest) == {TRAIN[4].id, TRAIN[5].id}, "whose own card nobody knows to be theirs"
    gone = EpistemicTree.of(TREE.domains, [each.with_status(Status.DEPRECATED) for each in TREE])
    assert nearest_others(TextTable(gone, TRAIN), TRAIN) == {}


@pytest.mark.parametrize(
    ("correct", "exit", "closed", "skip_closed"),
    [
        (True, ExitPath.ES_UNANIMOUS, False, True),
        (True, ExitPath.MS_MAJORITY, True, True),
        (False, ExitPath.FALLBACK_PLURALITY, False, False),
    ],
)
def test_a_wrong_card_costs_what_the_ladder_solves_alone(
    correct: bool, exit: ExitPath, closed: bool, skip_closed: bool
):
    alone = [Solution.model_construct(problem=each.id, exit=exit, correct=correct) for each in TRAIN]
    found = calibrate(TABLE, TRAIN, alone, 0.5)
    assert (found.threshold > LEAST, found.skip_threshold > LEAST) == (closed, skip_closed)
