"""What the gate shows of the published starter trees, beside cards of other subjects and on everyday problems."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from kace.cards.card import Status
from kace.cards.store import open_tree
from kace.cards.tree import EpistemicTree
from kace.datasets.starter.generate import generate_set
from kace.ladder.gate import BackgroundScore
from kace.learning.calibrate import LEAST, LEAST_WORDED

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
TREES = [ROOT / f"experiments/starter/test-{solver}/tree" for solver in ("0.5b", "1.5b")]
WORDED = [ROOT / f"experiments/gate/worded-{solver}/trees/worded" for solver in ("0.5b", "1.5b")]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"experiments/gate/{name}.py")
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("path", TREES, ids=["0.5b", "1.5b"])
def test_three_cards_alone_are_shown_as_they_are_beside_a_thousand_of_other_subjects(path: Path):
    tree = open_tree(path)
    three = [card for card in tree if card.status is not Status.DEPRECATED][:3]
    others = script("subjects").other_subjects(tree.domains, 1000)
    few, many = (BackgroundScore(EpistemicTree.of(tree.domains, cards)) for cards in (three, [*three, *others]))
    texts = [problem.text for problem in generate_set(200, 1, "test")]
    alone = [set(few(text, LEAST)) for text in texts]
    assert alone == [set(many(text, LEAST)) for text in texts]
    assert 0 < sum(map(bool, alone)) < 40, "the three are of some problems' techniques, and of no more"


@pytest.mark.skipif(not DATA.is_dir(), reason="the public data sets are not here: ../shared/data")
@pytest.mark.parametrize(("name", "most", "most_worded"), [("gsm8k_test", 5, 20), ("svamp", 0, 0), ("math500", 2, 6)])
def test_everyday_problems_hardly_ever_read_a_card(name: str, most: int, most_worded: int):
    for trees, threshold, allowed in ((TREES, LEAST, most), (WORDED, LEAST_WORDED, most_worded)):
        for tree in trees:
            size, now, first = script("everyday").shown(tree, threshold, DATA / f"{name}.jsonl")
            assert now <= allowed and first > size / 10
