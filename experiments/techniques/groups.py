"""Where the trees help on validation: by group of families, with intervals that resample families.

    python experiments/techniques/groups.py
"""

import random
import sys
from collections import defaultdict
from pathlib import Path

from kace.datasets.techniques.generate import INVENTED, families, splits_of
from kace.solver.records import Solution, read_trace

HERE = Path(__file__).parent
TREES = {"The first epoch, before any revision": "epoch-1", "The whole run: two epochs, revised": "learned"}
RESAMPLES = 10_000


def rates(folder: str, arm: str) -> dict[str, dict[str, float]]:
    """The share of right solves, by family and problem."""
    lines = (line.content for line in read_trace(HERE / folder / "runs" / arm / "traces.jsonl.gz"))
    right: defaultdict[str, defaultdict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for solution in {(s.problem, s.seed): s for s in lines if isinstance(s, Solution)}.values():
        right[solution.family or ""][solution.problem].append(bool(solution.correct))
    return {name: {p: sum(each) / len(each) for p, each in found.items()} for name, found in right.items()}


def difference(arm: dict[str, dict[str, float]], base: dict[str, dict[str, float]], names: list[str]) -> str:
    """The mean paired difference in points, with its 95 % interval over families."""
    gains = [[arm[name][p] - base[name][p] for p in base[name]] for name in names]
    draw = random.Random(0)
    means = []
    for _ in range(RESAMPLES):
        some = [gain for _ in gains for gain in draw.choice(gains)]
        means.append(sum(some) / len(some))
    means.sort()
    every = [gain for some in gains for gain in some]
    low, high = means[RESAMPLES // 40], means[-RESAMPLES // 40]
    return f"{100 * sum(every) / len(every):+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def table(folder: str) -> list[str]:
    """The lines of one tree's table."""
    known = {family.name: family for family in families()}
    names = (HERE / folder / "arms.txt").read_text(encoding="utf-8").split()
    arms = {name: rates(folder, name) for name in names}
    base, every = arms[names[0]], sorted(arms[names[0]])
    invented = {name for name in every if known[name].domain in INVENTED.split()}
    seen = {name for name in every if splits_of(known[name])[0] == "train"}
    groups = {
        "all": every,
        "families seen in training": [name for name in every if name in seen],
        "families not seen": [name for name in every if name not in seen],
        "mathematics": [name for name in every if name not in invented],
        "mathematics, seen": [name for name in every if name in seen - invented],
        "invented conventions, seen": [name for name in every if name in seen & invented],
    }
    lines = [f"| group | families | problems | {' | '.join(names)} |", "|---" * (3 + len(names)) + "|"]
    for title, some in groups.items():
        problems = [rate for name in some for rate in base[name].values()]
        cells = [title, str(len(some)), str(len(problems)), f"{100 * sum(problems) / len(problems):.1f} %"]
        cells += [difference(arms[arm], base, some) for arm in names[1:]]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Write the tables beside this script."""
    lines = [line for title, folder in TREES.items() for line in (f"## {title}", "", *table(folder), "")]
    out = Path(sys.argv[1]) if sys.argv[1:] else HERE / "groups.md"
    out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
