"""Where cards help and where they harm: published runs by group of families, with intervals that resample families.

    python experiments/groups.py

Writes groups.md beside the runs of each study. The first arm has its accuracy, the others what they add in points.
"""

import sys
from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from pathlib import Path

from tables import markdown

from kace.datasets.techniques.generate import INVENTED, families, splits_of
from kace.evaluation.arm import Arm, read_arm
from kace.evaluation.compare import compare

HERE = Path(__file__).parent
Groups = Callable[[Set[str]], Mapping[str, Set[str]]]


def techniques(every: Set[str]) -> Mapping[str, Set[str]]:
    """By what training saw, and by what no model can know."""
    known = {family.name: family for family in families()}
    seen = {name for name in every if splits_of(known[name])[0] == "train"}
    invented = {name for name in every if known[name].domain in INVENTED.split()}
    return {
        "all": every,
        "families seen in training": seen,
        "families not seen": every - seen,
        "mathematics": every - invented,
        "mathematics, seen": seen - invented,
        "invented conventions, seen": seen & invented,
    }


def starter(every: Set[str]) -> Mapping[str, Set[str]]:
    """By what training saw, and with and without the house conventions."""
    from starter.study import HOUSE, SEEN, TEST

    seen, house = SEEN - {None}, {problem.family for problem in TEST.values() if problem.domain == HOUSE}
    return {
        "all": every,
        "families seen in training": every & seen,
        "families not seen": every - seen,
        "mathematics": every - house,
        "mathematics, seen": every & seen - house,
        "house conventions, seen": seen & house,
    }


PAGES: Mapping[str, tuple[Groups, Mapping[str, str]]] = {
    "techniques": (
        techniques,
        {
            "test-1.5b": "Test, 1.5B solver",
            "test-0.5b": "Test, 0.5B solver",
            "validation-1.5b": "Validation, 1.5B solver",
            "validation-0.5b": "Validation, 0.5B solver",
            "epoch-1": "While it was learned: the first epoch, before any revision (validation)",
            "learned": "While it was learned: two epochs, revised (validation)",
        },
    ),
    "gate": (
        starter,
        {
            "1.5b": "Starter test, 1.5B solver",
            "0.5b": "Starter test, 0.5B solver",
            "worded-1.5b": "Cards found by wordings alone, from 0.3: starter test, 1.5B solver",
            "worded-0.5b": "Cards found by wordings alone, from 0.3: starter test, 0.5B solver",
        },
    ),
}


def of(arm: Arm, names: Set[str]) -> Arm:
    """The solves of some families."""
    return replace(arm, rows=tuple(row for row in arm.rows if row.family in names))


def difference(base: Arm, arm: Arm, names: Set[str]) -> str:
    """The mean paired difference in points, with its 95 % interval over families."""
    found = compare(of(base, names), of(arm, names))
    low, high = found.interval
    return f"{100 * found.difference:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def table(folder: Path, groups: Groups) -> list[str]:
    """The lines of one folder's table: an arm a line, a group of families a column."""
    titles = (folder / "arms.txt").read_text(encoding="utf-8").split()
    base, *arms = (read_arm(folder / "runs" / name) for name in titles)
    found = groups({row.family for row in base.rows if row.family})
    alone = {title: compare(of(base, names), of(base, names)) for title, names in found.items()}
    heads = [f"{title} ({each.clusters} families, {each.n:,} problems)" for title, each in alone.items()]
    rows = [[*first_cells(titles[0], base), *(f"{100 * each.base_accuracy:.1f} %" for each in alone.values())]]
    for title, arm in zip(titles[1:], arms, strict=True):
        rows.append([*first_cells(title, arm), *(difference(base, arm, names) for names in found.values())])
    return markdown(["arm", "seeds", "calls", *heads], rows)


def first_cells(title: str, arm: Arm) -> list[str]:
    """An arm's name, its seeds and its calls a problem."""
    calls = sum(row.paper_calls for row in arm.rows) / len(arm.rows)
    return [title, str(len({row.seed for row in arm.rows})), f"{calls:.2f}"]


def main(out: Path) -> None:
    """Write a page for each study under a folder."""
    for study, (groups, titles) in PAGES.items():
        pages = ((f"## {title}", "", *table(HERE / study / folder, groups), "") for folder, title in titles.items())
        (out / study).mkdir(exist_ok=True)
        (out / study / "groups.md").write_text("\n".join(line for page in pages for line in page), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE)
