"""How many problems of public sets would read a card of a starter tree, by the gate as it ships and by the first score.

Each tree is read without wordings and with them, at the loosest threshold that a calibration may choose.

    python experiments/gate/everyday.py data/gsm8k_test.jsonl data/svamp.jsonl data/math500.jsonl

No model is asked: where no card is shown, every prompt is that of the ladder without a tree, and so is every answer.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kace.learning.calibrate import LEAST, LEAST_WORDED
from kace.problems import load_problems
from kace.ladder.gate import BackgroundScore, TreeScore
from kace.cards.store import open_tree

HERE = Path(__file__).resolve().parent
TREES = {"starter/test-{}/tree": LEAST, "gate/worded-{}/trees/worded": LEAST_WORDED}
FIRST = 2.0


def shown(tree: Path, threshold: float, problems: Path) -> tuple[int, int, int]:
    """The problems of a file, those that would read a card, and those that the first score showed one."""
    cards, texts = open_tree(tree), [problem.text for problem in load_problems(problems)]
    counts = (
        sum(any(score(text, least)) for text in texts)
        for score, least in ((BackgroundScore(cards), threshold), (TreeScore(cards), FIRST))
    )
    return len(texts), *counts


if __name__ == "__main__":
    for solver in ("0.5b", "1.5b"):
        for name, threshold in TREES.items():
            tree = name.format(solver)
            for path in map(Path, sys.argv[1:]):
                size, now, first = shown(HERE.parent / tree, threshold, path)
                sys.stdout.write(f"{tree}, {path.stem}: {now} of {size} (first score {first})\n")
