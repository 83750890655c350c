"""Measure what many cards do to finding the right one, and how long a search takes.

    python benchmarks/bench_finding.py [--many]

Cards of other subjects are put beside tree B of the third test; `--many` adds a search
among 100,000 cards, whose weights are drawn at random.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import time
from pathlib import Path

import numpy as np

from kace.cards.store import open_tree
from kace.cards.tree import EpistemicTree
from kace.ladder.relevance import RelevanceIndex, TextTable, terms
from kace.problems import load_bundled

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.ladder.other_subjects import other_subjects  # noqa: E402

PROBLEMS = load_bundled("techniques", "third")
SHARE = 0.05  # of problems without a card that are shown one
MANY = 100_000


def tree_b() -> EpistemicTree:
    """Return tree B of the third test."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(ROOT / "results/trees/techniques.tar.xz") as packed:
            packed.extractall(folder, filter="data")
        return open_tree(Path(folder) / "techniques")


def found_share(tree: EpistemicTree, beside: int) -> tuple[float, float]:
    """Return the share of problems with a card that are shown it, and ms per search."""
    own = {}
    families: dict[str, str] = {}
    for problem in load_bundled("techniques", "train"):
        families[problem.name] = problem.family or ""
    for card in tree.shown:
        sources = card.provenance.supporting_problems
        own[card.card_id] = {families[each] for each in sources}
    covered = set[str]().union(*own.values())
    cards = [*tree.shown, *other_subjects(tree.domains, beside)]
    index = TextTable(EpistemicTree.of(tree.domains, cards)).index()
    right = []
    others = []
    began = time.perf_counter()
    for problem in PROBLEMS:
        scores = index(problem.text)
        best = max(scores, key=scores.__getitem__, default="")
        score = scores.get(best, 0.0)
        if problem.family in covered:
            kind = problem.family in own.get(best, set())
            right.append(score if kind else 0.0)
        else:
            others.append(score)
    spent = 1000 * (time.perf_counter() - began) / len(PROBLEMS)
    least = sorted(others)[-1 - int(SHARE * len(others))]
    return sum(score > least for score in right) / len(right), spent


def search_many() -> float:
    """Return the milliseconds of a search among very many cards."""
    draw = np.random.default_rng(0)
    found: set[str] = set()
    for problem in PROBLEMS:
        found.update(terms(problem.text))
    vocabulary = {term: place for place, term in enumerate(sorted(found))}
    # A card has 300 terms, common ones more often, as in a language.
    shares = 1 / np.arange(1, len(vocabulary) + 1)
    counts = draw.binomial(MANY, np.minimum(1, 300 * shares / shares.sum()))
    counts = draw.permutation(counts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    index = RelevanceIndex(
        encoder="wordllama",
        cards=tuple(f"EXACT_CARD_{place}" for place in range(MANY)),
        vocabulary=vocabulary,
        rarity=np.ones(len(vocabulary), dtype=np.float32),
        starts=starts.astype(np.int64),
        classes=draw.integers(0, MANY, starts[-1]).astype(np.int32),
        weights=draw.normal(0, 1, starts[-1]).astype(np.float32),
        meaning=draw.normal(0, 1, (MANY + 1, 256)).astype(np.float32),
        shared=np.zeros((0, 3), dtype=np.float32),
    )
    index(PROBLEMS[0].text)
    began = time.perf_counter()
    for problem in PROBLEMS[1:101]:
        index(problem.text)
    return 10 * (time.perf_counter() - began)


def main() -> None:
    """Print the figures."""
    tree = tree_b()
    for beside in (0, 100, 430, 930):
        found, spent = found_share(tree, beside)
        print(
            f"{len(tree.shown) + beside:5,} cards: found {100 * found:.1f} %, {spent:.2f} ms per problem",
            flush=True,
        )
    if "--many" in sys.argv:
        print(f"{MANY:,} cards: {search_many():.2f} ms per problem")


if __name__ == "__main__":
    main()
