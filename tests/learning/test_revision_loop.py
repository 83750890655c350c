"""Every step of the second phase acts: edits, moves, second tries, universal cards and retirement change the score."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from kace.cards.card import UNIVERSAL
from kace.cards.tree import EpistemicTree
from kace.config import load_config
from kace.learning.measure import Comparison
from kace.learning.study import read_steps
from kace.models.base import Request
from kace.problems import Problem
from tests.learning.test_loop import accuracy, learned
from tests.learning.world import DOMAINS, MISLEADING, PLAIN, RULES, World, _card, _revise, problems, statement

TURNS = load_config({"model": "scripted/steady", "profile": "paper", "placement": "demonstrations"}, env={})
"""The whole block, as demonstrations: the solver never reads a card's text."""
TRAIN, TEST = problems(8), problems(4, start=50)
SETTINGS = {"examples": 1, "evidence": "posterior", "epochs": 1, "refine": 2} | {
    "add_runs": 2,
    "confident": False,
    "wordings": 0,
    "max_harm": 0,
}
VAGUE = "flim has a formula of its own: write f = F(a, b)."


def revision(card_id: str, action: str, *fields: str) -> str:
    return "\n".join(
        ("<revision>", f"id: {card_id}", f"action: {action}", "reason: it reads better", *fields, "</revision>")
    )


def payload(rule: str, body: str) -> str:
    return f"payload:\nUseful when:\n- {rule} is asked\n\n{body}"


@dataclass(frozen=True)
class Curated(World):
    """A teacher whose card for `flim` says nothing, until the curator rewrites it."""

    misleading: bool = False
    idle: bool = False
    tries: tuple[str, ...] = (statement("flim"),)
    """What the curator writes at its first try, and at its second."""

    def teach(self, request: Request) -> str:
        name, asked = request.attempt.problem, request.messages[-1].content
        if "revise" not in name:
            told = super().teach(request)
            return told.replace(statement("flim"), VAGUE) if "propose" in name else told
        again = "# The rerun" in asked
        if "id: EXACT_FLIM_RULE" not in asked or (again and len(self.tries) == 1):
            return _revise(asked)
        body = self.tries[-1] if again else self.tries[0]
        others = [card for card in re.findall(r"^id: (\w+)", asked, re.MULTILINE) if card != "EXACT_FLIM_RULE"]
        edit = revision("EXACT_FLIM_RULE", "EDIT", payload("flim", body))
        return "\n".join((edit, *(revision(card, "KEEP") for card in others)))


def looks(out: Path) -> list[tuple[str, Comparison]]:
    lines = read_steps(out / "learn" / "steps.jsonl")
    return [(line.place, line.read(Comparison)) for line in lines if line.what == "compare" and line.epoch == 1]


def card_of(tree: EpistemicTree, name: str) -> str:
    return tree.card(name).examples[0].worked


def test_an_edit_is_demonstrated_anew_and_raises_the_score(tmp_path: Path):
    world = Curated()
    before = learned(world, tmp_path / "plain", config=TURNS, **SETTINGS | {"refine": 0})
    after = learned(world, tmp_path / "tree", config=TURNS, **SETTINGS)
    assert VAGUE in card_of(before, "EXACT_FLIM_RULE")
    assert statement("flim") in card_of(after, "EXACT_FLIM_RULE"), "the solver reads the new rule"
    rules = len(RULES)
    assert accuracy(world, before, TEST, TURNS) == pytest.approx((3 + rules - 1) / (3 + rules))
    assert accuracy(world, after, TEST, TURNS) == 1.0
    look = next(look for place, look in looks(tmp_path / "tree") if place == "weaving")
    assert look.accepted and {name.partition("-")[0] for name in look.gained} == {"flim"} and not look.lost


def test_a_rejected_first_try_is_refined_and_the_second_is_kept(tmp_path: Path):
    world = Curated(tries=(MISLEADING, statement("flim")))
    tree = learned(world, tmp_path / "tree", config=TURNS, **SETTINGS)
    first, second = (look for place, look in looks(tmp_path / "tree") if place == "weaving")
    assert not first.accepted and first.lost, "a misleading demonstration costs the other rule of the domain"
    assert second.accepted and second.gained
    assert accuracy(world, tree, TEST, TURNS) == 1.0


@dataclass(frozen=True)
class Everywhere(World):
    """A rule that every domain needs: one universal card holds it, once the curator has put it into words."""

    misleading: bool = False
    idle: bool = False

    def teach(self, request: Request) -> str:
        name, asked = request.attempt.problem, request.messages[-1].content
        if "propose" in name and "weaving" in name and "MS" in name:
            card = _card("READING_FLIM_EVERYWHERE", "flim", VAGUE, ["1"], False)
            card = card.replace("difficulty: medium", f"difficulty: universal\ndomains: {UNIVERSAL}")
            return "\n".join((super().teach(request), card))
        if "revise" in name and "id: READING_FLIM_EVERYWHERE" in asked:
            return revision("READING_FLIM_EVERYWHERE", "EDIT", payload("flim", statement("flim")))
        return super().teach(request)


def flim_everywhere(count: int, start: int = 0) -> tuple[Problem, ...]:
    """The flim is asked in every domain; only sums need no rule."""
    made = []
    for n in range(start, start + count):
        for domain in DOMAINS:
            a, b = 13 + 2 * n, 29 + 3 * n
            for rule, answer in (("flim", RULES["flim"](a, b)), (PLAIN, a + b)):
                text = f"In {domain}, what is the {rule} of {a} and {b}?"
                made.append(Problem(text, str(answer), label=f"{rule}-{domain}-{n}", domain=domain))
    return tuple(made)


def test_a_universal_card_is_revised_by_its_own_curator_and_helps_in_every_domain(tmp_path: Path):
    world, train, test = Everywhere(knowledge=()), flim_everywhere(6), flim_everywhere(3, start=50)
    before = learned(world, tmp_path / "plain", config=TURNS, train=train, **SETTINGS | {"refine": 0})
    after = learned(world, tmp_path / "tree", config=TURNS, train=train, **SETTINGS)
    assert accuracy(world, before, test, TURNS) == pytest.approx(1 / 2)
    assert accuracy(world, after, test, TURNS) == 1.0
    assert any(place == UNIVERSAL and look.accepted for place, look in looks(tmp_path / "tree"))
