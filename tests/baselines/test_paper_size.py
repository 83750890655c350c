"""At the paper's own size: the paper's profile cuts no block, and the ablation of domains shows the whole tier."""

from __future__ import annotations

from kace.cards.card import Difficulty
from kace.config import load_config
from kace.ladder.retrieve import estimate
from kace.problems import Problem
from tests.baselines.arena import Solver, solve
from tests.baselines.paper_tree import CARDS, paper_tree

DOMAINS = ("counting", "geometry", "rates")
TREE = paper_tree(DOMAINS)
HALF = CARDS // 2
PAPER = load_config({"model": "scripted/custom", "profile": "paper"}, env={})
DEFAULT = load_config({"model": "scripted/custom"}, env={})


def read(system: str, config: object, said: str = '{"primary": "counting"}') -> list[tuple[int, int]]:
    """How many cards MS and HS read, and how many were eligible."""
    solution = solve(
        system, Solver(domain=said), Problem("How much counting is it?", "1", "p"), tree=TREE, config=config
    )
    return [(len(recall.cards), recall.eligible) for recall in solution.recalls]


def test_the_tree_has_the_papers_size():
    tokens = sum(map(estimate, TREE))
    assert len(TREE) == 132 and 230 <= tokens / len(TREE) <= 280
    for domain in DOMAINS:
        cards = [card for card in TREE if domain in card.domain_tags and card.difficulty_tag is Difficulty.HARD]
        assert sum(map(estimate, cards)) > DEFAULT.retrieval.max_card_tokens


def test_the_papers_profile_shows_whole_blocks_and_the_default_cuts_them():
    assert read("kace", PAPER) == [(22, 22)] * 2
    assert read("kace", PAPER, said='{"domain": "counting", "second": "rates"}') == [(44, 44)] * 2
    assert all(0 < shown < 22 == eligible for shown, eligible in read("kace", DEFAULT))
