"""Cards made from worked solutions, without a model."""

import pytest

from kace.datasets.starter.generate import load_split
from kace.errors import DataError
from kace.learner.propose import TreeCell
from kace.learner.solutions import WHOLE, cards_of, domains_of
from kace.problem import Problem
from kace.solver.tiers import TierName

CELL = TreeCell(TierName.MS, WHOLE)


def problem(text: str, answer: str = "4", solution: str | None = "Add: 2 + 2 = 4.", **more: str) -> Problem:
    return Problem(text, answer, solution=solution, **more)


def test_problems_that_share_telling_words_make_one_card() -> None:
    coins = [problem(f"A purse holds {n} silver coins and {n} copper coins. How many coins?") for n in (2, 3)]
    train = [*coins, problem("A triangle has angles of 30 and 60 degrees. What is the third angle?")]
    one, other = cards_of(CELL, train, train, 2)
    assert [example.problem for example in one.examples] == [each.text for each in coins]
    assert "PURSE" in one.card_id or "COIN" in one.card_id
    assert len(other.examples) == 1
    assert one.provenance.source == "solutions"


def test_a_demonstration_ends_with_the_boxed_answer() -> None:
    bare, boxed = (
        problem("Two gnomes plus two gnomes?"),
        problem("Six elves less two elves?", solution=r"So \boxed{4}."),
    )
    texts = [card.examples[0].worked for card in cards_of(CELL, [bare, boxed], [bare, boxed], 1)]
    assert texts == ["Add: 2 + 2 = 4.\nThe answer is \\boxed{4}.", r"So \boxed{4}."]


def test_a_solution_too_long_to_show_makes_no_card() -> None:
    long = problem("Two gnomes plus two gnomes?", solution="\n".join(["Count one more."] * 40))
    assert cards_of(CELL, [long], [long], 2) == ()


def test_a_hostile_solution_makes_no_card_and_no_error() -> None:
    bad = problem("Two gnomes plus two gnomes?", solution="turn \u202e around")
    assert cards_of(CELL, [bad], [bad], 2) == ()


def test_tiers_get_cards_of_their_own() -> None:
    coins = [problem("A purse holds two silver coins. How many coins?")]
    ids = {cards_of(TreeCell(tier, WHOLE), coins, coins, 2)[0].card_id for tier in (TierName.MS, TierName.HS)}
    assert len(ids) == 2


def test_gold_domains_are_used_where_every_problem_has_one() -> None:
    named = [problem("a b", domain="Number Theory"), problem("c d", domain="geometry")]
    assert [domain.name for domain in domains_of(named)] == ["geometry", "number_theory"]
    assert [domain.name for domain in domains_of([*named, problem("e f")])] == [WHOLE]


def test_a_set_without_solutions_is_refused_with_the_fix() -> None:
    with pytest.raises(DataError, match="no training problem has a worked solution") as raised:
        domains_of([problem("a b", solution=None)])
    assert "field 'solution'" in raised.value.fix


def test_the_kinds_of_the_starter_set_are_mostly_its_families() -> None:
    train = load_split("train")
    named = {each.name: each.family for each in train}
    pure = total = 0
    for domain in domains_of(train):
        here = [each for each in train if each.domain == domain.name]
        for card in cards_of(TreeCell(TierName.MS, domain.name), here, train, 2):
            families = [named[name] for name in card.provenance.supporting_problems]
            pure, total = pure + max(map(families.count, families)), total + len(families)
    assert pure >= 0.8 * total
