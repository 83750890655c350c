"""What the gate shows of the published starter trees, beside cards of other subjects and on everyday problems."""

from pathlib import Path

import pytest

from kace.cards.store import open_tree
from kace.cards.tree import EpistemicTree
from kace.config import RetrievalConfig
from kace.ladder.relevance import TextTable
from kace.problems import load_bundled, load_problems
from tests.ladder.other_subjects import other_subjects
from tests.recorded import published_tree

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
LEAST = RetrievalConfig().relevance_threshold


def starter_tree(solver: str) -> EpistemicTree:
    return open_tree(published_tree(f"starter-{solver}"))


def test_a_hundred_cards_of_other_subjects_hide_hardly_any():
    tree = starter_tree("1.5b")
    cards = list(tree.shown)
    alone = TextTable(tree).index()
    others = other_subjects(tree.domains, 100)
    beside = TextTable(EpistemicTree.of(tree.domains, [*cards, *others])).index()
    found = kept = 0
    for problem in load_bundled("starter", "test"):
        before, after = (
            {name for name, score in index(problem.text).items() if score >= LEAST} for index in (alone, beside)
        )
        found += bool(before)
        kept += bool(before & after)
        assert after <= {card.card_id for card in cards}, "no card of another subject"
    assert found >= 60, "else there is nothing to compare"
    assert kept >= 0.9 * found


@pytest.mark.skipif(not DATA.is_dir(), reason="the public data sets are not here: ../shared/data")
@pytest.mark.parametrize("name", ["gsm8k_test", "svamp", "math500"])
def test_everyday_problems_hardly_ever_read_a_card(name: str):
    problems = load_problems(DATA / f"{name}.jsonl")[:400]
    index = TextTable(starter_tree("1.5b")).index()
    shown = sum(max(index(problem.text).values(), default=0.0) >= LEAST for problem in problems)
    assert shown <= 0.02 * len(problems)
