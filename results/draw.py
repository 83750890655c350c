"""Draw the tables and the plot of the published runs from outcomes.csv.xz.

    python results/draw.py [FOLDER]

Writes tables.md, summary.md and by-group.svg beside this file, or to FOLDER.
The same table always gives the same bytes.
"""

from __future__ import annotations

import csv
import lzma
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from kace.report.charts import ForestRow, Picture, forest
from kace.report.render import environment
from kace.runs.stats import Interval, cluster_interval, holm, sign_flip

HERE = Path(__file__).resolve().parent
BASE = "tiered"
HEADLINE = "worded-skip-es"  # the arm that was named before the retest was run
SPAN = Interval(-1.0, 1.0)

THIRD = "techniques/third-1.5b"
STUDIES = {
    "Technique set, third test, 1.5B": THIRD,
    "Technique set, retest, 1.5B": "techniques/retest-1.5b",
    "Technique set, retest, 0.5B": "techniques/retest-0.5b",
    "Technique set, first test, 1.5B": "techniques/test-1.5b",
    "Technique set, first test, 0.5B": "techniques/test-0.5b",
    "Technique set, validation, 1.5B": "techniques/validation-1.5b",
    "Technique set, validation, 0.5B": "techniques/validation-0.5b",
    "Technique set, validation, tree of two epochs, 1.5B": "techniques/learned",
    "Technique set, validation, tree of one epoch, 1.5B": "techniques/epoch-1",
    "Starter test, trees with wordings, 1.5B": "gate/worded-1.5b",
    "Starter test, trees with wordings, 0.5B": "gate/worded-0.5b",
    "Starter test, calibrated gate, 1.5B": "gate/1.5b",
    "Starter test, calibrated gate, 0.5B": "gate/0.5b",
    "Starter test, first gate, 1.5B": "starter/test-1.5b",
    "Starter test, first gate, 0.5B": "starter/test-0.5b",
    "Starter validation, 1.5B": "starter/gate-1.5b",
    "Starter validation, 0.5B": "starter/gate-0.5b",
    "Starter bundled test, cards as text, 0.5B": "starter/systems",
    "MATH levels 4 and 5, tree from the training half, 1.5B": "math-hard/again",
    "MATH levels 4 and 5, test, 1.5B": "math-hard/test",
    "MATH levels 4 and 5, validation, 1.5B": "math-hard/validation",
    "Beyond the majority, MATH test, 1.5B": "math-hard/policies-test",
    "Beyond the majority, MATH validation, 1.5B": "math-hard/policies-validation",
    "Beyond the majority, GSM8K, 1.5B": "math-hard/policies-gsm8k",
    "Beyond the majority, starter test, 1.5B": "math-hard/policies-starter",
    "Trees on other data, GSM8K, 1.5B": "transfer/gsm8k-1.5b",
    "Trees on other data, MATH, 0.5B": "transfer/math-0.5b",
    "Trees on other data, AIME 2025, 1.5B": "transfer/aime25-1.5b",
    "Forms of a card, starter validation, 1.5B": "archive.tar.xz/starter/forms-1.5b",
    "Forms of a card, starter validation, 0.5B": "archive.tar.xz/starter/forms-0.5b",
    "Starter test before the gate, 1.5B": "archive.tar.xz/starter/turns-test-1.5b",
    "Starter test before the gate, 0.5B": "archive.tar.xz/starter/turns-test-0.5b",
    "Skip-ES on 40 problems, embedded 1.5B": "archive.tar.xz/starter/direct-1.5b",
    "Gate too loose, 1.5B": "archive.tar.xz/gate/from-0.3-1.5b",
    "Gate too loose, 0.5B": "archive.tar.xz/gate/from-0.3-0.5b",
}
PUBLIC = {
    "gsm8k": 300,
    "math": 262,
}  # problems of the set; the others read no card
PLOTTED = {
    "worded-skip-es": "KACE, skip-ES",
    "worded": "KACE, the paper's ladder",
    "knn-fewshot-gated-skip-es": "solved problems behind the gate",
}


class Problem(NamedTuple):
    """What groups and clusters need of a problem."""

    family: str
    seen: bool  # whether the training set has its family
    invented: bool  # whether it needs a convention that no model can know
    label: str = ""
    domain: str = ""


