"""Where cards help and where they harm: published runs by group of families, with intervals that resample families.

    python experiments/groups.py

Writes groups.md beside the runs of each study. The first arm has its accuracy, the others what they add in points. A
retest also has what the arm of its headline adds to every other, and how often it finds the right card. The gate's page
ends with what a tree costs problems of no technique that it has.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path

from tables import markdown

from kace.datasets.techniques.generate import INVENTED, families, splits_of
from kace.runs.arm import Arm, SolveRow, read_arm
from kace.runs.compare import Comparison, compare, p_text

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
            "retest-1.5b": "Retest, 1.5B solver",
            "retest-0.5b": "Retest, 0.5B solver",
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
            "worded-1.5b": "Trees with wordings: starter test, 1.5B solver",
            "worded-0.5b": "Trees with wordings: starter test, 0.5B solver",
        },
    ),
}

HEADLINE = "worded-skip-es"  # the arm of the retest's headline
DRAWN_ANEW = {("test-1.5b", HEADLINE)}  # arms of the technique set that could not share Tiered's attempts
PUBLIC = {"gsm8k": 300, "svamp": 300, "math": 262}  # a set's problems; those that read a card were solved
SOLVERS = ("1.5b", "0.5b")


def of(arm: Arm, names: Set[str]) -> Arm:
    """The solves of some families."""
    return replace(arm, rows=tuple(row for row in arm.rows if row.family in names))


def difference(base: Arm, arm: Arm) -> str:
    """What an arm adds to a base."""
    return gain(compare(base, arm))


def gain(found: Comparison) -> str:
    """The mean paired difference in points, with its 95 % interval over families."""
    value, low, high = (round(100 * each, 1) + 0.0 for each in (found.difference, *found.interval))  # never -0.0
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"


@cache
def arms_of(folder: Path) -> Mapping[str, Arm]:
    """A folder's arms by name, the base first."""
    names = (folder / "arms.txt").read_text(encoding="utf-8").split()
    arms = {name: read_arm(folder / "runs" / name) for name in names}
    return {name: replace(arm, rows=tuple(arm.rows)) for name, arm in arms.items()}  # each row is read many times


def table(folder: Path, groups: Groups) -> list[str]:
    """The lines of one folder's table: an arm a line, a group of families a column."""
    (first, base), *arms = arms_of(folder).items()
    found = groups(families_of(base))
    alone = {title: compare(of(base, names), of(base, names)) for title, names in found.items()}
    heads = [f"{title} ({each.clusters} families, {each.n:,} problems)" for title, each in alone.items()]
    rows = [[*first_cells(first, base), *(f"{100 * each.base_accuracy:.1f} %" for each in alone.values())]]
    for title, arm in arms:
        read = {f"{title}, Tiered's where no card is read": where_read(base, arm)} if drawn_anew(folder, title) else {}
        for name, each in {title: arm, **read}.items():
            cells = (difference(of(base, names), of(each, names)) for names in found.values())
            rows.append([*first_cells(name, each), *cells])
    return markdown(["arm", "seeds", "calls", *heads], rows)


def ahead(folder: Path, groups: Groups) -> list[str]:
    """The lines of what the headline's arm adds to each other, over the seeds that both have."""
    arms = dict(arms_of(folder))
    head = arms.pop(HEADLINE)
    every = groups(families_of(head))
    shown = {title: every[title] for title in ("all", "mathematics")}
    rows = []
    for title, arm in arms.items():
        found = (compare(of(arm, names), of(head, names)) for names in shown.values())
        rows.append([title, *(f"{gain(each)}, {p_text(each.p)}" for each in found)])
    return markdown([f"`{HEADLINE}` over", *shown], rows)


def cards_found(folder: Path) -> list[str]:
    """The lines of how often the headline's arm reads the card that an oracle would show."""
    arms = arms_of(folder)
    read = {(row.problem, row.seed): set(row.cards) for row in arms[HEADLINE].rows}
    told = [row for row in arms["oracle-card-skip-es"].rows if row.cards]
    right = sum(not read[row.problem, row.seed].isdisjoint(row.cards) for row in told)
    heads = ["families with a card", "solves told it by an oracle", "that find it"]
    return markdown(heads, [[str(len({row.family for row in told})), str(len(told)), str(right)]])


