"""Replay the cards-first ladder on the recorded votes of an earlier test, without a model.

    python results/replay.py > results/cards-first.md

The rule: where the best card of the tree reaches the threshold, MS comes first and reads
that card alone. Its three attempts decide only if they are unanimous; else ES and HS
follow, and read nothing. Other problems climb the locked ladder without cards.

The votes are those of commit a80fb0c, read with `git archive`: Tiered's attempts, and
three attempts that read a right or a wrong card. A right card's attempts are those of
the oracle's run. A wrong card's are those of a run that showed this problem a wrong card;
where there is none, those with the nearest solved problem as an example (the table has
their share). After a failed MS, HS is taken to answer as Tiered did.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from finding import families_of, published_tree

from kace.ladder.relevance import open_index
from kace.problems import load_bundled
from kace.runs.stats import cluster_interval

HERE = Path(__file__).resolve().parent
COMMIT = "a80fb0c"
TREE = "techniques"
THRESHOLDS = (0.5, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.0)
WRONG = ("first-gate-skip-es", "worded-skip-es", "kace-skip-es")
SPLITS = {
    "test": "First test, 1,000 problems, one seed",
    "retest": "Retest, 1,000 problems, three seeds",
}
GROUPS = ("conventions seen", "mathematics seen", "not seen", "all")

Trace: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, int]
"""A problem and a seed."""


@dataclass
class Votes:
    """The recorded solves of a split."""

    tiered: dict[Key, Trace] = field(default_factory=dict)
    right: dict[Key, Trace] = field(default_factory=dict)
    wrong: dict[Key, list[Trace]] = field(
        default_factory=lambda: defaultdict(list)
    )
    example: dict[Key, Trace] = field(default_factory=dict)


@dataclass
class Family:
    """Sums over the solves of one family."""

    solves: int = 0
    gained: int = 0
    lost: int = 0
    calls: int = 0
    calls_alone: int = 0
    tokens: int = 0
    tokens_alone: int = 0
    right: int = 0
    wrong: int = 0
    borrowed: int = 0


def read_traces(split: str, run: str) -> Iterator[Trace]:
    """Yield the solves of a recorded run."""
    folder = f"experiments/techniques/{split}-1.5b/runs/{run}"
    packed = subprocess.run(  # noqa: S603
        ["git", "archive", COMMIT, folder],  # noqa: S607
        cwd=HERE.parent,
        check=True,
        capture_output=True,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        member = files.extractfile(f"{folder}/traces.jsonl.gz")
        assert member is not None
        with gzip.open(member, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)


def key_of(trace: Trace) -> Key:
    """Return the problem and the seed of a solve."""
    return trace["problem"], trace["seed"]


def cards_of(trace: Trace) -> list[str]:
    """Return the cards that MS read."""
    for recall in trace["recalls"]:
        if recall["tier"] == "MS":
            return list(recall["cards"])
    return []


def read_votes(split: str, families: dict[str, set[str]]) -> Votes:
    """Read what the replay needs of a split."""
    votes = Votes()
    seeds = set()
    for trace in read_traces(split, "oracle-card-skip-es"):
        seeds.add(trace["seed"])
        if cards_of(trace):
            votes.right[key_of(trace)] = trace
    for trace in read_traces(split, "tiered"):
        # The oracle was not run on every seed of the first test.
        if trace["seed"] in seeds:
            votes.tiered[key_of(trace)] = trace
    for trace in read_traces(split, "knn-fewshot-skip-es"):
        votes.example[key_of(trace)] = trace
    for run in WRONG:
        for trace in read_traces(split, run):
            shown = cards_of(trace)
            own = any(
                trace["family"] in families.get(name, ()) for name in shown
            )
            if shown and not own:
                votes.wrong[key_of(trace)].append(trace)
    return votes


def attempts_of(trace: Trace, tier: str) -> list[Trace]:
    """Return the attempts of a tier."""
    return [each for each in trace["attempts"] if each["tier"] == tier]


def tokens_of(attempts: list[Trace]) -> int:
    """Return the tokens of attempts, prompts and replies."""
    return sum(each["input"] + each["output"] for each in attempts)


def is_unanimous(trace: Trace) -> bool:
    """Whether the three attempts at MS gave one answer."""
    places = set()
    for place, attempt in enumerate(trace["attempts"]):
        if attempt["tier"] == "MS":
            places.add(place)
    return any(places <= set(each["positions"]) for each in trace["classes"])


def find_probe(
    votes: Votes, key: Key, card: str, is_right: bool
) -> tuple[Trace | None, bool]:
    """Return the solve whose MS attempts stand in, and whether it is borrowed."""
    if is_right:
        return votes.right.get(key), False
    recorded = votes.wrong.get(key, [])
    same = [each for each in recorded if card in cards_of(each)]
    for trace in (*same, *recorded):
        return trace, False
    return votes.example[key], True


def replay(
    votes: Votes,
    best: dict[str, tuple[str, float]],
    families: dict[str, set[str]],
    threshold: float,
) -> dict[str, Family]:
    """Return the sums of every family under the rule."""
    found: dict[str, Family] = defaultdict(Family)
    for key, alone in votes.tiered.items():
        sums = found[alone["family"]]
        right = bool(alone["correct"])
        calls = alone["paper_calls"]
        tokens = tokens_of(alone["attempts"])
        sums.solves += 1
        sums.calls_alone += calls
        sums.tokens_alone += tokens
        card, score = best[key[0]]
        probe = None
        if score >= threshold:
            is_right = alone["family"] in families[card]
            probe, borrowed = find_probe(votes, key, card, is_right)
        if probe is None:
            sums.calls += calls
            sums.tokens += tokens
            continue
        sums.right += is_right
        sums.wrong += not is_right
        sums.borrowed += borrowed
        attempts = attempts_of(probe, "MS")
        spent = tokens_of(attempts)
        if is_unanimous(probe):
            answered = bool(attempts[0]["correct"])
            sums.gained += answered and not right
            sums.lost += right and not answered
            sums.calls += 3
        else:
            spent += tokens_of(attempts_of(alone, "ES"))
            sums.calls += 5
            if alone["exit"] != "es_unanimous":
                sums.calls += 5
                last = tokens_of(attempts_of(alone, "HS"))
                middle = tokens_of(attempts_of(alone, "MS"))
                # Tiered that left at MS has no HS; five attempts are three and two more.
                spent += last or middle * 5 // 3
        sums.tokens += spent
    return found


def group_families(split: str) -> dict[str, str]:
    """Return the group of each family."""
    found = {}
    with (HERE / "problems.csv").open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            if row["set"] == "techniques" and row["split"] == split:
                group = "not seen"
                if row["seen"] == "1":
                    invented = row["invented"] == "1"
                    group = GROUPS[0] if invented else GROUPS[1]
                found[row["family"]] = group
    return found


def gain_of(families: list[Family]) -> str:
    """Return the gain of one group with its interval, then gained and lost."""
    solves = sum(each.solves for each in families)
    gained = sum(each.gained for each in families)
    lost = sum(each.lost for each in families)
    pairs = [(each.gained - each.lost, each.solves) for each in families]
    interval = cluster_interval(pairs)
    assert interval is not None
    gain = "identical"
    if gained or lost:
        low, high = (100 * end for end in interval)
        mean = 100 * (gained - lost) / solves
        gain = f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
    return f"{gain} | +{gained} -{lost}"


def calls_of(families: list[Family]) -> float:
    """Return the calls of one group as a share of Tiered's."""
    alone = sum(each.calls_alone for each in families)
    return sum(each.calls for each in families) / alone