class Row(NamedTuple):
    """One problem solved once."""

    right: bool
    calls: int
    input: int
    output: int
    cards: tuple[str, ...]
    truncated: int = 0  # attempts that the token cap cut


class Difference(NamedTuple):
    """The mean gain of an arm over a base, as a share."""

    mean: float
    low: float
    high: float
    p: float
    identical: bool = False  # whether no solve differs

    def __str__(self) -> str:
        if self.identical:
            return "identical"
        low = points(self.low)
        return f"{points(self.mean)} [{low}, {points(self.high)}]"


Key = tuple[int, int]  # problem and seed
Arm = Mapping[Key, Row]
Belongs = Callable[[Problem], bool]

ALL: dict[str, Belongs] = {"all": lambda problem: True}
GROUPS: dict[str, Belongs] = {
    **ALL,
    "mathematics": lambda problem: not problem.invented,
    "mathematics, seen": lambda problem: problem.seen and not problem.invented,
    "conventions, seen": lambda problem: problem.seen and problem.invented,
    "seen in training": lambda problem: problem.seen,
    "not seen": lambda problem: not problem.seen,
}


class Published:
    """The published runs, by study and arm."""

    def __init__(self, folder: Path = HERE) -> None:
        self.problems: dict[int, Problem] = {}
        for line in read_csv(folder / "problems.csv"):
            problem = Problem(
                line["family"],
                line["seen"] == "1",
                line["invented"] == "1",
                line["label"],
                line["domain"],
            )
            self.problems[int(line["problem"])] = problem
        names: dict[str, tuple[str, str]] = {}
        for line in read_csv(folder / "runs.csv"):
            names[line["run"]] = (line["study"], line["arm"])
        self.studies: dict[str, dict[str, dict[Key, Row]]] = defaultdict(dict)
        arms: dict[str, dict[Key, Row]] = {}
        for run, (study, arm) in names.items():
            arms[run] = self.studies[study].setdefault(arm, {})
        for line in read_csv(folder / "outcomes.csv.xz"):
            arms[line["run"]][int(line["problem"]), int(line["seed"])] = Row(
                line["right"] == "1",
                int(line["paper_calls"]),
                int(line["input"]),
                int(line["output"]),
                tuple(line["cards"].split()),
                int(line["truncated"]),
            )

    def select(self, arm: Arm, belongs: Belongs) -> Arm:
        """Return the rows of the problems in a group."""
        return {
            key: row
            for key, row in arm.items()
            if belongs(self.problems[key[0]])
        }

    def cluster(self, problem: int) -> object:
        """Return what counts as one observation: the family, or the problem without one."""
        return self.problems[problem].family or problem

    def compare(
        self,
        base: Arm,
        other: Arm,
        unchanged: int = 0,
        by: Callable[[int], object] | None = None,
    ) -> Difference:
        """Return the paired difference, with a 95 % interval that resamples families.

        `unchanged` problems without a family and without a difference are added. `by`
        gives another cluster of a problem.
        """
        cluster = by or self.cluster
        gains: dict[int, list[int]] = defaultdict(list)
        for key in base.keys() & other.keys():
            gains[key[0]].append(other[key].right - base[key].right)
        solves: Counter[object] = Counter()
        means: dict[object, Fraction] = defaultdict(Fraction)
        sizes: Counter[object] = Counter()
        for problem, changes in gains.items():
            name = cluster(problem)
            solves[name] += sum(changes)
            means[name] += Fraction(sum(changes), len(changes))
            sizes[name] += 1
        moved = [(float(means[name]), size) for name, size in sizes.items()]
        moved += [(0.0, 1)] * unchanged
        low, high = cluster_interval(moved) or SPAN
        p = sign_flip(solves.values())
        mean = sum(means.values()) / (len(gains) + unchanged)
        identical = not any(any(changes) for changes in gains.values())
        return Difference(float(mean), low, high, p, identical)


def read_csv(path: Path) -> Iterable[dict[str, str]]:
    """Read the lines of a CSV file, compressed or not."""
    if path.suffix == ".xz":
        with lzma.open(path, "rt") as stream:
            yield from csv.DictReader(stream)
    else:
        with path.open(encoding="utf-8") as stream:
            yield from csv.DictReader(stream)


