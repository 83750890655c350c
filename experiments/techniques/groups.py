"""Where the first epoch's tree helps on validation: by group of families, with intervals that resample families.

    python experiments/techniques/groups.py
"""

import random
import sys
from collections import defaultdict
from pathlib import Path

from kace.datasets.techniques.generate import INVENTED, families, splits_of
from kace.solver.records import Solution, read_trace

HERE = Path(__file__).parent
RUNS, RESAMPLES = HERE / "epoch-1" / "runs", 10_000


def rates(arm: str) -> dict[str, dict[str, float]]:
    """The share of right solves, by family and problem."""
    lines = (line.content for line in read_trace(RUNS / arm / "traces.jsonl.gz"))
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


def main() -> None:
    """Write the table beside this script."""
    known = {family.name: family for family in families()}
    arms = {name: rates(name) for name in ("tiered", "kace", "kace-skip-es")}
    base, every = arms["tiered"], sorted(arms["tiered"])
    groups = {
        "all": every,
        "families seen in training": [name for name in every if splits_of(known[name])[0] == "train"],
        "families not seen": [name for name in every if splits_of(known[name])[0] != "train"],
        "mathematics": [name for name in every if known[name].domain not in INVENTED.split()],
        "mathematics, seen": [
            name
            for name in every
            if known[name].domain not in INVENTED.split() and splits_of(known[name])[0] == "train"
        ],
        "invented conventions, seen": [
            name for name in every if known[name].domain in INVENTED.split() and splits_of(known[name])[0] == "train"
        ],
    }
    lines = ["| group | families | problems | Tiered | KACE | KACE, skipping ES |", "|---|---|---|---|---|---|"]
    for title, names in groups.items():
        problems = [rate for name in names for rate in base[name].values()]
        cells = [title, str(len(names)), str(len(problems)), f"{100 * sum(problems) / len(problems):.1f} %"]
        cells += [difference(arms[arm], base, names) for arm in ("kace", "kace-skip-es")]
        lines.append(f"| {' | '.join(cells)} |")
    out = Path(sys.argv[1]) if sys.argv[1:] else HERE / "groups.md"
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
