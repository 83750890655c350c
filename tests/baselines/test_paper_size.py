"""At the paper's own size: the paper's profile cuts no block, and the ablation of domains shows the whole tier."""

from __future__ import annotations

from kace.config import load_config
from kace.problems import Problem
from tests.baselines.arena import Solver, solve
from tests.baselines.paper_tree import paper_tree

TREE = paper_tree(("counting", "geometry", "rates"))
PAPER = load_config({"model": "scripted/custom", "profile": "paper"}, env={})
DEFAULT = load_config({"model": "scripted/custom"}, env={})


def read(system: str, config: object, said: str = '{"primary": "counting"}') -> list[tuple[int, int]]:
    """How many cards MS and HS read, and how many were eligible."""
    solution = solve(
        system, Solver(domain=said), Problem("How much counting is it?", "1", "p"), tree=TREE, config=config
    )
    return [(len(recall.cards), recall.eligible) for recall in solution.recalls]


def test_the_papers_profile_shows_whole_blocks_and_the_default_cuts_them():
    assert read("kace", PAPER) == [(22, 22)] * 2
    assert read("kace", PAPER, said='{"domain": "counting", "second": "rates"}') == [(44, 44)] * 2
    assert all(0 < shown < 22 == eligible for shown, eligible in read("kace", DEFAULT))