def points(share: float) -> str:
    """Return a share as signed percentage points: `+7.9`, and `0.0` without a sign."""
    rounded = round(100 * share, 1)
    return f"{rounded:+.1f}" if rounded else "0.0"


def p_text(p: float) -> str:
    """Return a p-value with the digits that matter."""
    if p < 0.001:
        return "< 0.001"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def percent(arm: Arm) -> str:
    """Return the accuracy of an arm."""
    return f"{100 * sum(row.right for row in arm.values()) / len(arm):.1f} %"


def costs(arm: Arm) -> list[str]:
    """Return the seeds of an arm, and its calls and tokens per problem."""
    n = len(arm)
    calls = sum(row.calls for row in arm.values()) / n
    read = sum(row.input for row in arm.values()) / n
    written = sum(row.output for row in arm.values()) / n
    seeds = len({seed for _, seed in arm})
    return [str(seeds), f"{calls:.2f}", f"{read:,.0f} + {written:,.0f}"]


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    every = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(row)} |" for row in every]


def study_table(published: Published, study: str) -> list[str]:
    """Return the table of a study: its base, then every arm by its gain over the base."""
    arms = dict(published.studies[study])
    base = arms.pop(BASE)
    families = {published.problems[problem].family for problem, _ in base}
    groups = ALL if families == {""} else GROUPS
    heads = ["arm", "seeds", "calls", "tokens in + out"]
    first = [BASE, *costs(base)]
    for title, belongs in groups.items():
        group = published.select(base, belongs)
        problems = {problem for problem, _ in group}
        clusters = {published.cluster(problem) for problem in problems}
        size = f"{len(problems):,} problems"
        if groups is GROUPS:
            size += f", {len(clusters)} families"
        heads.append(f"{title} ({size})")
        first.append(percent(group) if group else "")
    heads.append("p (Holm)")
    first.append("")
    whole = {name: published.compare(base, arm) for name, arm in arms.items()}
    adjusted = dict(
        zip(whole, holm([found.p for found in whole.values()]), strict=True)
    )
    rows = [first]
    for name in sorted(whole, key=lambda name: (-whole[name].mean, name)):
        row = [name, *costs(arms[name])]
        for belongs in groups.values():
            ours = published.select(base, belongs)
            theirs = published.select(arms[name], belongs)
            row.append(str(published.compare(ours, theirs)) if ours else "")
        rows.append([*row, p_text(adjusted[name])])
    return markdown(heads, rows)


def headline_table(published: Published, study: str) -> list[str]:
    """Return what the arm of the headline gains over each other arm."""
    arms = dict(published.studies[study])
    headline = arms.pop(HEADLINE)
    groups = {name: GROUPS[name] for name in ("all", "mathematics")}
    rows = []
    for name in sorted(arms):
        row = [name]
        for belongs in groups.values():
            ours = published.select(arms[name], belongs)
            theirs = published.select(headline, belongs)
            found = published.compare(ours, theirs)
            row.append(f"{found}, p {p_text(found.p)}")
        rows.append(row)
    return markdown([f"`{HEADLINE}` over", *groups], rows)


def found_cards(published: Published, study: str) -> str:
    """Return how often the arm of the headline reads the card that the oracle shows."""
    headline = published.studies[study][HEADLINE]
    families = set()
    given = 0
    found = 0
    for key, row in published.studies[study]["oracle-card-skip-es"].items():
        if row.cards:
            families.add(published.problems[key[0]].family)
            given += 1
            found += not set(row.cards).isdisjoint(headline[key].cards)
    return (
        f"Of {given} solves of the {len(families)} families that have a card, "
        f"`{HEADLINE}` shows the right card to {found}."
    )


