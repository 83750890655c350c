"""Compare ways of finding a tree's card for a problem, without a model: a yardstick.

    python results/finding.py [THIRD_OR_OTHER_SPLIT]

For each published technique tree: whether the best card is of the problem's family, and
how many problems with a card are found where a share of the others is shown one. The
texts are those of the split and of the cards; families say which card is right.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from kace.cards.store import open_tree
from kace.cards.tree import EpistemicTree
from kace.ladder.relevance import (
    ENCODERS,
    TextTable,
    card_texts,
    has_minilm,
    open_index,
    words,
)
from kace.ladder.retrieve import bm25
from kace.problems import load_bundled

HERE = Path(__file__).resolve().parent
TREES = ("third-a", "techniques")
SHARES = (0.03, 0.05, 0.1)
Scorer = Callable[[str], Sequence[float]]
"""Returns a score per card."""


def by_words(tree: EpistemicTree) -> Scorer:
    """Score by BM25 over all texts of a card."""
    texts = []
    for card in tree.shown:
        texts.append(Counter(words("\n".join(card_texts(card)))))
    return partial(bm25, texts=texts)


def by_meaning(tree: EpistemicTree, encoder: str) -> Scorer:
    """Score by the three nearest texts of a card."""
    embed = ENCODERS[encoder]
    vectors = [embed(card_texts(card)) for card in tree.shown]

    def score(problem: str) -> Sequence[float]:
        asked = embed([problem])[0]
        return [float(np.sort(each @ asked)[-3:].mean()) for each in vectors]

    return score


def by_regression(tree: EpistemicTree, encoder: str | None) -> Scorer:
    """Score by the index that the tree keeps, or by one trained on its cards alone."""
    index = open_index(tree)
    if encoder:
        index = TextTable(tree, encoder=encoder).index()

    def score(problem: str) -> Sequence[float]:
        found = index(problem)
        return [found.get(card.card_id, 0.0) for card in tree.shown]

    return score


def table(name: str, tree: EpistemicTree, split: str) -> list[str]:
    """Return the lines of one tree's table."""
    origin: dict[str, str] = {}
    for number, each in enumerate(load_bundled("techniques", "train"), 1):
        origin[each.name] = each.family or ""
        # Tree A was learned from the same problems without their names.
        origin[f"p{number:03d}"] = each.family or ""
    own = []
    for card in tree.shown:
        sources = card.provenance.supporting_problems
        own.append({origin[source] for source in sources})
    covered = set[str]().union(*own)
    problems = load_bundled("techniques", split)
    has = np.array([problem.family in covered for problem in problems])
    ways: dict[str, Scorer] = {
        "BM25": by_words(tree),
        "wordllama, three nearest texts": by_meaning(tree, "wordllama"),
        "regression, wordllama, cards alone": by_regression(tree, "wordllama"),
    }
    if has_minilm():
        ways["MiniLM, three nearest texts"] = by_meaning(tree, "minilm")
        ways["regression as shipped with the tree"] = by_regression(tree, None)
    heads = [
        f"found where {share:.0%} of others are shown one" for share in SHARES
    ]
    lines = [
        f"| {name}: {len(tree.shown)} cards, {len(covered)} families | right card "
        f"first | {' | '.join(heads)} |",
        "| --- | --- | --- | --- | --- |",
    ]
    for title, scorer in ways.items():
        scores = np.array([scorer(problem.text) for problem in problems])
        best = scores.argmax(axis=1)
        top = scores.max(axis=1)
        right = np.array(
            [
                problem.family in own[place]
                for problem, place in zip(problems, best, strict=True)
            ]
        )
        row = [f"{right[has].mean():.1%}"]
        others = np.sort(top[~has])[::-1]
        for share in SHARES:
            least = others[int(share * len(others))]
            row.append(f"{(right & (top > least))[has].mean():.1%}")
        lines.append(f"| {title} | {' | '.join(row)} |")
    return lines


def main() -> None:
    """Print the tables."""
    split = sys.argv[1] if sys.argv[1:] else "third"
    for name in TREES:
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(HERE / "trees" / f"{name}.tar.xz") as packed:
                packed.extractall(folder, filter="data")
            (path,) = Path(folder).iterdir()
            lines = table(name, open_tree(path), split)
        sys.stdout.write("\n".join([*lines, "", ""]))


if __name__ == "__main__":
    main()
