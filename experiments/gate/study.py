"""The relevance gate, calibrated on training problems alone, on the starter test: what it keeps, and what it breaks.

    python experiments/gate/study.py 1.5b data/ work/ --server http://127.0.0.1:8000/v1

`data/` holds train.jsonl (`kace data starter --split train --n 200 --seed 1`) and starter.jsonl (test, n 1000, seed 1).
The set is solved by Tiered and by the published starter tree: `first` reads it through the first version's score, two
words rare in the tree; the others through the calibrated gate. `three` keeps three of its cards, `thousand` has a
thousand cards of other subjects beside them. With `--worded`, a tree whose cards have wordings is calibrated and solves
the set too, and of each public set in `data/` (gsm8k.jsonl, svamp.jsonl, math.jsonl) the problems that would read one
of its cards: the others have Tiered's prompts, and so its answers. `everyday.py` counts them for any tree.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence, Set
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from commands import Commands
from subjects import other_subjects

from kace.config import PROFILE_FILE, RetrievalConfig, profile_of
from kace.files import write_atomic
from kace.problems import load_problems, problem_rows
from kace.ladder.gate import BackgroundScore
from kace.cards.card import Status
from kace.cards.store import TreeStore, open_tree

FIRST = ("--set", "relevance=tree", "--set", "relevance_threshold=2")
ARMS = {  # the tree, the system, the settings
    "first": ("tree", "kace", FIRST),
    "first-skip-es": ("tree", "kace-skip-es", FIRST),
    "kace": ("tree", "kace", ()),
    "kace-skip-es": ("tree", "kace-skip-es", ()),
    "worded": ("worded", "kace", ()),
    "worded-skip-es": ("worded", "kace-skip-es", ()),
    "three-skip-es": ("three", "kace-skip-es", ()),
    "thousand-skip-es": ("thousand", "kace-skip-es", ()),
}
RESIZED = ("three", "thousand")
PUBLIC = {"gsm8k": "starter", "svamp": "starter", "math": "math-hard"}  # the set, and the preset that solves it


def resized(work: Path) -> None:
    """The calibrated tree with three of its cards, and with a thousand of other subjects."""
    tree = open_tree(work / "tree")
    cards = [card for card in tree if card.status is not Status.DEPRECATED]
    for name, kept in zip(RESIZED, (cards[:3], [*cards, *other_subjects(tree.domains, 1000)]), strict=True):
        if not (work / name).exists():
            TreeStore.create(work / name, tree.domains, kept, author="study")
            shutil.copy(work / "tree" / PROFILE_FILE, work / name / PROFILE_FILE)


def would_read(tree: Path, problems: Path, out: Path) -> int:
    """How many problems of a file would read a card of a calibrated tree; these are written."""
    score, reads = BackgroundScore(open_tree(tree)), RetrievalConfig.model_validate(profile_of(None, tree)["retrieval"])
    found = [row for row in load_problems(problems) if score(row.text, reads.relevance_threshold)]
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(out, "".join(f"{line}\n" for line in problem_rows(found)))
    return len(found)


def solve(commands: Commands, evaluate: Sequence[object], work: Path, trees: Set[str], runs: Path) -> None:
    """Tiered, then every arm of these trees beside it."""
    commands.one((*evaluate, "--system", "tiered", "--out", runs / "tiered"))
    commands.all(
        (*evaluate, "--system", system, "--tree", work / tree, *said, "--reuse", runs / "tiered", "--out", runs / arm)
        for arm, (tree, system, said) in ARMS.items()
        if tree in trees
    )


def main() -> None:
    """Calibrate, then solve the test with every arm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("solver", choices=("0.5b", "1.5b"))
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--tree", type=Path, help="left out, the published starter tree of the solver")
    parser.add_argument("--worded", type=Path, help="the tree with wordings")
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--limit", type=int, help="only so many problems: to try the script")
    asked = parser.parse_args()
    limit = ("--limit", asked.limit) if asked.limit else ()
    work: Path = asked.work
    commands = Commands(asked.server, side_by_side=4)
    source = asked.tree or Path(__file__).parents[1] / f"starter/test-{asked.solver}/tree"
    trees = {"tree": source} | ({"worded": asked.worded} if asked.worded else {})
    calibrate = ("learn", "calibrate", "--preset", "starter", *limit, "--train", asked.data / "train.jsonl")
    for name, tree in trees.items():
        if not (work / name).exists():
            shutil.copytree(tree, work / name)
        if not commands.one((*calibrate, work / name)):
            sys.exit(1)
    resized(work)
    test = ("eval", "--data", asked.data / "starter.jsonl", "--preset", "starter", *limit)
    solve(commands, test, work, {*trees, *RESIZED}, work / "runs")
    for name, preset in PUBLIC.items() if asked.worded else ():
        whole, problems = asked.data / f"{name}.jsonl", work / "public" / f"{name}.jsonl"
        if whole.exists() and would_read(work / "worded", whole, problems):
            test = ("eval", "--data", problems, "--preset", preset)
            solve(commands, test, work, {"worded"}, work / "public" / "runs" / name)


if __name__ == "__main__":
    main()