def unseen_table(published: Published) -> list[str]:
    """Return what skip-ES with wordings costs problems whose technique the tree lacks."""
    rows = []
    for solver in ("1.5b", "0.5b"):
        bases: dict[Key, Row] = {}
        others: dict[Key, Row] = {}
        row = [solver.upper()]
        for study in ("gate/worded", "techniques/test", "techniques/retest"):
            arms = published.studies[f"{study}-{solver}"]
            arm = arms.get(f"{HEADLINE}-recounted", arms[HEADLINE])
            base = published.select(arms[BASE], GROUPS["not seen"])
            other = published.select(arm, GROUPS["not seen"])
            row.append(str(published.compare(base, other)))
            bases.update(base)
            others.update(other)
        row.append(str(published.compare(bases, others)))
        for name, size in PUBLIC.items():
            arms = published.studies[f"gate/public/{name}-{solver}"]
            read = {problem for problem, _ in arms[BASE]}
            found = published.compare(
                arms[BASE], arms[HEADLINE], size - len(read)
            )
            row.append(f"{found}, {len(read)} read a card")
        rows.append(row)
    heads = [
        "solver",
        "starter test, 10 families",
        "technique test, 91",
        "retest, the same 91",
    ]
    heads.append("together, 101")
    heads += [f"{name} ({size} problems)" for name, size in PUBLIC.items()]
    return markdown(heads, rows)


STARTER = "gate/worded-0.5b"  # measured the bundled tree as it was learned


def starter_counts(published: Published, arm: str) -> dict[str, CardCounts]:
    """Count what each card of the starter tree did in an arm."""
    arms = published.studies[STARTER]
    found = {}
    for card in {card for row in arms[arm].values() for card in row.cards}:
        own = {card}
        found[card] = count_cards(arms[BASE], arms[arm], lambda _: own, True)  # noqa: B023
    return found


def harmful_cards(published: Published) -> set[str]:
    """Return the cards of the starter tree that broke more than they gained."""
    found = set()
    for arm in ("worded", HEADLINE):
        for card, counts in starter_counts(published, arm).items():
            if counts.lost > counts.gained:
                found.add(card)
    return found


def starter_cards(published: Published) -> list[str]:
    """Return what each card of the starter tree did, and what the tree is worth without the harmful ones."""
    arms = published.studies[STARTER]
    harmful = harmful_cards(published)
    locked = starter_counts(published, "worded")
    skipping = starter_counts(published, HEADLINE)

    def worth(card: str) -> tuple[int, str]:
        counts = locked.get(card)
        return counts.gained - counts.lost if counts else 0, card

    rows = []
    for card in sorted({*locked, *skipping}, key=worth):
        counts = [locked.get(card), skipping.get(card)]
        dropped = "removed" if card in harmful else ""
        rows.append([card, *(str(each or "") for each in counts), dropped])
    lines = markdown(["card", "`worded`", f"`{HEADLINE}`", ""], rows)
    lines.append("")
    for arm in ("worded", HEADLINE):
        without = {}
        for key, row in arms[arm].items():
            read = harmful.intersection(row.cards)
            without[key] = arms[BASE][key] if read else row
        lines.append(
            f"* `{arm}`, solves that read a removed card taken from {BASE}: "
            f"{published.compare(arms[BASE], without)}, {costs(without)[1]} calls"
        )
    return lines


def draw_tables(published: Published) -> str:
    """Return the page of all tables."""
    lines = [
        "# Published runs",
        "",
        "Drawn by `make results` from `outcomes.csv.xz`. The first row of a table is the base, with its",
        "accuracy; the others show percentage points gained over it, paired by problem and seed. Intervals",
        "are 95 % and resample families, or problems where there are none. Calls are the paper's, per",
        "problem. Arms named `-recounted` were counted afterwards from the votes of another run.",
    ]
    for title, study in STUDIES.items():
        lines += ["", f"## {title}", "", f"`experiments/{study}`", ""]
        lines += study_table(published, study)
        if "retest" in study:
            lines += ["", *headline_table(published, study)]
            lines += ["", found_cards(published, study)]
    lines += [
        "",
        "## Cost on techniques that the tree lacks, skip-ES with wordings",
        "",
    ]
    lines += unseen_table(published)
    lines += [
        "",
        "## Cards of the starter tree, 0.5B",
        "",
        "Solves that read the card: gained / broken. A card that broke more than it gained in either run was",
        "removed from the bundled tree afterwards, by these very outcomes, so the last lines are no test of it.",
        "",
    ]
    lines += starter_cards(published)
    return "\n".join(lines) + "\n"


# The summary: what docs/results.md shows