def row_of(families: list[Family]) -> str:
    """Return the cells of one group: gain, gained and lost, calls, tokens, cards."""
    solves = sum(each.solves for each in families)
    tokens_alone = sum(each.tokens_alone for each in families)
    tokens = sum(each.tokens for each in families) / tokens_alone
    right = sum(each.right for each in families) / solves
    wrong = sum(each.wrong for each in families)
    borrowed = sum(each.borrowed for each in families) / max(1, wrong)
    return (
        f"{gain_of(families)} | {calls_of(families):.2f} | "
        f"{tokens:.2f} | {right:.0%} | {wrong / solves:.0%} | {borrowed:.0%}"
    )


def table(split: str) -> list[str]:
    """Return the lines of one test's table."""
    with published_tree(TREE) as tree:
        index = open_index(tree)
        names = [card.card_id for card in tree.shown]
        families = dict(zip(names, families_of(tree), strict=True))
        best = {}
        for problem in load_bundled("techniques", split):
            scores = index(problem.text)
            card = max(scores, key=scores.__getitem__, default=names[0])
            best[problem.id] = card, scores.get(card, 0.0)
    votes = read_votes(split, families)
    groups = group_families(split)
    lines = [
        "| threshold | group | gain in points | solves | calls | tokens | tried a right "
        "card | a wrong one | of these borrowed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for threshold in THRESHOLDS:
        found = replay(votes, best, families, threshold)
        for group in GROUPS:
            own = []
            for family, sums in found.items():
                if group in ("all", groups[family]):
                    own.append(sums)
            lines.append(f"| {threshold} | {group} | {row_of(own)} |")
    return lines


def main() -> None:
    """Print the tables of both tests."""
    lines = ["# Cards first, replayed on recorded votes", ""]
    paragraphs = (__doc__ or "").rstrip().split("\n\n")
    lines.append("\n\n".join(paragraphs[2:]))
    for split, title in SPLITS.items():
        lines += ["", f"## {title}", "", *table(split)]
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
