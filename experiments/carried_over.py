"""Does a card help other problems than those it was written from? Its lift on them, from the votes of learning runs.

    python experiments/carried_over.py

A learning run hides each card from half of the attempts at random. Here the attempts of a run are split by what the
problem is to the card: one that it was written from, another of the same family, or any other that it was relevant to.
Intervals are over families, or over problems where there are none. Writes carried_over.md beside this file, or to the path
given.
"""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tables import markdown

from kace.datasets.techniques.generate import technique_problems
from kace.files import write_atomic
from kace.learning.effects import CardVotes, Impact, lift_of
from kace.learning.steps import read_steps
from kace.cards.lift import plain_points
from kace.cards.store import open_tree
from kace.cards.tree import EpistemicTree

HERE = Path(__file__).resolve().parent
GROUPS = ("the card was written from it", "another of that family", "any other that it was shown to")
SAID = """A learning run hides each card from half of the attempts at random. Here its attempts are split by what the problem is to
the card: first epoch, all cards that were measured, also those dropped later. 95 % intervals are over families, or over problems
where there are none (`python experiments/carried_over.py`)."""

Rows = Sequence[tuple[str, ...]]


def rows(tree: EpistemicTree, impacts: Iterable[Impact], names: Mapping[str, str], families: Mapping[str, str]) -> Rows:
    """The lift of all cards on each group of problems. Names are by problem id, families by name."""
    votes: dict[str, list[CardVotes]] = {group: [] for group in GROUPS}
    for lift in (lift for impact in impacts for lift in impact.lifts):
        sources = tree.card(lift.card_id).provenance.supporting_problems
        own = {families[name] for name in sources if name in families}
        for vote in lift.votes:
            name = names.get(vote.problem, vote.problem)
            family = families.get(name, name)
            group = GROUPS[0] if name in sources else GROUPS[1] if family in own else GROUPS[2]
            votes[group].append(vote.model_copy(update={"problem": family}))  # families are what intervals are over
    found = []
    for group, some in votes.items():
        if lift := lift_of("", "dropout", some):
            effect, low, high = map(plain_points, (lift.effect, lift.low, lift.high))
            found.append((group, f"{effect} [{low}, {high}]", f"{lift.shown + lift.hidden:,}", str(lift.problems)))
    return found


def techniques() -> Rows:
    """The blind teacher's run on the technique set: its first epoch, before a revision saw other problems."""
    train = technique_problems("train")
    with tarfile.open(HERE / "techniques" / "learn" / "state.tar.xz") as archive, TemporaryDirectory() as folder:
        for name in ("tree/snapshots/epoch-1.jsonl", "tree/learn/steps.jsonl"):
            archive.extract(name, folder, filter="data")
        tree = open_tree(Path(folder, "tree", "snapshots", "epoch-1.jsonl"))
        steps = [line for line in read_steps(Path(folder, "tree", "learn", "steps.jsonl")) if line.epoch == 1]
    impacts = [line.read(Impact) for line in steps if line.what == "impact"]
    families = {problem.name: problem.family or problem.name for problem in train}
    return rows(tree, impacts, {problem.id: problem.name for problem in train}, families)


def math() -> Rows:
    """The blind teacher's run on MATH, one epoch. Its problems have no families."""
    folder = HERE / "math-hard" / "again"
    impact = Impact.model_validate_json((folder / "impact.json").read_bytes())
    return rows(open_tree(folder / "trees" / "not-retired.jsonl"), [impact], {}, {})


def main(out: Path) -> None:
    """Write the page."""
    heads = ("problem", "lift of an attempt, points", "attempts", "families or problems")
    lines = ["# Do cards help other problems than those they were written from?", "", SAID, ""]
    for name, found in (("Technique set", techniques()), ("MATH levels 4 and 5", math())):
        lines += [f"## {name}, 1.5B", "", *markdown(heads, found), ""]
    write_atomic(out, "\n".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE / "carried_over.md")
