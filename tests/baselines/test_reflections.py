"""A tree of the solver's own reflections: no teacher writes a card, and only the rules of the card type hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kace.baselines.reflections import card_from, train_reflections
from kace.cards.card import BODY_CAPS, CardError, Difficulty, Status
from kace.cards.store import TreeStore
from kace.cards.tree import EpistemicTree
from kace.errors import BudgetExceeded, UsageError
from kace.ladder.tiers import TierName
from kace.learning.teacher import FailedProblem, TreeCell
from kace.models.base import Request
from kace.models.scripted import Scripted
from kace.problems import Problem
from tests.baselines.ace_world import CONFIG, REGISTRY, accuracy, plan_of, solved, trained
from tests.learning.world import DOMAINS, RULES, World, solve, statement

FAILURE = FailedProblem(Problem("What is it?", "7", "p1"), "fallback_last_hs", (), {})
MEDIUM = TreeCell(TierName.MS, "weaving")


def remembers(request: Request) -> str:
    """A solver that, shown the right answer, knows what it should have known."""
    if not request.attempt.tier.startswith("REFLECT"):
        return solve(request)
    rule = re.search(r"the (\w+) of", request.messages[-1].content)[1]
    return f"When: the {rule} is asked for here\nLesson: {statement(rule) if rule in RULES else 'just add'}"


def grown(out: Path, script: Callable[[Request], str] = remembers, **more: object) -> EpistemicTree:
    plan = plan_of("reflections", out, **{"domains": REGISTRY, **more})
    return trained(plan, train_reflections, model=Scripted(script, name="world"), teacher=None)


def test_every_failure_becomes_a_card_of_its_cell_without_a_teacher(tmp_path: Path):
    tree = grown(tmp_path)
    assert {card.provenance.source for card in tree} == {"the solver's own reflection"}
    assert {card.status for card in tree} == {Status.EXPERIMENTAL}
    assert {tag for card in tree for tag in card.domain_tags} == set(DOMAINS)
    assert TreeStore.open(tmp_path).frozen_hash == tree.content_hash()
    roles = json.loads((tmp_path / "train" / "bill.json").read_text())["roles"]
    assert set(roles) == {"solver", "classifier"}


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
            resumed = grown(tmp_path / "broken", config=CONFIG.model_copy(update={"max_calls": 150}))
            break
        except BudgetExceeded:
            stops += 1
    assert resumed == whole and stops > 1


def test_without_domains_a_teacher_is_needed_for_them(tmp_path: Path):
    with pytest.raises(UsageError, match="needs a teacher"):
        grown(tmp_path, domains=())


def test_the_teacher_gives_domains_and_nothing_else(tmp_path: Path):
    asked: list[str] = []

    def teach(request: Request) -> str:
        asked.append(request.attempt.problem)
        return World().teach(request)

    plan = plan_of("reflections", tmp_path)
    tree = trained(plan, train_reflections, model=Scripted(remembers), teacher=Scripted(teach))
    assert asked == ["partition"] and len(tree) > 0


def test_a_reflection_that_is_no_card_is_refused_and_counted(tmp_path: Path):
    def rambles(request: Request) -> str:
        return "When: it\nLesson:" if request.attempt.tier.startswith("REFLECT") else solve(request)

    tree = grown(tmp_path, rambles)
    assert len(tree) == 0
    steps = [json.loads(line)["value"] for line in (tmp_path / "train" / "steps.jsonl").read_text().splitlines()]
    assert sum(len(value.get("refused", ())) for value in steps) > 0


@pytest.mark.parametrize(
    ("said", "trigger", "body"),
    [
        ("When: two knots meet\nLesson: tie them", "two knots meet", "tie them"),
        ("**When**: one two three four five six\n**Lesson:**\n- a\n- b", "one two three four five", "- a\n- b"),
        ("I should have added first.", "weaving", "I should have added first."),
        ("Lesson: \\frac{a}{b} \\neq 0", "weaving", "\\frac{a}{b} \\neq 0"),
        ("When: it knots\nadd them", "it knots", "add them"),
    ],
)
def test_a_reflection_is_kept_as_it_was_said(said: str, trigger: str, body: str):
    card = card_from(said, MEDIUM, FAILURE, 1)
    assert card.triggers == (trigger,) and card.body == body
    assert card.difficulty_tag is Difficulty.MEDIUM and card.domain_tags == ("weaving",)


def test_a_long_reflection_is_cut_to_the_cap_of_its_cell():
    said = "Lesson:\n" + "\n".join(f"line {n}" for n in range(40))
    for tier, difficulty in ((TierName.MS, Difficulty.MEDIUM), (TierName.HS, Difficulty.HARD)):
        card = card_from(said, TreeCell(tier, "weaving"), FAILURE, 1)
        assert len(card.body.split("\n")) == BODY_CAPS[difficulty]


@pytest.mark.parametrize("said", ["", "Lesson: ", "Lesson: a\x07lpha"])
def test_what_breaks_a_rule_of_cards_is_no_card(said: str):
    with pytest.raises(CardError):
        card_from(said, MEDIUM, FAILURE, 1)
