"""Decide the third test by real attempts with the best card first, as `es_policy=try` does.

    python results/probes.py

third/probes.csv holds the first tier of that ladder: three attempts of the embedded 1.5B
that read the best card of tree B, for every problem of the third test where the card
reaches the threshold. Where the three are unanimous their answer decides; else the
recorded outcome of Tiered stands, as after a failed try the ladder goes on without cards.
Tiered is that of the published run, three seeds on a GPU; the attempts were made once, on
two cores, with the same weights.
"""

from __future__ import annotations

import csv
import lzma
import sys
from collections import defaultdict
from pathlib import Path

from replay import GROUPS, Family, group_families

from kace.runs.stats import cluster_interval

HERE = Path(__file__).resolve().parent
THRESHOLDS = (0.5, 0.4)
STUDY = "techniques/third-1.5b"


def read_tiered() -> dict[str, list[dict[str, str]]]:
    """Return the outcomes of Tiered on the third test, by problem id."""
    with (HERE / "runs.csv").open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            if (row["study"], row["arm"]) == (STUDY, "tiered"):
                run = row["run"]
    ids = {}
    with (HERE / "problems.csv").open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            ids[row["problem"]] = row["id"]
    found = defaultdict(list)
    with lzma.open(HERE / "outcomes.csv.xz", "rt", encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            if row["run"] == run:
                found[ids[row["problem"]]].append(row)
    return found


def read_probes() -> dict[str, dict[str, str]]:
    """Return the attempts with the best card, by problem id."""
    with (HERE / "third" / "probes.csv").open(encoding="utf-8") as rows:
        return {row["id"]: row for row in csv.DictReader(rows)}


def decide(threshold: float) -> dict[str, Family]:
    """Return the sums of every family under the rule."""
    probes = read_probes()
    families = read_families()
    found: dict[str, Family] = defaultdict(Family)
    for name, solves in read_tiered().items():
        sums = found[families[name]]
        probe = probes.get(name)
        tried = probe is not None and float(probe["score"]) >= threshold
        for solve in solves:
            calls = int(solve["paper_calls"])
            sums.solves += 1
            sums.calls_alone += calls
            if probe is None or not tried:
                sums.calls += calls
                continue
            fits = probe["right_card"] == "1"
            sums.right += fits
            sums.wrong += not fits
            if probe["unanimous"] == "1":
                answered = probe["right"] == "1"
                sums.gained += answered and solve["right"] == "0"
                sums.lost += not answered and solve["right"] == "1"
                sums.calls += 3
            else:
                # ES and HS follow, without MS.
                sums.calls += 5 if solve["exit"] == "es_unanimous" else 10
    return found


def read_families() -> dict[str, str]:
    """Return the family of each problem of the third test, by id."""
    families = {}
    with (HERE / "problems.csv").open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            if (row["set"], row["split"]) == ("techniques", "third"):
                families[row["id"]] = row["family"]
    return families


def row_of(families: list[Family]) -> str:
    """Return the cells of one group: gain, gained and lost, calls, cards."""
    solves = sum(each.solves for each in families)
    gained = sum(each.gained for each in families)
    lost = sum(each.lost for each in families)
    pairs = [(each.gained - each.lost, each.solves) for each in families]
    gain = "identical"
    interval = cluster_interval(pairs)
    if interval and (gained or lost):
        low, high = (100 * end for end in interval)
        mean = 100 * (gained - lost) / solves
        gain = f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
    alone = sum(each.calls_alone for each in families)
    calls = sum(each.calls for each in families) / alone
    right = sum(each.right for each in families) / solves
    wrong = sum(each.wrong for each in families) / solves
    return (
        f"{gain} | +{gained} -{lost} | {calls:.2f} | {right:.0%} | {wrong:.0%}"
    )


def ends(fits: str) -> str:
    """Return what became of the attempts with a right or a wrong card."""
    own = [row for row in read_probes().values() if row["right_card"] == fits]
    agreed = [row for row in own if row["unanimous"] == "1"]
    right = sum(row["right"] == "1" for row in agreed)
    return f"{len(own)} tries, {len(agreed)} unanimous, {right} of these right"


def main() -> None:
    """Print the tables."""
    lines = [
        f"* A right card: {ends('1')}",
        f"* A wrong card: {ends('0')}",
        "",
        "| threshold | group | gain in points | solves | calls | tried a right card | "
        "a wrong one |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    groups = group_families("third")
    for threshold in THRESHOLDS:
        found = decide(threshold)
        for group in GROUPS:
            own = []
            for family, sums in found.items():
                if group in ("all", groups[family]):
                    own.append(sums)
            lines.append(f"| {threshold} | {group} | {row_of(own)} |")
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
