"""A tree of the solver's own reflections: no teacher writes a card, and only the rules of the card type hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kace.baselines.reflections import reflected_card, train_reflections
from kace.cards.card import BODY_CAPS, Card, Difficulty, Provenance, Status
from kace.cards.store import TreeStore
from kace.cards.tree import EpistemicTree
from kace.errors import BudgetExceeded, DataError
from kace.ladder.tiers import TierName
from kace.models.base import Request
from kace.models.scripted import Scripted
from kace.problems import Problem
from tests.baselines.ace_world import CONFIG, REGISTRY, TRAIN, accuracy, plan_of, solved, trained
from tests.card_samples import card as sample
from tests.learning.world import DOMAINS, RULES, solve, statement

PROBLEM = Problem("What is it?", "7", "p1")


def a_card(name: str, difficulty: Difficulty, domain: str, *sources: str) -> Card:
    payload = "Useful when:\n- it comes up\n\nA rule that a teacher distilled."
    own = Provenance(source="teacher", supporting_problems=sources)
    name = f"RUBRIC_{name.upper()}_RULE"
    return sample(name, payload=payload, difficulty_tag=difficulty, domain_tags=(domain,), provenance=own)


def learned() -> EpistemicTree:
    """A tree with a card per rule at each tier, from the problems that ask for the rule."""
    cards = []
    for domain, rules in DOMAINS.items():
        for rule in rules:
            sources = [problem.name for problem in TRAIN if f"the {rule} of" in problem.text]
            cards.append(a_card(f"{rule}_ms", Difficulty.MEDIUM, domain, *sources))
            cards.append(a_card(f"{rule}_hs", Difficulty.HARD, domain, *sources))
    return EpistemicTree.of(REGISTRY, cards)


def remembers(request: Request) -> str:
    """A solver that, shown the right answer, knows what it should have known."""
    if not request.attempt.tier.startswith("REFLECT"):
        return solve(request)
    rule = re.search(r"the (\w+) of", request.messages[-1].content)[1]
    return statement(rule) if rule in RULES else "just add"


def grown(out: Path, script: Callable[[Request], str] = remembers, **more: object) -> EpistemicTree:
    plan = plan_of("reflections", out, **{"tree": learned(), **more})
    return trained(plan, train_reflections, model=Scripted(script, name="world"), teacher=None)


def places(tree: EpistemicTree) -> list[tuple[str, Difficulty, tuple[str, ...]]]:
    return [(card.card_id, card.difficulty_tag, card.domain_tags) for card in tree]


def test_the_same_tree_has_raw_reflections_instead_of_its_cards(tmp_path: Path):
    tree = grown(tmp_path)
    assert tree.domains == learned().domains and places(tree) == places(learned())
    assert {card.provenance.source for card in tree} == {"the solver's own reflection"}
    assert {card.status for card in tree} == {Status.EXPERIMENTAL}
    assert not any("teacher distilled" in card.payload for card in tree)
    for card in tree:
        (source,) = card.provenance.supporting_problems
        rule = card.card_id.split("_")[1].lower()
        assert any(problem.name == source and f"the {rule} of" in problem.text for problem in TRAIN)
        assert card.body == statement(rule)
    assert TreeStore.open(tmp_path).read().frozen == tree.content_hash()
    roles = json.loads((tmp_path / "train" / "bill.json").read_text())["roles"]
    assert {role["role"] for role in roles} == {"solver"}, "no domains are requested"


def lucky_at_hs(request: Request) -> str:
    """A solver that finds every answer at HS, which MS did not deliver."""
    if request.attempt.tier == "HS":
        problem = next(problem for problem in TRAIN if problem.id == request.attempt.problem)
        return f"\\boxed{{{problem.answer}}}"
    return remembers(request)


@pytest.mark.parametrize(("failures", "cards"), [("tier", len(RULES)), ("final", 0)])
def test_only_failures_of_the_profiles_kind_are_reflected_on(tmp_path: Path, failures: str, cards: int):
    """Solved at HS: not delivered by MS, but not wrong in the end."""
    tree = grown(tmp_path, lucky_at_hs, failures=failures)
    assert len(tree) == cards
    assert {card.difficulty_tag for card in tree} <= {Difficulty.MEDIUM}


def test_the_ladder_reads_them_as_it_reads_any_tree(tmp_path: Path):
    tree = grown(tmp_path)
    assert accuracy(solved("tiered")) == pytest.approx(1 / 3)
    solutions = solved("kace-reflections", tree=tree)
    assert accuracy(solutions) == 1.0
    assert TierName.ES not in {recall.tier for solution in solutions for recall in solution.recalls}


def test_a_stopped_training_goes_on_to_the_same_tree(tmp_path: Path):
    whole = grown(tmp_path / "whole")
    stops = 0
    while True:
        try:
            resumed = grown(tmp_path / "broken", config=CONFIG.model_copy(update={"max_calls": 60}))
            break
        except BudgetExceeded:
            stops += 1
    assert resumed == whole and stops > 1


def test_a_tree_of_other_problems_is_refused(tmp_path: Path):
    other = EpistemicTree.of(REGISTRY, [a_card("x", Difficulty.HARD, REGISTRY[0].name, "elsewhere")])
    with pytest.raises(DataError, match="no card of the tree came from a training problem"):
        grown(tmp_path, tree=other)


def test_without_cards_to_replace_there_are_none(tmp_path: Path):
    """What a reproduction goes on with where no epoch did better than the ladder alone."""
    assert len(grown(tmp_path, tree=EpistemicTree.of(REGISTRY, ()))) == 0
    assert TreeStore.open(tmp_path).read().frozen


def test_a_reflection_that_is_no_card_is_refused(tmp_path: Path):
    def rambles(request: Request) -> str:
        return " " if request.attempt.tier.startswith("REFLECT") else solve(request)

    tree = grown(tmp_path, rambles)
    assert len(tree) == 0


@pytest.mark.parametrize(
    ("said", "body"),
    [
        ("- a\n\n- b ", "- a\n- b"),
        ("<think>Hm.</think>I should have added first.", "I should have added first."),
        ("\\frac{a}{b} \\neq 0", "\\frac{a}{b} \\neq 0"),
    ],
)
def test_a_reflection_is_kept_as_it_was_said(said: str, body: str):
    card = reflected_card(a_card("knot", Difficulty.MEDIUM, "weaving"), PROBLEM, said)
    assert card.triggers == ("weaving",) and card.body == body
    assert card.difficulty_tag is Difficulty.MEDIUM and card.domain_tags == ("weaving",)


def test_a_long_reflection_is_cut_to_the_cap_of_its_cell():
    said = "\n".join(f"line {n}" for n in range(40))
    for difficulty in (Difficulty.MEDIUM, Difficulty.HARD):
        card = reflected_card(a_card("knot", difficulty, "weaving"), PROBLEM, said)
        assert len(card.body.split("\n")) == BODY_CAPS[difficulty]
