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

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from draw import THIRD, read_csv
from replay import GROUPS, Family, calls_of, gain_of, group_families

HERE = Path(__file__).resolve().parent
THRESHOLDS = (0.5, 0.4)

Row = Mapping[str, str]


def read_tiered() -> list[tuple[str, str, Row]]:
    """Return the outcomes of Tiered on the third test, with id and family."""
    run = ""
    for row in read_csv(HERE / "runs.csv"):
        if (row["study"], row["arm"]) == (THIRD, "tiered"):
            run = row["run"]
    problems = {}
    for row in read_csv(HERE / "problems.csv"):
        problems[row["problem"]] = (row["id"], row["family"])
    found: list[tuple[str, str, Row]] = []
    for row in read_csv(HERE / "outcomes.csv.xz"):
        if row["run"] == run:
            found.append((*problems[row["problem"]], row))
    return found


def decide(
    tiered: Sequence[tuple[str, str, Row]],
    probes: Mapping[str, Row],
    threshold: float,
) -> dict[str, Family]:
    """Return the sums of every family under the rule."""
    found: dict[str, Family] = defaultdict(Family)
    for problem, family, solve in tiered:
        sums = found[family]
        calls = int(solve["paper_calls"])
        sums.solves += 1
        sums.calls_alone += calls
        probe = probes.get(problem)
        if probe is None or float(probe["score"]) < threshold:
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


def row_of(families: list[Family]) -> str:
    """Return the cells of one group: gain, gained and lost, calls, cards."""
    solves = sum(each.solves for each in families)
    right = sum(each.right for each in families) / solves
    wrong = sum(each.wrong for each in families) / solves
    return (
        f"{gain_of(families)} | {calls_of(families):.2f} | "
        f"{right:.0%} | {wrong:.0%}"
    )


def ends(probes: Mapping[str, Row], fits: str) -> str:
    """Return what became of the attempts with a right or a wrong card."""
    own = [row for row in probes.values() if row["right_card"] == fits]
    agreed = [row for row in own if row["unanimous"] == "1"]
    right = sum(row["right"] == "1" for row in agreed)
    return f"{len(own)} tries, {len(agreed)} unanimous, {right} of these right"


def main() -> None:
    """Print the tables."""
    probes = {row["id"]: row for row in read_csv(HERE / "third" / "probes.csv")}
    tiered = read_tiered()
    lines = [
        f"* A right card: {ends(probes, '1')}",
        f"* A wrong card: {ends(probes, '0')}",
        "",
        "| threshold | group | gain in points | solves | calls | tried a right card | "
        "a wrong one |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    groups = group_families("third")
    for threshold in THRESHOLDS:
        found = decide(tiered, probes, threshold)
        for group in GROUPS:
            own = []
            for family, sums in found.items():
                if group in ("all", groups[family]):
                    own.append(sums)
            lines.append(f"| {threshold} | {group} | {row_of(own)} |")
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