MAIN_GROUPS = {
    "conventions seen": GROUPS["conventions, seen"],
    "mathematics seen": GROUPS["mathematics, seen"],
    "not seen": GROUPS["not seen"],
    "all": GROUPS["all"],
}
MAIN = {
    "worded-skip-es": "KACE, skip-ES",
    "worded": "KACE, the default ladder",
    "knn-fewshot-gated-skip-es": "gold few-shot behind the same threshold",
    "knn-fewshot-skip-es": "gold few-shot, always shown",
    "tiered-gepa-from-ms": "GEPA, taught by the solver itself",
    "tiered-ace": "ACE, taught by the solver itself (empty playbook)",
    "kace-placebo": "placebo: another domain's cards",
    "oracle-card-skip-es": "oracle: the right card of those kept",
}
THIRD_ARMS = {
    "kace-a-skip-es": "KACE, tree A, skip-ES",
    "kace-a": "KACE, tree A, the default ladder",
    "kace-b-skip-es": "KACE, tree B, skip-ES",
    "kace-b": "KACE, tree B, the default ladder",
    "admitted-a-skip-es": "tree A with every admitted card, unmeasured, skip-ES",
    "few-shot-skip-es": "gold few-shot, always shown, skip-ES",
    "few-shot": "gold few-shot, always shown, the default ladder",
    "few-shot-gated-skip-es": "gold few-shot behind a threshold of 0.3",
    "placebo-a": "placebo: another domain's cards of tree A",
    "best-of-5": "Best-of-5",
    "oracle-kept-a-skip-es": "oracle: the right card of tree A",
    "oracle-admitted-a-skip-es": "oracle: the right card of those admitted, tree A",
    "oracle-kept-b-skip-es": "oracle: the right card of tree B",
}
SOLVED_IN_CARDS = frozenset(
    {
        "expected_changes-retest-4",
        "number_and_its_root-retest-2",
        "shortest_way_on_a_box-retest-5",
        "primes_with_odd_sum-retest-5",
        "any_group_contains-retest-5",
    }
)
"""Retest problems whose numbers and answer stand in a card's example."""


class CardCounts(NamedTuple):
    """Solves that read cards of some kind, and what became of them."""

    read: int
    gained: int
    lost: int
    base_right: int

    def __str__(self) -> str:
        return f"{self.read}: +{self.gained} / -{self.lost}"


def right_cards(
    published: Published, arms: Mapping[str, Arm]
) -> dict[str, set[str]]:
    """Return the cards that the oracles show to any problem, by family."""
    found: dict[str, set[str]] = defaultdict(set)
    for name in arms:
        if name.startswith("oracle"):
            for (problem, _), row in arms[name].items():
                family = published.problems[problem].family
                found[family].update(row.cards)
    return found


def count_cards(
    base: Arm, arm: Arm, known: Callable[[int], set[str]], right: bool
) -> CardCounts:
    """Count the solves that read a right card, or only wrong ones, against the base.

    `known` gives the right cards of a problem: those of its family.
    """
    read = 0
    gained = 0
    lost = 0
    base_right = 0
    for key, row in arm.items():
        found = not known(key[0]).isdisjoint(row.cards)
        if row.cards and found == right and key in base:
            read += 1
            gained += row.right > base[key].right
            lost += row.right < base[key].right
            base_right += base[key].right
    return CardCounts(read, gained, lost, base_right)


def truncated_share(arm: Arm) -> str:
    """Return the share of attempts that the token cap cut."""
    cut = sum(row.truncated for row in arm.values())
    made = sum(row.calls for row in arm.values())
    return f"{100 * cut / made:.0f} %"


def keep_all(problem: Problem) -> bool:
    """Whether a problem counts: each does."""
    return True


def keep_unsolved(problem: Problem) -> bool:
    """Whether a problem counts that is solved in no card."""
    return problem.label not in SOLVED_IN_CARDS


