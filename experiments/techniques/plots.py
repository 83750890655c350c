"""The two plots of docs/evidence.md, from the published votes of the technique test.

    python experiments/techniques/plots.py

Writes against-tiered.svg and by-group.svg beside this file, or into the folder given.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from groups import beside, of, techniques

from kace.evaluation.arm import Arm, read_arm
from kace.evaluation.charts import ForestRow, forest
from kace.evaluation.compare import compare
from kace.evaluation.svg import Paint, framed, svg

HERE = Path(__file__).resolve().parent
TEST = HERE / "test-1.5b"
ARMS = {
    "kace-skip-es": "KACE, skipping ES",
    "kace": "KACE, the paper's ladder",
    "worded-skip-es": "KACE with wordings (after the test)",
    "knn-fewshot-skip-es": "nearest solved problems, skipping ES",
    "knn-fewshot-gated-skip-es": "the same behind our gate",
    "bootstrap-fewshot": "own right attempts as demonstrations",
    "tiered-ace-skip-es": "ACE playbook",
    "tiered-gepa-skip-es": "GEPA prompt",
    "kace-placebo": "another domain's cards",
    "best-of-10": "Best-of-10",
    "oracle-card-skip-es": "the right card, told (ceiling)",
}
GROUPS = ("all", "mathematics", "families not seen", "invented conventions, seen")
UNIT = "difference from Tiered, percentage points"
WIDTH = 760.0


def row(name: str, base: Arm, arm: Arm, group: str = "") -> ForestRow:
    """One difference from Tiered, with its interval over families."""
    found = compare(base, arm)
    low, high = found.interval
    paint = Paint.OPEN if low <= 0 <= high else Paint.GOOD if low > 0 else Paint.BAD
    return ForestRow(name, "", found.difference, low, high, paint, group)


def main(out: Path) -> None:
    """Draw both."""
    base = read_arm(TEST / "runs" / "tiered")
    arms = {name: beside(base, TEST, name) for name in ARMS}
    every = [row(title, base, arms[name]) for name, title in ARMS.items()]
    groups = techniques({each.family for each in base.rows if each.family})
    shown = ("kace-skip-es", "worded-skip-es", "knn-fewshot-skip-es", "oracle-card-skip-es")
    parts = [row(ARMS[n], of(base, groups[g]), of(arms[n], groups[g]), g) for g in GROUPS for n in shown]
    pictures = {"against-tiered": ("Technique test, 1.5B solver", every), "by-group": ("By group of families", parts)}
    for name, (title, rows) in pictures.items():
        drawn = svg(framed(forest(title, UNIT, rows, WIDTH)))
        (out / f"{name}.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE)
