"""Where the trees help on validation: by group of families, with intervals that resample families.

python experiments/techniques/groups.py
"""

import sys
from collections.abc import Set
from dataclasses import replace
from pathlib import Path

from kace.datasets.techniques.generate import INVENTED, families, splits_of
from kace.evaluation.arm import Arm, read_arm
from kace.evaluation.compare import compare

HERE = Path(__file__).parent
TREES = {"The first epoch, before any revision": "epoch-1", "The whole run: two epochs, revised": "learned"}


def of(arm: Arm, names: Set[str]) -> Arm:
    """The solves of some families."""
    return replace(arm, rows=tuple(row for row in arm.rows if row.family in names))


def difference(base: Arm, arm: Arm, names: Set[str]) -> str:
    """The mean paired difference in points, with its 95 % interval over families."""
    found = compare(of(base, names), of(arm, names))
    low, high = found.interval
    return f"{100 * found.difference:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def table(folder: Path) -> list[str]:
    """The lines of one tree's table."""
    known = {family.name: family for family in families()}
    titles = (folder / "arms.txt").read_text(encoding="utf-8").split()
    base, *arms = (read_arm(folder / "runs" / name) for name in titles)
    every = {row.family for row in base.rows if row.family}
    seen = {name for name in every if splits_of(known[name])[0] == "train"}
    invented = {name for name in every if known[name].domain in INVENTED.split()}
    groups = {
        "all": every,
        "families seen in training": seen,
        "families not seen": every - seen,
        "mathematics": every - invented,
        "mathematics, seen": seen - invented,
        "invented conventions, seen": seen & invented,
    }
    lines = [f"| group | families | problems | {' | '.join(titles)} |", "|---" * (3 + len(titles)) + "|"]
    for title, names in groups.items():
        alone = compare(of(base, names), of(base, names))
        cells = [title, str(alone.clusters), str(alone.n), f"{100 * alone.base_accuracy:.1f} %"]
        cells += [difference(base, arm, names) for arm in arms]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Write the tables beside this script."""
    lines = [line for title, folder in TREES.items() for line in (f"## {title}", "", *table(HERE / folder), "")]
    out = Path(sys.argv[1]) if sys.argv[1:] else HERE / "groups.md"
    out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