def main_table(
    published: Published,
    study: str,
    titles: Mapping[str, str] = MAIN,
    keep: Belongs = keep_all,
) -> list[str]:
    """Return the arms of a study by group, with their costs and their cards."""
    solver = study.rpartition("-")[2]
    arms = {}
    for name, arm in published.studies[study].items():
        arms[name] = published.select(arm, keep)
    base = arms[BASE]
    families = right_cards(published, arms)

    def known(problem: int) -> set[str]:
        return families[published.problems[problem].family]

    first = ["Tiered"]
    for belongs in MAIN_GROUPS.values():
        first.append(percent(published.select(base, belongs)))
    first += ["", "", *costs(base)[1:], truncated_share(base)]
    rows = [first]
    for name, title in titles.items():
        if name not in arms:
            continue
        row = [title]
        for belongs in MAIN_GROUPS.values():
            ours = published.select(base, belongs)
            theirs = published.select(arms[name], belongs)
            row.append(str(published.compare(ours, theirs)))
        counts = ["", ""]
        if (
            any(each.cards for each in arms[name].values())
            and "few" not in name
        ):
            counts = [
                str(count_cards(base, arms[name], known, right))
                for right in (True, False)
            ]
        row += [*counts, *costs(arms[name])[1:]]
        rows.append([*row, truncated_share(arms[name])])
    heads = [f"{solver.upper()}, against Tiered", *MAIN_GROUPS]
    heads += ["right card read", "only wrong cards read", "calls"]
    return markdown([*heads, "tokens in + out", "cut"], rows)


def found_on_third(published: Published, tree: str) -> str:
    """Return how often skip-ES finds a tree's cards, and shows wrong ones."""
    arms = published.studies[THIRD]
    told = arms[f"oracle-kept-{tree}-skip-es"]
    covered = {
        published.problems[problem].family
        for (problem, _), row in told.items()
        if row.cards
    }
    right = right_cards(published, {f"oracle-{tree}": told})
    has = 0
    found = 0
    without = 0
    shown = 0
    for (problem, _), row in arms[f"kace-{tree}-skip-es"].items():
        family = published.problems[problem].family
        if family in covered:
            has += 1
            found += not right[family].isdisjoint(row.cards)
        else:
            without += 1
            shown += bool(row.cards)
    return (
        f"* Tree {tree.upper()}, skip-ES: of {has} solves of the {len(covered)} "
        f"families with a card {100 * found / has:.1f} % read it; of {without} "
        f"others {100 * shown / without:.1f} % read one."
    )


def third_sentences(published: Published) -> list[str]:
    """Return the single figures of the third test that docs/results.md names."""
    arms = published.studies[THIRD]
    base = arms[BASE]
    lines = []
    for belongs, title in (("mathematics", "all mathematics"), ("all", "all")):
        for tree in ("a", "b"):
            head = published.select(
                arms[f"kace-{tree}-skip-es"], GROUPS[belongs]
            )
            ours = published.select(base, GROUPS[belongs])
            found = published.compare(ours, head)
            lines.append(
                f"* tree {tree.upper()}, {title}: {found}, p {p_text(found.p)}"
            )
    for other in ("kace-a-skip-es", "few-shot-skip-es", "few-shot"):
        row = []
        for title in ("all", "mathematics, seen", "conventions, seen"):
            theirs = published.select(arms[other], GROUPS[title])
            head = published.select(arms["kace-b-skip-es"], GROUPS[title])
            row.append(f"{title} {published.compare(theirs, head)}")
        lines.append(f"* tree B, skip-ES, over `{other}`: {'; '.join(row)}")
    return lines


