"""Are cards found in other stories? How often the right card is shown, without wordings and with them; no solver.

    python experiments/techniques/wordings.py

`worded/` and `worded-32/` are the published tree with 16 and with 32 wordings a card (`kace learn wordings`). On the
validation problems, whose stories no card was written from: how often the most relevant card is of the problem's own
family, and, at the threshold that shows a card to a given share of the problems whose most relevant card is another
family's, how many problems read the right one. A second table says how near the texts of the tree with 32 come to the
stories of each split, by the share of content words that the guard against retold problems counts. Writes wordings.md
beside this file, or to the path given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tables import markdown

from kace.datasets.techniques.generate import INVENTED, SPLITS, families, technique_problems
from kace.learning.leakage import ContaminationHashes
from kace.problems import Problem
from kace.ladder.gate import BackgroundScore
from kace.cards.card import Difficulty
from kace.cards.store import open_tree
from kace.cards.tree import EpistemicTree, cards_by_source

HERE = Path(__file__).resolve().parent
SHARES = (0.05, 0.10)


def right_cards(tree: EpistemicTree, train: Iterable[Problem]) -> dict[str, set[str]]:
    """By family, the medium cards that its training problems gave."""
    medium = {card.card_id for card in tree.shown if card.difficulty_tag is Difficulty.MEDIUM}
    gave, found = cards_by_source(tree), dict[str, set[str]]()
    for problem in train:
        if cards := gave.get(problem.name, frozenset()) & medium:
            found.setdefault(problem.family or "", set()).update(cards)
    return found


def measured(tree: EpistemicTree, problems: list[Problem]) -> list[str]:
    """One line of figures."""
    right, score = right_cards(tree, technique_problems("train")), BackgroundScore(tree)
    medium = {card for cards in right.values() for card in cards}
    known = {family.name for family in families() if family.domain not in INVENTED.split()}
    best: list[tuple[float, bool, bool]] = []
    for problem in problems:
        scores = {card: value for card, value in score(problem.text).items() if card in medium}
        top = max(scores, key=lambda card: (scores[card], card), default="")
        own = right.get(problem.family or "", set())
        best.append((scores.get(top, 0.0), top in own, problem.family in known))
    having = [problem.family in right for problem in problems]
    cells = []
    for part in (lambda mathematics: True, lambda mathematics: mathematics):
        first = [is_right for (_, is_right, maths), has in zip(best, having, strict=True) if has and part(maths)]
        cells.append(f"{sum(first)} of {len(first)}")
    wrong = sorted((value for value, is_right, _ in best if not is_right), reverse=True)
    for share in SHARES:
        threshold = wrong[int(share * len(wrong))]
        shown = [maths for value, is_right, maths in best if is_right and value > threshold]
        cells.append(f"{len(shown)}, {sum(shown)}")
    return cells


def nearness(tree: EpistemicTree) -> list[str]:
    """The lines of how near a tree's wordings and demonstrations come to the problems of each split."""
    wordings = [text for card in tree.shown for text in card.wordings]
    told = [example.problem for card in tree.shown for example in card.examples]
    rows = []
    for split in SPLITS:
        problems, cells = ContaminationHashes.of(technique_problems(split)), []
        for texts in (wordings, told):
            shares = sorted(map(problems.overlap, texts))
            cells += [f"{100 * share:.1f} %" for share in (mean(shares), shares[int(0.95 * len(shares))], shares[-1])]
        rows.append([split, *cells])
    kinds = (f"{len(wordings):,} wordings", f"{len(told)} demonstrations")
    heads = [f"{kind}: {what}" for kind in kinds for what in ("mean", "95th percentile", "most")]
    return markdown(["content words shared with the nearest problem", *heads], rows)


def main(out: Path) -> None:
    """Write both tables."""
    some, more = (open_tree(HERE / folder / "tree") for folder in ("worded", "worded-32"))
    problems = list(technique_problems("validation"))
    bare = EpistemicTree.of(some.domains, [card.worded(()) for card in some])
    shares = (f"shown the right card where {share:.0%} are shown a wrong one: all, mathematics" for share in SHARES)
    heads = ["294 validation problems", "right card first", "in mathematics", *shares]
    trees = {"without wordings": bare, "with 16 wordings a card": some, "with 32 wordings a card": more}
    lines = markdown(heads, ([name, *measured(tree, problems)] for name, tree in trees.items()))
    out.write_text("\n".join([*lines, "", *nearness(more)]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE / "wordings.md")