def families_of(arm: Arm) -> Set[str]:
    """The families of an arm's problems."""
    return {row.family for row in arm.rows if row.family}


def first_cells(title: str, arm: Arm) -> list[str]:
    """An arm's name, its seeds and its calls a problem."""
    calls = sum(row.paper_calls for row in arm.rows) / len(arm.rows)
    return [title, str(len({row.seed for row in arm.rows})), f"{calls:.2f}"]


def drawn_anew(folder: Path, title: str) -> bool:
    """Whether an arm could not share Tiered's attempts."""
    return folder.parent.name == "techniques" and (folder.name, title) in DRAWN_ANEW


def where_read(base: Arm, arm: Arm) -> Arm:
    """The arm, with the base's solves where it read no card: there both are the same ladder.

    Fair only where the problem alone decides what is read, as it does for an arm that skips ES.
    """
    alone = {(row.problem, row.seed): row for row in base.rows}
    return replace(arm, rows=tuple(row if row.cards else alone[row.problem, row.seed] for row in arm.rows))


def not_of_the_tree() -> list[str]:
    """What skipping ES with wordings costs problems of no technique that a tree has: the tests, and public sets."""
    rows = []
    for solver in SOLVERS:
        tests = (("gate", f"worded-{solver}"), ("techniques", f"test-{solver}"), ("techniques", f"retest-{solver}"))
        pairs = [unseen(*test) for test in tests]
        together = [with_rows(one, chain(*(arm.rows for arm in more))) for one, *more in zip(*pairs, strict=True)]
        cells = [difference(base, arm) for base, arm in (*pairs, together)]
        rows.append([solver.upper(), *cells, *(public(name, solver) for name in PUBLIC)])
    heads = ("unseen families, starter test (10)", "techniques test (91)", "retest (the same 91)", "together (101)")
    return markdown(["solver", *heads, *(f"{name} ({size} problems)" for name, size in PUBLIC.items())], rows)


def with_rows(arm: Arm, others: Iterable[SolveRow]) -> Arm:
    """The arm with solves of other problems, in the order that arms keep."""
    return replace(arm, rows=tuple(sorted((*arm.rows, *others), key=lambda row: (row.problem, row.seed))))


def unseen(study: str, name: str) -> tuple[Arm, Arm]:
    """Tiered and the arm with wordings, on the families that training never saw.

    Where that arm could not share Tiered's attempts, it has Tiered's solves for what it read no card of.
    """
    folder = HERE / study / name
    base, arm = (arms_of(folder)[title] for title in ("tiered", HEADLINE))
    if drawn_anew(folder, HEADLINE):
        arm = where_read(base, arm)
    names = PAGES[study][0](families_of(base))["families not seen"]
    return of(base, names), of(arm, names)


def public(name: str, solver: str) -> str:
    """The difference over a whole public set, whose problems that read no card are Tiered's, and were not solved."""
    runs = HERE / "gate" / "public" / f"{name}-{solver}" / "runs"
    if not runs.exists():
        return "no card is read"
    base, arm = (read_arm(runs / arm) for arm in ("tiered", HEADLINE))
    solved = len({row.problem for row in base.rows})
    others = [replace(base.rows[0], problem=f"{number:016}") for number in range(PUBLIC[name] - solved)]
    return f"{difference(with_rows(base, others), with_rows(arm, others))}, {solved} read a card"


def main(out: Path) -> None:
    """Write a page for each study under a folder."""
    for study, (groups, titles) in PAGES.items():
        tables = {}
        for name, title in titles.items():
            folder = HERE / study / name
            tables[title] = table(folder, groups)
            if name.startswith("retest"):
                tables[f"{title}: what the headline's arm adds to the others"] = ahead(folder, groups)
                tables[f"{title}: how often the headline's arm finds the right card"] = cards_found(folder)
        if study == "gate":
            tables["Trees with wordings and problems of no technique that they have: skip-ES"] = not_of_the_tree()
        pages = ((f"## {title}", "", *lines, "") for title, lines in tables.items())
        (out / study).mkdir(exist_ok=True)
        (out / study / "groups.md").write_text("\n".join(line for page in pages for line in page), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE)