def sentences(published: Published) -> list[str]:
    """Return the single figures that docs/results.md names, one per line."""
    lines = []
    for solver in ("1.5b", "0.5b"):
        arms = published.studies[f"techniques/retest-{solver}"]
        base = arms[BASE]
        head = arms[HEADLINE]
        maths = GROUPS["mathematics"]
        ours = published.select(base, maths)
        theirs = published.select(head, maths)
        found = published.compare(ours, theirs)
        lines.append(f"{solver}: all mathematics {found}, p {p_text(found.p)}")
        found = published.compare(
            ours, theirs, by=lambda each: published.problems[each].domain
        )
        lines.append(
            f"{solver}: all mathematics by domain {found}, p {p_text(found.p)}"
        )
        moved: Counter[str] = Counter()
        for key, row in theirs.items():
            family = published.problems[key[0]].family
            moved[family] += row.right - ours[key].right
        up = sum(change > 0 for change in moved.values())
        down = sum(change < 0 for change in moved.values())
        lines.append(
            f"{solver}: {up} of {len(moved)} mathematical families up, {down} down"
        )
        few = "knn-fewshot-gated-skip-es"
        if solver == "0.5b":
            few = "knn-fewshot-skip-es"
        for name, keep in (
            ("", keep_all),
            ("without the five: ", keep_unsolved),
        ):
            chosen = {}
            for each in (BASE, HEADLINE, few):
                chosen[each] = published.select(arms[each], keep)
            gain = published.compare(chosen[BASE], chosen[HEADLINE])
            over = published.compare(chosen[few], chosen[HEADLINE])
            p = f"p {p_text(over.p)}"
            lines.append(f"{solver}: {name}all {gain}; over {few} {over}, {p}")
    arms = published.studies["techniques/retest-1.5b"]
    for group in ("all", "mathematics"):
        belongs = GROUPS[group]
        ours = published.select(arms["knn-fewshot-gated-skip-es"], belongs)
        theirs = published.select(arms["kace-skip-es"], belongs)
        found = published.compare(ours, theirs)
        lines.append(f"1.5b: without wordings over few-shot, {group}: {found}")
    return [f"* {line}" for line in lines]


def draw_summary(published: Published) -> str:
    """Return the tables and figures of docs/results.md."""
    lines = ["# Summary of the tests", "", "Drawn by `make results`.", ""]
    lines += ["## Third test", ""]
    lines += [*main_table(published, THIRD, THIRD_ARMS), ""]
    for tree in ("a", "b"):
        lines.append(found_on_third(published, tree))
    lines += [*third_sentences(published), "", "## Retest", ""]
    for solver in ("1.5b", "0.5b"):
        study = f"techniques/retest-{solver}"
        lines += [*main_table(published, study), ""]
        lines += ["Without the five problems that are solved in cards:", ""]
        few = main_table(published, study, keep=keep_unsolved)[:4]
        lines += [*few, ""]
    lines += sentences(published)
    return "\n".join(lines) + "\n"


def plot_row(found: Difference, name: str, group: str) -> ForestRow:
    """Return a row of a plot, hollow where the interval contains zero."""
    paint = "open"
    if found.low > 0:
        paint = "good"
    elif found.high < 0:
        paint = "bad"
    return ForestRow(name, "", found.mean, found.low, found.high, paint, group)


COLOURS = {
    "paper": "#ffffff",
    "ink": "#1d2126",
    "soft": "#555d66",
    "grid": "#e8e6e0",
    "good": "#0a7069",
    "bad": "#b34a1f",
    "open": "#7b838d",
}
"""The CSS variables of charts, as a file has them."""


def svg(picture: Picture) -> str:
    """Return a chart as a file, in literal colours that any program reads."""
    charts: Any = environment().get_template("charts.svg").module
    width = f"{picture.width + 20:g}"
    height = f"{round(picture.height + 20, 2):g}"
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    font = "font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\""
    file = f"""<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" {size} {font}><title>{picture.title}</title>
<rect width="{width}" height="{height}" fill="var(--paper)"/>
<g transform="translate(10 10)">
{charts.marks(picture)}
</g></svg>
"""
    return re.sub(
        r'"var\(--(\w+)\)"', lambda name: f'"{COLOURS[name[1]]}"', file
    )


def draw_plot(published: Published) -> str:
    """Return the plot of the retest by group of families, as SVG."""
    arms = published.studies["techniques/retest-1.5b"]
    rows = []
    for group in ("all", "mathematics", "not seen", "conventions, seen"):
        base = published.select(arms[BASE], GROUPS[group])
        for arm, name in PLOTTED.items():
            other = published.select(arms[arm], GROUPS[group])
            rows.append(plot_row(published.compare(base, other), name, group))
    unit = "difference from Tiered, percentage points"
    return svg(forest("Retest, by group of families, 1.5B", unit, rows, 760.0))


def main(out: Path) -> None:
    """Write the tables and the plot."""
    published = Published()
    (out / "tables.md").write_text(draw_tables(published), encoding="utf-8")
    (out / "summary.md").write_text(draw_summary(published), encoding="utf-8")
    (out / "by-group.svg").write_text(draw_plot(published), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HERE)
