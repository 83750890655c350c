"""The loosest thresholds that any tree may be calibrated to, from the training problems of four published trees.

    python experiments/gate/floor.py

One tree has too few training problems for the bound of conformal risk control: 400 are needed to lose a single problem
under half a point. Together the four have 836: 418 problems, each with two solvers. `calibrations/` has what the cards
of other techniques cost each of them, down to a score of 0.35 (the 0.5B's technique tree: 0.46),
`calibrations/worded/` the same where cards are found by wordings alone, down to 0.3; a gain by a wrong card is luck and
counts as no loss.

A card with wordings is found by them or by its own text. For what a match with its own text counts (`OWN_TEXT`), the
script prints the threshold that follows and, on validation, whose stories no card was written from, how many problems
would be shown the right card first, and how many a wrong one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tables import markdown
from techniques.wordings import right_cards

import kace.ladder.gate
from kace.datasets.starter.generate import generate_set
from kace.datasets.techniques.generate import technique_problems
from kace.learning.calibrate import loosest
from kace.problems import Problem
from kace.ladder.gate import BackgroundScore
from kace.cards.store import open_tree
from kace.cards.tree import EpistemicTree

HERE = Path(__file__).resolve().parent
MAX_HARM = 0.5  # points of accuracy
SHARES = (0.0, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0)


def losses(folder: Path, tree: str) -> Mapping[str, tuple[float, float]]:
    """By training problem, the score of the nearest card of another technique, and what it cost, ES skipped or not."""
    found = json.loads((folder / tree).read_text(encoding="utf-8"))["left_out"]
    return {each["problem"]: (each["score"], max(each["loss"], each["skip_loss"])) for each in found}


def floor(own_text: float | None) -> float:
    """The loosest threshold by which all problems together lose little enough; `None` is for cards without wordings."""
    problems, lost = 0, list[tuple[float, float]]()
    for path in sorted((HERE / "calibrations").glob("*.json")):
        problems += json.loads(path.read_text(encoding="utf-8"))["problems"]
        own = losses(path.parent, path.name)
        if own_text is None:
            lost += own.values()
            continue
        worded, nothing = losses(path.parent / "worded", path.name), (0.0, 0.0)
        for name in {*own, *worded}:
            score, loss = own.get(name, nothing)
            lost.append(max((own_text * score, loss), worded.get(name, nothing)))
    return loosest(lost, problems, MAX_HARM, *(() if own_text is None else (0.3,)))[0]


def shown(tree: EpistemicTree, train: Sequence[Problem], validation: Sequence[Problem], threshold: float) -> str:
    """How many problems would be shown a card of their own family first, and how many another."""
    score, right, wrong = BackgroundScore(tree), 0, 0
    own = right_cards(tree, train)
    medium = {card for cards in own.values() for card in cards}
    for problem in validation:
        scores = {card: value for card, value in score(problem.text, threshold).items() if card in medium}
        if scores:
            is_right = max(scores, key=lambda card: (scores[card], card)) in own.get(problem.family or "", ())
            right, wrong = right + is_right, wrong + (not is_right)
    return f"{right}, {wrong}"


def main() -> None:
    """Print both thresholds, and what the share of a card's own text comes to."""
    starter = (tuple(generate_set(200, 1)), tuple(generate_set(400, 1, "validation")))
    techniques = (tuple(technique_problems("train")), tuple(technique_problems("validation")))
    trees = {
        "starter, 1.5B": (open_tree(HERE / "worded-1.5b/trees/worded"), starter),
        "starter, 0.5B": (open_tree(HERE / "worded-0.5b/trees/worded"), starter),
        "techniques": (open_tree(HERE.parent / "techniques/worded/tree"), techniques),
    }
    heads, rows = ["own text counts", "threshold", *(f"{name}: right, wrong" for name in trees)], []
    for share in (None, *SHARES):
        threshold, cells = floor(share), []
        for tree, sets in trees.values():
            if share is None:
                tree = EpistemicTree.of(tree.domains, [card.worded(()) for card in tree])
            else:
                kace.ladder.gate.OWN_TEXT = share
            cells.append(shown(tree, *sets, threshold))
        rows.append(["no wordings" if share is None else f"{share:.2f}", f"{threshold:.3f}", *cells])
    sys.stdout.write("\n".join(markdown(heads, rows)) + "\n")


if __name__ == "__main__":
    main()
