"""Compare ways of finding a tree's card for a problem, without a model: a yardstick.

    python results/finding.py [--split third]
    python results/finding.py --beir DIR

For each published technique tree: whether the best card is of the problem's family, and
how many problems with a card are found where a share of the others is shown one. The
texts are those of the split and of the cards; families say which card is right.

With --beir, the same task is written in the layout of BEIR, to try a retriever on: a
folder per tree with `corpus.jsonl` (a card per line), `queries.jsonl` (a problem per
line) and `qrels/SPLIT.tsv`. A problem that has no line in qrels has no card: a retriever
should find nothing for it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from kace.cards.card import MAX_WORDINGS
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


def with_stories(tree: EpistemicTree) -> EpistemicTree:
    """Return the tree with the problems of the first two tests among its wordings.

    More of a card's kind cannot be known: it bounds what better wordings would find.
    """
    stories: dict[str, dict[str, None]] = {}
    for split in ("test", "retest"):
        for problem in load_bundled("techniques", split):
            stories.setdefault(problem.family or "", {})[problem.text] = None
    cards = []
    for card, families in zip(tree.shown, families_of(tree), strict=True):
        wordings = dict.fromkeys(card.wordings[: MAX_WORDINGS - 12])
        for family in families:
            wordings |= stories.get(family, {})
        most = tuple(wordings)[:MAX_WORDINGS]
        cards.append(card.model_copy(update={"wordings": most}))
    return EpistemicTree.of(tree.domains, cards)


def families_of(tree: EpistemicTree) -> list[set[str]]:
    """Return the families of each card: those of the problems it came from."""
    origin: dict[str, str] = {}
    for number, each in enumerate(load_bundled("techniques", "train"), 1):
        origin[each.name] = each.family or ""
        # Tree A was learned from the same problems without their names.
        origin[f"p{number:03d}"] = each.family or ""
    own = []
    for card in tree.shown:
        sources = card.provenance.supporting_problems
        own.append({origin[source] for source in sources})
    return own


def table(name: str, tree: EpistemicTree, split: str) -> list[str]:
    """Return the lines of one tree's table."""
    own = families_of(tree)
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
        wider = with_stories(tree)
        ways["regression, MiniLM, with true stories"] = by_regression(
            wider, "minilm"
        )
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


def write_beir(folder: Path, tree: EpistemicTree, split: str) -> None:
    """Write cards, problems, and which card is of which problem's family."""
    folder.mkdir(parents=True)
    corpus = []
    for card in tree.shown:
        text = "\n".join((card.payload, *card_texts(card)))
        title = card.card_id.replace("_", " ")
        corpus.append({"_id": card.card_id, "title": title, "text": text})
    write_lines(folder / "corpus.jsonl", corpus)
    problems = load_bundled("techniques", split)
    queries = [{"_id": each.name, "text": each.text} for each in problems]
    write_lines(folder / "queries.jsonl", queries)
    (folder / "qrels").mkdir()
    own = families_of(tree)
    rows = ["query-id\tcorpus-id\tscore"]
    for problem in problems:
        for card, families in zip(tree.shown, own, strict=True):
            if problem.family in families:
                rows.append(f"{problem.name}\t{card.card_id}\t1")
    qrels = folder / "qrels" / f"{split}.tsv"
    qrels.write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_lines(path: Path, records: Sequence[object]) -> None:
    """Write records as JSON lines."""
    lines = [json.dumps(each, ensure_ascii=False) for each in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@contextmanager
def published_tree(name: str) -> Iterator[EpistemicTree]:
    """Unpack a published tree."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(HERE / "trees" / f"{name}.tar.xz") as packed:
            packed.extractall(folder, filter="data")
        (path,) = Path(folder).iterdir()
        yield open_tree(path)


def main() -> None:
    """Print the tables, or write the task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", default="third", help="of techniques")
    parser.add_argument("--beir", type=Path, help="a new folder for the task")
    given = parser.parse_args()
    for name in TREES:
        with published_tree(name) as tree:
            if given.beir:
                write_beir(given.beir / name, tree, given.split)
                continue
            lines = table(name, tree, given.split)
        sys.stdout.write("\n".join([*lines, "", ""]))


if __name__ == "__main__":
    main()
