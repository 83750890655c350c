"""At the paper's own size: the paper's profile cuts no block, and the ablation of domains shows the whole tier."""

from __future__ import annotations

from kace.cards.card import Difficulty
from kace.cards.tree import EpistemicTree
from kace.config import load_config
from kace.problems import Problem
from tests.baselines.arena import DEFAULTS, DOMAINS, Solver, solve
from tests.baselines.arena import TREE as ARENA
from tests.card_samples import card

STEP = "take the next pair of terms, join them as the rule says, then look back at the first one"
PAPER = load_config({"model": "scripted/custom", "profile": "paper"}, env={})


def paper_tree() -> EpistemicTree:
    """132 cards of about 254 tokens, half medium and half hard, by turns over the domains."""
    made = []
    for number in range(132):
        steps = [f"{step}. For rule {number}, {STEP}; {STEP}." for step in range(1, 6)]
        own = card(
            f"RUBRIC_NUMBER_{number}",
            payload="Useful when:\n- terms are joined\n\n" + "\n".join(steps),
            difficulty_tag=Difficulty.MEDIUM if number % 2 else Difficulty.HARD,
            domain_tags=(DOMAINS[number // 2 % len(DOMAINS)],),
        )
        made.append(own)
    return EpistemicTree.of(ARENA.domains, made)


TREE = paper_tree()


def read(system: str, config: object, said: str = '{"primary": "counting"}') -> list[tuple[int, int]]:
    """How many cards MS and HS read, and how many were eligible."""
    solution = solve(
        system, Solver(domain=said), Problem("How much counting is it?", "1", "p"), tree=TREE, config=config
    )
    return [(len(recall.cards), recall.eligible) for recall in solution.recalls]


def test_the_papers_profile_shows_whole_blocks_and_the_default_cuts_them():
    assert read("kace", PAPER) == [(22, 22)] * 2
    assert read("kace", PAPER, said='{"domain": "counting", "second": "rates"}') == [(44, 44)] * 2
    assert all(0 < shown < 22 == eligible for shown, eligible in read("kace", DEFAULTS))
