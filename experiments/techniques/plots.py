"""The two plots of docs/evidence.md, from the published votes of the retest.

    python experiments/techniques/plots.py

Writes against-tiered.svg and by-group.svg beside this file, or into the folder given.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from groups import arms_of, families_of, of, techniques

from kace.runs.arm import Arm
from kace.report.charts import ForestRow, forest
from kace.runs.compare import compare
from kace.report.svg import Paint, framed, svg

HERE = Path(__file__).resolve().parent
SOLVERS = {"1.5b": "1.5B solver", "0.5b": "0.5B solver"}
ARMS = {
    "worded-skip-es": "KACE, skipping ES",
    "worded": "KACE, the paper's ladder",
    "kace-skip-es": "KACE without wordings, skipping ES",
    "first-gate-skip-es": "the same with the first gate",
    "knn-fewshot-skip-es": "nearest solved problems, skipping ES",
    "knn-fewshot-gated-skip-es": "solved problems behind our gate",
    "bootstrap-fewshot-skip-es": "own right attempts, skipping ES",
    "tiered-ace-skip-es": "ACE playbook, skipping ES",
    "tiered-gepa-from-ms": "GEPA prompt, from MS on",
    "kace-placebo": "another domain's cards",
    "oracle-card-skip-es": "the right card, told (ceiling)",
}
SHOWN = ("worded-skip-es", "worded", "knn-fewshot-gated-skip-es", "oracle-card-skip-es")
GROUPS = ("all", "mathematics", "families not seen", "invented conventions, seen")
UNIT = "difference from Tiered, percentage points"
WIDTH = 760.0


def row(name: str, base: Arm, arm: Arm, group: str) -> ForestRow:
    """One difference from Tiered, with its interval over families."""
    found = compare(base, arm)
    low, high = found.interval
    paint = Paint.OPEN if low <= 0 <= high else Paint.GOOD if low > 0 else Paint.BAD
    return ForestRow(name, "", found.difference, low, high, paint, group)


def main(out: Path) -> None:
    """Draw both."""
    studies = {title: arms_of(HERE / f"retest-{solver}") for solver, title in SOLVERS.items()}
    every = [
        row(name, arms["tiered"], arms[arm], title) for title, arms in studies.items() for arm, name in ARMS.items()
    ]
    arms = studies[SOLVERS["1.5b"]]
    base = arms["tiered"]
    groups = techniques(families_of(base))
    parts = [row(ARMS[arm], of(base, groups[g]), of(arms[arm], groups[g]), g) for g in GROUPS for arm in SHOWN]
    pictures = {"against-tiered": ("Retest, by arm", every), "by-group": ("By group of families, 1.5B solver", parts)}
    for name, (title, rows) in pictures.items():
        drawn = svg(framed(forest(title, UNIT, rows, WIDTH)))
        (out / f"{name}.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE)
