"""Does a card help other problems than those it was written from? Its lift on them, from the votes of learning runs.

    python experiments/carried_over.py

A learning run hides each card from half of the attempts at random. Here the attempts of a run are split by what the
problem is to the card: one that it was written from, another of the same family, or any other that it was relevant to.
Intervals resample families, or problems where there are none. Writes carried_over.md beside this file, or to the path
given.
"""

from __future__ import annotations

import random
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tables import markdown

from kace.datasets.techniques.generate import technique_problems
from kace.io import write_atomic
from kace.learner.effects import Impact, Lift
from kace.learner.steps import read_steps
from kace.tree.store import open_tree
from kace.tree.tree import EpistemicTree

HERE = Path(__file__).resolve().parent
GROUPS = ("the card was written from it", "another of that family", "any other that it was shown to")
DRAWS = 4_000
SAID = """A learning run hides each card from half of the attempts at random. Here its attempts are split by what the problem is to
the card: first epoch, all cards that were measured, also those dropped later. 95 % intervals resample families, or problems where
there are none (`python experiments/carried_over.py`)."""


class Lifts:
    """What cards gain and how much is known of it, by group of problems and by cluster."""

    def __init__(self, tree: EpistemicTree, families: Mapping[str, str]) -> None:
        self.tree, self.families = tree, families
        self.found = {group: defaultdict[str, list[float]](lambda: [0.0, 0.0]) for group in GROUPS}
        self.attempts = dict.fromkeys(GROUPS, 0)

    def add(self, lifts: Iterable[Lift], names: Mapping[str, str]) -> None:
        """Count the votes on these cards, at problems that have these names."""
        for lift in lifts:
            sources = set(self.tree.card(lift.card_id).provenance.supporting_problems)
            families = {self.families[name] for name in sources if name in self.families}
            for vote in lift.votes:
                name = names.get(vote.problem, vote.problem)
                family = self.families.get(name, name)
                group = GROUPS[0] if name in sources else GROUPS[1] if family in families else GROUPS[2]
                both = self.found[group][family]
                both[0] += vote.table.excess
                both[1] += vote.table.weight
                self.attempts[group] += vote.made + vote.made_without

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The lift of each group in points, with its interval."""
        for group, clusters in self.found.items():
            if not clusters:
                continue
            chance, every = random.Random(1), list(clusters.values())
            drawn = sorted(points(chance.choices(every, k=len(every))) for _ in range(DRAWS))
            ends = (points(every), drawn[DRAWS // 40], drawn[-DRAWS // 40])
            lift, low, high = (round(value, 1) + 0.0 for value in ends)  # no minus before a zero
            told = f"{lift:+.1f} [{low:+.1f}, {high:+.1f}]"
            yield group, told, f"{self.attempts[group]:,}", str(len(clusters))


def points(clusters: Iterable[list[float]]) -> float:
    """The weighted difference of the rates of right attempts, in points."""
    gained, weight = (sum(column) for column in zip(*clusters, strict=True))
    return 100 * gained / weight if weight else 0.0


def techniques() -> Lifts:
    """The blind teacher's run on the technique set: its first epoch, before a revision saw other problems."""
    train = technique_problems("train")
    families = {problem.name: problem.family or problem.name for problem in train}
    with tarfile.open(HERE / "techniques" / "learn" / "state.tar.xz") as archive, TemporaryDirectory() as folder:
        for name in ("tree/snapshots/epoch-1.jsonl", "tree/learn/steps.jsonl"):
            archive.extract(name, folder, filter="data")
        lifts = Lifts(open_tree(Path(folder, "tree", "snapshots", "epoch-1.jsonl")), families)
        for line in read_steps(Path(folder, "tree", "learn", "steps.jsonl")):
            if line.what == "impact" and line.epoch == 1:
                lifts.add(line.read(Impact).lifts, {problem.id: problem.name for problem in train})
    return lifts


def math() -> Lifts:
    """The blind teacher's run on MATH, one epoch. Its problems have no families."""
    folder = HERE / "math-hard" / "again"
    lifts = Lifts(open_tree(folder / "trees" / "not-retired.jsonl"), {})
    lifts.add(Impact.model_validate_json((folder / "impact.json").read_bytes()).lifts, {})
    return lifts


def main(out: Path) -> None:
    """Write the page."""
    heads = ("problem", "lift of an attempt, points", "attempts", "families or problems")
    lines = ["# Do cards help other problems than those they were written from?", "", SAID, ""]
    for name, lifts in (("Technique set", techniques()), ("MATH levels 4 and 5", math())):
        lines += [f"## {name}, 1.5B", "", *markdown(heads, lifts.rows()), ""]
    write_atomic(out, "\n".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE / "carried_over.md")
