"""What the gate shows of the published starter trees, beside cards of other subjects and on everyday problems."""

from pathlib import Path

import pytest

from kace.cards.store import open_tree
from kace.cards.tree import EpistemicTree
from kace.ladder.relevance import BackgroundScore
from kace.learning.calibrate import LEAST_WORDED
from kace.problems import load_bundled, load_problems
from tests.ladder.other_subjects import other_subjects
from tests.recorded import published_tree

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def starter_tree(solver: str) -> EpistemicTree:
    return open_tree(published_tree(f"starter-{solver}"))


@pytest.mark.parametrize("solver", ["0.5b", "1.5b"])
def test_a_tree_of_three_cards_and_one_with_a_thousand_more_show_what_the_published_tree_shows(solver: str):
    tree = starter_tree(solver)
    cards = list(tree.shown)
    whole = BackgroundScore(EpistemicTree.of(tree.domains, cards))
    three = BackgroundScore(EpistemicTree.of(tree.domains, cards[:3]))
    others = other_subjects(tree.domains, 1000)
    thousand = BackgroundScore(EpistemicTree.of(tree.domains, [*cards, *others]))
    first = {card.card_id for card in cards[:3]}
    shown = 0
    for problem in load_bundled("starter", "test"):
        scores = whole(problem.text, LEAST_WORDED)
        shown += bool(scores)
        assert thousand(problem.text, LEAST_WORDED) == scores
        expected = {name: score for name, score in scores.items() if name in first}
        assert three(problem.text, LEAST_WORDED) == expected
    assert shown >= 60, "else there is nothing to compare"


@pytest.mark.skipif(not DATA.is_dir(), reason="the public data sets are not here: ../shared/data")
@pytest.mark.parametrize(("name", "most"), [("gsm8k_test", 20), ("svamp", 0), ("math500", 6)])
def test_everyday_problems_hardly_ever_read_a_card(name: str, most: int):
    problems = load_problems(DATA / f"{name}.jsonl")
    for solver in ("0.5b", "1.5b"):
        score = BackgroundScore(starter_tree(solver))
        assert sum(bool(score(problem.text, LEAST_WORDED)) for problem in problems) <= most
